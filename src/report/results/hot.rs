//! Hot spots: where in its code a launch loses time, misses and conflicts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The instructions of a launch that lose most. A stall is charged to the load whose result the
/// warp waits for, else to the instruction at which the warp stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HotRecord {
    /// How many instructions were asked for of each [`HotMeasure`].
    pub most: u64,
    /// Slot-cycles that all schedulers lost while they held warps of the launch: those of
    /// its `stall_fractions`, without `issued` and `idle`.
    pub stall_slot_cycles: f64,
    /// Instructions of the launch that lost or counted something.
    pub instructions: u64,
    /// What the instructions that are not in `rows` lost together.
    pub other_stall_slot_cycles: f64,
    /// The rest of `stall_slot_cycles`, which no instruction is charged with: rounding.
    pub unattributed_slot_cycles: f64,
    /// The instructions that are among the `most` of a measure, most stalls first.
    pub rows: Vec<HotInstruction>,
}

/// One static instruction of a launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HotInstruction {
    /// Byte offset in the function, as traced.
    pub pc: u64,
    /// Dotted SASS name.
    pub opcode: String,
    /// Source line; absent where the trace has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Slot-cycles that were lost at it.
    pub stall_slot_cycles: f64,
    /// The same by cause, those that it has.
    pub stalls: BTreeMap<String, f64>,
    /// Times that a warp issued it with addresses and active lanes.
    pub requests: u64,
    /// Sectors of 32 bytes that these asked for; of shared memory none.
    pub sectors: u64,
    /// Its look-ups in the L1, in sectors.
    pub l1_accesses: u64,
    /// Those among them that missed.
    pub l1_misses: u64,
    /// Passes over the banks of shared memory beyond those that its distinct words need.
    pub bank_conflict_cycles: u64,
}

/// What makes an instruction hot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HotMeasure {
    /// Most stalls.
    Stalls,
    /// Most L1 misses.
    L1Misses,
    /// Most sectors per request.
    SectorsPerRequest,
    /// Most cycles of bank conflicts.
    BankConflicts,
}

impl HotMeasure {
    /// Every measure.
    pub const ALL: [Self; 4] =
        [Self::Stalls, Self::L1Misses, Self::SectorsPerRequest, Self::BankConflicts];

    /// The measure of an instruction.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
    pub fn of(self, row: &HotInstruction) -> f64 {
        match self {
            Self::Stalls => row.stall_slot_cycles,
            Self::L1Misses => row.l1_misses as f64,
            Self::SectorsPerRequest => row.sectors as f64 / row.requests.max(1) as f64,
            Self::BankConflicts => row.bank_conflict_cycles as f64,
        }
    }

    /// The places in `rows` of the `most` instructions with most of it, largest first; those
    /// with none of it are left out.
    #[must_use]
    pub fn first(self, rows: &[HotInstruction], most: usize) -> Vec<usize> {
        let mut places: Vec<usize> =
            (0..rows.len()).filter(|&place| self.of(&rows[place]) > 0.0).collect();
        places.sort_by(|&a, &b| self.of(&rows[b]).total_cmp(&self.of(&rows[a])));
        places.truncate(most);
        places
    }
}

impl HotRecord {
    /// The `most` of each measure among `all` instructions that counted something, of a launch
    /// that lost `stall_slot_cycles`.
    #[must_use]
    pub fn of(all: Vec<HotInstruction>, most: usize, stall_slot_cycles: f64) -> Self {
        let instructions = gpumodel_core::units::to_u64(all.len());
        let mut chosen = vec![false; all.len()];
        for measure in HotMeasure::ALL {
            measure.first(&all, most).into_iter().for_each(|place| chosen[place] = true);
        }
        let (rows, others): (Vec<_>, Vec<_>) =
            all.into_iter().zip(chosen).partition(|(_, chosen)| *chosen);
        let mut rows: Vec<HotInstruction> = rows.into_iter().map(|(row, _)| row).collect();
        rows.sort_by(|a, b| b.stall_slot_cycles.total_cmp(&a.stall_slot_cycles));
        let other: f64 = others.iter().map(|(row, _)| row.stall_slot_cycles).sum();
        let listed: f64 = rows.iter().map(|row| row.stall_slot_cycles).sum();
        Self {
            most: gpumodel_core::units::to_u64(most),
            stall_slot_cycles,
            instructions,
            other_stall_slot_cycles: other,
            unattributed_slot_cycles: stall_slot_cycles - listed - other,
            rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HotInstruction, HotRecord};

    #[test]
    fn each_measure_has_its_instructions_and_the_rest_is_shown() {
        let row = |pc, stall_slot_cycles, sectors, bank_conflict_cycles| HotInstruction {
            pc,
            stall_slot_cycles,
            requests: 2,
            sectors,
            bank_conflict_cycles,
            ..HotInstruction::default()
        };
        let all =
            vec![row(0, 1.0, 0, 0), row(16, 5.0, 8, 0), row(32, 3.0, 64, 0), row(48, 2.0, 0, 7)];
        let hot = HotRecord::of(all, 1, 11.5);
        assert_eq!(hot.rows.iter().map(|row| row.pc).collect::<Vec<_>>(), [16, 32, 48]);
        assert_eq!((hot.instructions, hot.most), (4, 1));
        assert_eq!((hot.other_stall_slot_cycles, hot.unattributed_slot_cycles), (1.0, 0.5));
    }
}
