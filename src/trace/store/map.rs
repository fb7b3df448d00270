//! A file as bytes in memory, without reading it: the only `unsafe` here.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;

use memmap2::Mmap;

use gpumodel_core::units::{to_u64, to_usize};

use super::file;
use crate::error::Fault;

/// A whole file, mapped read-only.
#[derive(Debug)]
pub(crate) struct Map {
    bytes: Mmap,
    file: File,
}

impl Map {
    /// Maps the file at `path`.
    ///
    /// # Errors
    /// Whatever the operating system says, and a file that is not regular.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = file::open(path)?;
        #[allow(unsafe_code)]
        // SAFETY: the map is private and read-only. If another program changes the
        // file under us, the bytes we see change: nothing here keeps a reference that
        // relies on them staying valid (no `str`, no enum, no bool is made of them
        // without a check at that moment). Blocks of stores are not read from it where
        // files can be cut, see `copy`. Mapped traces (`.tracez`) are expanded into
        // buffers of a stated length by a decoder that takes any bytes; every length read
        // from them is held against the map's. Bytes of those that another program cuts
        // off raise SIGBUS, which ends the program: the file is asked for its length
        // before every batch of work, so that only a cut within its milliseconds does.
        let bytes = unsafe { Mmap::map(&file)? };
        Ok(Self { bytes, file })
    }

    /// Copies what stands in the file from `start` on, as much as `bytes` takes. The
    /// system does it: it refuses bytes that were cut off since the file was mapped.
    ///
    /// # Errors
    /// Whatever the operating system says; [`io::ErrorKind::UnexpectedEof`] where the file
    /// has fewer bytes.
    #[cfg(unix)]
    pub(crate) fn copy(&self, start: u64, bytes: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, bytes, start)
    }

    /// The same of a file that nobody can cut while it is mapped.
    #[cfg(not(unix))]
    pub(crate) fn copy(&self, start: u64, bytes: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let range = start..start.saturating_add(bytes.len());
        let found = self.bytes.get(range).ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(found);
        Ok(())
    }

    /// Bytes that the file has by now.
    ///
    /// # Errors
    /// A [`Fault`] where the system does not say: the file may be gone from its server.
    fn length_now(&self) -> Result<u64, Fault> {
        self.file.metadata().map(|now| now.len()).map_err(|error| Fault::unread(&error))
    }

    /// Checks that the file is still as long as it was when it was mapped.
    ///
    /// # Errors
    /// A [`Fault`] where it ends now.
    pub(crate) fn whole(&self) -> Result<(), Fault> {
        let (had, has) = (self.bytes.len(), self.length_now()?);
        if has >= to_u64(had) {
            return Ok(());
        }
        let found = "the end: another program cut the file while it was read";
        Err(Fault::new(to_usize(has), format!("a file of {had} bytes"), found))
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::Map;

    #[test]
    fn a_file_that_was_cut_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k.tracez");
        std::fs::write(&path, [7; 100]).unwrap();
        let map = Map::open(&path).unwrap();
        assert!(map.whole().is_ok());
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(60).unwrap();
        let fault = map.whole().unwrap_err();
        assert_eq!((fault.at, &*fault.expected), (60, "a file of 100 bytes"));
    }
}
