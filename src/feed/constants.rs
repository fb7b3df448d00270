//! Which words the constant loads of a trace read, where the trace does not say it: tracers list
//! neither the address of `LDC` nor the register of its index. Both follow in part from the other
//! instructions of a warp:
//!
//! - The index is the register that was written last before the load and that no operand reads
//!   until it is written again: code does not compute what nothing reads. Of wide operands traces
//!   list the first register alone.
//! - Two lanes differ in a register that gives the addresses of an access where these addresses
//!   differ, and then also in the register from which that one was computed alone.
//! - Sums, multiples, copies and loads differ where what they come from does.
//!
//! The estimate is low where an index follows from the lane in a way that no address shows, and
//! high where loaded values are equal. Against the counters of a GV100 (words per `LDC`) it is
//! exact in `dct_1d` (6) and `quasirandom` (1). Launches of one code share what the first shows.
//!
//! From Hopper on, `LDC` also reads at fixed offsets, which an operand of other instructions was
//! before; nothing is inferred there.

use std::collections::{BTreeMap, HashMap};

use gpumodel_core::isa::{Access, Effect, Instruction, Opcode, Register, RegisterFile, Space};
use gpumodel_core::units::{WARP_LANES, to_u32, to_usize};
use gpumodel_sim::Program;
use gpumodel_trace::{Store, TraceError, WarpCursor};

/// Warps of the first CTA that are looked at, and instructions of each.
const WARPS: u32 = 4;
const INSTRUCTIONS: usize = 4096;

/// The first target whose `LDC` also reads at fixed offsets.
const FIXED_OFFSETS: u32 = 90;

/// Where the inferred words lie, the tables of all loads one behind the other: behind the window
/// in which `gpumodel trace` has constants.
const TABLES: u64 = 0x7e03_0000_0000;
const WORD_BYTES: u8 = 4;

/// What differs where its only or all of its operands do, by the beginnings of its name.
const ONE_TO_ONE: [&str; 9] =
    ["MOV", "IADD", "IMAD", "XMAD", "SHL", "SHF.L", "LEA", "ISCADD", "VIADD"];

/// The lanes of a warp by value: those with equal values have one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Classes([u8; WARP_LANES]);

impl Classes {
    /// All lanes have one value.
    const SAME: Self = Self([0; WARP_LANES]);

    fn of(values: &[u64; WARP_LANES]) -> Self {
        let mut classes = [0; WARP_LANES];
        let mut known: Vec<u64> = Vec::new();
        for (class, value) in classes.iter_mut().zip(values) {
            let place = known.iter().position(|other| other == value);
            let place = place.unwrap_or_else(|| {
                known.push(*value);
                known.len() - 1
            });
            *class = u8::try_from(place).expect("a warp has few lanes");
        }
        Self(classes)
    }

    /// Lanes that both have in one class.
    fn join(self, other: Self) -> Self {
        let pair = |lane: usize| u64::from(self.0[lane]) << 8 | u64::from(other.0[lane]);
        Self::of(&std::array::from_fn(pair))
    }

    fn count(self) -> u64 {
        u64::from(self.0.iter().copied().max().unwrap_or(0)) + 1
    }
}

/// What an instruction has written.
#[derive(Debug)]
struct Value {
    /// The register's life, in instructions of the warp; `None`: to its end.
    written: usize,
    overwritten: Option<usize>,
    /// A listed operand reads it.
    read: bool,
    /// What it differs with, by place.
    from: Vec<usize>,
    /// It was computed from this alone.
    parent: Option<usize>,
    classes: Classes,
}

/// A constant load: its place in the code and among the instructions of the warp.
type Load = (u32, usize);

/// The registers of one warp over time.
#[derive(Debug, Default)]
struct Flow {
    values: Vec<Value>,
    now: HashMap<Register, usize>,
    loads: Vec<Load>,
}

impl Flow {
    /// The values that an instruction reads, those that no instruction has written left out; of
    /// wide operands the first.
    fn read(&mut self, line: &Line<'_>) -> Vec<usize> {
        let mut found = Vec::new();
        for (index, source) in line.instruction.sources.iter().enumerate() {
            for offset in 0..line.width_of(index) {
                let register = Register::new(source.file(), source.number() + offset);
                let Some(&value) = register.and_then(|r| self.now.get(&r)) else { continue };
                self.values[value].read = true;
                found.extend((offset == 0).then_some(value));
            }
        }
        found
    }

    /// The next instruction of the warp, the `at`-th, at place `number` of the code.
    fn step(&mut self, at: usize, number: u32, line: &Line<'_>, access: &Access) {
        let sources = self.read(line);
        let addressed = line.has_addresses().then(|| self.address_of(line, access)).flatten();
        if line.is_unplaced() {
            self.loads.push((number, at));
        }
        let (from, parent) = match (addressed, line.computes()) {
            (Some(address), _) => (vec![address], None),
            (None, true) => {
                let parent = if let [one] = sources[..] { Some(one) } else { None };
                (if line.is_one_to_one() { sources } else { Vec::new() }, parent)
            }
            (None, false) => (Vec::new(), None),
        };
        let general =
            line.instruction.destinations.iter().filter(|r| r.file() == RegisterFile::General);
        for &register in general.filter(|r| !r.is_constant()) {
            if let Some(before) = self.now.insert(register, self.values.len()) {
                self.values[before].overwritten = Some(at);
            }
            let (from, classes) = (from.clone(), Classes::SAME);
            let value =
                Value { written: at, overwritten: None, read: false, from, parent, classes };
            self.values.push(value);
        }
    }

    /// The value that gave the addresses of `access`, which now differs where they do.
    fn address_of(&mut self, line: &Line<'_>, access: &Access) -> Option<usize> {
        let first = line.instruction.sources.first()?;
        let value = *self.now.get(first)?;
        if access.mask == u32::MAX {
            let mut addresses = [0; WARP_LANES];
            access.active().for_each(|(lane, address)| addresses[lane] = address);
            let classes = &mut self.values[value].classes;
            *classes = classes.join(Classes::of(&addresses));
        }
        Some(value)
    }

    /// The classes of every value: first what comes from one value alone shows of it, then what
    /// each shows of those behind it.
    fn settle(&mut self) {
        for place in (0..self.values.len()).rev() {
            let Value { parent, classes, .. } = self.values[place];
            if let Some(parent) = parent {
                self.values[parent].classes = self.values[parent].classes.join(classes);
            }
        }
        for place in 0..self.values.len() {
            let from = std::mem::take(&mut self.values[place].from);
            let all = |classes: Classes, &one: &usize| classes.join(self.values[one].classes);
            self.values[place].classes = from.iter().fold(self.values[place].classes, all);
        }
    }

    /// The index of the load at instruction `at`.
    fn index(&self, at: usize) -> Option<Classes> {
        let before = self.values.partition_point(|value| value.written < at);
        let live = |value: &&Value| value.overwritten.is_none_or(|end| end >= at);
        let unread = self.values[..before].iter().rev().filter(|value| !value.read);
        unread.filter(live).map(|value| value.classes).next()
    }
}

/// A static instruction and its opcode.
struct Line<'a> {
    instruction: &'a Instruction,
    opcode: &'a Opcode,
    name: &'a str,
}

impl Line<'_> {
    fn has_addresses(&self) -> bool {
        let space = self.opcode.effect.space();
        let register = !matches!(space, None | Some(Space::Constant | Space::Texture));
        register && self.instruction.width > 0
    }

    /// A constant load of which the trace has neither the address nor the index.
    fn is_unplaced(&self) -> bool {
        let constant = self.opcode.effect == Effect::Load(Space::Constant);
        let general = |r: &Register| r.file() == RegisterFile::General;
        let placed = self.instruction.width > 0 || self.instruction.sources.iter().any(general);
        constant && !placed && self.instruction.destinations.iter().any(general)
    }

    /// Registers of the operand `index`.
    fn width_of(&self, index: usize) -> u16 {
        let wide = |part: &str| self.name.contains(part);
        match self.opcode.effect.space() {
            Some(Space::Global | Space::Generic) if index == 0 => 2,
            Some(_) if index == 0 => 1,
            Some(_) => u16::from(self.instruction.width / 4).max(1),
            None if wide("MMA") => 4,
            None if self.name.starts_with('D') || wide("64") || wide(".WIDE") => 2,
            None => 1,
        }
    }

    /// Lanes of its result differ only where those of its operands do.
    fn computes(&self) -> bool {
        self.opcode.effect == Effect::Compute && !self.name.contains("SEL")
    }

    fn is_one_to_one(&self) -> bool {
        ONE_TO_ONE.iter().any(|name| self.name.starts_with(name))
    }
}

/// The lines of the code of `program`.
fn line<'a>(program: &'a Program, number: u32) -> Line<'a> {
    let instruction = &program.code.instructions[to_usize(number)];
    let opcode = to_usize(instruction.opcode);
    let name = &program.code.opcodes[opcode];
    Line { instruction, opcode: &program.opcodes[opcode], name }
}

/// The words that the constant loads of a kernel read, by lane.
#[derive(Debug, Default)]
pub(crate) struct ConstantWords {
    /// By place in the code: the address of each lane.
    lanes: BTreeMap<u32, [u64; WARP_LANES]>,
}

impl ConstantWords {
    /// What the first CTA of launch `number` of `store` shows; `None` where it shows no load of
    /// several words.
    ///
    /// # Errors
    /// [`TraceError::Store`] when a block is damaged.
    pub(crate) fn infer(
        store: &Store,
        number: usize,
        program: &Program,
    ) -> Result<Option<Self>, TraceError> {
        let numbers = 0..to_u32(program.code.instructions.len());
        let target = program.launch.binary_version;
        let loads = |number| line(program, number).is_unplaced();
        if program.ctas == 0 || target >= FIXED_OFFSETS || !numbers.into_iter().any(loads) {
            return Ok(None);
        }
        let cta = store.cta(number, 0)?;
        let mut found: HashMap<u32, Classes> = HashMap::new();
        for warp in 0..cta.warp_count().min(WARPS) {
            of_warp(program, cta.warp(warp), &mut found);
        }
        Ok(Self::placed(found))
    }

    /// The loads of several words, their tables one behind the other in the order of the code.
    fn placed(found: HashMap<u32, Classes>) -> Option<Self> {
        let mut several: Vec<(u32, Classes)> = found.into_iter().collect();
        several.retain(|(_, classes)| classes.count() > 1);
        several.sort_unstable_by_key(|(number, _)| *number);
        let mut next = TABLES;
        let place = |(number, classes): (u32, Classes)| {
            let table = next;
            next += u64::from(WORD_BYTES) * classes.count();
            (number, classes.0.map(|class| table + u64::from(WORD_BYTES * class)))
        };
        let lanes: BTreeMap<u32, [u64; WARP_LANES]> = several.into_iter().map(place).collect();
        (!lanes.is_empty()).then_some(Self { lanes })
    }

    /// The code with a width at each of these loads, so that the machine asks for the words.
    pub(crate) fn widen(&self, instructions: &mut [Instruction]) {
        for &number in self.lanes.keys() {
            instructions[to_usize(number)].width = WORD_BYTES;
        }
    }

    /// Whether the words of the instruction at place `number` are inferred.
    pub(crate) fn has(&self, number: u32) -> bool {
        self.lanes.contains_key(&number)
    }

    /// Fills in the words of the instruction at place `number`.
    pub(crate) fn fill(&self, number: u32, into: &mut Access) {
        if let Some(lanes) = self.lanes.get(&number) {
            into.set(into.mask, lanes);
        }
    }
}

/// Adds the indices of the constant loads of one warp; of several executions the one that
/// differs most counts.
fn of_warp(program: &Program, mut warp: WarpCursor, found: &mut HashMap<u32, Classes>) {
    let (mut flow, mut access, mut at) = (Flow::default(), Access::default(), 0);
    while at < INSTRUCTIONS && warp.next_segment().is_some() {
        while let Some(number) = warp.instruction() {
            warp.access(&mut access);
            flow.step(at, number, &line(program, number), &access);
            at += 1;
        }
    }
    flow.settle();
    for &(number, at) in &flow.loads {
        let Some(index) = flow.index(at) else { continue };
        let known = found.entry(number).or_insert(index);
        if index.count() > known.count() {
            *known = index;
        }
    }
}
