//! The `code` of a kernel as written: lines, loops, unrolled bodies, branches.

use toml::Spanned;
use toml::de::DeValue;

use super::document::{Keys, mismatch, text};
use super::error::Fault;
use super::listing::{Line, RegisterTerm};
use super::term::Term;

/// One entry of a body.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// Byte of the entry in the file.
    pub(super) at: usize,
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
        count: Term,
        /// Register that counts: adds its update and test to the body.
        counter: Option<RegisterTerm>,
        /// What is repeated.
        body: Vec<Step>,
    },
    /// A body written out `count` times.
    Copies {
        /// Name of the index in the body, from 0.
        index: String,
        /// Copies, a constant.
        count: Term,
        /// What is copied.
        body: Vec<Step>,
    },
    /// A branch around a body.
    When {
        /// Lanes that run `body`.
        condition: Term,
        /// What they run.
        body: Vec<Step>,
        /// What the other lanes run.
        otherwise: Vec<Step>,
    },
}

/// Deepest nesting of bodies.
const NESTING: usize = 16;

/// Reads the body at `key`.
pub(super) fn read_body(keys: &Keys<'_>, key: &str) -> Result<Vec<Step>, Fault> {
    read_steps(keys, key, 0)
}

fn read_steps(keys: &Keys<'_>, key: &str, depth: usize) -> Result<Vec<Step>, Fault> {
    if depth > NESTING {
        return Err(Fault::new(keys.at(), format!("bodies nest more than {NESTING} deep")));
    }
    keys.items(key)?.into_iter().map(|item| read_step(item, depth)).collect()
}

fn read_step(value: &Spanned<DeValue<'_>>, depth: usize) -> Result<Step, Fault> {
    let at = value.span().start;
    let kind = match value.get_ref() {
        DeValue::String(line) => {
            let parsed = Line::parse(line);
            StepKind::Line(parsed.map_err(|e| Fault::new(at, format!("in `{line}`: {e}")))?)
        }
        DeValue::Table(table) if table.contains_key("loop") => {
            let known = ["loop", "count", "counter", "body"];
            read_loop(&Keys::new(table, at, "a loop", &known)?, depth)?
        }
        DeValue::Table(table) if table.contains_key("copies") => {
            let known = ["copies", "count", "body"];
            let keys = Keys::new(table, at, "copies", &known)?;
            let index = keys.text("copies")?.to_owned();
            let count = read_term(keys.require("count")?, "count")?;
            StepKind::Copies { index, count, body: read_steps(&keys, "body", depth + 1)? }
        }
        DeValue::Table(table) if table.contains_key("when") => {
            let keys = Keys::new(table, at, "a branch", &["when", "body", "else"])?;
            read_when(&keys, depth)?
        }
        DeValue::Table(table) => {
            Keys::new(table, at, "a body", &["loop", "copies", "when", "count", "body", "else"])?;
            let what = "a table in a body needs one of the keys `loop`, `copies`, `when`";
            return Err(Fault::new(at, what));
        }
        _ => return Err(mismatch(value, "code", "an instruction or a table")),
    };
    Ok(Step { at, kind })
}

fn read_loop(keys: &Keys<'_>, depth: usize) -> Result<StepKind, Fault> {
    let index = keys.text("loop")?.to_owned();
    let count = read_term(keys.require("count")?, "count")?;
    let counter = keys.get("counter").map(read_counter).transpose()?;
    Ok(StepKind::Loop { index, count, counter, body: read_steps(keys, "body", depth + 1)? })
}

fn read_when(keys: &Keys<'_>, depth: usize) -> Result<StepKind, Fault> {
    let condition = read_term(keys.require("when")?, "when")?;
    let body = read_steps(keys, "body", depth + 1)?;
    let otherwise = match keys.get("else") {
        Some(_) => read_steps(keys, "else", depth + 1)?,
        None => Vec::new(),
    };
    Ok(StepKind::When { condition, body, otherwise })
}

fn read_counter(value: &Spanned<DeValue<'_>>) -> Result<RegisterTerm, Fault> {
    let written = text(value, "counter")?;
    // A line that only moves into the register: the same grammar.
    let line = Line::parse(&format!("{written} = MOV"));
    match line.map(|line| line.destination) {
        Ok(Some(register)) => Ok(register),
        _ => Err(Fault::new(
            value.span().start,
            format!("`counter` is `{written}`, expected a register"),
        )),
    }
}

/// An expression: a text, or an integer.
pub(super) fn read_term(value: &Spanned<DeValue<'_>>, key: &str) -> Result<Term, Fault> {
    match value.get_ref() {
        DeValue::Integer(_) => super::document::integer(value, key).map(Term::Number),
        DeValue::String(written) => Term::parse(written)
            .map_err(|e| Fault::new(value.span().start, format!("`{key}` is `{written}`: {e}"))),
        _ => Err(mismatch(value, key, "an integer or an expression")),
    }
}
