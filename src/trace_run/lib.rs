//! Kernels of CUDA programs, run on the CPU: their SASS is decoded, executed warp by warp, and
//! recorded as a trace.
//!
//! | module | content |
//! |---|---|
//! | [`cubin`] | fat binaries and cubins: kernels, parameters, constants, variables |
//! | [`sass`] | the text of `nvdisasm` and the encodings in it, decoded into actions |
//! | [`execute`] | warps, CTAs and grids; device memory is behind [`execute::Memory`] |
//! | [`request`] | what `gpumodel trace` asks of the runtime in the program, and its answer |
//!
//! Nothing here is unsafe: the runtime that the program calls is the crate
//! `gpumodel-cuda-runtime`.

pub mod cubin;
mod error;
pub mod execute;
mod program;
pub mod request;
pub mod sass;
mod session;
mod stub;
#[cfg(test)]
mod tests;

pub use error::RunError;
pub use session::{Outcome, Session, nvdisasm};
