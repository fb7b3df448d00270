//! Files as they are opened: regular ones only, and a store's, read where it is needed.
//!
//! A store's blocks are read, not mapped: a file that another program cuts short or
//! writes over while it is open gives an error where a map would give a signal, and
//! the bytes whose checksum was right are those that are decompressed.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::units::{to_u64, to_usize};

use super::error::Fault;

/// Opens the file at `path` for reading, at once or not at all: opening a pipe would
/// wait for its writer.
///
/// # Errors
/// Whatever the operating system says, and anything that is neither file nor folder.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let kind = fs::metadata(path)?;
    if !kind.is_file() && !kind.is_dir() {
        let text = "a pipe or device is no trace: write it to a file first";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    File::open(path)
}

/// An open store.
#[derive(Debug)]
pub(super) struct StoreFile {
    file: Mutex<File>,
    /// Its length when it was opened.
    pub(super) bytes: u64,
}

impl StoreFile {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// Those of [`open`].
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { file: Mutex::new(file), bytes })
    }

    /// The `count` bytes from `start` on. Allocates no more than the file had.
    ///
    /// # Errors
    /// A [`Fault`] when the file does not hold them, or no longer.
    pub(super) fn read(&self, start: u64, count: u64) -> Result<Vec<u8>, Fault> {
        let at = usize::try_from(start).unwrap_or(usize::MAX);
        let expected = || format!("{count} bytes");
        let end = start.checked_add(count).filter(|&end| end <= self.bytes);
        if end.is_none() {
            return Err(Fault::new(at, expected(), "the end of the file"));
        }
        // A reader that panicked left no more than another position.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = Vec::with_capacity(to_usize(count));
        let read = file.seek(SeekFrom::Start(start));
        let read = read.and_then(|_| (&mut *file).take(count).read_to_end(&mut bytes));
        if let Err(error) = read {
            return Err(Fault::new(at, expected(), format!("an error ({error})")));
        }
        if to_u64(bytes.len()) < count {
            let found = "the end of the file: another program cut it while it was open";
            return Err(Fault::new(at, expected(), found));
        }
        Ok(bytes)
    }
}
