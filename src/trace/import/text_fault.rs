//! What is wrong in a text, before the file is known.

use std::path::Path;

use crate::error::TraceError;

/// A line that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Counted from 0, from wherever the reader started.
    pub(super) line: u64,
    pub(super) expected: String,
    pub(super) found: String,
}

impl Fault {
    /// The error of the file at `path`; `first` is the number of line 0.
    pub(super) fn in_file(self, path: &Path, first: u64) -> TraceError {
        TraceError::Text {
            path: path.to_path_buf(),
            line: first + self.line,
            expected: self.expected,
            found: self.found,
        }
    }
}
