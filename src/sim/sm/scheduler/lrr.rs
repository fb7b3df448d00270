//! Loose round robin: every ready warp in turn.

use super::policy::{ReadyWarp, Sharing, WarpScheduler};

/// The policy.
#[derive(Debug)]
pub(in crate::sm) struct Lrr;

impl WarpScheduler for Lrr {
    fn sharing(&self) -> Sharing {
        Sharing::Fair
    }

    fn key(&self, ready: &ReadyWarp) -> u64 {
        slowest_first(ready)
    }
}

/// Where all get the same rate, those that ask for least are served whole first.
pub(in crate::sm) fn slowest_first(ready: &ReadyWarp) -> u64 {
    // The bits of positive numbers are in the order of the numbers.
    u64::from(ready.pace.to_bits())
}
