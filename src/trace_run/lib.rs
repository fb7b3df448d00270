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
    /// An assert of a kernel failed: the lines that the program prints.
    #[error("{0}")]
    Assert(String),
}

impl RunError {
    /// An error about the program's code.
    pub fn code(what: impl Into<String>) -> Self {
        Self::Code(what.into())
    }
}
