//! The page walkers: a limited number of walks in progress, the others in a queue, and a
//! cache of table entries that saves a walk its first reads, or all of them.

use std::collections::VecDeque;

use crate::config::Translation;
use gpumodel_core::units::to_usize;

use super::page_table::PageTable;
use super::tlb::Tlb;
use crate::slab::Slab;

/// One walk, waiting or in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    pub(super) page: u64,
    /// The launch that requested the page first.
    pub(super) kernel: u32,
    /// The level that it reads next; the number of levels when all are read.
    pub(super) level: u32,
    /// Its page was not in memory, or it moves: the walk has released its walker.
    pub(super) faulted: bool,
}

/// The walkers.
#[derive(Debug)]
pub(super) struct Walkers {
    walks: Slab<Walk>,
    idle: u32,
    /// Walks without a walker, oldest first.
    waiting: VecDeque<u32>,
    /// By level, without the last: cached entries.
    entry_caches: Vec<Tlb>,
    /// Cached lines of the last level.
    line_cache: Option<Tlb>,
}

/// Bits of a page number within a line of entries of the last level: 64 bytes of 8 each.
const LINE_BITS: u32 = 3;

impl Walkers {
    /// The idle walkers of `spec`.
    pub(super) fn new(spec: &Translation) -> Self {
        let cached = spec.walk_cache_entries;
        let levels = if cached > 0 { spec.walk_levels - 1 } else { 0 };
        Self {
            walks: Slab::new(),
            idle: spec.walkers,
            waiting: VecDeque::new(),
            entry_caches: (0..levels).map(|_| Tlb::new(cached, cached)).collect(),
            line_cache: (spec.walk_cache_lines > 0)
                .then(|| Tlb::new(spec.walk_cache_lines, spec.walk_cache_lines)),
        }
    }

    /// Adds a walk; returns its number when a walker can begin it now.
    pub(super) fn add(&mut self, page: u64, kernel: u32, table: &PageTable) -> Option<u32> {
        let number = self.walks.insert(Walk { page, kernel, level: 0, faulted: false });
        if self.idle == 0 {
            self.waiting.push_back(number);
            return None;
        }
        self.idle -= 1;
        self.begin(number, table);
        Some(number)
    }

    /// Sets the first level that must be read.
    fn begin(&mut self, number: u32, table: &PageTable) {
        let walk = self.walks.get_mut(number);
        if let Some(lines) = &mut self.line_cache
            && lines.lookup(walk.page >> LINE_BITS)
        {
            walk.level = table.levels;
            return;
        }
        let caches = &mut self.entry_caches;
        let deepest = (0..table.levels)
            .rev()
            .find(|&level| {
                let cache = caches.get_mut(to_usize(level));
                cache.is_some_and(|cache| cache.lookup(table.entry_key(walk.page, level)))
            })
            .map_or(0, |level| level + 1);
        walk.level = deepest;
    }

    /// A walk by number.
    pub(super) fn walk(&self, number: u32) -> Walk {
        *self.walks.get(number)
    }

    /// A walk has read an entry, which is cached; the walk goes to the next level.
    pub(super) fn on_entry(&mut self, number: u32, table: &PageTable) {
        let walk = self.walks.get_mut(number);
        if let Some(cache) = self.entry_caches.get_mut(to_usize(walk.level)) {
            cache.insert(table.entry_key(walk.page, walk.level));
        } else if let Some(lines) = &mut self.line_cache {
            lines.insert(walk.page >> LINE_BITS);
        }
        walk.level += 1;
    }

    /// A walk's page is not in memory: it waits without its walker, which may begin another.
    pub(super) fn fault(&mut self, number: u32, table: &PageTable) -> Option<u32> {
        self.walks.get_mut(number).faulted = true;
        self.release(table)
    }

    /// Ends a walk; returns the walk that its walker begins next.
    pub(super) fn end(&mut self, number: u32, table: &PageTable) -> Option<u32> {
        // A faulted walk has released its walker.
        if self.walks.remove(number).faulted { None } else { self.release(table) }
    }

    /// A walker is free; returns the walk that it begins.
    fn release(&mut self, table: &PageTable) -> Option<u32> {
        let Some(next) = self.waiting.pop_front() else {
            self.idle += 1;
            return None;
        };
        self.begin(next, table);
        Some(next)
    }

    /// All walks, for the dump of a stuck run.
    pub(super) fn len(&self) -> usize {
        self.walks.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::page_table::PageTable;
    use super::Walkers;
    use crate::config::Models;

    #[test]
    fn the_65th_walk_waits_for_one_of_64_walkers() {
        let machine = Models::builtin().machine("ugpu", &[]).unwrap().machine;
        let mut walkers = Walkers::new(machine.translation.as_ref().unwrap());
        let table = PageTable::new(12, 4, false);
        let begun: Vec<Option<u32>> = (0..66).map(|page| walkers.add(page, 0, &table)).collect();
        assert!(begun[..64].iter().all(Option::is_some));
        assert_eq!(begun[64..], [None, None]);
        let next = walkers.end(begun[3].unwrap(), &table).unwrap();
        assert_eq!(walkers.walk(next).page, 64);
        // A walk whose page is absent releases its walker at once, and only once.
        let last = walkers.fault(next, &table).unwrap();
        assert_eq!(walkers.walk(last).page, 65);
        assert_eq!(walkers.end(next, &table), None);
    }
}
