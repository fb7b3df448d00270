//! How long a piece of work took its thread, without others that the thread ran or waited
//! for meanwhile.

use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    /// Time since the piece began that is not its own.
    static OTHERS: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Runs `work`, and says how long it took. A thread of the pool that waits takes other
/// work: pieces that are measured themselves do not count.
pub(super) fn measured<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let outer = OTHERS.replace(Duration::ZERO);
    let begin = Instant::now();
    let found = work();
    let whole = begin.elapsed();
    let inner = OTHERS.replace(outer.saturating_add(whole));
    (found, whole.saturating_sub(inner))
}

/// Runs `wait`, which does not count as the work of whoever waits.
pub(super) fn waited<T>(wait: impl FnOnce() -> T) -> T {
    measured(wait).0
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::Duration;

    use super::{measured, waited};

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
