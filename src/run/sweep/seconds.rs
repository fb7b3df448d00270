//! How long cells and applications alone took: a file of lines in the cache folder.
//!
//! It serves estimates only. A line that is lost or damaged costs no more than itself.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

/// Bytes after which the file is begun anew: some 800 000 lines.
const MOST_BYTES: u64 = 64 << 20;

/// What a piece of work took one thread, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Took {
    /// The work.
    pub(super) own: u64,
    /// Claiming it before, and keeping its record after.
    pub(super) around: u64,
}

impl Took {
    pub(super) fn new(own: Duration, around: Duration) -> Self {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Self { own: micros(own), around: micros(around) }
    }
}

/// The file.
#[derive(Debug)]
pub(super) struct Seconds {
    path: PathBuf,
    /// `None`: it cannot be written.
    file: OnceLock<Option<File>>,
}

impl Seconds {
    /// The one in the folder `cache`.
    pub(super) fn new(cache: &Path) -> Self {
        Self { path: cache.join("seconds.txt"), file: OnceLock::new() }
    }

    /// Adds what the work called `key` took: one short write.
    pub(super) fn add(&self, key: &str, took: Took) {
        if let Some(mut file) = self.file.get_or_init(|| self.open()).as_ref() {
            // An estimate knows of one less.
            let _ = file.write_all(line(key, took).as_bytes());
        }
    }

    /// What is known, by key. Of several lines the longest counts: others found answers
    /// in the cache folder.
    pub(super) fn known(&self) -> BTreeMap<String, Took> {
        let bytes = fs::read(&self.path).unwrap_or_default();
        let mut known: BTreeMap<String, Took> = BTreeMap::new();
        for (key, took) in String::from_utf8_lossy(&bytes).lines().filter_map(read) {
            let longest = known.entry(key.to_owned()).or_insert(took);
            if took.own > longest.own {
                *longest = took;
            }
        }
        known
    }

    fn open(&self) -> Option<File> {
        fs::create_dir_all(self.path.parent()?).ok()?;
        let open = || File::options().create(true).append(true).open(&self.path).ok();
        let file = open()?;
        if file.metadata().ok()?.len() > MOST_BYTES {
            fs::remove_file(&self.path).ok()?;
            return open();
        }
        Some(file)
    }
}

/// A line ends with a hash of its words.
fn line(key: &str, took: Took) -> String {
    let words = format!("{key} {} {}", took.own, took.around);
    format!("{words} {:016x}\n", xxh3_64(words.as_bytes()))
}

/// What a line says; `None` where it is damaged.
fn read(text: &str) -> Option<(&str, Took)> {
    let (words, hash) = text.rsplit_once(' ')?;
    (u64::from_str_radix(hash, 16).ok()? == xxh3_64(words.as_bytes())).then_some(())?;
    let mut words = words.split(' ');
    let key = words.next()?;
    let took = Took { own: words.next()?.parse().ok()?, around: words.next()?.parse().ok()? };
    Some((key, took))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Seconds, Took};

    #[test]
    fn whole_lines_are_known_and_damaged_ones_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        let (long, short) = (Took { own: 9, around: 2 }, Took { own: 3, around: 1 });
        assert!(Seconds::new(&cache).known().is_empty());
        Seconds::new(&cache).add("a", long);
        let seconds = Seconds::new(&cache);
        for (key, took) in [("a", short), ("b", long), ("c", short)] {
            seconds.add(key, took);
        }
        let path = cache.join("seconds.txt");
        let text = fs::read_to_string(&path).unwrap().replace("b 9", "b 8");
        fs::write(&path, &text[..text.len() - 4]).unwrap();
        let known = seconds.known();
        assert_eq!(known.into_iter().collect::<Vec<_>>(), [(String::from("a"), long)]);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_no_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let seconds = Seconds::new(file.path());
        seconds.add("a", Took::default());
        assert!(seconds.known().is_empty());
    }
}
