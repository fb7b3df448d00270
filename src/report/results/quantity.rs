//! The quantities that a comparison is about, and their errors over many rows.
//!
//! Slot-cycles of schedulers, as a cycle simulator names them:
//!
//! | simulator (`scheduler_*`) | causes of a record |
//! |---|---|
//! | `issued` | issued |
//! | `stall_pipe`: ready, its pipe is full | execution_resource |
//! | `idle`: no warp has a valid instruction | instruction_buffer_empty, barrier, idle |
//! | `scoreboard`: valid, operands not ready | long_memory_latency, short_raw |
//!
//! The simulator counts an SM only while it has work, a record all SMs from the first CTA on: what
//! lies outside [`KernelRecord::held_slot_fraction`] is taken off `idle` first. It books a slot to
//! one cause where a record shares it out among the waiting warps, so they can agree to a few
//! points at best.

use std::collections::BTreeMap;

use gpumodel_core::units::SECTOR_BYTES;
use serde::{Deserialize, Serialize};
use statrs::statistics::{Data, OrderStatistics, Statistics};

use super::{ComparedRow, KernelRecord, ReferenceRow};
use crate::format::float;

/// A quantity that a record and a reference row both know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Cycles without launch latency.
    CyclesBeyondLaunch,
    /// L1 hits over accesses, reads and writes.
    L1HitRate,
    /// L1 sector reads that hit, merges included.
    L1ReadHits,
    /// L2 hits over accesses, reads and writes.
    L2HitRate,
    /// Bytes read and written over the DRAM pins.
    DramBytes,
    /// Bytes read over the DRAM pins.
    DramReadBytes,
    /// Bytes written over the DRAM pins.
    DramWriteBytes,
    /// Thread instructions: other than equal means another trace.
    ThreadInstructions,
    /// Slot-cycles in which an instruction issued, over those of SMs with work.
    IssuedSlots,
    /// The same of slot-cycles that waited for a pipe.
    PipeSlots,
    /// The same of slot-cycles without an instruction.
    IdleSlots,
    /// The same of slot-cycles that waited for operands.
    ScoreboardSlots,
    /// Nanoseconds, launch latency included.
    Duration,
    /// Warp instructions.
    WarpInstructions,
    /// Sectors that the L1s looked up.
    L1Sectors,
    /// Sectors that the L2 looked up.
    L2Sectors,
    /// Warps that fit an SM, over its warp slots.
    TheoreticalOccupancy,
    /// Mean of the warps on an SM while it held any, over its warp slots.
    AchievedOccupancy,
    /// Registers of a thread.
    Registers,
    /// Stalls for memory, over those of the five causes.
    LongMemoryStalls,
    /// The same of results of arithmetic.
    ShortRawStalls,
    /// The same of units and the load/store queue.
    ExecutionResourceStalls,
    /// The same of branches, fetches and instruction buffers.
    InstructionBufferStalls,
    /// The same of barriers.
    BarrierStalls,
}

/// How the error of a quantity is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorUnit {
    /// `(model - reference) / reference` in percent.
    Percent,
    /// `model - reference` in percentage points.
    Points,
}

impl Quantity {
    /// Every quantity, in printing order.
    pub const ALL: [Self; 24] = [
        Self::CyclesBeyondLaunch,
        Self::L1HitRate,
        Self::L1ReadHits,
        Self::L2HitRate,
        Self::DramBytes,
        Self::DramReadBytes,
        Self::DramWriteBytes,
        Self::ThreadInstructions,
        Self::IssuedSlots,
        Self::PipeSlots,
        Self::IdleSlots,
        Self::ScoreboardSlots,
        Self::Duration,
        Self::WarpInstructions,
        Self::L1Sectors,
        Self::L2Sectors,
        Self::TheoreticalOccupancy,
        Self::AchievedOccupancy,
        Self::Registers,
        Self::LongMemoryStalls,
        Self::ShortRawStalls,
        Self::ExecutionResourceStalls,
        Self::InstructionBufferStalls,
        Self::BarrierStalls,
    ];

    /// The causes of stalls.
    pub(super) const STALLS: [Self; 5] = [
        Self::LongMemoryStalls,
        Self::ShortRawStalls,
        Self::ExecutionResourceStalls,
        Self::InstructionBufferStalls,
        Self::BarrierStalls,
    ];

    /// Its name in tables and captions, the unit of its error, and the smallest reference
    /// value that counts in the means: below it a relative error says nothing. 1000 sectors for
    /// L1 and DRAM traffic.
    fn row(self) -> (&'static str, ErrorUnit, f64) {
        use ErrorUnit::{Percent, Points};
        let traffic = 1000.0 * SECTOR;
        match self {
            Self::CyclesBeyondLaunch => ("cycles beyond launch", Percent, 0.0),
            Self::L1HitRate => ("L1 hit rate", Points, 0.0),
            Self::L1ReadHits => ("L1 read hits", Percent, 1000.0),
            Self::L2HitRate => ("L2 hit rate", Points, 0.0),
            Self::DramBytes => ("DRAM bytes", Percent, traffic),
            Self::DramReadBytes => ("DRAM read bytes", Percent, traffic),
            Self::DramWriteBytes => ("DRAM write bytes", Percent, traffic),
            Self::ThreadInstructions => ("thread instructions", Percent, 0.0),
            Self::IssuedSlots => ("slots issued", Points, 0.0),
            Self::PipeSlots => ("slots waiting for a pipe", Points, 0.0),
            Self::IdleSlots => ("slots without instruction", Points, 0.0),
            Self::ScoreboardSlots => ("slots waiting for operands", Points, 0.0),
            Self::Duration => ("time", Percent, 0.0),
            Self::WarpInstructions => ("warp instructions", Percent, 0.0),
            Self::L1Sectors => ("L1 sectors", Percent, 1000.0),
            Self::L2Sectors => ("L2 sectors", Percent, 1000.0),
            Self::TheoreticalOccupancy => ("theoretical occupancy", Points, 0.0),
            Self::AchievedOccupancy => ("achieved occupancy", Points, 0.0),
            Self::Registers => ("registers per thread", Percent, 0.0),
            Self::LongMemoryStalls => ("stalls: long memory latency", Points, 0.0),
            Self::ShortRawStalls => ("stalls: short raw", Points, 0.0),
            Self::ExecutionResourceStalls => ("stalls: execution resource", Points, 0.0),
            Self::InstructionBufferStalls => ("stalls: instruction buffer", Points, 0.0),
            Self::BarrierStalls => ("stalls: barrier", Points, 0.0),
        }
    }

    /// A short name for tables and captions.
    #[must_use]
    pub fn label(self) -> &'static str {
        self.row().0
    }

    /// How its error is measured.
    #[must_use]
    pub fn unit(self) -> ErrorUnit {
        self.row().1
    }

    /// The smallest reference value that counts in the means.
    pub(crate) fn least_reference(self) -> f64 {
        self.row().2
    }

    /// The reference's value; `launch_cycles` is the latency in `row.cycles`.
    pub(super) fn of_reference(self, row: &ReferenceRow, launch_cycles: f64) -> Option<f64> {
        let bytes = |sectors: Option<f64>| sectors.map(|sectors| sectors * SECTOR);
        let dram = row.dram_read_sectors.zip(row.dram_write_sectors);
        if let Some(value) = row.measured.get(&self) {
            return Some(*value);
        }
        match self {
            Self::CyclesBeyondLaunch => row.cycles.map(|cycles| cycles - launch_cycles),
            Self::L1HitRate => row.l1_hit_rate,
            Self::L1ReadHits => row.l1_read_hits,
            Self::L2HitRate => row.l2_hit_rate,
            Self::DramBytes => bytes(dram.map(|(reads, writes)| reads + writes)),
            Self::DramReadBytes => bytes(row.dram_read_sectors),
            Self::DramWriteBytes => bytes(row.dram_write_sectors),
            Self::ThreadInstructions => row.thread_instructions,
            Self::IssuedSlots => row.slots.map(|slots| slots.issued),
            Self::PipeSlots => row.slots.map(|slots| slots.pipe),
            Self::IdleSlots => row.slots.map(|slots| slots.idle),
            Self::ScoreboardSlots => row.slots.map(|slots| slots.scoreboard),
            Self::Duration
            | Self::WarpInstructions
            | Self::L1Sectors
            | Self::L2Sectors
            | Self::TheoreticalOccupancy
            | Self::AchievedOccupancy
            | Self::Registers
            | Self::LongMemoryStalls
            | Self::ShortRawStalls
            | Self::ExecutionResourceStalls
            | Self::InstructionBufferStalls
            | Self::BarrierStalls => None,
        }
    }

    /// True where the value of several launches is the sum of theirs.
    pub(super) fn adds_up(self) -> bool {
        self.unit() == ErrorUnit::Percent && self != Self::Registers
    }

    /// The model's value from sums over launches; of accesses alone only what caches
    /// and DRAM did.
    pub(super) fn of_model(self, sums: &KernelRecord, core_mhz: f64) -> Option<f64> {
        let whole = Some(sums).filter(|sums| !sums.memory_only);
        let slots = || SlotShares::of_record(whole?);
        match self {
            Self::CyclesBeyondLaunch => whole.map(|sums| float(sums.busy_cycles())),
            Self::L1HitRate => sums.l1.hit_rate(),
            Self::L1ReadHits => Some(float(sums.l1.read_hits)),
            Self::L2HitRate => sums.l2.hit_rate(),
            Self::DramBytes => Some(float(sums.dram.bytes())),
            Self::DramReadBytes => Some(float(sums.dram.read_sectors) * SECTOR),
            Self::DramWriteBytes => Some(float(sums.dram.write_sectors) * SECTOR),
            Self::ThreadInstructions => whole.map(|sums| float(sums.thread_instructions)),
            Self::IssuedSlots => slots().map(|slots| slots.issued),
            Self::PipeSlots => slots().map(|slots| slots.pipe),
            Self::IdleSlots => slots().map(|slots| slots.idle),
            Self::ScoreboardSlots => slots().map(|slots| slots.scoreboard),
            Self::Duration => {
                let cycles = whole.filter(|_| core_mhz > 0.0)?.busy_cycles();
                Some(float(cycles) * 1000.0 / core_mhz)
            }
            Self::WarpInstructions => whole.map(|sums| float(sums.warp_instructions)),
            Self::L1Sectors => Some(float(sums.l1.accesses)),
            Self::L2Sectors => Some(float(sums.l2.accesses)),
            Self::TheoreticalOccupancy => Some(sums.occupancy).filter(|share| *share > 0.0),
            // Known to the timeline of the application alone.
            Self::AchievedOccupancy => None,
            Self::Registers => (sums.registers > 0).then(|| f64::from(sums.registers)),
            Self::LongMemoryStalls => stall(whole?, "long_memory_latency"),
            Self::ShortRawStalls => stall(whole?, "short_raw"),
            Self::ExecutionResourceStalls => stall(whole?, "execution_resource"),
            Self::InstructionBufferStalls => stall(whole?, "instruction_buffer_empty"),
            Self::BarrierStalls => stall(whole?, "barrier"),
        }
    }
}

/// The share of `cause` in the slot-cycles that a warp was there for and lost.
fn stall(sums: &KernelRecord, cause: &str) -> Option<f64> {
    let lost =
        sums.stall_fractions.iter().filter(|(name, _)| !matches!(name.as_str(), "issued" | "idle"));
    let lost: f64 = lost.map(|(_, share)| share).sum();
    let share = sums.stall_fractions.get(cause).copied().unwrap_or(0.0);
    (lost > 0.0).then(|| share / lost)
}

#[allow(clippy::cast_precision_loss)] // 32 is exact
const SECTOR: f64 = SECTOR_BYTES as f64;

/// Shares of the slot-cycles of SMs that have work; they sum to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotShares {
    /// An instruction issued.
    pub issued: f64,
    /// A ready instruction found its pipe full.
    pub pipe: f64,
    /// No warp had an instruction.
    pub idle: f64,
    /// Operands were not ready.
    pub scoreboard: f64,
}

impl SlotShares {
    /// From slot-cycles in the order of the fields; `None` when there are none.
    pub(super) fn of_counts([issued, pipe, idle, scoreboard]: [f64; 4]) -> Option<Self> {
        let whole = issued + pipe + idle + scoreboard;
        (whole > 0.0).then(|| Self {
            issued: issued / whole,
            pipe: pipe / whole,
            idle: idle / whole,
            scoreboard: scoreboard / whole,
        })
    }

    /// From a launch, or what [`mean_slots`] made of several; `None` where the record
    /// does not say which slot-cycles had work.
    fn of_record(kernel: &KernelRecord) -> Option<Self> {
        let held = kernel.held_slot_fraction?;
        let share = |cause: &str| kernel.stall_fractions.get(cause).copied().unwrap_or(0.0);
        let idle = (share("idle") - (1.0 - held)).max(0.0);
        Self::of_counts([
            share("issued"),
            share("execution_resource"),
            idle + share("instruction_buffer_empty") + share("barrier"),
            share("long_memory_latency") + share("short_raw"),
        ])
    }
}

/// Shares by cause over several launches, and how much of it had work: the means
/// weighted by cycles beyond launch.
pub(super) fn mean_slots(kernels: &[&KernelRecord]) -> (BTreeMap<String, f64>, Option<f64>) {
    let weight = |kernel: &KernelRecord| float(kernel.busy_cycles());
    let whole: f64 = kernels.iter().map(|kernel| weight(kernel)).sum();
    let mut shares = BTreeMap::new();
    let mut held = Some(0.0);
    if whole <= 0.0 {
        return (shares, None);
    }
    for kernel in kernels {
        let part = weight(kernel) / whole;
        for (cause, share) in &kernel.stall_fractions {
            *shares.entry(cause.clone()).or_default() += part * share;
        }
        held = held.zip(kernel.held_slot_fraction).map(|(sum, one)| sum + part * one);
    }
    (shares, held)
}

/// Errors of one quantity over the rows that count; percent or percentage
/// points, as the quantity says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The quantity.
    pub quantity: Quantity,
    /// Pairs whose error counts.
    pub counted: usize,
    /// Pairs in all: the others have a reference too small for a relative error.
    pub pairs: usize,
    /// Mean of the absolute errors.
    pub mean_absolute: f64,
    /// Median of the absolute errors.
    pub median_absolute: f64,
    /// Mean of the signed errors: the bias.
    pub mean_signed: f64,
    /// The error that is largest in size, with its sign.
    pub worst: f64,
    /// Its application, with the launches where not all.
    pub worst_trace: String,
    /// Pearson correlation of the logarithms of both sides (of the values
    /// themselves for rates); absent below 3 pairs or without spread.
    pub correlation: Option<f64>,
}

impl Summary {
    /// The summary of `quantity` over `rows`; `None` when no error counts.
    #[must_use]
    pub fn of(quantity: Quantity, rows: &[ComparedRow]) -> Option<Self> {
        let pairs: Vec<_> =
            rows.iter().filter_map(|row| row.pairs.get(&quantity).map(|p| (row, p))).collect();
        let errors: Vec<(&ComparedRow, f64)> = pairs
            .iter()
            .filter(|(_, pair)| pair.counted)
            .filter_map(|(row, pair)| pair.error.map(|error| (*row, error)))
            .collect();
        let &(mut worst_row, mut worst) = errors.first()?;
        for &(row, error) in &errors {
            if error.abs() > worst.abs() {
                (worst_row, worst) = (row, error);
            }
        }
        let sizes: Vec<f64> = errors.iter().map(|(_, error)| error.abs()).collect();
        let counted = pairs.iter().filter(|(_, pair)| pair.counted);
        let sides: Vec<(f64, f64)> = counted.map(|(_, p)| (p.model, p.reference)).collect();
        Some(Self {
            quantity,
            counted: errors.len(),
            pairs: pairs.len(),
            mean_absolute: sizes.iter().mean(),
            median_absolute: Data::new(sizes.clone()).median(),
            mean_signed: errors.iter().map(|&(_, error)| error).mean(),
            worst,
            worst_trace: worst_row.label(),
            correlation: correlation(quantity, &sides),
        })
    }
}

impl ComparedRow {
    /// `trace`, with the launches where the row is not about all.
    #[must_use]
    pub fn label(&self) -> String {
        if self.launches == "all" {
            self.trace.clone()
        } else {
            format!("{} #{}", self.trace, self.launches)
        }
    }
}

/// Pearson's r of both sides; see [`Summary::correlation`].
fn correlation(quantity: Quantity, sides: &[(f64, f64)]) -> Option<f64> {
    let logarithms = quantity.unit() == ErrorUnit::Percent;
    let usable: Vec<(f64, f64)> = sides
        .iter()
        .filter(|(model, reference)| !logarithms || (*model > 0.0 && *reference > 0.0))
        .map(|&(m, r)| if logarithms { (m.ln(), r.ln()) } else { (m, r) })
        .collect();
    if usable.len() < 3 {
        return None;
    }
    let (model, reference): (Vec<f64>, Vec<f64>) = usable.into_iter().unzip();
    let spread = model.iter().population_std_dev() * reference.iter().population_std_dev();
    let r = model.iter().population_covariance(reference.iter()) / spread;
    (spread > 0.0 && r.is_finite()).then_some(r)
}
