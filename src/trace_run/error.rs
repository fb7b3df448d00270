//! Why a program cannot be run.

/// An error for the user.
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
}

impl RunError {
    /// An error about the program's code.
    pub fn code(what: impl Into<String>) -> Self {
        Self::Code(what.into())
    }
}
