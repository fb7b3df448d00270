//! Which way of a set is evicted: one small trait, one file per policy, one row below.

mod fifo;
pub(crate) mod line_order;
mod lru;
mod random;
mod tree_lru;

use gpumodel_core::units::to_usize;
use serde::{Deserialize, Serialize};

/// A replacement policy over the ways of all sets, numbered set by set.
pub(super) trait Replacement {
    /// Starts again with `sets` sets of `ways` ways (at least 1) without lines.
    fn reset(&mut self, sets: u32, ways: u32);

    /// A line was used.
    fn used(&mut self, way: usize);

    /// A way holds another line now, which counts as a use.
    fn filled(&mut self, way: usize);

    /// The way of a set to evict, among the `evictable` ones; `None` without one. Ways
    /// without a line are always evictable and come first.
    fn victim(&mut self, set: usize, evictable: impl Fn(usize) -> bool) -> Option<usize>;

    /// True when a search that finds no victim changes those that follow.
    fn search_counts(&self) -> bool {
        false
    }
}

/// The policies by their names in machine files. An enum: its branch is always predicted,
/// where a trait object would need a call through a pointer.
macro_rules! policies {
    ($($(#[$about:meta])+ $name:ident: $policy:ty),+ $(,)?) => {
        /// Which line of a set is evicted. Ways without a line come first; a line with a
        /// sector on its way always stays.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum ReplacementPolicy {
            $($(#[$about])+ $name),+
        }

        #[cfg(test)]
        impl ReplacementPolicy {
            /// Every policy.
            pub(crate) const ALL: &[Self] = &[$(Self::$name),+];
        }

        /// The policy of one cache.
        #[derive(Clone, Debug)]
        pub(super) enum Policy {
            $($name($policy)),+
        }

        impl Policy {
            /// The policy that a machine names, without ways.
            pub(super) fn new(policy: ReplacementPolicy) -> Self {
                match policy {
                    $(ReplacementPolicy::$name => Self::$name(<$policy>::default())),+
                }
            }
        }

        impl Replacement for Policy {
            fn reset(&mut self, sets: u32, ways: u32) {
                match self {
                    $(Self::$name(policy) => policy.reset(sets, ways)),+
                }
            }

            fn search_counts(&self) -> bool {
                match self {
                    $(Self::$name(policy) => policy.search_counts()),+
                }
            }

            #[inline]
            fn used(&mut self, way: usize) {
                match self {
                    $(Self::$name(policy) => policy.used(way)),+
                }
            }

            #[inline]
            fn filled(&mut self, way: usize) {
                match self {
                    $(Self::$name(policy) => policy.filled(way)),+
                }
            }

            #[inline]
            fn victim(
                &mut self,
                set: usize,
                evictable: impl Fn(usize) -> bool,
            ) -> Option<usize> {
                match self {
                    $(Self::$name(policy) => policy.victim(set, evictable)),+
                }
            }
        }
    };
}

// One row per policy. Its name in kebab case is that in machine files
// (`l1.cache.replacement`, `l2.cache.replacement`).
policies! {
    /// The least recently used.
    #[default]
    Lru: lru::Lru,
    /// The one that came first.
    Fifo: fifo::Fifo,
    /// The one that a binary tree of pointers away from the last uses ends at.
    TreeLru: tree_lru::TreeLru,
    /// Any; the same ones in every run.
    Random: random::Random,
}

/// The ways that have held no line yet: in each set those from a number on.
#[derive(Clone, Debug, Default)]
struct Vacant {
    ways: usize,
    filled: Vec<u32>,
}

impl Vacant {
    /// `sets` sets of `ways` ways without lines.
    fn reset(&mut self, sets: u32, ways: u32) {
        self.ways = to_usize(ways);
        self.filled.clear();
        self.filled.resize(to_usize(sets), 0);
    }

    /// The next way of a set without a line.
    fn first(&self, set: usize) -> Option<usize> {
        let filled = to_usize(self.filled[set]);
        (filled < self.ways).then(|| set * self.ways + filled)
    }

    /// A way holds a line now.
    fn fill(&mut self, way: usize) {
        let set = way / self.ways;
        self.filled[set] += u32::from(self.first(set) == Some(way));
    }
}
