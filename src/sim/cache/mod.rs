//! The parts of a sectored cache that L1 and L2 share: set index, tag array, replacement,
//! write policies, outstanding misses. L1 and L2 have the timing.

mod index;
mod mshr;
#[cfg(test)]
pub(crate) mod naive;
mod replacement;
mod table;
mod tags;
mod write_rule;

pub(crate) use index::SetIndex;
pub(crate) use mshr::{Coming, Merge, Mshr};
pub use replacement::ReplacementPolicy;
pub(crate) use replacement::line_order::LineOrder;
pub(crate) use table::Table;
pub(crate) use tags::{Found, TagArray, WriteBack, lowest};
pub(crate) use write_rule::{Stored, WriteRule};
