//! The quantities that a comparison is about: one row each.

use serde::{Deserialize, Serialize};

use super::{KernelRecord, ReferenceRow, SlotShares};
use gpumodel_core::units::SECTOR_BYTES;

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
    pub const ALL: [Self; 12] = [
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
    ];

    /// A short name for tables and captions.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::CyclesBeyondLaunch => "cycles beyond launch",
            Self::L1HitRate => "L1 hit rate",
            Self::L1ReadHits => "L1 read hits",
            Self::L2HitRate => "L2 hit rate",
            Self::DramBytes => "DRAM bytes",
            Self::DramReadBytes => "DRAM read bytes",
            Self::DramWriteBytes => "DRAM write bytes",
            Self::ThreadInstructions => "thread instructions",
            Self::IssuedSlots => "slots issued",
            Self::PipeSlots => "slots waiting for a pipe",
            Self::IdleSlots => "slots without instruction",
            Self::ScoreboardSlots => "slots waiting for operands",
        }
    }

    /// How its error is measured.
    #[must_use]
    pub fn unit(self) -> ErrorUnit {
        match self {
            Self::CyclesBeyondLaunch
            | Self::L1ReadHits
            | Self::DramBytes
            | Self::DramReadBytes
            | Self::DramWriteBytes
            | Self::ThreadInstructions => ErrorUnit::Percent,
            _ => ErrorUnit::Points,
        }
    }

    /// The smallest reference value that counts in the means: below it a
    /// relative error says nothing. 1000 sectors for L1 and DRAM traffic.
    #[must_use]
    pub fn least_reference(self) -> f64 {
        match self {
            Self::DramBytes | Self::DramReadBytes | Self::DramWriteBytes => 1000.0 * SECTOR,
            Self::L1ReadHits => 1000.0,
            _ => 0.0,
        }
    }

    /// The reference's value; `launch_cycles` is the latency in `row.cycles`.
    pub(super) fn of_reference(self, row: &ReferenceRow, launch_cycles: f64) -> Option<f64> {
        let dram = row.dram_read_sectors.zip(row.dram_write_sectors);
        match self {
            Self::CyclesBeyondLaunch => Some(row.cycles - launch_cycles),
            Self::L1HitRate => row.l1_hit_rate,
            Self::L1ReadHits => row.l1_read_hits,
            Self::L2HitRate => row.l2_hit_rate,
            Self::DramBytes => dram.map(|(reads, writes)| (reads + writes) * SECTOR),
            Self::DramReadBytes => row.dram_read_sectors.map(|sectors| sectors * SECTOR),
            Self::DramWriteBytes => row.dram_write_sectors.map(|sectors| sectors * SECTOR),
            Self::ThreadInstructions => row.thread_instructions,
            _ => self.of_slots(&row.slots?),
        }
    }

    /// The model's value from sums over launches; of accesses alone only what caches
    /// and DRAM did.
    pub(super) fn of_model(self, sums: &KernelRecord) -> Option<f64> {
        if sums.memory_only && !self.is_of_memory() {
            return None;
        }
        match self {
            Self::CyclesBeyondLaunch => Some(float(sums.cycles.saturating_sub(sums.launch_cycles))),
            Self::L1HitRate => sums.l1.hit_rate(),
            Self::L1ReadHits => Some(float(sums.l1.read_hits)),
            Self::L2HitRate => sums.l2.hit_rate(),
            Self::DramBytes => Some(float(sums.dram.bytes())),
            Self::DramReadBytes => Some(float(sums.dram.read_sectors) * SECTOR),
            Self::DramWriteBytes => Some(float(sums.dram.write_sectors) * SECTOR),
            Self::ThreadInstructions => Some(float(sums.thread_instructions)),
            _ => self.of_slots(&SlotShares::of_record(sums)?),
        }
    }

    fn is_of_memory(self) -> bool {
        matches!(
            self,
            Self::L1HitRate
                | Self::L1ReadHits
                | Self::L2HitRate
                | Self::DramBytes
                | Self::DramReadBytes
                | Self::DramWriteBytes
        )
    }

    fn of_slots(self, shares: &SlotShares) -> Option<f64> {
        match self {
            Self::IssuedSlots => Some(shares.issued),
            Self::PipeSlots => Some(shares.pipe),
            Self::IdleSlots => Some(shares.idle),
            Self::ScoreboardSlots => Some(shares.scoreboard),
            _ => None,
        }
    }
}

#[allow(clippy::cast_precision_loss)] // 32 is exact
const SECTOR: f64 = SECTOR_BYTES as f64;

/// A counter as a float: exact up to 2^53, far beyond a run's counts.
#[allow(clippy::cast_precision_loss)]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}
