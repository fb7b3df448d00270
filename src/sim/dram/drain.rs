//! When waiting writes are served: the watermarks.

use super::queue::{KINDS, READ, WRITE};
use crate::config::ControllerOptions;
use gpumodel_core::units::to_u64;

/// Switches between serving reads and serving writes.
///
/// The mode is judged once per clock, on the queues as the clock before left
/// them; between two changes of the queues it stays as it is, so dead clocks
/// need not be visited.
#[derive(Clone, Debug)]
pub(super) struct Drain {
    /// Reads and writes are served mixed.
    mixed: bool,
    /// Writes are being served.
    writing: bool,
    /// More writes than this start the drain.
    high: u64,
    /// Fewer than this end it, when reads wait.
    low: u64,
    /// The queues changed at this clock and the mode was not judged since.
    changed_at: Option<u64>,
}

impl Drain {
    pub(super) fn new(options: &ControllerOptions) -> Self {
        let queue = f64::from(options.write_queue);
        Self {
            mixed: options.unified_queue || options.bank_queue > 0,
            writing: false,
            high: whole((options.write_high * queue).floor()),
            low: whole((options.write_low * queue).ceil()),
            changed_at: Some(0),
        }
    }

    /// True when requests of `kind` may be served.
    #[inline]
    pub(super) fn serves(&self, kind: usize) -> bool {
        self.mixed || self.writing == (kind == WRITE)
    }

    /// Judges the mode before something changes at `clock` or is served at it;
    /// true when it changed.
    #[inline]
    pub(super) fn settle(&mut self, clock: u64, waiting: [u32; KINDS]) -> bool {
        if self.changed_at.is_none_or(|at| at >= clock) {
            return false;
        }
        self.changed_at = None;
        let before = self.writing;
        self.writing = self.judged(waiting);
        before != self.writing
    }

    /// The queues changed at `clock`; true when the mode changes with the next clock.
    #[inline]
    pub(super) fn change(&mut self, clock: u64, waiting: [u32; KINDS]) -> bool {
        self.changed_at = Some(clock);
        !self.mixed && self.judged(waiting) != self.writing
    }

    fn judged(&self, waiting: [u32; KINDS]) -> bool {
        let writes = to_u64(waiting[WRITE]);
        if self.writing {
            writes >= self.low.max(1) || waiting[READ] == 0
        } else {
            writes > self.high || waiting[READ] == 0
        }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of at most 4096
fn whole(value: f64) -> u64 {
    value as u64
}
