//! Outstanding misses: one entry per line, or part of one, with the requests that wait for it.

use gpumodel_core::units::{to_u32, to_usize};

use super::table::Table;
use crate::bits::bits;

const NONE: u32 = u32::MAX;

/// Parts of an entry: the sectors of a line.
const PARTS: usize = 4;

/// Whether a request joined an outstanding miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merge {
    /// No miss of that key is outstanding.
    Absent,
    /// It waits for the outstanding miss.
    Merged,
    /// The entry has room for no more requests.
    Full,
}

/// The table of outstanding misses; waiters are of type `W`. A key has up to four parts, each
/// of which is fetched once, takes a place, and has up to so many requests that wait for it.
#[derive(Clone, Debug)]
pub(crate) struct Mshr<W> {
    slots: Table,
    entries: Vec<Entry>,
    /// Unused entries.
    free: Vec<u32>,
    /// Parts that may still become outstanding.
    room: u32,
    merge_limit: u32,
    waiters: Vec<Waiting<W>>,
    free_waiter: u32,
}

/// The outstanding parts of one key, and the list of its waiters.
#[derive(Clone, Copy, Debug)]
struct Entry {
    first: u32,
    last: u32,
    /// Outstanding parts, one bit each.
    coming: u8,
    /// Waiters of each part.
    counts: [u32; PARTS],
}

const EMPTY: Entry = Entry { first: NONE, last: NONE, coming: 0, counts: [0; PARTS] };

#[derive(Clone, Copy, Debug)]
struct Waiting<W> {
    waiter: W,
    next: u32,
    /// Parts that it waits for.
    parts: u8,
}

/// What is outstanding of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coming {
    place: u32,
    /// Outstanding parts that a request may wait for.
    pub(crate) open: u8,
    /// Outstanding parts that have room for no more requests.
    pub(crate) full: u8,
}

impl<W: Copy> Mshr<W> {
    /// A table of up to `capacity` outstanding parts with up to `merge_limit` requests each.
    pub(crate) fn new(capacity: u32, merge_limit: u32) -> Self {
        Self {
            slots: Table::new(to_usize(capacity)),
            entries: vec![EMPTY; to_usize(capacity)],
            free: (0..capacity).rev().collect(),
            room: capacity,
            merge_limit,
            waiters: Vec::new(),
            free_waiter: NONE,
        }
    }

    /// Parts that may still become outstanding.
    #[inline]
    pub(crate) fn room(&self) -> u32 {
        self.room
    }

    /// What is outstanding of a key.
    #[inline]
    pub(crate) fn coming(&self, key: u64) -> Coming {
        let Some(place) = self.slots.get(key) else {
            return Coming { place: NONE, open: 0, full: 0 };
        };
        let Entry { coming, counts, .. } = &self.entries[to_usize(place)];
        let full = bits(*coming)
            .filter(|&part| counts[part] >= self.merge_limit)
            .fold(0, |full, part| full | 1 << part);
        Coming { place, open: coming & !full, full }
    }

    /// Lets `waiter` wait for `parts` of a key; those of them in `opened` are outstanding from
    /// now on.
    ///
    /// # Panics
    /// When there is no room for those: the caller checks [`Mshr::room`] first.
    pub(crate) fn join(&mut self, key: u64, coming: Coming, parts: u8, opened: u8, waiter: W) {
        let node = self.new_waiter(waiter, parts);
        self.room -= opened.count_ones();
        let mut place = coming.place;
        if place == NONE {
            place = self.free.pop().expect("an entry has an outstanding part");
            self.slots.insert(key, place);
            self.entries[to_usize(place)] = Entry { first: node, ..EMPTY };
        } else {
            let last = self.entries[to_usize(place)].last;
            self.waiters[to_usize(last)].next = node;
        }
        let entry = &mut self.entries[to_usize(place)];
        entry.last = node;
        entry.coming |= opened;
        bits(parts).for_each(|part| entry.counts[part] += 1);
    }

    /// Parts of a key have arrived: the requests that waited for any are appended to `out` in
    /// their order, with those that they waited for.
    pub(crate) fn arrive(&mut self, key: u64, parts: u8, out: &mut Vec<(W, u8)>) {
        let Some(place) = self.slots.get(key) else { return };
        let entry = &mut self.entries[to_usize(place)];
        let mut node = entry.first;
        let came = entry.coming & parts;
        entry.coming &= !parts;
        let all = entry.coming == 0;
        bits(came).for_each(|part| entry.counts[part] = 0);
        let mut kept = NONE;
        while node != NONE {
            let Waiting { waiter, next, parts: wanted } = self.waiters[to_usize(node)];
            if wanted & parts != 0 {
                out.push((waiter, wanted & parts));
            }
            if wanted & !parts == 0 {
                self.remove_waiter(place, kept, node);
            } else {
                self.waiters[to_usize(node)].parts &= !parts;
                kept = node;
            }
            node = next;
        }
        self.room += came.count_ones();
        if all {
            self.slots.remove(key);
            self.free.push(place);
        }
    }

    /// Takes a waiter out of the list of an entry, where it stands behind `before`.
    #[inline]
    fn remove_waiter(&mut self, place: u32, before: u32, node: u32) {
        let next = self.waiters[to_usize(node)].next;
        let entry = &mut self.entries[to_usize(place)];
        match before {
            NONE => entry.first = next,
            _ => self.waiters[to_usize(before)].next = next,
        }
        if next == NONE {
            entry.last = before;
        }
        self.waiters[to_usize(node)].next = self.free_waiter;
        self.free_waiter = node;
    }

    fn new_waiter(&mut self, waiter: W, parts: u8) -> u32 {
        let waiting = Waiting { waiter, next: NONE, parts };
        if self.free_waiter == NONE {
            self.waiters.push(waiting);
            return to_u32(self.waiters.len() - 1);
        }
        let node = self.free_waiter;
        self.free_waiter = self.waiters[to_usize(node)].next;
        self.waiters[to_usize(node)] = waiting;
        node
    }
}

/// Keys of one part.
impl<W: Copy> Mshr<W> {
    /// True when no further key can be outstanding.
    pub(crate) fn is_full(&self) -> bool {
        self.room == 0
    }

    /// Whether a miss of `key` is outstanding.
    pub(crate) fn holds(&self, key: u64) -> bool {
        self.slots.get(key).is_some()
    }

    /// Lets `waiter` wait for the outstanding miss of `key`, if there is one.
    pub(crate) fn merge(&mut self, key: u64, waiter: W) -> Merge {
        let coming = self.coming(key);
        match (coming.open, coming.full) {
            (0, 0) => return Merge::Absent,
            (0, _) => return Merge::Full,
            (open, _) => self.join(key, coming, open, 0, waiter),
        }
        Merge::Merged
    }

    /// Opens an entry for `key` with its first request.
    ///
    /// # Panics
    /// When the table is full: the caller checks [`Mshr::is_full`] first.
    pub(crate) fn open(&mut self, key: u64, waiter: W) {
        self.join(key, Coming { place: NONE, open: 0, full: 0 }, 1, 1, waiter);
    }

    /// Closes the entry of `key` and appends its requests to `out` in order of arrival.
    pub(crate) fn close(&mut self, key: u64, out: &mut Vec<W>) {
        let Some(place) = self.slots.remove(key) else { return };
        self.free.push(place);
        self.room += 1;
        let mut node = self.entries[to_usize(place)].first;
        while node != NONE {
            let Waiting { waiter, next, .. } = self.waiters[to_usize(node)];
            out.push(waiter);
            self.waiters[to_usize(node)].next = self.free_waiter;
            self.free_waiter = node;
            node = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Merge, Mshr};
    use gpumodel_core::units::to_u8;
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

    /// A key's outstanding parts, and its waiters with what they wait for.
    type Plain = BTreeMap<u64, (u8, Vec<(u64, u8)>)>;

    /// Waits for as many of `parts` as limits allow, as a list of plain rules says.
    fn plain_join(model: &mut Plain, key: u64, parts: u8, waiter: u64) -> (u8, u8) {
        let used: u32 = model.values().map(|(coming, _)| coming.count_ones()).sum();
        let (coming, waiters) = model.entry(key).or_default();
        let (mut joined, mut opened) = (0_u8, 0_u8);
        for part in (0..4).map(|part| 1_u8 << part).filter(|part| parts & part != 0) {
            let waits = waiters.iter().filter(|(_, wanted)| wanted & part != 0).count();
            if *coming & part != 0 {
                joined |= if waits < 3 { part } else { 0 };
            } else if used + opened.count_ones() < 16 {
                opened |= part;
            }
        }
        *coming |= opened;
        if joined | opened != 0 {
            waiters.push((waiter, joined | opened));
        }
        (joined, opened)
    }

    #[test]
    fn parts_arrive_apart_and_agree_with_a_map_under_random_traffic() {
        let mut mshr = Mshr::new(16, 3);
        let mut model = Plain::new();
        let mut state = 7_u64;
        for step in 0..50_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (key, parts) = ((state >> 40) % 12, to_u8(state >> 50 & 0xf));
            if state >> 62 == 0 {
                let mut out = Vec::new();
                mshr.arrive(key, parts, &mut out);
                let (coming, waiters) = model.remove(&key).unwrap_or_default();
                let came = waiters.iter().map(|&(waiter, wanted)| (waiter, wanted & parts));
                assert_eq!(out, came.filter(|(_, came)| *came != 0).collect::<Vec<_>>());
                let left = waiters.into_iter().map(|(waiter, wanted)| (waiter, wanted & !parts));
                let left: Vec<_> = left.filter(|(_, left)| *left != 0).collect();
                if coming & !parts != 0 {
                    model.insert(key, (coming & !parts, left));
                }
                continue;
            }
            let coming = mshr.coming(key);
            let absent = parts & !(coming.open | coming.full);
            let opened = super::bits(absent)
                .take(mshr.room() as usize)
                .fold(0, |opened, part| opened | 1 << part);
            let wanted = parts & coming.open | opened;
            if wanted != 0 {
                mshr.join(key, coming, wanted, opened, step);
            }
            assert_eq!(plain_join(&mut model, key, parts, step), (parts & coming.open, opened));
            model.retain(|_, (coming, _)| *coming != 0);
        }
    }
}
