//! Memory: allocations, copies and fills.

use std::ffi::{c_int, c_void};

use gpumodel_core::memory_copy::{CopyDirection, MemoryCopy};

use crate::pointers::{copy, fill, number, pointer, put, put_at};
use crate::state::{code, memory, result, state};

/// Rows of pitched memory and of arrays begin at a multiple of so many bytes.
pub(crate) const PITCH: usize = 512;

pub(crate) fn allocate(place: *mut *mut c_void, bytes: usize) -> u32 {
    // The state first: it says what to do when there is no request.
    drop(state());
    match memory().allocate(bytes as u64) {
        Some(at) if put(place, pointer(at)) => code::SUCCESS,
        Some(_) => result(code::INVALID_VALUE),
        None => result(code::OUT_OF_MEMORY),
    }
}

fn release(place: *mut c_void) -> u32 {
    let ok = place.is_null() || memory().free(number(place));
    result(if ok { code::SUCCESS } else { code::INVALID_VALUE })
}

macro_rules! allocations {
    ($($name:ident($($more:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(place: *mut *mut c_void, bytes: usize $(, _: $more)*) -> u32 {
            allocate(place, bytes)
        }
    )*};
}

allocations! {
    cudaMalloc();
    cudaMallocManaged(u32);
    cudaMallocHost();
    cudaHostAlloc(u32);
    cudaMallocAsync(*mut c_void);
}

macro_rules! releases {
    ($($name:ident($($more:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(place: *mut c_void $(, _: $more)*) -> u32 {
            release(place)
        }
    )*};
}

releases! {
    cudaFree();
    cudaFreeHost();
    cudaFreeAsync(*mut c_void);
}

#[unsafe(no_mangle)]
extern "C" fn cudaMallocPitch(
    place: *mut *mut c_void,
    pitch: *mut usize,
    width: usize,
    height: usize,
) -> u32 {
    let row = width.next_multiple_of(PITCH);
    put(pitch, row);
    allocate(place, row.saturating_mul(height))
}

#[unsafe(no_mangle)]
extern "C" fn cudaHostRegister(place: *mut c_void, bytes: usize, _: u32) -> u32 {
    memory().register(number(place), bytes as u64);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaHostUnregister(place: *mut c_void) -> u32 {
    memory().unregister(number(place));
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaHostGetDevicePointer(device: *mut *mut c_void, host: *mut c_void, _: u32) -> u32 {
    put(device, host);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaHostGetFlags(flags: *mut u32, _: *mut c_void) -> u32 {
    put(flags, 0);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaPointerGetAttributes(attributes: *mut c_void, place: *mut c_void) -> u32 {
    // Memory of the device is also of the host: managed (3); other memory is not known (0).
    let inside = memory().contains(number(place));
    put_at(attributes, 0, if inside { 3_u32 } else { 0 });
    put_at(attributes, 4, 0_u32);
    put_at(attributes, 8, if inside { place } else { std::ptr::null_mut() });
    put_at(attributes, 16, place);
    code::SUCCESS
}

/// The direction in which a copy goes, when it is one to the device.
fn record(to: *mut c_void, from: *const c_void, bytes: usize, stream: Option<u64>) {
    let (to, from) = (number(to), number(from));
    if memory().contains(to) && !memory().contains(from) && bytes > 0 {
        let direction = CopyDirection::HostToDevice;
        let one = MemoryCopy { direction, address: to, bytes: bytes as u64, stream };
        if let Some(recorder) = &mut state().recorder {
            recorder.copy(one);
        }
    }
}

/// Copies, and records it.
pub(crate) fn transfer(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    stream: Option<u64>,
) -> u32 {
    if bytes > 0 && (to.is_null() || from.is_null()) {
        return result(code::INVALID_VALUE);
    }
    copy(to, from, bytes);
    record(to, from, bytes, stream);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpy(to: *mut c_void, from: *const c_void, bytes: usize, _: c_int) -> u32 {
    transfer(to, from, bytes, None)
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpyAsync(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    _: c_int,
    stream: *const c_void,
) -> u32 {
    transfer(to, from, bytes, Some(number(stream)))
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpy2D(
    to: *mut c_void,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    height: usize,
    _: c_int,
) -> u32 {
    copy_rows((to, to_pitch), (from, from_pitch), [width, height])
}

/// Copies rows from one place to another, each with its pitch, and records it.
pub(crate) fn copy_rows(
    (to, to_pitch): (*mut c_void, usize),
    (from, from_pitch): (*const c_void, usize),
    [width, height]: [usize; 2],
) -> u32 {
    for row in 0..height {
        copy(to.wrapping_byte_add(row * to_pitch), from.wrapping_byte_add(row * from_pitch), width);
    }
    record(to, from, width * height, None);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpy2DAsync(
    to: *mut c_void,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
    _: *const c_void,
) -> u32 {
    cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind)
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemset(to: *mut c_void, value: c_int, bytes: usize) -> u32 {
    fill(to, value.to_le_bytes()[0], bytes);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemsetAsync(
    to: *mut c_void,
    value: c_int,
    bytes: usize,
    _: *const c_void,
) -> u32 {
    cudaMemset(to, value, bytes)
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemset2D(
    to: *mut c_void,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
) -> u32 {
    for row in 0..height {
        fill(to.wrapping_byte_add(row * pitch), value.to_le_bytes()[0], width);
    }
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemGetInfo(free: *mut usize, total: *mut usize) -> u32 {
    let size = usize::try_from(memory().size()).unwrap_or(usize::MAX);
    put(free, size / 2);
    put(total, size);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemPrefetchAsync() -> u32 {
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemAdvise() -> u32 {
    code::SUCCESS
}
