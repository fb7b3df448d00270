//! Files that save work between runs, in the user's cache folder: bounded, each whole
//! or absent.
//!
//! A missing or damaged file, or a folder that cannot be written, costs no more than
//! the work.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::NamedTempFile;

use crate::units::to_u64;

/// A file takes whole blocks of a disk, so also many small ones are bounded.
const BLOCK: u64 = 4096;

/// The files of one kind.
#[derive(Clone, Debug)]
pub(super) struct Shelf {
    folder: PathBuf,
    ending: &'static str,
    most_bytes: u64,
}

impl Shelf {
    /// Files `*.ending` in `folder`, their blocks at most `most_bytes`: the ones written
    /// longest ago go first.
    pub(super) fn new(folder: PathBuf, ending: &'static str, most_bytes: u64) -> Self {
        Self { folder, ending, most_bytes }
    }

    /// What is kept under `key`; nothing where there is no such file.
    pub(super) fn read(&self, key: u128) -> Vec<u8> {
        fs::read(self.file(key)).unwrap_or_default()
    }

    /// Keeps `bytes` under `key`, unless they are a quarter of the shelf. Nothing
    /// happens where the folder cannot be written.
    pub(super) fn write(&self, key: u128, bytes: &[u8]) {
        let size = to_u64(bytes.len());
        if size <= self.most_bytes / 4 && fs::create_dir_all(&self.folder).is_ok() {
            self.make_room(size.next_multiple_of(BLOCK));
            // The next run does the work again: nothing but time is lost.
            let _ = self.put(key, bytes);
        }
    }

    /// Writes a file under a name of its own and gives it the right one: whoever
    /// reads meanwhile sees a whole file or none.
    fn put(&self, key: u128, bytes: &[u8]) -> io::Result<()> {
        let mut file = NamedTempFile::new_in(&self.folder)?;
        file.write_all(bytes)?;
        file.persist(self.file(key))?;
        Ok(())
    }

    fn file(&self, key: u128) -> PathBuf {
        self.folder.join(format!("{key:032x}.{}", self.ending))
    }

    /// Removes the oldest files until `size` bytes more are within the bound.
    fn make_room(&self, size: u64) {
        let mut files = entries(&self.folder);
        files.sort();
        let mut whole: u64 = size + files.iter().map(|(_, _, bytes)| bytes).sum::<u64>();
        for (_, path, bytes) in files {
            if whole <= self.most_bytes {
                return;
            }
            // Another process may have been faster.
            let _ = fs::remove_file(path);
            whole -= bytes;
        }
    }
}

/// When each file of a folder was written, its path and the bytes of its blocks.
fn entries(folder: &Path) -> Vec<(SystemTime, PathBuf, u64)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let file = |entry: io::Result<fs::DirEntry>| {
        let path = entry.ok()?.path();
        let meta = path.metadata().ok()?;
        Some((meta.modified().ok()?, path, meta.len().next_multiple_of(BLOCK)))
    };
    entries.filter_map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, Shelf};

    #[test]
    fn small_files_are_bounded_too() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(folder.path().join("small"), "bit", 8 * BLOCK);
        (0..20).for_each(|key| shelf.write(key, b"few"));
        assert_eq!(std::fs::read_dir(folder.path().join("small")).unwrap().count(), 8);
        assert_eq!(shelf.read(19), b"few");
    }
}
