//! Which ready command goes first. The seam for application-aware schedulers:
//! one that knows whose request a token is may rank by it.

use crate::spec::Order;

/// A command that could be sent for a waiting request.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The caller's name for the request.
    pub token: u32,
    /// The request writes.
    pub write: bool,
    /// The command moves data: the request's row is open.
    pub column: bool,
    /// Order of arrival in the channel; below 2^60.
    pub sequence: u64,
}

/// Orders candidates of one channel.
///
/// Whatever it says, a request that opened its row is served before the row may
/// be closed, refresh goes before new work, and each gap of the standard holds.
pub trait Scheduler {
    /// Rank of a candidate: the lowest goes first. Below 2^60, and the same
    /// whenever it is asked for the same candidate.
    fn rank(&self, candidate: &Candidate) -> u64;

    /// True when nothing may overtake the lowest-ranked request, ready or not.
    fn in_order(&self) -> bool;
}

impl Scheduler for Order {
    fn rank(&self, candidate: &Candidate) -> u64 {
        candidate.sequence
    }

    fn in_order(&self) -> bool {
        *self == Self::Fcfs
    }
}
