//! Progress on standard error: bars on a terminal, else a line in a log every half minute; and
//! where long work is: which phase of how many, and which part.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{
    HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle,
};

use gpumodel_core::units::to_u64;
use gpumodel_trace::{Progress, Silent};

use super::output::{Verbosity, alert};
use super::{interrupt, message};
use crate::{Phase, SweepProgress, SweepWatch, Watch, ratio};

/// What a [`Meter`] counts: the template of its bar, and its name in logs.
type Unit = (&'static str, &'static str);

const BYTES: Unit =
    ("{prefix}converting {bar:24} {bytes}/{total_bytes}{estimate}", "bytes of traces converted");
const INSTRUCTIONS: Unit = (
    "{prefix}running    {bar:24} {human_pos}{whole} warp instructions{estimate}",
    "warp instructions run",
);
const CELLS: Unit = ("{prefix}cells      {bar:24} {pos}/{len} {msg}{estimate}", "cells ended");

/// A bar on a terminal.
struct Bar {
    bar: ProgressBar,
    stage: Arc<Stage>,
    /// Whether its length is an estimate.
    about: Arc<AtomicBool>,
}

/// Shows how far some work is: as a bar on a terminal, else as a count in a log.
enum Meter {
    Bar(Bar),
    Tally(Arc<Tally>),
}

impl Meter {
    /// A meter that appears when it gets a length, with the phase of `stage`.
    fn new((template, name): Unit, stage: &Arc<Stage>) -> Self {
        if !io::stderr().is_terminal() || Verbosity::get() == Verbosity::Quiet {
            return Self::Tally(Tally::new(name));
        }
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let about = Arc::<AtomicBool>::default();
        let estimated = Arc::clone(&about);
        let whole = move |state: &ProgressState, out: &mut dyn Write| {
            whole(state, estimated.load(Ordering::Relaxed), out);
        };
        let style = style.with_key("estimate", time_left).with_key("whole", whole);
        Self::Bar(Bar { bar: bar.with_style(style), stage: Arc::clone(stage), about })
    }

    fn clear(&self) {
        if let Self::Bar(Bar { bar, .. }) = self {
            bar.finish_and_clear();
        }
    }
}

impl Bar {
    /// Shows work of so many units, a number that is an estimate if `about`.
    fn begin(&self, length: u64, about: bool) {
        self.about.store(about, Ordering::Relaxed);
        self.bar.reset();
        self.bar.set_length(length);
        self.appear();
    }

    /// Shows the bar with its phase.
    fn appear(&self) {
        self.bar.set_prefix(self.stage.short());
        if self.bar.is_hidden() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

/// Writes the time that is left, once an estimate exists.
fn time_left(state: &ProgressState, out: &mut dyn Write) {
    if state.eta().as_secs() > 0 {
        // A bar that cannot be written is not worth an error.
        let _ = write!(out, ", {:#} to go", HumanDuration(state.eta()));
    }
}

/// Writes the length, which is an estimate if `about`.
fn whole(state: &ProgressState, about: bool, out: &mut dyn Write) {
    let length = HumanCount(state.len().unwrap_or_default());
    let _ = if about { write!(out, " of about {length}") } else { write!(out, "/{length}") };
}

impl Progress for Meter {
    fn begin(&self, length: u64) {
        match self {
            Self::Tally(tally) => tally.begin(length),
            Self::Bar(bar) => bar.begin(length, false),
        }
    }

    fn more(&self, length: u64) {
        match self {
            Self::Tally(tally) => tally.more(length),
            Self::Bar(bar) => {
                bar.bar.set_length(bar.bar.length().unwrap_or(0).saturating_add(length));
                bar.appear();
            }
        }
    }

    fn begin_about(&self, length: u64) {
        match self {
            Self::Tally(tally) => tally.begin_about(length),
            Self::Bar(bar) => bar.begin(length, true),
        }
    }

    fn advance(&self, done: u64) {
        match self {
            Self::Tally(tally) => tally.advance(done),
            Self::Bar(bar) => bar.bar.inc(done),
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Shows an analysis: first what is converted, then what runs.
struct AnalysisDisplay {
    converting: Meter,
    running: Meter,
    stage: Arc<Stage>,
}

impl Watch for AnalysisDisplay {
    fn phase(&self, phase: Phase<'_>) {
        self.stage.begin(phase);
    }

    fn converting(&self) -> &dyn Progress {
        &self.converting
    }

    fn running(&self) -> &dyn Progress {
        self.converting.clear();
        &self.running
    }
}

/// Shows a sweep and passes interrupts on to it.
struct SweepDisplay {
    converting: Meter,
    cells: Meter,
    rate: Arc<SweepRate>,
    stage: Arc<Stage>,
}

impl SweepDisplay {
    /// Says what begins; the `first` time also how it goes on after an interrupt.
    fn announce(&self, first: bool) {
        let mut line = self.stage.whole();
        if let Some(how) = interrupt::resumes().filter(|_| first) {
            line += &format!("; after an interrupt, {how}");
        }
        match &self.cells {
            Meter::Bar(Bar { bar, .. }) => bar.suspend(|| message(line)),
            Meter::Tally(_) => message(line),
        }
    }
}

impl Watch for SweepDisplay {
    fn phase(&self, phase: Phase<'_>) {
        self.stage.begin(phase);
        self.rate.clear();
        if phase.number == 2 && !self.stage.is_part() {
            self.announce(true);
        }
    }

    fn converting(&self) -> &dyn Progress {
        &self.converting
    }

    fn running(&self) -> &dyn Progress {
        &Silent
    }
}

impl SweepWatch for SweepDisplay {
    fn part(&self, number: usize, of: usize, name: &str) {
        self.stage.enter(format!("part {number} of {of}"), name);
        self.announce(number == 1);
    }

    fn begin(&self, so_far: SweepProgress) {
        self.rate.begin(so_far);
        let ended = to_u64(so_far.done + so_far.failed);
        let all = ended + to_u64(so_far.left);
        self.converting.clear();
        match &self.cells {
            Meter::Tally(cells) => cells.begin_at(ended, all),
            Meter::Bar(Bar { bar, .. }) => {
                self.cells.begin(all);
                bar.set_message(self.rate.summary());
                bar.set_position(ended);
                // Rate and time left are those of this run.
                bar.reset_eta();
                bar.enable_steady_tick(Duration::from_secs(1));
            }
        }
    }

    fn ended(&self, done: bool) {
        self.rate.add(done);
        self.cells.advance(1);
        if let Meter::Bar(Bar { bar, .. }) = &self.cells {
            bar.set_message(self.rate.summary());
        }
    }

    fn stopped(&self) -> bool {
        interrupt::stopped()
    }

    fn say(&self, sentence: &str) {
        match &self.cells {
            Meter::Bar(Bar { bar, .. }) => bar.suspend(|| alert(sentence)),
            Meter::Tally(_) => alert(sentence),
        }
    }
}

/// Shows the progress of a conversion.
pub(super) fn with_bar<T>(work: impl FnOnce(&dyn Progress) -> T) -> T {
    let converting = Meter::new(BYTES, &Arc::default());
    let _log = log(&[&converting], |line| line.into_iter().for_each(message));
    work(&converting)
}

/// Shows the progress of an analysis, which is one of several if `part` says so.
pub(super) fn with_bars<T>(part: Option<String>, work: impl FnOnce(&dyn Watch) -> T) -> T {
    let stage = Arc::new(Stage::default());
    let (converting, running) = (Meter::new(BYTES, &stage), Meter::new(INSTRUCTIONS, &stage));
    stage.enter(part.unwrap_or_default(), "");
    let logged = Arc::clone(&stage);
    let _log = log(&[&converting, &running], move |line| logged.log(line));
    work(&AnalysisDisplay { converting, running, stage })
}

/// Shows the progress of a sweep.
pub(super) fn with_sweep_bars<T>(work: impl FnOnce(&dyn SweepWatch) -> T) -> T {
    let (rate, stage) = (Arc::new(SweepRate::default()), Arc::new(Stage::default()));
    let (converting, cells) = (Meter::new(BYTES, &stage), Meter::new(CELLS, &stage));
    let logged = (Arc::clone(&rate), Arc::clone(&stage));
    let _log = log(&[&converting, &cells], move |line| {
        let (rate, stage) = &logged;
        stage.log(line.map(|line| rate.after(&line)));
    });
    work(&SweepDisplay { converting, cells, rate, stage })
}

/// The log of those of `meters` that are no bars.
fn log(meters: &[&Meter], say: impl Fn(Option<String>) + Send + 'static) -> Option<Log> {
    let tally = |meter: &&Meter| match meter {
        Meter::Tally(tally) => Some(Arc::clone(tally)),
        Meter::Bar(..) => None,
    };
    let tallies: Vec<_> = meters.iter().filter_map(tally).collect();
    (!tallies.is_empty()).then(|| Log::new(tallies, LOG_INTERVAL, say))
}

/// Time between two lines of a log.
const LOG_INTERVAL: Duration = Duration::from_secs(30);

/// The count of some work, as a log shows it.
#[derive(Debug)]
struct Tally {
    /// What is counted, as `cells ended`.
    what: &'static str,
    /// How much is done, and of how much.
    done: AtomicU64,
    length: AtomicU64,
    /// Whether the length is an estimate.
    about: AtomicBool,
    begun: Mutex<Begun>,
}

/// When and where a count began.
#[derive(Debug, Default)]
struct Begun {
    /// `None`: it has not begun.
    at: Option<Instant>,
    /// What was done before.
    done: u64,
}

impl Tally {
    fn new(what: &'static str) -> Arc<Self> {
        let (done, length) = (AtomicU64::new(0), AtomicU64::new(0));
        let about = AtomicBool::new(false);
        Arc::new(Self { what, done, length, about, begun: Mutex::default() })
    }

    /// Begins with `done` of `length` done already.
    fn begin_at(&self, done: u64, length: u64) {
        self.about.store(false, Ordering::Relaxed);
        self.done.store(done, Ordering::Relaxed);
        self.length.store(length, Ordering::Relaxed);
        *self.begun() = Begun { at: Some(Instant::now()), done };
    }

    fn begun(&self) -> MutexGuard<'_, Begun> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far it is, with an estimate of the time that is left. `None`: it has not begun, or
    /// has ended.
    fn status(&self) -> Option<String> {
        let (done, length) =
            (self.done.load(Ordering::Relaxed), self.length.load(Ordering::Relaxed));
        let begun = self.begun();
        let so_far = begun.at?.elapsed();
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
        let about = if self.about.load(Ordering::Relaxed) { "about " } else { "" };
        Some(format!("{done} of {about}{length} {} ({percent:.0} %){left}", self.what))
    }
}

impl Progress for Tally {
    fn begin(&self, length: u64) {
        self.begin_at(0, length);
    }

    fn more(&self, length: u64) {
        let mut begun = self.begun();
        begun.at.get_or_insert_with(Instant::now);
        self.length.fetch_add(length, Ordering::Relaxed);
    }

    fn begin_about(&self, length: u64) {
        self.begin_at(0, length);
        self.about.store(true, Ordering::Relaxed);
    }

    fn advance(&self, done: u64) {
        self.done.fetch_add(done, Ordering::Relaxed);
    }
}

/// Writes a line about the current count from time to time, until it is dropped.
#[derive(Debug)]
struct Log {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Log {
    /// Passes `say` a line about the last of `tallies` that is under way, once per `every`;
    /// `None` where none is.
    fn new(
        tallies: Vec<Arc<Tally>>,
        every: Duration,
        say: impl Fn(Option<String>) + Send + 'static,
    ) -> Self {
        let (end, ended) = channel();
        let write = move || {
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                say(tallies.iter().rev().find_map(|tally| tally.status()));
            }
        };
        // If no thread can be started, the work continues without a log.
        let thread = thread::Builder::new().spawn(write).ok();
        Self { end: Some(end), thread }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // An error in the log must not stop the work.
            let _ = thread.join();
        }
    }
}

/// Counts the cells of a sweep as they end.
#[derive(Debug, Default)]
struct SweepRate(Mutex<Option<Count>>);

/// The counts of a sweep that has begun.
#[derive(Debug)]
struct Count {
    cells: SweepProgress,
    begun: Instant,
    /// Cells that have ended in this run.
    new: usize,
}

impl SweepRate {
    /// The first cell is about to run.
    fn begin(&self, so_far: SweepProgress) {
        *self.count() = Some(Count { cells: so_far, begun: Instant::now(), new: 0 });
    }

    /// Another sweep, or its tables, are next.
    fn clear(&self) {
        *self.count() = None;
    }

    /// A cell has ended: `done`, or failed.
    fn add(&self, done: bool) {
        if let Some(count) = &mut *self.count() {
            count.new += 1;
            count.cells.left = count.cells.left.saturating_sub(1);
            let ended = if done { &mut count.cells.done } else { &mut count.cells.failed };
            *ended += 1;
        }
    }

    /// Counts and rate; empty before the sweep begins.
    fn summary(&self) -> String {
        let count = self.count();
        let summary = |count: &Count| summary(count.cells, count.new, count.begun.elapsed());
        count.as_ref().map(summary).unwrap_or_default()
    }

    /// A line of a log, followed by the summary.
    fn after(&self, line: &str) -> String {
        let summary = self.summary();
        if summary.is_empty() { line.to_owned() } else { format!("{line}: {summary}") }
    }

    fn count(&self) -> MutexGuard<'_, Option<Count>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The counts, and the rate of `new` cells in `time`.
fn summary(cells: SweepProgress, new: usize, time: Duration) -> String {
    let SweepProgress { done, failed, left } = cells;
    let text = format!("{done} done, {failed} failed, {left} left");
    if new == 0 || time.is_zero() {
        return text;
    }
    let rate = new as f64 * 60.0 / time.as_secs_f64();
    let digits = if rate < 1.0 { 2 } else { usize::from(rate < 10.0) };
    format!("{text}, {rate:.digits$} cells per minute")
}

/// The phase of some work, and the part of the whole to which it belongs.
#[derive(Debug, Default)]
pub(super) struct Stage(Mutex<Place>);

/// The words of a stage; empty where there are none.
#[derive(Debug, Default)]
struct Place {
    /// As `part 2 of 5`.
    part: String,
    /// What the part is called.
    name: String,
    /// As `phase 2 of 3`.
    phase: String,
    /// What the phase does.
    what: String,
}

impl Stage {
    /// A part of the work begins.
    pub(super) fn enter(&self, part: String, name: &str) {
        *self.place() = Place { part, name: name.to_owned(), ..Place::default() };
    }

    /// A phase begins.
    pub(super) fn begin(&self, phase: Phase<'_>) {
        let Phase { number, of, what } = phase;
        if number > 1 {
            interrupt::work_began();
        }
        let mut place = self.place();
        place.phase = format!("phase {number} of {of}");
        what.clone_into(&mut place.what);
    }

    /// Whether the work is a part of a whole.
    fn is_part(&self) -> bool {
        !self.place().part.is_empty()
    }

    /// The numbers, for the start of a bar.
    pub(super) fn short(&self) -> String {
        let Place { part, phase, .. } = &*self.place();
        let words = joined(&[part, phase], ", ");
        if words.is_empty() { words } else { words + " " }
    }

    /// Numbers and words, for a log.
    pub(super) fn whole(&self) -> String {
        let Place { part, name, phase, what } = &*self.place();
        joined(&[&joined(&[part, name], ": "), &joined(&[phase, what], ": ")], "; ")
    }

    /// Writes a line of a log: the stage, and how far it is where that is known.
    pub(super) fn log(&self, so_far: Option<String>) {
        let line = joined(&[&self.whole(), &so_far.unwrap_or_default()], ": ");
        if !line.is_empty() {
            message(line);
        }
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those of `words` that are not empty.
fn joined(words: &[&str], between: &str) -> String {
    let words: Vec<&str> = words.iter().copied().filter(|word| !word.is_empty()).collect();
    words.join(between)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use gpumodel_trace::Progress;

    use super::{Log, Stage, SweepProgress, SweepRate, Tally, summary};
    use crate::Phase;

    #[test]
    fn the_log_shows_the_last_count_under_way() {
        let tallies = [Tally::new("bytes"), Tally::new("cells")];
        let (tell, status) = channel();
        let say = move |line: Option<String>| drop(line.map(|line| tell.send(line)));
        let log = Log::new(tallies.to_vec(), Duration::from_millis(2), say);
        let next = || status.recv_timeout(Duration::from_secs(60)).unwrap();
        tallies[0].begin(200);
        assert_eq!(next(), "0 of 200 bytes (0 %)", "no estimate without progress");
        tallies[1].begin_at(5, 20);
        let line = std::iter::repeat_with(next).find(|line| line.contains("cells"));
        assert_eq!(line.unwrap(), "5 of 20 cells (25 %)", "what was done before gives no rate");
        tallies[1].advance(5);
        let line = std::iter::repeat_with(next).find(|line| line.starts_with("10 of")).unwrap();
        assert!(line.starts_with("10 of 20 cells (50 %), about "), "{line}");
        assert!(line.ends_with(" to go"), "{line}");
        tallies[1].advance(10);
        let line = std::iter::repeat_with(next).find(|line| line.contains("bytes"));
        assert!(line.is_some(), "a phase that has ended is not shown");
        tallies[0].more(100);
        tallies[0].more(200);
        let line = std::iter::repeat_with(next).find(|line| line.contains("of 500 bytes"));
        assert!(line.is_some(), "what is converted side by side adds up");
        tallies[1].begin_about(70);
        tallies[1].advance(7);
        let line = std::iter::repeat_with(next).find(|line| line.starts_with("7 of about 70 "));
        assert!(line.unwrap().starts_with("7 of about 70 cells (10 %), about "));
        drop(log);
        while status.try_recv().is_ok() {}
        assert!(status.recv().is_err(), "no line after the end");
    }

    const CELLS: SweepProgress = SweepProgress { done: 10, failed: 2, left: 28 };

    #[test]
    fn the_rate_is_that_of_this_run() {
        let said = |new, seconds| summary(CELLS, new, Duration::from_secs(seconds));
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
        assert_eq!(rate.summary(), "10 done, 2 failed, 28 left");
        [true, false, true].into_iter().for_each(|done| rate.add(done));
        let said = rate.after("15 of 40 cells ended (38 %)");
        let cells = "15 of 40 cells ended (38 %): 12 done, 3 failed, 25 left, ";
        assert!(said.starts_with(cells) && said.ends_with(" cells per minute"), "{said}");
    }

    #[test]
    fn a_stage_says_how_many_phases_and_parts_exist() {
        let stage = Stage::default();
        assert_eq!((&*stage.whole(), &*stage.short()), ("", ""));
        stage.begin(Phase { number: 2, of: 3, what: "cells" });
        assert_eq!((&*stage.whole(), &*stage.short()), ("phase 2 of 3: cells", "phase 2 of 3 "));
        stage.enter("part 4 of 7".into(), "slate pairs");
        assert_eq!(stage.whole(), "part 4 of 7: slate pairs", "its phase has not begun");
        stage.begin(Phase { number: 1, of: 3, what: "converting" });
        assert_eq!(stage.whole(), "part 4 of 7: slate pairs; phase 1 of 3: converting");
        assert_eq!(stage.short(), "part 4 of 7, phase 1 of 3 ");
    }
}
