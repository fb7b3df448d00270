//! The page tables of all applications: where the entries of a walk lie, and which pages are
//! in memory.
//!
//! A radix tree: each level takes 9 bits of the page number from the bottom, the top level
//! the rest; entries have 8 bytes. Tables are allocated in whole pieces of 4 KB of a separate
//! region when a walk first reads them.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::mmu::address_space::{VIRTUAL_BITS, is_local};

/// Page-number bits that one level below the top resolves.
const LEVEL_BITS: u32 = 9;

const ENTRY_BYTES: u64 = 8;

/// Tables are allocated in pieces of this many bytes.
const PIECE_BYTES: u64 = 4096;

/// Where the tables begin: above every address of an application and, among the bits that
/// choose channel and row, away from the programs' addresses.
const TABLES: u64 = 1 << 63 | 1 << 46;

/// The tables of all applications. A page is an address over the page size, with the
/// application's number.
#[derive(Debug)]
pub(super) struct PageTable {
    page_bits: u32,
    /// Levels of a walk.
    pub(super) levels: u32,
    /// First byte of each table that a walk has read.
    tables: FxHashMap<u64, u64>,
    /// Bytes allocated to tables.
    allocated: u64,
    /// Pages that are in memory. `None`: all are.
    present: Option<PageRanges>,
}

impl PageTable {
    /// Tables of `levels` levels for pages of `2^page_bits` bytes. With
    /// `on_demand` no page is in memory until [`PageTable::bring`].
    pub(super) fn new(page_bits: u32, levels: u32, on_demand: bool) -> Self {
        Self {
            page_bits,
            levels,
            tables: FxHashMap::default(),
            allocated: 0,
            present: on_demand.then(PageRanges::default),
        }
    }

    /// The page of an address.
    pub(super) fn page_of(&self, address: u64) -> u64 {
        address >> self.page_bits
    }

    /// The application and the page's number in it.
    fn app_and_number(&self, page: u64) -> (u64, u64) {
        let bits = VIRTUAL_BITS - self.page_bits;
        (page >> bits, page & ((1 << bits) - 1))
    }

    /// Page-number bits below those that `level` (0 is the top) resolves.
    fn below(&self, level: u32) -> u32 {
        LEVEL_BITS * (self.levels - 1 - level)
    }

    /// The entry of `page` at `level` as a key: pages that share the entry share the key.
    pub(super) fn entry_key(&self, page: u64, level: u32) -> u64 {
        let (app, number) = self.app_and_number(page);
        app << VIRTUAL_BITS | number >> self.below(level)
    }

    /// Where the entry of `page` at `level` lies; its table is allocated if absent.
    pub(super) fn entry_address(&mut self, page: u64, level: u32) -> u64 {
        let (app, number) = self.app_and_number(page);
        let bits = if level == 0 {
            (VIRTUAL_BITS - self.page_bits).saturating_sub(self.below(0))
        } else {
            LEVEL_BITS
        };
        let entry = number >> self.below(level);
        let index = entry & ((1 << bits) - 1);
        // Page numbers have at most 38 bits, applications 13, levels 3.
        let table = u64::from(level) << 56 | app << 40 | entry >> bits;
        let allocated = &mut self.allocated;
        let base = *self.tables.entry(table).or_insert_with(|| {
            let base = TABLES + *allocated;
            *allocated += (ENTRY_BYTES << bits).next_multiple_of(PIECE_BYTES);
            base
        });
        base + index * ENTRY_BYTES
    }

    /// True when a page is in memory. Local memory always is: it is allocated before a kernel
    /// starts.
    pub(super) fn is_present(&self, page: u64) -> bool {
        if is_local(page << self.page_bits) {
            return true;
        }
        self.present.as_ref().is_none_or(|ranges| ranges.holds(page))
    }

    /// Puts the pages from `first` to `last` into memory.
    pub(super) fn bring(&mut self, first: u64, last: u64) {
        self.present.iter_mut().for_each(|ranges| ranges.bring(first, last));
    }
}

/// A set of pages as ranges that neither touch nor overlap: first to last.
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

#[cfg(test)]
mod tests {
    use super::{PIECE_BYTES, PageTable};

    #[test]
    fn neighbours_share_all_tables_and_lie_eight_bytes_apart() {
        let mut table = PageTable::new(12, 4, false);
        for level in 0..3 {
            assert_eq!(table.entry_address(512, level), table.entry_address(513, level));
            assert_eq!(table.entry_key(512, level), table.entry_key(513, level));
        }
        assert_eq!(table.entry_address(512, 3) + 8, table.entry_address(513, 3));
        // Page 511 has its last table for itself.
        assert_ne!(table.entry_key(511, 2), table.entry_key(512, 2));
        assert_eq!(table.entry_address(511, 2) + 8, table.entry_address(512, 2));
    }

    #[test]
    fn tables_are_allocated_in_pieces_in_order_of_first_use() {
        let mut table = PageTable::new(12, 2, false);
        let top = table.entry_address(0, 0);
        let first = table.entry_address(5, 1);
        let second = table.entry_address(512, 1);
        assert_eq!(first - 5 * 8 + PIECE_BYTES, second);
        // The top level resolves the remaining 29 bits.
        assert_eq!(first - 5 * 8 - top, 8 << 29);
    }

    #[test]
    fn applications_have_separate_tables() {
        let mut table = PageTable::new(12, 4, false);
        let other = crate::mmu::address_space::tag(1) >> 12;
        for level in 0..4 {
            assert_ne!(table.entry_address(0, level), table.entry_address(other, level));
            assert_ne!(table.entry_key(0, level), table.entry_key(other, level));
        }
    }

    #[test]
    fn pages_come_and_stay() {
        let mut table = PageTable::new(12, 4, true);
        assert!(!table.is_present(5));
        table.bring(5, 9);
        table.bring(20, 20);
        table.bring(10, 19);
        table.bring(2, 30);
        for (page, there) in [(1, false), (2, true), (19, true), (30, true), (31, false)] {
            assert_eq!(table.is_present(page), there, "{page}");
        }
        table.bring(0, u64::MAX);
        assert!(table.is_present(1 << 40));
        assert!(PageTable::new(12, 4, false).is_present(5));
        let local = crate::sm::coalesce::LOCAL_BASE >> 12;
        assert!(PageTable::new(12, 4, true).is_present(local));
    }
}
