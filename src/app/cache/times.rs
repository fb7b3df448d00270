//! Times of cells and solo runs: measured, and kept for estimates.

use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

use super::results::key;
use super::{DiskCache, Kind};

/// The times in a cache folder.
#[derive(Debug)]
pub(crate) struct RunTimes(DiskCache);

impl RunTimes {
    /// The times in the folder `cache`.
    pub(crate) fn new(cache: &Path) -> Self {
        Self(DiskCache::new(cache))
    }

    /// Adds the time that the work `name` took one thread. The longest time counts: shorter runs
    /// found results in the cache folder.
    pub(crate) fn add(&self, name: &str, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        if self.micros(name).is_none_or(|known| known < micros) {
            self.0.put(Kind::Times, time_key(name), &micros.to_le_bytes());
        }
    }

    /// Microseconds that the work `name` took one thread, if it was measured.
    pub(crate) fn micros(&self, name: &str) -> Option<u64> {
        let bytes = self.0.get(Kind::Times, time_key(name))?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}

fn time_key(name: &str) -> u128 {
    key(&[String::from("time"), name.to_owned()])
}

thread_local! {
    /// Time of nested work since the current work began.
    static OTHERS: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Runs `work` and measures its time, without nested measured work: a thread of the pool that
/// waits runs other work meanwhile.
pub(crate) fn measured<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let outer = OTHERS.replace(Duration::ZERO);
    let begin = Instant::now();
    let result = work();
    let whole = begin.elapsed();
    let inner = OTHERS.replace(outer.saturating_add(whole));
    (result, whole.saturating_sub(inner))
}

/// Runs `wait`, whose time does not count as work.
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
    fn nested_work_does_not_count() {
        let long = Duration::from_millis(200);
        let (((), own), outer) = measured(|| {
            waited(|| sleep(long));
            measured(|| sleep(long))
        });
        assert!(own >= long && outer < long, "{own:?} {outer:?}");
    }
}
