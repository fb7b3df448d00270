//! Files as they are opened: regular ones only, and a store's, mapped.
//!
//! A store's blocks are copied by the system, not out of the map: a file that another
//! program cuts short while it is open gives an error where a map gives a signal, and the
//! bytes whose checksum was right are those that are decompressed.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use gpumodel_core::units::{to_u64, to_usize};

use super::map::Map;
use crate::error::Fault;

/// Opens the file at `path` for reading, at once or not at all: opening a pipe would
/// wait for its writer.
///
/// # Errors
/// Whatever the operating system says, and anything that is neither file nor folder.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let kind = fs::metadata(path)?;
    if !kind.is_file() && !kind.is_dir() {
        let text = "a pipe or device is no trace: write it to a file first";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    File::open(path)
}

/// An open store.
#[derive(Debug)]
pub(crate) struct StoreFile {
    map: Map,
    /// Its length when it was opened.
    pub(crate) bytes: u64,
}

impl StoreFile {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// Those of [`open`].
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let map = Map::open(path)?;
        let bytes = to_u64(map.len());
        Ok(Self { map, bytes })
    }

    /// The `count` bytes from `start` on. Allocates no more than the file had.
    ///
    /// # Errors
    /// A [`Fault`] when the file does not hold them, or no longer.
    pub(crate) fn read(&self, start: u64, count: u64) -> Result<Vec<u8>, Fault> {
        let at = usize::try_from(start).unwrap_or(usize::MAX);
        let missing = |found: &str| Fault::new(at, format!("{count} bytes"), found);
        if start.checked_add(count).is_none_or(|end| end > self.bytes) {
            return Err(missing("the end of the file"));
        }
        let mut bytes = vec![0; to_usize(count)];
        match self.map.copy(start, &mut bytes) {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(missing("the end of the file: another program cut it while it was open"))
            }
            Err(error) => Err(Fault::unread(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::StoreFile;
    use gpumodel_core::units::to_u64;

    /// More than a copy touches between two cuts.
    const BYTES: u64 = 8 << 20;

    #[test]
    fn blocks_of_a_file_that_is_cut_again_and_again_are_there_or_missing() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let cut = OpenOptions::new().write(true).open(file.path()).unwrap();
        cut.set_len(BYTES).unwrap();
        let store = StoreFile::open(file.path()).unwrap();
        let ended = AtomicBool::new(false);
        let read: Vec<_> = thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    cut.set_len(100).unwrap();
                    cut.set_len(BYTES).unwrap();
                }
            });
            let read = (0..100).map(|_| store.read(0, BYTES).map(|bytes| bytes.len())).collect();
            ended.store(true, Ordering::Relaxed);
            read
        });
        for read in read {
            match read {
                Ok(bytes) => assert_eq!(to_u64(bytes), BYTES),
                Err(fault) => assert!(fault.found.contains("another program cut it"), "{fault:?}"),
            }
        }
        assert_eq!(store.read(BYTES - 1, 2).unwrap_err().found, "the end of the file");
    }
}
