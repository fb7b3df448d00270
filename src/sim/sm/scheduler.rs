//! One warp scheduler: an event-driven server for the intervals of its warps.
//!
//! Time moves only when the set of intervals changes; in between every interval runs
//! at a constant rate (see [`super::issue_bandwidth`]). Slot-cycles are booked to causes
//! at the same moments.

use crate::config::SchedulerPolicy;
use gpumodel_core::units::Cycle;

use super::active_set::ActiveSet;
use super::issue_bandwidth::{Claim, ISSUE, PerResource, RESOURCES};
use super::issue_interval::{IssueInterval, Running};
use super::issue_intervals::{DONE, IssueIntervals};
use super::stall_accounting::{Wait, Waiting, of, rebook};
use crate::counters::{KernelCounts, StallStack};

/// A cycle that never comes.
pub(super) const NEVER: Cycle = Cycle::MAX;

/// One scheduler.
#[derive(Debug)]
pub(super) struct Scheduler {
    policy: SchedulerPolicy,
    capacity: PerResource,
    /// See [`ease`].
    knee_loss: f32,
    /// The warps that it picks from, where these are not all.
    active: Option<ActiveSet>,
    /// The warp that goes first under greedy-then-oldest until it blocks.
    greedy: Option<u16>,
    intervals: IssueIntervals,
    waiting: Vec<Waiting>,
    /// Up to when intervals have moved on.
    since: Cycle,
    /// Up to when slot-cycles are booked.
    booked: Cycle,
    /// The next completion must be found anew, and the rates.
    stale: bool,
    unshared: bool,
    /// Slot-cycles by cause, of each application that it has met.
    pub(super) stalls: Vec<StallStack>,
    /// The cycle of the scheduled completion, [`NEVER`] without one.
    pub(super) due: Cycle,
    /// See [`Scheduler::hold`].
    held: bool,
}

impl Scheduler {
    /// A scheduler that takes `capacity` of each resource per cycle; a two-level
    /// one picks from `active_warps`.
    pub(super) fn new(policy: SchedulerPolicy, active_warps: u32, capacity: PerResource) -> Self {
        let two_level = policy == SchedulerPolicy::TwoLevel;
        Self {
            policy,
            capacity,
            knee_loss: 0.0,
            active: two_level.then(|| ActiveSet::new(active_warps)),
            greedy: None,
            intervals: IssueIntervals::new(policy),
            waiting: Vec::new(),
            since: 0,
            booked: 0,
            stale: false,
            unshared: false,
            stalls: Vec::new(),
            due: NEVER,
            held: false,
        }
    }

    /// The same, losing this share of its throughput where the demand on a
    /// resource equals its capacity.
    pub(super) fn losing(self, knee_loss: f32) -> Self {
        Self { knee_loss, ..self }
    }

    /// Moves every interval on to `now` and books the slot-cycles.
    pub(super) fn advance(&mut self, now: Cycle, counts: &mut [KernelCounts]) {
        if now == self.since {
            return;
        }
        self.book(now, counts);
        self.intervals.advance(span(self.since, now));
        self.since = now;
    }

    /// Books the slot-cycles up to `now`. Intervals stay where they are: who looks at the
    /// books changes nothing of what comes, not even by rounding.
    pub(super) fn book(&mut self, now: Cycle, counts: &mut [KernelCounts]) {
        debug_assert!(!self.stale, "rates are settled before time moves");
        let span = span(self.booked, now);
        self.booked = now;
        if span > 0.0 && !(self.intervals.is_empty() && self.waiting.is_empty()) {
            let width = self.capacity[ISSUE];
            self.intervals.book(span, width, &self.waiting, &mut self.stalls, counts);
        }
    }

    /// Starts an interval of `warp`, of which `ahead` cycles (alone) are already done.
    pub(super) fn start(
        &mut self,
        warp: u16,
        kernel: u32,
        age: u64,
        interval: &IssueInterval,
        ahead: f64,
        counts: &mut KernelCounts,
    ) {
        let cycles = interval.cycles.max(DONE);
        let mut density = [0.0; RESOURCES];
        #[allow(clippy::cast_possible_truncation, reason = "a density is a small ratio")]
        for (slot, &asked) in density.iter_mut().zip(&interval.demand) {
            *slot = (f64::from(asked) / cycles) as f32;
        }
        #[allow(clippy::cast_possible_truncation, reason = "a density is a small ratio")]
        let issue = (f64::from(interval.slots) / cycles) as f32;
        density[ISSUE] = issue;
        let gap = |n: u32| f64::from(n) / cycles;
        let gaps =
            [gap(interval.gaps.fetch), gap(interval.gaps.registers), gap(interval.gaps.units)];
        let running = Running { warp, kernel, left: cycles - ahead, gaps };
        if !self.go_on(running, Claim::new(density, age)) {
            return;
        }
        let slots = ahead * f64::from(issue / self.capacity[ISSUE]);
        rebook(&mut counts.stalls, slots);
        rebook(of(&mut self.stalls, counts.app), slots);
    }

    /// Lets an interval run, or wait for a place among the active warps: then false.
    pub(super) fn go_on(&mut self, running: Running, claim: Claim) -> bool {
        if let Some(active) = &mut self.active
            && !active.enter(running.warp)
        {
            active.wait(running, claim);
            self.note_wait(running.kernel, Wait::Resource, true);
            return false;
        }
        self.run(running, claim);
        true
    }

    /// Takes what is left of a warp's interval out, if it has one; the time of the
    /// scheduler is the present.
    pub(super) fn take_out(&mut self, warp: u16) -> Option<(Running, Claim)> {
        if let Some(waits) = self.active.as_mut().and_then(|active| active.take_out(warp)) {
            self.note_wait(waits.0.kernel, Wait::Resource, false);
            return Some(waits);
        }
        let place = self.intervals.place_of(warp)?;
        self.touch();
        Some(self.intervals.remove(place))
    }

    fn run(&mut self, running: Running, claim: Claim) {
        self.intervals.enter(running, claim);
        self.touch();
    }

    /// A warp waits for something that takes long, or has ended: where the
    /// scheduler has an active set, another one takes its place.
    pub(super) fn leave(&mut self, warp: u16) {
        let Some(next) = self.active.as_mut().and_then(|active| active.leave(warp)) else { return };
        let (running, claim) = next;
        self.run(running, claim);
        self.note_wait(running.kernel, Wait::Resource, false);
    }

    /// Takes out the completed intervals: `(warp, cycles that it finished early)`,
    /// in order of their start.
    pub(super) fn completed(&mut self, out: &mut Vec<(u16, f64)>, counts: &mut [KernelCounts]) {
        let width = self.capacity[ISSUE];
        let (stalls, before) = (&mut self.stalls, out.len());
        self.intervals.take_done(|interval, claim| {
            // Who no longer moves has done what is beyond at its own pace.
            let rate = if claim.rate > 0.0 { f64::from(claim.rate).max(DONE) } else { 1.0 };
            out.push((interval.warp, (-interval.left / rate).clamp(0.0, 1.0 - DONE)));
            let slots = interval.left.max(-1.0) * f64::from(claim.density[ISSUE] / width);
            let counts = &mut counts[gpumodel_core::units::to_usize(interval.kernel)];
            rebook(&mut counts.stalls, slots);
            rebook(of(stalls, counts.app), slots);
        });
        if out.len() > before {
            self.touch();
        }
    }

    /// The set of intervals or what they may have has changed.
    fn touch(&mut self) {
        self.stale = true;
        self.unshared = true;
    }

    /// True when the rates hold no longer.
    pub(super) fn is_stale(&self) -> bool {
        self.stale
    }

    /// True when an interval asks for the resource.
    pub(super) fn asks_for(&self, resource: usize) -> bool {
        self.intervals.asks_for(resource)
    }

    /// What the intervals use of a resource per cycle at their rates.
    pub(super) fn use_of(&self, resource: usize) -> f32 {
        self.intervals.use_of(resource)
    }

    /// What it takes of a resource per cycle at most.
    pub(super) fn limit_of(&self, resource: usize) -> f32 {
        self.capacity[resource]
    }

    /// Sets what it takes of a resource per cycle at most; its time is the present.
    pub(super) fn limit(&mut self, resource: usize, most: f32) {
        if self.capacity[resource].to_bits() != most.to_bits() {
            self.capacity[resource] = most;
            self.touch();
        }
    }

    /// Memory instructions have all operand collectors, or no longer; the time of the
    /// scheduler is the present. While they have, nothing issues, unless the warps
    /// could fill every slot: then one of them has each collector that comes free.
    pub(super) fn hold(&mut self, held: bool) {
        self.held = held;
        self.touch();
    }

    /// Sets the rates.
    pub(super) fn share_out(&mut self) {
        if !std::mem::take(&mut self.unshared) {
            return;
        }
        let first = if self.policy == SchedulerPolicy::Gto { self.choose_greedy() } else { None };
        if self.held && self.intervals.pace() < self.capacity[ISSUE] {
            return self.intervals.halt();
        }
        self.intervals.share(&self.capacity, first, self.knee_loss);
    }

    /// Settles the rates and gives the cycle of the next completion.
    pub(super) fn settle(&mut self, now: Cycle) -> Cycle {
        // A completion that came a rounding error too early leaves its interval
        // running with nothing scheduled.
        let missed = self.due == NEVER && !self.intervals.is_empty();
        if !self.stale && !missed {
            return self.due;
        }
        self.stale = false;
        self.share_out();
        let soonest = self.intervals.soonest();
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

    /// Greedy-then-oldest: who went first goes on while it has something to
    /// issue, then it is the oldest one's turn. The place of its interval.
    fn choose_greedy(&mut self) -> Option<usize> {
        let held = self.greedy.and_then(|warp| self.intervals.place_of(warp));
        let first = held.or_else(|| self.intervals.oldest());
        self.greedy = first.map(|place| self.intervals.at(place).warp);
        first
    }

    /// Books a warp of `kernel` as waiting (`true`) or no longer waiting.
    pub(super) fn note_wait(&mut self, kernel: u32, wait: Wait, begins: bool) {
        let place = self.waiting.iter().position(|w| w.kernel == kernel).unwrap_or_else(|| {
            self.waiting.push(Waiting::none(kernel));
            self.waiting.len() - 1
        });
        let row = &mut self.waiting[place];
        row.note(wait, begins);
        if row.warps() == 0 {
            self.waiting.swap_remove(place);
        }
    }
}

/// Cycles from one to another.
#[allow(clippy::cast_precision_loss, reason = "spans between events are short")]
fn span(from: Cycle, to: Cycle) -> f64 {
    (to - from) as f64
}

#[cfg(test)]
mod tests {
    use super::{IssueInterval, NEVER, RESOURCES, Scheduler};
    use crate::KernelCounts;
    use crate::config::SchedulerPolicy;

    #[test]
    fn a_burst_left_running_is_scheduled_again() {
        let mut scheduler = Scheduler::new(SchedulerPolicy::Lrr, 0, [1.0; RESOURCES]);
        let mut counts = vec![KernelCounts::default()];
        let interval = IssueInterval { cycles: 10.0, slots: 5, ..IssueInterval::default() };
        scheduler.start(0, 0, 1, &interval, 0.0, &mut counts[0]);
        assert_eq!(scheduler.settle(0), 10);
        // The completion is looked for, and not found.
        scheduler.due = NEVER;
        scheduler.advance(9, &mut counts);
        scheduler.completed(&mut Vec::new(), &mut counts);
        assert_eq!(scheduler.settle(9), 10);
    }
}
