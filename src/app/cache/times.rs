//! How long cells and applications alone took, as the cache folder knows it: for estimates.

use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

use super::results::key;
use super::{DiskCache, Kind};

/// What is known.
#[derive(Debug)]
pub(crate) struct RunTimes(DiskCache);

impl RunTimes {
    /// What the folder `cache` knows.
    pub(crate) fn new(cache: &Path) -> Self {
        Self(DiskCache::new(cache))
    }

    /// Adds what the work called `name` took one thread. The longest time counts: another run
    /// found answers in the cache folder.
    pub(crate) fn add(&self, name: &str, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        if self.micros(name).is_none_or(|known| known < micros) {
            self.0.put(Kind::Times, number(name), &micros.to_le_bytes());
        }
    }

    /// Microseconds that the work called `name` took one thread, where that is known.
    pub(crate) fn micros(&self, name: &str) -> Option<u64> {
        let bytes = self.0.get(Kind::Times, number(name))?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}

fn number(name: &str) -> u128 {
    key(&[String::from("time"), name.to_owned()])
}

thread_local! {
    /// Time since the piece began that is not its own.
    static OTHERS: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Runs `work`, and says how long it took. A thread of the pool that waits takes other
/// work: pieces that are measured themselves do not count.
pub(crate) fn measured<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let outer = OTHERS.replace(Duration::ZERO);
    let begin = Instant::now();
    let found = work();
    let whole = begin.elapsed();
    let inner = OTHERS.replace(outer.saturating_add(whole));
    (found, whole.saturating_sub(inner))
}

/// Runs `wait`, which does not count as the work of whoever waits.
pub(crate) fn waited<T>(wait: impl FnOnce() -> T) -> T {
    measured(wait).0
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use super::{Duration, RunTimes, measured, waited};

    #[test]
    fn the_longest_time_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        let seconds = RunTimes::new(&cache);
        assert_eq!(seconds.micros("a"), None);
        seconds.add("a", Duration::from_micros(9));
        seconds.add("a", Duration::from_micros(3));
        assert_eq!(RunTimes::new(&cache).micros("a"), Some(9));
        assert_eq!(seconds.micros("b"), None);
    }

    #[test]
    fn what_others_do_on_the_thread_does_not_count() {
        let long = Duration::from_millis(200);
        let (((), own), outer) = measured(|| {
            waited(|| sleep(long));
            measured(|| sleep(long))
        });
        assert!(own >= long && outer < long, "{own:?} {outer:?}");
    }
}
