//! Static instructions with all that the walk and the memory path ask of them.

use crate::config::Machine;
use gpumodel_core::isa::{Effect, Instruction, Opcode, Register, RegisterFile, Space, Unit};
use gpumodel_core::units::to_usize;

use super::barrier_operands::BarrierOperands;
use crate::gpu::feed::Program;
use crate::gpu::workers::TASK_BARRIER;

/// Stands for all predicates that a trace does not list: the last comparison
/// writes it, branches wait for it. No predicate has this number.
const UNLISTED: Register = Register::from_bits(((RegisterFile::Predicate as u16) << 14) | 0x3fff);

/// One static instruction, decoded for one machine.
#[derive(Clone, Debug)]
pub(crate) struct Decoded {
    /// Registers read, each once, without constants; wide operands as far as listed.
    pub(super) sources: Box<[Register]>,
    /// Registers written, wide results spread out.
    pub(super) destinations: Box<[Register]>,
    /// The unit.
    pub(crate) unit: Unit,
    /// Cycles until a dependent instruction may issue.
    pub(super) latency: u32,
    /// Cycles of the unit's issue port.
    pub(super) initiation: u32,
    /// Cycles from its issue before the warp may issue again.
    pub(super) hold: u32,
    /// What it does.
    pub(crate) effect: Effect,
    /// Carries addresses that go to the memory path.
    pub(crate) has_addresses: bool,
    /// Bytes per lane.
    pub(crate) width: u32,
    /// Each address names a 16-byte row of a matrix (`LDSM`), whatever the width says.
    pub(crate) is_matrix_load: bool,
    /// Goes past the L1.
    pub(crate) bypasses_l1: bool,
    /// The opcode is in the table; false: it was classed by prefix.
    pub(crate) known: bool,
    /// Loads a constant whose address the trace does not give.
    pub(super) unplaced_constant: bool,
    /// The first immediate, for waits on asynchronous groups.
    pub(super) immediate: Option<i64>,
    /// The barrier that it meets.
    pub(super) operands: Option<BarrierOperands>,
}

/// Decodes every instruction of `program`.
pub(super) fn decode(machine: &Machine, program: &Program) -> Vec<Decoded> {
    let one = |instruction: &Instruction| {
        let number = to_usize(instruction.opcode);
        let is_matrix_load = program.code.opcodes[number].starts_with("LDSM");
        let decoded = decode_one(machine, instruction, &program.opcodes[number]);
        Decoded { is_matrix_load, ..decoded }
    };
    program.code.instructions.iter().map(one).collect()
}

fn decode_one(machine: &Machine, instruction: &Instruction, opcode: &Opcode) -> Decoded {
    let ignores_predicates = machine.quirks.ignores_predicates;
    let carries = |r: &Register| !r.is_constant() && (!ignores_predicates || !is_predicate(*r));
    let live = |list: &[Register]| list.iter().copied().filter(carries).collect::<Vec<_>>();
    let texture =
        opcode.effect == Effect::Load(Space::Texture) && machine.quirks.textures_are_latency;
    let has_addresses = instruction.width > 0 && opcode.effect.space().is_some() && !texture;
    let spread =
        if machine.quirks.listed_registers_only { 1 } else { opcode.registers_per_destination };
    let overhead = if has_addresses { 0 } else { machine.sm.dependent_issue_cycles };
    Decoded {
        sources: with_unlisted(
            opcode.reads_predicate && !ignores_predicates,
            distinct(live(&instruction.sources)),
        ),
        destinations: with_unlisted(
            opcode.writes_predicate && !ignores_predicates,
            spread_out(&live(&instruction.destinations), spread),
        ),
        unit: opcode.unit,
        latency: opcode.latency_cycles + overhead,
        initiation: opcode.initiation_cycles,
        hold: opcode.hold_cycles,
        effect: if has_addresses || opcode.effect.space().is_none() {
            opcode.effect
        } else {
            Effect::Compute
        },
        has_addresses,
        width: u32::from(instruction.width),
        is_matrix_load: false,
        bypasses_l1: opcode.bypasses_l1,
        known: opcode.known,
        unplaced_constant: !has_addresses && opcode.effect == Effect::Load(Space::Constant),
        immediate: instruction.immediates.first().copied(),
        operands: operands(machine, instruction, opcode.effect),
    }
}

/// The same without repetitions: a register is read once for all its operands.
fn distinct(mut registers: Vec<Register>) -> Vec<Register> {
    let mut place = 0;
    while place < registers.len() {
        let seen = registers[..place].contains(&registers[place]);
        if seen {
            registers.remove(place);
        } else {
            place += 1;
        }
    }
    registers
}

fn operands(
    machine: &Machine,
    instruction: &Instruction,
    effect: Effect,
) -> Option<BarrierOperands> {
    let waits = match effect {
        Effect::Barrier => true,
        Effect::Arrive => false,
        _ => return None,
    };
    if instruction.immediates.first() == Some(&TASK_BARRIER) {
        return Some(BarrierOperands::for_task());
    }
    let whole = machine.quirks.whole_cta_barriers;
    Some(if whole { BarrierOperands::whole(true) } else { BarrierOperands::of(instruction, waits) })
}

fn is_predicate(register: Register) -> bool {
    matches!(register.file(), RegisterFile::Predicate | RegisterFile::UniformPredicate)
}

/// The same and, where asked for, the stand-in for predicates that are not listed.
fn with_unlisted(asked: bool, mut listed: Vec<Register>) -> Box<[Register]> {
    listed.extend(asked.then_some(UNLISTED));
    listed.into()
}

/// The registers that wide results stand for: `count` in a row from the listed
/// one. A line that lists several registers of a file lists all of them, and a
/// predicate is one bit.
fn spread_out(listed: &[Register], count: u8) -> Vec<Register> {
    let row = |first: &Register| {
        let (file, number) = (first.file(), first.number());
        let of_file = listed.iter().filter(|other| other.file() == file).count();
        let wide = of_file == 1 && !is_predicate(*first);
        let count = if wide { u16::from(count.max(1)) } else { 1 };
        (0..count).filter_map(move |k| Register::new(file, number + k))
    };
    listed.iter().flat_map(row).filter(|r| !r.is_constant()).collect()
}

#[cfg(test)]
mod tests {
    use super::spread_out;
    use gpumodel_core::isa::{Register, RegisterFile};

    fn spread(listed: &[(RegisterFile, u16)], count: u8) -> String {
        let register = |&(file, number)| Register::new(file, number).unwrap();
        let listed: Vec<Register> = listed.iter().map(register).collect();
        format!("{:?}", spread_out(&listed, count))
    }

    #[test]
    fn a_wide_result_is_a_row_of_registers_unless_all_are_listed() {
        use RegisterFile::{General, Predicate, Uniform};
        assert_eq!(spread(&[(General, 4)], 4), "[R4, R5, R6, R7]");
        assert_eq!(spread(&[(Uniform, 4)], 2), "[UR4, UR5]");
        assert_eq!(spread(&[(Uniform, 62)], 2), "[UR62]", "UR63 holds a constant");
        assert_eq!(spread(&[(General, 4), (General, 8)], 4), "[R4, R8]");
        assert_eq!(spread(&[(General, 2), (Predicate, 0)], 2), "[R2, R3, P0]");
    }
}
