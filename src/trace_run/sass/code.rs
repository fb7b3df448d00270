//! The code of a module, decoded.

use std::collections::HashMap;

use gpumodel_core::isa::{
    ControlBits, Instruction, MOST_IMMEDIATES, Register, RegisterFile, traced_width,
};
use gpumodel_trace::is_open;

use super::decode::{Step, step};
use super::operand::{Operand, Value};
use super::text::{Guard, Line, lines};
use crate::RunError;
use crate::cubin::Function;

/// An instruction that can be executed.
pub struct Decoded {
    pub(crate) guard: Guard,
    /// Traces have its addresses.
    pub(crate) addressed: bool,
    pub(crate) step: Step,
}

/// The code of a module: one instruction per 16 bytes of its image.
pub struct Code {
    /// Opcodes with all their suffixes, each once.
    pub opcodes: Vec<String>,
    rows: Vec<Instruction>,
    /// No register from this one on is used, but for the one that reads as zero.
    pub(crate) registers: usize,
    pub(crate) instructions: Vec<Decoded>,
}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Code of {} instructions", self.instructions.len())
    }
}

impl Code {
    /// Decodes the `text` of the image with these `functions`.
    ///
    /// # Errors
    /// When the text is not that of `nvdisasm -hex`.
    pub fn read(text: &str, functions: &[Function]) -> Result<Self, RunError> {
        let lines = lines(text).map_err(RunError::Code)?;
        let mut code =
            Self { opcodes: Vec::new(), rows: Vec::new(), registers: 0, instructions: Vec::new() };
        let mut numbers: HashMap<String, u32> = HashMap::new();
        for (index, line) in lines.iter().enumerate() {
            if line.pc != index as u64 * 16 {
                return Err(RunError::code("nvdisasm left out instructions"));
            }
            let new = u32::try_from(code.opcodes.len()).unwrap_or(u32::MAX);
            let number = *numbers.entry(line.opcode.clone()).or_insert(new);
            if number == new {
                code.opcodes.push(line.opcode.clone());
            }
            let inside = |function: &&Function| {
                (function.start..function.start + function.size).contains(&line.pc)
            };
            let start = functions.iter().find(inside).map_or(0, |function| function.start);
            let row = row(line, number, start);
            let named = line.operands.iter().filter_map(registers).map(|one| one.number());
            let last = named.filter(|&number| number < 255).max().unwrap_or(0);
            let most = if line.name().ends_with(GROUP) { GROUP_REGISTERS } else { MOST_REGISTERS };
            code.registers = code.registers.max(usize::from(last) + most);
            let addressed = row.width > 0;
            code.rows.push(row);
            code.instructions.push(Decoded { guard: line.guard, addressed, step: step(line) });
        }
        Ok(code)
    }

    /// The instructions as traces show them.
    #[must_use]
    pub fn rows(&self) -> &[Instruction] {
        &self.rows
    }

    /// The opcodes that cannot be executed, with their places.
    pub fn unknown(&self) -> impl Iterator<Item = (&str, u64)> {
        self.instructions.iter().zip(&self.rows).filter_map(|(one, row)| match &one.step {
            Step::Unknown(_) => {
                let opcode = usize::try_from(row.opcode).ok()?;
                Some((self.opcodes.get(opcode)?.as_str(), row.pc))
            }
            Step::Compute(_) | Step::Wait(_) | Step::Control(_) => None,
        })
    }
}

/// Registers from the named one on that an instruction uses, at most.
const MOST_REGISTERS: usize = 16;

/// What multiplies of warp groups have in common, and their accumulators.
const GROUP: &str = "GMMA";
const GROUP_REGISTERS: usize = 128;

/// Instructions that write no general register though their first operand is one.
const NO_DESTINATION: &[&str] = &[
    "ST", "STG", "STS", "STL", "RED", "REDG", "LDGSTS", "BRX", "RET", "CALL", "WARPSYNC", "R2P",
    "BAR", "SUST", "STSM", "ISETP", "FSETP", "DSETP", "HSETP2", "FCHK",
];
/// Instructions with an address in their text.
const ADDRESSED: &[&str] = &[
    "LD", "LDG", "LDS", "LDL", "ST", "STG", "STS", "STL", "ATOM", "ATOMG", "ATOMS", "RED", "REDG",
    "LDGSTS", "LDSM", "STSM", "SYNCS", "ARRIVES", "STAS", "REDAS",
];

/// Whether traces have the addresses of an instruction. Those of constant loads are of use where
/// threads may read different words; tracers on GPUs do not see them.
fn has_addresses(line: &Line) -> bool {
    let name = line.name();
    ADDRESSED.contains(&name) || name == "LDC" && line.indexed_constant().is_some()
}

fn row(line: &Line, opcode: u32, start: u64) -> Instruction {
    let name = line.name();
    let registers = if lists_uniform(name) { all_registers } else { registers };
    let first = line.operands.iter().position(|one| !one.is_predicate());
    let mut destinations = Vec::new();
    let (mut sources, mut marked) = (Vec::new(), Vec::new());
    for (index, operand) in line.operands.iter().enumerate() {
        // Texture reads have two destinations, of which one may be none.
        let texture = matches!(name, "TEX" | "TLD" | "TLD4" | "TXD") && index < 2;
        // Of some, a uniform register that reads as zero stands for no result.
        let uniform = Some(index) == first && operand.value == Value::Uniform(63);
        let unused = texture && operand.value == Value::Register(255) || uniform;
        let writes = (texture || Some(index) == first) && !NO_DESTINATION.contains(&name);
        if let Some(register) = registers(operand).filter(|_| !unused) {
            if writes && matches!(operand.value, Value::Register(_)) {
                destinations.push(register);
            } else {
                sources.push(register);
                marked.push(operand.reuse);
            }
        }
    }
    // The shared address of an asynchronous copy is a source that traces do not list apart.
    let integers = line.operands.iter().filter_map(Operand::integer);
    let immediate = narrow(integers.clone().next().unwrap_or(0));
    let immediates: Box<[i64]> = match is_open(&line.opcode) {
        true => open_immediates(line).into(),
        false => [immediate].into(),
    };
    Instruction {
        pc: line.pc - start.min(line.pc),
        opcode,
        destinations: destinations.into(),
        sources: sources.into(),
        width: if has_addresses(line) { traced_width(&line.opcode) } else { 0 },
        immediates,
        line: None,
        control: Some(ControlBits::read(line.encoding[1], marked.into_iter())),
    }
}

/// The first fields of an instruction whose fields are kept as text: whether a multiply of a warp
/// group ends a group of them; of a bulk copy its unit, and whether several CTAs get it.
fn open_immediates(line: &Line) -> [i64; MOST_IMMEDIATES + 1] {
    let ends = line.operands.iter().any(|one| matches!(&one.value, Value::Word(w) if w == "gsb0"));
    match line.name().ends_with(GROUP) {
        true => [ends.into(), 0, 0],
        false => [16, 0, line.has("MULTICAST").into()],
    }
}

/// Whether traces list the uniform registers of an instruction: where machines ask for what is in
/// them.
fn lists_uniform(name: &str) -> bool {
    let bulk = name.starts_with("UBLK") || name.starts_with("UTMA");
    bulk || name == "SYNCS" || name.ends_with(GROUP)
}

/// The same with uniform registers.
fn all_registers(operand: &Operand) -> Option<Register> {
    let uniform = match &operand.value {
        Value::Uniform(number) => Some(*number),
        Value::Memory(address) if address.register.is_none() => address.uniform,
        _ => None,
    };
    let uniform = uniform.and_then(|one| Register::new(RegisterFile::Uniform, one.into()));
    uniform.or_else(|| registers(operand))
}

/// Traces show immediates as 32 bits with a sign.
fn narrow(number: i64) -> i64 {
    i32::try_from(number).map_or_else(
        |_| u32::try_from(number).map_or(number, |bits| bits.cast_signed().into()),
        i64::from,
    )
}

/// The general registers that an operand names.
fn registers(operand: &Operand) -> Option<Register> {
    let number = match &operand.value {
        Value::Register(number) => Some(*number),
        Value::Memory(address) => address.register,
        Value::Constant(constant) => constant.register,
        Value::Uniform(_)
        | Value::Predicate(..)
        | Value::Integer(_)
        | Value::Float
        | Value::Barrier(_)
        | Value::Word(_) => None,
    };
    Register::new(RegisterFile::General, u16::from(number?))
}

#[cfg(test)]
mod tests {
    use gpumodel_core::isa::ControlBits;

    use super::{Code, Line, lines};

    const TEXT: &str = include_str!("../../../tests/data/trace_run/kernels.sass");

    /// The control bits of a line of compiled kernels. Do they say what the disassembler shows, and
    /// what the hardware needs?
    fn bits(line: &Line) -> ControlBits {
        ControlBits::read(line.encoding[1], std::iter::empty())
    }

    #[test]
    fn the_disassembler_says_reuse_where_the_bits_do() {
        let codes: Vec<&str> = TEXT.lines().filter(|line| line.contains(';')).collect();
        let code = Code::read(TEXT, &[]).unwrap();
        assert_eq!(codes.len(), code.rows().len());
        for (text, row) in codes.into_iter().zip(code.rows()) {
            let control = row.control.unwrap();
            let marks = (0..row.sources.len()).filter(|&index| control.marks(index)).count();
            assert_eq!(marks, text.matches(".reuse").count(), "{text}");
            assert_eq!(marks, usize::try_from(control.reuse().count_ones()).unwrap(), "{text}");
        }
    }

    #[test]
    fn who_uses_what_is_loaded_waits_for_its_barrier() {
        let all = lines(TEXT).unwrap();
        let mut loads = 0;
        for (index, line) in all.iter().enumerate().filter(|(_, line)| line.name() == "LDG") {
            let barrier = bits(line).write_barrier().unwrap();
            let user = all[index + 1..].iter().find(|user| {
                user.operands.iter().skip(1).any(|one| one.value == line.operands[0].value)
            });
            if let Some(user) = user {
                let waits = |line: &Line| bits(line).waits() >> barrier & 1 == 1;
                let place = all.iter().position(|one| one.pc == user.pc).unwrap();
                assert!(all[index + 1..=place].iter().any(waits), "PC {:#x}", user.pc);
                loads += 1;
            }
        }
        assert!(loads > 5);
    }
}
