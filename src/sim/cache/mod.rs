//! The parts of a sectored cache that L1 and L2 share: set index, tag array,
//! replacement, what writes do, outstanding misses. Timing is their owners'.

mod index;
mod mshr;
#[cfg(test)]
pub(crate) mod naive;
#[cfg(test)]
mod naive_tests;
mod places;
mod replacement;
mod table;
mod tags;
#[cfg(test)]
mod tags_tests;
mod write_rule;

pub(crate) use index::SetIndex;
pub(crate) use mshr::{Merge, Mshr};
pub(crate) use replacement::line_order::LineOrder;
pub(crate) use table::Table;
pub(crate) use tags::{Found, Leaving, TagArray};
pub(crate) use write_rule::{Stored, WriteRule};
