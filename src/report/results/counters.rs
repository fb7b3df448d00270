//! Counters of caches and DRAM, counted as the command-line contract says:
//! in 32-byte sectors, hits = accesses - misses, merges are hits; the result of one memory channel
//! alone; and what an application had of the link to the host.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use gpumodel_core::units::Cycle;
use serde::{Deserialize, Serialize};

use super::is_zero;
use crate::format::{float, ratio};

/// Sector requests of one cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheCounters {
    /// Sector requests, reads and writes; refused reservations are not counted again.
    pub accesses: u64,
    /// Accesses that found their sector, or merged into an outstanding miss.
    pub hits: u64,
    /// Accesses that merged into an outstanding miss (also in `hits`).
    pub merged: u64,
    /// Sector requests that read.
    pub reads: u64,
    /// Reads that hit (merges included).
    pub read_hits: u64,
}

/// Instruction fetch of one launch: the caches inside the SMs count lines, the
/// L2 sectors of 32 bytes. The launch's own L2 counters leave code out; its DRAM
/// counters hold it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FetchCounters {
    /// Lines looked up in the inner caches, once per run of instructions.
    pub inner_accesses: u64,
    /// Waits of a warp for a line that the inner cache lacked.
    pub inner_misses: u64,
    /// Waits for a line that was in flight already; no misses.
    #[serde(default)]
    pub inner_merged: u64,
    /// Lines asked of the SMs' outer caches, prefetches included.
    pub outer_accesses: u64,
    /// Lines among them that had to come from the L2.
    pub outer_misses: u64,
    /// Sectors of code at the L2.
    pub l2: CacheCounters,
}

/// Constant loads of one launch. The launch's own L1 and L2 counters leave them
/// out; its DRAM counters hold them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConstantCounters {
    /// Warp instructions that carried addresses.
    pub accesses: u64,
    /// Warp instructions without addresses: they take a fixed latency.
    pub without_address: u64,
    /// Distinct 4-byte words looked up, one per cycle.
    pub passes: u64,
    /// Lines that the SMs' inner caches lacked.
    pub misses: u64,
    /// Lines that were in flight already.
    pub merged: u64,
    /// Lines that the SMs' outer caches asked of the L2.
    pub outer_misses: u64,
    /// Sectors of constants at the L2.
    pub l2: CacheCounters,
}

/// Sums counter by counter: counts in the first brackets saturate, counters in the second add.
macro_rules! sums {
    ($($type:ty: [$($count:ident),+] [$($part:ident),*];)+) => {
        $(impl AddAssign for $type {
            fn add_assign(&mut self, other: Self) {
                $(self.$count = self.$count.saturating_add(other.$count);)+
                $(self.$part += other.$part;)*
            }
        })+
    };
}

sums! {
    FetchCounters: [inner_accesses, inner_misses, inner_merged, outer_accesses, outer_misses] [l2];
    ConstantCounters: [accesses, without_address, passes, misses, merged, outer_misses] [l2];
    CacheCounters: [accesses, hits, merged, reads, read_hits] [];
    TlbCounters: [accesses, hits, merged] [];
    TranslationCounters: [walks, walk_reads, walk_read_hits, faults] [l1_tlb, l2_tlb];
}

impl CacheCounters {
    /// Accesses that missed: sector misses and write misses.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.accesses.saturating_sub(self.hits)
    }

    /// Hits over accesses; `None` without accesses.
    #[must_use]
    pub fn hit_rate(&self) -> Option<f64> {
        ratio(float(self.hits), float(self.accesses))
    }
}

/// Look-ups in TLBs: one per distinct page of a memory instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TlbCounters {
    /// Look-ups.
    pub accesses: u64,
    /// Look-ups that found their page, or joined one that was in flight.
    pub hits: u64,
    /// Look-ups that joined one in flight (also in `hits`).
    pub merged: u64,
}

impl TlbCounters {
    /// Hits over accesses; `None` without accesses.
    #[must_use]
    pub fn hit_rate(&self) -> Option<f64> {
        ratio(float(self.hits), float(self.accesses))
    }
}

/// Address translation. What several launches wait for is booked for the one
/// that asked first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TranslationCounters {
    /// The SMs' own TLBs; their misses are the accesses of the L2 TLB.
    pub l1_tlb: TlbCounters,
    /// The TLB that all SMs share.
    pub l2_tlb: TlbCounters,
    /// Page walks: the misses of the L2 TLB.
    pub walks: u64,
    /// Sectors of page tables that walks read through the L2 cache; they are not
    /// among the L2's accesses.
    pub walk_reads: u64,
    /// Walk reads that hit there, or joined an outstanding miss; the others are
    /// among the DRAM's read sectors.
    pub walk_read_hits: u64,
    /// Pages that were not in memory when first touched.
    pub faults: u64,
}

/// Sectors moved over the DRAM pins and what the row buffers did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DramCounters {
    /// 32-byte sectors read.
    pub read_sectors: u64,
    /// 32-byte sectors written; nothing is flushed at the end of a run.
    pub write_sectors: u64,
    /// Column accesses that found their row open.
    pub row_hits: u64,
    /// Column accesses that needed an activate first.
    pub row_misses: u64,
    /// Share of the peak bandwidth of all channels over the cycles of the row, 0 to 1.
    pub bandwidth_utilization: f64,
}

impl DramCounters {
    /// Bytes moved in both directions.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.read_sectors
            .saturating_add(self.write_sectors)
            .saturating_mul(gpumodel_core::units::SECTOR_BYTES)
    }
}

/// One SM.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

/// Shares from 0 to 1, means over all SMs and cycles of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UtilizationRecord {
    /// Issue capacity of the arithmetic units that was used.
    pub alu: f64,
    /// The same of the special function units.
    pub sfu: f64,
    /// The same of the load/store units.
    pub load_store: f64,
    /// Registers that resident CTAs held.
    pub registers: f64,
    /// Shared memory that resident CTAs held.
    pub shared: f64,
}

/// Shares of resources, each from 0 to 1, by name.
///
/// Of an SM that is full with CTAs of a launch (ARCS 2018, Fig. 2): `registers`,
/// `shared`, `threads`, `cta_slots`. Of a launch while it runs (Fig. 7): `int`, `fp32`,
/// `fp64`, `half`, `sfu`, ... of issue capacity, as far as the launch uses the unit;
/// `shared` of the passes of shared memory (one per cycle and SM), `l1` and `l2` of
/// sector look-ups, `dram` of the pins.
pub type UnitShares = std::collections::BTreeMap<String, f64>;

/// What `gpumodel dram` reports. The keys are a contract: added, never renamed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DramRecord {
    /// Always `gpumodel.dram/1`.
    pub schema: String,
    /// The memory standard.
    pub spec: String,
    /// Requests of the file.
    pub requests: u64,
    /// Native accesses of all requests.
    pub accesses: u64,
    /// Clock at which the last read returned or the last write was done.
    pub cycles: u64,
    /// Clock of the last read's last data beat.
    pub last_read_done_cycle: u64,
    /// Bytes moved over bytes that the data bus could have moved in `cycles`.
    pub bandwidth_utilization: f64,
    /// Read requests: from acceptance of the first access to the last data beat.
    pub mean_read_latency_cycles: f64,
    /// The same, 99th percentile.
    pub p99_read_latency_cycles: f64,
    /// Accesses whose row was open when their first command was sent.
    pub row_hits: u64,
    /// Accesses whose bank was closed then.
    pub row_misses: u64,
    /// Accesses whose bank had another row open then.
    pub row_conflicts: u64,
    /// ACT commands.
    pub activates: u64,
    /// REFab and REFpb commands.
    pub refreshes: u64,
    /// RD and RDA commands.
    pub reads: u64,
    /// WR and WRA commands.
    pub writes: u64,
    /// Memory command clock in kHz.
    pub clock_khz: u64,
    /// What `--set` changed, as typed.
    pub overrides: std::collections::BTreeMap<String, String>,
}

impl DramRecord {
    /// The value of [`DramRecord::schema`].
    pub const SCHEMA: &'static str = "gpumodel.dram/1";
}

/// Copies and page faults of an application, where they take time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LinkRecord {
    /// Copies to the device.
    pub host_to_device_copies: u64,
    /// Their bytes.
    pub host_to_device_bytes: u64,
    /// Copies to the host.
    pub device_to_host_copies: u64,
    /// Their bytes.
    pub device_to_host_bytes: u64,
    /// Copies within the device.
    pub device_to_device_copies: u64,
    /// Their bytes.
    pub device_to_device_bytes: u64,
    /// Cycles during which a copy was under way, waits for its engine among them.
    pub copy_cycles: Cycle,
    /// Pages of managed memory that came because a kernel touched them.
    pub page_faults: u64,
    /// Their bytes.
    pub page_fault_bytes: u64,
    /// Cycles during which such a page was awaited.
    pub page_fault_cycles: Cycle,
}

impl LinkRecord {
    /// What was copied, in words: `None` where nothing was.
    #[must_use]
    pub fn copies(&self) -> Option<String> {
        let ways = [
            (self.host_to_device_copies, self.host_to_device_bytes, "to the device"),
            (self.device_to_host_copies, self.device_to_host_bytes, "to the host"),
            (self.device_to_device_copies, self.device_to_device_bytes, "within the device"),
        ];
        let said = ways.iter().filter(|way| way.0 > 0);
        let said: Vec<String> =
            said.map(|(copies, bytes, way)| format!("{copies} {way} ({bytes} bytes)")).collect();
        (!said.is_empty()).then(|| {
            format!("copies: {}, under way for {} cycles", said.join(", "), self.copy_cycles)
        })
    }

    /// What faulted, in words: `None` where nothing did.
    #[must_use]
    pub fn faults(&self) -> Option<String> {
        (self.page_faults > 0).then(|| {
            format!(
                "page faults of managed memory: {} ({} bytes), awaited for {} cycles",
                self.page_faults, self.page_fault_bytes, self.page_fault_cycles
            )
        })
    }
}
