//! What can be wrong with a workload, in words for its author.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// A workload that cannot be loaded, run or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SynthError {
    /// The file cannot be read.
    #[error("cannot read the workload {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Neither a known name nor a path.
    #[error("no workload `{name}`: {hint}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest name, and what is known.
        hint: String,
    },
    /// The file says something that no workload can mean.
    #[error("{file}, line {line}: {what}")]
    Invalid {
        /// The file, or the name of a built-in workload.
        file: String,
        /// Line of the file, from 1.
        line: usize,
        /// What was found and what was expected.
        what: String,
    },
    /// The scale cannot be applied.
    #[error("{file}: {what}")]
    Scale {
        /// The file, or the name of a built-in workload.
        file: String,
        /// What was found and what was expected.
        what: String,
    },
    /// The trace folder cannot be written.
    #[error("cannot write the trace folder {}", path.display())]
    Write {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Something wrong at a byte of the workload file.
#[derive(Debug)]
pub(super) struct Fault {
    /// Byte offset in the file.
    pub(super) at: usize,
    /// What was found and what was expected.
    pub(super) what: String,
}

impl Fault {
    /// A fault at byte `at`.
    pub(super) fn new(at: usize, what: impl Into<String>) -> Self {
        Self { at, what: what.into() }
    }

    /// The error for the user: the byte as a line of `text`, read from `file`.
    pub(super) fn located(self, file: &str, text: &str) -> SynthError {
        SynthError::Invalid { file: file.to_owned(), line: line_of(text, self.at), what: self.what }
    }
}

/// The line of byte `at`, from 1.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    let before = &text.as_bytes()[..at.min(text.len())];
    1 + before.split(|&byte| byte == b'\n').count().saturating_sub(1)
}
