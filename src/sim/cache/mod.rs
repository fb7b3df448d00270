//! The parts of a sectored cache that L1 and L2 share: set index, tag array,
//! replacement, what writes do, outstanding misses. Timing is their owners'.

mod fifo;
mod index;
mod line_order;
mod lru;
mod mshr;
#[cfg(test)]
pub(super) mod naive;
#[cfg(test)]
mod naive_tests;
mod places;
mod random;
mod replacement;
mod table;
mod tags;
#[cfg(test)]
mod tags_tests;
mod tree_lru;
mod vacant;
mod write_rule;

pub(super) use index::SetIndex;
pub(super) use mshr::{Merge, Mshr};
pub(super) use table::Table;
pub(super) use tags::{Found, Leaving, TagArray};
pub(super) use write_rule::{Stored, WriteRule};
