//! Units that the schedulers of an SM share because there are fewer of them:
//! one scheduler alone may have them all, several divide them max-min fair.

use crate::isa::Unit;
use crate::spec::Machine;
use crate::units::to_usize;

use super::super::chip::Chip;
use super::super::feed::WarpStream;
use super::Sm;
use super::scheduler::Scheduler;

/// Shares of a unit that differ by less than this count as equal: far above
/// rounding, far below what moves a burst by a cycle.
const SLACK: f32 = 1e-3;

/// One kind of unit.
#[derive(Debug)]
struct SharedUnit {
    /// Its place among the resources.
    place: usize,
    /// How many there are.
    whole: f32,
    /// What each scheduler would use if it had them all.
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

    /// Notes what the scheduler would use if all units were free.
    fn measure(&mut self, index: usize, scheduler: &mut Scheduler) {
        for unit in &self.0 {
            scheduler.limit(unit.place, unit.whole);
        }
        scheduler.share_out();
        for unit in &mut self.0 {
            unit.wants[index] = scheduler.use_of(unit.place);
        }
    }
}

impl<S: WarpStream> Sm<S> {
    /// The set of bursts of a scheduler has changed: divides the shared units
    /// anew, where it has to do with them.
    pub(super) fn divide_units(&mut self, index: usize, chip: &mut Chip) {
        let Self { shared_units, schedulers, .. } = self;
        if !shared_units.concern(index, &schedulers[index]) {
            return;
        }
        shared_units.measure(index, &mut schedulers[index]);
        for unit in 0..self.shared_units.0.len() {
            let limit = self.shared_units.0[unit].limit();
            for other in 0..self.schedulers.len() {
                let SharedUnit { place, whole, ref wants } = self.shared_units.0[unit];
                let part = if wants[other] > limit { limit } else { whole };
                if (self.schedulers[other].limit_of(place) - part).abs() > SLACK {
                    self.schedulers[other].advance(chip.queue.now(), &mut chip.counts);
                    self.schedulers[other].limit(place, part);
                    if other != index {
                        self.schedule_completion(other, chip);
                    }
                }
            }
        }
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
        assert!((limit(2.0, &[0.6, 2.0, 0.9, 0.1]) - 0.65).abs() < 1e-6);
    }
}
