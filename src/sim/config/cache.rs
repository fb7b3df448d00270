//! A sectored cache in a machine description: geometry, hash, policies.

use serde::{Deserialize, Serialize};

pub use crate::cache::ReplacementPolicy;

use gpumodel_core::units::{SECTOR_BYTES, to_u32};

/// Geometry and policies of a sectored cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Sets.
    pub sets: u32,
    /// Ways. For an L1 with carve-out: at its largest size.
    pub ways: u32,
    /// Bytes of a line (one tag).
    pub line_bytes: u32,
    /// Bytes that are valid as one, and that a miss fetches: 32, a sector, or
    /// 128, where caches have whole lines. Then partly written lines are known by
    /// words of four bytes: a word of which a byte is written counts as written.
    /// Alike in L1 and L2.
    #[serde(default = "sector", skip_serializing_if = "is_sector")]
    pub sector_bytes: u32,
    /// Set index function.
    pub hash: SetHash,
    /// Outstanding sectors.
    pub mshr_entries: u32,
    /// Requests that may wait on one entry, the first included.
    pub mshr_merge: u32,
    /// What a write does where its sector is present.
    pub write: WritePolicy,
    /// What a write does where its sector is not there.
    pub write_miss: WriteMiss,
    /// What a read miss does to the array.
    pub allocate: AllocatePolicy,
    /// Which line makes room.
    #[serde(default)]
    pub replacement: ReplacementPolicy,
    /// Percent of the ways of a set that may be dirty at once: beyond, the line of
    /// them that makes room first is written back and stays, clean. None: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dirty_ways_percent: Option<u32>,
    /// A write that fetches nothing counts as a hit though its sector is not
    /// there, as in the counters of hardware.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fetchless_writes_hit: bool,
}

fn sector() -> u32 {
    to_u32(SECTOR_BYTES)
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn is_sector(bytes: &u32) -> bool {
    *bytes == sector()
}

/// Set index function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SetHash {
    /// Low line-address bits.
    Linear,
    /// Low bits XOR the next higher bits.
    Xor,
    /// Irreducible-polynomial hash (Rau, ISCA'91).
    Ipoly,
    /// That of Fermi's L1 (Nugteren et al., HPCA 2014); 32 or 64 sets.
    Fermi,
}

/// What a write does where its sector is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WritePolicy {
    /// To the next level at once; a present sector is updated.
    WriteThrough,
    /// To the next level at once; a present sector is invalidated.
    WriteEvict,
    /// Kept until eviction; a partly written sector is fetched when read.
    WriteBack,
    /// As `write-back` for local memory; global writes as `write-evict` and past
    /// the array on a miss. An L1's.
    LocalWriteBack,
}

/// What a write does where its sector is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteMiss {
    /// It goes to the next level; the array stays as it is.
    Around,
    /// It takes a way and marks its bytes; the rest is fetched when it is read.
    Lazy,
    /// It takes a way; a sector that it writes in part is fetched to be completed.
    Fetch,
    /// It goes to the next level, and its sector is fetched into a way, clean, as the old
    /// write allocation of GPGPU-Sim 3.x does. An L2's.
    ThroughAndFetch,
}

/// What a read miss does to the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AllocatePolicy {
    /// A way is reserved when the miss leaves.
    OnMiss,
    /// A way is taken when the data arrives.
    OnFill,
}
