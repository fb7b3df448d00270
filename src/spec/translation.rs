//! Address translation and page migration of a machine.

use serde::{Deserialize, Serialize};

/// TLBs, page walkers and the cost of moving a page. Latencies in core cycles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Translation {
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Entries of an SM's L1 TLB.
    pub l1_entries: u32,
    /// Its ways; equal to the entries for a fully associative one.
    pub l1_ways: u32,
    /// Cycles added by an L1 TLB hit to an access.
    pub l1_latency_cycles: u32,
    /// Entries of the L2 TLB that all SMs share.
    pub l2_entries: u32,
    /// Its ways.
    pub l2_ways: u32,
    /// Cycles added by a look-up in the L2 TLB.
    pub l2_latency_cycles: u32,
    /// Page walks at a time.
    pub walkers: u32,
    /// Levels of the page table.
    pub walk_levels: u32,
    /// Cycles of one level of a walk, where its entry is in the L2.
    pub walk_level_cycles: u32,
    /// Cycles until a page that is not in memory is there.
    pub fault_cycles: u64,
    /// Cycles that the driver spends on one page migration.
    pub migration_driver_cycles: u64,
    /// Cycles that moving the data of one page takes inside the memory at best.
    pub migration_copy_cycles: u64,
}
