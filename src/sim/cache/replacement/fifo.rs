//! The line that came first makes room.

use super::Replacement;
use super::line_order::LineOrder;

/// The ways of every set in the order in which their lines came.
#[derive(Clone, Debug, Default)]
pub(in crate::cache) struct Fifo(LineOrder);

impl Replacement for Fifo {
    fn reset(&mut self, sets: u32, ways: u32) {
        self.0.reset(sets, ways);
    }

    fn used(&mut self, _way: usize) {}

    fn filled(&mut self, way: usize) {
        self.0.renew(way);
    }

    fn victim(&mut self, set: usize, may_leave: impl Fn(usize) -> bool) -> Option<usize> {
        self.0.oldest(set, may_leave)
    }
}
