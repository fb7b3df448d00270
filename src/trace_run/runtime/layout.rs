//! The program's addresses: the same in every run, so that the same program gives the same trace
//! where its kernels use memory of the host.

use std::ffi::c_char;

use gpumodel_trace_run::request::VARIABLE;

/// Begins the program again with addresses that are not random, once. Where the system does not
/// allow that, the program runs as it is.
extern "C" fn settle(_: i32, arguments: *const *const c_char, variables: *const *const c_char) {
    if std::env::var_os(VARIABLE).is_none() {
        return;
    }
    // SAFETY: asks for the present value and changes nothing.
    let now = unsafe { libc::personality(0xffff_ffff) };
    if now < 0 || now & libc::ADDR_NO_RANDOMIZE != 0 {
        return;
    }
    let fixed = (now | libc::ADDR_NO_RANDOMIZE).cast_unsigned();
    // SAFETY: changes where later programs of this process are placed, nothing else.
    if unsafe { libc::personality(fixed.into()) } < 0 {
        return;
    }
    // SAFETY: asks for the value that was set just now.
    let set = unsafe { libc::personality(0xffff_ffff) };
    if set & libc::ADDR_NO_RANDOMIZE != 0 {
        // SAFETY: the loader passes the program's arguments and variables, which end with null
        // pointers; where this fails, the program goes on.
        unsafe { libc::execve(c"/proc/self/exe".as_ptr(), arguments, variables) };
    }
}

/// The loader calls it before `main`, with what it will pass to `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static SETTLE: extern "C" fn(i32, *const *const c_char, *const *const c_char) = settle;
