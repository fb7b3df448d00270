//! A file as bytes in memory, without reading it: the only `unsafe` here.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;

use memmap2::Mmap;

/// A whole file, mapped read-only.
#[derive(Debug)]
pub(super) struct Map {
    bytes: Mmap,
}

impl Map {
    /// Maps the file at `path`.
    ///
    /// # Errors
    /// Whatever the operating system says.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        #[allow(unsafe_code)]
        // SAFETY: the map is private and read-only, and this program never
        // writes to a finished store: stores appear by rename, so a new version
        // is another inode. If another program changes the file under us, the
        // bytes we see change: nothing here keeps a reference that relies on
        // them staying valid (no `str`, no enum, no bool is made of them without
        // a check at that moment), and every chunk is checksummed and copied
        // out before use. Mapped traces (`.tracez`) are expanded into buffers of a
        // stated length by a decoder that takes any bytes; every length read from
        // them is held against the map's. Truncation by another program raises SIGBUS, which
        // ends the program: the same as any mmap reader.
        let bytes = unsafe { Mmap::map(&file)? };
        Ok(Self { bytes })
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}
