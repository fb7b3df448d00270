//! Compiler-guided, greedy, then youngest: the warp that issued last continues until it has to
//! wait, then the youngest ready one is next. Measured on an RTX A6000 (Huerta et al., MICRO
//! 2025) and an A100.

use super::policy::{ReadyWarp, ReadyWarps, Sharing, WarpScheduler};

/// The policy.
#[derive(Debug, Default)]
pub(in crate::sm) struct Cggty {
    /// The warp that issued last.
    greedy: Option<u16>,
}

impl WarpScheduler for Cggty {
    fn sharing(&self) -> Sharing {
        Sharing::InOrder
    }

    fn key(&self, ready: &ReadyWarp) -> u64 {
        u64::MAX - ready.age
    }

    fn first(&mut self, ready: ReadyWarps<'_>) -> Option<u16> {
        let goes_on = self.greedy.filter(|&warp| ready.holds(warp));
        self.greedy = goes_on.or_else(|| ready.first());
        self.greedy
    }
}
