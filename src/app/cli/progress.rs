//! Progress on standard error: bars on a terminal, else a line from time to time.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

use gpumodel_core::units::to_u64;
use gpumodel_trace::{Progress, Silent};

use super::interrupt;
use crate::{SweepProgress, SweepWatch, Watch};

/// One bar.
struct Bar(ProgressBar);

impl Bar {
    /// A bar that shows itself when it is given a length.
    fn new(template: &str) -> Self {
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(ProgressBar::new(0).with_style(style.with_key("estimate", estimate)))
    }
}

/// The time that is left, once that can be told.
fn estimate(state: &ProgressState, out: &mut dyn Write) {
    let left = state.eta();
    if left.as_secs() > 0 {
        // Nobody sees a bar that cannot be written.
        let _ = write!(out, ", {:#} to go", HumanDuration(left));
    }
}

impl Progress for Bar {
    fn begin(&self, length: u64) {
        self.0.reset();
        self.0.set_length(length);
    }

    fn more(&self, length: u64) {
        let so_far = self.0.length().unwrap_or(0);
        self.0.set_length(so_far.saturating_add(length));
    }

    fn begin_unknown(&self) {
        self.0.reset();
        self.0.unset_length();
    }

    fn advance(&self, done: u64) {
        self.0.inc(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// The bars of an analysis, one after the other.
struct Bars {
    converting: Bar,
    running: Bar,
}

impl Watch for Bars {
    fn converting(&self) -> &dyn Progress {
        &self.converting
    }

    fn running(&self) -> &dyn Progress {
        self.converting.0.finish_and_clear();
        &self.running
    }
}

/// The stages of an analysis, of which a log tells.
struct Lines {
    converting: Arc<Phase>,
    running: Arc<Phase>,
}

impl Watch for Lines {
    fn converting(&self) -> &dyn Progress {
        &*self.converting
    }

    fn running(&self) -> &dyn Progress {
        &*self.running
    }
}

/// Where the progress of a sweep shows.
enum Shown {
    /// Bars of what is converted and of cells.
    Bars(Bar, Bar),
    /// Stages of the same, of which a log tells.
    Lines(Arc<Phase>, Arc<Phase>),
}

/// Who watches a sweep: shows its progress and listens for interrupts.
struct SweepShown {
    shown: Shown,
    rate: Arc<SweepRate>,
}

impl Watch for SweepShown {
    fn converting(&self) -> &dyn Progress {
        match &self.shown {
            Shown::Bars(converting, _) => converting,
            Shown::Lines(converting, _) => &**converting,
        }
    }

    fn running(&self) -> &dyn Progress {
        &Silent
    }
}

impl SweepWatch for SweepShown {
    fn begin(&self, so_far: SweepProgress) {
        self.rate.begin(so_far);
        let ended = so_far.done + so_far.failed;
        let all = to_u64(ended + so_far.left);
        match &self.shown {
            Shown::Lines(_, cells) => cells.begin_at(to_u64(ended), all),
            Shown::Bars(converting, cells) => {
                converting.0.finish_and_clear();
                cells.begin(all);
                cells.0.set_message(self.rate.words());
                cells.0.set_position(to_u64(ended));
                // Rate and time left are those of this run.
                cells.0.reset_eta();
                cells.0.enable_steady_tick(std::time::Duration::from_secs(1));
            }
        }
    }

    fn ended(&self, done: bool) {
        self.rate.add(done);
        match &self.shown {
            Shown::Lines(_, cells) => cells.advance(1),
            Shown::Bars(_, cells) => {
                cells.advance(1);
                cells.0.set_message(self.rate.words());
            }
        }
    }

    fn stopped(&self) -> bool {
        interrupt::stopped()
    }

    fn say(&self, sentence: &str) {
        match &self.shown {
            Shown::Bars(_, cells) => cells.0.suspend(|| tell(sentence)),
            Shown::Lines(..) => tell(sentence),
        }
    }
}

#[allow(clippy::print_stderr, reason = "progress goes to standard error")]
fn tell(line: &str) {
    eprintln!("{line}");
}

const CELLS: &str = "cells      {bar:40} {pos}/{len} {msg}{estimate}";
const BYTES: &str = "converting {bar:40} {bytes}/{total_bytes}{estimate}";
const INSTRUCTIONS: &str =
    "running    {bar:40} {human_pos}/{human_len} warp instructions{estimate}";

/// What logs call that which is counted.
const OF_BYTES: &str = "bytes of traces converted";
const OF_INSTRUCTIONS: &str = "warp instructions run";
const OF_CELLS: &str = "cells ended";

/// Converts with its progress where somebody can see it.
pub(super) fn with_bar<T>(work: impl FnOnce(&dyn Progress) -> T) -> T {
    if io::stderr().is_terminal() {
        return work(&Bar::new(BYTES));
    }
    let phase = Phase::new(OF_BYTES);
    let _log = Log::new(vec![Arc::clone(&phase)], LOG_INTERVAL, tell);
    work(&*phase)
}

/// Analyzes with its progress where somebody can see it.
pub(super) fn with_bars<T>(work: impl FnOnce(&dyn Watch) -> T) -> T {
    if io::stderr().is_terminal() {
        return work(&Bars { converting: Bar::new(BYTES), running: Bar::new(INSTRUCTIONS) });
    }
    let lines = Lines { converting: Phase::new(OF_BYTES), running: Phase::new(OF_INSTRUCTIONS) };
    let phases = vec![Arc::clone(&lines.converting), Arc::clone(&lines.running)];
    let _log = Log::new(phases, LOG_INTERVAL, tell);
    work(&lines)
}

/// Sweeps with its progress where somebody can see it.
pub(super) fn with_sweep_bars<T>(work: impl FnOnce(&dyn SweepWatch) -> T) -> T {
    let rate = Arc::new(SweepRate::default());
    if io::stderr().is_terminal() {
        let shown = Shown::Bars(Bar::new(BYTES), Bar::new(CELLS));
        return work(&SweepShown { shown, rate });
    }
    let phases = [Phase::new(OF_BYTES), Phase::new(OF_CELLS)];
    let status = Arc::clone(&rate);
    let _log = Log::new(phases.to_vec(), LOG_INTERVAL, move |line: &str| tell(&status.after(line)));
    let [converting, cells] = phases;
    work(&SweepShown { shown: Shown::Lines(converting, cells), rate })
}

/// Length of a stage whose end nobody knows.
const UNKNOWN: u64 = u64::MAX;
/// How often a log hears of work under way.
pub(super) const LOG_INTERVAL: Duration = Duration::from_secs(30);

/// Work under way: what is counted, as `trace bytes converted`.
#[derive(Debug)]
pub(super) struct Phase {
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

impl Phase {
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
    fn status(&self) -> Option<String> {
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

impl Progress for Phase {
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
        phases: Vec<Arc<Phase>>,
        every: Duration,
        say: impl Fn(&str) + Send + 'static,
    ) -> Self {
        let (end, ended) = channel();
        let tell = move || {
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                if let Some(line) = phases.iter().rev().find_map(|phase| phase.status()) {
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

/// The cells of a sweep, as they end.
#[derive(Debug, Default)]
pub(super) struct SweepRate(Mutex<Option<Count>>);

/// What is known once the sweep has begun.
#[derive(Debug)]
struct Count {
    cells: SweepProgress,
    begun: Instant,
    /// Cells that have ended since.
    new: usize,
}

impl SweepRate {
    /// The first cell is about to run.
    pub(super) fn begin(&self, so_far: SweepProgress) {
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
        let status =
            count.as_ref().map(|count| words(count.cells, count.new, count.begun.elapsed()));
        status.unwrap_or_default()
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
fn words(cells: SweepProgress, new: usize, time: Duration) -> String {
    let SweepProgress { done, failed, left } = cells;
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
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use gpumodel_trace::Progress;

    use super::{Log, Phase, SweepProgress, SweepRate, words};

    #[test]
    fn the_log_tells_of_the_last_stage_under_way() {
        let phases = [Phase::new("bytes"), Phase::new("cells")];
        let (tell, status) = channel();
        let say = move |line: &str| drop(tell.send(line.to_owned()));
        let log = Log::new(phases.to_vec(), Duration::from_millis(2), say);
        let next = || status.recv_timeout(Duration::from_secs(60)).unwrap();
        phases[0].begin(200);
        assert_eq!(next(), "0 of 200 bytes (0 %)", "no estimate without progress");
        phases[1].begin_at(5, 20);
        let line = std::iter::repeat_with(next).find(|line| line.contains("cells"));
        assert_eq!(line.unwrap(), "5 of 20 cells (25 %)", "what was done before says nothing");
        phases[1].advance(5);
        let line = std::iter::repeat_with(next).find(|line| line.starts_with("10 of")).unwrap();
        assert!(line.starts_with("10 of 20 cells (50 %), about "), "{line}");
        assert!(line.ends_with(" to go"), "{line}");
        phases[1].advance(10);
        let line = std::iter::repeat_with(next).find(|line| line.contains("bytes"));
        assert!(line.is_some(), "a stage that has ended is not told of");
        phases[0].more(100);
        phases[0].more(200);
        let line = std::iter::repeat_with(next).find(|line| line.contains("of 500 bytes"));
        assert!(line.is_some(), "what is converted side by side adds up");
        phases[1].begin_unknown();
        phases[1].advance(7);
        let line = std::iter::repeat_with(next).find(|line| line == "7 cells");
        assert!(line.is_some(), "without an end there is no share of it");
        drop(log);
        while status.try_recv().is_ok() {}
        assert!(status.recv().is_err(), "nothing is said after the end");
    }

    const CELLS: SweepProgress = SweepProgress { done: 10, failed: 2, left: 28 };

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
        let rate = SweepRate::default();
        rate.add(true);
        assert_eq!(rate.after("7 bytes"), "7 bytes", "it has not begun");
        rate.begin(CELLS);
        assert_eq!(rate.words(), "10 done, 2 failed, 28 left");
        [true, false, true].into_iter().for_each(|done| rate.add(done));
        let said = rate.after("15 of 40 cells ended (38 %)");
        let cells = "15 of 40 cells ended (38 %): 12 done, 3 failed, 25 left, ";
        assert!(said.starts_with(cells) && said.ends_with(" cells per minute"), "{said}");
    }
}
