//! The line that was filled first is evicted.

use super::Replacement;
use super::line_order::LineOrder;

/// The ways of every set in the order of their fills.
#[derive(Clone, Debug, Default)]
pub(in crate::cache) struct Fifo(LineOrder);

impl Replacement for Fifo {
    fn reset(&mut self, sets: u32, ways: u32) {
        self.0.reset(sets, ways);
    }

    fn used(&mut self, _way: usize) {}

    fn filled(&mut self, way: usize) {
        self.0.move_to_youngest(way);
    }

    fn victim(&mut self, set: usize, evictable: impl Fn(usize) -> bool) -> Option<usize> {
        self.0.oldest(set, evictable)
    }
}
