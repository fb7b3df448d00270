//! The next command of a bus, and what the banks offer for it.

use super::queue::{KINDS, NONE, READ, WRITE};
use crate::config::Command;

/// A command that was chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pick {
    pub(super) command: Command,
    pub(super) bank: usize,
    /// The kind of request that it serves; for maintenance the lane.
    pub(super) kind: usize,
    /// The request, or `NONE` for maintenance and copies.
    pub(super) entry: u32,
    /// Lowest goes first.
    pub(super) rank: u64,
}

/// Ranks are classed in their top bits.
pub(super) const OPENER: u64 = 0;
pub(super) const MAINTENANCE: u64 = 1 << 60;
pub(super) const COPYING: u64 = MAINTENANCE | 1 << 32;
pub(super) const ORDINARY: u64 = 2 << 60;
pub(super) const IDLE: u64 = 3 << 60;

/// Index of the column bus, or of the only bus.
pub(super) const COLUMN: usize = 0;

/// Index of the row bus.
pub(super) const ROW: usize = 1;

/// The best command of a bus among those that are legal first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// Its clock; `u64::MAX` when no bank offers anything.
    pub(super) time: u64,
    pub(super) pick: Pick,
}

impl Turn {
    /// Nothing to send.
    pub(super) const NEVER: Self = Self {
        time: u64::MAX,
        pick: Pick { command: Command::Read, bank: 0, kind: READ, entry: NONE, rank: u64::MAX },
    };

    /// A candidate that is legal from `time` on.
    #[inline]
    pub(super) fn offer(&mut self, time: u64, pick: Pick) {
        if (time, pick.rank) < (self.time, self.pick.rank) {
            *self = Self { time, pick };
        }
    }
}

/// Classes of offers: a command for a request of a kind.
pub(super) const CLASSES: usize = 3 * KINDS;

/// The classes of accesses to open rows begin here, one per kind.
pub(super) const ACCESSES: usize = 0;

/// The classes of opening a row.
pub(super) const OPENINGS: usize = KINDS;

/// The classes of closing a row.
pub(super) const CLOSINGS: usize = 2 * KINDS;

/// The command of each class.
pub(super) const COMMANDS: [Command; CLASSES] = [
    Command::Read,
    Command::Write,
    Command::Activate,
    Command::Activate,
    Command::Precharge,
    Command::Precharge,
];

/// The kind of request that a class serves.
#[inline]
pub(super) fn kind_of(class: usize) -> usize {
    if class.is_multiple_of(KINDS) { READ } else { WRITE }
}

/// What the banks offer, whatever the clock. A bank's offers stay as they are
/// until one of its requests or rows changes, or who is served.
#[derive(Clone, Debug)]
pub(super) struct Board {
    /// By class, the banks that offer, one bit each.
    pub(super) offering: [u64; CLASSES],
    /// Banks whose open row nothing asks for.
    pub(super) idle: u64,
    /// Banks whose offers must be noted anew.
    pub(super) stale: u64,
    /// By class and bank.
    offers: [Vec<Offer>; CLASSES],
}

/// What a bank offers in one class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    /// The request.
    pub(super) entry: u32,
    /// The bank itself allows it from this clock on.
    pub(super) ready: u64,
    /// Lowest goes first.
    pub(super) rank: u64,
}

impl Board {
    /// A board for `banks` banks that offer nothing.
    pub(super) fn new(banks: usize) -> Self {
        let none = Offer { entry: NONE, ready: 0, rank: u64::MAX };
        let offers = std::array::from_fn(|_| vec![none; banks]);
        Self { offering: [0; CLASSES], idle: 0, stale: 0, offers }
    }

    /// What the banks offer in a class.
    #[inline]
    pub(super) fn offers(&self, class: usize) -> &[Offer] {
        &self.offers[class]
    }

    /// A bank offers the command of a class.
    #[inline]
    pub(super) fn note(&mut self, bank: usize, class: usize, offer: Offer) {
        self.offering[class] |= 1 << bank;
        self.offers[class][bank] = offer;
    }

    /// A bank offers nothing.
    #[inline]
    pub(super) fn clear(&mut self, bank: usize) {
        let others = !(1 << bank);
        for offering in &mut self.offering {
            *offering &= others;
        }
        self.idle &= others;
    }
}
