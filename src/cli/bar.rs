//! Progress on standard error, on a terminal only.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};

use crate::run::{Unwatched, Watch};
use crate::trace::{Progress, Silent};

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
