//! Where results go: to standard output, or into a file.

use std::io::{self, StdoutLock, Write};
use std::path::Path;

use crate::units::WholeFile;

/// Standard output, whose errors say that they are of it.
pub(super) struct Stdout(StdoutLock<'static>);

/// Standard output, this thread's alone as long as the value lives.
pub(super) fn stdout() -> Stdout {
    Stdout(io::stdout().lock())
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(|error| named(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(|error| named(&error))
    }
}

/// The same error in words that name the output; its kind tells closed pipes.
fn named(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write to standard output: {error}"))
}

/// Writes `text` to `path`, or to standard output for `-`.
pub(super) fn write_text(path: &Path, text: &str) -> io::Result<()> {
    if path == Path::new("-") {
        return stdout().write_all(text.as_bytes());
    }
    WholeFile::write(path, text.as_bytes())
}
