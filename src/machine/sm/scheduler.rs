//! One warp scheduler: an event-driven server for the bursts of its warps.
//!
//! Time moves only when the set of bursts changes; in between every burst runs
//! at a constant rate (see [`super::share`]). Slot-cycles are booked to causes
//! at the same moments.

use crate::spec::SchedulerPolicy;
use crate::units::Cycle;

use super::super::counters::{Cause, KernelCounts, StallStack};
use super::super::profile::{Demand, Gaps};
use super::share::{Claim, ISSUE, PerResource, RESOURCES, ease, share};

/// A cycle that never comes.
pub(super) const NEVER: Cycle = Cycle::MAX;

/// Work below this many cycles is done: far above rounding, far below a cycle.
const DONE: f64 = 1e-4;

/// What a warp hands to its scheduler: instructions up to its next event.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Burst {
    /// Cycles alone.
    pub(super) cycles: f64,
    /// Instructions.
    pub(super) slots: u32,
    /// Cycles asked of each unit.
    pub(super) demand: [u32; RESOURCES - 1],
    /// Cycles without issue, by cause.
    pub(super) gaps: Gaps,
}

impl Burst {
    /// Adds a step to the burst.
    pub(super) fn add(&mut self, cycles: f32, slots: u32, demand: &Demand, gaps: Gaps) {
        self.cycles += f64::from(cycles);
        self.slots += slots;
        for (sum, &asked) in self.demand.iter_mut().zip(demand) {
            *sum += u32::from(asked);
        }
        self.gaps.fetch += gaps.fetch;
        self.gaps.registers += gaps.registers;
        self.gaps.units += gaps.units;
    }
}

/// A burst under way.
#[derive(Clone, Copy, Debug)]
struct Running {
    warp: u16,
    kernel: u32,
    left: f64,
    /// Shares of the burst's cycles alone without issue: fetch, registers, units.
    gaps: [f64; 3],
}

/// Warps of one kernel that wait, by cause.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    kernel: u32,
    memory: u32,
    barrier: u32,
    resource: u32,
    fetch: u32,
}

impl Waiting {
    fn warps(&self) -> u32 {
        self.memory + self.barrier + self.resource + self.fetch
    }

    /// Their slot-cycles, of which each takes `per_warp`.
    fn lost(&self, per_warp: f64) -> StallStack {
        let mut stalls = StallStack::default();
        stalls[Cause::LongMemoryLatency as usize] = per_warp * f64::from(self.memory);
        stalls[Cause::Barrier as usize] = per_warp * f64::from(self.barrier);
        stalls[Cause::ExecutionResource as usize] = per_warp * f64::from(self.resource);
        stalls[Cause::InstructionBufferEmpty as usize] = per_warp * f64::from(self.fetch);
        stalls
    }
}

/// Why a warp has nothing to issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// An outstanding access.
    Memory,
    /// A barrier.
    Barrier,
    /// The load/store queue is full.
    Resource,
    /// Its next instructions.
    Fetch,
}

/// One scheduler.
#[derive(Debug)]
pub(super) struct Scheduler {
    policy: SchedulerPolicy,
    capacity: PerResource,
    /// See [`ease`].
    knee_loss: f32,
    running: Vec<Running>,
    claims: Vec<Claim>,
    waiting: Vec<Waiting>,
    since: Cycle,
    stale: bool,
    /// Room for sharing out.
    order: Vec<usize>,
    /// Slot-cycles by cause, of all launches.
    pub(super) stalls: StallStack,
    /// The cycle of the scheduled completion, [`NEVER`] without one.
    pub(super) due: Cycle,
}

impl Scheduler {
    /// A scheduler that takes `capacity` of each resource per cycle.
    pub(super) fn new(policy: SchedulerPolicy, capacity: PerResource) -> Self {
        Self {
            policy,
            capacity,
            knee_loss: 0.0,
            running: Vec::new(),
            claims: Vec::new(),
            waiting: Vec::new(),
            since: 0,
            stale: false,
            order: Vec::new(),
            stalls: StallStack::default(),
            due: NEVER,
        }
    }

    /// The same, losing this share of its throughput where the demand on a
    /// resource equals its capacity.
    pub(super) fn losing(self, knee_loss: f32) -> Self {
        Self { knee_loss, ..self }
    }

    /// Moves every burst on to `now` and books the slot-cycles.
    pub(super) fn advance(&mut self, now: Cycle, counts: &mut [KernelCounts]) {
        if now == self.since {
            return;
        }
        debug_assert!(!self.stale, "rates are settled before time moves");
        #[allow(clippy::cast_precision_loss, reason = "spans between events are short")]
        let span = (now - self.since) as f64;
        self.since = now;
        if self.running.is_empty() && self.waiting.is_empty() {
            return;
        }
        self.book(span, counts);
        for (burst, claim) in self.running.iter_mut().zip(&self.claims) {
            burst.left -= span * f64::from(claim.rate);
        }
    }

    fn book(&mut self, span: f64, counts: &mut [KernelCounts]) {
        let mut weights = 0.0;
        let mut issued = 0.0;
        for claim in &self.claims {
            let share = f64::from(claim.rate * claim.density[ISSUE] / self.capacity[ISSUE]);
            issued += share;
            weights += 1.0 - share;
        }
        weights += self.waiting.iter().map(|w| f64::from(w.warps())).sum::<f64>();
        let idle = (1.0 - issued).max(0.0);
        let per_weight = if weights > 0.0 { span * idle / weights } else { 0.0 };
        for (burst, claim) in self.running.iter().zip(&self.claims) {
            let lost = lost_by(burst, claim, self.capacity[ISSUE], span, per_weight);
            add(&mut counts[crate::units::to_usize(burst.kernel)].stalls, &lost);
            add(&mut self.stalls, &lost);
        }
        for waiting in &self.waiting {
            let lost = waiting.lost(per_weight);
            add(&mut counts[crate::units::to_usize(waiting.kernel)].stalls, &lost);
            add(&mut self.stalls, &lost);
        }
    }

    /// Starts a burst of `warp`, of which `ahead` cycles (alone) are already done.
    pub(super) fn start(
        &mut self,
        warp: u16,
        kernel: u32,
        age: u64,
        burst: &Burst,
        ahead: f64,
        stalls: &mut StallStack,
    ) {
        let cycles = burst.cycles.max(DONE);
        let mut density = [0.0; RESOURCES];
        #[allow(clippy::cast_possible_truncation, reason = "a density is a small ratio")]
        for (slot, &asked) in density.iter_mut().zip(&burst.demand) {
            *slot = (f64::from(asked) / cycles) as f32;
        }
        #[allow(clippy::cast_possible_truncation, reason = "a density is a small ratio")]
        let issue = (f64::from(burst.slots) / cycles) as f32;
        density[ISSUE] = issue;
        let gap = |n: u32| f64::from(n) / cycles;
        let gaps = [gap(burst.gaps.fetch), gap(burst.gaps.registers), gap(burst.gaps.units)];
        self.running.push(Running { warp, kernel, left: cycles - ahead, gaps });
        self.claims.push(Claim { density, age, rate: 0.0 });
        self.stale = true;
        let slots = ahead * f64::from(issue / self.capacity[ISSUE]);
        rebook(stalls, slots);
        rebook(&mut self.stalls, slots);
    }

    /// Takes out the completed bursts: `(warp, cycles that it finished early)`,
    /// in order of their start.
    pub(super) fn completed(&mut self, out: &mut Vec<(u16, f64)>, counts: &mut [KernelCounts]) {
        let mut place = 0;
        while place < self.running.len() {
            let burst = self.running[place];
            if burst.left > DONE {
                place += 1;
                continue;
            }
            let rate = f64::from(self.claims[place].rate).max(DONE);
            let early = (-burst.left / rate).clamp(0.0, 1.0 - DONE);
            out.push((burst.warp, early));
            let share = self.claims[place].density[ISSUE] / self.capacity[ISSUE];
            let slots = burst.left.max(-1.0) * f64::from(share);
            rebook(&mut counts[crate::units::to_usize(burst.kernel)].stalls, slots);
            rebook(&mut self.stalls, slots);
            self.running.remove(place);
            self.claims.remove(place);
            self.stale = true;
        }
    }

    /// Settles the rates and gives the cycle of the next completion.
    pub(super) fn settle(&mut self, now: Cycle) -> Cycle {
        // A completion that came a rounding error too early leaves its burst
        // running with nothing scheduled.
        let missed = self.due == NEVER && !self.running.is_empty();
        if !self.stale && !missed {
            return self.due;
        }
        self.stale = false;
        share(&mut self.claims, &self.capacity, self.policy, &mut self.order);
        ease(&mut self.claims, &self.capacity, self.knee_loss);
        let left = |(burst, claim): (&Running, &Claim)| {
            (burst.left - DONE).max(0.0) / f64::from(claim.rate)
        };
        let soonest = self.running.iter().zip(&self.claims).map(left).fold(f64::INFINITY, f64::min);
        self.due = if soonest.is_finite() {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "finite, not negative"
            )]
            let cycles = soonest.ceil() as Cycle;
            now + cycles.max(u64::from(soonest > 0.0))
        } else {
            NEVER
        };
        self.due
    }

    /// Books a warp of `kernel` as waiting (`true`) or no longer waiting.
    pub(super) fn note_wait(&mut self, kernel: u32, wait: Wait, begins: bool) {
        let place = self.waiting.iter().position(|w| w.kernel == kernel).unwrap_or_else(|| {
            self.waiting.push(Waiting { kernel, memory: 0, barrier: 0, resource: 0, fetch: 0 });
            self.waiting.len() - 1
        });
        let row = &mut self.waiting[place];
        let count = match wait {
            Wait::Memory => &mut row.memory,
            Wait::Barrier => &mut row.barrier,
            Wait::Resource => &mut row.resource,
            Wait::Fetch => &mut row.fetch,
        };
        *count = if begins { *count + 1 } else { *count - 1 };
        if row.warps() == 0 {
            self.waiting.swap_remove(place);
        }
    }
}

/// Moves slot-cycles between `Issued` and `ShortRaw`: events fall on whole
/// cycles, bursts end within them; what a burst did not issue in its last cycle
/// is taken back, what the next one has already issued there is added.
fn rebook(stalls: &mut StallStack, slots: f64) {
    stalls[Cause::Issued as usize] += slots;
    stalls[Cause::ShortRaw as usize] -= slots;
}

/// Adds one stack to another.
fn add(stalls: &mut StallStack, more: &StallStack) {
    for (sum, part) in stalls.iter_mut().zip(more) {
        *sum += part;
    }
}

/// One burst's share of a span: its issue slots, and its part of the empty slots
/// by what kept it from issuing.
fn lost_by(burst: &Running, claim: &Claim, width: f32, span: f64, per_weight: f64) -> StallStack {
    let mut stalls = StallStack::default();
    let rate = f64::from(claim.rate);
    let share = rate * f64::from(claim.density[ISSUE] / width);
    stalls[Cause::Issued as usize] = span * share;
    let lost = per_weight * (1.0 - share);
    let parts = [rate * burst.gaps[0], rate * burst.gaps[1], 1.0 - rate + rate * burst.gaps[2]];
    let sum: f64 = parts.iter().sum();
    let scale = if sum > 0.0 { lost / sum } else { 0.0 };
    stalls[Cause::InstructionBufferEmpty as usize] = scale * parts[0];
    stalls[Cause::ShortRaw as usize] = if sum > 0.0 { scale * parts[1] } else { lost };
    stalls[Cause::ExecutionResource as usize] = scale * parts[2];
    stalls
}

#[cfg(test)]
mod tests {
    use super::{Burst, NEVER, RESOURCES, Scheduler};
    use crate::machine::KernelCounts;
    use crate::spec::SchedulerPolicy;

    #[test]
    fn a_burst_left_running_is_scheduled_again() {
        let mut scheduler = Scheduler::new(SchedulerPolicy::Lrr, [1.0; RESOURCES]);
        let mut counts = vec![KernelCounts::default()];
        let burst = Burst { cycles: 10.0, slots: 5, ..Burst::default() };
        scheduler.start(0, 0, 1, &burst, 0.0, &mut counts[0].stalls);
        assert_eq!(scheduler.settle(0), 10);
        // The completion is looked for, and not found.
        scheduler.due = NEVER;
        scheduler.advance(9, &mut counts);
        scheduler.completed(&mut Vec::new(), &mut counts);
        assert_eq!(scheduler.settle(9), 10);
    }
}
