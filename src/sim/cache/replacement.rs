//! Which way of a set makes room: one small trait, one file per policy.

use crate::config::ReplacementPolicy;

use super::fifo::Fifo;
use super::lru::Lru;
use super::random::Random;
use super::tree_lru::TreeLru;

/// A replacement policy over the ways of all sets, numbered set by set.
pub(super) trait Replacement {
    /// Forgets everything: `sets` sets of `ways` ways (at least 1) without lines.
    fn reset(&mut self, sets: u32, ways: u32);

    /// A line was used.
    fn used(&mut self, way: usize);

    /// A way has taken another line, which is thereby used.
    fn filled(&mut self, way: usize);

    /// The way of a set that makes room, among those that `may_leave`; `None`
    /// when none may. Ways without a line may always be taken and come first.
    fn victim(&mut self, set: usize, may_leave: impl Fn(usize) -> bool) -> Option<usize>;
}

/// The policy of one cache: a branch that always goes the same way instead of a
/// pointer to follow.
#[derive(Clone, Debug)]
pub(super) enum Replacing {
    Lru(Lru),
    Fifo(Fifo),
    TreeLru(TreeLru),
    Random(Random),
}

impl Replacing {
    /// The policy that a machine names, over no ways yet.
    pub(super) fn new(policy: ReplacementPolicy) -> Self {
        match policy {
            ReplacementPolicy::Lru => Self::Lru(Lru::default()),
            ReplacementPolicy::Fifo => Self::Fifo(Fifo::default()),
            ReplacementPolicy::TreeLru => Self::TreeLru(TreeLru::default()),
            ReplacementPolicy::Random => Self::Random(Random::default()),
        }
    }
}

impl Replacement for Replacing {
    fn reset(&mut self, sets: u32, ways: u32) {
        match self {
            Self::Lru(policy) => policy.reset(sets, ways),
            Self::Fifo(policy) => policy.reset(sets, ways),
            Self::TreeLru(policy) => policy.reset(sets, ways),
            Self::Random(policy) => policy.reset(sets, ways),
        }
    }

    #[inline]
    fn used(&mut self, way: usize) {
        match self {
            Self::Lru(policy) => policy.used(way),
            Self::Fifo(policy) => policy.used(way),
            Self::TreeLru(policy) => policy.used(way),
            Self::Random(policy) => policy.used(way),
        }
    }

    #[inline]
    fn filled(&mut self, way: usize) {
        match self {
            Self::Lru(policy) => policy.filled(way),
            Self::Fifo(policy) => policy.filled(way),
            Self::TreeLru(policy) => policy.filled(way),
            Self::Random(policy) => policy.filled(way),
        }
    }

    #[inline]
    fn victim(&mut self, set: usize, may_leave: impl Fn(usize) -> bool) -> Option<usize> {
        match self {
            Self::Lru(policy) => policy.victim(set, may_leave),
            Self::Fifo(policy) => policy.victim(set, may_leave),
            Self::TreeLru(policy) => policy.victim(set, may_leave),
            Self::Random(policy) => policy.victim(set, may_leave),
        }
    }
}
