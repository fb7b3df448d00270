//! A kernel's program in the form of workers: its own code and the added code after it.

use std::collections::BTreeMap;
use std::sync::Arc;

use gpumodel_core::contract::{AddedCode, Persistent, Touch, Word, most_registers};
use gpumodel_core::isa::{
    Code, Instruction, Launch, Listing, Opcode, Register, RegisterFile, Segment,
};
use gpumodel_core::units::to_u32;
use gpumodel_sim::config::Resolved;
use gpumodel_sim::{AddedSegment, AddedSegments, Line, Program, TASK_BARRIER, Worker};

/// Opcodes of added code, by architecture: the first that the machine's
/// opcode table knows, else the last.
const READ: &[&str] = &["LDG.E.STRONG.GPU", "LD.E"];
const ADD: &[&str] = &["ATOMG.E.ADD.STRONG.GPU", "ATOM.E.ADD"];
const WRITE: &[&str] = &["STG.E", "ST.E"];
const BARRIER: &[&str] = &["BAR.SYNC"];
const STEP: &[&str] = &["IADD3", "IADD"];

/// Bytes of a word.
const WORD_BYTES: u8 = 4;

/// Registers of the added code: the value that memory returns, and the sum of all results.
/// Kernels use them too, in other parts of their lives.
const GOT: u16 = 0;
const SUM: u16 = 1;

/// The program of `program`'s kernel in the form of workers, and what the machine
/// needs to know of it.
pub(super) fn transform(
    program: &Program,
    form: &Persistent,
    resolved: &Resolved,
) -> (Program, Worker) {
    let mut writer = Writer::new(program, resolved);
    let first_segment = to_u32(writer.code.segments.len());
    let arrive = writer.pieces(&form.arrive, false);
    let task = writer.pieces(&form.task, true);
    let block = writer.piece(|writer| writer.steps(form.block_instructions, u32::MAX));
    let leave = writer.pieces(&form.leave, false);
    let worker = Worker {
        task_blocks: form.task_blocks,
        resize: form.resize,
        compile_cycles: form.compile_cycles,
        call_cycles: form.call_cycles,
        first_segment,
        arrive,
        task,
        block,
        leave,
        lines: writer.lines,
    };
    let (code, opcodes) = (Arc::new(writer.code), writer.opcodes.into());
    (
        Program {
            launch: launch(&program.launch, form, resolved),
            code,
            opcodes,
            ctas: program.ctas,
        },
        worker,
    )
}

/// A launch with what its CTAs need as workers.
pub(super) fn launch(launch: &Launch, form: &Persistent, resolved: &Resolved) -> Launch {
    let sm = &resolved.machine.sm;
    let most = most_registers(sm.registers, sm.register_unit, launch.warps_per_cta());
    Launch {
        registers: form.registers(launch.registers, most),
        shared_bytes: launch.shared_bytes + form.more_shared_bytes,
        ..launch.clone()
    }
}

/// Appends to a kernel's code.
struct Writer<'a> {
    resolved: &'a Resolved,
    code: Code,
    opcodes: Vec<Opcode>,
    lines: Vec<Line>,
    named: BTreeMap<&'static str, u32>,
    /// Where the next instruction lies, and bytes from one to the next, as in the
    /// kernel's own code.
    pc: u64,
    step: u64,
}

impl<'a> Writer<'a> {
    fn new(program: &Program, resolved: &'a Resolved) -> Self {
        let code = Code::clone(&program.code);
        let mut pcs: Vec<u64> = code.instructions.iter().map(|one| one.pc).collect();
        pcs.sort_unstable();
        let steps = pcs.windows(2).map(|pair| pair[1] - pair[0]).filter(|&step| step > 0);
        let step = steps.min().unwrap_or(1);
        let pc = pcs.last().map_or(0, |last| last + step);
        let (opcodes, named) = (program.opcodes.to_vec(), BTreeMap::new());
        Self { resolved, code, opcodes, lines: Vec::new(), named, pc, step }
    }

    /// What the first warp and the others run of a piece of added code.
    fn pieces(&mut self, added: &AddedCode, gets_task: bool) -> AddedSegments {
        let leader = self.piece(|writer| writer.write(added, true, gets_task));
        let others = self.piece(|writer| writer.write(added, false, gets_task));
        AddedSegments { leader, others }
    }

    fn write(&mut self, added: &AddedCode, leader: bool, gets_task: bool) {
        for &touch in &added.touches {
            match touch {
                Touch::Read(word) => {
                    self.memory(READ, true, word, u32::MAX);
                    self.steps(1, u32::MAX);
                }
                Touch::Add(word) if leader => {
                    self.memory(ADD, true, word, 1);
                    self.steps(1, 1);
                }
                Touch::Write(word) if leader => self.memory(WRITE, false, word, 1),
                Touch::Add(_) | Touch::Write(_) => {}
            }
        }
        if leader {
            self.steps(added.leader_instructions, 1);
        }
        if gets_task {
            self.barrier(TASK_BARRIER);
        } else if added.meets {
            self.barrier(0);
        }
        self.steps(added.instructions, u32::MAX);
    }

    /// The segment that `write` writes; `None` when that is nothing.
    fn piece(&mut self, write: impl FnOnce(&mut Self)) -> Option<AddedSegment> {
        let (first, line) = (to_u32(self.code.instructions.len()), to_u32(self.lines.len()));
        write(self);
        let length = to_u32(self.code.instructions.len()) - first;
        (length > 0).then(|| {
            self.code.segments.push(Segment { first, length });
            AddedSegment { segment: to_u32(self.code.segments.len() - 1), line }
        })
    }

    /// Arithmetic, each instruction with the result of the one before.
    fn steps(&mut self, count: u32, mask: u32) {
        for _ in 0..count {
            self.push(STEP, &[SUM], &[SUM, GOT], 0, &[], Line { mask, word: None });
        }
    }

    fn memory(&mut self, names: &[&'static str], gives: bool, word: Word, mask: u32) {
        let destinations: &[u16] = if gives { &[GOT] } else { &[] };
        let line = Line { mask, word: Some(word) };
        self.push(names, destinations, &[SUM], WORD_BYTES, &[], line);
    }

    fn barrier(&mut self, number: i64) {
        self.push(BARRIER, &[], &[], 0, &[number], Line { mask: u32::MAX, word: None });
    }

    fn push(
        &mut self,
        names: &[&'static str],
        destinations: &[u16],
        sources: &[u16],
        width: u8,
        immediates: &[i64],
        line: Line,
    ) {
        let registers = |numbers: &[u16]| {
            let register = |&number| Register::new(RegisterFile::General, number);
            numbers.iter().filter_map(register).collect()
        };
        let instruction = Instruction {
            pc: self.pc,
            opcode: self.opcode(names),
            destinations: registers(destinations),
            sources: registers(sources),
            width,
            immediates: immediates.into(),
            line: None,
            control: None,
        };
        self.pc += self.step;
        self.code.instructions.push(instruction);
        self.lines.push(line);
    }

    fn opcode(&mut self, names: &[&'static str]) -> u32 {
        let resolve =
            |name: &&'static str| (*name, self.resolved.isa.opcode(&self.resolved.machine, name));
        let known = names.iter().map(resolve).find(|(_, opcode)| opcode.listing == Listing::Own);
        let last = || names.last().map(resolve);
        let (name, opcode) = known.or_else(last).expect("every list has a name");
        *self.named.entry(name).or_insert_with(|| {
            self.code.opcodes.push(name.to_owned());
            self.opcodes.push(opcode);
            to_u32(self.opcodes.len() - 1)
        })
    }
}
