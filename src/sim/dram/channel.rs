//! The controller of one channel: accepts requests, sleeps, wakes and sends commands.

use std::collections::VecDeque;

use super::arbiter::{self, COLUMN, Candidates, NextCommand, Pick, ROW, RequestOrder};
use super::device::{CLOSED, Device};
use super::migration::MigrationBanks;
use super::queue::{Entry, KINDS, List, NONE, Queue, READ, WRITE, WriteDrain};
use super::refresh::RefreshTimer;
use super::{Block, ChannelCounters, Done, Issued, Request};
use crate::config::{Command, ControllerOptions, MemoryStandard, PagePolicy};
use gpumodel_core::units::{to_u32, to_u64, to_usize};

/// Requests that may be merged into others or be waiting for their answer from the queue.
const MAX_ABSORBED: usize = 4096;

/// A bank holds no request.
pub(super) const FREE: (usize, u32) = (KINDS, NONE);

/// The controller and the device of one channel.
#[derive(Clone, Debug)]
pub struct Channel {
    pub(super) device: Device,
    pub(super) queue: Queue,
    pub(super) order: RequestOrder,
    pub(super) drain: WriteDrain,
    pub(super) refresh: RefreshTimer,
    pub(super) options: ControllerOptions,
    pub(super) shape: Shape,
    pub(super) banks: Vec<BankState>,
    /// Banks with waiting requests, one bit each.
    busy: u64,
    /// Banks with an open row.
    pub(super) open: u64,
    /// Banks that a due refresh keeps from new work.
    pub(super) refreshing: u64,
    /// Banks that copies between channels keep from new work.
    pub(super) migrating: MigrationBanks,
    /// Rows may be closed although the oldest requests hit them.
    pub(super) closes_early: bool,
    /// What the banks could do next.
    pub(super) candidates: Candidates,
    /// The next command of the column bus (or of the only bus) and of the row bus.
    pub(super) next: [NextCommand; 2],
    /// By bus: its next command must be chosen again.
    pub(super) outdated: [bool; 2],
    /// No command can be sent before this clock.
    pub(super) wake: u64,
    pub(super) counters: ChannelCounters,
    pub(super) log: Option<Vec<Issued>>,
    /// Requests answered without a command.
    answered: VecDeque<Done>,
    /// Requests merged into others.
    merged: usize,
}

/// The numbers of the standard that the controller uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    groups: u32,
    banks_per_group: u32,
    read_clocks: u64,
    burst_clocks: u64,
    /// Clocks for which a column of a migration occupies a data bus.
    pub(super) migration_clocks: u64,
    /// The bus of row commands.
    pub(super) row_bus: usize,
}

impl Shape {
    fn new(standard: &MemoryStandard) -> Self {
        let burst_clocks = to_u64(standard.burst_clocks);
        let bursts = standard.migration_bytes.div_ceil(standard.bytes_per_access);
        Self {
            groups: standard.bank_groups,
            banks_per_group: standard.banks_per_group,
            read_clocks: to_u64(standard.read_clocks),
            burst_clocks,
            migration_clocks: to_u64(bursts) * burst_clocks,
            row_bus: if standard.separate_buses { ROW } else { COLUMN },
        }
    }

    fn bank(&self, request: &Request) -> usize {
        let group = request.pseudo_channel * self.groups + request.bank_group;
        to_usize(group * self.banks_per_group + request.bank)
    }
}

/// What the controller knows about a bank.
#[derive(Clone, Copy, Debug)]
pub(super) struct BankState {
    /// Kind and entry of the request that the bank holds, where banks do; `NONE`: it is free.
    pub(super) held: (usize, u32),
    /// Kind of the request that opened the row and still waits, or [`KINDS`].
    pub(super) opener: usize,
    /// Accesses served from the open row.
    pub(super) served: u32,
    /// Clock of the last ACT or access.
    pub(super) used: u64,
}

impl Channel {
    /// A channel of `standard` whose controller follows `options`.
    #[must_use]
    pub fn new(standard: &MemoryStandard, options: &ControllerOptions) -> Self {
        let banks = to_usize(standard.banks());
        let refresh = RefreshTimer::new(standard, options.refresh);
        Self {
            device: Device::new(standard),
            queue: Queue::new(banks, options),
            order: RequestOrder::new(options.scheduler, standard),
            drain: WriteDrain::new(options),
            wake: refresh.next(0),
            refresh,
            options: options.clone(),
            shape: Shape::new(standard),
            banks: vec![BankState { held: FREE, opener: KINDS, served: 0, used: 0 }; banks],
            busy: 0,
            open: 0,
            refreshing: 0,
            migrating: MigrationBanks::default(),
            closes_early: !options.row_hit_first || options.page_policy == PagePolicy::Timeout,
            candidates: Candidates::new(),
            next: [NextCommand::NEVER; 2],
            outdated: [true; 2],
            counters: ChannelCounters::default(),
            log: None,
            answered: VecDeque::new(),
            merged: 0,
        }
    }

    /// True when a request of that kind would be accepted now.
    #[must_use]
    pub fn room(&self, write: bool) -> bool {
        self.places(write) > 0
    }

    /// Requests of a kind that would be accepted now.
    fn places(&self, write: bool) -> u32 {
        let [reads, writes] = self.queue.waiting;
        if self.answered.len() >= MAX_ABSORBED {
            return 0;
        }
        let (places, taken) = match (self.options.unified_queue, write) {
            (true, _) => (self.options.read_queue, reads + writes),
            (false, false) => (self.options.read_queue, reads),
            (false, true) => (self.options.write_queue, writes),
        };
        places.saturating_sub(taken)
    }

    /// Offers accesses to one row at clock `now`, as [`Channel::push`] of one after the other
    /// does; returns those that were not accepted, one bit each.
    ///
    /// # Panics
    /// As [`Channel::push`].
    pub fn push_block(&mut self, now: u64, block: Block) -> u8 {
        let Block { request, mut columns } = block;
        let options = &self.options;
        if options.posted_writes && request.write || options.merge || options.bank_queue > 0 {
            while columns != 0 {
                let column = request.column + columns.trailing_zeros();
                if !self.push(now, Request { column, ..request }) {
                    break;
                }
                columns &= columns - 1;
            }
            return columns;
        }
        // A bank that holds what it was given leaves its place to the next.
        while columns != 0 && self.places(request.write) > 0 {
            columns = self.push_some(now, Block { request, columns });
        }
        columns
    }

    /// Accepts accesses of a block, of which at least one has a place.
    fn push_some(&mut self, now: u64, block: Block) -> u8 {
        let Block { request, columns: mut left } = block;
        let bank = self.shape.bank(&request);
        let row = request.row & (u32::MAX >> 1);
        let forwarded = self.forwarded(bank, &request, row);
        let (mut places, mut taken) = (self.places(request.write), 0);
        while left != 0 && places > 0 && self.answered.len() < MAX_ABSORBED {
            let first = left & left.wrapping_neg();
            left &= left - 1;
            if forwarded & first != 0 {
                self.answer_from_queue(now, request.token);
            } else {
                taken |= first;
                places -= 1;
            }
        }
        if taken != 0 {
            self.enqueue(now, (bank, request), (row, request.column, taken));
        }
        left
    }

    /// The columns from that of a read on which waiting writes answer, one bit each.
    fn forwarded(&self, bank: usize, request: &Request, row: u32) -> u8 {
        if request.write || !self.options.forward {
            return 0;
        }
        self.queue.waiting_columns(bank, WRITE, row, request.column)
    }

    /// A waiting write answers a read.
    fn answer_from_queue(&mut self, now: u64, token: u32) {
        self.answered.push_back(Done { token, clock: now + 1, row_hit: true });
        self.counters.absorbed += 1;
    }

    /// Offers a request at clock `now`; false when its queue is full.
    ///
    /// Call [`Channel::advance`] with the same `now` first: the first command for a request
    /// is sent one clock after its acceptance at the earliest.
    ///
    /// # Panics
    /// When the bank does not exist in the standard: check the mapping with
    /// [`crate::config::AddressMap::fits`] when the machine is built.
    pub fn push(&mut self, now: u64, request: Request) -> bool {
        if !self.room(request.write) {
            return false;
        }
        let bank = self.shape.bank(&request);
        let kind = usize::from(request.write);
        // The highest row number stands for a closed bank.
        let request = Request { row: request.row & (u32::MAX >> 1), ..request };
        if self.options.posted_writes && request.write {
            self.answered.push_back(Done { token: request.token, clock: now + 1, row_hit: true });
        }
        if (self.options.forward || self.options.merge) && self.absorb(now, bank, kind, &request) {
            return true;
        }
        self.enqueue(now, (bank, request), (request.row, request.column, 1));
        true
    }

    /// Puts accesses to one row of a bank into the queue, which has room.
    fn enqueue(&mut self, now: u64, (bank, request): (usize, Request), place: (u32, u32, u8)) {
        let kind = usize::from(request.write);
        let mut switches = self.drain.update(now, self.queue.sizes());
        if switches {
            self.forget_plan();
        }
        let open = self.device.open_row(bank);
        let extends = self.queue.extend((bank, kind), request.token, place);
        let is_candidate = !extends && self.queue.push((bank, kind), request.token, place, open);
        self.busy |= 1 << bank;
        self.hold_next(bank);
        switches |= self.drain.change(now, self.queue.sizes()) || self.fill_bank_queues();
        if is_candidate || !self.options.row_hit_first {
            self.candidates.stale |= 1 << bank;
        }
        if switches || self.refreshing != 0 {
            self.wake = self.wake.min(now + 1);
        } else if self.candidates.stale != 0 && self.wake > now + 1 {
            arbiter::plan(self, now + 1);
            self.sleep(now);
        }
    }

    /// A free bank takes its next request, where banks hold one.
    #[inline]
    fn hold_next(&mut self, bank: usize) {
        if self.options.bank_holds && self.banks[bank].held == FREE {
            self.hold_oldest(bank);
        }
    }

    /// A free bank takes the oldest hit of its open row, else the oldest request.
    fn hold_oldest(&mut self, bank: usize) {
        let oldest = |of: fn(&List) -> u32| {
            let entry = |kind| (kind, of(self.queue.list(bank, kind)));
            let waiting = [READ, WRITE].map(entry).into_iter().filter(|&(_, at)| at != NONE);
            waiting.min_by_key(|&(_, at)| self.queue.entry(at).sequence)
        };
        if let Some((kind, entry)) = oldest(|list| list.hit).or_else(|| oldest(|list| list.first()))
        {
            self.banks[bank].held = (kind, entry);
            self.queue.leave(kind, entry);
        }
    }

    /// Moves requests into the banks' own queues, where these are limited.
    #[inline]
    fn fill_bank_queues(&mut self) -> bool {
        self.options.bank_queue > 0 && self.move_to_bank_queues()
    }

    /// The same where they are limited.
    fn move_to_bank_queues(&mut self) -> bool {
        let device = &self.device;
        let most = self.options.write_queue;
        let moved = self.queue.fill_bank_queues(most, |bank| device.open_row(bank));
        if moved {
            self.forget_plan();
        }
        moved
    }

    /// Answers a request from the queue, or merges it into a waiting one.
    fn absorb(&mut self, now: u64, bank: usize, kind: usize, request: &Request) -> bool {
        let find = |kind| self.queue.find(bank, kind, request.row, request.column);
        if kind == READ && self.options.forward && find(WRITE) != NONE {
            self.answer_from_queue(now, request.token);
            return true;
        }
        if !self.options.merge || self.merged >= MAX_ABSORBED {
            return false;
        }
        let with = find(kind);
        if with == NONE {
            return false;
        }
        self.counters.absorbed += 1;
        if !(request.write && self.options.posted_writes) {
            self.queue.merge(with, request.token);
            self.merged += 1;
        }
        true
    }

    /// The earliest clock at which [`Channel::advance`] may do anything, or `None` when only
    /// a new request can change that. The events of an idle channel ([`Channel::is_idle`])
    /// are refreshes: a caller may skip them and advance to the clock of its next request.
    #[must_use]
    pub fn next_event(&self) -> Option<u64> {
        let answer = self.answered.front().map_or(u64::MAX, |done| done.clock);
        let next = self.wake.min(answer);
        (next != u64::MAX).then_some(next)
    }

    /// Sends every command that is due at clocks up to `now`, in order, and adds the served
    /// accesses to `done`. Clocks may be skipped.
    pub fn advance(&mut self, now: u64, done: &mut Vec<Done>) {
        if !self.answered.is_empty() {
            done.extend(self.answered.drain(..));
        }
        while self.wake <= now {
            let idle = self.waiting() == 0 && self.migrating.banks == 0;
            if self.open == 0 && self.log.is_none() && idle {
                self.skip_refreshes(now);
            }
            self.step(self.wake, done);
        }
    }

    /// Counts the refreshes of an idle channel without sending them.
    fn skip_refreshes(&mut self, now: u64) {
        let skipped = self.refresh.skip(now);
        if skipped > 0 {
            self.counters.refreshes += skipped;
            self.forget_plan();
            self.wake = self.refresh.next(0);
        }
    }

    /// As [`Channel::advance`] for the single clock `now`, without relying on earlier plans:
    /// every candidate is considered. For checking that skipped clocks are dead.
    pub fn tick(&mut self, now: u64, done: &mut Vec<Done>) {
        done.extend(self.answered.drain(..));
        self.forget_plan();
        self.step(now, done);
    }

    /// Accepted requests that are not served yet.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.queue.total[READ] + self.queue.total[WRITE]
    }

    /// True when every accepted request has been reported.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.waiting() == 0 && self.answered.is_empty()
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> &ChannelCounters {
        &self.counters
    }

    /// From now on, keeps the sent commands for [`Channel::take_log`].
    pub fn keep_log(&mut self) {
        self.log = Some(Vec::new());
    }

    /// Returns the commands sent since the last call.
    pub fn take_log(&mut self) -> std::vec::Drain<'_, Issued> {
        self.log.get_or_insert_with(Vec::new).drain(..)
    }

    /// True once after a bank may have become ready for its copy: then
    /// [`super::Copier::work`] must be called at the same clock.
    pub fn take_ready_for_copy(&mut self) -> bool {
        std::mem::take(&mut self.migrating.may_be_ready)
    }

    /// One clock: at most one command per bus, column bus first.
    fn step(&mut self, clock: u64, done: &mut Vec<Done>) {
        self.update_modes(clock);
        if self.candidates.stale != 0 || self.outdated != [false; 2] {
            arbiter::plan(self, clock);
        }
        let [column, row] = self.next;
        if column.time <= clock {
            self.send(column.pick, clock, done);
            if row.time <= clock {
                self.send_row_too(column.pick.bank, row.pick, clock, done);
            }
        } else if row.time <= clock {
            self.send(row.pick, clock, done);
        } else {
            self.sleep(clock);
            return;
        }
        self.plan_next(clock);
    }

    /// Due refreshes and the write drain change which requests may be served.
    fn update_modes(&mut self, clock: u64) {
        if self.refreshing != 0 || self.refresh.soonest <= clock {
            let refreshing = self.refresh.due(clock).fold(0, |banks, due| banks | due.mask());
            if refreshing != self.refreshing {
                self.refreshing = refreshing;
                self.forget_plan();
            }
        }
        if self.drain.update(clock, self.queue.sizes()) {
            self.forget_plan();
        }
    }

    /// Every bank that may have a candidate is considered again.
    fn forget_plan(&mut self) {
        let idle = self.options.page_policy == PagePolicy::Timeout;
        self.candidates.stale |= self.busy | if idle { self.open } else { 0 };
        self.outdated = [true; 2];
    }

    /// Sends the row command `planned` in the clock of a column command to `bank`, or another
    /// one that is legal now.
    fn send_row_too(&mut self, bank: usize, planned: Pick, clock: u64, done: &mut Vec<Done>) {
        let legal = self.device.earliest(planned.command, planned.bank) <= clock;
        if planned.bank != bank && legal {
            self.send(planned, clock, done);
            return;
        }
        arbiter::update_stale(self);
        self.next[ROW] = arbiter::best(self, ROW, u64::MAX, NextCommand::NEVER, clock);
        let NextCommand { time, pick } = self.next[ROW];
        if time <= clock {
            self.send(pick, clock, done);
        }
    }

    /// After sending: chooses what comes next, and when.
    fn plan_next(&mut self, clock: u64) {
        let switches = self.drain.change(clock, self.queue.sizes()) || self.fill_bank_queues();
        if switches {
            self.forget_plan();
        }
        if switches || self.refreshing != 0 {
            self.outdated = [true; 2];
            self.wake = clock + 1;
            return;
        }
        for bus in [COLUMN, ROW] {
            let NextCommand { time, pick } = self.next[bus];
            let moves = |time| self.device.earliest(pick.command, pick.bank) > time;
            let sent = time <= clock;
            self.outdated[bus] |= !self.order.steady() || sent || time != u64::MAX && moves(time);
        }
        arbiter::plan(self, clock + 1);
        self.sleep(clock);
    }

    /// Nothing is left to do at `clock`.
    fn sleep(&mut self, clock: u64) {
        let next = self.next[COLUMN].time.min(self.next[ROW].time);
        let writes = self.drain.starts_at(self.queue.sizes());
        self.wake = next.min(writes.max(clock + 1)).min(self.refresh.next(clock));
    }

    fn send(&mut self, pick: Pick, clock: u64, done: &mut Vec<Done>) {
        let Pick { bank, entry, .. } = pick;
        let command = self.with_auto_precharge(pick, clock);
        let (mut row, mut column) = (0, 0);
        if entry != NONE {
            self.order.sent(to_u32(bank));
            row = self.queue.entry(entry).row;
            if command.is_column() {
                column = self.queue.entry(entry).column();
            }
        } else if command == Command::Activate {
            row = self.migrating.rows[bank];
        }
        if self.keeps_candidates(pick) {
            self.candidates.delayed |= 1 << bank;
        } else {
            self.candidates.stale |= if self.order.steady() { 1 << bank } else { self.busy };
        }
        self.device.issue(command, bank, row, clock);
        if let Some(log) = &mut self.log {
            log.push(Issued { clock, command, bank: to_u32(bank), row, column });
        }
        match command {
            Command::Activate => self.after_activate(pick, row, clock),
            Command::Precharge | Command::PrechargeAll => self.after_precharge(pick, command),
            Command::RefreshAll | Command::RefreshBank => {
                self.counters.refreshes += 1;
                self.refresh.sent(pick.kind);
            }
            _ => self.after_column(pick, command, clock, done),
        }
    }

    /// True when a command serves one of several accesses of an entry and its bank could do
    /// the same next as before.
    fn keeps_candidates(&self, pick: Pick) -> bool {
        let BankState { opener, served, .. } = self.banks[pick.bank];
        pick.entry != NONE
            && pick.command.is_column()
            && self.queue.entry(pick.entry).has_more()
            && opener == KINDS
            && served + 1 != self.options.hit_cap
            && self.order.steady()
    }

    /// With closed pages the last access to a row closes it.
    fn with_auto_precharge(&self, pick: Pick, clock: u64) -> Command {
        if self.options.page_policy != PagePolicy::Closed || !pick.command.is_column() {
            return pick.command;
        }
        let closing = if pick.kind == READ { Command::ReadClose } else { Command::WriteClose };
        let other = self.queue.list(pick.bank, READ + WRITE - pick.kind).hit;
        let more = self.queue.entry(pick.entry).has_more() || self.queue.hits_behind(pick.entry);
        let legal = self.device.earliest(closing, pick.bank) <= clock;
        if other == NONE && !more && legal { closing } else { pick.command }
    }

    /// A row was opened for a request, or, without an entry, for a copy.
    fn after_activate(&mut self, pick: Pick, row: u32, clock: u64) {
        let Pick { bank, kind, entry, .. } = pick;
        let for_copy = entry == NONE;
        self.counters.activates += 1;
        if for_copy {
            self.counters.copy_activates += 1;
            self.migrating.may_be_ready = true;
        } else if !std::mem::replace(&mut self.queue.entry_mut(entry).touched, true) {
            self.counters.row_misses += 1;
        }
        let opener = if for_copy { KINDS } else { kind };
        self.banks[bank] = BankState { opener, served: 0, used: clock, ..self.banks[bank] };
        self.open |= 1 << bank;
        self.queue.find_hit(bank, READ, row);
        self.queue.find_hit(bank, WRITE, row);
        if !for_copy && self.options.opened_leaves_queue && self.options.bank_queue == 0 {
            self.queue.leave(kind, entry);
        }
    }

    fn after_precharge(&mut self, pick: Pick, command: Command) {
        self.counters.precharges += 1;
        if pick.entry != NONE {
            let touched = &mut self.queue.entry_mut(pick.entry).touched;
            if !std::mem::replace(touched, true) {
                self.counters.row_conflicts += 1;
            }
        }
        let one = pick.bank..pick.bank + 1;
        let all = command == Command::PrechargeAll;
        let banks = if all { self.device.pseudo_channel_banks(pick.bank) } else { one };
        for bank in banks {
            self.open &= !(1 << bank);
            self.queue.forget_hits(bank);
            self.candidates.stale |= 1 << bank;
        }
    }

    fn after_column(&mut self, pick: Pick, command: Command, clock: u64, done: &mut Vec<Done>) {
        let Pick { bank, kind, entry, .. } = pick;
        if !self.queue.entry(entry).touched {
            self.counters.row_hits += 1;
        }
        let state = &mut self.banks[bank];
        if state.opener == kind {
            state.opener = KINDS;
            self.migrating.may_be_ready |= self.migrating.banks != 0;
        }
        state.served += 1;
        state.used = clock;
        let write = kind == WRITE;
        let counter = if write { &mut self.counters.writes } else { &mut self.counters.reads };
        *counter += 1;
        self.counters.busy_clocks += self.shape.burst_clocks;
        let end = if write { clock } else { clock + self.shape.read_clocks };
        if self.queue.entry(entry).has_more() {
            let Entry { token, touched, .. } = *self.queue.entry(entry);
            done.push(Done { token, clock: end, row_hit: !touched });
            self.queue.serve_one(kind, entry);
            if self.banks[bank].held == (kind, entry) {
                self.queue.leave(kind, entry);
            }
            return;
        }
        let open = self.device.open_row(bank);
        self.queue.remove(bank, kind, entry, open);
        self.banks[bank].held = FREE;
        if open == CLOSED {
            debug_assert!(matches!(command, Command::ReadClose | Command::WriteClose));
            self.counters.precharges += 1;
            self.open &= !(1 << bank);
            self.queue.forget_hits(bank);
        }
        if self.queue.is_empty(bank) {
            self.busy &= !(1 << bank);
        }
        self.hold_next(bank);
        self.finish(entry, write, end, done);
    }

    /// Reports a served access and those merged into it.
    fn finish(&mut self, entry: u32, write: bool, clock: u64, done: &mut Vec<Done>) {
        if !(write && self.options.posted_writes) {
            let row_hit = !self.queue.entry(entry).touched;
            done.push(Done { token: self.queue.entry(entry).token, clock, row_hit });
        }
        let mut merged = self.queue.entry(entry).merged;
        while merged != NONE {
            let next = self.queue.entry(merged).next;
            done.push(Done { token: self.queue.entry(merged).token, clock, row_hit: true });
            self.queue.release(merged);
            self.merged -= 1;
            merged = next;
        }
        self.queue.release(entry);
    }
}
