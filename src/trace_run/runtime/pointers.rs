//! Reading and writing what the program's pointers point to.

use std::ffi::{CStr, c_char, c_void};

/// Writes `value` where the program wants it; false for a null pointer.
pub(crate) fn put<T>(to: *mut T, value: T) -> bool {
    if to.is_null() {
        return false;
    }
    // SAFETY: the program passes a pointer to an object of this type, as the function's
    // declaration in `cuda_runtime_api.h` says.
    unsafe { to.write_unaligned(value) };
    true
}

/// Writes `value` at `offset` bytes after `to`.
pub(crate) fn put_at<T>(to: *mut c_void, offset: usize, value: T) {
    if !to.is_null() {
        put(to.wrapping_byte_add(offset).cast::<T>(), value);
    }
}

/// What `from` points to; none for a null pointer.
pub(crate) fn get<T: Copy>(from: *const T) -> Option<T> {
    if from.is_null() {
        return None;
    }
    // SAFETY: the program passes a pointer to an object of this type, as the function's
    // declaration in `cuda_runtime_api.h` says.
    Some(unsafe { from.read_unaligned() })
}

/// The text at `from`.
pub(crate) fn text(from: *const c_char) -> String {
    if from.is_null() {
        return String::new();
    }
    // SAFETY: names that the compiler registers are C strings.
    unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned()
}

/// The bytes at `from`.
pub(crate) fn bytes(from: *const c_void, length: usize) -> Vec<u8> {
    if from.is_null() || length == 0 {
        return Vec::new();
    }
    // SAFETY: the program passes a pointer to so many readable bytes, as the function's
    // declaration says.
    unsafe { std::slice::from_raw_parts(from.cast::<u8>(), length) }.to_vec()
}

/// Copies bytes, which may overlap.
pub(crate) fn copy(to: *mut c_void, from: *const c_void, length: usize) {
    if length == 0 || to.is_null() || from.is_null() {
        return;
    }
    // SAFETY: the program passes pointers to so many bytes, readable and writable; device
    // memory is a mapping of this process, so host and device pointers are alike.
    unsafe { std::ptr::copy(from.cast::<u8>(), to.cast::<u8>(), length) };
}

/// Fills bytes.
pub(crate) fn fill(to: *mut c_void, value: u8, length: usize) {
    if length == 0 || to.is_null() {
        return;
    }
    // SAFETY: the program passes a pointer to so many writable bytes.
    unsafe { std::ptr::write_bytes(to.cast::<u8>(), value, length) };
}

/// An address as a number.
pub(crate) fn number(of: *const c_void) -> u64 {
    of.expose_provenance() as u64
}

/// A number as an address.
pub(crate) fn pointer(of: u64) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(usize::try_from(of).unwrap_or(0))
}
