//! Barriers of a CTA.

use super::cta::CtaState;
use super::warp::{Split, Wait, Warp};

/// Named barriers of a CTA.
pub(crate) const CTA_BARRIERS: usize = 16;

/// What has arrived at a barrier.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrived {
    /// Threads.
    pub(crate) threads: u32,
    /// Threads that it waits for; 0: all of the CTA that have not ended.
    pub(crate) expected: u32,
    /// Threads whose predicate holds.
    pub(crate) holding: u32,
    /// Threads that brought a predicate.
    pub(crate) asked: u32,
}

impl CtaState {
    /// Lanes of `warp` arrive at the barrier `number`.
    pub(crate) fn arrive(&mut self, number: u8, warp: &Warp, mask: u32, expected: u32) {
        let barrier = &mut self.barriers[usize::from(number) % CTA_BARRIERS];
        // Lanes that have ended count for a barrier of a number of threads.
        let ended = if expected > 0 && mask == warp.alive { 32 - mask.count_ones() } else { 0 };
        barrier.threads += mask.count_ones() + ended;
        barrier.expected = expected;
    }

    /// Whether the barrier is complete when so many threads of the CTA have not ended.
    fn complete(&self, number: usize, alive: u32) -> bool {
        let barrier = self.barriers[number];
        let expected = if barrier.expected == 0 { alive } else { barrier.expected };
        barrier.threads > 0 && barrier.threads >= expected
    }

    /// Releases the warps at complete barriers; whether there were any.
    pub(crate) fn release(&mut self, warps: &mut [Warp]) -> bool {
        let alive = warps.iter().map(|warp| warp.alive.count_ones()).sum();
        let mut released = false;
        for number in 0..CTA_BARRIERS {
            if !self.complete(number, alive) {
                continue;
            }
            let Arrived { holding, asked, .. } = std::mem::take(&mut self.barriers[number]);
            let reduced = [holding, u32::from(holding == asked), u32::from(holding > 0)];
            for warp in &mut *warps {
                warp.pass(number, reduced, asked > 0);
            }
            released = true;
        }
        released
    }
}

impl Warp {
    fn pass(&mut self, number: usize, reduced: [u32; 3], reduces: bool) {
        let waits = |split: &Split| matches!(split.wait, Wait::Cta(n) if usize::from(n) == number);
        if !self.splits.iter().any(waits) {
            return;
        }
        if reduces {
            self.reduced = reduced;
        }
        for split in self.splits.iter_mut().filter(|split| waits(split)) {
            split.wait = Wait::Ready;
        }
        self.merge();
    }
}
