//! What it cost that SMs and memory channels changed hands.

use serde::{Deserialize, Serialize};

use gpumodel_core::units::Cycle;

/// One application's pages, and what moving them and its SMs took. Present where
/// channels were owned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrationRecord {
    /// Pages that it touched.
    pub pages: u64,
    /// Pages that moved, again and again where they did.
    pub pages_moved: u64,
    /// Bytes of those.
    pub bytes_moved: u64,
    /// How often its channels changed while it had pages.
    pub channel_changes: u64,
    /// Cycles during which pages of it were under way; it runs on meanwhile.
    pub moving_cycles: Cycle,
    /// Cycles during which its SMs asked for nothing, as channels changed hands.
    pub resting_cycles: Cycle,
    /// Cycles during which it held more CTAs than its share on some SM.
    pub vacating_cycles: Cycle,
}

impl MigrationRecord {
    /// True where pages moved, or SMs were waited for.
    #[must_use]
    pub fn cost_anything(&self) -> bool {
        self.pages_moved > 0 || self.resting_cycles > 0 || self.vacating_cycles > 0
    }
}

/// The same of one application up to a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedSoFar {
    /// Pages that have moved.
    pub pages_moved: u64,
    /// Cycles during which pages were under way.
    pub moving_cycles: Cycle,
    /// Cycles during which it held more CTAs than its share on some SM.
    pub vacating_cycles: Cycle,
}
