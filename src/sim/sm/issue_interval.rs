//! What a warp hands to its scheduler, and what is left of it.

use super::issue_bandwidth::ISSUE;
use crate::interval::{Demand, Gaps};

/// What a warp hands to its scheduler: instructions up to its next event.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IssueInterval {
    /// Cycles alone.
    pub(super) cycles: f64,
    /// Instructions.
    pub(super) slots: u32,
    /// Cycles asked of each unit.
    pub(super) demand: [u32; ISSUE],
    /// Cycles without issue, by cause.
    pub(super) gaps: Gaps,
}

impl IssueInterval {
    /// Adds a step to the interval.
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

    /// Adds what has been added since it was as in `before`, `times` more times.
    pub(super) fn add_since(&mut self, before: &Self, times: u32) {
        self.cycles += f64::from(times) * (self.cycles - before.cycles);
        let more = |sum: &mut u32, before: u32| *sum += times * (*sum - before);
        more(&mut self.slots, before.slots);
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
pub(super) struct Running {
    pub(super) warp: u16,
    pub(super) kernel: u32,
    /// Cycles alone that are left.
    pub(super) left: f64,
    /// Shares of the interval's cycles alone without issue: fetch, registers, units.
    pub(super) gaps: [f64; 3],
}

impl Running {
    /// The same interval of a warp that has moved to another slot.
    pub(super) fn of(self, warp: u16) -> Self {
        Self { warp, ..self }
    }
}
