//! Waiting requests by bank and kind in order of arrival, and when writes are served.

use crate::config::ControllerOptions;
use gpumodel_core::units::{to_u32, to_u64};

/// No entry.
pub(super) const NONE: u32 = u32::MAX;

/// Reads and writes wait in separate lists.
pub(super) const KINDS: usize = 2;

/// Index of the reads' list of a bank.
pub(super) const READ: usize = 0;

/// Index of the writes' list of a bank.
pub(super) const WRITE: usize = 1;

/// One waiting access, or several to one row that were offered together and are served one
/// after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The caller's number for it.
    pub(super) token: u32,
    /// Row of its bank.
    pub(super) row: u32,
    /// First access within the row.
    first_column: u32,
    /// Accesses from there on that are not served yet, one bit each.
    columns: u8,
    /// The next entry of its list, or the next request merged into the same one.
    pub(super) next: u32,
    previous: u32,
    /// First of the requests merged into this one.
    pub(super) merged: u32,
    /// Order of arrival.
    pub(super) sequence: u64,
    /// A command was sent for it.
    pub(super) touched: bool,
    /// It opened its row and no longer counts for its queue.
    pub(super) left_queue: bool,
}

impl Entry {
    /// The access within the row that is served next.
    #[inline]
    pub(super) fn column(&self) -> u32 {
        self.first_column + self.columns.trailing_zeros()
    }

    /// Its accesses that are not served yet, one bit each from the column `first` on.
    #[inline]
    fn columns_from(&self, first: u32) -> u8 {
        let columns = u32::from(self.columns);
        let moved = match self.first_column.checked_sub(first) {
            Some(up) => columns.checked_shl(up).unwrap_or(0),
            None => columns.checked_shr(first - self.first_column).unwrap_or(0),
        };
        moved.to_le_bytes()[0]
    }

    /// True when it has further accesses behind that.
    #[inline]
    pub(super) fn has_more(&self) -> bool {
        self.columns & self.columns.wrapping_sub(1) != 0
    }
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
    /// Places of a bank's own queue for reads and writes together; `u32::MAX`: the scheduler
    /// sees all that wait.
    places: u32,
    /// Occupied places by bank.
    placed: Vec<u32>,
    /// The kinds that move into free places: reads, or writes while they are drained.
    filling: [bool; KINDS],
    /// Writes that the drain has still to move.
    draining: u32,
    /// Entries that count for each kind's queue.
    pub(super) waiting: [u32; KINDS],
    /// Entries of each kind.
    pub(super) total: [u32; KINDS],
}

impl Queue {
    /// Empty lists for `banks` banks.
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
            total: [0; KINDS],
        }
    }

    #[inline]
    fn limited(&self) -> bool {
        self.places != u32::MAX
    }

    /// Waiting reads and writes as the drain counts them.
    #[inline]
    pub(super) fn sizes(&self) -> [u32; KINDS] {
        if self.limited() { self.total } else { self.waiting }
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

    /// A new entry that is in no list; freed ones are used again.
    fn allocate(&mut self, token: u32, row: u32, (first_column, columns): (u32, u8)) -> u32 {
        let entry = Entry {
            token,
            row,
            first_column,
            columns,
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

    /// Frees an entry that is in no list.
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
        (row, column, columns): (u32, u32, u8),
        open: u32,
    ) -> bool {
        let at = self.allocate(token, row, (column, columns));
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
        self.total[kind] += columns.count_ones();
        self.waiting[kind] += columns.count_ones();
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

    /// With places per bank, starts and ends draining writes into them: when `most` wait or
    /// nothing else does. True when accesses of any bank moved.
    #[inline]
    pub(super) fn fill_bank_queues(&mut self, most: u32, open: impl Fn(usize) -> u32) -> bool {
        if !self.limited() {
            return false;
        }
        let mut any = false;
        while self.switches_kind(most) {
            let kind = if self.filling[READ] { READ } else { WRITE };
            for bank in 0..self.lists.len() {
                any |= self.place(bank, kind, open(bank));
            }
        }
        any
    }

    /// Changes the kind that fills the places where it must change now.
    fn switches_kind(&mut self, most: u32) -> bool {
        let writes = self.waiting[WRITE];
        match self.filling {
            [true, true] => return false,
            [true, false] if writes < most && (writes == 0 || self.total[READ] > 0) => {
                return false;
            }
            [true, false] => self.draining = writes,
            [false, _] if self.draining > 0 => return false,
            [false, _] => {}
        }
        self.filling = [!self.filling[READ], self.filling[READ]];
        true
    }

    /// The next access of an entry that has more is served: it stays.
    pub(super) fn serve_one(&mut self, kind: usize, at: u32) {
        let entry = &mut self.entries[at as usize];
        self.total[kind] -= 1;
        self.waiting[kind] -= u32::from(!entry.left_queue);
        entry.columns &= entry.columns - 1;
        (entry.touched, entry.left_queue) = (false, false);
    }

    /// Removes an access from its list; it keeps its content until released.
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
        self.total[kind] -= 1;
        if limited {
            self.placed[bank] -= 1;
            self.find_hit(bank, kind, open);
            self.place(bank, READ, open);
            self.place(bank, WRITE, open);
        } else {
            self.waiting[kind] -= u32::from(!left_queue);
            if was_hit {
                self.lists[bank][kind].hit = self.search(next, u32::MAX, |entry| entry.row == open);
            }
        }
    }

    /// Finds the oldest access to the row `open` among those that the scheduler sees.
    pub(super) fn find_hit(&mut self, bank: usize, kind: usize, open: u32) {
        let List { head, seen, .. } = self.lists[bank][kind];
        self.lists[bank][kind].hit = self.search(head, seen, |entry| entry.row == open);
    }

    /// Forgets the hits of a bank that was closed.
    pub(super) fn forget_hits(&mut self, bank: usize) {
        for list in &mut self.lists[bank] {
            list.hit = NONE;
        }
    }

    /// The first entry of a list from `at` on, among at most `seen`, that `matches`.
    #[inline]
    fn search(&self, mut at: u32, mut seen: u32, matches: impl Fn(&Entry) -> bool) -> u32 {
        while at != NONE && seen > 0 {
            let entry = self.entry(at);
            if matches(entry) {
                return at;
            }
            at = entry.next;
            seen -= 1;
        }
        NONE
    }

    /// True when a younger access behind `at` needs the same row.
    pub(super) fn hits_behind(&self, at: u32) -> bool {
        let Entry { next, row, .. } = *self.entry(at);
        self.search(next, u32::MAX, |entry| entry.row == row) != NONE
    }

    /// The oldest access that the scheduler sees of a list and that needs another row than
    /// `open`.
    pub(super) fn first_miss(&self, bank: usize, kind: usize, open: u32) -> u32 {
        let List { head, seen, .. } = self.lists[bank][kind];
        self.search(head, seen, |entry| entry.row != open)
    }

    /// The waiting access to a row and column.
    pub(super) fn find(&self, bank: usize, kind: usize, row: u32, column: u32) -> u32 {
        let head = self.lists[bank][kind].head;
        let matches = |entry: &Entry| entry.row == row && entry.columns_from(column) & 1 != 0;
        self.search(head, u32::MAX, matches)
    }

    /// Columns of a row from `first` on that waiting accesses of a kind are to, one bit each.
    pub(super) fn waiting_columns(&self, bank: usize, kind: usize, row: u32, first: u32) -> u8 {
        let (mut at, mut all) = (self.lists[bank][kind].head, 0);
        while at != NONE {
            let entry = self.entry(at);
            if entry.row == row {
                all |= entry.columns_from(first);
            }
            at = entry.next;
        }
        all
    }

    /// Adds accesses to the youngest entry of a list, where it holds those before them of the
    /// same block and nothing has been accepted in between.
    pub(super) fn extend(
        &mut self,
        (bank, kind): (usize, usize),
        token: u32,
        (row, column, columns): (u32, u32, u8),
    ) -> bool {
        let List { tail, length, .. } = self.lists[bank][kind];
        if self.limited() || length == 0 {
            return false;
        }
        let last = self.sequence - 1;
        let entry = self.entry_mut(tail);
        let block = (entry.token, entry.row, entry.first_column, entry.sequence);
        let later = entry.columns >> (columns.trailing_zeros() % u8::BITS) == 0;
        if block != (token, row, column, last) || !later {
            return false;
        }
        entry.columns |= columns;
        self.total[kind] += columns.count_ones();
        self.waiting[kind] += columns.count_ones();
        true
    }

    /// Merges a request into the waiting access `with`.
    pub(super) fn merge(&mut self, with: u32, token: u32) {
        let at = self.allocate(token, self.entry(with).row, (self.entry(with).column(), 1));
        self.entry_mut(at).next = self.entry(with).merged;
        self.entry_mut(with).merged = at;
    }

    /// The next access of the entry opened its row and leaves its queue.
    pub(super) fn leave(&mut self, kind: usize, at: u32) {
        let entry = self.entry_mut(at);
        if !entry.left_queue {
            entry.left_queue = true;
            self.waiting[kind] -= 1;
        }
    }
}

/// Switches between serving reads and serving writes, by watermarks.
///
/// The mode is updated once per clock, from the queues as the clock before left them;
/// between two changes of the queues it stays, so dead clocks need not be visited.
#[derive(Clone, Debug)]
pub(super) struct WriteDrain {
    /// Reads and writes are served mixed.
    mixed: bool,
    /// Writes are being served.
    writing: bool,
    /// More writes than this start the drain.
    high: u64,
    /// Fewer than this end it, when reads wait.
    low: u64,
    /// Clocks without a waiting read after which any write starts it.
    idle: u64,
    /// The clock since which no read has waited.
    no_reads_since: Option<u64>,
    /// The clock at which the queues changed since the mode was updated.
    changed_at: Option<u64>,
}

impl WriteDrain {
    pub(super) fn new(options: &ControllerOptions) -> Self {
        let queue = f64::from(options.write_queue);
        Self {
            mixed: options.unified_queue || options.bank_queue > 0,
            writing: false,
            high: whole((options.write_high * queue).floor()),
            low: whole((options.write_low * queue).ceil()),
            idle: u64::from(options.write_idle),
            no_reads_since: Some(0),
            changed_at: Some(0),
        }
    }

    /// True when requests of `kind` may be served.
    #[inline]
    pub(super) fn serves(&self, kind: usize) -> bool {
        self.mixed || self.writing == (kind == WRITE)
    }

    /// Updates the mode before something changes or is served at `clock`; true when the mode
    /// changed.
    #[inline]
    pub(super) fn update(&mut self, clock: u64, waiting: [u32; KINDS]) -> bool {
        let unchanged = self.changed_at.is_none_or(|at| at >= clock);
        if unchanged && self.starts_at(waiting) > clock {
            return false;
        }
        self.changed_at = None;
        let before = self.writing;
        self.writing = self.wants_writes(clock, waiting);
        before != self.writing
    }

    /// The queues changed at `clock`; true when the mode changes with the next clock.
    #[inline]
    pub(super) fn change(&mut self, clock: u64, waiting: [u32; KINDS]) -> bool {
        self.changed_at = Some(clock);
        if waiting[READ] > 0 {
            self.no_reads_since = None;
        } else if self.no_reads_since.is_none() {
            self.no_reads_since = Some(clock);
        }
        !self.mixed && self.wants_writes(clock + 1, waiting) != self.writing
    }

    /// The clock at which writes are served because no read has waited for long, where they are
    /// not served yet and the queues stay as they are.
    #[inline]
    pub(super) fn starts_at(&self, waiting: [u32; KINDS]) -> u64 {
        match self.no_reads_since {
            Some(since) if self.idle > 0 && !self.mixed && !self.writing && waiting[WRITE] > 0 => {
                since + self.idle
            }
            _ => u64::MAX,
        }
    }

    fn wants_writes(&self, clock: u64, waiting: [u32; KINDS]) -> bool {
        let writes = to_u64(waiting[WRITE]);
        let idle = self.no_reads_since.is_some_and(|since| clock >= since + self.idle);
        if self.writing { writes >= self.low.max(1) || idle } else { writes > self.high || idle }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of at most 4096
fn whole(value: f64) -> u64 {
    value as u64
}
