//! The controller of one channel: accepts requests, sleeps, wakes.

use std::collections::VecDeque;

use super::counters::ChannelCounters;
use super::device::Device;
use super::drain::Drain;
use super::migration_banks::MigrationBanks;
use super::queue::{KINDS, NONE, Queue, READ, WRITE};
use super::refresh::RefreshTimer;
use super::scheduler::{Named, Scheduler};
use super::turn::{Board, COLUMN, ROW, Turn};
use crate::config::{Command, ControllerOptions, MemoryStandard, PagePolicy};
use gpumodel_core::units::{to_u64, to_usize};

/// Requests that may wait merged into others or for their answer from the queue.
const MOST_ABSORBED: usize = 4096;

/// One access for a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The caller's name for it; comes back in [`Done`].
    pub token: u32,
    /// Writes; else reads.
    pub write: bool,
    /// Pseudo channel.
    pub pseudo_channel: u32,
    /// Bank group of the pseudo channel.
    pub bank_group: u32,
    /// Bank of the group.
    pub bank: u32,
    /// Row of the bank.
    pub row: u32,
    /// Access within the row.
    pub column: u32,
}

/// An access that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The caller's name for it.
    pub token: u32,
    /// For a read the clock of its last data beat, which may lie ahead; for a
    /// write the clock of its command (posted: the clock after its acceptance).
    pub clock: u64,
    /// Its row was open when its first command was sent, or it needed none.
    pub row_hit: bool,
}

/// A command that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    /// When.
    pub clock: u64,
    /// What.
    pub command: Command,
    /// Bank of the channel, as [`super::bank_index`] counts; the first of the
    /// pseudo channel for commands to all banks.
    pub bank: u32,
    /// Row of the request for which it was sent; 0 for maintenance.
    pub row: u32,
    /// Column of a column command, else 0.
    pub column: u32,
}

/// The controller and the device of one channel.
#[derive(Clone, Debug)]
pub struct Channel<S = Named> {
    pub(super) device: Device,
    pub(super) queue: Queue,
    pub(super) scheduler: S,
    pub(super) drain: Drain,
    pub(super) refresh: RefreshTimer,
    pub(super) options: ControllerOptions,
    pub(super) shape: Shape,
    pub(super) banks: Vec<BankNote>,
    /// Banks with waiting requests, one bit each.
    pub(super) busy: u64,
    /// Banks with an open row.
    pub(super) open: u64,
    /// Banks that a due refresh keeps from new work.
    pub(super) held: u64,
    /// Banks that copies between channels keep from new work.
    pub(super) taken: MigrationBanks,
    /// Rows may be closed although the oldest requests hit them.
    pub(super) closes_early: bool,
    /// Nothing may overtake the oldest request.
    pub(super) in_order: bool,
    /// Ranks stay as they are while commands are sent.
    pub(super) steady: bool,
    /// What the banks offer.
    pub(super) board: Board,
    /// The next command of the column bus (of the only bus) and of the row bus.
    pub(super) turns: [Turn; 2],
    /// By bus, its next command must be found anew.
    pub(super) outdated: [bool; 2],
    /// No command can be sent before this clock.
    pub(super) wake: u64,
    pub(super) counters: ChannelCounters,
    pub(super) log: Option<Vec<Issued>>,
    ready: VecDeque<Done>,
    absorbed: usize,
}

/// The numbers of the standard that the controller uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    groups: u32,
    banks_per_group: u32,
    pub(super) read_clocks: u64,
    pub(super) burst_clocks: u64,
    /// Clocks for which a column on its way to another channel takes a data bus.
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

    /// The banks of the bank group that a bank lies in, one bit each.
    pub(super) fn group(&self, bank: usize) -> u64 {
        let banks = to_usize(self.banks_per_group);
        (u64::MAX >> (64 - banks)) << (bank / banks * banks)
    }
}

/// What the controller notes about a bank.
#[derive(Clone, Copy, Debug)]
pub(super) struct BankNote {
    /// Kind of the request that opened the row and still waits, or [`KINDS`].
    pub(super) opener: usize,
    /// Accesses served from the open row.
    pub(super) served: u32,
    /// Clock of the last ACT or access.
    pub(super) used: u64,
}

impl Channel<Named> {
    /// A channel of `standard` whose controller follows `options`.
    #[must_use]
    pub fn new(standard: &MemoryStandard, options: &ControllerOptions) -> Self {
        let scheduler = Named::new(options.scheduler, standard);
        Self::with_scheduler(standard, options, scheduler)
    }
}

impl<S: Scheduler> Channel<S> {
    /// A channel whose requests are ordered by `scheduler`.
    #[must_use]
    pub fn with_scheduler(
        standard: &MemoryStandard,
        options: &ControllerOptions,
        scheduler: S,
    ) -> Self {
        let banks = to_usize(standard.banks());
        let refresh = RefreshTimer::new(standard, options.refresh);
        Self {
            device: Device::new(standard),
            queue: Queue::new(banks, options),
            drain: Drain::new(options),
            wake: refresh.next(0),
            refresh,
            options: options.clone(),
            shape: Shape::new(standard),
            banks: vec![BankNote { opener: KINDS, served: 0, used: 0 }; banks],
            busy: 0,
            open: 0,
            held: 0,
            taken: MigrationBanks::default(),
            closes_early: !options.row_hit_first || options.page_policy == PagePolicy::Timeout,
            in_order: scheduler.in_order(),
            steady: scheduler.steady(),
            board: Board::new(banks),
            turns: [Turn::NEVER; 2],
            outdated: [true; 2],
            counters: ChannelCounters::default(),
            log: None,
            ready: VecDeque::new(),
            absorbed: 0,
            scheduler,
        }
    }

    /// True when a request of that kind would be accepted now.
    #[must_use]
    pub fn room(&self, write: bool) -> bool {
        let [reads, writes] = self.queue.waiting;
        if self.ready.len() >= MOST_ABSORBED {
            return false;
        }
        match (self.options.unified_queue, write) {
            (true, _) => reads + writes < self.options.read_queue,
            (false, false) => reads < self.options.read_queue,
            (false, true) => writes < self.options.write_queue,
        }
    }

    /// Offers a request at clock `now`; false when its queue is full.
    ///
    /// Call [`Channel::advance`] with the same `now` first: the first command
    /// for a request is sent one clock after its acceptance at the earliest.
    ///
    /// # Panics
    /// When the bank does not exist in the standard: check the mapping with
    /// [`crate::config::AddressMap::fits`] when the machine is built.
    pub fn push(&mut self, now: u64, request: Request) -> bool {
        if !self.room(request.write) {
            return false;
        }
        let bank = (request.pseudo_channel * self.shape.groups + request.bank_group)
            * self.shape.banks_per_group
            + request.bank;
        let bank = to_usize(bank);
        let kind = usize::from(request.write);
        // The highest row number stands for a closed bank.
        let request = Request { row: request.row & (u32::MAX >> 1), ..request };
        if self.options.posted_writes && request.write {
            self.ready.push_back(Done { token: request.token, clock: now + 1, row_hit: true });
        }
        if (self.options.forward || self.options.merge) && self.absorb(now, bank, kind, &request) {
            return true;
        }
        let mut switches = self.drain.settle(now, self.queue.sizes());
        if switches {
            self.forget_plan();
        }
        let open = self.device.open_row(bank);
        let place = (request.row, request.column);
        let candidate = self.queue.push((bank, kind), request.token, place, open);
        self.busy |= 1 << bank;
        switches |= self.drain.change(now, self.queue.sizes()) || self.stage();
        if candidate || !self.options.row_hit_first {
            self.board.stale |= 1 << bank;
        }
        if switches || self.held != 0 {
            self.wake = self.wake.min(now + 1);
        } else if self.board.stale != 0 && self.wake > now + 1 {
            self.plan(now + 1);
            self.rest(now);
        }
        true
    }

    /// Lets the queue begin or end a drain of writes into the banks' places.
    pub(super) fn stage(&mut self) -> bool {
        let device = &self.device;
        let moved = self.queue.stage(self.options.write_queue, |bank| device.open_row(bank));
        if moved {
            self.forget_plan();
        }
        moved
    }

    /// Answers a request from the queue, or joins it to a waiting one.
    fn absorb(&mut self, now: u64, bank: usize, kind: usize, request: &Request) -> bool {
        let find = |kind| self.queue.find(bank, kind, request.row, request.column);
        if kind == READ && self.options.forward && find(WRITE) != NONE {
            self.ready.push_back(Done { token: request.token, clock: now + 1, row_hit: true });
            self.counters.absorbed += 1;
            return true;
        }
        if !self.options.merge || self.absorbed >= MOST_ABSORBED {
            return false;
        }
        let with = find(kind);
        if with == NONE {
            return false;
        }
        self.counters.absorbed += 1;
        if !(request.write && self.options.posted_writes) {
            self.queue.merge(with, request.token);
            self.absorbed += 1;
        }
        true
    }

    /// The earliest clock at which [`Channel::advance`] may do anything, or
    /// `None` when only a new request can change that. The events of an idle
    /// channel ([`Channel::is_idle`]) are refreshes: a caller may skip them and
    /// advance to the clock of its next request.
    #[must_use]
    pub fn next_event(&self) -> Option<u64> {
        let answer = self.ready.front().map_or(u64::MAX, |done| done.clock);
        let next = self.wake.min(answer);
        (next != u64::MAX).then_some(next)
    }

    /// Sends every command that is due at clocks up to `now`, in order, and adds
    /// the accesses that were served to `done`. Clocks may be skipped.
    pub fn advance(&mut self, now: u64, done: &mut Vec<Done>) {
        if !self.ready.is_empty() {
            done.extend(self.ready.drain(..));
        }
        while self.wake <= now {
            let idle = self.waiting() == 0 && self.taken.banks == 0;
            if self.open == 0 && self.log.is_none() && idle {
                self.skip_refreshes(now);
            }
            self.step(self.wake, done);
        }
    }

    /// Silence costs nothing: nobody looks at the refreshes of an idle channel.
    fn skip_refreshes(&mut self, now: u64) {
        let skipped = self.refresh.skip(now);
        if skipped > 0 {
            self.counters.refreshes += skipped;
            self.forget_plan();
            self.wake = self.refresh.next(0);
        }
    }

    /// As [`Channel::advance`] for the single clock `now`, without trusting what
    /// was found before: looks at every candidate. For checking that dead clocks are dead.
    pub fn tick(&mut self, now: u64, done: &mut Vec<Done>) {
        done.extend(self.ready.drain(..));
        self.forget_plan();
        self.step(now, done);
    }

    /// Requests that are accepted and not served.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.queue.held[READ] + self.queue.held[WRITE]
    }

    /// True when no accepted request is still to be reported.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.waiting() == 0 && self.ready.is_empty()
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> &ChannelCounters {
        &self.counters
    }

    /// From now on, keeps the commands that are sent for [`Channel::take_log`].
    pub fn keep_log(&mut self) {
        self.log = Some(Vec::new());
    }

    /// Hands out the commands sent since the last call.
    pub fn take_log(&mut self) -> std::vec::Drain<'_, Issued> {
        self.log.get_or_insert_with(Vec::new).drain(..)
    }

    /// Reports a served access and everything that was served with it.
    pub(super) fn finish(&mut self, entry: u32, write: bool, clock: u64, done: &mut Vec<Done>) {
        if !(write && self.options.posted_writes) {
            let row_hit = !self.queue.entry(entry).touched;
            done.push(Done { token: self.queue.entry(entry).token, clock, row_hit });
        }
        let mut merged = self.queue.entry(entry).merged;
        while merged != NONE {
            let next = self.queue.entry(merged).next;
            done.push(Done { token: self.queue.entry(merged).token, clock, row_hit: true });
            self.queue.release(merged);
            self.absorbed -= 1;
            merged = next;
        }
        self.queue.release(entry);
    }
}
