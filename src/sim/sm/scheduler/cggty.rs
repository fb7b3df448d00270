//! Compiler-guided, greedy, then youngest: the warp that issued last continues until it has to
//! wait, then the youngest ready one is next. Measured on an RTX A6000 (Huerta et al., MICRO
//! 2025) and an A100.

use super::gto::Gto;
use super::policy::{ReadyWarp, ReadyWarps, Sharing, WarpScheduler};

/// The policy.
#[derive(Debug, Default)]
pub(in crate::sm) struct Cggty(Gto);

impl WarpScheduler for Cggty {
    fn sharing(&self) -> Sharing {
        self.0.sharing()
    }

    fn key(&self, ready: &ReadyWarp) -> u64 {
        u64::MAX - ready.age
    }

    fn first(&mut self, ready: ReadyWarps<'_>) -> Option<u16> {
        // First in an order by youth.
        self.0.first(ready)
    }
}
