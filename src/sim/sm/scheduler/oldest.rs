//! Strictly the oldest ready warp first.

use super::policy::{ReadyWarp, Sharing, WarpScheduler};

/// The policy.
#[derive(Debug)]
pub(in crate::sm) struct Oldest;

impl WarpScheduler for Oldest {
    fn sharing(&self) -> Sharing {
        Sharing::InOrder
    }

    fn key(&self, ready: &ReadyWarp) -> u64 {
        ready.age
    }
}
