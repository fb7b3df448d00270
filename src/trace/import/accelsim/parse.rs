//! Parses one block of text, independently of all others: instruction lines to
//! records, frame lines to marks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::store::records::{AddressList, Batch, Record, Spares, Static};
use gpumodel_core::units::{Dim3, quoted, to_u32, to_u64, to_usize};

use super::header::position;
use super::line;
use super::line_cache::{LineCache, NONE, Parts};
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

/// Parses the blocks of one file on any thread. What it learns of lines in one block serves
/// the next ones; what it makes of a block depends on that block alone.
#[derive(Debug)]
pub(crate) struct TextParser {
    pub(crate) dialect: Dialect,
    /// What was learnt, by the threads that are between two blocks.
    idle: Mutex<Vec<Learnt>>,
    spares: Arc<Spares>,
}

/// What was learnt of a file's lines.
#[derive(Debug, Default)]
struct Learnt {
    statics: Arc<Vec<Static>>,
    numbers: FxHashMap<Static, u32>,
    /// Statics that the block has.
    seen: Vec<bool>,
    cache: LineCache,
    /// Records, accesses and differences of the last block: as many are expected of the next.
    sizes: [usize; 3],
}

impl TextParser {
    /// Nothing was learnt yet.
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self { dialect, idle: Mutex::default(), spares: Arc::default() }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Learnt>> {
        // Only pushed to and popped from: whole even after a panic.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Parses `text`, whole lines.
    ///
    /// # Errors
    /// A [`LineFault`] at the first line that is neither an instruction nor a frame line.
    pub(crate) fn parse(&self, text: &[u8]) -> Result<Piece, LineFault> {
        let learnt = self.idle().pop().filter(|learnt| !learnt.cache.full());
        let piece = Piece { batch: self.spares.batch(), ..Piece::default() };
        let mut parser = Parser::new(&self.dialect, piece, learnt.unwrap_or_default());
        let mut rest = text;
        while !rest.is_empty() {
            let bytes = parser.step(rest)?;
            rest = &rest[bytes..];
            parser.line += 1;
        }
        let (piece, learnt) = parser.end();
        self.idle().push(learnt);
        Ok(piece)
    }
}

/// The state of parsing one block.
struct Parser<'a> {
    dialect: &'a Dialect,
    piece: Piece,
    learnt: Learnt,
    /// The entry of the last line (of each warp, in raw text).
    last: Vec<u32>,
    line: u64,
    /// No record has come since the last mark.
    at_mark: bool,
}

impl<'a> Parser<'a> {
    fn new(dialect: &'a Dialect, mut piece: Piece, mut learnt: Learnt) -> Self {
        learnt.cache.begin();
        learnt.seen.fill(false);
        let [records, accesses, deltas] = learnt.sizes.map(|size| size + size / 8);
        piece.batch.records.reserve(records);
        piece.batch.accesses.reserve(accesses);
        piece.batch.deltas.reserve(deltas);
        let last = vec![NONE; if dialect.raw { GUESSES } else { 1 }];
        Self { dialect, piece, learnt, last, line: 0, at_mark: false }
    }

    fn end(self) -> (Piece, Learnt) {
        let Self { mut piece, mut learnt, .. } = self;
        let batch = &piece.batch;
        learnt.sizes = [batch.records.len(), batch.accesses.len(), batch.deltas.len()];
        piece.lines = self.line;
        piece.batch.statics = Arc::clone(&learnt.statics);
        (piece, learnt)
    }

    /// Takes one line; returns its bytes.
    fn step(&mut self, text: &[u8]) -> Result<usize, LineFault> {
        let (place, skipped) = match self.dialect.leading {
            0 => (0, 0),
            _ if !text[0].is_ascii_digit() => (0, 0),
            _ => self.place(text)?,
        };
        let instruction = &text[skipped..];
        let last = to_usize(place) & (self.last.len() - 1);
        let entries = &self.learnt.cache.entries;
        let guess = entries.get(to_usize(self.last[last])).map_or(0, |entry| entry.next);
        if let Some(bytes) = self.known(guess, instruction, place) {
            self.last[last] = guess;
            return Ok(skipped + bytes);
        }
        if let Some(bytes) = self.like(instruction, place, last) {
            return Ok(skipped + bytes);
        }
        let bytes = line::bytes(text);
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

    /// Takes the line at the start of `text` if this entry explains it; returns its bytes.
    #[inline(always)] // into the loop over all lines
    fn known(&mut self, number: u32, text: &[u8], place: u64) -> Option<usize> {
        let entry = self.learnt.cache.entries.get_mut(to_usize(number))?;
        let batch = &mut self.piece.batch;
        let (mask, mut bytes) = entry.start(text)?;
        let mut access = None;
        if entry.addressed {
            let (found, more) = entry.access(&text[bytes..], mask, &mut batch.deltas)?;
            // If the tail is another one, the differences stay and no access has them.
            (access, bytes) = (Some(found), bytes + more);
        }
        let (tail, more) = entry.end(&text[bytes..], &mut batch.texts)?;
        if let Some(tail) = tail {
            batch.tails.push((to_u32(batch.records.len()), tail));
        }
        bytes += more;
        let (number, seen) = (entry.number, std::mem::replace(&mut entry.seen, true));
        if !seen {
            self.see(number);
        }
        self.record(number, mask, access, place);
        Some(bytes)
    }

    /// The same with any entry that lines of its program counter had.
    #[cold]
    fn like(&mut self, text: &[u8], place: u64, last: usize) -> Option<usize> {
        let fields = 1 + usize::from(self.dialect.line_info);
        for entry in self.learnt.cache.like(text, fields) {
            if let Some(bytes) = self.known(entry, text, place) {
                self.follow(entry, last);
                return Some(bytes);
            }
        }
        None
    }

    #[inline(always)]
    fn record(&mut self, number: u32, mask: u32, access: Option<AddressList>, place: u64) {
        if self.at_mark {
            self.stray();
            self.at_mark = false;
        }
        self.piece.batch.records.push(Record { number, mask });
        if let Some(access) = access {
            self.piece.batch.accesses.push(access);
        }
        if self.dialect.raw {
            self.piece.places.push(place);
        }
    }

    /// Marks a record that follows another mark than `insts`.
    fn stray(&mut self) {
        let last = self.piece.marks.last().map(|marked| &marked.mark);
        if !self.dialect.raw && !matches!(last, None | Some(Mark::Instructions(_))) {
            self.mark(Mark::Stray);
        }
    }

    fn mark(&mut self, mark: Mark) {
        let batch = &self.piece.batch;
        let (record, access) = (batch.records.len(), batch.accesses.len());
        self.piece.marks.push(Marked { mark, record, access, line: self.line });
        self.at_mark = true;
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

    /// Takes an instruction line that no entry explains.
    fn instruction(&mut self, text: &[u8], place: u64, last: usize) -> Result<(), LineFault> {
        let fields = line::parse(text, self.dialect.line_info);
        let fields = fields.map_err(|stop| {
            let LineFault { line, expected, found } = self.fault(stop.what, text);
            let at = quoted(stop.at.trim_ascii());
            let whole =
                if stop.at.len() < text.len() { format!(" in {found}") } else { String::new() };
            LineFault { line, expected, found: format!("{at}{whole}") }
        })?;
        let at = |rest: &[u8]| text.len() - rest.len();
        let addresses = fields.addresses.as_ref();
        let addresses = addresses.map(|_| at(fields.after_width)..at(fields.after_addresses));
        let end = line::without_end(text).len();
        let tail = (!fields.tail.is_empty()).then(|| end - fields.tail.len());
        let (mask, immediates) = (at(fields.from_mask), fields.fixed.immediates.len());
        let parts = Parts { line: text, mask, addresses, tail, immediates };
        let number = self.number(fields.fixed);
        let lines = fields.addresses.map(|addresses| self.lines(&addresses));
        let cache = &mut self.learnt.cache;
        let entry = cache.known(&parts).unwrap_or_else(|| cache.learn(&parts, number));
        if !fields.tail.is_empty() {
            let batch = &mut self.piece.batch;
            batch.tails.push((to_u32(batch.records.len()), batch.texts.push(fields.tail)));
        }
        self.record(number, fields.mask, lines, place);
        self.follow(entry, last);
        Ok(())
    }

    /// Makes `entry` the last one and the successor of the one before.
    fn follow(&mut self, entry: u32, last: usize) {
        let previous = std::mem::replace(&mut self.last[last], entry);
        if let Some(previous) = self.learnt.cache.entries.get_mut(to_usize(previous)) {
            previous.next = entry;
        }
    }

    /// The number of a static of the block.
    fn number(&mut self, new: Static) -> u32 {
        let Learnt { statics, numbers, seen, .. } = &mut self.learnt;
        let next = to_u32(statics.len());
        let number = *numbers.entry(new).or_insert_with_key(|new| {
            Arc::make_mut(statics).push(new.clone());
            seen.push(false);
            next
        });
        self.see(number);
        number
    }

    /// Lists the static of that number among those of the block.
    fn see(&mut self, number: u32) {
        let seen = &mut self.learnt.seen[to_usize(number)];
        if !std::mem::replace(seen, true) {
            self.piece.batch.order.push(number);
        }
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

/// The place of a thread block in its cluster, from the further lines of its frame: the value of
/// `cluster cta = x,y,z`.
pub(super) fn place_in_cluster(note: &[u8]) -> Option<Dim3> {
    let lines = std::str::from_utf8(note).ok()?.lines();
    let mut values = lines.filter_map(|line| line.strip_prefix("cluster cta"));
    position(values.next()?.trim_start().strip_prefix('=')?)
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
