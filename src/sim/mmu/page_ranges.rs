//! Sets of pages that come in ranges.

use std::collections::BTreeMap;

/// Pages as ranges that neither touch nor overlap: first to last.
#[derive(Debug, Default)]
pub(crate) struct PageRanges(BTreeMap<u64, u64>);

impl PageRanges {
    /// Whether a page is among them.
    pub(crate) fn holds(&self, page: u64) -> bool {
        self.0.range(..=page).next_back().is_some_and(|(_, &last)| page <= last)
    }

    /// Its ranges, in order.
    pub(crate) fn into_ranges(self) -> impl Iterator<Item = (u64, u64)> {
        self.0.into_iter()
    }

    /// Adds the pages from `first` to `last`.
    pub(crate) fn bring(&mut self, first: u64, last: u64) {
        let (mut first, mut last) = (first, last);
        while let Some((&start, &end)) = self.0.range(..=last.saturating_add(1)).next_back()
            && end.saturating_add(1) >= first
        {
            self.0.remove(&start);
            (first, last) = (first.min(start), last.max(end));
        }
        self.0.insert(first, last);
    }
}
