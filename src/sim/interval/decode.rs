//! Static instructions decoded for one machine: what the walk and the memory path need of
//! them, the operands of barriers, and the cache lines of the code.

use crate::config::{ControlBitsUse, Fetch, Machine, OperandReads};
use gpumodel_core::isa::{Effect, Instruction, Opcode, Register, RegisterFile, Space, Unit};
use gpumodel_core::units::{WARP_LANES, to_u64, to_usize};

use crate::gpu::feed::Program;
use crate::gpu::workers::TASK_BARRIER;

/// Represents all predicates that a trace does not list: the last comparison writes it,
/// branches wait for it. No predicate has this number.
pub(super) const UNLISTED: Register = pseudo(0);

/// Groups of matrix multiplies under way that are distinguished; older ones count as the oldest.
const MATRIX_GROUPS: u16 = 9;

/// Represents the accumulators of a group of matrix multiplies: 0 the open one, 1 the last that
/// has ended, and so on.
pub(super) const fn accumulators(age: u16) -> Register {
    pseudo(1 + if age < MATRIX_GROUPS { age } else { MATRIX_GROUPS - 1 })
}

/// Represents the end of the last instruction's stall count, for which the next one waits.
pub(super) const STALL: Register = pseudo(1 + MATRIX_GROUPS);

/// The age of the group whose accumulators `register` represents.
pub(super) fn age_of(register: Register) -> Option<u16> {
    (0..MATRIX_GROUPS).find(|&age| accumulators(age) == register)
}

/// A register that no trace has.
const fn pseudo(number: u16) -> Register {
    Register::from_bits(((RegisterFile::Predicate as u16) << 14) | (0x3fff - number))
}

/// One static instruction, decoded for one machine.
#[derive(Clone, Debug)]
pub(crate) struct Decoded {
    /// Registers read, each once, without constants; wide operands as far as listed.
    pub(super) sources: Box<[Register]>,
    /// General registers read, in the order of the operands.
    pub(super) read_operands: Box<[Register]>,
    /// Registers written, with all registers of wide results.
    pub(super) destinations: Box<[Register]>,
    /// The general ones among them.
    pub(super) written: Box<[Register]>,
    /// The unit.
    pub(crate) unit: Unit,
    /// Cycles until a dependent instruction may issue.
    pub(super) latency: u32,
    /// Cycles of the unit's issue port.
    pub(super) initiation: u32,
    /// Cycles after its issue before the warp may issue again.
    pub(super) hold: u32,
    /// What it does.
    pub(crate) effect: Effect,
    /// Carries addresses that go to the memory path.
    pub(crate) has_addresses: bool,
    /// Bytes per lane.
    pub(crate) width: u32,
    /// Each address names a 16-byte row of a matrix (`LDSM`), whatever the width says.
    pub(crate) is_matrix_load: bool,
    /// Bypasses the L1.
    pub(crate) bypasses_l1: bool,
    /// The opcode is in the table; false: it was classified by prefix.
    pub(crate) known: bool,
    /// Loads a constant whose address the trace does not have.
    pub(super) unplaced_constant: bool,
    /// The first immediate, for waits on asynchronous groups.
    pub(super) immediate: Option<i64>,
    /// The operands of a barrier instruction.
    pub(super) operands: Option<BarrierOperands>,
    /// A multiply of a warp group that ends a group of them.
    pub(super) ends_group: bool,
    /// General registers read that the compiler marked `.reuse`; none where its marks are not
    /// known or not used.
    pub(super) marked: Option<Box<[Register]>>,
    /// The compiler's stall count, where it is known and used.
    pub(super) stall: Option<u32>,
    /// The stall count covers the latency of its results: it sets no write barrier.
    pub(super) covered: bool,
}

/// Decodes every instruction of `program`.
pub(super) fn decode(machine: &Machine, program: &Program) -> Vec<Decoded> {
    let one = |instruction: &Instruction| {
        let number = to_usize(instruction.opcode);
        let is_matrix_load = program.code.opcodes[number].starts_with("LDSM");
        let decoded = decode_one(machine, instruction, &program.opcodes[number]);
        controlled(machine, instruction, Decoded { is_matrix_load, ..decoded })
    };
    program.code.instructions.iter().map(one).collect()
}

/// The instruction with what the machine uses of its control bits.
fn controlled(machine: &Machine, instruction: &Instruction, mut decoded: Decoded) -> Decoded {
    let sm = &machine.sm;
    let Some(control) = instruction.control.filter(|_| sm.control_bits != ControlBitsUse::Ignored)
    else {
        return decoded;
    };
    if sm.operand_reads != OperandReads::All {
        let sources = instruction.sources.iter().enumerate();
        let marked = sources.filter(|(index, _)| control.marks(*index)).map(|(_, r)| *r);
        decoded.marked = Some(marked.collect());
    }
    if sm.control_bits == ControlBitsUse::All {
        // One that yields leaves the next cycle to other warps.
        decoded.stall = Some(control.stall().max(2 * u32::from(control.yields())));
        decoded.covered = control.write_barrier().is_none();
        decoded.sources = decoded.sources.iter().copied().chain([STALL]).collect();
    }
    decoded
}

fn decode_one(machine: &Machine, instruction: &Instruction, opcode: &Opcode) -> Decoded {
    let decoded = listed(machine, instruction, opcode);
    match opcode.effect {
        Effect::MatrixGroup => of_group(decoded, opcode),
        Effect::MatrixWait => {
            let allowed = decoded.immediate.and_then(|groups| u16::try_from(groups).ok());
            let first = allowed.filter(|&groups| groups > 0).map_or(0, |groups| groups + 1);
            let groups = first..MATRIX_GROUPS;
            Decoded { sources: groups.map(accumulators).collect(), ..decoded }
        }
        _ => decoded,
    }
}

/// The registers of an instruction that can carry dependencies.
struct Live {
    sources: Vec<Register>,
    destinations: Vec<Register>,
}

impl Live {
    fn of(machine: &Machine, instruction: &Instruction) -> Self {
        let ignores_predicates = machine.quirks.ignores_predicates;
        let carries = |r: &Register| !r.is_constant() && (!ignores_predicates || !is_predicate(*r));
        let live = |list: &[Register]| list.iter().copied().filter(carries).collect();
        Self { sources: live(&instruction.sources), destinations: live(&instruction.destinations) }
    }
}

/// An instruction as its line and its opcode have it.
fn listed(machine: &Machine, instruction: &Instruction, opcode: &Opcode) -> Decoded {
    let quirks = &machine.quirks;
    let live = Live::of(machine, instruction);
    let texture = opcode.effect == Effect::Load(Space::Texture) && quirks.textures_are_latency;
    let has_addresses = instruction.width > 0 && opcode.effect.space().is_some() && !texture;
    let spread = if quirks.listed_registers_only { 1 } else { opcode.registers_per_destination };
    let overhead = if has_addresses { 0 } else { machine.sm.dependent_issue_cycles };
    let computes = !has_addresses && opcode.effect.space().is_some();
    let general = |r: &&Register| r.file() == RegisterFile::General;
    let results = spread_out(&live.destinations, spread);
    Decoded {
        read_operands: live.sources.iter().filter(general).copied().collect(),
        written: results.iter().filter(general).copied().collect(),
        sources: with_unlisted(
            opcode.reads_predicate && !quirks.ignores_predicates,
            distinct(live.sources),
        ),
        destinations: with_unlisted(opcode.writes_predicate && !quirks.ignores_predicates, results),
        unit: opcode.unit,
        latency: opcode.latency_cycles + overhead,
        initiation: opcode.initiation_cycles,
        hold: opcode.hold_cycles,
        effect: if computes { Effect::Compute } else { opcode.effect },
        has_addresses,
        width: u32::from(instruction.width),
        is_matrix_load: false,
        bypasses_l1: opcode.bypasses_l1,
        known: opcode.known(),
        unplaced_constant: !has_addresses && opcode.effect == Effect::Load(Space::Constant),
        immediate: instruction.immediates.first().copied(),
        operands: barrier_operands(machine, instruction, opcode.effect),
        ends_group: !instruction.is_open() || instruction.immediates[0] != 0,
        marked: None,
        stall: None,
        covered: false,
    }
}

/// A matrix multiply of a warp group. Its accumulators are ready for the next one of the group
/// in any case, and for others at a [`Effect::MatrixWait`]; without other general
/// registers both operands come from shared memory.
fn of_group(decoded: Decoded, opcode: &Opcode) -> Decoded {
    let others = |list: &[Register]| -> Box<[Register]> {
        list.iter().copied().filter(|r| !decoded.destinations.contains(r)).collect()
    };
    let (sources, read_operands) = (others(&decoded.sources), others(&decoded.read_operands));
    let shared = if read_operands.is_empty() { opcode.shared_operand_cycles } else { 0 };
    let initiation = decoded.initiation.max(shared);
    let latency = decoded.latency.max(shared);
    Decoded { sources, read_operands, destinations: Box::default(), initiation, latency, ..decoded }
}

/// The registers without repetitions: one is read once for all operands.
fn distinct(registers: Vec<Register>) -> Vec<Register> {
    let mut kept = Vec::with_capacity(registers.len());
    for register in registers {
        if !kept.contains(&register) {
            kept.push(register);
        }
    }
    kept
}

fn barrier_operands(
    machine: &Machine,
    instruction: &Instruction,
    effect: Effect,
) -> Option<BarrierOperands> {
    let waits = match effect {
        Effect::Barrier => true,
        Effect::Arrive => false,
        Effect::ClusterArrive => return Some(BarrierOperands::of_cluster(false)),
        Effect::ClusterWait => return Some(BarrierOperands::of_cluster(true)),
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

/// The registers and, with `unlisted`, the one that represents unlisted predicates.
fn with_unlisted(unlisted: bool, mut listed: Vec<Register>) -> Box<[Register]> {
    listed.extend(unlisted.then_some(UNLISTED));
    listed.into()
}

/// The registers of wide results: `count` consecutive ones from the listed one. A line that
/// lists several registers of a file lists all of them, and a predicate is one bit.
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

/// Barriers of a CTA that have a number (PTX ISA, `barrier{.cta}`).
const NUMBERED: u8 = 16;

/// The operands of a barrier instruction, as far as the trace has them.
///
/// `BAR.SYNC id[, threads]`: either operand may be an immediate or a register, whose value no
/// trace has. Tracers list no immediates (before late version 4), the last one (until version
/// 5), or the first two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BarrierOperands {
    /// The barrier of the CTA: its number, or 16 and the warps that it counts where the trace
    /// has only this count.
    pub(crate) place: u8,
    /// Warps that must arrive; 0: all of the CTA that have not ended.
    pub(crate) warps: u16,
    /// The warp waits there; else it arrives and goes on.
    pub(crate) waits: bool,
    /// The trace does not have the number or the count.
    pub(crate) assumed: bool,
}

impl BarrierOperands {
    /// The place of a worker's task barrier: beyond the numbers of traces.
    pub(crate) const TASK: u8 = u8::MAX - 1;

    /// The place of the cluster's barrier.
    pub(crate) const CLUSTER: u8 = u8::MAX - 2;

    /// A step at the cluster's barrier: an arrival, or the wait.
    pub(super) const fn of_cluster(waits: bool) -> Self {
        Self { place: Self::CLUSTER, warps: 0, waits, assumed: false }
    }

    /// The barrier 0 of the whole CTA.
    pub(super) const fn whole(waits: bool) -> Self {
        Self { place: 0, warps: 0, waits, assumed: false }
    }

    /// The barrier at which the warps of a worker wait for their task.
    pub(super) const fn for_task() -> Self {
        Self { place: Self::TASK, warps: 0, waits: true, assumed: false }
    }

    /// The number of the barrier at `place`, where the trace has it.
    pub(crate) fn number_of(place: u8) -> Option<u8> {
        Some(place).filter(|&place| place < NUMBERED)
    }

    /// As one word; [`BarrierOperands::unpacked`] is the inverse.
    pub(super) const fn packed(self) -> u32 {
        let [low, high] = self.warps.to_le_bytes();
        u32::from_le_bytes([self.place, low, high, self.waits as u8 | (self.assumed as u8) << 1])
    }

    /// From one word; other bits are ignored.
    pub(super) const fn unpacked(word: u32) -> Self {
        let [place, low, high, flags] = word.to_le_bytes();
        let warps = u16::from_le_bytes([low, high]);
        Self { place, warps, waits: flags & 1 != 0, assumed: flags & 2 != 0 }
    }

    /// The operands of `instruction`.
    fn of(instruction: &Instruction, waits: bool) -> Self {
        let registers = instruction.sources.iter().filter(|r| !r.is_constant()).count();
        let mut immediates = instruction.immediates.iter().copied();
        let (first, second) = (immediates.next(), immediates.next());
        let whole = Self::whole(waits);
        match (first.and_then(number), first.and_then(warps), second) {
            (Some(place), _, None | Some(0)) if registers == 0 => Self { place, ..whole },
            (Some(place), _, Some(count)) if registers == 0 => match warps(count) {
                Some(warps) => Self { place, warps, ..whole },
                None => Self { assumed: true, ..whole },
            },
            (None, Some(warps), _) => {
                let place = NUMBERED.saturating_add(u8::try_from(warps).unwrap_or(u8::MAX));
                Self { place, warps, waits, assumed: true }
            }
            _ => Self { assumed: true, ..whole },
        }
    }
}

/// The number of a barrier that an immediate gives; larger ones are counts of threads.
fn number(immediate: i64) -> Option<u8> {
    u8::try_from(immediate).ok().filter(|&number| number < NUMBERED)
}

/// The warps of the count of threads that an immediate gives.
fn warps(immediate: i64) -> Option<u16> {
    let threads = u64::try_from(immediate).unwrap_or(0);
    let warps = u16::try_from(threads.div_ceil(to_u64(WARP_LANES))).ok();
    warps.filter(|&warps| warps > 0 && number(immediate).is_none())
}

/// The cache line of every instruction of one code.
///
/// Lines are numbered over all the code of a run, so that no two kernels share one. Their
/// order and neighbours are those of the PCs; a gap that no warp executes is kept as long as
/// the prefetcher can reach into it.
#[derive(Debug)]
pub(crate) struct CodeLines {
    of: Vec<u32>,
    end: u32,
}

impl CodeLines {
    /// The lines of `code` from number `first` on; none without instruction caches.
    pub(super) fn new(spec: Option<&Fetch>, code: &[Instruction], first: u32) -> Self {
        let Some(spec) = spec else { return Self { of: Vec::new(), end: first } };
        let line = |instruction: &Instruction| instruction.pc / u64::from(spec.line_bytes);
        let mut distinct: Vec<u64> = code.iter().map(line).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let longest = u64::from(spec.prefetch_lines) + 1;
        let mut numbers = Vec::with_capacity(distinct.len());
        let (mut number, mut before) = (first, distinct.first().copied().unwrap_or(0));
        for &line in &distinct {
            number += u32::try_from((line - before).min(longest)).expect("a prefetch is short");
            numbers.push(number);
            before = line;
        }
        let place = |searched: u64| distinct.partition_point(|&line| line < searched);
        let of = code.iter().map(|instruction| numbers[place(line(instruction))]).collect();
        Self { of, end: numbers.last().map_or(first, |last| last + 1) }
    }

    /// The line of an instruction.
    pub(crate) fn of(&self, instruction: u32) -> u32 {
        self.of[to_usize(instruction)]
    }

    /// One past the last line.
    pub(crate) fn end(&self) -> u32 {
        self.end
    }

    /// How many of the `count` instructions from `first` on can issue before one whose line is
    /// not `present`; that takes the place of an instruction and its line.
    pub(crate) fn run(&self, first: u32, count: u32, present: impl Fn(u32, u32) -> bool) -> u32 {
        let lines = &self.of[to_usize(first)..to_usize(first + count)];
        let missing = (0..).zip(lines).find(|&(place, &line)| !present(place, line));
        missing.map_or(count, |(place, _)| place)
    }
}

#[cfg(test)]
mod tests {
    use super::{BarrierOperands, CodeLines, spread_out};
    use crate::config::Models;
    use gpumodel_core::isa::{Instruction, Register, RegisterFile};

    fn empty_instruction() -> Instruction {
        Instruction {
            pc: 0,
            opcode: 0,
            destinations: Box::default(),
            sources: Box::default(),
            width: 0,
            immediates: Box::default(),
            line: None,
            control: None,
        }
    }

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

    fn operands(registers: u16, immediates: &[i64]) -> (u8, u16, bool) {
        let sources = (0..registers).map(|n| Register::new(RegisterFile::General, n).unwrap());
        let immediates = immediates.into();
        let instruction =
            Instruction { sources: sources.collect(), immediates, ..empty_instruction() };
        let operands = BarrierOperands::of(&instruction, true);
        (operands.place, operands.warps, operands.assumed)
    }

    #[test]
    fn number_and_count_are_those_of_the_trace() {
        assert_eq!(operands(0, &[0, 0]), (0, 0, false), "BAR.SYNC 0");
        assert_eq!(operands(0, &[3, 0]), (3, 0, false), "BAR.SYNC 3");
        assert_eq!(operands(0, &[3, 96]), (3, 3, false), "BAR.SYNC 3, 96");
        assert_eq!(operands(0, &[3, 100]), (3, 4, false), "a count is rounded up to warps");
        assert_eq!(operands(0, &[0]), (0, 0, false), "one immediate: BAR.SYNC 0");
        assert_eq!(operands(0, &[5]), (5, 0, false), "one immediate: BAR.SYNC 5");
    }

    #[test]
    fn the_packed_form_is_a_bijection() {
        for (place, warps, waits) in [(0, 0, true), (15, 32, false), (255, u16::MAX, true)] {
            for assumed in [true, false] {
                let operands = BarrierOperands { place, warps, waits, assumed };
                assert_eq!(BarrierOperands::unpacked(operands.packed()), operands);
            }
        }
    }

    #[test]
    fn what_the_trace_leaves_out_is_assumed() {
        assert_eq!(operands(0, &[]), (0, 0, true), "no immediates at all");
        assert_eq!(operands(0, &[128]), (20, 4, true), "the last immediate is the count");
        assert_eq!(operands(1, &[64, 0]), (18, 2, true), "BAR.SYNC R0, 64");
        assert_eq!(operands(1, &[1]), (0, 0, true), "BAR.SYNC 1, R0: its count is not known");
        assert_eq!(operands(2, &[0]), (0, 0, true), "BAR.SYNC R0, R1");
        assert_eq!(operands(0, &[-1]), (0, 0, true));
    }

    fn code(pcs: &[u64]) -> Vec<Instruction> {
        pcs.iter().map(|&pc| Instruction { pc, ..empty_instruction() }).collect()
    }

    #[test]
    fn lines_follow_the_pcs_a_long_gap_is_cut_and_two_codes_share_none() {
        let machine = Models::builtin().machine("v100", &[]).unwrap().machine;
        let spec = machine.fetch.unwrap();
        let far = 1 << 60;
        let lines = CodeLines::new(Some(&spec), &code(&[0x100, 0, 0x10, 0x110, far]), 7);
        let cut = 9 + spec.prefetch_lines + 1;
        assert_eq!((0..5).map(|i| lines.of(i)).collect::<Vec<_>>(), [9, 7, 7, 9, cut]);
        assert_eq!(lines.end(), cut + 1);
        let other = CodeLines::new(Some(&spec), &code(&[0, 0x10]), lines.end());
        assert_eq!((other.of(0), other.of(1), other.end()), (cut + 1, cut + 1, cut + 2));
        assert_eq!(lines.run(0, 5, |_, line| line < 9), 0);
        assert_eq!(lines.run(1, 4, |_, line| line < 9), 2);
    }
}
