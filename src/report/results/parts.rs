//! What single parts of a machine counted over a whole run, all launches together.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CacheCounters, ConstantCounters, FetchCounters};

/// One SM.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SmCounters {
    /// CTAs that ran on it.
    pub ctas: u64,
    /// Warp instructions.
    pub warp_instructions: u64,
    /// Its L1.
    pub l1: CacheCounters,
    /// Its instruction caches, where it has them; `l2` is 0 here, slices count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction_cache: Option<FetchCounters>,
    /// Its constant cache, where it has one; `l2` is 0 here, slices count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constant_cache: Option<ConstantCounters>,
    /// Shares of its schedulers' slot-cycles by cause, launch latencies included
    /// as idle; they sum to 1.
    pub stall_fractions: BTreeMap<String, f64>,
}

/// One memory channel. Accesses are what the memory moves at once, which may be
/// wider than a sector; counted when their command is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelRecord {
    /// Read accesses.
    pub reads: u64,
    /// Write accesses.
    pub writes: u64,
    /// Accesses that a queued write answered, or that went out with one: no command was
    /// sent for them, while the application's sectors hold them.
    #[serde(default)]
    pub absorbed: u64,
    /// Accesses that found their row open.
    pub row_hits: u64,
    /// Accesses that found their bank closed.
    pub row_misses: u64,
    /// Accesses that found another row open.
    pub row_conflicts: u64,
    /// Refreshes.
    pub refreshes: u64,
    /// Columns of pages that left or reached it by MIGRATION; not printed when none did.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub migrations: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
