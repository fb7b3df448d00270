//! The issue stage of one SM: its schedulers, and the units that they share because there
//! are fewer of them. One scheduler alone may have such a unit, several divide it max-min
//! fair.

use gpumodel_core::isa::Unit;
use gpumodel_core::units::{AppId, to_usize};

use crate::config::{Machine, SmSpec};
use crate::counters::StallStack;
use crate::gpu::event_queue::Event;
use crate::gpu::shared_state::SharedState;
use crate::interval::OPERANDS;
use crate::sm::scheduler::issue_bandwidth::{ISSUE, PerResource, RESOURCES};
use crate::sm::scheduler::policy::named;
use crate::sm::scheduler::stall_accounting::add;
use crate::sm::scheduler::{NEVER, Scheduler};

/// Shares of a unit that differ by less than this count as equal: far above
/// rounding, far below what moves an interval by a cycle.
const SLACK: f32 = 1e-3;

/// One kind of unit.
#[derive(Debug)]
struct SharedUnit {
    /// Its place among the resources.
    place: usize,
    /// How many there are.
    whole: f32,
    /// What each scheduler uses; infinite where it would use more than it may.
    wants: Vec<f32>,
}

impl SharedUnit {
    /// True when the schedulers want more than there is.
    fn is_short(&self) -> bool {
        self.wants.iter().sum::<f32>() > self.whole + SLACK
    }

    /// What a scheduler may have at most: the rest of what the modest ones leave,
    /// in equal parts.
    fn limit(&self) -> f32 {
        if !self.is_short() {
            return self.whole;
        }
        let mut level = 0.0;
        loop {
            let (mut rest, mut open) = (self.whole, 0.0);
            for &want in &self.wants {
                if want <= level {
                    rest -= want;
                } else {
                    open += 1.0;
                }
            }
            let next = rest / open;
            if open <= 0.0 || next <= level + SLACK {
                return level;
            }
            level = next;
        }
    }
}

/// All of them; empty on machines whose schedulers each have every unit.
#[derive(Debug)]
pub(in crate::sm) struct SharedUnits {
    units: Vec<SharedUnit>,
    /// Their places among the resources, one bit each.
    places: u32,
    /// By scheduler: the places of those that it uses.
    used: Vec<u32>,
}

impl SharedUnits {
    /// The units of `machine` that are fewer than its schedulers.
    pub(in crate::sm) fn new(machine: &Machine) -> Self {
        let schedulers = machine.sm.schedulers;
        let fewer = |unit: &Unit| {
            let count = machine.units.get(unit.name())?.count;
            #[allow(clippy::cast_precision_loss, reason = "an SM has few units")]
            let whole = count as f32;
            let wants = vec![0.0; to_usize(schedulers)];
            (count < schedulers).then_some(SharedUnit { place: unit.index(), whole, wants })
        };
        let units: Vec<SharedUnit> = Unit::ALL.iter().filter_map(fewer).collect();
        let places = units.iter().fold(0, |places, unit| places | 1 << unit.place);
        Self { units, places, used: vec![0; to_usize(schedulers)] }
    }

    /// True when the scheduler asks for one of them, or has done so until now.
    fn concern(&self, index: usize, scheduler: &Scheduler) -> bool {
        (self.used[index] | scheduler.asks() & self.places) != 0
    }

    /// Shares the scheduler's units out among its intervals and notes what it uses.
    fn measure(&mut self, index: usize, scheduler: &mut Scheduler) {
        scheduler.share_out();
        let concerned = self.used[index] | scheduler.asks();
        for unit in &mut self.units {
            if concerned >> unit.place & 1 == 0 {
                continue;
            }
            let (used, most) = (scheduler.use_of(unit.place), scheduler.limit_of(unit.place));
            let held = most < unit.whole && used > most - SLACK;
            let want = if held { f32::INFINITY } else { used };
            unit.wants[index] = want;
            let bit = 1 << unit.place;
            self.used[index] = self.used[index] & !bit | if want > 0.0 { bit } else { 0 };
        }
    }

    /// Whether a scheduler uses a unit.
    fn is_used(&self, unit: usize) -> bool {
        let used = self.used.iter().fold(0, |all, used| all | used);
        used >> self.units[unit].place & 1 == 1
    }
}

/// The issue stage of one SM.
#[derive(Debug)]
pub(in crate::sm) struct IssueStage {
    sm: u16,
    pub(in crate::sm) schedulers: Vec<Scheduler>,
    /// The schedulers' policy sees what the L1 does for warps.
    pub(in crate::sm) sees_l1: bool,
    shared_units: SharedUnits,
}

impl IssueStage {
    /// The idle stage of SM `sm` of `machine`.
    pub(in crate::sm) fn new(sm: u16, machine: &Machine) -> Self {
        let capacity = capacity(machine);
        let SmSpec { policy, active_warps, contention, .. } = machine.sm;
        let scheduler =
            || Scheduler::new(named(policy, active_warps), capacity).contended(contention);
        let schedulers: Vec<Scheduler> = (0..machine.sm.schedulers).map(|_| scheduler()).collect();
        Self {
            sm,
            sees_l1: schedulers.iter().any(Scheduler::sees_l1),
            schedulers,
            shared_units: SharedUnits::new(machine),
        }
    }

    /// The scheduler of a warp slot.
    pub(in crate::sm) fn scheduler_of(&self, warp: u16) -> usize {
        usize::from(warp) % self.schedulers.len()
    }

    /// Moves a scheduler's intervals on to now.
    pub(in crate::sm) fn advance(&mut self, index: usize, shared_state: &mut SharedState) {
        self.schedulers[index].advance(shared_state.queue.now(), &mut shared_state.counts);
    }

    /// Moves all of them on to now.
    pub(in crate::sm) fn advance_all(&mut self, shared_state: &mut SharedState) {
        (0..self.schedulers.len()).for_each(|index| self.advance(index, shared_state));
    }

    /// Accounts the slot-cycles of all schedulers up to now.
    pub(in crate::sm) fn account(&mut self, shared_state: &mut SharedState) {
        let now = shared_state.queue.now();
        for scheduler in &mut self.schedulers {
            scheduler.account(now, &mut shared_state.counts);
        }
    }

    /// Adds slot-cycles by cause to `sum`: those of one application or of all.
    pub(in crate::sm) fn add_stalls(&self, app: Option<AppId>, sum: &mut StallStack) {
        for stalls in self.schedulers.iter().map(|scheduler| &scheduler.stalls) {
            match app {
                Some(app) => stalls.get(app.index()).into_iter().for_each(|part| add(sum, part)),
                None => stalls.iter().for_each(|part| add(sum, part)),
            }
        }
    }

    /// Slot-cycles of one application that a full load/store queue or active set takes.
    pub(in crate::sm) fn blocked(&self, app: AppId) -> f64 {
        self.schedulers.iter().filter_map(|scheduler| scheduler.blocked.get(app.index())).sum()
    }

    /// Holds a scheduler while memory instructions have all of its operand collectors.
    #[inline]
    pub(in crate::sm) fn hold(&mut self, index: usize, held: bool, shared_state: &mut SharedState) {
        if held != self.schedulers[index].is_held() {
            self.advance(index, shared_state);
            self.schedulers[index].hold(held);
            self.settle(index, shared_state);
        }
    }

    /// Settles what has changed for a scheduler.
    pub(in crate::sm) fn settle(&mut self, index: usize, shared_state: &mut SharedState) {
        if self.schedulers[index].is_unshared() {
            self.divide_units(index, shared_state);
        }
        self.schedule_completion(index, shared_state);
    }

    /// Schedules the next completion of a scheduler, if it has changed.
    fn schedule_completion(&mut self, index: usize, shared_state: &mut SharedState) {
        let before = self.schedulers[index].due;
        let due = self.schedulers[index].settle(shared_state.queue.now());
        if due != NEVER && due != before {
            let scheduler = u8::try_from(index).expect("an SM has few schedulers");
            shared_state.queue.schedule(due, Event::Scheduler { sm: self.sm, scheduler });
        }
    }

    /// The set of intervals of a scheduler has changed: divides the shared units
    /// again, where it uses them.
    ///
    /// A scheduler that uses less than its limit keeps it, even an outdated one:
    /// it does not slow it down. When one is given more than it then uses, the
    /// rest is divided again, so that there are as many rounds as schedulers at most.
    fn divide_units(&mut self, index: usize, shared_state: &mut SharedState) {
        if !self.shared_units.concern(index, &self.schedulers[index]) {
            return;
        }
        self.shared_units.measure(index, &mut self.schedulers[index]);
        for unit in 0..self.shared_units.units.len() {
            if !self.shared_units.is_used(unit) {
                continue;
            }
            for _ in 0..self.schedulers.len() {
                if !self.limit_users(unit, index, shared_state) {
                    break;
                }
            }
        }
    }

    /// Limits those that want more of a unit than is left for them; true when that
    /// changed what one of them uses. All but the one at `index` may be under way.
    fn limit_users(&mut self, unit: usize, index: usize, shared_state: &mut SharedState) -> bool {
        if !self.shared_units.units[unit].is_short() {
            return false;
        }
        let mut changed = false;
        let limit = self.shared_units.units[unit].limit();
        for user in 0..self.schedulers.len() {
            let SharedUnit { place, ref wants, .. } = self.shared_units.units[unit];
            let scheduler = &mut self.schedulers[user];
            if wants[user] > limit && (scheduler.limit_of(place) - limit).abs() > SLACK {
                changed = true;
                scheduler.advance(shared_state.queue.now(), &mut shared_state.counts);
                scheduler.limit(place, limit);
                self.shared_units.measure(user, scheduler);
                if user != index {
                    self.schedule_completion(user, shared_state);
                }
            }
        }
        changed
    }
}

/// What one scheduler takes of each resource per cycle: its part of the units,
/// all of those that are fewer than schedulers (see [`SharedUnits`]).
fn capacity(machine: &Machine) -> PerResource {
    let mut capacity = [f32::INFINITY; RESOURCES];
    let schedulers = f64::from(machine.sm.schedulers.max(1));
    for unit in Unit::ALL {
        if let Some(spec) = machine.units.get(unit.name()) {
            let count = f64::from(spec.count);
            let part = if count < schedulers { count } else { count / schedulers };
            #[allow(clippy::cast_possible_truncation, reason = "a small ratio")]
            let part = part as f32;
            capacity[unit.index()] = part;
        }
    }
    #[allow(clippy::cast_precision_loss, reason = "an issue width is 1 or 2")]
    let width = machine.sm.issue_width.max(1) as f32;
    capacity[OPERANDS] = 1.0;
    capacity[ISSUE] = width;
    debug_assert!(to_usize(machine.sm.schedulers) <= 64);
    capacity
}

#[cfg(test)]
mod tests {
    use super::SharedUnit;

    fn limit(whole: f32, wants: &[f32]) -> f32 {
        SharedUnit { place: 0, whole, wants: wants.to_vec() }.limit()
    }

    #[test]
    fn one_alone_has_all_and_several_divide_the_rest_of_the_modest() {
        assert!((limit(1.0, &[1.0, 0.0, 0.0, 0.0]) - 1.0).abs() < 1e-6);
        assert!((limit(1.0, &[1.0, 1.0, 1.0, 1.0]) - 0.25).abs() < 1e-6);
        assert!((limit(1.0, &[0.1, 1.0, 0.5, 0.0]) - 0.45).abs() < 1e-6);
        assert!((limit(2.0, &[0.6, f32::INFINITY, 0.9, 0.1]) - 0.65).abs() < 1e-6);
    }
}
