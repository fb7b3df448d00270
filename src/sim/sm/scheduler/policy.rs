//! Warp schedulers: what a policy decides, and the table of policies.
//!
//! A policy is asked whenever a warp becomes ready (its place in the order) and whenever the
//! set of ready warps changes (which one goes before all others). The server in
//! [`super`] turns its answers into rates; a policy never sees cycles or units.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

use super::cggty::Cggty;
use super::gto::Gto;
use super::lrr::Lrr;
use super::oldest::Oldest;
use super::two_level::TwoLevel;
use crate::sm::scheduler::issue_interval::IssueIntervals;

/// A warp with something to issue, as a policy sees it.
#[derive(Clone, Copy, Debug)]
pub(in crate::sm) struct ReadyWarp {
    /// Warp slot of the SM.
    #[allow(dead_code, reason = "what a policy may ask for")]
    pub(in crate::sm) warp: u16,
    /// Order of arrival on the SM; lower is older.
    pub(in crate::sm) age: u64,
    /// Instructions per cycle that it would issue alone.
    pub(in crate::sm) pace: f32,
    /// What the L1 has done for it; zeros unless [`WarpScheduler::sees_l1`].
    #[allow(dead_code, reason = "what a policy may ask for")]
    pub(in crate::sm) l1: L1Feedback,
}

/// Sectors that a warp has loaded through the L1 since it came to the SM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::sm) struct L1Feedback {
    /// Looked up.
    pub(in crate::sm) accesses: u32,
    /// Of these, found neither in the L1 nor under way.
    pub(in crate::sm) misses: u32,
}

/// How ready warps that ask for more than there is share issue slots and units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sm) enum Sharing {
    /// All at the same rate of instructions, up to their own pace.
    Fair,
    /// One after the other, in the policy's order: each takes what those before it leave.
    InOrder,
}

/// The ready warps of one scheduler.
#[derive(Clone, Copy, Debug)]
pub(in crate::sm) struct ReadyWarps<'a>(pub(in crate::sm) &'a IssueIntervals);

impl ReadyWarps<'_> {
    /// True when `warp` has something to issue.
    pub(in crate::sm) fn holds(self, warp: u16) -> bool {
        self.0.place_of(warp).is_some()
    }

    /// The first in the policy's order.
    pub(in crate::sm) fn first(self) -> Option<u16> {
        self.0.first_in_order().map(|place| self.0.at(place).warp)
    }
}

/// A warp scheduler.
pub(in crate::sm) trait WarpScheduler: Debug {
    /// How ready warps share what is short.
    fn sharing(&self) -> Sharing;

    /// The place of a warp in the order when it becomes ready: lower comes first, equal ones
    /// as they became ready.
    fn key(&self, ready: &ReadyWarp) -> u64;

    /// The warp that goes before all others until the ready ones change; `None`: the order
    /// holds. It may be asked for several times while they are the same.
    fn first(&mut self, _ready: ReadyWarps<'_>) -> Option<u16> {
        None
    }

    /// Warps that it picks from at a time; a warp that waits for memory or a barrier gives
    /// its place up. `None`: it picks from all.
    fn active_warps(&self) -> Option<u32> {
        None
    }

    /// True when the oldest ready warp takes a free place in the active set, and a warp that left
    /// for a busy unit only where no other is ready. Otherwise the warp that has waited longest
    /// takes it.
    fn oldest_enters(&self) -> bool {
        false
    }

    /// True when [`ReadyWarp::l1`] is to be counted for it.
    fn sees_l1(&self) -> bool {
        false
    }
}

impl SchedulerPolicy {
    /// True when it picks from an active set, of `sm.active_warps` warps.
    pub(crate) fn has_active_set(self) -> bool {
        named(self, 1).active_warps().is_some()
    }
}

/// The policies by their names in machine files (`sm.policy`, in kebab case), each with how
/// it is made from `sm.active_warps`.
macro_rules! schedulers {
    ($($(#[doc = $doc:literal])+ $name:ident: $new:expr),+ $(,)?) => {
        /// How a scheduler picks among ready warps.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum SchedulerPolicy {
            $($(#[doc = $doc])+ $name),+
        }

        /// The scheduler that a machine names.
        pub(in crate::sm) fn named(
            policy: SchedulerPolicy,
            active_warps: u32,
        ) -> Box<dyn WarpScheduler> {
            match policy {
                $(SchedulerPolicy::$name => Box::new(($new)(active_warps))),+
            }
        }
    };
}

// One row per policy.
schedulers! {
    /// Loose round robin.
    Lrr: |_| Lrr,
    /// Greedy, then oldest: the warp that issued last goes first until it has to wait.
    Gto: |_| Gto::default(),
    /// Two-level: round robin in an active set of `active_warps`, which a warp
    /// leaves when it waits for memory or a barrier.
    TwoLevel: |active_warps| TwoLevel { active_warps, oldest_enters: false },
    /// Two-level, where the oldest ready warp takes a free place, and last those that left
    /// it for a busy unit.
    TwoLevelOldest: |active_warps| TwoLevel { active_warps, oldest_enters: true },
    /// Greedy, then youngest.
    Cggty: |_| Cggty::default(),
    /// Strictly the oldest first.
    Oldest: |_| Oldest,
}
