//! Slot-cycles of one scheduler by warp: what is charged to instructions later.
//!
//! Waiting warps lose the same in a span, so that a sum over all spans tells what each of them
//! has lost since its wait began; running intervals are booked one by one.

use crate::counters::{Cause, StallStack};
use crate::sm::scheduler::stall_accounting::{Wait, add};

/// What one warp has lost.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    stalls: StallStack,
    /// Slot-cycles of its last interval that belong to what it does next: that ended within a
    /// cycle.
    rest: f64,
    /// What it waits for, and the sum over all spans up to which that is in `stalls`.
    waits: Option<(Wait, f64)>,
}

/// What each warp has lost since it was asked last.
#[derive(Debug, Default)]
pub(in crate::sm) struct WarpLosses {
    /// By warp slot of the SM.
    by_warp: Vec<Lost>,
    /// Slot-cycles that a warp has lost that has waited all the time.
    per_waiting: f64,
}

impl WarpLosses {
    /// A span has passed in which every waiting warp lost `per_waiting` slot-cycles.
    pub(super) fn pass(&mut self, per_waiting: f64) {
        self.per_waiting += per_waiting;
    }

    /// Adds what the interval of a warp has lost.
    pub(super) fn add(&mut self, warp: u16, lost: &StallStack) {
        add(&mut self.of(warp).stalls, lost);
    }

    /// As [`rebook`](super::stall_accounting::rebook), at the end of an interval of a warp.
    pub(super) fn rebook_end(&mut self, warp: u16, slots: f64) {
        self.of(warp).rest -= slots;
    }

    /// The same at the begin of its next interval.
    pub(super) fn rebook_begin(&mut self, warp: u16, slots: f64) {
        let lost = self.of(warp);
        lost.rest -= slots;
        lost.take_rest();
    }

    /// A warp begins to wait, or no longer waits.
    pub(super) fn note_wait(&mut self, warp: u16, waits: Option<Wait>) {
        let sum = self.per_waiting;
        let lost = self.of(warp);
        lost.settle(sum);
        lost.take_rest();
        lost.waits = waits.map(|wait| (wait, sum));
    }

    /// Takes what a warp has lost, issue slots left out; with `rest` what else it loses in the
    /// last cycle of its interval.
    pub(super) fn take(&mut self, warp: u16, rest: bool) -> StallStack {
        let sum = self.per_waiting;
        let lost = self.of(warp);
        lost.settle(sum);
        if rest {
            lost.take_rest();
        }
        let mut stalls = std::mem::take(&mut lost.stalls);
        stalls[Cause::Issued as usize] = 0.0;
        stalls
    }

    fn of(&mut self, warp: u16) -> &mut Lost {
        let place = usize::from(warp);
        if self.by_warp.len() <= place {
            self.by_warp.resize(place + 1, Lost::default());
        }
        &mut self.by_warp[place]
    }
}

impl Lost {
    /// Adds the rest of its last interval.
    fn take_rest(&mut self) {
        self.stalls[Cause::ShortRaw as usize] += std::mem::take(&mut self.rest);
    }

    /// Adds what it has lost by waiting, up to `sum`.
    fn settle(&mut self, sum: f64) {
        if let Some((wait, since)) = &mut self.waits {
            self.stalls[wait.cause() as usize] += sum - *since;
            *since = sum;
        }
    }
}
