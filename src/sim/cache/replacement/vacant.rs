//! The ways that have held no line yet.

use gpumodel_core::units::to_usize;

/// How many ways of each set are taken; they are taken from the first on.
#[derive(Clone, Debug, Default)]
pub(super) struct Vacant {
    ways: usize,
    taken: Vec<u32>,
}

impl Vacant {
    /// `sets` sets of `ways` ways, all without a line.
    pub(super) fn reset(&mut self, sets: u32, ways: u32) {
        self.ways = to_usize(ways);
        self.taken.clear();
        self.taken.resize(to_usize(sets), 0);
    }

    /// The next way of a set without a line.
    pub(super) fn first(&self, set: usize) -> Option<usize> {
        let taken = to_usize(self.taken[set]);
        (taken < self.ways).then(|| set * self.ways + taken)
    }

    /// A way has taken a line.
    pub(super) fn fill(&mut self, way: usize) {
        let set = way / self.ways;
        self.taken[set] += u32::from(self.first(set) == Some(way));
    }
}
