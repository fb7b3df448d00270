//! A random line is evicted.

use gpumodel_core::units::{to_u64, to_usize};

use super::{Replacement, Vacant};

/// Evicts the first evictable way from a random one on, around the set. The numbers are those
/// of splitmix64 from 0 (Steele, Lea and Flood, OOPSLA 2014), the same in every run.
#[derive(Clone, Debug, Default)]
pub(in crate::cache) struct Random {
    ways: usize,
    vacant: Vacant,
    state: u64,
}

impl Random {
    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl Replacement for Random {
    fn reset(&mut self, sets: u32, ways: u32) {
        self.ways = to_usize(ways);
        self.vacant.reset(sets, ways);
    }

    fn used(&mut self, _way: usize) {}

    fn filled(&mut self, way: usize) {
        self.vacant.fill(way);
    }

    fn victim(&mut self, set: usize, evictable: impl Fn(usize) -> bool) -> Option<usize> {
        if let Some(way) = self.vacant.first(set) {
            return Some(way);
        }
        let start = to_usize(self.draw() % to_u64(self.ways));
        (0..self.ways)
            .map(|step| set * self.ways + (start + step) % self.ways)
            .find(|&way| evictable(way))
    }

    fn search_counts(&self) -> bool {
        true
    }
}
