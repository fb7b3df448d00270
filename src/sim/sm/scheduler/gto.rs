//! Greedy, then oldest (Rogers et al., MICRO 2012): the warp that issued last continues until it
//! has to wait, then the oldest one is next.

use super::policy::{ReadyWarp, ReadyWarps, Sharing, WarpScheduler};

/// The policy.
#[derive(Debug, Default)]
pub(in crate::sm) struct Gto {
    /// The warp that issued last.
    greedy: Option<u16>,
}

impl WarpScheduler for Gto {
    fn sharing(&self) -> Sharing {
        Sharing::InOrder
    }

    fn key(&self, ready: &ReadyWarp) -> u64 {
        ready.age
    }

    fn first(&mut self, ready: ReadyWarps<'_>) -> Option<u16> {
        let goes_on = self.greedy.filter(|&warp| ready.holds(warp));
        self.greedy = goes_on.or_else(|| ready.first());
        self.greedy
    }
}
