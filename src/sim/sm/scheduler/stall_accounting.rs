//! Slot-cycles by cause: what an interval and the waiting warps are booked with.

use gpumodel_core::units::{AppId, to_usize};

use crate::counters::{Cause, KernelCounts, StallStack};
use crate::sm::scheduler::issue_bandwidth::{Claim, ISSUE};

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
/// without issue: fetch, registers, units.
pub(in crate::sm) fn lost_by(
    gaps: &[f64; 3],
    claim: &Claim,
    width: f32,
    span: f64,
    per_weight: f64,
) -> StallStack {
    let mut stalls = StallStack::default();
    let rate = f64::from(claim.rate);
    let share = rate * f64::from(claim.density[ISSUE] / width);
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
