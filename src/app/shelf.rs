//! Files that save work between runs, in the user's cache folder: bounded, each whole
//! or absent.
//!
//! A missing or damaged file, or a folder that cannot be written, costs no more than
//! the work.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64;

use gpumodel_core::units::{UNFINISHED, read_file, remove_unlocked, to_u64};

/// A file takes whole blocks of a disk, so also many small ones are bounded.
const BLOCK: u64 = 4096;

/// What names of files that are being written begin with.
const PASSING: &str = ".kept-";

/// The shelf is listed again when this program has written such a part of the bound: what
/// others write is not known before.
const SHARE: u64 = 8;

/// The files of one kind.
#[derive(Clone, Debug)]
pub(super) struct Shelf {
    folder: PathBuf,
    ending: &'static str,
    most_bytes: u64,
    /// Bytes that may be written before the folder is listed; clones share them.
    room: Arc<Mutex<u64>>,
}

impl Shelf {
    /// Files `*.ending` in `folder`, their blocks at most `most_bytes` and an eighth more for
    /// each program that writes besides: the ones written longest ago go first.
    pub(super) fn new(folder: PathBuf, ending: &'static str, most_bytes: u64) -> Self {
        Self { folder, ending, most_bytes, room: Arc::default() }
    }

    /// What is kept under `key`; nothing where there is no such file.
    pub(super) fn read(&self, key: u128) -> Vec<u8> {
        read_file(&self.file(key)).unwrap_or_default()
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

    /// Keeps an answer under `key`, as [`Shelf::write`].
    pub(super) fn keep<T: Serialize>(&self, key: u128, answer: &T) {
        self.write(key, &sealed(answer));
    }

    /// The answer that is kept under `key`; `None` where there is none or it is damaged.
    pub(super) fn find<T: Serialize + DeserializeOwned>(&self, key: u128) -> Option<T> {
        kept(&self.read(key))
    }

    /// Writes a file under a name of its own and gives it the right one: whoever
    /// reads meanwhile sees a whole file or none.
    fn put(&self, key: u128, bytes: &[u8]) -> io::Result<()> {
        let named =
            tempfile::Builder::new().prefix(PASSING).suffix(UNFINISHED).tempfile_in(&self.folder);
        let mut file = named?;
        // Nobody takes it for abandoned; where they do, the next run does the work again.
        let _ = file.as_file().try_lock();
        file.write_all(bytes)?;
        file.persist(self.file(key))?;
        Ok(())
    }

    /// Removes what programs have left that were killed while they wrote.
    pub(super) fn clean(&self) {
        entries(&self.folder).iter().for_each(|(_, path, _)| remove_abandoned(path));
    }

    fn file(&self, key: u128) -> PathBuf {
        self.folder.join(format!("{key:032x}.{}", self.ending))
    }

    /// Takes room for `size` bytes more. Where there is none left as far as is known,
    /// removes the oldest files until there is room for some time.
    fn make_room(&self, size: u64) {
        // A number: a panic leaves it whole.
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left) = room.checked_sub(size) {
            *room = left;
            return;
        }
        let share = self.most_bytes / SHARE;
        let most = self.most_bytes.saturating_sub(share.max(size));
        let mut files = entries(&self.folder);
        files.iter().for_each(|(_, path, _)| remove_abandoned(path));
        files.sort();
        let mut whole: u64 = files.iter().map(|(_, _, bytes)| bytes).sum();
        for (_, path, bytes) in files {
            if whole <= most {
                break;
            }
            // Another process may have been faster.
            let _ = fs::remove_file(path);
            whole -= bytes;
        }
        *room = share.saturating_sub(size);
    }
}

/// Removes `path` where it is a file that somebody was writing, and does not any more.
fn remove_abandoned(path: &Path) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with(PASSING) && name.ends_with(UNFINISHED) {
        remove_unlocked(path);
    }
}

/// An answer as JSON behind its own hash.
fn sealed<T: Serialize>(answer: &T) -> Vec<u8> {
    let text = serde_json::to_string(answer).expect("an answer is plain data");
    format!("{:016x}\n{text}", xxh3_64(text.as_bytes())).into_bytes()
}

/// The answer in `bytes`; `None` where they are none or damaged.
fn kept<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (_, text) = std::str::from_utf8(bytes).ok()?.split_once('\n')?;
    let answer = serde_json::from_str(text).ok()?;
    (sealed(&answer) == bytes).then_some(answer)
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
    use super::{BLOCK, Shelf, kept, sealed};

    #[test]
    fn only_a_whole_answer_is_read() {
        let answer = (5_u64, vec![0.1, 3.0], String::from("words"));
        let bytes = sealed(&answer);
        assert_eq!(kept(&bytes), Some(answer));
        for length in 0..bytes.len() {
            assert_eq!(kept::<(u64, Vec<f64>, String)>(&bytes[..length]), None);
            let mut damaged = bytes.clone();
            damaged[length] ^= 1;
            assert_eq!(kept::<(u64, Vec<f64>, String)>(&damaged), None);
        }
    }

    #[test]
    fn small_files_are_bounded_too() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(folder.path().join("small"), "bit", 8 * BLOCK);
        (0..20).for_each(|key| shelf.write(key, b"few"));
        assert_eq!(std::fs::read_dir(folder.path().join("small")).unwrap().count(), 8);
        assert_eq!(shelf.read(19), b"few");
    }

    #[test]
    fn what_killed_programs_have_left_goes_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(folder.path().to_path_buf(), "bit", 32 * BLOCK);
        let at = |name: &str| folder.path().join(name);
        for name in [".kept-a.partial", ".kept-b.partial", ".tmp1", ".x.partial", "kept-c.partial"]
        {
            std::fs::write(at(name), "half").unwrap();
        }
        // Somebody writes this one.
        let written = std::fs::File::open(at(".kept-b.partial")).unwrap();
        written.lock().unwrap();
        shelf.clean();
        assert!(!at(".kept-a.partial").exists());
        for name in [".kept-b.partial", ".tmp1", ".x.partial", "kept-c.partial"] {
            assert!(at(name).exists(), "{name}");
        }
        drop(written);
        // Who writes lists the folder, and does the same.
        shelf.write(1, b"few");
        assert!(!at(".kept-b.partial").exists() && shelf.read(1) == b"few");
    }

    #[test]
    fn the_folder_is_listed_seldom_and_stays_within_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(folder.path().to_path_buf(), "bit", 32 * BLOCK);
        let count = || std::fs::read_dir(folder.path()).unwrap().count();
        for key in 0..100 {
            shelf.clone().write(key, b"few");
            assert!(count() <= 32);
        }
        // What comes from elsewhere is seen at the next listing: within four writes.
        (0..40).for_each(|n| std::fs::write(folder.path().join(format!("{n}.bit")), "x").unwrap());
        let before = count();
        shelf.write(100, b"few");
        (101..104).for_each(|key| shelf.write(key, b"few"));
        assert!(before > 60 && count() <= 32, "{before} {}", count());
    }
}
