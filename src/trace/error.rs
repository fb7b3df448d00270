//! What can be wrong with a trace or a store, in the user's words.

use std::io;
use std::path::{Path, PathBuf};

use gpumodel_core::units::to_u64;
use thiserror::Error;

/// Why a trace could not be converted or a store could not be read.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The operating system refused.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// What was tried: `read`, `write`, …
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line of text (of a trace or of a command list) is not what it should be.
    #[error("{}:{line}: expected {expected}, found {found}", path.display())]
    Text {
        /// The file as named on the command line or in its list.
        path: PathBuf,
        /// Line in the decompressed text, from 1.
        line: u64,
        /// What the format requires.
        expected: String,
        /// What was found, shortened.
        found: String,
    },
    /// A byte of a binary trace is not what it should be.
    #[error("{}: byte {offset}: expected {expected}, found {found}", path.display())]
    Bytes {
        /// The file as named on the command line or in its list.
        path: PathBuf,
        /// Position in the file, from 0; of a compressed part its start.
        offset: u64,
        /// What the format requires.
        expected: String,
        /// What was found.
        found: String,
    },
    /// A store's bytes are not what they should be.
    #[error(
        "{}: byte {offset}: expected {expected}, found {found}; {}",
        path.display(),
        remedy(*offset)
    )]
    Store {
        /// The store.
        path: PathBuf,
        /// Position in the file.
        offset: u64,
        /// What the layout requires.
        expected: String,
        /// What was found.
        found: String,
    },
    /// The output cannot be created; the message names it.
    #[error(transparent)]
    Output(io::Error),
    /// A workload model whose records cannot be computed.
    #[error(transparent)]
    Workload(#[from] crate::workload::WorkloadError),
    /// The request itself makes no sense.
    #[error("{0}")]
    Request(String),
}

impl TraceError {
    /// Whether the file itself is damaged: what it holds is not what its format says, or
    /// cannot be decompressed.
    pub(super) fn is_damage(&self) -> bool {
        match self {
            Self::Text { .. } | Self::Bytes { .. } => true,
            // What the operating system refuses may be there at the next try.
            Self::Io { what, source, .. } => *what == "read" && source.raw_os_error().is_none(),
            Self::Store { .. } | Self::Output(_) | Self::Workload(_) | Self::Request(_) => false,
        }
    }

    /// The error with what caused it, on one line.
    pub(super) fn whole(&self) -> String {
        match self {
            Self::Io { source, .. } => format!("{self}: {source}"),
            _ => self.to_string(),
        }
    }

    /// An operating-system error with its file.
    pub(super) fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { what, path: path.to_path_buf(), source }
    }
}

/// The advice for a store that is wrong at byte `offset`; at its first byte it is no store.
fn remedy(offset: u64) -> &'static str {
    if offset == 0 {
        "`gpumodel convert` makes a store of a trace"
    } else {
        "convert the trace again"
    }
}

/// What is wrong in a block of bytes, before the file is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ByteFault {
    /// Byte in the block.
    pub(super) at: usize,
    /// What should be there.
    pub(super) expected: String,
    /// What was found.
    pub(super) found: String,
    /// Why it could not be read at all.
    unread: Option<io::ErrorKind>,
}

impl ByteFault {
    /// A fault at byte `at`.
    pub(super) fn new(at: usize, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { at, expected: expected.into(), found: found.into(), unread: None }
    }

    /// A file that can no longer be read.
    pub(super) fn unread(error: &io::Error) -> Self {
        let unread = Some(error.kind());
        Self { unread, ..Self::new(0, "a file that can be read", error.to_string()) }
    }

    /// The error of the binary trace at `path`, when the block is the whole file.
    pub(super) fn in_bytes(self, path: &Path) -> TraceError {
        if let Some(kind) = self.unread {
            return TraceError::io("read", path, kind.into());
        }
        let Self { at, expected, found, .. } = self;
        TraceError::Bytes { path: path.to_path_buf(), offset: to_u64(at), expected, found }
    }

    /// The error of the store at `path` whose block starts at `offset`.
    ///
    /// For compressed blocks the position within is that of the decompressed
    /// bytes, so only the start of the block is given.
    pub(super) fn in_store(self, path: &Path, offset: u64) -> TraceError {
        if let Some(kind) = self.unread {
            return TraceError::io("read", path, kind.into());
        }
        let Self { expected, found, .. } = self;
        TraceError::Store { path: path.to_path_buf(), offset, expected, found }
    }
}

/// A line of a text that is not what it should be, before the file is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineFault {
    /// Counted from 0, from where the reader started.
    pub(crate) line: u64,
    pub(crate) expected: String,
    pub(crate) found: String,
}

impl LineFault {
    /// A fault in line `line`.
    pub(crate) fn new(line: u64, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { line, expected: expected.into(), found: found.into() }
    }

    /// The error of the file at `path`; `first` is the number of line 0.
    pub(crate) fn in_file(self, path: &Path, first: u64) -> TraceError {
        let Self { line, expected, found } = self;
        TraceError::Text { path: path.to_path_buf(), line: first + line, expected, found }
    }
}
