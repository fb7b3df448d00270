//! Copying rows between the channels of one stack by MIGRATION (UGPU, sections 4.2 and 4.3).
//!
//! A copy reserves both its banks at once, when both are free; the oldest copy goes first.
//! No copy holds one bank while it waits for another, and a copy whose two rows are open
//! needs only time, so none waits for ever.
//!
//! A reserved bank takes no ordinary work, like one that waits for a due refresh: only a
//! request that has opened its row is still served. Then the bank's row is closed and the
//! copy's row opened over the row bus. A due refresh goes before that and may close the
//! copy's row again; a copy that has begun is finished first, so a refresh waits for one
//! copy at most.
//!
//! A column takes three parts of the stack in the same clock: the column buses of the two
//! channels and the through-silicon vias of a channel of the stack, among those that are
//! free first the one with the fewest requests. Later commands of these channels keep the
//! standard's gaps after each part. MIGRATION goes before accesses that could be sent in its
//! clock; otherwise full queues would keep it waiting for ever.

use std::collections::VecDeque;
use std::ops::IndexMut;

use super::Issued;
use super::arbiter::{COPYING, NextCommand, Pick};
use super::channel::Channel;
use super::device::CLOSED;
use super::queue::{KINDS, NONE, READ};
use crate::bits::bits;
use crate::config::{Command, MemoryStandard};
use gpumodel_core::units::{to_u32, to_u64, to_usize};

/// Waiting copies among which one with free banks is searched.
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
    /// The caller's number for it; comes back in [`Copied`].
    pub token: u32,
    /// Where the columns are.
    pub from: BankRow,
    /// Where they go.
    pub to: BankRow,
    /// The first access of each column at the source and at the destination. At least one.
    pub columns: Vec<(u32, u32)>,
}

/// A copy whose last column was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The caller's number for it.
    pub token: u32,
    /// The clock at which the column is in the other bank.
    pub clock: u64,
}

/// A copy that has reserved its banks.
#[derive(Clone, Debug)]
struct Active {
    copy: BankCopy,
    /// Both rows were open and the first MIGRATION may go.
    begun: bool,
    /// Columns sent.
    sent: usize,
    /// When to try again; `u64::MAX`: when a bank becomes ready.
    next: u64,
}

/// The copies between the channels of one stack.
#[derive(Clone, Debug)]
pub struct Copier {
    /// The channels of the stack.
    channels: Vec<usize>,
    /// Most copies in progress at once.
    limit: usize,
    /// Clocks from a MIGRATION until its column is in the other bank.
    latency: u64,
    waiting: VecDeque<BankCopy>,
    active: Vec<Active>,
    /// By position of the channel, the banks that copies have reserved or wait for.
    claimed: Vec<u64>,
}

/// The channels of a memory, by their number.
pub trait Channels: IndexMut<usize, Output = Channel> {}

impl<T: IndexMut<usize, Output = Channel>> Channels for T {}

impl Copier {
    /// A copier between `channels` of `standard`: a stack. Bank groups work in parallel
    /// (section 4.3), and a copy takes one of each of two channels: half as many copies are
    /// in progress at once as the stack has bank groups.
    #[must_use]
    pub fn new(standard: &MemoryStandard, channels: Vec<usize>) -> Self {
        let groups = to_usize(standard.pseudo_channels * standard.bank_groups);
        Self {
            limit: (groups * channels.len() / 2).max(1),
            latency: to_u64(standard.migration_clocks),
            waiting: VecDeque::new(),
            active: Vec::new(),
            claimed: vec![0; channels.len()],
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
    /// When the copy has no columns, stays in one channel, or leaves the stack.
    pub fn push(&mut self, copy: BankCopy) {
        let inside = |end: BankRow| self.channels.contains(&end.channel);
        assert!(!copy.columns.is_empty(), "a copy of nothing");
        assert_ne!(copy.from.channel, copy.to.channel, "MIGRATION goes between channels");
        assert!(inside(copy.from) && inside(copy.to), "{copy:?} leaves its stack");
        self.waiting.push_back(copy);
    }

    /// True without a copy that waits or is in progress.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.active.is_empty()
    }

    /// The next clock at which [`Copier::work`] has something to do, unless a bank
    /// becomes ready before ([`Channel::take_ready_for_copy`]).
    #[must_use]
    pub fn next_event(&self) -> Option<u64> {
        let next = self.active.iter().map(|active| active.next).min();
        next.filter(|next| *next != u64::MAX)
    }

    /// Sends what may be sent at clock `now` + 1 and starts copies. The channels of the stack
    /// must have been advanced to `now` and no further. Copies whose last column was sent
    /// are added to `copied`.
    pub fn work(&mut self, now: u64, channels: &mut impl Channels, copied: &mut Vec<Copied>) {
        loop {
            self.start(now, channels);
            let mut active = std::mem::take(&mut self.active);
            let before = active.len();
            active.retain_mut(|one| !self.send_columns(one, now, channels, copied));
            let ended = active.len() < before;
            self.active = active;
            if !ended {
                return;
            }
        }
    }

    /// Reserves banks for waiting copies, the oldest first.
    fn start(&mut self, now: u64, channels: &mut impl Channels) {
        let mut at = 0;
        self.claimed.fill(0);
        for active in &self.active {
            claim(&self.channels, &mut self.claimed, &active.copy);
        }
        while self.active.len() < self.limit && at < self.waiting.len().min(LOOKAHEAD) {
            if !claim(&self.channels, &mut self.claimed, &self.waiting[at]) {
                at += 1;
                continue;
            }
            let Some(copy) = self.waiting.remove(at) else { return };
            for end in [copy.from, copy.to] {
                reserve(&mut channels[end.channel], now, end);
            }
            self.active.push(Active { copy, begun: false, sent: 0, next: u64::MAX });
        }
    }

    /// Sends the columns of a copy that may go at `now` + 1, or computes when the next may;
    /// true after the last one.
    fn send_columns(
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
            let read = channels[from.channel].device.earliest(Command::MigrateRead, from.bank);
            let write = channels[to.channel].device.earliest(Command::MigrateWrite, to.bank);
            let (free, vias) = self.vias(from.bank, now + 1, channels);
            let time = free.max(read).max(write);
            if time > now + 1 {
                active.next = time - 1;
                return false;
            }
            let parts = [
                (from.channel, Command::MigrateRead, from.bank, column),
                (to.channel, Command::MigrateWrite, to.bank, target),
                (vias, Command::MigrateThrough, from.bank, 0),
            ];
            for (channel, part, bank, column) in parts {
                migrate(&mut channels[channel], part, bank, column, now + 1);
            }
            active.sent += 1;
        }
        release(&mut channels[from.channel], now, from.bank);
        release(&mut channels[to.channel], now, to.bank);
        copied.push(Copied { token, clock: now + 1 + self.latency });
        true
    }

    /// When through-silicon vias are free for the next column, and the channel that has them.
    fn vias(&self, bank: usize, from: u64, channels: &impl Channels) -> (u64, usize) {
        let free = self.channels.iter().map(|&number| {
            let time = channels[number].device.earliest(Command::MigrateThrough, bank);
            (time.max(from), channels[number].waiting(), number)
        });
        let (time, _, number) = free.min().unwrap_or((u64::MAX, 0, 0));
        (time, number)
    }
}

/// Begins a copy whose rows are open; otherwise notes when to try again.
fn begin(active: &mut Active, now: u64, channels: &mut impl Channels) -> bool {
    let BankCopy { from, to, .. } = active.copy;
    let read = ready_at(&channels[from.channel], Command::MigrateRead, from.bank);
    let write = ready_at(&channels[to.channel], Command::MigrateWrite, to.bank);
    let ready = read.zip(write).map_or(u64::MAX, |(read, write)| read.max(write));
    if ready > now + 1 {
        active.next = if ready == u64::MAX { ready } else { ready - 1 };
        return false;
    }
    active.begun = true;
    for end in [from, to] {
        let channel = &mut channels[end.channel];
        channel.migrating.begun |= 1 << end.bank;
        guard(channel, now);
    }
    true
}

/// Claims both banks of a copy; true when no copy had claimed them before.
fn claim(channels: &[usize], claimed: &mut [u64], copy: &BankCopy) -> bool {
    let mut free = true;
    for end in [copy.from, copy.to] {
        let at = channels.iter().position(|&channel| channel == end.channel);
        let banks = &mut claimed[at.expect("a copy stays in its stack")];
        free &= *banks >> end.bank & 1 == 0;
        *banks |= 1 << end.bank;
    }
    free
}

/// The banks of a channel that are reserved for copies.
#[derive(Clone, Debug, Default)]
pub(super) struct MigrationBanks {
    /// One bit each.
    pub(super) banks: u64,
    /// Those whose copy has begun: a due refresh waits for them.
    pub(super) begun: u64,
    /// Banks of the groups in which a copy has begun: requests that have not opened their
    /// row would keep the copy from the group's bus.
    pub(super) guarded: u64,
    /// By bank, the row that its copy needs; empty until a bank is reserved.
    pub(super) rows: Vec<u32>,
    /// A reserved bank may have become ready since [`Channel::take_ready_for_copy`].
    pub(super) may_be_ready: bool,
}

/// Reserves a bank for a copy that needs a row open, from clock `now` + 1 on.
fn reserve(channel: &mut Channel, now: u64, BankRow { bank, row, .. }: BankRow) {
    let rows = &mut channel.migrating.rows;
    rows.resize(channel.banks.len(), CLOSED);
    // As for requests: the highest row number stands for a closed bank.
    rows[bank] = row & (u32::MAX >> 1);
    channel.migrating.banks |= 1 << bank;
    plan_again(channel, now, 1 << bank);
}

/// The clock from which on the bank itself allows `half` of a MIGRATION; `None` while its
/// row is not open, is still needed, or must be closed for a refresh.
fn ready_at(channel: &Channel, half: Command, bank: usize) -> Option<u64> {
    let open = channel.device.open_row(bank) == channel.migrating.rows[bank];
    let free = channel.banks[bank].opener == KINDS && channel.refreshing >> bank & 1 == 0;
    (open && free).then(|| channel.device.earliest_own(half, bank))
}

/// The copy of a bank has ended.
fn release(channel: &mut Channel, now: u64, bank: usize) {
    channel.migrating.banks &= !(1 << bank);
    channel.migrating.begun &= !(1 << bank);
    guard(channel, now);
    plan_again(channel, now, 1 << bank);
}

/// Guards the groups in which copies have begun.
fn guard(channel: &mut Channel, now: u64) {
    let before = channel.migrating.guarded;
    let begun = |bank: &usize| channel.migrating.begun >> bank & 1 == 1;
    let groups =
        (0..channel.banks.len()).filter(begun).map(|bank| channel.device.group_banks(bank));
    channel.migrating.guarded = groups.fold(0, |banks, group| banks | group);
    plan_again(channel, now, before ^ channel.migrating.guarded);
}

/// The candidates of `banks` and the next commands are chosen again after clock `now`.
fn plan_again(channel: &mut Channel, now: u64, banks: u64) {
    channel.candidates.stale |= banks;
    channel.outdated = [true; 2];
    channel.wake = channel.wake.min(now + 1);
}

/// Sends a part of a MIGRATION at `clock`, which is still to come: what the channel sends
/// then finds its buses occupied.
fn migrate(channel: &mut Channel, part: Command, bank: usize, column: u32, clock: u64) {
    let through = part == Command::MigrateThrough;
    let bank = if through { channel.device.pseudo_channel_banks(bank).start } else { bank };
    let row = if through { 0 } else { channel.device.open_row(bank) };
    channel.device.issue(part, bank, row, clock);
    if let Some(log) = &mut channel.log {
        log.push(Issued { clock, command: part, bank: to_u32(bank), row, column });
    }
    if through {
        channel.counters.lent_clocks += channel.shape.migration_clocks;
    } else {
        channel.counters.migrations += 1;
        channel.banks[bank].used = clock;
    }
    plan_again(channel, clock - 1, 0);
}

/// Considers the row commands of reserved banks whose open row is not the copy's.
pub(super) fn consider_copies(channel: &Channel, from: u64, next: &mut NextCommand) {
    for bank in bits(channel.migrating.banks & !channel.refreshing) {
        let open = channel.device.open_row(bank);
        if open == channel.migrating.rows[bank] || channel.banks[bank].opener != KINDS {
            continue;
        }
        let command = if open == CLOSED { Command::Activate } else { Command::Precharge };
        let time = channel.device.earliest(command, bank).max(from);
        let rank = COPYING | to_u64(bank);
        next.consider(time, Pick { command, bank, kind: READ, entry: NONE, rank });
    }
}
