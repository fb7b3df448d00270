//! Outstanding misses: one entry per sector with the requests that wait for it.

use gpumodel_core::units::{to_u32, to_usize};

use super::table::Table;

const NONE: u32 = u32::MAX;

/// Whether a request joined an outstanding miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merge {
    /// No miss of that sector is outstanding.
    Absent,
    /// It waits for the outstanding miss.
    Merged,
    /// The entry has room for no more requests.
    Full,
}

/// The table of outstanding sector misses; waiters are of type `W`.
#[derive(Clone, Debug)]
pub(crate) struct Mshr<W> {
    slots: Table,
    entries: Vec<Entry>,
    /// Unused entries.
    free: Vec<u32>,
    merge_limit: u32,
    waiters: Vec<(W, u32)>,
    free_waiter: u32,
}

/// One outstanding miss: the list of its waiters.
#[derive(Clone, Copy, Debug)]
struct Entry {
    first: u32,
    last: u32,
    count: u32,
}

impl<W: Copy> Mshr<W> {
    /// A table of `capacity` entries with up to `merge_limit` requests each.
    pub(crate) fn new(capacity: u32, merge_limit: u32) -> Self {
        Self {
            slots: Table::new(to_usize(capacity)),
            entries: vec![Entry { first: NONE, last: NONE, count: 0 }; to_usize(capacity)],
            free: (0..capacity).rev().collect(),
            merge_limit,
            waiters: Vec::new(),
            free_waiter: NONE,
        }
    }

    /// True when no further sector can be outstanding.
    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Lets `waiter` wait for the outstanding miss of `sector`, if there is one.
    pub(crate) fn merge(&mut self, sector: u64, waiter: W) -> Merge {
        let Some(place) = self.slots.get(sector) else { return Merge::Absent };
        let Entry { last, count, .. } = self.entries[to_usize(place)];
        if count >= self.merge_limit {
            return Merge::Full;
        }
        let node = self.new_waiter(waiter);
        self.waiters[to_usize(last)].1 = node;
        let entry = &mut self.entries[to_usize(place)];
        entry.last = node;
        entry.count += 1;
        Merge::Merged
    }

    /// Opens an entry for `sector` with its first request.
    ///
    /// # Panics
    /// When the table is full: the caller checks [`Mshr::is_full`] first.
    pub(crate) fn open(&mut self, sector: u64, waiter: W) {
        let place = self.free.pop().expect("the caller checked that an entry is free");
        let node = self.new_waiter(waiter);
        self.entries[to_usize(place)] = Entry { first: node, last: node, count: 1 };
        self.slots.insert(sector, place);
    }

    /// Closes the entry of `sector` and appends its requests to `out` in order of arrival.
    pub(crate) fn close(&mut self, sector: u64, out: &mut Vec<W>) {
        let Some(place) = self.slots.remove(sector) else { return };
        self.free.push(place);
        let mut node = self.entries[to_usize(place)].first;
        while node != NONE {
            let (waiter, next) = self.waiters[to_usize(node)];
            out.push(waiter);
            self.waiters[to_usize(node)].1 = self.free_waiter;
            self.free_waiter = node;
            node = next;
        }
    }

    fn new_waiter(&mut self, waiter: W) -> u32 {
        if self.free_waiter == NONE {
            self.waiters.push((waiter, NONE));
            return to_u32(self.waiters.len() - 1);
        }
        let node = self.free_waiter;
        self.free_waiter = self.waiters[to_usize(node)].1;
        self.waiters[to_usize(node)] = (waiter, NONE);
        node
    }
}

#[cfg(test)]
mod tests {
    use super::{Merge, Mshr};
    use std::collections::BTreeMap;

    #[test]
    fn a_full_entry_refuses_and_a_closed_one_returns_its_requests_in_order() {
        let mut mshr = Mshr::new(2, 2);
        assert_eq!(mshr.merge(7, 1), Merge::Absent);
        mshr.open(7, 1);
        assert_eq!(mshr.merge(7, 2), Merge::Merged);
        assert_eq!(mshr.merge(7, 3), Merge::Full);
        mshr.open(9, 4);
        assert!(mshr.is_full());
        let mut out = Vec::new();
        mshr.close(7, &mut out);
        assert_eq!(out, [1, 2]);
        assert!(!mshr.is_full());
        assert_eq!(mshr.merge(7, 5), Merge::Absent);
    }

    #[test]
    fn agrees_with_a_map_under_random_traffic() {
        let mut mshr = Mshr::new(64, 4);
        let mut model: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let mut state = 7_u64;
        for step in 0..50_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let sector = (state >> 40) % 200;
            if state >> 62 == 0 {
                let mut out = Vec::new();
                mshr.close(sector, &mut out);
                assert_eq!(out, model.remove(&sector).unwrap_or_default());
                continue;
            }
            match mshr.merge(sector, step) {
                Merge::Absent => {
                    assert!(!model.contains_key(&sector));
                    if !mshr.is_full() {
                        mshr.open(sector, step);
                        model.insert(sector, vec![step]);
                    }
                }
                Merge::Merged => model.get_mut(&sector).unwrap().push(step),
                Merge::Full => assert_eq!(model[&sector].len(), 4),
            }
        }
    }
}
