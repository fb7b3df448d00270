//! Slot-cycles by cause: what an interval and the waiting warps are booked with.
//!
//! By warp they are what is charged to instructions later ([`WarpLosses`]). Waiting warps lose
//! the same in a span, so that a sum over all spans tells what each of them has lost since its
//! wait began; running intervals are booked one by one.

use crate::counters::{Cause, KernelCounts, StallStack};
use crate::sm::scheduler::issue_bandwidth::{Claim, ISSUE};
use gpumodel_core::units::{AppId, to_usize};

/// Why a warp has nothing to issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sm) enum Wait {
    /// An outstanding access beyond the SM's shared memory.
    Memory,
    /// A barrier.
    Barrier,
    /// The load/store queue is full, or the active set is.
    Resource,
    /// Its next instructions.
    Fetch,
    /// A result of a unit or of shared memory.
    Result,
}

impl Wait {
    /// What its slot-cycles are booked as.
    pub(in crate::sm) const fn cause(self) -> Cause {
        match self {
            Self::Memory => Cause::LongMemoryLatency,
            Self::Barrier => Cause::Barrier,
            Self::Resource => Cause::ExecutionResource,
            Self::Fetch => Cause::InstructionBufferEmpty,
            Self::Result => Cause::ShortRaw,
        }
    }

    /// The slot-cycles of one warp that waits.
    pub(in crate::sm) fn alone(self, slots: f64) -> StallStack {
        let mut stalls = StallStack::default();
        stalls[self.cause() as usize] = slots;
        stalls
    }
}

/// Warps of one kernel that wait, by cause.
#[derive(Clone, Copy, Debug)]
pub(in crate::sm) struct Waiting {
    pub(in crate::sm) kernel: u32,
    memory: u32,
    barrier: u32,
    resource: u32,
    fetch: u32,
    result: u32,
}

impl Waiting {
    /// No warp of `kernel` waits.
    pub(in crate::sm) fn none(kernel: u32) -> Self {
        Self { kernel, memory: 0, barrier: 0, resource: 0, fetch: 0, result: 0 }
    }

    /// All of them.
    pub(in crate::sm) fn warps(&self) -> u32 {
        self.memory + self.barrier + self.resource + self.fetch + self.result
    }

    /// Those that the load/store queue or the active set keeps from issuing.
    pub(in crate::sm) fn blocked(&self) -> u32 {
        self.resource
    }

    /// One more waits, or one fewer.
    pub(in crate::sm) fn note(&mut self, wait: Wait, begins: bool) {
        let count = match wait {
            Wait::Memory => &mut self.memory,
            Wait::Barrier => &mut self.barrier,
            Wait::Resource => &mut self.resource,
            Wait::Fetch => &mut self.fetch,
            Wait::Result => &mut self.result,
        };
        *count = if begins { *count + 1 } else { *count - 1 };
    }

    /// Their slot-cycles, of which each takes `per_warp`.
    pub(in crate::sm) fn lost(&self, per_warp: f64) -> StallStack {
        let mut stalls = StallStack::default();
        stalls[Wait::Memory.cause() as usize] = per_warp * f64::from(self.memory);
        stalls[Wait::Barrier.cause() as usize] = per_warp * f64::from(self.barrier);
        stalls[Wait::Resource.cause() as usize] = per_warp * f64::from(self.resource);
        stalls[Wait::Fetch.cause() as usize] = per_warp * f64::from(self.fetch);
        stalls[Wait::Result.cause() as usize] = per_warp * f64::from(self.result);
        stalls
    }
}

/// Moves slot-cycles between `Issued` and `ShortRaw`: events fall on whole
/// cycles, intervals end within them; what an interval did not issue in its last cycle
/// is taken back, what the next one has already issued there is added.
pub(in crate::sm) fn rebook(stalls: &mut StallStack, slots: f64) {
    stalls[Cause::Issued as usize] += slots;
    stalls[Cause::ShortRaw as usize] -= slots;
}

/// Slot-cycles of a span, kernel by kernel: booked when another one's turn comes,
/// so that a span of one kernel touches its counts once.
#[derive(Debug, Default)]
pub(in crate::sm) struct Tally {
    kernel: u32,
    lost: StallStack,
}

impl Tally {
    /// What comes now is `kernel`'s.
    pub(in crate::sm) fn turn_to(
        &mut self,
        kernel: u32,
        all: &mut Vec<StallStack>,
        counts: &mut [KernelCounts],
    ) {
        if kernel != self.kernel {
            std::mem::take(self).book(all, counts);
            self.kernel = kernel;
        }
    }

    /// Adds the slot-cycles of an interval of the present kernel that did not move.
    pub(in crate::sm) fn wait_for_unit(&mut self, cycles: f64) {
        self.lost[Cause::ExecutionResource as usize] += cycles;
    }

    /// Adds to the present kernel's.
    pub(in crate::sm) fn add(&mut self, more: &StallStack) {
        add(&mut self.lost, more);
    }

    /// Adds the present kernel's to its counts and to those of its application.
    pub(in crate::sm) fn book(self, all: &mut Vec<StallStack>, counts: &mut [KernelCounts]) {
        let counts = &mut counts[to_usize(self.kernel)];
        add(&mut counts.stalls, &self.lost);
        add(of(all, counts.app), &self.lost);
    }
}

/// An application's stack, of a list that grows with the applications met.
pub(in crate::sm) fn of(all: &mut Vec<StallStack>, app: AppId) -> &mut StallStack {
    let place = app.index();
    if all.len() <= place {
        all.resize(place + 1, StallStack::default());
    }
    &mut all[place]
}

/// Adds one stack to another.
pub(in crate::sm) fn add(stalls: &mut StallStack, more: &StallStack) {
    for (sum, part) in stalls.iter_mut().zip(more) {
        *sum += part;
    }
}

/// One interval's share of a span: its issue slots, and its part of the empty slots
/// by what kept it from issuing. `gaps` are the shares of its cycles alone
/// without issue: fetch, registers, units; `slot_cycles` are those that an issue slot takes
/// at least.
pub(in crate::sm) fn lost_by(
    gaps: &[f64; 3],
    claim: &Claim,
    slot_cycles: f32,
    span: f64,
    per_weight: f64,
) -> StallStack {
    let mut stalls = StallStack::default();
    let rate = f64::from(claim.rate);
    let share = rate * f64::from(claim.density[ISSUE] * slot_cycles);
    stalls[Cause::Issued as usize] = span * share;
    let lost = per_weight * (1.0 - share);
    let parts = [rate * gaps[0], rate * gaps[1], 1.0 - rate + rate * gaps[2]];
    let sum: f64 = parts.iter().sum();
    let scale = if sum > 0.0 { lost / sum } else { 0.0 };
    stalls[Cause::InstructionBufferEmpty as usize] = scale * parts[0];
    stalls[Cause::ShortRaw as usize] = if sum > 0.0 { scale * parts[1] } else { lost };
    stalls[Cause::ExecutionResource as usize] = scale * parts[2];
    stalls
}

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

    /// As [`rebook`], at the end of an interval of a warp.
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
