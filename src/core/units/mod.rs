//! Cycles, bytes, addresses, ids and seeds: the types that every other crate uses.
//!
//! Imports nothing of the project. Independent of any GPU.

mod clock;
mod dim;
mod id;
mod messages;
mod number;
mod output;
mod output_folder;

pub use clock::ClockRatio;
pub use dim::Dim3;
pub use id::{AppId, JobId, KernelId, SmId, sorted_mix};
pub use messages::{
    counted, did_you_mean, in_words, message_in_words, nearest, quoted, shown, with_causes,
};
pub use number::{ByteCount, to_u8, to_u16, to_u32, to_u64, to_usize};
pub use output::{
    OpenStream, Scratch, WholeFile, WholeFolder, check_writable, is_stream, remove_unfinished,
};
pub use output_folder::{FolderPurpose, remove_if_only_marked};

/// A point in time or a duration in cycles of the SM clock, unless a name says
/// otherwise (`_dram_cycles`, `_l2_cycles`).
pub type Cycle = u64;

/// Bytes of one sector: the unit in which caches and DRAM count accesses.
pub const SECTOR_BYTES: u64 = 32;

/// Threads of one warp, on every NVIDIA GPU so far.
pub const WARP_LANES: usize = 32;
