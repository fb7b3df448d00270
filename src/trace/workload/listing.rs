//! One instruction as a workload file writes it.
//!
//! ```text
//! line     = ["@" operand] [register "="] opcode [register {"," register}]
//!            ["[" term "]"] ["#" ["-"] number]
//! register = "R" number | "R{" term "}" | "RZ"
//! ```
//! `@` guards: the lanes in which the operand (a name, a number, `(term)`,
//! `!name`) is not 0. `[…]` is the byte address of each lane. Registers are
//! those that a trace would list; `#` is the immediate that it would list.

use gpumodel_core::isa::Effect;

use super::reader::Reader;
use super::term::Term;

/// A register as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RegisterTerm {
    /// `R<n>`.
    Fixed(u16),
    /// `R{term}`, a constant once the bodies around it are unrolled.
    Indexed(Term),
}

/// One instruction as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Lanes that execute it; all active ones where missing.
    pub(super) guard: Option<Term>,
    /// Destination register.
    pub(super) destination: Option<RegisterTerm>,
    /// Dotted SASS text.
    pub(super) opcode: String,
    /// Source registers.
    pub(super) sources: Vec<RegisterTerm>,
    /// Byte address of a lane.
    pub(super) address: Option<Term>,
    /// Immediate.
    pub(super) immediate: i64,
}

/// Most sources of one instruction: what Accel-Sim's reader accepts.
const SOURCES: usize = 4;
/// Longest opcode: what is read of a trace.
const LONGEST_OPCODE: usize = 256;

impl Line {
    /// An instruction without operands.
    pub(super) fn bare(opcode: &str) -> Self {
        Self {
            guard: None,
            destination: None,
            opcode: opcode.to_owned(),
            sources: Vec::new(),
            address: None,
            immediate: 0,
        }
    }

    /// Reads one line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader::new(text);
        let guard = if reader.take("@") { Some(Term::read_operand(&mut reader)?) } else { None };
        let destination = read_destination(&mut reader)?;
        let opcode = read_opcode(&mut reader)?;
        let sources = read_sources(&mut reader)?;
        let address = read_address(&mut reader)?;
        let immediate = read_immediate(&mut reader)?;
        reader.end()?;
        let line = Self { guard, destination, opcode, sources, address, immediate };
        line.check()?;
        Ok(line)
    }

    fn check(&self) -> Result<(), String> {
        if self.opcode.contains("GMMA") {
            let opcode = &self.opcode;
            return Err(format!(
                "{opcode}: traces list its operands as text, which is not modelled"
            ));
        }
        if self.opcode.len() > LONGEST_OPCODE {
            return Err(format!("an opcode of more than {LONGEST_OPCODE} letters"));
        }
        if self.sources.len() > SOURCES {
            return Err(format!(
                "{} has {} source registers, expected at most {SOURCES}",
                self.opcode,
                self.sources.len()
            ));
        }
        match (AddressSpace::of(&self.opcode), &self.address) {
            (Some(_), None) => Err(format!("{} needs an address: `[…]`", self.opcode)),
            (None, Some(_)) => Err(format!("{} takes no address", self.opcode)),
            _ => Ok(()),
        }
    }

    /// Bytes per lane as the tracer derives them from the opcode's text: the
    /// first dotted part that is all digits, or `U` and digits, as bits; else 4.
    /// 0 for instructions without an address.
    pub(super) fn width(&self) -> u8 {
        if self.address.is_none() {
            return 0;
        }
        let bits = self.opcode.split('.').skip(1).find_map(|part| {
            let digits = part.strip_prefix('U').unwrap_or(part);
            digits.parse::<u32>().ok()
        });
        bits.and_then(|bits| u8::try_from(bits / 8).ok()).filter(|&bytes| bytes > 0).unwrap_or(4)
    }

    /// What the line does to the flow of its warp, if it is not just executed.
    pub(super) fn effect(&self) -> Effect {
        match root(&self.opcode) {
            "EXIT" => Effect::Exit,
            "BAR" => Effect::Barrier,
            _ => Effect::Compute,
        }
    }
}

/// Where the addresses of an opcode lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressSpace {
    /// In the workload's buffers.
    Buffers,
    /// In the CTA's shared memory.
    Shared,
    /// In the thread's local memory.
    Local,
}

impl AddressSpace {
    /// The space that `opcode` addresses; `None` where it has no address.
    pub(super) fn of(opcode: &str) -> Option<Self> {
        match root(opcode) {
            "LD" | "ST" | "LDG" | "STG" | "LDGSTS" | "ATOM" | "ATOMG" | "RED" => {
                Some(Self::Buffers)
            }
            "LDS" | "STS" | "ATOMS" | "LDSM" => Some(Self::Shared),
            "LDL" | "STL" => Some(Self::Local),
            _ => None,
        }
    }
}

fn root(opcode: &str) -> &str {
    opcode.split('.').next().unwrap_or(opcode)
}

fn read_register(reader: &mut Reader<'_>) -> Result<RegisterTerm, String> {
    if reader.take("R{") {
        let term = Term::read(reader)?;
        reader.expect("}")?;
        return Ok(RegisterTerm::Indexed(term));
    }
    let place = reader.place();
    let word = reader.word(|c| c.is_ascii_alphanumeric());
    if word == "RZ" {
        return Ok(RegisterTerm::Fixed(255));
    }
    let number = word.strip_prefix('R').and_then(|digits| digits.parse().ok());
    if let Some(number @ 0..=255) = number {
        return Ok(RegisterTerm::Fixed(number));
    }
    reader.back_to(place);
    Err(reader.surprise("a register (`R0` to `R254`, `RZ`, `R{…}`)"))
}

fn read_destination(reader: &mut Reader<'_>) -> Result<Option<RegisterTerm>, String> {
    let place = reader.place();
    if let Ok(register) = read_register(reader)
        && reader.take("=")
    {
        return Ok(Some(register));
    }
    reader.back_to(place);
    Ok(None)
}

fn read_opcode(reader: &mut Reader<'_>) -> Result<String, String> {
    let place = reader.place();
    let opcode = reader.word(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_');
    if opcode.starts_with(|c: char| c.is_ascii_uppercase()) {
        return Ok(opcode.to_owned());
    }
    reader.back_to(place);
    Err(reader.surprise("an opcode"))
}

fn read_sources(reader: &mut Reader<'_>) -> Result<Vec<RegisterTerm>, String> {
    let mut sources = Vec::new();
    if !reader.next_is(|c| c == 'R') {
        return Ok(sources);
    }
    loop {
        sources.push(read_register(reader)?);
        if !reader.take(",") {
            return Ok(sources);
        }
    }
}

fn read_address(reader: &mut Reader<'_>) -> Result<Option<Term>, String> {
    if !reader.take("[") {
        return Ok(None);
    }
    let term = Term::read(reader)?;
    reader.expect("]")?;
    Ok(Some(term))
}

fn read_immediate(reader: &mut Reader<'_>) -> Result<i64, String> {
    if !reader.take("#") {
        return Ok(0);
    }
    let negative = reader.take("-");
    let number = reader.number()?;
    Ok(if negative { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::{Line, RegisterTerm};

    #[test]
    fn a_line_reads_like_sass() {
        let line = Line::parse("@(lane < 4) R8 = LDG.E.64.SYS R2 [x + 8*global] #-7").unwrap();
        assert_eq!(line.opcode, "LDG.E.64.SYS");
        assert_eq!(line.destination, Some(RegisterTerm::Fixed(8)));
        assert_eq!(line.sources, [RegisterTerm::Fixed(2)]);
        assert_eq!((line.width(), line.immediate, line.guard.is_some()), (8, -7, true));
        assert_eq!(Line::parse("RED.E.ADD.STRONG.GPU R4, RZ [x]").unwrap().width(), 4);
        assert_eq!(Line::parse("R4 = LDG.E.U8.SYS R4 [x]").unwrap().width(), 1);
        assert_eq!(Line::parse("R4 = LDSM.16.M88.4 R4 [0]").unwrap().width(), 2);
        assert_eq!(Line::parse("R4 = LDG.E.S8 R4 [x]").unwrap().width(), 4);
        assert_eq!(Line::parse("FFMA").unwrap(), Line::bare("FFMA"));
    }

    #[test]
    fn broken_lines_say_what_was_expected() {
        for (text, word) in [
            ("", "opcode"),
            ("R1 =", "opcode"),
            ("R1 = LDG R2", "address"),
            ("R1 = FADD R2 [0]", "no address"),
            ("FADD R1, X2", "register"),
            ("FADD R1,", "register"),
            ("FADD R300", "register"),
            ("FADD R1 R2", "the end"),
            ("HGMMA.64x64x16.F32 R1", "not modelled"),
            ("FADD R1, R2, R3, R4, R5", "at most 4"),
            ("LDG R1 [x", "`]`"),
            ("MOV #x", "number"),
            ("@ MOV", "opcode"),
        ] {
            let fault = Line::parse(text).unwrap_err();
            assert!(fault.contains(word), "{text}: {fault}");
        }
    }
}
