//! The device: its properties are those of the machine that the user chose.

use std::ffi::{CStr, c_char, c_int, c_void};

use gpumodel_trace_run::request::Device;

use crate::pointers::{fill, put, put_at};
use crate::state::{code, memory, result, state};

#[unsafe(no_mangle)]
extern "C" fn cudaGetDeviceCount(count: *mut c_int) -> u32 {
    put(count, 1);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetDevice(device: *mut c_int) -> u32 {
    put(device, 0);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaSetDevice(device: c_int) -> u32 {
    result(if device == 0 { code::SUCCESS } else { code::INVALID_DEVICE })
}

#[unsafe(no_mangle)]
extern "C" fn cudaChooseDevice(device: *mut c_int, _: *const c_void) -> u32 {
    put(device, 0);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetDeviceFlags(flags: *mut u32) -> u32 {
    put(flags, 0);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceCanAccessPeer(can: *mut c_int, _: c_int, _: c_int) -> u32 {
    put(can, 0);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaDriverGetVersion(version: *mut c_int) -> u32 {
    put(version, 13_000);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaRuntimeGetVersion(version: *mut c_int) -> u32 {
    put(version, 13_000);
    code::SUCCESS
}

/// The limits of a thread's stack and of what kernels allocate, as `cudaLimit`.
const LIMIT_STACK: u32 = 0;
const LIMIT_HEAP: u32 = 2;

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceSetLimit(limit: u32, value: usize) -> u32 {
    match limit {
        LIMIT_STACK => {
            state().stack_bytes = u32::try_from(value).unwrap_or(1024).min(1 << 20);
            code::SUCCESS
        }
        LIMIT_HEAP if !memory().set_heap_bytes(value as u64) => result(code::INVALID_VALUE),
        _ => code::SUCCESS,
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceGetLimit(value: *mut usize, limit: u32) -> u32 {
    let bytes = match limit {
        LIMIT_STACK => state().stack_bytes.into(),
        LIMIT_HEAP => memory().heap_bytes(),
        _ => 8 << 20,
    };
    put(value, usize::try_from(bytes).unwrap_or(0));
    code::SUCCESS
}

/// Shared bytes that a CTA may have without asking for more.
const USUAL_SHARED: u64 = 48 << 10;
/// Bytes of an SM's shared memory that the system takes.
const RESERVED_SHARED: u64 = 1 << 10;

/// Where the fields of `cudaDeviceProp` that differ between versions lie, as the compiler lays
/// out the declaration in `driver_types.h`.
struct Layout {
    size: usize,
    sms: usize,
    /// Kernels at once, copy engines, one address space, caching in L1.
    yes: [usize; 4],
    copy_engines: usize,
    bus_bits: usize,
    l2_bytes: usize,
    threads: usize,
    shared: usize,
    /// Registers of an SM, then whether memory can be managed.
    registers: usize,
    /// Managed memory at the same time, cooperative launches, mapped memory.
    also: [usize; 3],
    shared_by_request: usize,
    ctas: usize,
}

const VERSION_12: Layout = Layout {
    size: 1032,
    sms: 388,
    yes: [576, 604, 632, 628],
    copy_engines: 600,
    bus_bits: 612,
    l2_bytes: 616,
    threads: 624,
    shared: 640,
    registers: 648,
    also: [676, 688, 400],
    shared_by_request: 696,
    ctas: 712,
};

const VERSION_13: Layout = Layout {
    size: 1008,
    sms: 384,
    yes: [560, 588, 612, 608],
    copy_engines: 584,
    bus_bits: 592,
    l2_bytes: 596,
    threads: 604,
    shared: 624,
    registers: 632,
    also: [656, 668, 392],
    shared_by_request: 672,
    ctas: 688,
};

/// Fills the properties of `cudaDeviceProp`, which lie as `layout` says.
fn properties(to: *mut c_void, device: &Device, layout: &Layout) -> u32 {
    if to.is_null() {
        return result(code::INVALID_VALUE);
    }
    fill(to, 0, layout.size);
    for (index, byte) in device.name.bytes().take(255).enumerate() {
        put_at(to, index, byte);
    }
    put_at(to, 288, memory().size());
    put_at(to, 296, USUAL_SHARED);
    put_at(to, 304, device.registers_per_sm);
    put_at(to, 308, 32_u32);
    put_at(to, 312, u64::from(u32::MAX >> 1));
    put_at(to, 320, 1024_u32);
    put_at(to, 324, [1024_u32, 1024, 64]);
    put_at(to, 336, [u32::MAX >> 1, 65535, 65535]);
    put_at(to, 352, 65536_u64);
    put_at(to, 360, [device.sm / 10, device.sm % 10]);
    put_at(to, layout.sms, device.sms);
    layout.yes.into_iter().chain(layout.also).for_each(|field| put_at(to, field, 1_u32));
    put_at(to, layout.copy_engines, 2_u32);
    put_at(to, layout.bus_bits, device.bus_bits);
    put_at(to, layout.l2_bytes, u32::try_from(device.l2_bytes).unwrap_or(u32::MAX));
    put_at(to, layout.threads, device.threads_per_sm);
    put_at(to, layout.shared, device.shared_bytes_per_sm);
    put_at(to, layout.registers, [device.registers_per_sm, 1]);
    let most = device.shared_bytes_per_sm.saturating_sub(RESERVED_SHARED);
    put_at(to, layout.shared_by_request, most);
    put_at(to, layout.ctas, device.ctas_per_sm);
    code::SUCCESS
}

/// Of version 13.
#[unsafe(no_mangle)]
extern "C" fn cudaGetDeviceProperties(to: *mut c_void, _: c_int) -> u32 {
    let device = state().request.device.clone();
    properties(to, &device, &VERSION_13)
}

/// Of version 12.
#[unsafe(no_mangle)]
extern "C" fn cudaGetDeviceProperties_v2(to: *mut c_void, _: c_int) -> u32 {
    let device = state().request.device.clone();
    let value = properties(to, &device, &VERSION_12);
    if value == code::SUCCESS {
        // Version 13 has no clocks.
        put_at(to, 348, device.clock_khz);
        put_at(to, 608, device.memory_clock_khz);
    }
    value
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceGetAttribute(value: *mut c_int, attribute: u32, _: c_int) -> u32 {
    let device = state().request.device.clone();
    let small = |size: u64| u32::try_from(size).unwrap_or(u32::MAX >> 1);
    let found = match attribute {
        1..=3 => 1024,
        4 => 64,
        5 => u32::MAX >> 1,
        6 | 7 => 65535,
        8 => small(USUAL_SHARED),
        9 => 65536,
        10 => 32,
        12 | 82 => device.registers_per_sm,
        13 => device.clock_khz,
        16 => device.sms,
        31 | 41 | 83 | 89 | 95 | 15 => 1,
        36 => device.memory_clock_khz,
        37 => device.bus_bits,
        38 => small(device.l2_bytes),
        39 => device.threads_per_sm,
        75 => device.sm / 10,
        76 => device.sm % 10,
        81 => small(device.shared_bytes_per_sm),
        97 => small(device.shared_bytes_per_sm.saturating_sub(RESERVED_SHARED)),
        106 => device.ctas_per_sm,
        _ => 0,
    };
    put(value, found.cast_signed());
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetLastError() -> u32 {
    let mut state = state();
    // The error of a kernel stays.
    let after = if state.last_error == state.failed { state.failed } else { code::SUCCESS };
    std::mem::replace(&mut state.last_error, after)
}

#[unsafe(no_mangle)]
extern "C" fn cudaPeekAtLastError() -> u32 {
    state().last_error
}

/// Name and description of an error.
fn describe(error: u32) -> [&'static CStr; 2] {
    match error {
        code::SUCCESS => [c"cudaSuccess", c"no error"],
        code::INVALID_VALUE => [c"cudaErrorInvalidValue", c"invalid argument"],
        code::OUT_OF_MEMORY => [c"cudaErrorMemoryAllocation", c"out of memory"],
        code::INVALID_CONFIGURATION => {
            [c"cudaErrorInvalidConfiguration", c"invalid configuration argument"]
        }
        code::INVALID_SYMBOL => [c"cudaErrorInvalidSymbol", c"invalid device symbol"],
        code::ASSERT => [c"cudaErrorAssert", c"device-side assert triggered"],
        code::INVALID_FUNCTION => [c"cudaErrorInvalidDeviceFunction", c"invalid device function"],
        code::INVALID_DEVICE => [c"cudaErrorInvalidDevice", c"invalid device ordinal"],
        code::NOT_SUPPORTED => [c"cudaErrorNotSupported", c"operation not supported"],
        _ => [c"cudaErrorUnknown", c"unknown error"],
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorName(error: u32) -> *const c_char {
    describe(error)[0].as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorString(error: u32) -> *const c_char {
    describe(error)[1].as_ptr()
}
