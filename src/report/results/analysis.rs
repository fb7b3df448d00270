//! The JSON record of `analyze`: schema `gpumodel.analysis/1`, and its launches as CSV. With it
//! what a fast-forwarded run passed over, and what happened when, in more detail than records keep.
//!
//! Keys may be added, never renamed; units are in the key names.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use gpumodel_core::units::{Cycle, Dim3, quoted};
use serde::{Deserialize, Serialize};

use super::{
    CacheCounters, CellRecord, ChannelRecord, CoRun, ConstantCounters, DramCounters, EnergyRecord,
    FetchCounters, HotRecord, InterferenceRecord, LinkRecord, QueueRun, SmCounters, TlbCounters,
    TranslationCounters, UnitShares, UtilizationRecord,
};
use crate::format::csv;

/// Value of [`Analysis::schema`].
pub const SCHEMA: &str = "gpumodel.analysis/1";

/// One run of `gpumodel analyze`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(title = "Record of gpumodel analyze"))]
pub struct Analysis {
    /// Version of the record: always `gpumodel.analysis/1`.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    pub schema: String,
    /// Program name and version.
    pub program: String,
    /// Seed of the run.
    pub seed: u64,
    /// Machine keys overridden by `--set`, as typed.
    pub overrides: BTreeMap<String, String>,
    /// What was chosen of the applications, as typed: `kernels`, `names`, `ctas`;
    /// empty: everything ran.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub filters: BTreeMap<String, String>,
    /// The machine and its limits.
    pub machine: MachineRecord,
    /// Each application alone.
    pub solo: Vec<AppRecord>,
    /// The applications together, one entry per scheme.
    pub coruns: Vec<CoRun>,
    /// Queues of the applications, one entry per queue and scheme.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueRun>,
    /// What schemes for queues measured before they grouped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interference: Vec<InterferenceRecord>,
    /// Which cell of a sweep it is; absent: `analyze` was asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<CellRecord>,
    /// What the numbers lean on: assumptions that were needed, each once.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Analysis {
    /// The hash of the store of the application called `app`; `None`: it did not run alone.
    #[must_use]
    pub fn store_hash(&self, app: &str) -> Option<&str> {
        self.solo.iter().find(|solo| solo.app == app).map(|solo| solo.store_hash.as_str())
    }
}

/// The machine of a run, with the peaks that figures need.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MachineRecord {
    /// Name of the machine file.
    pub name: String,
    /// Name under which reference tables know it; empty: the same name.
    #[serde(default)]
    pub reference_name: String,
    /// Hash of the resolved description, overrides included.
    pub hash: String,
    /// Streaming multiprocessors.
    #[serde(default)]
    pub sms: u64,
    /// SM clock.
    #[serde(default)]
    pub core_mhz: f64,
    /// Peak DRAM bandwidth over all channels.
    #[serde(default)]
    pub peak_dram_gb_per_s: f64,
    /// Peak L2 bandwidth over all slices.
    #[serde(default)]
    pub peak_l2_gb_per_s: f64,
    /// Warp instructions that all schedulers can issue in one cycle.
    #[serde(default)]
    pub peak_warp_instructions_per_cycle: f64,
}

/// One application alone on the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AppRecord {
    /// Application name.
    pub app: String,
    /// Hash of the store's content.
    pub store_hash: String,
    /// From the first launch to the last kernel's end, launch latencies included; from the first
    /// copy to the last where copies take time.
    pub cycles: Cycle,
    /// The part of `cycles` that is launch latency.
    pub launch_cycles: Cycle,
    /// Warp instructions executed (a zero mask counts).
    pub warp_instructions: u64,
    /// Active lanes summed over warp instructions.
    pub thread_instructions: u64,
    /// Thread instructions per cycle.
    pub ipc: f64,
    /// Some launch is [`KernelRecord::memory_only`]; then no time of the whole run is
    /// modelled. Absent: none is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub memory_only: bool,
    /// L1 totals.
    pub l1: CacheCounters,
    /// L2 totals.
    pub l2: CacheCounters,
    /// DRAM totals.
    pub dram: DramCounters,
    /// Address translation; absent where the machine's addresses are physical.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translation: Option<TranslationCounters>,
    /// Instruction fetch; absent on machines without instruction caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction_cache: Option<FetchCounters>,
    /// Constant loads; absent on machines without a constant cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constant_cache: Option<ConstantCounters>,
    /// Look-ups in each SM's own TLB, in order of SMs; empty without translation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub l1_tlb_by_sm: Vec<TlbCounters>,
    /// By SM.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_sm: Vec<SmCounters>,
    /// Sector requests of each L2 slice, those of page walks, instruction
    /// fetch and constants included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_slice: Vec<CacheCounters>,
    /// By memory channel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_channel: Vec<ChannelRecord>,
    /// What was passed over; absent where every cycle was simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_forward: Option<FastForwardRecord>,
    /// Energy of the run; absent where the machine has no energy table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_joules: Option<f64>,
    /// Where that energy went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyRecord>,
    /// Copies and page faults; absent where they take no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkRecord>,
    /// How busy units and stores of the SMs were; absent: the record does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization: Option<UtilizationRecord>,
    /// Launches in start order.
    pub kernels: Vec<KernelRecord>,
    /// Activity over time, for the timeline figure.
    #[serde(default)]
    pub timeline: Vec<Interval>,
    /// What only [`trace_events`](crate::trace_events) shows; no part of the document.
    #[serde(skip)]
    pub events: RunEvents,
}

/// One kernel launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KernelRecord {
    /// Kernel name as traced.
    pub name: String,
    /// Trace kernel id.
    pub id: u32,
    /// Position in the trace's launch list, from 1; 0: the record does not say.
    #[serde(default)]
    pub launch: u32,
    /// CUDA stream.
    pub stream: u64,
    /// When its launch began.
    pub start_cycle: Cycle,
    /// When its last CTA retired.
    pub end_cycle: Cycle,
    /// CTAs.
    #[cfg_attr(test, schemars(with = "[u32; 3]"))]
    pub grid: Dim3,
    /// Threads per CTA.
    #[cfg_attr(test, schemars(with = "[u32; 3]"))]
    pub block: Dim3,
    /// Registers per thread.
    pub registers: u32,
    /// Shared bytes per CTA.
    pub shared_bytes: u32,
    /// `end_cycle - start_cycle`.
    pub cycles: Cycle,
    /// The part of `cycles` that is launch latency.
    pub launch_cycles: Cycle,
    /// Warp instructions.
    pub warp_instructions: u64,
    /// Thread instructions.
    pub thread_instructions: u64,
    /// Thread instructions per cycle.
    pub ipc: f64,
    /// It comes from a log of accesses alone: caches and DRAM are modelled; cycles,
    /// `ipc`, bandwidth and stalls are those of the accesses one after another, not of
    /// the kernel. Absent: it is a whole trace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub memory_only: bool,
    /// CTAs that fit one SM.
    pub ctas_per_sm: u32,
    /// Warps that fit one SM over the SM's warp slots, 0 to 1.
    pub occupancy: f64,
    /// What limits `ctas_per_sm`: `warps`, `ctas`, `registers`, `shared` or `grid`.
    #[serde(default)]
    pub occupancy_limit: String,
    /// L1 counters, all SMs.
    pub l1: CacheCounters,
    /// L2 counters, all slices.
    pub l2: CacheCounters,
    /// Instruction fetch; absent on a machine without instruction caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction_cache: Option<FetchCounters>,
    /// Constant loads; absent on a machine without constant caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constant_cache: Option<ConstantCounters>,
    /// DRAM counters, all channels.
    pub dram: DramCounters,
    /// Address translation; absent where the machine's addresses are physical.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translation: Option<TranslationCounters>,
    /// Share of scheduler slot-cycles by cause; sums to 1.
    pub stall_fractions: BTreeMap<String, f64>,
    /// The part of those slot-cycles in which the slot's SM held a CTA of the
    /// launch, 0 to 1; absent: the record does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_slot_fraction: Option<f64>,
    /// Share of the GPU's issue slots (one per scheduler and cycle, from the first CTA
    /// to the last one's end) that issued an instruction at least: ARCS 2018's ISU, 0
    /// to 1. Where slots take two instructions, as if none issued in pairs: at most
    /// twice too much. Absent: the record does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue_slot_utilization: Option<f64>,
    /// How much of an SM its CTAs take where as many are resident as fit; absent: the
    /// record does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residence: Option<UnitShares>,
    /// How busy units and memory were while it ran; absent: the record does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<UnitShares>,
    /// Warp instructions by execution unit.
    #[serde(default)]
    pub instruction_mix: BTreeMap<String, u64>,
    /// Warp instructions whose opcode no table row knew.
    #[serde(default)]
    pub unknown_opcode_instructions: u64,
    /// The sample that the row is extrapolated from; absent where nothing was sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<SampleRecord>,
    /// What the trace leaves open, most instructions first; an instruction may be
    /// in several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<AssumptionRecord>,
    /// Its instructions that lose most; absent: they were not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot: Option<HotRecord>,
}

/// Activity between two moments of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Interval {
    /// First cycle.
    pub start_cycle: Cycle,
    /// One past the last cycle.
    pub end_cycle: Cycle,
    /// Warp instructions issued.
    pub warp_instructions: u64,
    /// DRAM sectors moved.
    pub dram_sectors: u64,
    /// Resident CTAs, mean over the interval and summed over SMs.
    pub resident_ctas: f64,
}

/// Something that the trace leaves open, and how it was taken.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AssumptionRecord {
    /// What is open.
    pub what: String,
    /// Warp instructions that it is about.
    pub instructions: u64,
    /// The same as a share of the launch's warp instructions, 0 to 1.
    pub share: f64,
    /// How they were taken.
    pub effect: String,
}

/// The sample of one launch. Its cycles, counters and stalls are extrapolated from
/// the CTAs that ran; instruction counts are the trace's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SampleRecord {
    /// CTAs that ran, all runs together; all of them when no sample was good enough.
    pub ctas_run: u64,
    /// CTAs of the launch in the trace.
    pub ctas: u64,
    /// Classes of CTAs whose warps take the same paths, rare paths together.
    pub strata: u64,
    /// Samples that ran, one after the other until the interval was tight.
    pub runs: u32,
    /// SMs of the machine's part on which each ran.
    pub sms: u64,
    /// Memory channels of that part.
    pub channels: u64,
    /// How sure the intervals are, 0 to 1, of what the choice of CTAs leaves open.
    /// They also hold a bound, fitted to measured launches, on what a part of a
    /// machine does otherwise than the whole.
    pub confidence: f64,
    /// The interval of the launch's cycles, launch latency included.
    pub cycles_low: Cycle,
    /// Its upper end.
    pub cycles_high: Cycle,
    /// The interval of thread instructions per cycle.
    pub ipc_low: f64,
    /// Its upper end.
    pub ipc_high: f64,
}

impl SampleRecord {
    /// The same with the interval of the IPC that follows from that of the cycles.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
    pub fn with_ipc(self, thread_instructions: u64) -> Self {
        let ipc = |cycles: Cycle| thread_instructions as f64 / cycles.max(1) as f64;
        Self { ipc_low: ipc(self.cycles_high), ipc_high: ipc(self.cycles_low), ..self }
    }
}

impl KernelRecord {
    /// Adds the counts of `other`, and whether its times are not modelled.
    pub(crate) fn add(&mut self, other: &Self) {
        self.memory_only |= other.memory_only;
        self.cycles = self.cycles.saturating_add(other.cycles);
        self.launch_cycles = self.launch_cycles.saturating_add(other.launch_cycles);
        self.warp_instructions = self.warp_instructions.saturating_add(other.warp_instructions);
        self.thread_instructions =
            self.thread_instructions.saturating_add(other.thread_instructions);
        self.l1 += other.l1;
        self.l2 += other.l2;
        let (sum, dram) = (&mut self.dram, &other.dram);
        sum.read_sectors = sum.read_sectors.saturating_add(dram.read_sectors);
        sum.write_sectors = sum.write_sectors.saturating_add(dram.write_sectors);
    }

    /// Its cycles beyond launch latency.
    pub(crate) fn busy_cycles(&self) -> Cycle {
        self.cycles.saturating_sub(self.launch_cycles)
    }

    /// True when the numbers are extrapolated from a part of the CTAs.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.sample.as_ref().is_some_and(|sample| sample.ctas_run < sample.ctas)
    }
}

impl AppRecord {
    /// True when a launch's numbers are extrapolated from a part of its CTAs.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.kernels.iter().any(KernelRecord::is_sampled)
    }

    /// Shares of the slot-cycles of all SMs, beyond launch latency, by cause; launches that run
    /// at once share the slots. `None`: the record does not say.
    pub(crate) fn sm_stalls(&self) -> Option<BTreeMap<String, f64>> {
        let cycles = self.cycles as f64;
        let beyond = cycles - self.launch_cycles as f64;
        if self.by_sm.is_empty() || beyond <= 0.0 {
            return None;
        }
        let mut stack = BTreeMap::<String, f64>::new();
        let scale = cycles / beyond / self.by_sm.len() as f64;
        for (cause, share) in self.by_sm.iter().flat_map(|sm| &sm.stall_fractions) {
            *stack.entry(cause.clone()).or_default() += share * scale;
        }
        // Launch latencies that no other launch hides have no warp.
        let idle = stack.entry("idle".to_owned()).or_default();
        *idle = (*idle - self.launch_cycles as f64 / beyond).max(0.0);
        Some(stack)
    }
}

/// A selection of launches by position in the trace's list, from 1:
/// `all`, `3`, `1-8`, `1-4,7`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Launches {
    /// Every launch of the list.
    #[default]
    All,
    /// The launches of these ranges, ends included.
    Ranges(Vec<RangeInclusive<u32>>),
}

impl Launches {
    /// One launch.
    #[must_use]
    pub fn one(position: u32) -> Self {
        Self::Ranges(vec![position..=position])
    }

    /// Reads `all` or a comma-separated list of positions and ranges.
    ///
    /// # Errors
    /// A sentence that says what was expected and what was found.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "all" || text.is_empty() {
            return Ok(Self::All);
        }
        text.split(',').map(parse_range).collect::<Option<Vec<_>>>().map(Self::Ranges).ok_or_else(
            || {
                let found = quoted(text.as_bytes());
                format!("expected launches as `all`, `3`, `1-8` or `1-4,7`, found {found}")
            },
        )
    }

    /// True when the launch at `position` (from 1) is meant.
    #[must_use]
    pub fn contains(&self, position: u32) -> bool {
        match self {
            Self::All => true,
            Self::Ranges(ranges) => ranges.iter().any(|range| range.contains(&position)),
        }
    }

    /// The meant launches among `kernels`, with [`KernelRecord::launch`] as
    /// position, or the order in the slice where a record does not say.
    #[must_use]
    pub fn select<'k>(&self, kernels: &'k [KernelRecord]) -> Vec<&'k KernelRecord> {
        let numbered = kernels.iter().zip(1_u32..);
        numbered
            .filter(|(kernel, order)| {
                self.contains(if kernel.launch == 0 { *order } else { kernel.launch })
            })
            .map(|(kernel, _)| kernel)
            .collect()
    }
}

fn parse_range(part: &str) -> Option<RangeInclusive<u32>> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let first: u32 = first.trim().parse().ok()?;
    let last: u32 = last.trim().parse().ok()?;
    (first > 0 && first <= last).then_some(first..=last)
}

impl fmt::Display for Launches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Ranges(ranges) = self else { return f.write_str("all") };
        for (i, range) in ranges.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            if range.start() == range.end() {
                write!(f, "{comma}{}", range.start())?;
            } else {
                write!(f, "{comma}{}-{}", range.start(), range.end())?;
            }
        }
        Ok(())
    }
}

/// A launch of a solo run.
type Launch<'a> = (&'a Analysis, &'a AppRecord, &'a KernelRecord);

/// A column of launches as CSV.
type Column = (&'static str, for<'a> fn(&Launch<'a>) -> String);

/// What is said of every launch; the columns of the sample are empty where every CTA ran.
const COLUMNS: [Column; 28] = [
    ("machine", |(record, ..)| record.machine.name.clone()),
    ("app", |(_, app, _)| app.app.clone()),
    ("launch", |(_, _, kernel)| kernel.launch.to_string()),
    ("id", |(_, _, kernel)| kernel.id.to_string()),
    ("stream", |(_, _, kernel)| kernel.stream.to_string()),
    ("name", |(_, _, kernel)| kernel.name.clone()),
    ("grid", |(_, _, kernel)| extent(kernel.grid)),
    ("block", |(_, _, kernel)| extent(kernel.block)),
    ("start_cycle", |(_, _, kernel)| kernel.start_cycle.to_string()),
    ("end_cycle", |(_, _, kernel)| kernel.end_cycle.to_string()),
    ("cycles", |(_, _, kernel)| kernel.cycles.to_string()),
    ("launch_cycles", |(_, _, kernel)| kernel.launch_cycles.to_string()),
    ("warp_instructions", |(_, _, kernel)| kernel.warp_instructions.to_string()),
    ("thread_instructions", |(_, _, kernel)| kernel.thread_instructions.to_string()),
    ("ctas_per_sm", |(_, _, kernel)| kernel.ctas_per_sm.to_string()),
    ("occupancy", |(_, _, kernel)| format!("{:.6}", kernel.occupancy)),
    ("l1_accesses", |(_, _, kernel)| kernel.l1.accesses.to_string()),
    ("l1_hits", |(_, _, kernel)| kernel.l1.hits.to_string()),
    ("l2_accesses", |(_, _, kernel)| kernel.l2.accesses.to_string()),
    ("l2_hits", |(_, _, kernel)| kernel.l2.hits.to_string()),
    ("dram_read_sectors", |(_, _, kernel)| kernel.dram.read_sectors.to_string()),
    ("dram_write_sectors", |(_, _, kernel)| kernel.dram.write_sectors.to_string()),
    ("dram_row_hits", |(_, _, kernel)| kernel.dram.row_hits.to_string()),
    ("dram_row_misses", |(_, _, kernel)| kernel.dram.row_misses.to_string()),
    ("sample_ctas_run", |(_, _, kernel)| sampled(kernel, |sample| sample.ctas_run)),
    ("sample_cycles_low", |(_, _, kernel)| sampled(kernel, |sample| sample.cycles_low)),
    ("sample_cycles_high", |(_, _, kernel)| sampled(kernel, |sample| sample.cycles_high)),
    ("memory_only", |(_, _, kernel)| kernel.memory_only.to_string()),
];

fn sampled(kernel: &KernelRecord, of: fn(&SampleRecord) -> u64) -> String {
    let sample = kernel.sample.as_ref().filter(|_| kernel.is_sampled());
    sample.map_or_else(String::new, |sample| of(sample).to_string())
}

fn extent(Dim3 { x, y, z }: Dim3) -> String {
    format!("{x}x{y}x{z}")
}

impl Analysis {
    /// The launches of every solo run as CSV, in record order; the columns are
    /// the keys of the JSON record.
    #[must_use]
    pub fn kernels_csv(&self) -> String {
        let launches = self.solo.iter().flat_map(|app| app.kernels.iter().map(move |k| (app, k)));
        let rows =
            launches.map(|(app, kernel)| COLUMNS.map(|(_, cell)| cell(&(self, app, kernel))));
        csv(&COLUMNS.map(|(name, _)| name).join(","), rows)
    }
}

/// Stretches of an application's run in which every launch advanced steadily and that were
/// passed over. Instructions of a stretch are counted exactly; its other counters are
/// extrapolated from the windows before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FastForwardRecord {
    /// Cycles among `cycles` that were passed over.
    pub cycles: Cycle,
    /// Stretches.
    pub stretches: u32,
    /// Half the 95 % interval of `cycles` (of the instructions where the application did not
    /// finish), as a part of it: from the spread of the windows before each stretch, the change
    /// of the rate across it, 3 % of the cycles passed over, and 0.2 % of all.
    pub interval: f64,
}

/// What a run adds to its record where its events are asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunEvents {
    /// Activity over time, all applications together; empty where the record has it.
    pub timeline: Vec<Interval>,
    /// Its CTAs in the order of their starts, the first [`RunEvents::CTAS`]; those that were
    /// dropped before their end are missing.
    pub ctas: Vec<CtaRecord>,
    /// CTAs beyond those.
    pub ctas_left_out: u64,
}

impl RunEvents {
    /// Most CTAs of a run.
    pub const CTAS: usize = 50_000;
}

/// The life of one CTA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CtaRecord {
    /// When it was handed out.
    pub start_cycle: Cycle,
    /// When its last warp ended.
    pub end_cycle: Cycle,
    /// Which SM.
    pub sm: u32,
    /// Position of its application in the run.
    pub app_index: u32,
    /// Position of its launch in the application's list, from 1.
    pub launch: u32,
    /// Its position among the launch's CTAs, in the order of their start.
    pub ordinal: u64,
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use schemars::generate::SchemaSettings;
    use serde_json::Value;

    use super::{Analysis, Launches};
    use crate::results::RECORD_SCHEMA;

    #[test]
    fn what_is_printed_is_what_was_read() {
        for text in ["all", "3", "1-8", "1-4,7"] {
            assert_eq!(Launches::parse(text).unwrap().to_string(), text);
        }
        for text in ["0", "8-1", "x", "1-", "-"] {
            assert!(Launches::parse(text).is_err(), "{text}");
        }
        assert!(Launches::parse("1-4,7").unwrap().contains(7));
        assert!(!Launches::parse("1-4,7").unwrap().contains(5));
    }

    /// The schema of [`Analysis`] as written (optional keys may be absent), as text.
    fn derived() -> String {
        let schema =
            SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Analysis>();
        let mut schema = schema.to_value();
        plain_descriptions(&mut schema);
        serde_json::to_string_pretty(&schema).unwrap() + "\n"
    }

    /// Descriptions without the line breaks and links of the source text.
    fn plain_descriptions(value: &mut Value) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(text)) = map.get_mut("description") {
                    *text = text.replace('\n', " ").replace("[`", "`").replace("`]", "`");
                }
                map.values_mut().for_each(plain_descriptions);
            }
            Value::Array(list) => list.iter_mut().for_each(plain_descriptions),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// The JSON Schema of a record is the one of the types, and records meet it.
    #[test]
    fn the_published_schema_is_the_one_of_the_types() {
        let derived = derived();
        if env::var_os("BLESS").is_some() {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/results/record.schema.json");
            return fs::write(file, derived).unwrap();
        }
        assert!(
            derived == RECORD_SCHEMA,
            "the keys of the record changed: `BLESS=1 cargo test -p gpumodel-report schema` \
             writes record.schema.json again; read the diff: keys are added, never renamed"
        );
    }
}
