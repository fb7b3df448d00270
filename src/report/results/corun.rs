//! The applications together under one scheme.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use gpumodel_core::units::Cycle;

use super::{
    CacheCounters, DecisionRecord, DramCounters, EnergyRecord, HostTime, MigrationRecord,
    MovedSoFar, ResidencyRecord, UtilizationRecord, WorkersRecord, unbounded,
};

/// The applications together under one scheme. [`CoRun::judge`] fills what
/// compares them with running alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoRun {
    /// Scheme name.
    pub scheme: String,
    /// Scheme parameters, defaults included.
    pub parameters: BTreeMap<String, String>,
    /// The end condition as typed.
    pub until: String,
    /// Length of the run.
    pub cycles: Cycle,
    /// One row per application, in the order in which they were named.
    pub apps: Vec<CoRunApp>,
    /// Sum of normalised progress (UGPU eq. 3).
    pub stp: f64,
    /// Mean of solo IPC over shared IPC (UGPU eq. 4); infinite, `null` in JSON, where
    /// an application made no progress.
    #[serde(with = "unbounded")]
    pub antt: f64,
    /// Smallest normalised progress.
    pub fairness_min_speedup: f64,
    /// Harmonic mean of normalised progress; 0 where an application made none.
    #[serde(default)]
    pub harmonic_speedup: f64,
    /// Thread instructions of all applications per cycle of the run.
    pub ipc_throughput: f64,
    /// Until the last application finished; 0 where one did not finish.
    pub makespan_cycles: Cycle,
    /// Sum of solo makespans over the shared makespan; 0 where there is none.
    pub makespan_speedup: f64,
    /// L1 totals of the run, all applications together.
    #[serde(default)]
    pub l1: CacheCounters,
    /// L2 totals.
    #[serde(default)]
    pub l2: CacheCounters,
    /// DRAM totals.
    #[serde(default)]
    pub dram: DramCounters,
    /// How busy units and stores of the SMs were; absent: the record does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization: Option<UtilizationRecord>,
    /// Energy of the run; 0 where the machine has no energy table.
    pub energy_joules: f64,
    /// Where that energy went; absent where the machine has no energy table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyRecord>,
    /// CTAs that were dropped before their end: to start again, or with their
    /// application as it reached its target. Workers count as one each.
    #[serde(default)]
    pub killed_ctas: u64,
    /// Every decision of the scheme, in order.
    pub decisions: Vec<DecisionRecord>,
    /// By application, what had moved up to the end of all its runs; absent: all shared
    /// all, or the record does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<Vec<MovedSoFar>>,
    /// Who ran where over time; absent: the record does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residency: Option<ResidencyRecord>,
    /// What these numbers lean on, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One application within a co-run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoRunApp {
    /// Application name.
    pub app: String,
    /// Cycles of its reported run: from its arrival to its end, or to the end of the
    /// co-run where it did not finish.
    pub cycles: Cycle,
    /// When it arrived.
    #[serde(default)]
    pub arrival_cycle: Cycle,
    /// When its reported run ended, or the co-run where it did not finish.
    #[serde(default)]
    pub end_cycle: Cycle,
    /// It finished, or reached its instruction target, at least once.
    #[serde(default)]
    pub finished: bool,
    /// Completed runs: more than 1 where early finishers are started again.
    #[serde(default)]
    pub runs: u64,
    /// Some launch comes from a log of accesses alone: no time is modelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub memory_only: bool,
    /// Warp instructions of its reported run.
    #[serde(default)]
    pub warp_instructions: u64,
    /// Active lanes summed over them.
    #[serde(default)]
    pub thread_instructions: u64,
    /// Thread instructions of all its runs in the co-run, the reported one among them.
    #[serde(default)]
    pub all_thread_instructions: u64,
    /// Thread instructions per cycle of its reported run.
    pub ipc: f64,
    /// The same alone on the machine, over the same work.
    #[serde(default)]
    pub solo_ipc: f64,
    /// Solo IPC over shared IPC; infinite, `null` in JSON, without progress.
    #[serde(with = "unbounded")]
    pub slowdown: f64,
    /// Shared IPC over solo IPC.
    pub normalized_progress: f64,
    /// L2 misses per thousand warp instructions.
    pub mpki_warp: f64,
    /// L2 misses per thousand thread instructions.
    pub mpki_thread: f64,
    /// L1 totals of its reported run.
    #[serde(default)]
    pub l1: CacheCounters,
    /// L2 totals.
    #[serde(default)]
    pub l2: CacheCounters,
    /// DRAM totals.
    #[serde(default)]
    pub dram: DramCounters,
    /// Its part of the bytes that all applications moved over the DRAM pins, 0 to 1.
    #[serde(default)]
    pub dram_share: f64,
    /// Share of the slot-cycles of its schedulers by cause; sums to 1. Empty: the
    /// record does not say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stall_fractions: BTreeMap<String, f64>,
    /// SMs held at the end.
    pub sms: u64,
    /// CTAs per SM held at the end.
    pub ctas_per_sm: u64,
    /// Memory channels held at the end.
    pub channels: u64,
    /// SMs that plans gave it, the mean over its reported run: none while it waited, and
    /// neither those that it still had to vacate nor those that it had beyond its share as
    /// the last one; absent: all took turns, or the record does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_sms: Option<f64>,
    /// Memory channels, the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_channels: Option<f64>,
    /// Its CTAs that were dropped before their end, as [`CoRun::killed_ctas`].
    #[serde(default)]
    pub killed_ctas: u64,
    /// What it cost that channels were its own; absent: all shared all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migration: Option<MigrationRecord>,
    /// Its kernels ran as workers; absent: as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<WorkersRecord>,
    /// Where its time went; absent: the record does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostTime>,
    /// Its launches, in start order.
    pub kernels: Vec<CoRunKernel>,
}

/// One launch within a co-run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoRunKernel {
    /// Kernel name.
    pub name: String,
    /// Position in the trace's launch list, from 1; 0: the record does not say.
    #[serde(default)]
    pub launch: u32,
    /// When its launch began.
    pub start_cycle: Cycle,
    /// When its last CTA retired, or the end of the co-run.
    pub end_cycle: Cycle,
    /// CTAs that it completed.
    #[serde(default)]
    pub ctas: u64,
}

impl CoRun {
    /// Thread instructions of all applications in all their runs; `None` where nothing was
    /// executed, or the record does not say.
    #[must_use]
    pub fn work(&self) -> Option<u64> {
        let work = self.apps.iter().map(|app| app.all_thread_instructions);
        Some(work.fold(0, u64::saturating_add)).filter(|&work| work > 0)
    }

    /// Whether pages moved or SMs were waited for.
    #[must_use]
    pub fn moved_anything(&self) -> bool {
        let moved = |app: &CoRunApp| app.migration.is_some_and(|moved| moved.cost_anything());
        self.apps.iter().any(moved)
    }

    /// Whether it ran under the scheme `name:key=value`: with these parameters, whatever
    /// the others were.
    #[must_use]
    pub fn is_under(&self, typed: &str) -> bool {
        let mut words = typed.split(':');
        let has = |word: &str| {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            self.parameters.get(key).is_some_and(|found| found == value)
        };
        words.next() == Some(self.scheme.as_str()) && words.all(has)
    }
}
