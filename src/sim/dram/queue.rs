//! Requests that wait, by bank and by kind, in order of arrival. Allocated once.

use crate::config::ControllerOptions;
use gpumodel_core::units::to_u32;

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
    /// How many of the oldest the scheduler sees.
    seen: u32,
}

impl List {
    /// The oldest that the scheduler sees.
    #[inline]
    pub(super) fn first(&self) -> u32 {
        if self.seen == 0 { NONE } else { self.head }
    }
}

/// All waiting accesses of a channel.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    entries: Vec<Entry>,
    free: u32,
    lists: Vec<[List; KINDS]>,
    sequence: u64,
    /// Places of a bank's queue for reads and writes together; `u32::MAX`: the
    /// scheduler sees all that wait.
    places: u32,
    /// Places taken, by bank.
    placed: Vec<u32>,
    /// What moves into free places: reads, or writes while they are drained.
    filling: [bool; KINDS],
    /// Writes that the drain still moves.
    draining: u32,
    /// Entries that count for each kind's queue.
    pub(super) waiting: [u32; KINDS],
    /// Entries of each kind.
    pub(super) held: [u32; KINDS],
}

impl Queue {
    /// Lists for `banks` banks with the queues that `options` ask for.
    pub(super) fn new(banks: usize, options: &ControllerOptions) -> Self {
        let limited = options.bank_queue > 0;
        let seen = if limited { 0 } else { u32::MAX };
        let empty = List { head: NONE, tail: NONE, hit: NONE, length: 0, seen };
        Self {
            entries: Vec::new(),
            free: NONE,
            lists: vec![[empty; KINDS]; banks],
            sequence: 0,
            places: if limited { options.bank_queue } else { u32::MAX },
            placed: vec![0; if limited { banks } else { 0 }],
            filling: [true, options.unified_queue],
            draining: 0,
            waiting: [0; KINDS],
            held: [0; KINDS],
        }
    }

    #[inline]
    fn limited(&self) -> bool {
        self.places != u32::MAX
    }

    /// Reads and writes that wait for their turn, as the drain counts them.
    #[inline]
    pub(super) fn sizes(&self) -> [u32; KINDS] {
        if self.limited() { self.held } else { self.waiting }
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
        let limited = self.limited();
        let list = &mut self.lists[bank][kind];
        let (tail, first) = (list.tail, list.length == 0);
        let hits = !limited && list.hit == NONE && row == open;
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
        self.waiting[kind] += 1;
        if limited { self.place(bank, kind, open) } else { first || hits }
    }

    /// Moves accesses of a bank into its free places; true when any moved.
    fn place(&mut self, bank: usize, kind: usize, open: u32) -> bool {
        if !self.filling[kind] {
            return false;
        }
        let list = &mut self.lists[bank][kind];
        let free = self.places - self.placed[bank];
        let moved = free.min(list.length - list.seen);
        list.seen += moved;
        self.placed[bank] += moved;
        self.waiting[kind] -= moved;
        if kind == WRITE {
            self.draining = self.draining.saturating_sub(moved);
        }
        if moved > 0 {
            self.find_hit(bank, kind, open);
        }
        moved > 0
    }

    /// With places per bank, begins and ends draining writes into them: when
    /// `most` wait or nothing else does. True when accesses of any bank moved.
    #[inline]
    pub(super) fn stage(&mut self, most: u32, open: impl Fn(usize) -> u32) -> bool {
        if !self.limited() {
            return false;
        }
        let mut any = false;
        while self.turns(most) {
            let kind = if self.filling[READ] { READ } else { WRITE };
            for bank in 0..self.lists.len() {
                any |= self.place(bank, kind, open(bank));
            }
        }
        any
    }

    /// Changes what fills the places, when it is time.
    fn turns(&mut self, most: u32) -> bool {
        let writes = self.waiting[WRITE];
        match self.filling {
            [true, true] => return false,
            [true, false] if writes < most && (writes == 0 || self.held[READ] > 0) => return false,
            [true, false] => self.draining = writes,
            [false, _] if self.draining > 0 => return false,
            [false, _] => {}
        }
        self.filling = [!self.filling[READ], self.filling[READ]];
        true
    }

    /// Takes an access out of its list; it keeps its content until released.
    pub(super) fn remove(&mut self, bank: usize, kind: usize, at: u32, open: u32) {
        let Entry { next, previous, left_queue, .. } = *self.entry(at);
        let limited = self.limited();
        let list = &mut self.lists[bank][kind];
        list.length -= 1;
        if previous == NONE {
            list.head = next;
        }
        if next == NONE {
            list.tail = previous;
        }
        let was_hit = list.hit == at;
        if limited {
            list.seen -= 1;
        }
        if previous != NONE {
            self.entry_mut(previous).next = next;
        }
        if next != NONE {
            self.entry_mut(next).previous = previous;
        }
        self.held[kind] -= 1;
        if limited {
            self.placed[bank] -= 1;
            self.find_hit(bank, kind, open);
            self.place(bank, READ, open);
            self.place(bank, WRITE, open);
        } else {
            self.waiting[kind] -= u32::from(!left_queue);
            if was_hit {
                self.lists[bank][kind].hit = self.first_with(next, open, u32::MAX);
            }
        }
    }

    /// Looks for the oldest access to the row `open` in sight.
    pub(super) fn find_hit(&mut self, bank: usize, kind: usize, open: u32) {
        let List { head, seen, .. } = self.lists[bank][kind];
        self.lists[bank][kind].hit = self.first_with(head, open, seen);
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
        let List { head: mut at, seen: mut left, .. } = self.lists[bank][kind];
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
