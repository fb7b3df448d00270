//! Folders for work in passing, which leave nothing behind.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::output::{forget_unfinished, unfinished};

/// A temporary folder that goes with this value, or through
/// [`remove_unfinished`](super::remove_unfinished) when the program is
/// interrupted.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Removes it.
    made: Option<TempDir>,
}

impl Scratch {
    /// A new folder in `parent`.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn create(parent: &Path) -> io::Result<Self> {
        let make = || tempfile::tempdir_in(parent).map(|made| (made.path().to_path_buf(), made));
        let made = unfinished(make)?;
        Ok(Self { path: made.path().to_path_buf(), made: Some(made) })
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // An interrupt meanwhile removes what is left.
        drop(self.made.take());
        forget_unfinished(&self.path);
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
