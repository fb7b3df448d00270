//! Progress on standard error, on a terminal only.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};

use crate::trace::{Progress, Silent};

/// A bar over bytes of trace text.
struct Bar(ProgressBar);

impl Progress for Bar {
    fn begin(&self, bytes: u64) {
        self.0.set_length(bytes);
    }

    fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }
}

/// Runs `work` with a progress bar where somebody can see it.
pub(super) fn with_bar<T>(work: impl FnOnce(&dyn Progress) -> T) -> T {
    if !io::stderr().is_terminal() {
        return work(&Silent);
    }
    let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {eta}");
    let bar =
        Bar(ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())));
    let done = work(&bar);
    bar.0.finish_and_clear();
    done
}
