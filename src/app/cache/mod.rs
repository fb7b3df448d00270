//! The user's cache folder: files by kind and key that save work between runs.
//!
//! Each file is whole or absent, and holds a checksum. The bytes of each kind are bounded; the
//! least recently used files are removed first. If a file is missing or damaged, or the folder
//! cannot be written, the work is repeated. Two processes that compute the same thing write the
//! same bytes, so processes that share a folder need no coordination.

pub(crate) mod profiles;
pub(crate) mod results;
pub(crate) mod stores;
pub(crate) mod times;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64;

use gpumodel_core::units::to_u64;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The store of a trace or of a workload model: a file that is mapped.
    Store,
    /// Remarks of the conversion to a store.
    Notes,
    /// Interval profiles of the code of a store.
    Profiles,
    /// Results of solo runs and of probes of schemes, for the cells of sweeps.
    Results,
    /// Results of the groups of a queue.
    Groups,
    /// How long a cell took.
    Times,
}

/// The number of kinds.
const KINDS: usize = 6;

/// Files count in whole blocks of a disk, so that many small ones are bounded, too.
const BLOCK: u64 = 4096;

/// A folder is listed again after this program has written this fraction of its bound: other
/// processes may have written meanwhile.
const LIST_SHARE: u64 = 8;

/// A store used within this time stays: a sweep opens it again for its next cell.
const IN_USE: Duration = Duration::from_secs(7 * 24 * 3600);

impl Kind {
    /// Folder, file extension, and the most bytes of all files.
    const fn layout(self) -> (&'static str, &'static str, u64) {
        match self {
            Self::Store => ("stores", "gpt", 64 << 30),
            Self::Notes => ("stores", "notes", 64 << 30),
            Self::Profiles => ("profiles", "profile", 64 << 20),
            Self::Results => ("answers", "json", 256 << 20),
            Self::Groups => ("groups", "json", 64 << 20),
            Self::Times => ("times", "time", 64 << 20),
        }
    }

    /// Files used within this time are not removed.
    const fn in_use(self) -> Duration {
        match self {
            Self::Store | Self::Notes => IN_USE,
            Self::Profiles | Self::Results | Self::Groups | Self::Times => Duration::ZERO,
        }
    }
}

/// A cache folder.
#[derive(Clone, Debug)]
pub(crate) struct DiskCache {
    folder: PathBuf,
    /// By kind: bytes that may be written before its folder is listed again; shared by clones.
    budgets: Arc<Mutex<[u64; KINDS]>>,
}

impl DiskCache {
    /// The cache in `folder`, which need not exist.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf(), budgets: Arc::default() }
    }

    /// The file of `key`, whether it exists or not.
    pub(crate) fn path(&self, kind: Kind, key: u128) -> PathBuf {
        let (folder, ending, _) = kind.layout();
        self.folder.join(folder).join(format!("{key:032x}.{ending}"))
    }

    /// The bytes of `key`; `None` if they are missing or damaged.
    pub(crate) fn get(&self, kind: Kind, key: u128) -> Option<Vec<u8>> {
        let mut file = File::open(self.path(kind, key)).ok()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let (content, sum) = bytes.split_last_chunk()?;
        (xxh3_64(content) == u64::from_le_bytes(*sum)).then_some(())?;
        bytes.truncate(bytes.len() - sum.len());
        // If this fails, the file is removed earlier than it should be.
        let _ = file.set_modified(SystemTime::now());
        Some(bytes)
    }

    /// Stores `bytes` under `key`, unless they are more than a quarter of the kind's bound. Does
    /// nothing if the folder cannot be written.
    pub(crate) fn put(&self, kind: Kind, key: u128, bytes: &[u8]) {
        let size = to_u64(bytes.len()).next_multiple_of(BLOCK);
        if size <= kind.layout().2 / 4 {
            self.reserve(kind, size);
            // On failure the next run repeats the work.
            let _ = self.write(kind, key, bytes);
        }
    }

    /// The value of `key`; `None` if it is missing or damaged.
    pub(crate) fn get_json<T: DeserializeOwned>(&self, kind: Kind, key: u128) -> Option<T> {
        serde_json::from_slice(&self.get(kind, key)?).ok()
    }

    /// Stores a value under `key`, as [`DiskCache::put`].
    pub(crate) fn put_json<T: Serialize>(&self, kind: Kind, key: u128, answer: &T) {
        let text = serde_json::to_vec(answer).expect("an answer is plain data");
        self.put(kind, key, &text);
    }

    /// The file of `key`, ready to be written: creates its folder and keeps it within its bound.
    ///
    /// # Errors
    /// When the folder cannot be created.
    pub(crate) fn prepare(&self, kind: Kind, key: u128) -> io::Result<PathBuf> {
        let path = self.path(kind, key);
        fs::create_dir_all(path.parent().unwrap_or(&self.folder))?;
        self.evict_above(kind, kind.layout().2);
        Ok(path)
    }

    /// Marks the file of `key` as used now.
    pub(crate) fn touch(&self, kind: Kind, key: u128) {
        let file = File::open(self.path(kind, key));
        let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
    }

    /// Writes a file under a temporary name and renames it: readers see a whole file or none.
    fn write(&self, kind: Kind, key: u128, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(kind, key);
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(bytes)?;
        file.write_all(&xxh3_64(bytes).to_le_bytes())?;
        file.persist(path)?;
        Ok(())
    }

    /// Reserves `size` bytes. If the budget is used up, removes the least recently used files
    /// and renews the budget.
    fn reserve(&self, kind: Kind, size: u64) {
        let bound = kind.layout().2;
        let mut budgets = self.budgets.lock().unwrap_or_else(PoisonError::into_inner);
        let budget = &mut budgets[kind as usize];
        if let Some(left) = budget.checked_sub(size) {
            *budget = left;
            return;
        }
        let share = bound / LIST_SHARE;
        self.evict_above(kind, bound.saturating_sub(share.max(size)));
        *budget = share.saturating_sub(size);
    }

    /// Removes the least recently used files until at most `most` bytes are left.
    fn evict_above(&self, kind: Kind, most: u64) {
        let mut files = entries(&self.folder.join(kind.layout().0));
        files.sort();
        let mut whole: u64 = files.iter().map(|(_, _, bytes)| bytes).sum();
        let old = SystemTime::now() - kind.in_use();
        for (used, path, bytes) in files {
            if whole <= most || used > old {
                break;
            }
            // Another process may have removed it.
            let _ = fs::remove_file(path);
            whole -= bytes;
        }
    }
}

/// Last use, path and bytes on disk of each file of a folder.
fn entries(folder: &Path) -> Vec<(SystemTime, PathBuf, u64)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let file = |entry: io::Result<fs::DirEntry>| {
        let path = entry.ok()?.path();
        let meta = path.metadata().ok().filter(fs::Metadata::is_file)?;
        Some((meta.modified().ok()?, path, meta.len().next_multiple_of(BLOCK)))
    };
    entries.filter_map(file).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, SystemTime};

    use super::{DiskCache, Kind, entries};

    #[test]
    fn only_a_whole_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(folder.path());
        let answer = (5_u64, vec![0.1, 3.0], String::from("words"));
        assert_eq!(cache.get(Kind::Results, 7), None);
        cache.put_json(Kind::Results, 7, &answer);
        assert_eq!(cache.get_json(Kind::Results, 7), Some(answer));
        assert_eq!(cache.get(Kind::Groups, 7), None, "of another kind");
        let path = cache.path(Kind::Results, 7);
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(cache.get(Kind::Results, 7), None, "cut at {length}");
            let mut damaged = whole.clone();
            damaged[length] ^= 1;
            fs::write(&path, damaged).unwrap();
            assert_eq!(cache.get(Kind::Results, 7), None, "damaged at {length}");
        }
    }

    /// Says that a file was used so many seconds ago.
    fn age(cache: &DiskCache, kind: Kind, key: u128, seconds: u64) {
        let file = fs::File::options().write(true).open(cache.path(kind, key)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
    }

    #[test]
    fn the_least_recently_used_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(folder.path());
        let (kind, bytes) = (Kind::Profiles, vec![7; 6 << 20]);
        for key in 0..10 {
            DiskCache::new(folder.path()).put(kind, key, &bytes);
            age(&cache, kind, key, 1000 - u64::try_from(key).unwrap());
        }
        assert!(cache.get(kind, 0).is_some(), "used now");
        cache.put(kind, 10, &bytes);
        assert!(cache.get(kind, 1).is_none(), "used longest ago");
        assert!(cache.get(kind, 0).is_some() && cache.get(kind, 10).is_some());
        let whole: u64 = entries(&folder.path().join("profiles")).iter().map(|file| file.2).sum();
        assert!(whole <= kind.layout().2);
        cache.put(kind, 11, &vec![7; 17 << 20]);
        assert!(cache.get(kind, 11).is_none(), "one file does not fill the folder");
    }

    #[test]
    fn small_files_are_bounded_and_the_folder_is_listed_seldom() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(folder.path());
        let most = usize::try_from(Kind::Times.layout().2 / super::BLOCK).unwrap();
        (0..3 * u128::try_from(most).unwrap() / 2).for_each(|key| {
            cache.clone().put(Kind::Times, key, b"few");
        });
        let there = fs::read_dir(folder.path().join("times")).unwrap().count();
        assert!(there <= most && there > most / 2, "{there}");
    }

    #[test]
    fn a_store_that_is_in_use_stays() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(folder.path());
        let paths = [0, 1, 2].map(|key| cache.prepare(Kind::Store, key).unwrap());
        for (key, path) in (0..).zip(paths) {
            // Holes take no blocks.
            fs::File::create(path).unwrap().set_len(40 << 30).unwrap();
            age(&cache, Kind::Store, key, 30 * 24 * 3600);
        }
        cache.touch(Kind::Store, 0);
        DiskCache::new(folder.path()).prepare(Kind::Store, 3).unwrap();
        let there = [0, 1, 2].map(|key| cache.path(Kind::Store, key).exists());
        assert_eq!(there, [true, false, false]);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_no_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let cache = DiskCache::new(file.path());
        cache.put(Kind::Results, 1, b"few");
        assert_eq!(cache.get(Kind::Results, 1), None);
        assert!(cache.prepare(Kind::Store, 1).is_err());
    }
}
