//! Requests that wait, by bank and by kind, in order of arrival. Allocated once.

use crate::units::to_u32;

/// No entry.
pub(super) const NONE: u32 = u32::MAX;

/// Reads and writes wait in lists of their own.
pub(super) const KINDS: usize = 2;

/// Index of the reads' list of a bank.
pub(super) const READ: usize = 0;

/// Index of the writes' list of a bank.
pub(super) const WRITE: usize = 1;

/// One waiting access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The caller's name for it.
    pub(super) token: u32,
    /// Row of its bank.
    pub(super) row: u32,
    /// Access within the row.
    pub(super) column: u32,
    /// The entry behind it in its list, or a request that is served with it.
    pub(super) next: u32,
    previous: u32,
    /// First of the requests that are served with this one.
    pub(super) merged: u32,
    /// Order of arrival.
    pub(super) sequence: u64,
    /// A command was sent for it.
    pub(super) touched: bool,
    /// It opened its row and does not count for its queue any more.
    pub(super) left_queue: bool,
}

/// The waiting accesses of one bank and kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    /// The oldest.
    pub(super) head: u32,
    tail: u32,
    /// The oldest whose row is open.
    pub(super) hit: u32,
    /// How many wait.
    pub(super) length: u32,
}

/// All waiting accesses of a channel.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    entries: Vec<Entry>,
    free: u32,
    lists: Vec<[List; KINDS]>,
    sequence: u64,
    /// Entries of a list that the scheduler sees.
    sight: u32,
    /// Entries that count for each kind's queue.
    pub(super) waiting: [u32; KINDS],
    /// Entries of each kind.
    pub(super) held: [u32; KINDS],
}

impl Queue {
    /// Lists for `banks` banks whose first `sight` entries are seen (0: all).
    pub(super) fn new(banks: usize, sight: u32) -> Self {
        let empty = List { head: NONE, tail: NONE, hit: NONE, length: 0 };
        Self {
            entries: Vec::new(),
            free: NONE,
            lists: vec![[empty; KINDS]; banks],
            sequence: 0,
            sight: if sight == 0 { u32::MAX } else { sight },
            waiting: [0; KINDS],
            held: [0; KINDS],
        }
    }

    /// Reads and writes that wait for their turn, as the drain counts them.
    #[inline]
    pub(super) fn sizes(&self) -> [u32; KINDS] {
        if self.sight == u32::MAX { self.waiting } else { self.held }
    }

    #[inline]
    pub(super) fn list(&self, bank: usize, kind: usize) -> &List {
        &self.lists[bank][kind]
    }

    #[inline]
    pub(super) fn entry(&self, at: u32) -> &Entry {
        &self.entries[at as usize]
    }

    #[inline]
    pub(super) fn entry_mut(&mut self, at: u32) -> &mut Entry {
        &mut self.entries[at as usize]
    }

    /// True when nothing waits for `bank`.
    #[inline]
    pub(super) fn is_empty(&self, bank: usize) -> bool {
        self.lists[bank][READ].length == 0 && self.lists[bank][WRITE].length == 0
    }

    /// A fresh entry that is in no list; memory grows only until the largest
    /// number of requests has once waited.
    fn allocate(&mut self, token: u32, row: u32, column: u32) -> u32 {
        let entry = Entry {
            token,
            row,
            column,
            next: NONE,
            previous: NONE,
            merged: NONE,
            sequence: self.sequence,
            touched: false,
            left_queue: false,
        };
        self.sequence += 1;
        if self.free == NONE {
            self.entries.push(entry);
            return to_u32(self.entries.len() - 1);
        }
        let at = self.free;
        self.free = self.entry(at).next;
        *self.entry_mut(at) = entry;
        at
    }

    /// Gives an entry that is in no list back.
    pub(super) fn release(&mut self, at: u32) {
        self.entry_mut(at).next = self.free;
        self.free = at;
    }

    /// Appends an access; true when it is now the oldest of its list or its hit,
    /// so that the bank has a new candidate. `open` is the bank's row.
    pub(super) fn push(
        &mut self,
        (bank, kind): (usize, usize),
        token: u32,
        (row, column): (u32, u32),
        open: u32,
    ) -> bool {
        let at = self.allocate(token, row, column);
        let list = &mut self.lists[bank][kind];
        let seen = list.length < self.sight;
        let (tail, first) = (list.tail, list.length == 0);
        let hits = seen && list.hit == NONE && row == open;
        list.tail = at;
        list.length += 1;
        if first {
            list.head = at;
        }
        if hits {
            list.hit = at;
        }
        if !first {
            self.entry_mut(at).previous = tail;
            self.entry_mut(tail).next = at;
        }
        self.held[kind] += 1;
        self.waiting[kind] += u32::from(self.counts_outside(seen));
        first || hits
    }

    /// With limited sight the queue's room is for those out of sight.
    fn counts_outside(&self, seen: bool) -> bool {
        self.sight == u32::MAX || !seen
    }

    /// Takes an access out of its list; it keeps its content until released.
    pub(super) fn remove(&mut self, bank: usize, kind: usize, at: u32, open: u32) {
        let Entry { next, previous, left_queue, .. } = *self.entry(at);
        let sight = self.sight;
        let list = &mut self.lists[bank][kind];
        let moves_up = sight == u32::MAX || list.length > sight;
        list.length -= 1;
        if previous == NONE {
            list.head = next;
        }
        if next == NONE {
            list.tail = previous;
        }
        let was_hit = list.hit == at;
        if previous != NONE {
            self.entry_mut(previous).next = next;
        }
        if next != NONE {
            self.entry_mut(next).previous = previous;
        }
        self.held[kind] -= 1;
        self.waiting[kind] -= u32::from(moves_up && !left_queue);
        if sight != u32::MAX {
            self.find_hit(bank, kind, open);
        } else if was_hit {
            self.lists[bank][kind].hit = self.first_with(next, open, u32::MAX);
        }
    }

    /// Looks for the oldest access to the row `open` in sight.
    pub(super) fn find_hit(&mut self, bank: usize, kind: usize, open: u32) {
        let head = self.lists[bank][kind].head;
        self.lists[bank][kind].hit = self.first_with(head, open, self.sight);
    }

    /// Forgets the hits of a bank that was closed.
    pub(super) fn forget_hits(&mut self, bank: usize) {
        for list in &mut self.lists[bank] {
            list.hit = NONE;
        }
    }

    fn first_with(&self, mut at: u32, row: u32, sight: u32) -> u32 {
        let mut left = sight;
        while at != NONE && left > 0 {
            let entry = self.entry(at);
            if entry.row == row {
                return at;
            }
            at = entry.next;
            left -= 1;
        }
        NONE
    }

    /// True when a younger access behind `at` needs the same row.
    pub(super) fn hits_behind(&self, at: u32) -> bool {
        let entry = self.entry(at);
        self.first_with(entry.next, entry.row, u32::MAX) != NONE
    }

    /// The oldest access of a list in sight that needs another row than `open`.
    pub(super) fn first_miss(&self, bank: usize, kind: usize, open: u32) -> u32 {
        let mut at = self.lists[bank][kind].head;
        let mut left = self.sight;
        while at != NONE && left > 0 {
            let entry = self.entry(at);
            if entry.row != open {
                return at;
            }
            at = entry.next;
            left -= 1;
        }
        NONE
    }

    /// The waiting access to that very place.
    pub(super) fn find(&self, bank: usize, kind: usize, row: u32, column: u32) -> u32 {
        let mut at = self.lists[bank][kind].head;
        while at != NONE {
            let entry = self.entry(at);
            if (entry.row, entry.column) == (row, column) {
                return at;
            }
            at = entry.next;
        }
        NONE
    }

    /// Lets a request be served together with the waiting access `with`.
    pub(super) fn merge(&mut self, with: u32, token: u32) {
        let at = self.allocate(token, self.entry(with).row, self.entry(with).column);
        self.entry_mut(at).next = self.entry(with).merged;
        self.entry_mut(with).merged = at;
    }

    /// The entry opened its row and leaves its queue.
    pub(super) fn leave(&mut self, kind: usize, at: u32) {
        let entry = self.entry_mut(at);
        if !entry.left_queue {
            entry.left_queue = true;
            self.waiting[kind] -= 1;
        }
    }
}
