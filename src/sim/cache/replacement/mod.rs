//! Which way of a set makes room: one small trait, one file per policy, one row below.

mod fifo;
pub(crate) mod line_order;
mod lru;
mod random;
mod tree_lru;
mod vacant;

use crate::config::ReplacementPolicy;

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

/// The policies by their names in machine files: a branch that always goes the same way
/// instead of a pointer to follow.
macro_rules! policies {
    ($($name:ident: $policy:ty),+ $(,)?) => {
        /// The policy of one cache.
        #[derive(Clone, Debug)]
        pub(super) enum Replacing {
            $($name($policy)),+
        }

        impl Replacing {
            /// The policy that a machine names, over no ways yet.
            pub(super) fn new(policy: ReplacementPolicy) -> Self {
                match policy {
                    $(ReplacementPolicy::$name => Self::$name(<$policy>::default())),+
                }
            }
        }

        impl Replacement for Replacing {
            fn reset(&mut self, sets: u32, ways: u32) {
                match self {
                    $(Self::$name(policy) => policy.reset(sets, ways)),+
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
                may_leave: impl Fn(usize) -> bool,
            ) -> Option<usize> {
                match self {
                    $(Self::$name(policy) => policy.victim(set, may_leave)),+
                }
            }
        }
    };
}

// One row per policy; its name is also a variant of `ReplacementPolicy` in `config/cache.rs`.
policies! {
    Lru: lru::Lru,
    Fifo: fifo::Fifo,
    TreeLru: tree_lru::TreeLru,
    Random: random::Random,
}
