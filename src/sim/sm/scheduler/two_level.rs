//! Two-level (Gebhart et al., ISCA 2011; Narasiman et al., MICRO 2011): round robin in a small
//! active set.

use super::lrr::slowest_first;
use super::policy::{ReadyWarp, Sharing, WarpScheduler};

/// The policy.
#[derive(Debug)]
pub(in crate::sm) struct TwoLevel {
    /// Places of the active set.
    pub(in crate::sm) active_warps: u32,
}

impl WarpScheduler for TwoLevel {
    fn sharing(&self) -> Sharing {
        Sharing::Fair
    }

    fn key(&self, ready: &ReadyWarp) -> u64 {
        slowest_first(ready)
    }

    fn active_warps(&self) -> Option<u32> {
        Some(self.active_warps)
    }
}
