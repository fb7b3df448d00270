//! Which commands could be sent for the waiting requests, when, and which goes first.
//!
//! FR-FCFS: the earliest command first, so row hits before rows that must be opened, then
//! the order of arrival.
//!
//! Requests that opened their row go before everything else, maintenance before ordinary
//! work, and each gap of the standard holds.

use std::ops::Range;

use super::channel::{BankState, Channel, FREE};
use super::device::CLOSED;
use super::migration;
use super::queue::{Entry, KINDS, NONE, READ, WRITE};
use super::refresh::Due;
use crate::bits::bits;
use crate::config::{Command, MemoryStandard, Order, PagePolicy};
use gpumodel_core::units::{to_u32, to_u64};

/// Ranks have their class in the top bits; the lowest rank goes first.
const OPENER: u64 = 0;
const MAINTENANCE: u64 = 1 << 60;
pub(super) const COPYING: u64 = MAINTENANCE | 1 << 32;
const ORDINARY: u64 = 2 << 60;
const IDLE: u64 = 3 << 60;

/// Index of the column bus, or of the only bus.
pub(super) const COLUMN: usize = 0;

/// Index of the row bus.
pub(super) const ROW: usize = 1;

/// Classes of candidates: a command for a request of a kind.
const CLASSES: usize = 3 * KINDS;

/// The first class of accesses to open rows; there is one per kind.
const ACCESSES: usize = 0;

/// The first class of activates.
const OPENINGS: usize = KINDS;

/// The first class of precharges.
const CLOSINGS: usize = 2 * KINDS;

/// Banks of a channel at most: those of a mask.
const BANKS: usize = 64;

/// The command of each class.
const COMMANDS: [Command; CLASSES] = [
    Command::Read,
    Command::Write,
    Command::Activate,
    Command::Activate,
    Command::Precharge,
    Command::Precharge,
];

/// The kind of request that a class serves.
#[inline]
fn kind_of(class: usize) -> usize {
    if class.is_multiple_of(KINDS) { READ } else { WRITE }
}

/// The order of ready requests that a memory file names.
#[derive(Clone, Debug)]
pub(super) struct RequestOrder {
    order: Order,
    banks: u32,
    /// The bank that was served last.
    last: u32,
}

impl RequestOrder {
    pub(super) fn new(order: Order, standard: &MemoryStandard) -> Self {
        let banks = standard.banks();
        Self { order, banks, last: banks - 1 }
    }

    /// Rank of a request by its bank and its order of arrival: the lowest goes first. It is
    /// below 2^60 and stays the same until the next call of [`RequestOrder::sent`].
    #[inline]
    fn rank(&self, bank: u32, sequence: u64) -> u64 {
        if self.order != Order::RoundRobin {
            return sequence;
        }
        // The bank after the last one served comes first.
        let distance = (bank + self.banks - self.last - 1) % self.banks;
        to_u64(distance) << 52 | sequence
    }

    /// True when nothing may overtake the lowest-ranked request, ready or not.
    #[inline]
    fn in_order(&self) -> bool {
        self.order == Order::Fcfs
    }

    /// True when a request keeps its rank whatever is sent.
    #[inline]
    pub(super) fn steady(&self) -> bool {
        self.order != Order::RoundRobin
    }

    /// A command was sent to `bank` for a request.
    #[inline]
    pub(super) fn sent(&mut self, bank: u32) {
        self.last = bank;
    }
}

/// A chosen command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pick {
    pub(super) command: Command,
    pub(super) bank: usize,
    /// The kind of request that it serves; for refreshes the pseudo channel.
    pub(super) kind: usize,
    /// The request, or `NONE` for maintenance and copies.
    pub(super) entry: u32,
    /// The lowest goes first.
    pub(super) rank: u64,
}

/// The best command of a bus among those that are legal first.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextCommand {
    /// Its clock; `u64::MAX` without a candidate.
    pub(super) time: u64,
    pub(super) pick: Pick,
}

impl NextCommand {
    /// Nothing to send.
    pub(super) const NEVER: Self = Self {
        time: u64::MAX,
        pick: Pick { command: Command::Read, bank: 0, kind: READ, entry: NONE, rank: u64::MAX },
    };

    /// Considers a command that is legal from `time` on.
    #[inline]
    pub(super) fn consider(&mut self, time: u64, pick: Pick) {
        if (time, pick.rank) < (self.time, self.pick.rank) {
            *self = Self { time, pick };
        }
    }
}

/// The commands that banks could take next, whatever the clock. Those of a bank change only
/// with its requests, its row, or the kind of request that is served.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    /// By class, the banks with a candidate, one bit each.
    banks: [u64; CLASSES],
    /// Banks whose open row no request needs.
    idle: u64,
    /// Banks whose candidates must be updated.
    pub(super) stale: u64,
    /// Banks whose candidates are the same and become legal later.
    pub(super) delayed: u64,
    /// By class and bank.
    all: Box<[[Candidate; BANKS]; CLASSES]>,
}

/// A command that a bank could take for a request.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    entry: u32,
    /// The bank itself allows it from this clock on.
    ready: u64,
    rank: u64,
}

impl Candidates {
    /// No candidates.
    pub(super) fn new() -> Self {
        let none = Candidate { entry: NONE, ready: 0, rank: u64::MAX };
        let all = Box::new([[none; BANKS]; CLASSES]);
        Self { banks: [0; CLASSES], idle: 0, stale: 0, delayed: 0, all }
    }

    #[inline]
    fn set(&mut self, bank: usize, class: usize, candidate: Candidate) {
        self.banks[class] |= 1 << bank;
        self.all[class][bank] = candidate;
    }

    #[inline]
    fn clear(&mut self, bank: usize) {
        let others = !(1 << bank);
        for banks in &mut self.banks {
            *banks &= others;
        }
        self.idle &= others;
    }

    #[inline]
    fn pick(&self, class: usize, bank: usize) -> Pick {
        let Candidate { entry, rank, .. } = self.all[class][bank];
        Pick { command: COMMANDS[class], bank, kind: kind_of(class), entry, rank }
    }
}

/// Updates the next command of each bus as far as banks have changed, from clock `from` on.
/// A chosen command stays the choice while its own clock stays, since no other candidate of
/// an unchanged bank becomes legal earlier.
pub(super) fn plan(channel: &mut Channel, from: u64) {
    let changed = update_stale(channel);
    if channel.migrating.banks != 0 {
        channel.outdated = [true; 2];
    }
    for bus in COLUMN..=channel.shape.row_bus {
        let affected = changed >> channel.next[bus].pick.bank & 1 == 1;
        if channel.outdated[bus] || affected || channel.order.in_order() && changed != 0 {
            channel.outdated[bus] = false;
            channel.next[bus] = best(channel, bus, u64::MAX, NextCommand::NEVER, from);
        } else if changed & banks_with_candidates(channel, bus) != 0 {
            channel.next[bus] = best(channel, bus, changed, channel.next[bus], from);
        }
    }
}

/// The better of `next` and the candidates of `banks` for a bus.
pub(super) fn best(
    channel: &Channel,
    bus: usize,
    banks: u64,
    mut next: NextCommand,
    from: u64,
) -> NextCommand {
    if channel.order.in_order() {
        consider_first(channel, bus, from, &mut next);
    } else {
        for class in classes(channel, bus) {
            let banks = channel.candidates.banks[class] & banks;
            if banks != 0 {
                consider_class(channel, class, banks, from, &mut next);
            }
        }
    }
    if bus == channel.shape.row_bus {
        consider_idle(channel, channel.candidates.idle & banks, from, &mut next);
        if channel.refreshing != 0 {
            for due in channel.refresh.due(from) {
                consider_refresh(channel, due, from, &mut next);
            }
        }
        if channel.migrating.banks != 0 {
            migration::consider_copies(channel, from, &mut next);
        }
    }
    next
}

/// Banks with any candidate for a bus.
#[inline]
fn banks_with_candidates(channel: &Channel, bus: usize) -> u64 {
    let classes = &channel.candidates.banks[classes(channel, bus)];
    classes.iter().fold(channel.candidates.idle, |any, banks| any | banks)
}

/// The classes of commands that go over a bus.
#[inline]
fn classes(channel: &Channel, bus: usize) -> Range<usize> {
    let first = if bus == ROW { OPENINGS } else { ACCESSES };
    let end = if bus == channel.shape.row_bus { CLASSES } else { OPENINGS };
    first..end
}

/// Considers the candidates of one class in `banks`. The gates of a pseudo channel, and what the
/// bank itself allows, rule out most of them without reading more.
fn consider_class(
    channel: &Channel,
    class: usize,
    mut banks: u64,
    from: u64,
    next: &mut NextCommand,
) {
    let command = COMMANDS[class];
    let device = &channel.device;
    let groups = device.group_gates(command);
    let candidates = &channel.candidates.all[class];
    let (mut best, mut least, mut winner) = (next.time, next.pick.rank, usize::MAX);
    while banks != 0 {
        let pseudo_channel = device.pseudo_channel(banks.trailing_zeros() as usize);
        let mut inside = banks & pseudo_channel.banks;
        banks &= !pseudo_channel.banks;
        let bound = device.earliest_outside(command, pseudo_channel).max(from);
        while inside != 0 && bound <= best {
            let bank = inside.trailing_zeros() as usize % BANKS;
            inside &= inside - 1;
            let Candidate { ready, rank, .. } = candidates[bank];
            let mut time = ready.max(bound);
            if time > best || time == best && rank > least {
                continue;
            }
            if let Some(gates) = groups {
                time = time.max(gates.earliest(bank));
            }
            if time < best || time == best && rank < least {
                (best, least, winner) = (time, rank, bank);
            }
        }
    }
    if winner != usize::MAX {
        *next = NextCommand { time: best, pick: channel.candidates.pick(class, winner) };
    }
}

/// Where order is kept, only the first of all ordinary candidates counts.
fn consider_first(channel: &Channel, bus: usize, from: u64, next: &mut NextCommand) {
    let mut first = NextCommand::NEVER;
    let mut first_class = 0;
    for class in 0..CLASSES {
        for bank in bits(channel.candidates.banks[class]) {
            let pick = channel.candidates.pick(class, bank);
            let time = channel.device.earliest(pick.command, bank).max(from);
            if pick.rank < ORDINARY {
                if classes(channel, bus).contains(&class) {
                    next.consider(time, pick);
                }
            } else if pick.rank < first.pick.rank {
                first = NextCommand { time, pick };
                first_class = class;
            }
        }
    }
    if classes(channel, bus).contains(&first_class) {
        next.consider(first.time, first.pick);
    }
}

/// Considers closing rows that were not used for the page policy's timeout.
fn consider_idle(channel: &Channel, banks: u64, from: u64, next: &mut NextCommand) {
    for bank in bits(banks) {
        let command = Command::Precharge;
        let idle = channel.banks[bank].used + to_u64(channel.options.page_timeout);
        let time = idle.max(channel.device.earliest(command, bank)).max(from);
        let rank = IDLE | to_u64(bank);
        next.consider(time, Pick { command, bank, kind: READ, entry: NONE, rank });
    }
}

/// Considers the next command of a due refresh; requests that opened a row and copies that
/// have begun go first.
fn consider_refresh(channel: &Channel, due: Due, from: u64, next: &mut NextCommand) {
    let Due { pseudo_channel, bank, .. } = due;
    let copying = channel.migrating.begun & due.mask() != 0;
    let banks = &channel.banks[bank..bank + due.banks];
    if copying || banks.iter().any(|bank| bank.opener != KINDS) {
        return;
    }
    let command = match (due.banks, channel.open & due.mask() != 0) {
        (1, true) => Command::Precharge,
        (1, false) => Command::RefreshBank,
        (_, true) => Command::PrechargeAll,
        (_, false) => Command::RefreshAll,
    };
    let time = channel.device.earliest(command, bank).max(from);
    let rank = MAINTENANCE | to_u64(pseudo_channel);
    next.consider(time, Pick { command, bank, kind: pseudo_channel, entry: NONE, rank });
}

/// Updates the candidates of the banks that changed and returns which banks those are.
pub(super) fn update_stale(channel: &mut Channel) -> u64 {
    let stale = std::mem::take(&mut channel.candidates.stale);
    let delayed = std::mem::take(&mut channel.candidates.delayed);
    bits(delayed & !stale).for_each(|bank| update_clocks(channel, bank));
    bits(stale).for_each(|bank| update_bank(channel, bank));
    stale | delayed
}

fn update_clocks(channel: &mut Channel, bank: usize) {
    let Candidates { banks, all, .. } = &mut channel.candidates;
    for class in 0..CLASSES {
        if banks[class] >> bank & 1 == 1 {
            all[class][bank].ready = channel.device.earliest_own(COMMANDS[class], bank);
        }
    }
}

fn update_bank(channel: &mut Channel, bank: usize) {
    channel.candidates.clear(bank);
    let blocked = (channel.refreshing | channel.migrating.banks) >> bank & 1 == 1;
    let open = channel.device.open_row(bank);
    if channel.banks[bank].held != FREE {
        add_held(channel, bank, open, blocked);
        return;
    }
    if open == CLOSED {
        if !blocked {
            add_openings(channel, bank);
        }
        return;
    }
    let guarded = blocked || channel.migrating.guarded >> bank & 1 == 1;
    for kind in [READ, WRITE] {
        add_access(channel, bank, kind, guarded);
    }
    if !blocked && channel.banks[bank].opener == KINDS && may_close(channel, bank) {
        add_closings(channel, bank, open);
    }
}

/// The next command for the request that a bank holds.
fn add_held(channel: &mut Channel, bank: usize, open: u32, blocked: bool) {
    let BankState { held: (kind, entry), opener, .. } = channel.banks[bank];
    let guarded = blocked || channel.migrating.guarded >> bank & 1 == 1;
    if open == CLOSED && !blocked {
        add(channel, bank, OPENINGS + kind, entry);
    } else if open == channel.queue.entry(entry).row && (!guarded || opener == kind) {
        add(channel, bank, ACCESSES + kind, entry);
    } else if open != CLOSED && !blocked && opener == KINDS {
        add(channel, bank, CLOSINGS + kind, entry);
    }
}

/// Makes the command of a class for a request a candidate of its bank.
#[inline]
fn add(channel: &mut Channel, bank: usize, class: usize, entry: u32) {
    let command = COMMANDS[class];
    let Entry { sequence, .. } = *channel.queue.entry(entry);
    let opener = command.is_column() && channel.banks[bank].opener == kind_of(class);
    let weight = if opener { OPENER } else { ORDINARY };
    let rank = weight | channel.order.rank(to_u32(bank), sequence);
    let ready = channel.device.earliest_own(command, bank);
    channel.candidates.set(bank, class, Candidate { entry, ready, rank });
}

#[inline]
fn add_access(channel: &mut Channel, bank: usize, kind: usize, guarded: bool) {
    let list = channel.queue.list(bank, kind);
    let hit = list.hit;
    if hit == NONE {
        return;
    }
    if channel.banks[bank].opener != kind {
        let overtakes = channel.order.in_order() && hit != list.head;
        if guarded || overtakes || !channel.drain.serves(kind) {
            return;
        }
    }
    add(channel, bank, ACCESSES + kind, hit);
}

fn add_openings(channel: &mut Channel, bank: usize) {
    for kind in [READ, WRITE] {
        let head = channel.queue.list(bank, kind).first();
        if head != NONE && channel.drain.serves(kind) {
            add(channel, bank, OPENINGS + kind, head);
        }
    }
}

/// False when the oldest request of each kind hits the open row, or there is none, and
/// nothing else could need another row.
#[inline]
fn may_close(channel: &Channel, bank: usize) -> bool {
    let waits = |kind| {
        let list = channel.queue.list(bank, kind);
        list.first() != list.hit
    };
    channel.closes_early || waits(READ) || waits(WRITE)
}

/// Closing the open row: for a request that needs another one, or after the timeout.
fn add_closings(channel: &mut Channel, bank: usize, open: u32) {
    let in_order = channel.order.in_order();
    for kind in [READ, WRITE] {
        let list = channel.queue.list(bank, kind);
        if list.first() == NONE || !channel.drain.serves(kind) {
            continue;
        }
        let miss = if channel.options.row_hit_first || in_order {
            // Older hits keep the row open; younger ones until the cap.
            let capped = in_order || channel.banks[bank].served >= channel.options.hit_cap;
            let closes = list.hit != list.head && (list.hit == NONE || capped);
            if closes { list.head } else { NONE }
        } else {
            channel.queue.first_miss(bank, kind, open)
        };
        if miss != NONE {
            add(channel, bank, CLOSINGS + kind, miss);
        }
    }
    if channel.options.page_policy == PagePolicy::Timeout {
        let hits = [READ, WRITE].map(|kind| channel.queue.list(bank, kind).hit);
        if hits == [NONE; KINDS] {
            channel.candidates.idle |= 1 << bank;
        }
    }
}
