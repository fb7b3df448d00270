//! Typed words to requests, one file per verb. No computation.

use std::process::ExitCode;

/// Runs the program named on the command line.
#[must_use]
pub fn main() -> ExitCode {
    ExitCode::from(2)
}
