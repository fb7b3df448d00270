//! Which ready command goes first. The seam for application-aware schedulers:
//! one that knows whose request a token is may rank by it.

use crate::config::{MemoryStandard, Order};
use gpumodel_core::units::to_u64;

/// A command that could be sent for a waiting request.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The caller's name for the request.
    pub token: u32,
    /// The request writes.
    pub write: bool,
    /// The command moves data: the request's row is open.
    pub column: bool,
    /// The bank in the channel.
    pub bank: u32,
    /// Order of arrival in the channel; below 2^52.
    pub sequence: u64,
}

/// Orders candidates of one channel.
///
/// Whatever it says, a request that opened its row is served before the row may
/// be closed, refresh goes before new work, and each gap of the standard holds.
pub trait Scheduler {
    /// Rank of a candidate: the lowest goes first. Below 2^60, and the same
    /// until the next call of [`Scheduler::sent`].
    fn rank(&self, candidate: &Candidate) -> u64;

    /// True when nothing may overtake the lowest-ranked request, ready or not.
    fn in_order(&self) -> bool;

    /// True when a request keeps its rank whatever is sent.
    fn steady(&self) -> bool {
        false
    }

    /// A command was sent to `bank` for a request.
    fn sent(&mut self, bank: u32);
}

/// The schedulers that a memory file can name.
#[derive(Clone, Debug)]
pub struct Named {
    order: Order,
    banks: u32,
    last: u32,
}

impl Named {
    /// The scheduler `order` for a channel of `standard`.
    #[must_use]
    pub fn new(order: Order, standard: &MemoryStandard) -> Self {
        let banks = standard.banks();
        Self { order, banks, last: banks - 1 }
    }
}

impl Scheduler for Named {
    #[inline]
    fn rank(&self, candidate: &Candidate) -> u64 {
        if self.order != Order::RoundRobin {
            return candidate.sequence;
        }
        // The bank after the last one served comes first.
        let distance = (candidate.bank + self.banks - self.last - 1) % self.banks;
        to_u64(distance) << 52 | candidate.sequence
    }

    #[inline]
    fn in_order(&self) -> bool {
        self.order == Order::Fcfs
    }

    fn steady(&self) -> bool {
        self.order != Order::RoundRobin
    }

    #[inline]
    fn sent(&mut self, bank: u32) {
        self.last = bank;
    }
}
