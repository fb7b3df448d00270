//! How long cells and applications alone took, as the cache folder knows it: for estimates.

use std::path::Path;
use std::time::Duration;

use super::super::disk_cache::{DiskCache, Kind};
use super::super::recall::key;

/// What is known.
#[derive(Debug)]
pub(super) struct Seconds(DiskCache);

impl Seconds {
    /// What the folder `cache` knows.
    pub(super) fn new(cache: &Path) -> Self {
        Self(DiskCache::new(cache))
    }

    /// Adds what the work called `name` took one thread. The longest time counts: another run
    /// found answers in the cache folder.
    pub(super) fn add(&self, name: &str, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        if self.micros(name).is_none_or(|known| known < micros) {
            self.0.put(Kind::Times, number(name), &micros.to_le_bytes());
        }
    }

    /// Microseconds that the work called `name` took one thread, where that is known.
    pub(super) fn micros(&self, name: &str) -> Option<u64> {
        let bytes = self.0.get(Kind::Times, number(name))?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}

fn number(name: &str) -> u128 {
    key(&[String::from("time"), name.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::{Duration, Seconds};

    #[test]
    fn the_longest_time_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        let seconds = Seconds::new(&cache);
        assert_eq!(seconds.micros("a"), None);
        seconds.add("a", Duration::from_micros(9));
        seconds.add("a", Duration::from_micros(3));
        assert_eq!(Seconds::new(&cache).micros("a"), Some(9));
        assert_eq!(seconds.micros("b"), None);
    }
}
