//! A folder for one input, output of bounded size, and the checks of every error.

use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A folder that goes with this value.
pub struct Place(TempDir);

impl Place {
    /// A new folder; `TMPDIR` says where, best in memory.
    #[expect(clippy::new_without_default, reason = "it makes a folder")]
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder for one input"))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of `name` in it.
    pub fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The path of a file `name` in it that holds `bytes`.
    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.at(name);
        let folder = path.parent().expect("a file lies in a folder");
        fs::create_dir_all(folder).expect("a folder for one input");
        fs::write(&path, bytes).expect("a file for one input");
        path
    }

    /// The number of its files.
    pub fn count(&self) -> usize {
        fs::read_dir(self.path()).expect("the folder for one input").count()
    }
}

/// Takes so many bytes, then refuses.
pub struct Bounded(pub usize);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or_else(|| io::Error::other("enough"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An error must name what it is about: the file as it was given.
pub fn named(error: &dyn Error, file: &str) {
    let said = error.to_string();
    assert!(said.contains(file), "the error does not name {file}: {said}");
    assert!(said.len() < 20_000, "the error has {} bytes", said.len());
}

/// The first byte, which chooses, and the rest.
pub fn split(bytes: &[u8]) -> Option<(u8, &[u8])> {
    bytes.split_first().map(|(first, rest)| (*first, rest))
}

/// The bytes as text, which may be cut short.
pub fn text(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}
