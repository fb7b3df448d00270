//! Parses one block of text, independently of all others: instruction lines to
//! records, frame lines to marks.

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::Arc;

use crate::store::records::{AddressList, Batch, Record, Static};
use gpumodel_core::units::{Dim3, quoted, to_u32, to_u64, to_usize};

use super::header::position;
use super::line;
use super::line_cache::{LineCache, Match, NONE, Parts};
use crate::error::LineFault;

/// The format of all lines of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dialect {
    /// Fields before the source line and the PC: 0, or CTA in x, y, z, warp
    /// and perhaps more.
    pub(crate) leading: usize,
    pub(crate) line_info: bool,
    /// Lines of all warps are interleaved, without a frame.
    pub(crate) raw: bool,
    pub(crate) grid: Dim3,
    pub(crate) warps_per_cta: u32,
}

/// A line of the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// `#BEGIN_TB`
    Begin,
    /// `thread block = x,y,z`
    Position(Dim3),
    /// `warp = w`
    Warp(u32),
    /// `insts = n`
    Instructions(u64),
    /// `#END_TB`
    End,
    /// Any other `key = value`.
    Note(Box<[u8]>),
    /// The first of some instruction lines that follow no `insts`.
    Stray,
}

/// A mark and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Marked {
    pub(crate) mark: Mark,
    /// Records and accesses before it.
    pub(crate) record: usize,
    pub(crate) access: usize,
    /// Line in the block, from 0.
    pub(crate) line: u64,
}

/// A parsed block.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    pub(crate) batch: Batch,
    pub(crate) marks: Vec<Marked>,
    /// Raw form: linear CTA times warps plus warp, per record.
    pub(crate) places: Vec<u64>,
    /// Lines of the block.
    pub(crate) lines: u64,
}

/// Guesses per warp of raw text; a power of two.
const GUESSES: usize = 1 << 10;

/// The state of parsing one block.
struct Parser<'a> {
    dialect: &'a Dialect,
    piece: Piece,
    statics: Vec<Static>,
    numbers: HashMap<Static, u32>,
    memo: LineCache,
    /// The entry of the last line (of each warp, in raw text).
    last: Vec<u32>,
    line: u64,
}

/// Parses `text`, whole lines.
///
/// # Errors
/// A [`LineFault`] at the first line that is neither an instruction nor a frame line.
pub(crate) fn parse(text: &[u8], dialect: &Dialect) -> Result<Piece, LineFault> {
    let mut parser = Parser {
        dialect,
        piece: Piece::default(),
        statics: Vec::new(),
        numbers: HashMap::new(),
        memo: LineCache::default(),
        last: vec![NONE; if dialect.raw { GUESSES } else { 1 }],
        line: 0,
    };
    let mut rest = text;
    while !rest.is_empty() {
        let bytes = parser.step(rest)?;
        rest = &rest[bytes..];
        parser.line += 1;
    }
    let mut piece = parser.piece;
    piece.lines = parser.line;
    piece.batch.order = (0..to_u32(parser.statics.len())).collect();
    piece.batch.statics = Arc::new(parser.statics);
    Ok(piece)
}

impl Parser<'_> {
    /// Takes one line; returns its bytes.
    fn step(&mut self, text: &[u8]) -> Result<usize, LineFault> {
        let (place, skipped) = match self.dialect.leading {
            0 => (0, 0),
            _ if !text[0].is_ascii_digit() => (0, 0),
            _ => self.place(text)?,
        };
        let instruction = &text[skipped..];
        let last = to_usize(place) & (self.last.len() - 1);
        let guess = self.memo.entries.get(to_usize(self.last[last])).map_or(0, |entry| entry.next);
        let fields = 1 + usize::from(self.dialect.line_info);
        let deltas = &mut self.piece.batch.deltas;
        if let Some(found) = self.memo.find(instruction, guess, fields, deltas) {
            self.take(found, place, last);
            return Ok(skipped + found.bytes);
        }
        let mut after = text;
        // Reading from memory cannot fail.
        let bytes = after.skip_until(b'\n').unwrap_or(text.len());
        let whole = &text[..bytes];
        match whole.trim_ascii() {
            b"" => {}
            content if content[0] == b'#' || is_frame(content) => self.frame(content)?,
            content => match self.instruction(&whole[skipped..], place, last) {
                Err(_) if is_note(content) => self.frame(content)?,
                taken => taken?,
            },
        }
        Ok(bytes)
    }

    /// The warp that a line names, as linear CTA times warps plus warp, and the
    /// bytes of the line before its own fields.
    #[inline]
    fn place(&self, text: &[u8]) -> Result<(u64, usize), LineFault> {
        let mut rest = text;
        let mut fields = [0; 4];
        for index in 0..self.dialect.leading {
            let Some((value, after)) = leading_number(rest) else {
                let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
                return Err(self.fault("CTA x, y, z and warp as decimal numbers", line));
            };
            if let Some(field) = fields.get_mut(index) {
                *field = value;
            }
            rest = after;
        }
        let [x, y, z, warp] = fields;
        let Dialect { grid, warps_per_cta, .. } = *self.dialect;
        let cta = Dim3::new(x, y, z);
        if self.dialect.raw && !(cta.inside(grid) && warp < warps_per_cta) {
            let expected = format!("a CTA inside {grid} and a warp below {warps_per_cta}");
            return Err(self.fault(expected, format!("CTA {cta} warp {warp}").as_bytes()));
        }
        let linear = cta.linear(grid).wrapping_mul(u64::from(warps_per_cta));
        Ok((linear.wrapping_add(u64::from(warp)), text.len() - rest.len()))
    }

    /// Adds the record of a line that the memo knows.
    #[inline]
    fn take(&mut self, found: Match, place: u64, last: usize) {
        self.follow(found.entry, last);
        let entry = &self.memo.entries[to_usize(found.entry)];
        if !entry.tail.is_empty() {
            let at = to_u32(self.piece.batch.records.len());
            self.piece.batch.tails.push((at, entry.tail.clone()));
        }
        let number = entry.number;
        self.record(number, found.mask, found.lines, place);
    }

    #[inline]
    fn record(&mut self, number: u32, mask: u32, lines: Option<AddressList>, place: u64) {
        if !self.dialect.raw && self.at_mark() {
            self.stray();
        }
        self.piece.batch.records.push(Record { number, mask });
        self.piece.batch.accesses.extend(lines);
        if self.dialect.raw {
            self.piece.places.push(place);
        }
    }

    /// No record has come since the last mark.
    #[inline]
    fn at_mark(&self) -> bool {
        self.piece.marks.last().is_some_and(|m| m.record == self.piece.batch.records.len())
    }

    /// Marks a record that follows another mark than `insts`.
    fn stray(&mut self) {
        let last = self.piece.marks.last().map(|marked| &marked.mark);
        if !matches!(last, None | Some(Mark::Instructions(_))) {
            self.mark(Mark::Stray);
        }
    }

    fn mark(&mut self, mark: Mark) {
        let batch = &self.piece.batch;
        let (record, access) = (batch.records.len(), batch.accesses.len());
        self.piece.marks.push(Marked { mark, record, access, line: self.line });
    }

    fn fault(&self, expected: impl Into<String>, found: &[u8]) -> LineFault {
        LineFault::new(self.line, expected, quoted(found.trim_ascii_end()))
    }

    /// Takes a line of the frame.
    fn frame(&mut self, content: &[u8]) -> Result<(), LineFault> {
        match content {
            b"#BEGIN_TB" => self.mark(Mark::Begin),
            b"#END_TB" => self.mark(Mark::End),
            _ if content[0] == b'#' => return Err(self.fault("`#BEGIN_TB` or `#END_TB`", content)),
            _ => {
                let mark = assignment(content);
                let mark = mark.map_err(|expected| self.fault(expected, content))?;
                self.mark(mark);
            }
        }
        Ok(())
    }

    /// Takes an instruction line that the memo does not know.
    fn instruction(&mut self, text: &[u8], place: u64, last: usize) -> Result<(), LineFault> {
        let fields = line::parse(text, self.dialect.line_info);
        let fields = fields.map_err(|stop| {
            let LineFault { line, expected, found } = self.fault(stop.what, text);
            let at = quoted(stop.at.trim_ascii());
            let whole =
                if stop.at.len() < text.len() { format!(" in {found}") } else { String::new() };
            LineFault { line, expected, found: format!("{at}{whole}") }
        })?;
        let head = &text[..text.len() - fields.from_mask.len()];
        let after_mask = &fields.from_mask[8..];
        let addressed = fields.addresses.is_some();
        let body_end = if addressed { fields.after_width.len() } else { 0 };
        let body = &after_mask[..after_mask.len() - body_end];
        let rest = if addressed { fields.after_addresses } else { &[] };
        let number = self.number(fields.fixed);
        let lines = fields.addresses.map(|addresses| self.lines(&addresses));
        let parts = Parts { head, body, rest, tail: fields.tail };
        let known = self.memo.known(parts);
        let entry = known.unwrap_or_else(|| self.memo.learn(parts, number, addressed));
        if !fields.tail.is_empty() {
            let at = to_u32(self.piece.batch.records.len());
            self.piece.batch.tails.push((at, fields.tail.into()));
        }
        self.record(number, fields.mask, lines, place);
        self.follow(entry, last);
        Ok(())
    }

    /// Makes `entry` the last one and the successor of the one before.
    #[inline]
    fn follow(&mut self, entry: u32, last: usize) {
        let previous = std::mem::replace(&mut self.last[last], entry);
        if let Some(previous) = self.memo.entries.get_mut(to_usize(previous)) {
            previous.next = entry;
        }
    }

    fn number(&mut self, new: Static) -> u32 {
        if let Some(&number) = self.numbers.get(&new) {
            return number;
        }
        let number = to_u32(self.statics.len());
        self.statics.push(new.clone());
        self.numbers.insert(new, number);
        number
    }

    fn lines(&mut self, addresses: &line::Addresses) -> AddressList {
        let deltas = &mut self.piece.batch.deltas;
        let start = to_u32(deltas.len());
        deltas.extend_from_slice(&addresses.deltas);
        let delta_count = crate::store::varint::low_byte(to_u64(addresses.deltas.len()));
        let line::Addresses { mode, base, stride, .. } = *addresses;
        AddressList { mode, base, stride, deltas: start, delta_count }
    }
}

/// True for the lines that every thread block has.
fn is_frame(content: &[u8]) -> bool {
    [&b"thread block"[..], b"warp", b"insts"].iter().any(|key| content.starts_with(key))
}

/// True for any other `key = value`.
fn is_note(content: &[u8]) -> bool {
    content[0].is_ascii_lowercase() && content.windows(3).any(|three| three == b" = ")
}

/// A `key = value` line of the frame; fails with what was expected.
fn assignment(content: &[u8]) -> Result<Mark, &'static str> {
    let text = String::from_utf8_lossy(content);
    let (key, value) = text.split_once('=').unwrap_or((&text, ""));
    let value = value.trim();
    match key.trim() {
        "thread block" => position(value).map(Mark::Position).ok_or("`thread block = x,y,z`"),
        "warp" => value.parse().map(Mark::Warp).map_err(|_| "`warp = NUMBER`"),
        "insts" => value.parse().map(Mark::Instructions).map_err(|_| "`insts = NUMBER`"),
        _ => Ok(Mark::Note(content.into())),
    }
}

/// A decimal number and the space after it.
#[inline]
fn leading_number(text: &[u8]) -> Option<(u32, &[u8])> {
    let mut value = 0_u32;
    let mut count = 0;
    while let Some(&digit @ b'0'..=b'9') = text.get(count) {
        value = value.checked_mul(10)?.checked_add(u32::from(digit - b'0'))?;
        count += 1;
    }
    let rest = text[count..].strip_prefix(b" ")?;
    (count > 0).then_some((value, rest))
}
