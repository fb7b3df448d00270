//! The CUDA runtime that `gpumodel trace` puts in front of a program: its functions have the
//! names and layouts of NVIDIA's `libcudart`, run kernels on the CPU and record them.
//!
//! All that a program passes comes as raw pointers, so this crate is unsafe where it must read
//! them; `gpumodel-trace-run` does the work.
#![allow(unsafe_code)]
#![cfg(target_os = "linux")]

/// Functions under the names that programs call which have a default stream per thread
/// (`nvcc --default-stream per-thread`).
macro_rules! twins {
    ($($twin:ident = $name:ident($($argument:ident: $kind:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $twin($($argument: $kind),*) -> u32 {
            $name($($argument),*)
        }
    )*};
}

/// The same of functions whose last argument is a stream: there the default one is the thread's.
macro_rules! stream_twins {
    ($($twin:ident = $name:ident($($argument:ident: $kind:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $twin($($argument: $kind,)* stream: *const std::ffi::c_void) -> u32 {
            $name($($argument,)* crate::copies::per_thread(stream))
        }
    )*};
}

mod copies;
mod device;
mod events;
mod graph_nodes;
mod graphs;
mod launch;
mod memory;
mod occupancy;
mod pointers;
mod registration;
mod state;
mod symbols;
mod tensor_maps;
mod textures;
