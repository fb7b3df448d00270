//! Cycles, bytes, addresses, ids and seeds: the words every other room uses.
//!
//! Imports nothing of the project. Nothing here knows what a GPU is.

mod byte_count;
mod causes;
mod clock;
mod dim;
mod expectation;
mod folder;
mod id;
mod mix;
mod narrow;
mod nearest;
mod output;
mod quoted;
mod scratch;

pub use byte_count::ByteCount;
pub use causes::with_causes;
pub use clock::ClockRatio;
pub use dim::Dim3;
pub use expectation::{in_words, message_in_words};
pub use folder::{WholeFolder, held};
pub use id::{AppId, JobId, KernelId, SmId};
pub use mix::sorted_mix;
pub use narrow::{to_u16, to_u32, to_u64, to_usize};
pub use nearest::{did_you_mean, nearest};
pub use output::{WholeFile, remove_unfinished};
pub use quoted::{quoted, shown};
pub use scratch::{Scratch, check_writable};

/// A point in time or a duration in cycles of the SM clock, unless a name says
/// otherwise (`_dram_cycles`, `_l2_cycles`).
pub type Cycle = u64;

/// Bytes of one sector: the unit in which caches and DRAM count accesses.
pub const SECTOR_BYTES: u64 = 32;

/// Threads of one warp, on every NVIDIA GPU so far.
pub const WARP_LANES: usize = 32;
