//! Hot spots: what the machine counted by instruction, as records list it.

use std::collections::BTreeMap;

use gpumodel_core::isa::Code;
use gpumodel_core::units::to_usize;
use gpumodel_report::results::{HotInstruction, HotRecord};
use gpumodel_sim::{Cause, InstructionCounts, Outcome, Program, StallStack};

use super::without_debt;

/// The `most` instructions of each launch by each measure; nothing where they were not counted.
pub(crate) fn records<'a>(
    most: usize,
    programs: &'a [Program],
    outcome: &'a Outcome,
) -> impl Iterator<Item = HotRecord> {
    let launches = programs.iter().zip(&outcome.hot).zip(&outcome.kernels);
    launches.map(move |((program, rows), counts)| {
        let rows = rows.iter().enumerate();
        let counted = rows.filter(|(_, row)| **row != InstructionCounts::default());
        let rows = counted.map(|(place, row)| instruction(&program.code, place, row));
        HotRecord::of(rows.collect(), most, stalled(&without_debt(counts.stalls)))
    })
}

/// Slot-cycles of a stack that are stalls.
fn stalled(stack: &StallStack) -> f64 {
    causes().map(|cause| stack[cause as usize]).sum()
}

/// The causes of stalls.
fn causes() -> impl Iterator<Item = Cause> {
    Cause::ALL.into_iter().filter(|cause| !matches!(cause, Cause::Issued | Cause::Idle))
}

fn instruction(code: &Code, place: usize, counts: &InstructionCounts) -> HotInstruction {
    let instruction = &code.instructions[place];
    let stack = without_debt(counts.stalls);
    let stalls: BTreeMap<String, f64> = causes()
        .map(|cause| (cause.name().to_owned(), stack[cause as usize]))
        .filter(|&(_, slots)| slots > 0.0)
        .collect();
    HotInstruction {
        pc: instruction.pc,
        opcode: code.opcodes[to_usize(instruction.opcode)].clone(),
        line: instruction.line,
        stall_slot_cycles: stalls.values().sum(),
        stalls,
        requests: counts.requests,
        sectors: counts.sectors,
        l1_accesses: counts.l1.accesses(),
        l1_misses: counts.l1.misses(),
        bank_conflict_cycles: counts.bank_conflict_cycles,
    }
}
