//! Files as they are opened: regular ones only, mapped; and the blocks of a store. The only
//! `unsafe` of the crate.
//!
//! A store's blocks are copied by the system, not out of the map: a file that another
//! program cuts short while it is open gives an error where a map gives a signal, and the
//! bytes whose checksum was right are those that are decompressed.

use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Deref;
use std::path::Path;

use gpumodel_core::units::{to_u64, to_usize};
use memmap2::Mmap;

use super::layout::{BlockRow, LARGEST_BLOCK, checksum};
use crate::error::ByteFault;

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
        let file = open(path)?;
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

    /// The same, where no program can cut a mapped file.
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
    /// A [`ByteFault`] where the system does not say: the file may be gone from its server.
    fn length_now(&self) -> Result<u64, ByteFault> {
        self.file.metadata().map(|now| now.len()).map_err(|error| ByteFault::unread(&error))
    }

    /// Checks that the file is still as long as it was when it was mapped.
    ///
    /// # Errors
    /// A [`ByteFault`] where it ends now.
    pub(crate) fn whole(&self) -> Result<(), ByteFault> {
        let (had, has) = (self.bytes.len(), self.length_now()?);
        if has >= to_u64(had) {
            return Ok(());
        }
        let found = "the end: another program cut the file while it was read";
        Err(ByteFault::new(to_usize(has), format!("a file of {had} bytes"), found))
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
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
    /// A [`ByteFault`] when the file does not hold them, or no longer.
    pub(crate) fn read(&self, start: u64, count: u64) -> Result<Vec<u8>, ByteFault> {
        let at = usize::try_from(start).unwrap_or(usize::MAX);
        let missing = |found: &str| ByteFault::new(at, format!("{count} bytes"), found);
        if start.checked_add(count).is_none_or(|end| end > self.bytes) {
            return Err(missing("the end of the file"));
        }
        let mut bytes = vec![0; to_usize(count)];
        match self.map.copy(start, &mut bytes) {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(missing("the end of the file: another program cut it while it was open"))
            }
            Err(error) => Err(ByteFault::unread(&error)),
        }
    }

    /// The bytes of the block `row`, verified and decompressed.
    ///
    /// # Errors
    /// A [`ByteFault`] when the block is not as it was written.
    pub(super) fn block(&self, row: &BlockRow) -> Result<Vec<u8>, ByteFault> {
        decompress(&self.stored_block(row)?, u64::from(row.raw.get()))
    }

    /// The bytes of the block `row` as stored, verified.
    ///
    /// # Errors
    /// A [`ByteFault`] when they are not as they were written.
    pub(super) fn stored_block(&self, row: &BlockRow) -> Result<Vec<u8>, ByteFault> {
        let bytes = self.read(row.offset.get(), u64::from(row.stored.get()))?;
        if row.checksum != checksum(&bytes) {
            let start = to_usize(row.offset.get());
            return Err(ByteFault::new(
                start,
                "the block's checksum",
                "another: the file is damaged",
            ));
        }
        Ok(bytes)
    }
}

/// Memory that is reserved before it is known that the bytes are there.
const FIRST_GUESS: u64 = 1 << 22;

/// Decompresses one block that should give `raw` bytes.
pub(super) fn decompress(stored: &[u8], raw: u64) -> Result<Vec<u8>, ByteFault> {
    let wrong =
        |found: String| ByteFault::new(0, format!("{raw} bytes after decompression"), found);
    if raw > LARGEST_BLOCK {
        return Err(ByteFault::new(
            0,
            format!("a block of at most {LARGEST_BLOCK} bytes"),
            raw.to_string(),
        ));
    }
    let decoder = zstd::stream::read::Decoder::with_buffer(stored);
    let mut bytes = Vec::with_capacity(to_usize(raw.min(FIRST_GUESS)));
    let mut limited = decoder.map_err(|e| wrong(e.to_string()))?.take(raw + 1);
    limited.read_to_end(&mut bytes).map_err(|e| wrong(e.to_string()))?;
    if to_u64(bytes.len()) != raw {
        return Err(wrong("another number".to_owned()));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use gpumodel_core::units::to_u64;

    use super::{Map, StoreFile};

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
