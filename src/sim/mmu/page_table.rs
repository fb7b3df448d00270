//! The page tables of all applications: where the entries of a walk lie, and whether
//! a page is in memory at all.
//!
//! A radix tree: the page number is cut into 9 bits per level from the bottom,
//! the top level takes the rest; entries have 8 bytes. Tables come into being
//! when a walk first reads them, in a region of their own, in whole 4 KB pieces.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::mmu::address_space::{VIRTUAL_BITS, is_local};

/// Page-number bits that one level below the top resolves.
const LEVEL_BITS: u32 = 9;

const ENTRY_BYTES: u64 = 8;

/// Tables are handed out in pieces of this many bytes.
const PIECE_BYTES: u64 = 4096;

/// Where the tables begin: above every address of an application, and, among
/// the bits that choose channel and row, away from where programs lie.
const TABLES: u64 = 1 << 63 | 1 << 46;

/// The tables of all applications. A page is an address over the page size, the
/// application's number in it.
#[derive(Debug)]
pub(super) struct PageTable {
    page_bits: u32,
    levels: u32,
    /// First byte of each table that a walk has read.
    tables: FxHashMap<u64, u64>,
    /// Bytes handed out to tables.
    taken: u64,
    /// Runs of pages that are in memory: first to last. `None`: all are.
    present: Option<BTreeMap<u64, u64>>,
}

impl PageTable {
    /// Tables of `levels` levels for pages of `2^page_bits` bytes. With
    /// `on_demand` no page is in memory until it is put there.
    pub(super) fn new(page_bits: u32, levels: u32, on_demand: bool) -> Self {
        Self {
            page_bits,
            levels,
            tables: FxHashMap::default(),
            taken: 0,
            present: on_demand.then(BTreeMap::new),
        }
    }

    /// Levels of a walk.
    pub(super) fn levels(&self) -> u32 {
        self.levels
    }

    /// The page of an address.
    pub(super) fn page_of(&self, address: u64) -> u64 {
        address >> self.page_bits
    }

    /// Application and page number, apart.
    fn parts(&self, page: u64) -> (u64, u64) {
        let bits = VIRTUAL_BITS - self.page_bits;
        (page >> bits, page & ((1 << bits) - 1))
    }

    /// Page-number bits below those that `level` (0 is the top) resolves.
    fn below(&self, level: u32) -> u32 {
        LEVEL_BITS * (self.levels - 1 - level)
    }

    /// The entry of `page` at `level`, as a name: pages that share the entry
    /// share the name.
    pub(super) fn entry_name(&self, page: u64, level: u32) -> u64 {
        let (space, number) = self.parts(page);
        space << VIRTUAL_BITS | number >> self.below(level)
    }

    /// Where the entry of `page` at `level` lies; its table is made if absent.
    pub(super) fn entry_address(&mut self, page: u64, level: u32) -> u64 {
        let (space, number) = self.parts(page);
        let bits = if level == 0 {
            (VIRTUAL_BITS - self.page_bits).saturating_sub(self.below(0))
        } else {
            LEVEL_BITS
        };
        let entry = number >> self.below(level);
        let index = entry & ((1 << bits) - 1);
        // Page numbers have at most 38 bits, applications 13, levels 3.
        let table = u64::from(level) << 56 | space << 40 | entry >> bits;
        let taken = &mut self.taken;
        let base = *self.tables.entry(table).or_insert_with(|| {
            let base = TABLES + *taken;
            *taken += (ENTRY_BYTES << bits).next_multiple_of(PIECE_BYTES);
            base
        });
        base + index * ENTRY_BYTES
    }

    /// True when a page is in memory. Local memory always is: it is there before
    /// a kernel starts.
    pub(super) fn is_present(&self, page: u64) -> bool {
        if is_local(page << self.page_bits) {
            return true;
        }
        let run = |runs: &BTreeMap<u64, u64>| {
            runs.range(..=page).next_back().is_some_and(|(_, &last)| page <= last)
        };
        self.present.as_ref().is_none_or(run)
    }

    /// Puts the pages from `first` to `last` into memory.
    pub(super) fn bring(&mut self, first: u64, last: u64) {
        let Some(runs) = self.present.as_mut() else { return };
        let (mut first, mut last) = (first, last);
        while let Some((&start, &end)) = runs.range(..=last.saturating_add(1)).next_back()
            && end.saturating_add(1) >= first
        {
            runs.remove(&start);
            (first, last) = (first.min(start), last.max(end));
        }
        runs.insert(first, last);
    }
}

#[cfg(test)]
mod tests {
    use super::{PIECE_BYTES, PageTable};
    use std::collections::BTreeSet;

    #[test]
    fn neighbours_share_all_tables_and_lie_eight_bytes_apart() {
        let mut table = PageTable::new(12, 4, false);
        for level in 0..3 {
            assert_eq!(table.entry_address(512, level), table.entry_address(513, level));
            assert_eq!(table.entry_name(512, level), table.entry_name(513, level));
        }
        assert_eq!(table.entry_address(512, 3) + 8, table.entry_address(513, 3));
        // Page 511 has its last table for itself.
        assert_ne!(table.entry_name(511, 2), table.entry_name(512, 2));
        assert_eq!(table.entry_address(511, 2) + 8, table.entry_address(512, 2));
    }

    #[test]
    fn a_page_of_2_mb_covers_what_512_pages_of_4_kb_do() {
        let small = PageTable::new(12, 4, false);
        let large = PageTable::new(21, 3, false);
        let pages = |table: &PageTable| {
            (0..512_u64).map(|k| table.page_of((7 << 21) + k * 4096)).collect::<BTreeSet<_>>().len()
        };
        assert_eq!((pages(&small), pages(&large)), (512, 1));
    }

    #[test]
    fn tables_are_handed_out_in_pieces_in_order_of_first_use() {
        let mut table = PageTable::new(12, 2, false);
        let top = table.entry_address(0, 0);
        let first = table.entry_address(5, 1);
        let second = table.entry_address(512, 1);
        assert_eq!(first - 5 * 8 + PIECE_BYTES, second);
        // The top level resolves the remaining 29 bits.
        assert_eq!(first - 5 * 8 - top, 8 << 29);
    }

    #[test]
    fn applications_have_tables_of_their_own() {
        let mut table = PageTable::new(12, 4, false);
        let other = crate::mmu::address_space::tag(1) >> 12;
        for level in 0..4 {
            assert_ne!(table.entry_address(0, level), table.entry_address(other, level));
            assert_ne!(table.entry_name(0, level), table.entry_name(other, level));
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
