//! The `code` of a kernel as written: instructions, loops, unrolled bodies, branches.
//!
//! ```text
//! line     = ["@" operand] [register "="] opcode [register {"," register}]
//!            ["[" expression "]"] ["#" ["-"] number | "#{" expression "}"]
//! opcode   = letters, digits, ".", "_" and "{" expression "}"
//! register = "R" number | "R{" expression "}" | "RZ"
//! ```
//! `@` guards: the lanes in which the operand (a name, a number, `(expression)`, `!name`) is
//! not 0. `[…]` is the byte address of each lane. Registers are those that a trace would
//! list; `#` is the immediate that it would list, `#{…}` the value of the second source of a
//! step at a barrier object.

use gpumodel_core::expression::{
    Expression, Parsed, SyntaxError, expected, expression, number, operand, parse_whole, symbol,
};
use gpumodel_core::isa::{Effect, traced_width};
use gpumodel_core::toml::{Content, Entry, Place, Section};
use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::take_while1;
use nom::character::complete::char;
use nom::combinator::{cut, map_opt, opt, recognize, verify};
use nom::multi::{many1_count, separated_list1};
use nom::sequence::{delimited, preceded, terminated};

use super::WorkloadError;
use super::asynchronous::BULK;

/// One entry of a body.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// Where it stands.
    pub(super) place: Place,
    /// What it says.
    pub(super) kind: StepKind,
}

/// What an entry of a body says.
#[derive(Clone, Debug)]
pub(super) enum StepKind {
    /// One instruction.
    Line(Line),
    /// A body that runs `count` times, with a branch back at its end.
    Loop {
        /// Name of the index in the body, from 0.
        index: String,
        /// Times, per lane.
        count: Expression,
        /// Register that counts: adds its update and test to the body.
        counter: Option<RegisterName>,
        /// What is repeated.
        body: Vec<Step>,
    },
    /// A body written out `count` times.
    Copies {
        /// Name of the index in the body, from 0.
        index: String,
        /// Copies, a constant.
        count: Expression,
        /// What is copied.
        body: Vec<Step>,
    },
    /// A bulk copy between global and shared memory.
    Bulk(Bulk),
    /// A branch around a body.
    When {
        /// Lanes that run `body`.
        condition: Expression,
        /// What they run.
        body: Vec<Step>,
        /// What the other lanes run.
        otherwise: Vec<Step>,
    },
}

/// A bulk copy as written: a box of rows, and the barrier object that counts its bytes.
#[derive(Clone, Debug)]
pub(super) struct Bulk {
    /// Dotted SASS text.
    pub(super) opcode: String,
    /// Global address of the first row.
    pub(super) address: Expression,
    /// Rows, a constant.
    pub(super) rows: Expression,
    /// Bytes of a row, a constant.
    pub(super) row_bytes: Expression,
    /// Bytes from row to row, a constant.
    pub(super) pitch: Expression,
    /// Offset of the barrier object in shared memory; `None` for copies to global memory.
    pub(super) object: Option<Expression>,
    /// The CTAs of the cluster that get it, a bit each by rank, a constant; 0: its own.
    pub(super) multicast: Expression,
}

/// Deepest nesting of bodies.
const NESTING: usize = 16;

/// Reads the body at `entry`.
pub(super) fn read_body(entry: &Entry<'_>) -> Result<Vec<Step>, WorkloadError> {
    read_steps(entry, 0)
}

fn read_steps(entry: &Entry<'_>, depth: usize) -> Result<Vec<Step>, WorkloadError> {
    if depth > NESTING {
        let what = format!("bodies nest more than {NESTING} deep");
        return Err(WorkloadError::invalid(entry.place(), what));
    }
    entry.items()?.iter().map(|item| read_step(item, depth)).collect()
}

fn read_step(entry: &Entry<'_>, depth: usize) -> Result<Step, WorkloadError> {
    let kind = match entry.content() {
        Content::Text(line) => {
            let parsed = Line::parse(line);
            StepKind::Line(parsed.map_err(|error| {
                WorkloadError::invalid(entry.place(), format!("in `{line}`: {error}"))
            })?)
        }
        Content::Table(table) if table.contains_key("loop") => {
            let section = entry.section(&["loop", "count", "counter", "body"])?;
            let (index, count) = read_index(&section, "loop")?;
            let counter = section.get("counter").as_ref().map(read_counter).transpose()?;
            let body = read_steps(&section.require("body")?, depth + 1)?;
            StepKind::Loop { index, count, counter, body }
        }
        Content::Table(table) if table.contains_key("copies") => {
            let section = entry.section(&["copies", "count", "body"])?;
            let (index, count) = read_index(&section, "copies")?;
            let body = read_steps(&section.require("body")?, depth + 1)?;
            StepKind::Copies { index, count, body }
        }
        Content::Table(table) if table.contains_key("when") => {
            let section = entry.section(&["when", "body", "else"])?;
            let condition = read_expression(&section.require("when")?)?;
            let body = read_steps(&section.require("body")?, depth + 1)?;
            let otherwise = section.get("else").map(|entry| read_steps(&entry, depth + 1));
            let otherwise = otherwise.transpose()?.unwrap_or_default();
            StepKind::When { condition, body, otherwise }
        }
        Content::Table(table) if table.contains_key("bulk") => StepKind::Bulk(read_bulk(entry)?),
        Content::Table(_) => {
            entry.section(&["loop", "copies", "when", "bulk", "count", "body", "else"])?;
            let expected = "a section with one of the keys `loop`, `copies`, `when`, `bulk`";
            return Err(entry.wrong(expected).into());
        }
        _ => return Err(entry.wrong("an instruction or a section").into()),
    };
    Ok(Step { place: entry.place().clone(), kind })
}

const BULK_KEYS: [&str; 7] =
    ["bulk", "address", "rows", "row_bytes", "pitch", "object", "multicast"];

/// A bulk copy; a row alone needs no `pitch`, a copy to global memory no `object`.
fn read_bulk(entry: &Entry<'_>) -> Result<Bulk, WorkloadError> {
    let section = entry.section(&BULK_KEYS)?;
    let expression = |key| read_expression(&section.require(key)?);
    let or_zero = |key| section.get(key).map(|entry| read_expression(&entry)).transpose();
    let opcode = section.text("bulk")?.to_owned();
    if !is_bulk(&opcode) || opcode.contains(char::is_whitespace) || opcode.len() > LONGEST_OPCODE {
        let what = format!("`bulk` is `{opcode}`, expected an opcode of {}", BULK.join(", "));
        return Err(WorkloadError::invalid(entry.place(), what));
    }
    Ok(Bulk {
        opcode,
        address: expression("address")?,
        rows: expression("rows")?,
        row_bytes: expression("row_bytes")?,
        pitch: or_zero("pitch")?.unwrap_or(Expression::Number(0)),
        object: or_zero("object")?,
        multicast: or_zero("multicast")?.unwrap_or(Expression::Number(0)),
    })
}

/// The name of an index at `key`, and how often the body comes.
fn read_index(section: &Section<'_>, key: &str) -> Result<(String, Expression), WorkloadError> {
    let index = section.text(key)?.to_owned();
    Ok((index, read_expression(&section.require("count")?)?))
}

fn read_counter(entry: &Entry<'_>) -> Result<RegisterName, WorkloadError> {
    parse_whole(entry.text()?, register).map_err(|_| entry.wrong("a register").into())
}

/// An expression: a text, or an integer.
pub(super) fn read_expression(entry: &Entry<'_>) -> Result<Expression, WorkloadError> {
    match entry.content() {
        Content::Integer(value) => Ok(Expression::Number(*value)),
        Content::Text(written) => Expression::parse(written).map_err(|error| {
            let what = format!("`{}` is `{written}`: {error}", entry.name());
            WorkloadError::invalid(entry.place(), what)
        }),
        _ => Err(entry.wrong("an integer or an expression").into()),
    }
}

/// A register as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RegisterName {
    /// `R<n>`.
    Fixed(u16),
    /// `R{expression}`, a constant once the bodies around it are unrolled.
    Indexed(Expression),
}

/// One instruction as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Lanes that execute it; all active ones where missing.
    pub(super) guard: Option<Expression>,
    /// Destination register.
    pub(super) destination: Option<RegisterName>,
    /// Dotted SASS text; `{expression}` in it is a constant once the bodies around it are
    /// unrolled.
    pub(super) opcode: String,
    /// Source registers.
    pub(super) sources: Vec<RegisterName>,
    /// Byte address of a lane.
    pub(super) address: Option<Expression>,
    /// Immediate.
    pub(super) immediate: i64,
    /// Value of the second source of a step at a barrier object.
    pub(super) value: Option<Expression>,
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
            value: None,
        }
    }

    /// Reads one line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let line = parse_whole(text, line).map_err(|error: SyntaxError| error.to_string())?;
        line.check()?;
        Ok(line)
    }

    fn check(&self) -> Result<(), String> {
        let opcode = &self.opcode;
        if is_bulk(opcode) {
            return Err(format!("{opcode} is written as a table: `{{ bulk = \"{opcode}\", … }}`"));
        }
        if opcode.len() > LONGEST_OPCODE {
            return Err(format!("an opcode of more than {LONGEST_OPCODE} letters"));
        }
        if self.sources.len() > SOURCES {
            let count = self.sources.len();
            return Err(format!(
                "{opcode} has {count} source registers, expected at most {SOURCES}"
            ));
        }
        if self.value.is_some() && !(self.is_object_step() && self.sources.len() >= 2) {
            return Err(format!(
                "{opcode}: only SYNCS with two sources, the address's and the value's, has `#{{…}}`"
            ));
        }
        match (AddressSpace::of(opcode), &self.address) {
            (Some(_), None) => Err(format!("{opcode} needs an address: `[…]`")),
            (None, Some(_)) => Err(format!("{opcode} takes no address")),
            _ => Ok(()),
        }
    }

    /// Bytes per lane as the tracer derives them from the opcode; 0 for instructions without
    /// an address.
    pub(super) fn width(&self) -> u8 {
        match self.address {
            Some(_) if self.is_object_step() => OBJECT_BYTES,
            Some(_) => traced_width(&self.opcode),
            None => 0,
        }
    }

    /// True for a step at a barrier object.
    pub(super) fn is_object_step(&self) -> bool {
        matches!(root(&self.opcode), "SYNCS")
    }

    /// True for a matrix multiply of a warp group, of which traces keep the fields as text.
    pub(super) fn is_group_multiply(&self) -> bool {
        self.opcode.contains("GMMA")
    }

    /// True for the step that makes a barrier object.
    pub(super) fn makes_object(&self) -> bool {
        self.opcode.starts_with("SYNCS.EXCH")
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

/// Bytes of a barrier object (PTX ISA, `mbarrier`).
const OBJECT_BYTES: u8 = 8;

/// True for a bulk copy.
fn is_bulk(opcode: &str) -> bool {
    BULK.contains(&root(opcode))
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
            "LDS" | "STS" | "ATOMS" | "LDSM" | "STSM" | "SYNCS" | "ARRIVES" => Some(Self::Shared),
            "LDL" | "STL" => Some(Self::Local),
            _ => None,
        }
    }
}

fn root(opcode: &str) -> &str {
    opcode.split('.').next().unwrap_or(opcode)
}

fn line(input: &str) -> Parsed<'_, Line> {
    let guard = opt(preceded(symbol("@"), cut(operand)));
    let destination = opt(terminated(register, symbol("=")));
    let parts = (guard, destination, opcode, sources, address, value, immediate);
    let line = |(guard, destination, opcode, sources, address, value, immediate)| Line {
        guard,
        destination,
        opcode,
        sources,
        address,
        immediate,
        value,
    };
    parts.map(line).parse(input)
}

fn opcode(input: &str) -> Parsed<'_, String> {
    let word = take_while1(|c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_');
    let computed = recognize(delimited(char('{'), cut(expression), cut(symbol("}"))));
    let whole = recognize(many1_count(alt((word, computed))));
    let opcode = verify(whole, |word: &str| word.starts_with(|c: char| c.is_ascii_uppercase()));
    expected("an opcode", opcode.map(str::to_owned)).parse(input)
}

fn register(input: &str) -> Parsed<'_, RegisterName> {
    let fixed = map_opt(take_while1(|c: char| c.is_ascii_alphanumeric()), |word: &str| {
        let number = match word.strip_prefix('R')? {
            "Z" => 255,
            digits => digits.parse().ok()?,
        };
        (number <= 255).then_some(RegisterName::Fixed(number))
    });
    let indexed = delimited(symbol("R{"), cut(expression), cut(symbol("}")));
    let either = alt((indexed.map(RegisterName::Indexed), fixed));
    expected("a register (`R0` to `R254`, `RZ`, `R{…}`)", either).parse(input)
}

fn sources(input: &str) -> Parsed<'_, Vec<RegisterName>> {
    if !input.trim_start().starts_with('R') {
        return Ok((input, Vec::new()));
    }
    separated_list1(symbol(","), cut(register)).parse(input)
}

fn address(input: &str) -> Parsed<'_, Option<Expression>> {
    opt(delimited(symbol("["), cut(expression), cut(symbol("]")))).parse(input)
}

fn value(input: &str) -> Parsed<'_, Option<Expression>> {
    opt(delimited(symbol("#{"), cut(expression), cut(symbol("}")))).parse(input)
}

fn immediate(input: &str) -> Parsed<'_, i64> {
    let signed = (opt(symbol("-")), cut(number)).map(|(sign, number)| match sign {
        Some(_) => -number,
        None => number,
    });
    opt(preceded(symbol("#"), signed)).map(Option::unwrap_or_default).parse(input)
}

#[cfg(test)]
mod tests {
    use super::{Line, RegisterName};

    #[test]
    fn a_line_reads_like_sass() {
        let line = Line::parse("@(lane < 4) R8 = LDG.E.64.SYS R2 [x + 8*global] #-7").unwrap();
        assert_eq!(line.opcode, "LDG.E.64.SYS");
        assert_eq!(line.destination, Some(RegisterName::Fixed(8)));
        assert_eq!(line.sources, [RegisterName::Fixed(2)]);
        assert_eq!((line.width(), line.immediate, line.guard.is_some()), (8, -7, true));
        assert_eq!(Line::parse("RED.E.ADD.STRONG.GPU R4, RZ [x]").unwrap().width(), 4);
        assert_eq!(Line::parse("FFMA").unwrap(), Line::bare("FFMA"));
        let step = Line::parse("SYNCS.PHASECHK.TRANS64.TRYWAIT R2, R3 [8] #{warp % 2}").unwrap();
        assert_eq!((step.width(), step.value.is_some(), step.is_object_step()), (8, true, true));
        assert!(Line::parse("R24 = HGMMA.64x64x16.F32 R24 #1").unwrap().is_group_multiply());
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
            ("UTMALDG.2D R1", "table"),
            ("FADD R1, R2 #{lane}", "SYNCS"),
            ("SYNCS.EXCH.64 R1 [0] #{lane}", "two sources"),
            ("SYNCS.EXCH.64 R1, R2 [0] #{lane", "`}`"),
            ("FADD R1, R2, R3, R4, R5", "at most 4"),
            ("LDG R1 [x", "`]`"),
            ("MOV #x", "number"),
            ("@ MOV", "opcode"),
        ] {
            let error = Line::parse(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
