//! Functions of the driver that programs ask the runtime for by name: those that make tensor
//! maps. The 128 bytes of a map are those of [`TensorMap`].

use std::ffi::{c_char, c_void};

use gpumodel_trace_run::execute::{MOST_DIMENSIONS, TensorMap};

use crate::pointers::{bytes, get, number, put, text};
use crate::state::{code, result};

/// What the driver says of a name, as `cudaDriverEntryPointQueryResult`.
mod found {
    pub(super) const SUCCESS: u32 = 0;
    pub(super) const NOT_FOUND: u32 = 1;
}

/// The function of the driver with that name.
fn function(name: &str) -> *const c_void {
    match name {
        "cuTensorMapEncodeTiled" => encode_tiled as *const c_void,
        "cuTensorMapReplaceAddress" => replace_address as *const c_void,
        _ => std::ptr::null(),
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetDriverEntryPoint(
    symbol: *const c_char,
    place: *mut *const c_void,
    _: u64,
    status: *mut u32,
) -> u32 {
    let function = function(&text(symbol));
    put(place, function);
    put(status, if function.is_null() { found::NOT_FOUND } else { found::SUCCESS });
    // A null status asks for an error.
    let missing = function.is_null() && status.is_null();
    result(if missing { code::NOT_SUPPORTED } else { code::SUCCESS })
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetDriverEntryPointByVersion(
    symbol: *const c_char,
    place: *mut *const c_void,
    _: u32,
    flags: u64,
    status: *mut u32,
) -> u32 {
    cudaGetDriverEntryPoint(symbol, place, flags, status)
}

/// So many values from `from` on; 1 beyond them.
fn values<T: Copy + From<u8>, const N: usize>(from: *const T, count: usize) -> [T; N] {
    let one = || T::from(1);
    std::array::from_fn(|n| {
        if n < count { get(from.wrapping_add(n)).unwrap_or_else(one) } else { one() }
    })
}

/// `cuTensorMapEncodeTiled`.
extern "C" fn encode_tiled(
    map: *mut c_void,
    kind: u32,
    rank: u32,
    address: *const c_void,
    size: *const u64,
    strides: *const u64,
    extent: *const u32,
    steps: *const u32,
    interleave: u32,
    swizzle: u32,
    _: u32,
    fill: u32,
) -> u32 {
    // Interleaved tensors, swizzles of Blackwell, and what is out of bounds as no number.
    if interleave != 0 || swizzle > 3 || fill != 0 {
        return code::NOT_SUPPORTED;
    }
    let count = rank as usize;
    let small = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
    let encoded = || {
        let steps = values::<u32, MOST_DIMENSIONS>(steps, count);
        TensorMap {
            kind: u8::try_from(kind).ok()?,
            rank: count,
            swizzle: u8::try_from(swizzle).ok()?,
            address: number(address),
            size: values(size, count),
            strides: values(strides, count.saturating_sub(1)),
            extent: values::<u32, MOST_DIMENSIONS>(extent, count).map(small),
            steps: steps.map(|step| u8::try_from(step).unwrap_or(u8::MAX)),
        }
        .encoded()
    };
    let missing = map.is_null() || address.is_null() || !number(map).is_multiple_of(64);
    match encoded().filter(|_| !missing) {
        Some(encoded) => {
            put(map.cast(), encoded);
            code::SUCCESS
        }
        None => code::INVALID_VALUE,
    }
}

/// `cuTensorMapReplaceAddress`.
extern "C" fn replace_address(map: *mut c_void, address: *const c_void) -> u32 {
    let old = bytes(map, gpumodel_trace_run::execute::TENSOR_MAP_BYTES);
    let old = old.first_chunk().and_then(TensorMap::read);
    let new = old.and_then(|map| TensorMap { address: number(address), ..map }.encoded());
    match new {
        Some(new) => {
            put(map.cast(), new);
            code::SUCCESS
        }
        None => code::INVALID_VALUE,
    }
}

twins! {
    cudaGetDriverEntryPoint_ptsz = cudaGetDriverEntryPoint(
        a: *const c_char, b: *mut *const c_void, c: u64, d: *mut u32
    );
    cudaGetDriverEntryPointByVersion_ptsz = cudaGetDriverEntryPointByVersion(
        a: *const c_char, b: *mut *const c_void, c: u32, d: u64, e: *mut u32
    );
}
