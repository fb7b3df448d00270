//! Files as they are opened: regular ones only, and a store's, mapped.
//!
//! A store's blocks are copied out of the map after its file was asked for its
//! length: a file that another program cuts short while it is open gives an error
//! where the map alone would give a signal, and the bytes whose checksum was right
//! are those that are decompressed. Only a cut within the microseconds of a copy
//! still ends the program.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::units::to_u64;

use super::error::Fault;
use super::map::Map;

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
    map: Map,
    /// Its length when it was opened.
    pub(super) bytes: u64,
}

impl StoreFile {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// Those of [`open`].
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let map = Map::open(path)?;
        let bytes = to_u64(map.len());
        Ok(Self { map, bytes })
    }

    /// The `count` bytes from `start` on. Allocates no more than the file had.
    ///
    /// # Errors
    /// A [`Fault`] when the file does not hold them, or no longer.
    pub(super) fn read(&self, start: u64, count: u64) -> Result<Vec<u8>, Fault> {
        let at = usize::try_from(start).unwrap_or(usize::MAX);
        let missing = |found: &str| Fault::new(at, format!("{count} bytes"), found);
        let end = start.checked_add(count).filter(|&end| end <= self.bytes);
        let end = end.ok_or_else(|| missing("the end of the file"))?;
        if end > self.map.length_now()? {
            let found = "the end of the file: another program cut it while it was open";
            return Err(missing(found));
        }
        let range = at..usize::try_from(end).unwrap_or(usize::MAX);
        self.map.get(range).map(<[u8]>::to_vec).ok_or_else(|| missing("the end of the file"))
    }
}
