//! Parts of a step: what a warp can issue before it meets a line of code that
//! is not there.

use super::{Gaps, Step, StepEnd};

impl Step {
    /// Its instructions from `from` up to `to`, with their share of everything.
    /// The parts of a step add up to the step.
    pub(crate) fn part(&self, from: u32, to: u32) -> Self {
        if from == 0 && to == self.slots {
            return *self;
        }
        let upto = |whole: u32, end: u32| {
            let share = u64::from(whole) * u64::from(end) / u64::from(self.slots);
            u32::try_from(share).expect("a part is no larger than the whole")
        };
        let share = |whole: u32| upto(whole, to) - upto(whole, from);
        let short = |whole: u16| {
            u16::try_from(share(u32::from(whole))).expect("a part is no larger than the whole")
        };
        let ratio = |end: u32| f64::from(end) / f64::from(self.slots);
        let cycles = f64::from(self.cycles) * (ratio(to) - ratio(from));
        #[allow(clippy::cast_possible_truncation, reason = "no larger than the whole")]
        let cycles = cycles as f32;
        let Gaps { fetch, registers, units } = self.gaps;
        Self {
            cycles,
            slots: to - from,
            instruction: self.instruction + from,
            demand: self.demand.map(short),
            gaps: Gaps { fetch: share(fetch), registers: share(registers), units: share(units) },
            mix: self.mix.map(short),
            unknown: share(self.unknown),
            constants: share(self.constants),
            end: if to == self.slots { self.end } else { StepEnd::Stretch },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ASKED, Gaps, Step, StepEnd};
    use gpumodel_core::isa::Unit;

    #[test]
    fn the_parts_of_a_step_add_up_to_it() {
        let step = Step {
            cycles: 37.5,
            slots: 21,
            instruction: 4,
            demand: [41; ASKED],
            gaps: Gaps { fetch: 5, registers: 7, units: 2 },
            mix: [3; Unit::ALL.len()],
            unknown: 2,
            constants: 5,
            end: StepEnd::Access { instruction: 24, slot: None },
        };
        let parts = [step.part(0, 8), step.part(8, 16), step.part(16, 21)];
        let sum = |of: fn(&Step) -> u32| parts.iter().map(of).sum::<u32>();
        assert_eq!(sum(|s| s.slots), 21);
        assert_eq!(sum(|s| u32::from(s.demand[0])), 41);
        assert_eq!(sum(|s| u32::from(s.mix[0])), 3);
        assert_eq!(sum(|s| s.gaps.fetch), 5);
        assert_eq!(sum(|s| s.gaps.registers), 7);
        assert_eq!(sum(|s| s.unknown), 2);
        assert_eq!(sum(|s| s.constants), 5);
        assert!((parts.iter().map(|s| s.cycles).sum::<f32>() - 37.5).abs() < 1e-4);
        assert_eq!(parts.map(|s| s.instruction), [4, 12, 20]);
        assert_eq!(parts.map(|s| s.end == step.end), [false, false, true]);
    }
}
