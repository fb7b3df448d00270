//! Progress on standard error, on a terminal only.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressStyle};

use crate::run::{SweepEnd, SweepWatch, Unwatched, Watch};
use crate::trace::{Progress, Silent};
use crate::units::to_u64;

use super::interrupt;

/// One bar.
struct Bar(ProgressBar);

impl Bar {
    /// A bar that shows itself when it is given a length.
    fn new(template: &str) -> Self {
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(ProgressBar::new(0).with_style(style))
    }
}

impl Progress for Bar {
    fn begin(&self, length: u64) {
        self.0.reset();
        self.0.set_length(length);
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

/// The bars of a sweep, one after the other; without a terminal it only listens for
/// interrupts.
struct SweepBars {
    shown: Option<(Bar, Bar)>,
    failed: AtomicUsize,
}

impl Watch for SweepBars {
    fn converting(&self) -> &dyn Progress {
        self.shown.as_ref().map_or(&Silent, |(converting, _)| converting)
    }

    fn running(&self) -> &dyn Progress {
        &Silent
    }
}

impl SweepWatch for SweepBars {
    fn begin(&self, so_far: SweepEnd) {
        self.failed.store(so_far.failed, Ordering::Relaxed);
        let Some((converting, cells)) = &self.shown else { return };
        converting.0.finish_and_clear();
        let ended = so_far.done + so_far.failed;
        cells.begin(to_u64(ended + so_far.left));
        cells.0.set_message(format!("{} failed, {} left", so_far.failed, so_far.left));
        cells.0.set_position(to_u64(ended));
        // Rate and time left are those of this run.
        cells.0.reset_eta();
        cells.0.enable_steady_tick(std::time::Duration::from_secs(1));
    }

    fn ended(&self, done: bool) {
        let failed = self.failed.fetch_add(usize::from(!done), Ordering::Relaxed);
        let failed = failed + usize::from(!done);
        let Some((_, cells)) = &self.shown else { return };
        cells.advance(1);
        let left = cells.0.length().unwrap_or(0).saturating_sub(cells.0.position());
        cells.0.set_message(format!("{failed} failed, {left} left"));
    }

    fn stopped(&self) -> bool {
        interrupt::stopped()
    }

    #[allow(clippy::print_stderr)]
    fn say(&self, sentence: &str) {
        match &self.shown {
            Some((_, cells)) => cells.0.suspend(|| eprintln!("{sentence}")),
            None => eprintln!("{sentence}"),
        }
    }
}

const CELLS: &str = "cells      {bar:40} {pos}/{len} {msg}, {per_sec}, {eta} to go";

const BYTES: &str = "converting {bar:40} {bytes}/{total_bytes} {eta}";
const INSTRUCTIONS: &str = "running    {bar:40} {human_pos}/{human_len} warp instructions {eta}";

/// Converts with a progress bar where somebody can see it.
pub(super) fn with_bar<T>(work: impl FnOnce(&dyn Progress) -> T) -> T {
    if io::stderr().is_terminal() { work(&Bar::new(BYTES)) } else { work(&Silent) }
}

/// Analyzes with progress bars where somebody can see them.
pub(super) fn with_bars<T>(work: impl FnOnce(&dyn Watch) -> T) -> T {
    if io::stderr().is_terminal() {
        return work(&Bars { converting: Bar::new(BYTES), running: Bar::new(INSTRUCTIONS) });
    }
    work(&Unwatched)
}

/// Sweeps with progress bars where somebody can see them.
pub(super) fn with_sweep_bars<T>(work: impl FnOnce(&dyn SweepWatch) -> T) -> T {
    let seen = io::stderr().is_terminal();
    let shown = seen.then(|| (Bar::new(BYTES), Bar::new(CELLS)));
    work(&SweepBars { shown, failed: AtomicUsize::new(0) })
}
