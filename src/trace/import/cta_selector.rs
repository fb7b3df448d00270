//! Which thread blocks of one trace are taken, as they turn up.

use std::collections::BTreeSet;

use crate::filter::CtaChoice;
use gpumodel_core::units::to_u64;

/// The choice, and for the first so many what was taken so far.
#[derive(Debug, Default)]
pub(super) struct Pick {
    choice: Option<CtaChoice>,
    taken: BTreeSet<u64>,
}

impl Pick {
    /// Takes what `choice` says; everything when it is `None`.
    pub(super) fn new(choice: Option<CtaChoice>) -> Self {
        Self { choice, taken: BTreeSet::new() }
    }

    /// Takes everything.
    pub(super) fn all(&self) -> bool {
        self.choice.is_none()
    }

    /// For thread blocks one by one, in the trace's order: whether the one at
    /// `linear` is taken.
    pub(super) fn block(&mut self, linear: u64) -> bool {
        let Some(choice) = &self.choice else { return true };
        match choice.first() {
            None => choice.contains(linear),
            Some(count) => to_u64(self.taken.len()) < count && self.taken.insert(linear),
        }
    }

    /// For single records in any order: whether one of the thread block at `linear`
    /// may be taken. In the end only those below [`Pick::end`] are.
    pub(super) fn record(&mut self, linear: u64) -> bool {
        let Some(choice) = &self.choice else { return true };
        let Some(count) = choice.first() else { return choice.contains(linear) };
        let full = to_u64(self.taken.len()) >= count;
        if full && self.taken.last().is_some_and(|last| linear > *last) {
            return false;
        }
        if self.taken.insert(linear) && full {
            self.taken.pop_last();
        }
        true
    }

    /// The position after the last thread block that is taken.
    pub(super) fn end(&self) -> u64 {
        let first = self.choice.as_ref().and_then(CtaChoice::first);
        first.and(self.taken.last()).map_or(u64::MAX, |last| last + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::Pick;

    #[test]
    fn records_in_any_order_give_the_first_blocks() {
        let mut pick = Pick::new(Some("first:2".parse().unwrap()));
        let taken = [9, 4, 4, 7, 9, 1, 7, 4].map(|linear| pick.record(linear));
        assert_eq!(taken, [true, true, true, true, false, true, false, true]);
        assert_eq!(pick.end(), 5);
        let mut pick = Pick::new(Some("2-4".parse().unwrap()));
        assert!(pick.record(2) && !pick.record(5) && pick.block(4) && !pick.block(0));
        assert_eq!(pick.end(), u64::MAX);
    }
}
