//! When a sweep ends on so many slots: jobs in order, each on the slot that is free first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gpumodel_core::units::{to_u64, to_usize};
use gpumodel_report::results::Bottleneck;

/// A cell of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Microseconds of one slot.
    pub(super) micros: u64,
    /// Shared runs that it waits for, by their places.
    pub(super) needs: Vec<usize>,
}

/// What is to be done: applications alone, which cells share, then cells.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    /// Microseconds of one slot.
    shared: Vec<u64>,
    /// The longest first.
    cells: Vec<Piece>,
}

impl Schedule {
    /// Cells go the longest first, those of one length in their order.
    pub(super) fn new(shared: Vec<u64>, mut cells: Vec<Piece>) -> Self {
        cells.sort_by_key(|cell| Reverse(cell.micros));
        Self { shared, cells }
    }

    /// Microseconds until the end on `slots` slots, of which there is at least one. As in
    /// the program, a cell keeps its slot while it waits for shared runs.
    pub(super) fn micros(&self, slots: u64) -> u64 {
        let jobs = to_u64(self.shared.len() + self.cells.len());
        let slots = to_usize(slots.min(jobs).max(1));
        let mut free: BinaryHeap<Reverse<u64>> = vec![Reverse(0); slots].into();
        let mut run = |ready: u64, micros: u64| {
            let Reverse(at) = free.pop().expect("as many go back");
            let end = at.max(ready).saturating_add(micros);
            free.push(Reverse(end));
            end
        };
        let shared: Vec<u64> = self.shared.iter().map(|&micros| run(0, micros)).collect();
        let mut last = shared.iter().copied().max().unwrap_or(0);
        for cell in &self.cells {
            let ready = cell.needs.iter().map(|&need| shared[need]).max().unwrap_or(0);
            last = last.max(run(ready, cell.micros));
        }
        last
    }

    /// What keeps the sweep from ending earlier on `slots` slots: the work of each, or else
    /// the longest chain of a shared run and a cell, by its longer part.
    pub(super) fn bottleneck(&self, slots: u64) -> Bottleneck {
        let sum = self.shared.iter().chain(self.cells.iter().map(|cell| &cell.micros));
        let each = sum.fold(0_u64, |sum, &micros| sum.saturating_add(micros)) / slots.max(1);
        let chain = |cell: &Piece| {
            let shared = cell.needs.iter().map(|&need| self.shared[need]).max().unwrap_or(0);
            (shared.saturating_add(cell.micros), shared, cell.micros)
        };
        let (whole, shared, cell) = self.cells.iter().map(chain).max().unwrap_or_default();
        if each >= whole {
            Bottleneck::CellsPerSlot
        } else if shared > cell {
            Bottleneck::SharedRuns
        } else {
            Bottleneck::LongestCell
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bottleneck, Piece, Schedule};

    fn schedule(shared: &[u64], cells: &[(u64, &[usize])]) -> Schedule {
        let piece = |&(micros, needs): &(u64, &[usize])| Piece { micros, needs: needs.to_vec() };
        Schedule::new(shared.to_vec(), cells.iter().map(piece).collect())
    }

    #[test]
    fn a_small_schedule_is_exact() {
        // Two slots: shared 4 | 1; then 5 and 2 wait for the first, 3 for the second.
        // Slot two: 0-1 shared, 1-4 waits, 4-9 cell of 5; slot one: 4-7 cell of 3, 7-9.
        let small = schedule(&[4, 1], &[(2, &[0]), (3, &[1]), (5, &[0, 1])]);
        assert_eq!(small.micros(1), 15);
        assert_eq!(small.micros(2), 9);
        // Four: the cell of 2 takes the slot of the shared run of 1 at 1 and begins at 4.
        assert_eq!(small.micros(4), 9);
        assert_eq!(schedule(&[], &[(3, &[]), (2, &[]), (2, &[]), (1, &[])]).micros(2), 4);
        assert_eq!(schedule(&[], &[]).micros(7), 0);
    }

    #[test]
    fn the_bottleneck_is_what_more_slots_do_not_shorten() {
        let even: Vec<(u64, &[usize])> = vec![(10, &[0]); 100];
        assert_eq!(schedule(&[10], &even).bottleneck(4), Bottleneck::CellsPerSlot);
        assert_eq!(schedule(&[9], &even).bottleneck(1000), Bottleneck::LongestCell);
        assert_eq!(schedule(&[11], &even).bottleneck(1000), Bottleneck::SharedRuns);
    }
}
