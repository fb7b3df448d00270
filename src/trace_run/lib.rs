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
pub mod execute;
pub mod request;
pub mod sass;
mod session;
mod stub;
#[cfg(test)]
mod tests;

pub use session::{Outcome, Session, nvdisasm};

/// Why a program cannot be run: an error for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The program's code cannot be used.
    #[error("{0}")]
    Code(String),
    /// A kernel did what cannot be executed.
    #[error("kernel `{kernel}`, PC {pc:#06x}: {what}")]
    Kernel {
        /// Its name.
        kernel: String,
        /// Where in its code.
        pc: u64,
        /// What happened, and what to do.
        what: String,
    },
    /// A kernel failed as it would on a GPU, and the program goes on.
    #[error("{}", .0.text)]
    Failed(Failure),
}

/// How a kernel failed as it would on a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the device raised.
    pub exception: Exception,
    /// The lines for standard error.
    pub text: String,
}

/// An exception of the device, after which later calls of the program return an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exception {
    /// An assert failed.
    Assert,
    /// Global memory outside all allocations was accessed.
    IllegalAddress,
    /// An address was no multiple of the bytes accessed.
    MisalignedAddress,
    /// The kernel trapped, or left its shared or local memory.
    LaunchFailure,
}

impl RunError {
    /// An error about the program's code.
    pub fn code(what: impl Into<String>) -> Self {
        Self::Code(what.into())
    }
}
