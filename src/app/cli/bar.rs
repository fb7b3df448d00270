//! Progress on standard error: bars on a terminal, else a line from time to time.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::sync::Arc;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

use crate::{SweepEnd, SweepWatch, Watch};
use gpumodel_core::units::to_u64;
use gpumodel_trace::{Progress, Silent};

use super::interrupt;
use super::log::{EVERY, Log, Stage};
use super::pace::Pace;

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
    converting: Arc<Stage>,
    running: Arc<Stage>,
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
    Lines(Arc<Stage>, Arc<Stage>),
}

/// Who watches a sweep: shows its progress and listens for interrupts.
struct SweepShown {
    shown: Shown,
    pace: Arc<Pace>,
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
    fn begin(&self, so_far: SweepEnd) {
        self.pace.begin(so_far);
        let ended = so_far.done + so_far.failed;
        let all = to_u64(ended + so_far.left);
        match &self.shown {
            Shown::Lines(_, cells) => cells.begin_at(to_u64(ended), all),
            Shown::Bars(converting, cells) => {
                converting.0.finish_and_clear();
                cells.begin(all);
                cells.0.set_message(self.pace.words());
                cells.0.set_position(to_u64(ended));
                // Rate and time left are those of this run.
                cells.0.reset_eta();
                cells.0.enable_steady_tick(std::time::Duration::from_secs(1));
            }
        }
    }

    fn ended(&self, done: bool) {
        self.pace.add(done);
        match &self.shown {
            Shown::Lines(_, cells) => cells.advance(1),
            Shown::Bars(_, cells) => {
                cells.advance(1);
                cells.0.set_message(self.pace.words());
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
    let stage = Stage::new(OF_BYTES);
    let _log = Log::new(vec![Arc::clone(&stage)], EVERY, tell);
    work(&*stage)
}

/// Analyzes with its progress where somebody can see it.
pub(super) fn with_bars<T>(work: impl FnOnce(&dyn Watch) -> T) -> T {
    if io::stderr().is_terminal() {
        return work(&Bars { converting: Bar::new(BYTES), running: Bar::new(INSTRUCTIONS) });
    }
    let lines = Lines { converting: Stage::new(OF_BYTES), running: Stage::new(OF_INSTRUCTIONS) };
    let stages = vec![Arc::clone(&lines.converting), Arc::clone(&lines.running)];
    let _log = Log::new(stages, EVERY, tell);
    work(&lines)
}

/// Sweeps with its progress where somebody can see it.
pub(super) fn with_sweep_bars<T>(work: impl FnOnce(&dyn SweepWatch) -> T) -> T {
    let pace = Arc::new(Pace::default());
    if io::stderr().is_terminal() {
        let shown = Shown::Bars(Bar::new(BYTES), Bar::new(CELLS));
        return work(&SweepShown { shown, pace });
    }
    let stages = [Stage::new(OF_BYTES), Stage::new(OF_CELLS)];
    let told = Arc::clone(&pace);
    let _log = Log::new(stages.to_vec(), EVERY, move |line: &str| tell(&told.after(line)));
    let [converting, cells] = stages;
    work(&SweepShown { shown: Shown::Lines(converting, cells), pace })
}
