//! Runs `nvdisasm -hex` and reads its lines: place, guard, opcode, operands and encoding.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use super::operand::{Constant, Operand, PredicateFile, Value};
use crate::RunError;

/// The text of the code `image` of architecture `sm`, printed by `nvdisasm` at `tool`.
///
/// # Errors
/// When the tool cannot be run or refuses the code.
pub fn disassemble(tool: &Path, image: &[u8], sm: u32, folder: &Path) -> Result<String, RunError> {
    if image.is_empty() {
        return Ok(String::new());
    }
    let failed = |what: String| {
        RunError::code(format!(
            "{}: {what}; name the nvdisasm of the toolkit that compiled the program with \
             --nvdisasm",
            tool.display()
        ))
    };
    let file = tempfile::Builder::new().suffix(".bin").tempfile_in(folder);
    let mut file = file.map_err(|error| failed(error.to_string()))?;
    file.write_all(image).map_err(|error| failed(error.to_string()))?;
    let done = Command::new(tool)
        .env_remove("LD_PRELOAD")
        .env_remove("LD_LIBRARY_PATH")
        .args(["-hex", "-b", &format!("SM{sm}")])
        .arg(file.path())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !done.status.success() {
        let message = String::from_utf8_lossy(&done.stderr);
        return Err(failed(message.lines().next().unwrap_or("it failed").to_owned()));
    }
    String::from_utf8(done.stdout).map_err(|_| failed("its output is no text".into()))
}

/// The predicate before an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guard {
    pub(crate) file: PredicateFile,
    pub(crate) number: u8,
    pub(crate) not: bool,
}

impl Guard {
    /// No guard at all.
    pub(crate) const ALWAYS: Self = Self { file: PredicateFile::Thread, number: 7, not: false };
}

/// One instruction as text.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) pc: u64,
    pub(crate) guard: Guard,
    /// With all its suffixes.
    pub(crate) opcode: String,
    pub(crate) operands: Vec<Operand>,
    /// The lower and the upper half of the encoding.
    pub(crate) encoding: [u64; 2],
}

impl Line {
    /// The opcode without suffixes.
    pub(crate) fn name(&self) -> &str {
        self.opcode.split('.').next().unwrap_or_default()
    }

    /// Whether the opcode has that suffix.
    pub(crate) fn has(&self, suffix: &str) -> bool {
        self.suffixes().any(|one| one == suffix)
    }

    /// The suffixes of the opcode.
    pub(crate) fn suffixes(&self) -> impl Iterator<Item = &str> {
        self.opcode.split('.').skip(1)
    }

    /// The constant that it reads at a place which differs from thread to thread.
    pub(crate) fn indexed_constant(&self) -> Option<Constant> {
        self.operands.iter().find_map(|operand| match operand.value {
            Value::Constant(place) => Some(place).filter(|place| place.register.is_some()),
            _ => None,
        })
    }

    /// The 32 bits of an immediate operand.
    pub(crate) fn immediate(&self) -> u32 {
        u32::try_from(self.encoding[0] >> 32).unwrap_or(0)
    }
}

/// All instructions in `text`.
///
/// # Errors
/// With the number of the line that is wrong.
pub(crate) fn lines(text: &str) -> Result<Vec<Line>, String> {
    let mut all: Vec<Line> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let wrong = |what: String| format!("line {} of nvdisasm's text: {what}", number + 1);
        let (code, hex) = match line.rfind("/* 0x") {
            Some(at) => (line[..at].trim(), encoding(&line[at + 5..])),
            None => continue,
        };
        let hex = hex.ok_or_else(|| wrong("an encoding is no number".into()))?;
        if code.is_empty() {
            if let Some(last) = all.last_mut() {
                last.encoding[1] = hex;
            }
            continue;
        }
        let mut line = instruction(code).map_err(wrong)?;
        line.encoding[0] = hex;
        all.push(line);
    }
    Ok(all)
}

fn encoding(hex: &str) -> Option<u64> {
    u64::from_str_radix(hex.split(' ').next()?, 16).ok()
}

fn instruction(code: &str) -> Result<Line, String> {
    let rest = code.strip_prefix("/*").ok_or("no place")?;
    let (pc, rest) = rest.split_once("*/").ok_or("no place")?;
    let pc = u64::from_str_radix(pc, 16).map_err(|_| format!("no place in `{code}`"))?;
    let mut rest = rest.trim().trim_end_matches(';').trim();
    let mut guard = Guard::ALWAYS;
    if let Some(after) = rest.strip_prefix('@') {
        let (name, further) = after.split_once(' ').ok_or("no opcode")?;
        guard = parse_guard(name).ok_or_else(|| format!("unknown guard `{name}`"))?;
        rest = further.trim();
    }
    let (opcode, operands) = rest.split_once(' ').unwrap_or((rest, ""));
    let operands = split(operands).into_iter().map(Operand::read).collect();
    Ok(Line { pc, guard, opcode: opcode.to_owned(), operands, encoding: [0; 2] })
}

fn parse_guard(name: &str) -> Option<Guard> {
    let (not, name) = name.strip_prefix('!').map_or((false, name), |name| (true, name));
    let (file, number) = match name.strip_prefix("UP") {
        Some(number) => (PredicateFile::Warp, number),
        None => (PredicateFile::Thread, name.strip_prefix('P')?),
    };
    let number = if number == "T" { 7 } else { number.parse().ok().filter(|&n| n < 7)? };
    Some(Guard { file, number, not })
}

/// The operands: commas between them, or a space before a target.
fn split(text: &str) -> Vec<&str> {
    let text = text.split(" (*").next().unwrap_or_default();
    text.split(',')
        .flat_map(|operand| operand.trim().split(' '))
        .map(str::trim)
        .filter(|operand| !operand.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{lines, parse_guard};
    use crate::sass::operand::{Constant, Value};

    #[test]
    fn a_line_is_place_guard_opcode_operands_and_encoding() {
        let text = "\t.headerflags\n        /*0090*/              @!P0 IMAD.WIDE R4, R7.reuse, \
                    -0x5, c[0x0][0x168] ;        /* 0x00005a0007048625 */\n   \
                    /* 0x040fe200078e0205 */\n";
        let all = lines(text).unwrap();
        let line = &all[0];
        assert_eq!((line.pc, line.opcode.as_str()), (0x90, "IMAD.WIDE"));
        assert_eq!((line.guard.number, line.guard.not), (0, true));
        assert_eq!(line.encoding, [0x0000_5a00_0704_8625, 0x040f_e200_078e_0205]);
        assert_eq!(line.operands[1].value, Value::Register(7));
        assert_eq!(line.operands[2].value, Value::Integer(-5));
        let constant = Constant { bank: 0, offset: 0x168, register: None, uniform: None };
        assert_eq!(line.operands[3].value, Value::Constant(constant));
        assert!(parse_guard("!UPT").is_some_and(|guard| guard.not));
        assert_eq!(parse_guard("P9"), None);
    }
}
