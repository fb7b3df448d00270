//! Variables of the device that the host reads and writes by name.

use std::ffi::{c_int, c_void};

use gpumodel_trace_run::execute::constant_address;

use crate::copies::{record_to, transfer};
use crate::graphs::{NodeKind, in_stream};
use crate::pointers::{bytes, copy, number, pointer, put};
use crate::state::{State, alive, code, memory, result, settled, state};

/// Where a variable is.
enum Place {
    Device(u64, u64),
    /// Module, offset and bytes in constant bank 3.
    Constant(usize, usize, usize),
}

impl State {
    fn place(&mut self, symbol: *const c_void) -> Option<Place> {
        let (module, name) = self.variables.get(&number(symbol)).cloned()?;
        if let Some((address, size)) = self.variable_place(module, &name) {
            return Some(Place::Device(address, size));
        }
        let loaded = self.load(module);
        let found = loaded.module.variables.iter().find(|one| one.name == name)?;
        let (offset, size) = (usize::try_from(found.offset), usize::try_from(found.bytes));
        Some(Place::Constant(module, offset.ok()?, size.ok()?))
    }
}

fn outside(offset: usize, count: usize, size: u64) -> bool {
    offset.checked_add(count).is_none_or(|end| end as u64 > size)
}

/// Copies so many bytes to a place in a variable, and records it.
pub(crate) fn to_symbol(
    symbol: *const c_void,
    from: *const c_void,
    [count, offset]: [usize; 2],
    stream: Option<u64>,
) -> u32 {
    let place = state().place(symbol);
    match place {
        Some(Place::Device(at, size)) if !outside(offset, count, size) => {
            transfer(pointer(at + offset as u64), from, count, stream)
        }
        Some(Place::Constant(..)) if count > 0 && from.is_null() => result(code::INVALID_VALUE),
        Some(Place::Constant(module, at, size)) if !outside(offset, count, size as u64) => {
            let ready = if stream.is_none() { settled() } else { alive() };
            if ready != code::SUCCESS {
                return ready;
            }
            let new = bytes(from, count);
            let place = at + offset..at + offset + count;
            if let Some(old) = state().modules[module].constants.get_mut(place) {
                old.copy_from_slice(&new);
            }
            if !memory().is_of_device(number(from)) {
                record_to(constant_address((at + offset) as u64), count, stream);
            }
            code::SUCCESS
        }
        Some(_) => result(code::INVALID_VALUE),
        None => result(code::INVALID_SYMBOL),
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpyToSymbol(
    symbol: *const c_void,
    from: *const c_void,
    count: usize,
    offset: usize,
    _: c_int,
) -> u32 {
    to_symbol(symbol, from, [count, offset], None)
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpyToSymbolAsync(
    symbol: *const c_void,
    from: *const c_void,
    count: usize,
    offset: usize,
    _: c_int,
    stream: *const c_void,
) -> u32 {
    let (symbol, from) = (number(symbol), number(from));
    in_stream(stream, NodeKind::Copy, move |stream| {
        to_symbol(pointer(symbol), pointer(from), [count, offset], Some(stream))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpyFromSymbol(
    to: *mut c_void,
    symbol: *const c_void,
    count: usize,
    offset: usize,
    _: c_int,
) -> u32 {
    from_symbol(to, symbol, [count, offset])
}

/// Copies so many bytes from a place in a variable.
pub(crate) fn from_symbol(
    to: *mut c_void,
    symbol: *const c_void,
    [count, offset]: [usize; 2],
) -> u32 {
    let place = state().place(symbol);
    match place {
        Some(Place::Device(at, size)) if !outside(offset, count, size) => {
            transfer(to, pointer(at + offset as u64), count, None)
        }
        Some(Place::Constant(module, at, size)) if !outside(offset, count, size as u64) => {
            let state = state();
            let bank = &state.modules[module].constants;
            if let Some(old) = bank.get(at + offset..at + offset + count) {
                copy(to, old.as_ptr().cast(), count);
            }
            code::SUCCESS
        }
        Some(_) => result(code::INVALID_VALUE),
        None => result(code::INVALID_SYMBOL),
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpyFromSymbolAsync(
    to: *mut c_void,
    symbol: *const c_void,
    count: usize,
    offset: usize,
    _: c_int,
    stream: *const c_void,
) -> u32 {
    let (to, symbol) = (number(to), number(symbol));
    in_stream(stream, NodeKind::Copy, move |_| {
        from_symbol(pointer(to), pointer(symbol), [count, offset])
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetSymbolAddress(to: *mut *mut c_void, symbol: *const c_void) -> u32 {
    let place = state().place(symbol);
    match place {
        Some(Place::Device(at, _)) => {
            put(to, pointer(at));
            code::SUCCESS
        }
        Some(Place::Constant(..)) => result(crate::registration::UNSUPPORTED),
        None => result(code::INVALID_SYMBOL),
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetSymbolSize(to: *mut usize, symbol: *const c_void) -> u32 {
    let place = state().place(symbol);
    match place {
        Some(Place::Device(_, size)) => put(to, usize::try_from(size).unwrap_or(0)),
        Some(Place::Constant(_, _, size)) => put(to, size),
        None => return result(code::INVALID_SYMBOL),
    };
    code::SUCCESS
}

stream_twins! {
    cudaMemcpyToSymbolAsync_ptsz = cudaMemcpyToSymbolAsync(
        a: *const c_void, b: *const c_void, c: usize, d: usize, e: c_int
    );
    cudaMemcpyFromSymbolAsync_ptsz = cudaMemcpyFromSymbolAsync(
        a: *mut c_void, b: *const c_void, c: usize, d: usize, e: c_int
    );
}

twins! {
    cudaMemcpyToSymbol_ptds = cudaMemcpyToSymbol(
        a: *const c_void, b: *const c_void, c: usize, d: usize, e: c_int
    );
    cudaMemcpyFromSymbol_ptds = cudaMemcpyFromSymbol(
        a: *mut c_void, b: *const c_void, c: usize, d: usize, e: c_int
    );
}
