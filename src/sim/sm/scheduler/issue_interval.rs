//! What a warp hands to its scheduler, and what is left of it.

use crate::bits::bits;
use crate::counters::{KernelCounts, StallStack};
use crate::interval::{Gaps, OPERANDS, Step};
use crate::sm::scheduler::contention::contend;
use crate::sm::scheduler::issue_bandwidth::{
    Claim, ISSUE, PerResource, RESOURCES, fits, max_min_fair, one_by_one,
};
use crate::sm::scheduler::policy::Sharing;
use crate::sm::scheduler::stall_accounting::{Tally, Wait, Waiting, WarpLosses, lost_by};

/// What a warp hands to its scheduler: instructions up to its next event.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sm) struct IssueInterval {
    /// Cycles alone.
    pub(in crate::sm) cycles: f64,
    /// The sum over instructions of [`Step::unevenness`].
    pub(in crate::sm) unevenness: f64,
    /// See [`Step::lasting`].
    pub(in crate::sm) lasting: u16,
    /// The sum of [`Step::conflicts`].
    pub(in crate::sm) conflicts: u32,
    /// Instructions.
    pub(in crate::sm) slots: u32,
    /// Cycles asked of each unit.
    pub(in crate::sm) demand: [u32; ISSUE],
    /// Cycles without issue, by cause.
    pub(in crate::sm) gaps: Gaps,
    /// It is one memory instruction.
    pub(in crate::sm) is_access: bool,
}

impl IssueInterval {
    /// Adds a step to the interval.
    pub(in crate::sm) fn add(&mut self, step: &Step) {
        let Step { cycles, unevenness, lasting, conflicts, slots, ref demand, gaps, .. } = *step;
        self.lasting |= lasting;
        self.conflicts += u32::from(conflicts);
        self.cycles += f64::from(cycles);
        self.unevenness += f64::from(unevenness) * f64::from(slots);
        self.slots += slots;
        for (sum, &asked) in self.demand.iter_mut().zip(demand) {
            *sum += u32::from(asked);
        }
        self.gaps.fetch += gaps.fetch;
        self.gaps.registers += gaps.registers;
        self.gaps.units += gaps.units;
    }

    /// Part of its use of the operand banks by instructions that occupy them for several cycles.
    pub(in crate::sm) fn conflicting(&self) -> f32 {
        let all = f64::from(self.demand[OPERANDS].max(1));
        #[allow(clippy::cast_possible_truncation, reason = "0 to 1")]
        let part = (f64::from(self.conflicts) / all) as f32;
        part.min(1.0)
    }

    /// Adds what has been added since it was as in `before`, `times` more times.
    pub(in crate::sm) fn add_since(&mut self, before: &Self, times: u32) {
        self.cycles += f64::from(times) * (self.cycles - before.cycles);
        self.unevenness += f64::from(times) * (self.unevenness - before.unevenness);
        let more = |sum: &mut u32, before: u32| *sum += times * (*sum - before);
        more(&mut self.slots, before.slots);
        more(&mut self.conflicts, before.conflicts);
        for (sum, &before) in self.demand.iter_mut().zip(&before.demand) {
            more(sum, before);
        }
        more(&mut self.gaps.fetch, before.gaps.fetch);
        more(&mut self.gaps.registers, before.gaps.registers);
        more(&mut self.gaps.units, before.gaps.units);
    }
}

/// An interval under way.
#[derive(Clone, Copy, Debug)]
pub(in crate::sm) struct Running {
    pub(in crate::sm) warp: u16,
    pub(in crate::sm) kernel: u32,
    /// Cycles alone that are left.
    pub(in crate::sm) left: f64,
    /// Shares of the interval's cycles alone without issue: fetch, registers, units.
    pub(in crate::sm) gaps: [f64; 3],
    /// See [`IssueInterval::is_access`].
    pub(in crate::sm) is_access: bool,
}

impl Running {
    /// The same interval of a warp that has moved to another slot.
    pub(in crate::sm) fn of(self, warp: u16) -> Self {
        Self { warp, ..self }
    }
}

/// Work below this many cycles is done: far above rounding, far below a cycle.
pub(in crate::sm) const DONE: f64 = 1e-4;

/// The intervals of one scheduler, in order of their start.
#[derive(Debug)]
pub(in crate::sm) struct IssueIntervals {
    sharing: Sharing,
    running: Vec<Running>,
    claims: Vec<Claim>,
    /// Their warps, side by side to be looked through.
    warps: Vec<u16>,
    turns: IssueOrder,
    /// Places of those that move, in order.
    moving: Vec<usize>,
    /// Claims on each resource.
    users: [u16; RESOURCES],
    /// The resources that have any, one bit each.
    used: u32,
    /// What all ask for, in 2^-32 per cycle: sums that do not drift.
    asked: [i64; RESOURCES],
    /// How many there are of each kernel.
    present: Vec<(u32, u32)>,
    /// Some may have nothing left to do, whether they move or not.
    some_done: bool,
    /// The first turn for which no issue slot is left; `None` where some is left, or what each
    /// has depends on all.
    starved: Option<usize>,
    /// Room for sharing out, and for places.
    order: Vec<usize>,
}

impl IssueIntervals {
    /// None, for a scheduler whose warps share in this way.
    pub(in crate::sm) fn new(sharing: Sharing) -> Self {
        Self {
            sharing,
            running: Vec::new(),
            claims: Vec::new(),
            warps: Vec::new(),
            turns: IssueOrder::default(),
            moving: Vec::new(),
            users: [0; RESOURCES],
            used: 0,
            asked: [0; RESOURCES],
            present: Vec::new(),
            some_done: false,
            starved: None,
            order: Vec::new(),
        }
    }

    /// True without any.
    pub(in crate::sm) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Takes an interval in, which does not move yet; `key` is its place in the order. False when
    /// nothing is left for it and the rates of the others hold, while the same one goes first.
    pub(in crate::sm) fn enter(&mut self, running: Running, mut claim: Claim, key: u64) -> bool {
        claim.rate = 0.0;
        let turn = self.turns.enter(&claim, self.claims.len(), key);
        let shares_again = self.starved.is_none_or(|starved| turn < starved);
        self.count(&claim, running.kernel, 1);
        self.some_done |= running.left <= DONE;
        self.warps.push(running.warp);
        self.running.push(running);
        self.claims.push(claim);
        shares_again
    }

    /// Takes out the interval at a place; those behind it move up.
    pub(in crate::sm) fn remove(&mut self, place: usize) -> (Running, Claim) {
        let (running, claim) = (take(&mut self.running, place), take(&mut self.claims, place));
        take(&mut self.warps, place);
        self.turns.leave(place);
        if let Some(at) = self.moving.iter().position(|&other| other == place) {
            take(&mut self.moving, at);
        }
        for other in &mut self.moving {
            *other -= usize::from(*other > place);
        }
        self.count(&claim, running.kernel, -1);
        (running, claim)
    }

    fn count(&mut self, claim: &Claim, kernel: u32, more: i32) {
        self.used |= claim.asks();
        for resource in bits(claim.asks()).take_while(|&resource| resource < RESOURCES) {
            let users = &mut self.users[resource];
            *users = users.wrapping_add_signed(i16::from(more > 0) * 2 - 1);
            self.used ^= if *users == 0 { 1 << resource } else { 0 };
            self.asked[resource] += i64::from(more) * fixed(claim.density[resource]);
        }
        let place = self.present.iter().position(|&(other, _)| other == kernel);
        let place = place.unwrap_or_else(|| {
            self.present.push((kernel, 0));
            self.present.len() - 1
        });
        let number = &mut self.present[place].1;
        *number = number.wrapping_add_signed(more);
        if *number == 0 {
            self.present.swap_remove(place);
        }
    }

    /// The place of a warp's interval.
    pub(in crate::sm) fn place_of(&self, warp: u16) -> Option<usize> {
        self.warps.iter().position(|&other| other == warp)
    }

    /// The interval at a place.
    pub(in crate::sm) fn at(&self, place: usize) -> &Running {
        &self.running[place]
    }

    /// The place of the interval that is first in the policy's order.
    pub(in crate::sm) fn first_in_order(&self) -> Option<usize> {
        self.turns.places().next()
    }

    /// The resources that they ask for, one bit each.
    pub(in crate::sm) fn asks(&self) -> u32 {
        self.used
    }

    /// What they use of a resource per cycle at their rates.
    pub(in crate::sm) fn use_of(&self, resource: usize) -> f32 {
        if self.users[resource] == 0 {
            return 0.0;
        }
        self.moving().map(|(_, claim)| claim.density[resource] * claim.rate).sum()
    }

    /// Those that move.
    fn moving(&self) -> impl Iterator<Item = (&Running, &Claim)> {
        self.moving.iter().map(|&place| (&self.running[place], &self.claims[place]))
    }

    /// Lets none move.
    pub(in crate::sm) fn halt(&mut self) {
        self.starved = None;
        for place in self.moving.drain(..) {
            self.claims[place].rate = 0.0;
        }
    }

    /// Lets those move alone that are memory instructions, at equal rates.
    pub(in crate::sm) fn move_accesses(&mut self) {
        self.halt();
        let accesses = || (0..self.running.len()).filter(|&place| self.running[place].is_access);
        let pace: f32 = accesses().map(|place| self.claims[place].pace()).sum();
        self.moving.extend(accesses());
        for &place in &self.moving {
            self.claims[place].rate = 1.0 / pace.max(1.0);
        }
    }

    /// Gives each its rate: the one at `first` goes before all others. Where `contended`, they
    /// wait for each other, see [`contend`].
    pub(in crate::sm) fn share(
        &mut self,
        capacity: &PerResource,
        first: Option<usize>,
        contended: bool,
    ) {
        self.halt();
        let Self { claims, turns, moving, order, starved, .. } = self;
        match self.sharing {
            Sharing::Fair => {
                max_min_fair(claims, turns, capacity, order);
                moving.extend((0..claims.len()).filter(|&place| claims[place].rate > 0.0));
            }
            Sharing::InOrder if fits(&self.asked, capacity) => {
                claims.iter_mut().for_each(|claim| claim.rate = 1.0);
                moving.extend(0..claims.len());
            }
            Sharing::InOrder => {
                let served = one_by_one(claims, turns.behind(first), capacity, moving);
                *starved = served.map(|served| turns.reach(served, first));
                moving.sort_unstable();
            }
        }
        if contended {
            self.starved = None;
            contend(&mut self.claims, capacity);
        }
    }

    /// Cycles until the first of them ends; infinite when none moves.
    pub(in crate::sm) fn soonest(&self) -> f64 {
        if self.some_done {
            return 0.0;
        }
        let left = |(interval, claim): (&Running, &Claim)| {
            (interval.left - DONE).max(0.0) / f64::from(claim.rate)
        };
        self.moving().map(left).fold(f64::INFINITY, f64::min)
    }

    /// Moves them on by a span.
    pub(in crate::sm) fn advance(&mut self, span: f64) {
        for &place in &self.moving {
            let left = &mut self.running[place].left;
            *left -= span * f64::from(self.claims[place].rate);
            self.some_done |= *left <= DONE;
        }
    }

    /// Takes out those that are done, with their claims, in order.
    pub(in crate::sm) fn take_done(&mut self, mut out: impl FnMut(Running, Claim)) {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        let done = |place: &usize| self.running[*place].left <= DONE;
        if std::mem::take(&mut self.some_done) {
            order.extend((0..self.running.len()).filter(done));
        }
        for (before, &place) in order.iter().enumerate() {
            let (running, claim) = self.remove(place - before);
            out(running, claim);
        }
        self.order = order;
    }

    /// Books the slot-cycles of a span, with those of `waiting` warps. `slot_cycles` are those
    /// that an issue slot takes at least. Gives what a warp that does not move loses.
    pub(in crate::sm) fn book(
        &self,
        span: f64,
        slot_cycles: f32,
        waiting: &[Waiting],
        stalls: &mut Vec<StallStack>,
        counts: &mut [KernelCounts],
    ) -> f64 {
        let share = |claim: &Claim| f64::from(claim.rate * claim.density[ISSUE] * slot_cycles);
        let issued: f64 = self.moving().map(|(_, claim)| share(claim)).sum();
        let warps = waiting.iter().map(|w| w.warps()).sum::<u32>()
            + gpumodel_core::units::to_u32(self.claims.len());
        let weights = f64::from(warps) - issued;
        let idle = (1.0 - issued).max(0.0);
        let per_weight = if weights > 0.0 { span * idle / weights } else { 0.0 };
        let mut tally = Tally::default();
        for (interval, claim) in self.moving() {
            tally.turn_to(interval.kernel, stalls, counts);
            tally.add(&lost_by(&interval.gaps, claim, slot_cycles, span, per_weight));
        }
        for &(kernel, number) in &self.present {
            let move_on = self.moving().filter(|(interval, _)| interval.kernel == kernel).count();
            let still = number - gpumodel_core::units::to_u32(move_on);
            if still > 0 {
                tally.turn_to(kernel, stalls, counts);
                tally.wait_for_unit(f64::from(still) * per_weight);
            }
        }
        for waiting in waiting {
            tally.turn_to(waiting.kernel, stalls, counts);
            tally.add(&waiting.lost(per_weight));
        }
        tally.book(stalls, counts);
        per_weight
    }

    /// The same by warp: `per_weight` is what [`IssueIntervals::book`] gave for the span.
    #[cold]
    pub(in crate::sm) fn lose(
        &self,
        span: f64,
        slot_cycles: f32,
        per_weight: f64,
        losses: &mut WarpLosses,
    ) {
        losses.pass(per_weight);
        for (interval, claim) in self.running.iter().zip(&self.claims) {
            let lost = if claim.rate > 0.0 {
                lost_by(&interval.gaps, claim, slot_cycles, span, per_weight)
            } else {
                Wait::Resource.alone(per_weight)
            };
            losses.add(interval.warp, &lost);
        }
    }
}

/// Takes out the element at a place: mostly the last one, behind which none moves up.
#[inline]
fn take<T: Copy>(list: &mut Vec<T>, place: usize) -> T {
    match list.last() {
        Some(&last) if place + 1 == list.len() => {
            list.truncate(place);
            last
        }
        _ => list.remove(place),
    }
}

/// A density in 2^-32 per cycle.
#[allow(clippy::cast_possible_truncation, reason = "a density is a small ratio")]
fn fixed(density: f32) -> i64 {
    (f64::from(density) * 4_294_967_296.0) as i64
}

/// One claim's turn.
#[derive(Clone, Copy, Debug)]
pub(in crate::sm) struct Turn {
    /// What turns are ordered by.
    key: u64,
    /// Its place among the claims.
    pub(in crate::sm) place: usize,
    /// Resources that it asks for, one bit each.
    pub(in crate::sm) asks: u32,
}

/// The turns of a scheduler's claims, by the keys that its policy gave; equal ones as they
/// came.
#[derive(Debug, Default)]
pub(in crate::sm) struct IssueOrder {
    all: Vec<Turn>,
}

impl IssueOrder {
    /// `claim` is new, at the end, which is `place`: which turn it has.
    pub(in crate::sm) fn enter(&mut self, claim: &Claim, place: usize, key: u64) -> usize {
        let behind = self.all.iter().position(|other| other.key > key);
        let turn = Turn { key, place, asks: claim.asks() };
        let number = behind.unwrap_or(self.all.len());
        self.all.insert(number, turn);
        number
    }

    /// The claim at `place` is taken out, those behind it move up.
    pub(in crate::sm) fn leave(&mut self, place: usize) {
        if let Some(at) = self.all.iter().position(|turn| turn.place == place) {
            take(&mut self.all, at);
        }
        for turn in &mut self.all {
            turn.place -= usize::from(turn.place > place);
        }
    }

    /// All turns, the one at place `first` before all others.
    pub(in crate::sm) fn behind(&self, first: Option<usize>) -> impl Iterator<Item = Turn> {
        let is_first = move |turn: &&Turn| Some(turn.place) == first;
        let before = first.and_then(|_| self.all.iter().find(is_first));
        before.into_iter().chain(self.all.iter().filter(move |turn| !is_first(turn))).copied()
    }

    /// The number of the turn, in order, behind the first `served` that [`IssueOrder::behind`]
    /// gives.
    fn reach(&self, served: usize, first: Option<usize>) -> usize {
        let is_first = |turn: &Turn| Some(turn.place) == first;
        let within = first.is_none() || self.all.iter().take(served).any(is_first);
        served - usize::from(!within)
    }

    /// The places in order.
    pub(in crate::sm) fn places(&self) -> impl Iterator<Item = usize> {
        self.all.iter().map(|turn| turn.place)
    }
}

#[cfg(test)]
mod issue_intervals_tests {
    use proptest::prelude::*;

    use super::{Claim, DONE, ISSUE, IssueIntervals, RESOURCES, Running};
    use crate::sm::scheduler::policy::Sharing;

    #[derive(Clone, Debug)]
    enum Step {
        /// An interval of `cycles` with these densities of issue and a unit comes.
        Enter { age: u64, issue: f32, unit: f32, cycles: f64 },
        /// One is taken out.
        Remove(prop::sample::Index),
        /// Time goes to the first end.
        End,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let enter = (0..40_u64, 0.05_f32..1.0, 0.0_f32..1.0, -0.5_f64..50.0)
            .prop_map(|(age, issue, unit, cycles)| Step::Enter { age, issue, unit, cycles });
        let step = prop_oneof![
            4 => enter,
            1 => any::<prop::sample::Index>().prop_map(Step::Remove),
            3 => Just(Step::End),
        ];
        prop::collection::vec(step, 1..120)
    }

    /// Rates in plain words: the one at `first`, then by age, each what is left.
    fn plainly(intervals: &IssueIntervals, first: Option<usize>) -> Vec<f32> {
        let claims = &intervals.claims;
        let mut order: Vec<usize> = (0..claims.len()).collect();
        order.sort_by_key(|&place| (Some(place) != first, claims[place].age));
        let mut left = [1.0_f32; RESOURCES];
        let mut rates = vec![0.0; claims.len()];
        for place in order {
            let asked = claims[place].density.iter().zip(&left).filter(|(asked, _)| **asked > 0.0);
            rates[place] = asked.map(|(asked, left)| left.max(0.0) / asked).fold(1.0, f32::min);
            for (left, asked) in left.iter_mut().zip(&claims[place].density) {
                *left -= asked * rates[place];
            }
        }
        rates
    }

    fn check(intervals: &mut IssueIntervals, first: Option<usize>) {
        intervals.share(&[1.0; RESOURCES], first, false);
        compare(intervals, first);
    }

    fn compare(intervals: &IssueIntervals, first: Option<usize>) {
        let found: Vec<f32> = intervals.claims.iter().map(|claim| claim.rate).collect();
        let expected = plainly(intervals, first);
        let near = found.iter().zip(&expected).all(|(f, e)| (f - e).abs() < 1e-3);
        assert!(near, "{found:?} is not {expected:?}");
        let moving: Vec<usize> = (0..found.len()).filter(|&place| found[place] > 0.0).collect();
        assert_eq!(intervals.moving, moving);
    }

    #[test]
    fn who_is_done_ends_though_an_older_one_has_come_and_takes_all() {
        let mut intervals = IssueIntervals::new(Sharing::InOrder);
        let mut density = [0.0; RESOURCES];
        density[ISSUE] = 1.0;
        let come = |intervals: &mut IssueIntervals, warp: u16, left: f64| {
            let running = Running { warp, kernel: 0, left, gaps: [0.0; 3], is_access: false };
            let age = 9 - u64::from(warp);
            intervals.enter(running, Claim::new(density, age), age);
            intervals.share(&[1.0; RESOURCES], None, false);
        };
        come(&mut intervals, 0, 10.0);
        intervals.advance(10.0);
        come(&mut intervals, 1, 50.0);
        assert!(intervals.soonest() <= 0.0);
        let mut ended = Vec::new();
        intervals.take_done(|interval, _| ended.push(interval.warp));
        assert_eq!(ended, [0]);
        assert!(intervals.soonest() > 49.0);
    }

    proptest! {
        #[test]
        fn a_kept_set_shares_as_one_that_is_computed_again(steps in steps()) {
            let mut intervals = IssueIntervals::new(Sharing::InOrder);
            let mut first = None;
            for (number, step) in (0_u16..).zip(steps) {
                match step {
                    Step::Enter { age, issue, unit, cycles } => {
                        let mut density = [0.0; RESOURCES];
                        (density[ISSUE], density[0]) = (issue, unit);
                        let age = 100 * age + u64::from(number);
                        let kernel = u32::from(number % 2);
                        let running = Running { warp: number, kernel, left: cycles, gaps: [0.0; 3], is_access: false };
                        if !intervals.enter(running, Claim::new(density, age), age) {
                            compare(&intervals, first);
                        }
                    }
                    Step::Remove(which) if !intervals.is_empty() => {
                        intervals.remove(which.index(intervals.claims.len()));
                    }
                    Step::End if intervals.soonest().is_finite() => {
                        let all = intervals.claims.len();
                        intervals.advance(intervals.soonest());
                        let mut ended = 0;
                        intervals.take_done(|interval, _| {
                            assert!(interval.left <= DONE + 1e-3);
                            ended += 1;
                        });
                        assert_eq!(intervals.claims.len(), all - ended);
                    }
                    _ => {}
                }
                let claims = intervals.claims.len();
                first = (claims > 0 && number % 3 > 0).then(|| usize::from(number) % claims);
                check(&mut intervals, first);
                let present: u32 = intervals.present.iter().map(|(_, number)| number).sum();
                prop_assert_eq!(present as usize, intervals.claims.len());
            }
        }
    }
}
