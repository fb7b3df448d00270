//! One warp scheduler: an event-driven server for the intervals of its warps.
//!
//! Time moves only when the set of intervals changes; in between every interval runs
//! at a constant rate (see [`issue_bandwidth`]). Slot-cycles are booked to causes
//! at the same moments.

mod cggty;
mod contention;
mod gto;
pub(in crate::sm) mod issue_bandwidth;
pub(in crate::sm) mod issue_interval;
pub(in crate::sm) mod issue_stage;
mod lrr;
mod oldest;
pub(in crate::sm) mod policy;
pub(in crate::sm) mod stall_accounting;
mod two_level;

use gpumodel_core::units::{Cycle, to_usize};

use crate::counters::{KernelCounts, StallStack};
use crate::sm::scheduler::issue_bandwidth::{Claim, ISSUE, PerResource, RESOURCES};
use crate::sm::scheduler::issue_interval::{DONE, IssueIntervals};
use crate::sm::scheduler::issue_interval::{IssueInterval, Running};
use crate::sm::scheduler::stall_accounting::{Wait, Waiting, WarpLosses, of, rebook};
use policy::{L1Feedback, ReadyWarp, ReadyWarps, WarpScheduler};
use two_level::ActiveSet;

/// A cycle that never comes.
pub(in crate::sm) const NEVER: Cycle = Cycle::MAX;

/// One scheduler.
#[derive(Debug)]
pub(in crate::sm) struct Scheduler {
    policy: Box<dyn WarpScheduler>,
    capacity: PerResource,
    /// Cycles that an issue slot takes at least.
    slot_cycles: f32,
    /// Warps wait for each other, see [`contention`].
    contended: bool,
    /// The warps that it picks from, where these are not all.
    active: Option<ActiveSet>,
    /// By warp slot: the age of the warp there, and what the L1 has done for it; empty unless
    /// the policy sees it.
    l1: Vec<(u64, L1Feedback)>,
    intervals: IssueIntervals,
    waiting: Vec<Waiting>,
    /// Up to when intervals have moved on.
    since: Cycle,
    /// Up to when slot-cycles are booked.
    booked: Cycle,
    /// The next completion is outdated.
    stale: bool,
    /// The rates are outdated.
    unshared: bool,
    /// The warp that goes before all others.
    first: Option<u16>,
    /// Slot-cycles by cause, of each application that it has met.
    pub(in crate::sm) stalls: Vec<StallStack>,
    /// Of each application those slot-cycles of a busy resource that its full load/store queue
    /// or active set takes.
    pub(in crate::sm) blocked: Vec<f64>,
    /// The cycle of the scheduled completion, [`NEVER`] without one.
    pub(in crate::sm) due: Cycle,
    /// See [`Scheduler::hold`].
    held: bool,
    /// What each warp has lost, where stalls are attributed to instructions.
    losses: Option<Box<WarpLosses>>,
}

impl Scheduler {
    /// A scheduler that takes `capacity` of each resource per cycle.
    pub(in crate::sm) fn new(policy: Box<dyn WarpScheduler>, capacity: PerResource) -> Self {
        Self {
            active: policy
                .active_warps()
                .map(|places| ActiveSet::new(places, policy.oldest_enters())),
            intervals: IssueIntervals::new(policy.sharing()),
            policy,
            slot_cycles: 1.0 / capacity[ISSUE],
            capacity,
            contended: false,
            l1: Vec::new(),
            waiting: Vec::new(),
            since: 0,
            booked: 0,
            stale: false,
            unshared: false,
            first: None,
            stalls: Vec::new(),
            blocked: Vec::new(),
            due: NEVER,
            held: false,
            losses: None,
        }
    }

    /// Accounts slot-cycles by warp too, from now on.
    pub(in crate::sm) fn account_by_warp(&mut self) {
        self.losses = Some(Box::default());
    }

    /// Takes the slot-cycles that a warp has lost since they were taken last, up to the last
    /// accounting; those of the last cycle of its interval with `rest` only, else they belong to
    /// what the warp does next.
    pub(in crate::sm) fn take_losses(&mut self, warp: u16, rest: bool) -> StallStack {
        self.losses.as_mut().map_or_else(StallStack::default, |losses| losses.take(warp, rest))
    }

    /// The same, whose warps wait for each other where `contended`.
    pub(in crate::sm) fn contended(self, contended: bool) -> Self {
        Self { contended, ..self }
    }

    /// Moves every interval on to `now` and books the slot-cycles.
    pub(in crate::sm) fn advance(&mut self, now: Cycle, counts: &mut [KernelCounts]) {
        if now == self.since {
            return;
        }
        self.account(now, counts);
        self.intervals.advance(span(self.since, now));
        self.since = now;
    }

    /// Accounts the slot-cycles up to `now`. Intervals stay where they are: reading counters
    /// changes nothing of what follows, not even by rounding.
    pub(in crate::sm) fn account(&mut self, now: Cycle, counts: &mut [KernelCounts]) {
        debug_assert!(!self.stale, "rates are settled before time moves");
        let span = span(self.booked, now);
        self.booked = now;
        if span > 0.0 && !(self.intervals.is_empty() && self.waiting.is_empty()) {
            let slot_cycles = self.slot_cycles;
            let lost =
                self.intervals.book(span, slot_cycles, &self.waiting, &mut self.stalls, counts);
            self.book_blocked(lost, counts);
            if let Some(losses) = &mut self.losses {
                self.intervals.lose(span, slot_cycles, lost, losses);
            }
        }
    }

    /// Books the slot-cycles of warps that cannot issue an access, of which each takes
    /// `per_warp`.
    fn book_blocked(&mut self, per_warp: f64, counts: &[KernelCounts]) {
        for waiting in self.waiting.iter().filter(|waiting| waiting.blocked() > 0) {
            let app = counts[to_usize(waiting.kernel)].app.index();
            if self.blocked.len() <= app {
                self.blocked.resize(app + 1, 0.0);
            }
            self.blocked[app] += per_warp * f64::from(waiting.blocked());
        }
    }

    /// Starts an interval of `warp`, of which `ahead` cycles (alone) are already done.
    pub(in crate::sm) fn start(
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
        let is_access = interval.is_access;
        let running = Running { warp, kernel, left: cycles - ahead, gaps, is_access };
        #[allow(clippy::cast_possible_truncation, reason = "a small ratio")]
        let unevenness = (interval.unevenness / f64::from(interval.slots.max(1))) as f32;
        let claim = Claim::new(density, age).uneven(unevenness, interval.lasting);
        if !self.go_on(running, claim.conflicting(interval.conflicting())) {
            return;
        }
        let slots = ahead * f64::from(issue * self.slot_cycles);
        rebook(&mut counts.stalls, slots);
        rebook(of(&mut self.stalls, counts.app), slots);
        if let Some(losses) = &mut self.losses {
            losses.rebook_begin(warp, slots);
        }
    }

    /// Lets an interval run, or wait for a place among the active warps: then false.
    pub(in crate::sm) fn go_on(&mut self, running: Running, claim: Claim) -> bool {
        if let Some(active) = &mut self.active
            && !active.enter(running.warp)
        {
            active.wait(running, claim);
            self.note_wait(running.warp, running.kernel, Wait::Resource, true);
            return false;
        }
        self.run(running, claim);
        true
    }

    /// Takes what is left of a warp's interval out, if it has one; the time of the
    /// scheduler is the present.
    pub(in crate::sm) fn take_out(&mut self, warp: u16) -> Option<(Running, Claim)> {
        if let Some(waits) = self.active.as_mut().and_then(|active| active.take_out(warp)) {
            self.note_wait(warp, waits.0.kernel, Wait::Resource, false);
            return Some(waits);
        }
        let place = self.intervals.place_of(warp)?;
        self.touch();
        Some(self.intervals.remove(place))
    }

    fn run(&mut self, running: Running, claim: Claim) {
        let ready = ReadyWarp {
            warp: running.warp,
            age: claim.age,
            pace: claim.pace(),
            l1: self.l1_of(running.warp, claim.age),
        };
        let key = self.policy.key(&ready);
        self.stale = true;
        self.unshared |= self.intervals.enter(running, claim, key);
        // One for which nothing is left changes what others have only by going first.
        if !self.unshared {
            self.unshared = self.policy.first(ReadyWarps(&self.intervals)) != self.first;
        }
    }

    /// A warp waits for something that takes long, gives way to others because a unit is busy
    /// (`yields`), or has ended: where the scheduler has an active set, another one takes its
    /// place.
    pub(in crate::sm) fn leave(&mut self, warp: u16, yields: bool) {
        let active = self.active.as_mut();
        let Some((running, claim)) = active.and_then(|active| active.leave(warp, yields)) else {
            return;
        };
        self.run(running, claim);
        self.note_wait(running.warp, running.kernel, Wait::Resource, false);
    }

    /// Takes out the completed intervals: `(warp, cycles that it finished early)`,
    /// in order of their start.
    pub(in crate::sm) fn completed(
        &mut self,
        out: &mut Vec<(u16, f64)>,
        counts: &mut [KernelCounts],
    ) {
        let slot_cycles = self.slot_cycles;
        let (stalls, losses, before) = (&mut self.stalls, &mut self.losses, out.len());
        self.intervals.take_done(|interval, claim| {
            // A warp that no longer moves has done the rest at its own pace.
            let rate = if claim.rate > 0.0 { f64::from(claim.rate).max(DONE) } else { 1.0 };
            out.push((interval.warp, (-interval.left / rate).clamp(0.0, 1.0 - DONE)));
            let slots = interval.left.max(-1.0) * f64::from(claim.density[ISSUE] * slot_cycles);
            let counts = &mut counts[to_usize(interval.kernel)];
            rebook(&mut counts.stalls, slots);
            rebook(of(stalls, counts.app), slots);
            if let Some(losses) = losses {
                losses.rebook_end(interval.warp, slots);
            }
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
    pub(in crate::sm) fn is_unshared(&self) -> bool {
        self.unshared
    }

    /// The resources that the intervals ask for, one bit each.
    pub(in crate::sm) fn asks(&self) -> u32 {
        self.intervals.asks()
    }

    /// What the intervals use of a resource per cycle at their rates.
    pub(in crate::sm) fn use_of(&self, resource: usize) -> f32 {
        self.intervals.use_of(resource)
    }

    /// What it takes of a resource per cycle at most.
    pub(in crate::sm) fn limit_of(&self, resource: usize) -> f32 {
        self.capacity[resource]
    }

    /// Sets what it takes of a resource per cycle at most; its time is the present.
    pub(in crate::sm) fn limit(&mut self, resource: usize, most: f32) {
        if self.capacity[resource].to_bits() != most.to_bits() {
            self.capacity[resource] = most;
            self.touch();
        }
    }

    /// See [`Scheduler::hold`].
    pub(in crate::sm) fn is_held(&self) -> bool {
        self.held
    }

    /// Memory instructions have all of its operand collectors, or no longer; the time of the
    /// scheduler is the present. While they have, only memory instructions issue: GPGPU-Sim's
    /// `opndcoll_rfu_t::allocate_cu` gives them each collector that comes free before integer
    /// and matrix instructions. FP32 and special functions come before them there, and wait here.
    pub(in crate::sm) fn hold(&mut self, held: bool) {
        self.held = held;
        self.touch();
    }

    /// Sets the rates.
    pub(in crate::sm) fn share_out(&mut self) {
        if !std::mem::take(&mut self.unshared) {
            return;
        }
        self.first = self.policy.first(ReadyWarps(&self.intervals));
        if self.intervals.is_empty() {
            return self.intervals.halt();
        }
        let first = self.first.and_then(|warp| self.intervals.place_of(warp));
        if self.held {
            return self.intervals.move_accesses();
        }
        self.intervals.share(&self.capacity, first, self.contended);
    }

    /// Settles the rates and gives the cycle of the next completion.
    pub(in crate::sm) fn settle(&mut self, now: Cycle) -> Cycle {
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

    /// True when [`Scheduler::note_l1`] is to be called.
    pub(in crate::sm) fn sees_l1(&self) -> bool {
        self.policy.sees_l1()
    }

    /// A sector of a load of `warp` was found in the L1 (or under way), or not.
    pub(in crate::sm) fn note_l1(&mut self, warp: u16, found: bool) {
        let place = usize::from(warp);
        if self.l1.len() <= place {
            self.l1.resize(place + 1, (0, L1Feedback::default()));
        }
        let feedback = &mut self.l1[place].1;
        feedback.accesses += 1;
        feedback.misses += u32::from(!found);
    }

    /// What the L1 has done for a warp; a younger warp in its slot begins with nothing.
    fn l1_of(&mut self, warp: u16, age: u64) -> L1Feedback {
        let Some(known) = self.l1.get_mut(usize::from(warp)) else { return L1Feedback::default() };
        if known.0 != age {
            *known = (age, L1Feedback::default());
        }
        known.1
    }

    /// Books a warp of `kernel` as waiting (`true`) or no longer waiting; the time of the
    /// scheduler is the present.
    pub(in crate::sm) fn note_wait(&mut self, warp: u16, kernel: u32, wait: Wait, begins: bool) {
        if let Some(losses) = &mut self.losses {
            losses.note_wait(warp, begins.then_some(wait));
        }
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
    use super::policy::{ReadyWarp, Sharing, WarpScheduler, named};
    use super::{ISSUE, IssueInterval, NEVER, RESOURCES, Scheduler};
    use crate::KernelCounts;
    use crate::config::SchedulerPolicy;

    #[test]
    fn an_interval_left_running_is_scheduled_again() {
        let mut scheduler = Scheduler::new(named(SchedulerPolicy::Lrr, 0), [1.0; RESOURCES]);
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

    #[test]
    fn a_scheduler_whose_collectors_are_full_issues_memory_instructions_alone() {
        let mut scheduler = Scheduler::new(named(SchedulerPolicy::Lrr, 0), [1.0; RESOURCES]);
        let mut counts = [KernelCounts::default()];
        let arithmetic = IssueInterval { cycles: 2.0, slots: 2, ..IssueInterval::default() };
        let access =
            IssueInterval { cycles: 1.0, slots: 1, is_access: true, ..IssueInterval::default() };
        for (warp, interval) in [&arithmetic, &access, &access].into_iter().enumerate() {
            let warp = u16::try_from(warp).unwrap();
            scheduler.start(warp, 0, u64::from(warp), interval, 0.0, &mut counts[0]);
        }
        scheduler.hold(true);
        let mut done = Vec::new();
        assert_eq!(scheduler.settle(0), 2, "one per cycle, in turn");
        scheduler.advance(2, &mut counts);
        scheduler.completed(&mut done, &mut counts);
        assert_eq!(done.iter().map(|&(warp, _)| warp).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(scheduler.settle(2), NEVER, "arithmetic waits for a collector");
        scheduler.hold(false);
        assert_eq!(scheduler.settle(9), 11);
    }

    /// Warps that the L1 served best go first, as cache-conscious schedulers have it.
    #[derive(Debug)]
    struct FewestMisses;

    impl WarpScheduler for FewestMisses {
        fn sharing(&self) -> Sharing {
            Sharing::InOrder
        }

        fn key(&self, ready: &ReadyWarp) -> u64 {
            u64::from(ready.l1.misses)
        }

        fn sees_l1(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_policy_may_order_warps_by_what_the_l1_did_for_them() {
        let mut scheduler = Scheduler::new(Box::new(FewestMisses), [1.0; RESOURCES]);
        let mut counts = [KernelCounts::default()];
        let interval = IssueInterval { cycles: 10.0, slots: 10, ..IssueInterval::default() };
        let first = |scheduler: &Scheduler| {
            let place = scheduler.intervals.first_in_order().expect("two are ready");
            scheduler.intervals.at(place).warp
        };
        for warp in [0, 1] {
            scheduler.start(warp, 0, u64::from(warp), &interval, 0.0, &mut counts[0]);
        }
        assert_eq!(first(&scheduler), 0, "equal ones as they became ready");
        scheduler.settle(0);
        scheduler.note_l1(0, false);
        scheduler.note_l1(1, true);
        for warp in [0, 1] {
            scheduler.take_out(warp).expect("it is ready");
        }
        for warp in [0, 1] {
            scheduler.start(warp, 0, u64::from(warp), &interval, 0.0, &mut counts[0]);
        }
        assert_eq!(first(&scheduler), 1, "the other one missed");
        assert_eq!(scheduler.settle(0), 10);
        assert!(scheduler.use_of(ISSUE) > 0.99, "one takes all slots");
        // A younger warp in the slot begins with nothing.
        scheduler.take_out(0).expect("it is ready");
        scheduler.start(0, 0, 7, &interval, 0.0, &mut counts[0]);
        assert_eq!(scheduler.l1_of(0, 7).misses, 0);
    }
}
