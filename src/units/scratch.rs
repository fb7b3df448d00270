//! Folders for work in passing, which leave nothing behind.

use std::io;
use std::path::Path;

use tempfile::TempDir;

use super::output::{forget_unfinished, register_unfinished};

/// A temporary folder that goes with this value, or through
/// [`remove_unfinished`](super::remove_unfinished) when the program is
/// interrupted.
#[derive(Debug)]
pub struct Scratch(TempDir);

impl Scratch {
    /// A new folder in `parent`.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn create(parent: &Path) -> io::Result<Self> {
        let folder = tempfile::tempdir_in(parent)?;
        register_unfinished(folder.path());
        Ok(Self(folder))
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        forget_unfinished(self.0.path());
    }
}

/// Finds out before long work whether files can be written into `folder`, or
/// into the nearest folder above it that exists. Leaves nothing behind.
///
/// # Errors
/// Whatever the file system says.
pub fn check_writable(folder: &Path) -> io::Result<()> {
    let there = folder.ancestors().find(|one| one.exists()).unwrap_or(Path::new("."));
    tempfile::tempfile_in(there).map(drop)
}
