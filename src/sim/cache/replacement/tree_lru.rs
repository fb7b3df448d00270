//! A binary tree of pointers per set stands for the order of use.

use gpumodel_core::units::to_usize;

use super::Replacement;
use super::vacant::Vacant;

/// Tree pseudo-LRU. A use turns the pointers on the way down to it to the other
/// side; room is made where the pointers lead. A side without a way that may
/// leave is passed over. The tree of a number of ways that is no power of two has
/// leaves without a way.
#[derive(Clone, Debug, Default)]
pub(in crate::cache) struct TreeLru {
    ways: usize,
    leaves: usize,
    vacant: Vacant,
    /// By set, as a heap from 1 on: the pointer leads to the higher side.
    higher: Vec<bool>,
}

impl TreeLru {
    /// The way below `node` at which the pointers end.
    fn follow(&self, set: usize, node: usize, may_leave: &impl Fn(usize) -> bool) -> Option<usize> {
        if node >= self.leaves {
            let place = node - self.leaves;
            let way = set * self.ways + place;
            return (place < self.ways && may_leave(way)).then_some(way);
        }
        let first = 2 * node + usize::from(self.higher[set * self.leaves + node]);
        self.follow(set, first, may_leave).or_else(|| self.follow(set, first ^ 1, may_leave))
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

    fn victim(&mut self, set: usize, may_leave: impl Fn(usize) -> bool) -> Option<usize> {
        self.vacant.first(set).or_else(|| self.follow(set, 1, &may_leave))
    }
}
