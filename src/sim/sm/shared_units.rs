//! Units that the schedulers of an SM share because there are fewer of them:
//! one scheduler alone may have them all, several divide them max-min fair.

use crate::config::Machine;
use gpumodel_core::isa::Unit;
use gpumodel_core::units::to_usize;

use super::Sm;
use super::scheduler::Scheduler;
use crate::gpu::shared_state::SharedState;

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
    /// What a scheduler may have at most: the rest of what the modest ones leave,
    /// in equal parts.
    fn limit(&self) -> f32 {
        if self.wants.iter().sum::<f32>() <= self.whole + SLACK {
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
pub(super) struct SharedUnits(Vec<SharedUnit>);

impl SharedUnits {
    /// The units of `machine` that are fewer than its schedulers.
    pub(super) fn new(machine: &Machine) -> Self {
        let schedulers = machine.sm.schedulers;
        let fewer = |unit: &Unit| {
            let count = machine.units.get(unit.name())?.count;
            #[allow(clippy::cast_precision_loss, reason = "an SM has few units")]
            let whole = count as f32;
            let wants = vec![0.0; to_usize(schedulers)];
            (count < schedulers).then_some(SharedUnit { place: unit.index(), whole, wants })
        };
        Self(Unit::ALL.iter().filter_map(fewer).collect())
    }

    /// True when the scheduler asks for one of them, or has done so until now.
    fn concern(&self, index: usize, scheduler: &Scheduler) -> bool {
        self.0.iter().any(|unit| unit.wants[index] > 0.0 || scheduler.asks_for(unit.place))
    }

    /// Shares the scheduler's units out among its intervals and notes what it uses.
    fn measure(&mut self, index: usize, scheduler: &mut Scheduler) {
        scheduler.share_out();
        for unit in &mut self.0 {
            let (used, most) = (scheduler.use_of(unit.place), scheduler.limit_of(unit.place));
            let held = most < unit.whole && used > most - SLACK;
            unit.wants[index] = if held { f32::INFINITY } else { used };
        }
    }
}

impl Sm {
    /// The set of intervals of a scheduler has changed: divides the shared units
    /// anew, where it has to do with them.
    ///
    /// Who uses less than it may keeps its limit, even one that holds no longer:
    /// it does not slow it down. When one is given more than it then uses, the
    /// rest is divided again, so that there are as many rounds as schedulers at most.
    pub(super) fn divide_units(&mut self, index: usize, shared_state: &mut SharedState) {
        if !self.shared_units.concern(index, &self.schedulers[index]) {
            return;
        }
        self.shared_units.measure(index, &mut self.schedulers[index]);
        for unit in 0..self.shared_units.0.len() {
            for _ in 0..self.schedulers.len() {
                if !self.limit_users(unit, index, shared_state) {
                    break;
                }
            }
        }
    }

    /// Limits those who want more of a unit than is left for them; true when that
    /// changed what one of them uses. All but the one at `index` may be under way.
    fn limit_users(&mut self, unit: usize, index: usize, shared_state: &mut SharedState) -> bool {
        let mut changed = false;
        let limit = self.shared_units.0[unit].limit();
        for user in 0..self.schedulers.len() {
            let SharedUnit { place, ref wants, .. } = self.shared_units.0[unit];
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
