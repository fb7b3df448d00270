//! The parts of a sectored cache that L1 and L2 share: set index, tag array,
//! outstanding misses. Policies and timing are their owners'.

mod index;
mod mshr;
mod table;
mod tags;

pub(super) use index::SetIndex;
pub(super) use mshr::{Merge, Mshr};
pub(super) use tags::{Evicted, Found, TagArray};
