//! A translation lookaside buffer with LRU replacement. Also the walk cache of one level,
//! whose pages are table entries.

use gpumodel_core::units::{to_u32, to_usize};

use crate::cache::{LineOrder, SetIndex, Table};
use crate::config::SetHash;

/// No page: also the key that [`Table`] does not allow.
const EMPTY: u64 = u64::MAX;

/// The pages with a cached translation.
#[derive(Debug)]
pub(crate) struct Tlb {
    index: SetIndex,
    /// By entry, set by set.
    pages: Vec<u64>,
    entry_of: Table,
    order: LineOrder,
}

impl Tlb {
    /// An empty TLB of `entries` entries in sets of `ways`, which divide them.
    pub(crate) fn new(entries: u32, ways: u32) -> Self {
        let sets = entries / ways;
        Self {
            index: SetIndex::new(sets, SetHash::Linear, 0),
            pages: vec![EMPTY; to_usize(entries)],
            entry_of: Table::new(to_usize(entries)),
            order: LineOrder::new(sets, ways),
        }
    }

    /// Looks a page up: true for a hit, which counts as a use.
    pub(crate) fn lookup(&mut self, page: u64) -> bool {
        let found = self.entry_of.get(page);
        if let Some(entry) = found {
            self.order.move_to_youngest(to_usize(entry));
        }
        found.is_some()
    }

    /// Inserts a page as the one used last.
    pub(crate) fn insert(&mut self, page: u64) {
        if self.lookup(page) {
            return;
        }
        let set = to_usize(self.index.of(page));
        let entry = self.order.oldest(set, |_| true).expect("a set has ways");
        let old = std::mem::replace(&mut self.pages[entry], page);
        if old != EMPTY {
            self.entry_of.remove(old);
        }
        self.entry_of.insert(page, to_u32(entry));
        self.order.move_to_youngest(entry);
    }

    /// Removes a page: the next one of its set replaces it.
    pub(crate) fn remove(&mut self, page: u64) {
        if let Some(entry) = self.entry_of.remove(page) {
            self.pages[to_usize(entry)] = EMPTY;
            self.order.move_to_oldest(to_usize(entry));
        }
    }

    /// Removes all pages.
    pub(crate) fn clear(&mut self) {
        for page in &mut self.pages {
            if *page != EMPTY {
                self.entry_of.remove(std::mem::replace(page, EMPTY));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Tlb, to_usize};
    use proptest::prelude::*;

    /// Pages by set, the one used last at the end.
    struct Naive {
        sets: Vec<Vec<u64>>,
        ways: usize,
    }

    impl Naive {
        fn access(&mut self, page: u64) -> bool {
            let count = self.sets.len() as u64;
            let set = &mut self.sets[to_usize(page % count)];
            let found = set.iter().position(|&p| p == page);
            if let Some(at) = found {
                set.remove(at);
            } else if set.len() == self.ways {
                set.remove(0);
            }
            set.push(page);
            found.is_some()
        }

        fn remove(&mut self, page: u64) {
            let count = self.sets.len() as u64;
            self.sets[to_usize(page % count)].retain(|&other| other != page);
        }
    }

    fn access(tlb: &mut Tlb, page: u64) -> bool {
        let hit = tlb.lookup(page);
        tlb.insert(page);
        hit
    }

    proptest! {
        #[test]
        fn a_naive_one_agrees_access_by_access(
            (sets, ways) in (1_u32..9, 1_u32..9),
            steps in prop::collection::vec((0_u64..80, prop::bool::weighted(0.2)), 0..600),
        ) {
            let mut tlb = Tlb::new(sets * ways, ways);
            let lists = vec![Vec::new(); sets as usize];
            let mut naive = Naive { sets: lists, ways: ways as usize };
            for (page, removed) in steps {
                if removed {
                    tlb.remove(page);
                    naive.remove(page);
                    continue;
                }
                prop_assert_eq!(access(&mut tlb, page), naive.access(page));
            }
        }
    }

    proptest! {
        #[test]
        fn larger_pages_never_miss_more(
            entries in 1_u32..20,
            pages in prop::collection::vec(0_u64..100, 0..400),
            bits in 0_u32..5,
        ) {
            let misses = |bits: u32| {
                let mut tlb = Tlb::new(entries, entries);
                pages.iter().filter(|&&page| !access(&mut tlb, page >> bits)).count()
            };
            prop_assert!(misses(bits + 1) <= misses(bits));
        }
    }

    /// Misses of the fourth round over `pages` pages that lie `stride` apart.
    fn misses_of_a_round(entries: u32, ways: u32, pages: u64, stride: u64) -> u64 {
        let mut tlb = Tlb::new(entries, ways);
        let mut misses = 0;
        for round in 0..4 {
            misses = 0;
            for page in 0..pages {
                misses += u64::from(!access(&mut tlb, page * stride));
            }
            assert!(round > 0 || misses == pages, "the first round is cold");
        }
        misses
    }

    #[test]
    fn pages_of_one_set_thrash_exactly_beyond_its_ways() {
        // 512 entries, 16 ways: 32 sets, so pages 32 apart share one.
        assert_eq!(misses_of_a_round(512, 16, 16, 32), 0);
        assert_eq!(misses_of_a_round(512, 16, 17, 32), 17);
        assert_eq!(misses_of_a_round(512, 16, 512, 1), 0);
    }

    #[test]
    fn a_fully_associative_one_holds_any_pages_up_to_its_entries() {
        assert_eq!(misses_of_a_round(64, 64, 64, 4096), 0);
        assert_eq!(misses_of_a_round(64, 64, 65, 4096), 65);
    }
}
