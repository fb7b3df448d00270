//! The static tables of kernels: collected ([`Dictionary`]), as a block of bytes, and indexed
//! for cursors ([`Program`]).
//!
//! | section | content |
//! |---|---|
//! | opcodes | count; per opcode length and bytes |
//! | instructions | count; per instruction: PC (signed difference to the last one less 16), opcode, destination count and registers, source count and registers, width, immediate count and immediates (signed), line plus one or 0 |
//! | segments | count; per segment: first (signed difference to the end of the last one), length |
//! | control bits | only of recorded programs: version 1; per instruction its control bits plus one, or 0 |
//!
//! Stores without control bits end before that section. A program that does not know the
//! section, or its version, refuses the store.

use std::sync::Arc;

use gpumodel_core::isa::{Code, ControlBits, Instruction, Register, Segment};
use gpumodel_core::units::{to_u32, to_u64, to_usize};
use rustc_hash::FxHashMap;

use super::chunk_writer::NO_MEMORY;
use super::layout::MOST_STATICS;
use super::records::Static;
use super::varint::{self, Reader};
use crate::error::ByteFault;

/// PCs usually step by this much from one instruction to the next.
const PC_STEP: i64 = 16;
/// Version of the section of control bits.
const CONTROL_VERSION: u64 = 1;

/// A kernel's tables while its trace is read.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    code: Code,
    opcodes: FxHashMap<Box<str>, u32>,
    statics: FxHashMap<Static, u32>,
    segments: FxHashMap<Segment, u32>,
    /// Memory number of every static; see [`super::chunk_writer`].
    pub(super) memory: Vec<u32>,
    memories: u32,
}

impl Dictionary {
    /// How many statics there are.
    pub(super) fn len(&self) -> usize {
        self.code.instructions.len()
    }

    /// The number of `new`, given when it is first seen.
    pub(super) fn number(&mut self, new: &Static) -> u32 {
        if let Some(&number) = self.statics.get(new) {
            return number;
        }
        let number = to_u32(self.code.instructions.len());
        let opcode = self.opcode(&new.opcode);
        self.code.instructions.push(Instruction {
            pc: new.pc,
            opcode,
            destinations: new.destinations.clone(),
            sources: new.sources.clone(),
            width: new.width,
            immediates: new.immediates.clone(),
            line: new.line,
            control: new.control,
        });
        self.statics.insert(new.clone(), number);
        self.memory.push(if new.width > 0 { self.memories } else { NO_MEMORY });
        self.memories += u32::from(new.width > 0);
        number
    }

    fn opcode(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.opcodes.get(text) {
            return number;
        }
        let number = to_u32(self.code.opcodes.len());
        self.code.opcodes.push(text.to_owned());
        self.opcodes.insert(text.into(), number);
        number
    }

    /// The chunk section that maps `chunk`'s segments to ours.
    pub(super) fn segment_section(&mut self, chunk: &[Segment]) -> Vec<u8> {
        let mut out = Vec::new();
        varint::put(&mut out, to_u64(chunk.len()));
        let mut last = 0;
        for segment in chunk {
            let next = to_u32(self.code.segments.len());
            let number = *self.segments.entry(*segment).or_insert(next);
            if number == next {
                self.code.segments.push(*segment);
            }
            varint::put_signed(&mut out, i64::from(number) - last);
            last = i64::from(number);
        }
        out
    }

    /// The tables as a block.
    pub(super) fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        varint::put(&mut out, to_u64(self.code.opcodes.len()));
        for opcode in &self.code.opcodes {
            varint::put(&mut out, to_u64(opcode.len()));
            out.extend_from_slice(opcode.as_bytes());
        }
        varint::put(&mut out, to_u64(self.code.instructions.len()));
        let mut pc = 0;
        for instruction in &self.code.instructions {
            write_instruction(instruction, pc, &mut out);
            pc = instruction.pc;
        }
        varint::put(&mut out, to_u64(self.code.segments.len()));
        let mut end = 0;
        for segment in &self.code.segments {
            varint::put_signed(&mut out, i64::from(segment.first) - end);
            varint::put(&mut out, u64::from(segment.length));
            end = i64::from(segment.first) + i64::from(segment.length);
        }
        self.write_control(&mut out);
        out
    }

    /// The section of control bits, where there are any.
    fn write_control(&self, out: &mut Vec<u8>) {
        let all = &self.code.instructions;
        if all.iter().all(|one| one.control.is_none()) {
            return;
        }
        varint::put(out, CONTROL_VERSION);
        for one in all {
            varint::put(out, one.control.map_or(0, |bits| u64::from(bits.packed()) + 1));
        }
    }
}

fn write_instruction(instruction: &Instruction, last_pc: u64, out: &mut Vec<u8>) {
    let step = instruction.pc.wrapping_sub(last_pc).cast_signed();
    varint::put_signed(out, step.wrapping_sub(PC_STEP));
    varint::put(out, u64::from(instruction.opcode));
    for registers in [&instruction.destinations, &instruction.sources] {
        varint::put(out, to_u64(registers.len()));
        for register in registers {
            varint::put(out, u64::from(register.bits()));
        }
    }
    out.push(instruction.width);
    varint::put(out, to_u64(instruction.immediates.len()));
    for immediate in &instruction.immediates {
        varint::put_signed(out, *immediate);
    }
    varint::put(out, instruction.line.map_or(0, |line| u64::from(line) + 1));
}

/// Reads a block that [`Dictionary::write`] wrote.
///
/// # Errors
/// A [`ByteFault`] that names the table that is damaged.
pub(super) fn read(bytes: &[u8]) -> Result<Code, ByteFault> {
    let mut reader = Reader::new(bytes);
    let opcodes = read_opcodes(&mut reader)?;
    let count = reader.count(7);
    if count > MOST_STATICS {
        return Err(ByteFault::new(
            reader.at(),
            "at most a million instructions",
            count.to_string(),
        ));
    }
    let mut instructions = Vec::with_capacity(count);
    let mut pc = 0_u64;
    for _ in 0..count {
        let instruction = read_instruction(&mut reader, pc);
        if to_usize(instruction.opcode) >= opcodes.len() {
            return Err(ByteFault::new(reader.at(), "an opcode of the table", "another"));
        }
        pc = instruction.pc;
        instructions.push(instruction);
    }
    reader.check("instructions")?;
    let segments = read_segments(&mut reader, instructions.len())?;
    if reader.left() > 0 {
        read_control(&mut reader, &mut instructions)?;
    }
    if reader.left() > 0 {
        return Err(ByteFault::new(reader.at(), "the end of the code block", "more bytes"));
    }
    Ok(Code { opcodes, instructions, segments })
}

/// The control bits of `instructions`.
fn read_control(
    reader: &mut Reader<'_>,
    instructions: &mut [Instruction],
) -> Result<(), ByteFault> {
    let version = reader.number();
    if version != CONTROL_VERSION {
        let found = format!("version {version}");
        return Err(ByteFault::new(reader.at(), "control bits of version 1", found));
    }
    for one in instructions {
        let word = reader.number().checked_sub(1);
        one.control = match word.map(u32::try_from) {
            None => None,
            Some(Ok(word)) => Some(ControlBits::unpacked(word)),
            Some(Err(_)) => {
                return Err(ByteFault::new(reader.at(), "control bits of 32 bits", "more"));
            }
        };
    }
    reader.check("control bits")
}

fn read_opcodes(reader: &mut Reader<'_>) -> Result<Vec<String>, ByteFault> {
    let mut opcodes = Vec::new();
    for _ in 0..reader.count(1).min(MOST_STATICS) {
        let length = reader.count(1);
        let text = std::str::from_utf8(reader.take(length));
        opcodes.push(text.map_err(|e| ByteFault::new(0, "an opcode", e.to_string()))?.to_owned());
    }
    reader.check("opcodes")?;
    Ok(opcodes)
}

fn read_instruction(reader: &mut Reader<'_>, last_pc: u64) -> Instruction {
    let step = reader.signed().wrapping_add(PC_STEP);
    let pc = last_pc.wrapping_add_signed(step);
    let opcode = reader.small();
    let [destinations, sources] = [(); 2].map(|()| {
        let count = reader.count(1);
        (0..count).map(|_| read_register(reader)).collect()
    });
    let width = reader.byte();
    let count = reader.count(1);
    let immediates = (0..count).map(|_| reader.signed()).collect();
    let line = reader.small().checked_sub(1);
    Instruction { pc, opcode, destinations, sources, width, immediates, line, control: None }
}

fn read_register(reader: &mut Reader<'_>) -> Register {
    Register::from_bits(u16::try_from(reader.number()).unwrap_or_default())
}

fn read_segments(reader: &mut Reader<'_>, instructions: usize) -> Result<Vec<Segment>, ByteFault> {
    let count = reader.count(2);
    let mut segments = Vec::with_capacity(count);
    let mut end = 0_i64;
    for _ in 0..count {
        let first = u32::try_from(end.wrapping_add(reader.signed())).unwrap_or(u32::MAX);
        let length = reader.small();
        end = i64::from(first) + i64::from(length);
        if length == 0 || end > i64::try_from(instructions).unwrap_or(i64::MAX) {
            return Err(ByteFault::new(reader.at(), "a segment of the instructions", "another"));
        }
        segments.push(Segment { first, length });
    }
    reader.check("segments")?;
    Ok(segments)
}

/// The code, and where its memory instructions are.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) code: Arc<Code>,
    /// Statics with a width, ascending; a memory number is an index here.
    pub(super) memory: Vec<u32>,
    /// Per static: memory instructions before it.
    before: Vec<u32>,
}

impl Program {
    /// Indexes `code`.
    pub(super) fn new(code: Arc<Code>) -> Self {
        let mut memory = Vec::new();
        let mut before = Vec::with_capacity(code.instructions.len());
        for (number, instruction) in code.instructions.iter().enumerate() {
            before.push(to_u32(memory.len()));
            if instruction.width > 0 {
                memory.push(to_u32(number));
            }
        }
        Self { code, memory, before }
    }

    /// The segment of that number.
    pub(super) fn segment(&self, number: u32) -> Option<Segment> {
        self.code.segments.get(to_usize(number)).copied()
    }

    /// The first memory number at or after static `number`.
    pub(super) fn memory_from(&self, number: u32) -> u32 {
        self.before.get(to_usize(number)).copied().unwrap_or(to_u32(self.memory.len()))
    }
}

#[cfg(test)]
mod tests {
    use gpumodel_core::isa::ControlBits;

    use super::{CONTROL_VERSION, Dictionary, read};
    use crate::store::records::Static;

    /// The block of two instructions, the second one with these control bits.
    fn block(control: Option<ControlBits>) -> Vec<u8> {
        let mut dictionary = Dictionary::default();
        let one = |pc, control| Static {
            pc,
            opcode: "FADD".into(),
            destinations: Box::default(),
            sources: Box::default(),
            width: 0,
            immediates: Box::default(),
            line: None,
            control,
        };
        dictionary.number(&one(0, None));
        dictionary.number(&one(16, control));
        dictionary.write()
    }

    #[test]
    fn a_block_without_control_bits_is_as_it_was_before_there_were_any() {
        let (without, with) = (block(None), block(Some(ControlBits::unpacked(0))));
        // The version, 0 for the first instruction, and 0 plus one for the second one.
        assert_eq!(with, [without.as_slice(), &[1, 0, 1]].concat());
        assert!(!read(&without).unwrap().has_control_bits());
        let bits = ControlBits::unpacked(u32::MAX);
        let code = read(&block(Some(bits))).unwrap();
        assert_eq!([0, 1].map(|place: usize| code.instructions[place].control), [None, Some(bits)]);
    }

    #[test]
    fn control_bits_of_another_version_or_size_are_refused() {
        let (without, mut later) = (block(None), block(Some(ControlBits::unpacked(5))));
        later[without.len()] += 1;
        let error = read(&later).unwrap_err();
        assert_eq!(error.found, format!("version {}", CONTROL_VERSION + 1));
        let wide = [without.as_slice(), &[1, 0, 0xff, 0xff, 0xff, 0xff, 0x7f]].concat();
        assert_eq!(read(&wide).unwrap_err().expected, "control bits of 32 bits");
        let short = [without.as_slice(), &[1, 0]].concat();
        assert!(read(&short).is_err());
    }
}
