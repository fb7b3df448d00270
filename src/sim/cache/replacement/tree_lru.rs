//! A binary tree of pointers per set approximates the order of use.

use gpumodel_core::units::to_usize;

use super::{Replacement, Vacant};

/// Tree pseudo-LRU. A use points the pointers on the path to it to the other side; the way to
/// which the pointers lead is evicted. A side without an evictable way is skipped. Where the
/// number of ways is no power of two, the tree has leaves without a way.
#[derive(Clone, Debug, Default)]
pub(in crate::cache) struct TreeLru {
    ways: usize,
    leaves: usize,
    vacant: Vacant,
    /// By set, as a heap from 1 on: the pointer leads to the upper side.
    higher: Vec<bool>,
}

impl TreeLru {
    /// The way below `node` at which the pointers end.
    fn follow(&self, set: usize, node: usize, evictable: &impl Fn(usize) -> bool) -> Option<usize> {
        if node >= self.leaves {
            let place = node - self.leaves;
            let way = set * self.ways + place;
            return (place < self.ways && evictable(way)).then_some(way);
        }
        let first = 2 * node + usize::from(self.higher[set * self.leaves + node]);
        self.follow(set, first, evictable).or_else(|| self.follow(set, first ^ 1, evictable))
    }
}

impl Replacement for TreeLru {
    fn reset(&mut self, sets: u32, ways: u32) {
        self.ways = to_usize(ways);
        self.leaves = self.ways.next_power_of_two();
        self.vacant.reset(sets, ways);
        self.higher.clear();
        self.higher.resize(to_usize(sets) * self.leaves, false);
    }

    fn used(&mut self, way: usize) {
        let set = way / self.ways;
        let mut node = self.leaves + way % self.ways;
        while node > 1 {
            let lower = node.is_multiple_of(2);
            node /= 2;
            self.higher[set * self.leaves + node] = lower;
        }
    }

    fn filled(&mut self, way: usize) {
        self.vacant.fill(way);
        self.used(way);
    }

    fn victim(&mut self, set: usize, evictable: impl Fn(usize) -> bool) -> Option<usize> {
        self.vacant.first(set).or_else(|| self.follow(set, 1, &evictable))
    }
}
