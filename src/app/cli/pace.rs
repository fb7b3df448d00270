//! How far a sweep is and how fast it goes, in words.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::SweepEnd;

/// The cells of a sweep, as they end.
#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<Option<Count>>);

/// What is known once the sweep has begun.
#[derive(Debug)]
struct Count {
    cells: SweepEnd,
    begun: Instant,
    /// Cells that have ended since.
    new: usize,
}

impl Pace {
    /// The first cell is about to run.
    pub(super) fn begin(&self, so_far: SweepEnd) {
        *self.count() = Some(Count { cells: so_far, begun: Instant::now(), new: 0 });
    }

    /// A cell has ended: `done`, or failed.
    pub(super) fn add(&self, done: bool) {
        if let Some(count) = &mut *self.count() {
            count.new += 1;
            count.cells.left = count.cells.left.saturating_sub(1);
            let ended = if done { &mut count.cells.done } else { &mut count.cells.failed };
            *ended += 1;
        }
    }

    /// How far it is; empty before it has begun.
    pub(super) fn words(&self) -> String {
        let count = self.count();
        let told = count.as_ref().map(|count| words(count.cells, count.new, count.begun.elapsed()));
        told.unwrap_or_default()
    }

    /// The line of a log with it.
    pub(super) fn after(&self, line: &str) -> String {
        let words = self.words();
        if words.is_empty() { line.to_owned() } else { format!("{line}: {words}") }
    }

    fn count(&self) -> MutexGuard<'_, Option<Count>> {
        // Plain numbers.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The cells, and their rate where `new` have ended in `time`.
fn words(cells: SweepEnd, new: usize, time: Duration) -> String {
    let SweepEnd { done, failed, left } = cells;
    let text = format!("{done} done, {failed} failed, {left} left");
    if new == 0 || time.is_zero() {
        return text;
    }
    #[allow(clippy::cast_precision_loss, reason = "nobody has so many cells")]
    let rate = new as f64 * 60.0 / time.as_secs_f64();
    let digits = if rate < 1.0 { 2 } else { usize::from(rate < 10.0) };
    format!("{text}, {rate:.digits$} cells per minute")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Pace, SweepEnd, words};

    const CELLS: SweepEnd = SweepEnd { done: 10, failed: 2, left: 28 };

    #[test]
    fn the_rate_is_that_of_this_run() {
        let said = |new, seconds| words(CELLS, new, Duration::from_secs(seconds));
        assert_eq!(said(0, 30), "10 done, 2 failed, 28 left", "nothing has ended yet");
        assert_eq!(said(6, 90), "10 done, 2 failed, 28 left, 4.0 cells per minute");
        assert_eq!(said(12, 6), "10 done, 2 failed, 28 left, 120 cells per minute");
        assert_eq!(said(1, 3600), "10 done, 2 failed, 28 left, 0.02 cells per minute");
    }

    #[test]
    fn cells_count_where_they_belong() {
        let pace = Pace::default();
        pace.add(true);
        assert_eq!(pace.after("7 bytes"), "7 bytes", "it has not begun");
        pace.begin(CELLS);
        assert_eq!(pace.words(), "10 done, 2 failed, 28 left");
        [true, false, true].into_iter().for_each(|done| pace.add(done));
        let said = pace.after("15 of 40 cells ended (38 %)");
        let cells = "15 of 40 cells ended (38 %): 12 done, 3 failed, 25 left, ";
        assert!(said.starts_with(cells) && said.ends_with(" cells per minute"), "{said}");
    }
}
