//! Progress as lines of a log, where nobody looks at a bar.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::HumanDuration;

use gpumodel_trace::Progress;

/// Length of a stage whose end nobody knows.
const UNKNOWN: u64 = u64::MAX;
/// How often a log hears of work under way.
pub(super) const EVERY: Duration = Duration::from_secs(30);

/// Work under way: what is counted, as `trace bytes converted`.
#[derive(Debug)]
pub(super) struct Stage {
    what: &'static str,
    /// How much is done, and of how much.
    done: AtomicU64,
    length: AtomicU64,
    begun: Mutex<Begun>,
}

/// Where a stage began.
#[derive(Debug, Default)]
struct Begun {
    /// `None`: it has not.
    at: Option<Instant>,
    /// What was done by then.
    done: u64,
}

impl Stage {
    pub(super) fn new(what: &'static str) -> Arc<Self> {
        let (done, length) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { what, done, length, begun: Mutex::default() })
    }

    /// Begins with `done` of `length` done already.
    pub(super) fn begin_at(&self, done: u64, length: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.length.store(length, Ordering::Relaxed);
        *self.begun() = Begun { at: Some(Instant::now()), done };
    }

    fn begun(&self) -> MutexGuard<'_, Begun> {
        // Two plain values.
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far it is, with the time that is left where that can be told; `None`: it has not
    /// begun, or has ended.
    fn told(&self) -> Option<String> {
        let (done, length) =
            (self.done.load(Ordering::Relaxed), self.length.load(Ordering::Relaxed));
        let begun = self.begun();
        let so_far = begun.at?.elapsed();
        if length == UNKNOWN {
            return Some(format!("{done} {}", self.what));
        }
        if done >= length {
            return None;
        }
        let left = match done.saturating_sub(begun.done) {
            0 => String::new(),
            new => {
                let left = so_far.as_secs_f64() * ratio(length - done, new);
                let left = Duration::try_from_secs_f64(left).unwrap_or(Duration::MAX);
                format!(", about {} to go", HumanDuration(left))
            }
        };
        let percent = 100.0 * ratio(done, length);
        Some(format!("{done} of {length} {} ({percent:.0} %){left}", self.what))
    }
}

/// Progress needs no more digits than `f64` has.
#[allow(clippy::cast_precision_loss)]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

impl Progress for Stage {
    fn begin(&self, length: u64) {
        self.begin_at(0, length);
    }

    fn more(&self, length: u64) {
        let mut begun = self.begun();
        begun.at.get_or_insert_with(Instant::now);
        self.length.fetch_add(length, Ordering::Relaxed);
    }

    fn begin_unknown(&self) {
        self.begin_at(0, UNKNOWN);
    }

    fn advance(&self, done: u64) {
        self.done.fetch_add(done, Ordering::Relaxed);
    }
}

/// Tells of stages from time to time, until it is dropped.
#[derive(Debug)]
pub(super) struct Log {
    end: Option<Sender<()>>,
    teller: Option<JoinHandle<()>>,
}

impl Log {
    /// Gives `say` a line about the last one of `stages` that is under way, each `every`.
    pub(super) fn new(
        stages: Vec<Arc<Stage>>,
        every: Duration,
        say: impl Fn(&str) + Send + 'static,
    ) -> Self {
        let (end, ended) = channel();
        let tell = move || {
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                if let Some(line) = stages.iter().rev().find_map(|stage| stage.told()) {
                    say(&line);
                }
            }
        };
        // Where there are no more threads, the work goes on without a log.
        let teller = thread::Builder::new().spawn(tell).ok();
        Self { end: Some(end), teller }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(teller) = self.teller.take() {
            // A log that could not be written keeps nothing from being done.
            let _ = teller.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::{Log, Stage};
    use gpumodel_trace::Progress;

    #[test]
    fn the_log_tells_of_the_last_stage_under_way() {
        let stages = [Stage::new("bytes"), Stage::new("cells")];
        let (tell, told) = channel();
        let say = move |line: &str| drop(tell.send(line.to_owned()));
        let log = Log::new(stages.to_vec(), Duration::from_millis(2), say);
        let next = || told.recv_timeout(Duration::from_secs(60)).unwrap();
        stages[0].begin(200);
        assert_eq!(next(), "0 of 200 bytes (0 %)", "no estimate without progress");
        stages[1].begin_at(5, 20);
        let line = std::iter::repeat_with(next).find(|line| line.contains("cells"));
        assert_eq!(line.unwrap(), "5 of 20 cells (25 %)", "what was done before says nothing");
        stages[1].advance(5);
        let line = std::iter::repeat_with(next).find(|line| line.starts_with("10 of")).unwrap();
        assert!(line.starts_with("10 of 20 cells (50 %), about "), "{line}");
        assert!(line.ends_with(" to go"), "{line}");
        stages[1].advance(10);
        let line = std::iter::repeat_with(next).find(|line| line.contains("bytes"));
        assert!(line.is_some(), "a stage that has ended is not told of");
        stages[0].more(100);
        stages[0].more(200);
        let line = std::iter::repeat_with(next).find(|line| line.contains("of 500 bytes"));
        assert!(line.is_some(), "what is converted side by side adds up");
        stages[1].begin_unknown();
        stages[1].advance(7);
        let line = std::iter::repeat_with(next).find(|line| line == "7 cells");
        assert!(line.is_some(), "without an end there is no share of it");
        drop(log);
        while told.try_recv().is_ok() {}
        assert!(told.recv().is_err(), "nothing is said after the end");
    }
}
