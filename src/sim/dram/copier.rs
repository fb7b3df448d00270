//! Copying rows between the channels of one stack by MIGRATION (UGPU, section 4.3).
//!
//! A copy takes both its banks at once, and only when both are free; who came first
//! goes first. Nobody holds one bank while he waits for another, and a copy whose two
//! rows are open needs only time, so none waits for ever. A row that is open for a
//! copy which has not begun gives way to a refresh; one that has begun is finished
//! first, so a refresh waits for one copy at most.
//!
//! A column takes three parts of the stack in the same clock: the column buses of the
//! two channels and the through-silicon vias of any channel of the stack, of those
//! that are free at the earliest the one with the fewest requests. What these
//! channels send later finds the gaps of the standard after each part. MIGRATION goes
//! before accesses that could be sent in its clock; without that, full queues would
//! keep it away for ever.

use std::collections::VecDeque;
use std::ops::IndexMut;

use super::channel::Channel;
use crate::config::{Command, MemoryStandard};
use gpumodel_core::units::{to_u64, to_usize};

/// How many of the waiting copies are looked at for one whose banks are free.
const LOOKAHEAD: usize = 64;

/// A row of a bank of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BankRow {
    /// The channel.
    pub channel: usize,
    /// The bank, as [`super::bank_index`] counts.
    pub bank: usize,
    /// The row.
    pub row: u32,
}

/// Columns to copy from one bank's row to the row of a bank of another channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BankCopy {
    /// The caller's name for it; comes back in [`Copied`].
    pub token: u32,
    /// Where the columns are.
    pub from: BankRow,
    /// Where they go.
    pub to: BankRow,
    /// The first access of each column: there and here. At least one.
    pub columns: Vec<(u32, u32)>,
}

/// A copy whose last column was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The caller's name for it.
    pub token: u32,
    /// The clock at which the column is in the other bank.
    pub clock: u64,
}

/// A copy that has its banks.
#[derive(Clone, Debug)]
struct Active {
    copy: BankCopy,
    /// Both rows were open and the first MIGRATION may go.
    begun: bool,
    /// Columns sent.
    sent: usize,
    /// When to look at it again; `u64::MAX`: when a channel stirs.
    next: u64,
}

/// What copies between the channels of one stack.
#[derive(Clone, Debug)]
pub struct Copier {
    /// The channels of the stack.
    channels: Vec<usize>,
    /// Most copies that are under way at once.
    most: usize,
    /// Clocks from a MIGRATION until its column is in the other bank.
    way: u64,
    waiting: VecDeque<BankCopy>,
    active: Vec<Active>,
    /// By position of the channel, the banks that copies have or wait for.
    wanted: Vec<u64>,
}

/// The channels of a memory, by their number.
pub trait Channels: IndexMut<usize, Output = Channel> {}

impl<T: IndexMut<usize, Output = Channel>> Channels for T {}

impl Copier {
    /// A copier between `channels` of `standard`: a stack. Bank groups work in parallel
    /// (section 4.3), and a copy takes one of each of two channels: half as many copies
    /// go on at once as the stack has bank groups.
    #[must_use]
    pub fn new(standard: &MemoryStandard, channels: Vec<usize>) -> Self {
        let groups = to_usize(standard.pseudo_channels * standard.bank_groups);
        Self {
            most: (groups * channels.len() / 2).max(1),
            way: to_u64(standard.migration_clocks),
            waiting: VecDeque::new(),
            active: Vec::new(),
            wanted: vec![0; channels.len()],
            channels,
        }
    }

    /// The channels of the stack.
    #[must_use]
    pub fn channels(&self) -> &[usize] {
        &self.channels
    }

    /// Accepts a copy; [`Copier::work`] is called for it at the same clock.
    ///
    /// # Panics
    /// When the copy has no columns, does not go from one channel to another, or
    /// leaves the stack: who cuts pages sees to that.
    pub fn push(&mut self, copy: BankCopy) {
        let inside = |end: BankRow| self.channels.contains(&end.channel);
        assert!(!copy.columns.is_empty(), "a copy of nothing");
        assert_ne!(copy.from.channel, copy.to.channel, "MIGRATION goes between channels");
        assert!(inside(copy.from) && inside(copy.to), "{copy:?} leaves its stack");
        self.waiting.push_back(copy);
    }

    /// True when nothing waits and nothing is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.active.is_empty()
    }

    /// The next clock at which [`Copier::work`] has something to do, unless a channel
    /// stirs before ([`Channel::take_stir`]).
    #[must_use]
    pub fn next_event(&self) -> Option<u64> {
        let next = self.active.iter().map(|active| active.next).min();
        next.filter(|next| *next != u64::MAX)
    }

    /// Sends what may be sent at clock `now` + 1 and starts copies. The channels of the
    /// stack have been advanced to `now`, and no further; whose last column was sent is
    /// added to `copied`.
    pub fn work(&mut self, now: u64, channels: &mut impl Channels, copied: &mut Vec<Copied>) {
        loop {
            self.start(now, channels);
            let mut active = std::mem::take(&mut self.active);
            let before = active.len();
            active.retain_mut(|one| !self.go_on(one, now, channels, copied));
            let ended = active.len() < before;
            self.active = active;
            if !ended {
                return;
            }
        }
    }

    /// Gives waiting copies their banks, the oldest first.
    fn start(&mut self, now: u64, channels: &mut impl Channels) {
        let mut at = 0;
        self.wanted.fill(0);
        for active in &self.active {
            claim(&self.channels, &mut self.wanted, &active.copy);
        }
        while self.active.len() < self.most && at < self.waiting.len().min(LOOKAHEAD) {
            if !claim(&self.channels, &mut self.wanted, &self.waiting[at]) {
                at += 1;
                continue;
            }
            let Some(copy) = self.waiting.remove(at) else { return };
            for end in [copy.from, copy.to] {
                channels[end.channel].take(now, end.bank, end.row);
            }
            self.active.push(Active { copy, begun: false, sent: 0, next: u64::MAX });
        }
    }

    /// Sends the column of a copy that may go at `now` + 1, or finds out when; true
    /// when that was the last.
    fn go_on(
        &self,
        active: &mut Active,
        now: u64,
        channels: &mut impl Channels,
        copied: &mut Vec<Copied>,
    ) -> bool {
        let BankCopy { token, from, to, .. } = active.copy;
        if !active.begun && !begin(active, now, channels) {
            return false;
        }
        while let Some(&(column, target)) = active.copy.columns.get(active.sent) {
            let read = channels[from.channel].migration_at(Command::MigrateRead, from.bank);
            let write = channels[to.channel].migration_at(Command::MigrateWrite, to.bank);
            let (free, vias) = self.vias(from.bank, now + 1, channels);
            let time = free.max(read).max(write);
            if time > now + 1 {
                active.next = time - 1;
                return false;
            }
            channels[from.channel].migrate(Command::MigrateRead, from.bank, column, now + 1);
            channels[to.channel].migrate(Command::MigrateWrite, to.bank, target, now + 1);
            channels[vias].migrate(Command::MigrateThrough, from.bank, 0, now + 1);
            active.sent += 1;
        }
        channels[from.channel].release(now, from.bank);
        channels[to.channel].release(now, to.bank);
        copied.push(Copied { token, clock: now + 1 + self.way });
        true
    }

    /// The through-silicon vias for the next column, and when they are free.
    fn vias(&self, bank: usize, from: u64, channels: &impl Channels) -> (u64, usize) {
        let free = self.channels.iter().map(|&number| {
            let time = channels[number].migration_at(Command::MigrateThrough, bank);
            (time.max(from), channels[number].waiting(), number)
        });
        let (time, _, number) = free.min().unwrap_or((u64::MAX, 0, 0));
        (time, number)
    }
}

/// Begins a copy whose rows are open; else notes when to look again.
fn begin(active: &mut Active, now: u64, channels: &mut impl Channels) -> bool {
    let BankCopy { from, to, .. } = active.copy;
    let read = channels[from.channel].ready_at(Command::MigrateRead, from.bank);
    let write = channels[to.channel].ready_at(Command::MigrateWrite, to.bank);
    let ready = read.zip(write).map_or(u64::MAX, |(read, write)| read.max(write));
    if ready > now + 1 {
        active.next = if ready == u64::MAX { ready } else { ready - 1 };
        return false;
    }
    active.begun = true;
    channels[from.channel].begin(now, from.bank);
    channels[to.channel].begin(now, to.bank);
    true
}

/// Marks both banks of a copy as wanted; true when nobody wanted them before.
fn claim(channels: &[usize], wanted: &mut [u64], copy: &BankCopy) -> bool {
    let mut free = true;
    for end in [copy.from, copy.to] {
        let at = channels.iter().position(|&channel| channel == end.channel);
        let banks = &mut wanted[at.expect("a copy stays in its stack")];
        free &= *banks >> end.bank & 1 == 0;
        *banks |= 1 << end.bank;
    }
    free
}
