//! The least recently used line is evicted.

use super::Replacement;
use super::line_order::LineOrder;

/// The ways of every set by their last use.
#[derive(Clone, Debug, Default)]
pub(in crate::cache) struct Lru(LineOrder);

impl Replacement for Lru {
    fn reset(&mut self, sets: u32, ways: u32) {
        self.0.reset(sets, ways);
    }

    #[inline]
    fn used(&mut self, way: usize) {
        self.0.move_to_youngest(way);
    }

    #[inline]
    fn filled(&mut self, way: usize) {
        self.0.move_to_youngest(way);
    }

    #[inline]
    fn victim(&mut self, set: usize, evictable: impl Fn(usize) -> bool) -> Option<usize> {
        self.0.oldest(set, evictable)
    }
}
