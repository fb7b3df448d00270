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

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use proptest::prelude::*;

    use super::super::{dialect, header};
    use super::{Dialect, Mark, Piece, TextParser};
    use crate::error::LineFault;
    use crate::import::source::Source;
    use crate::store::records::{AddressList, Batch, Static};
    use gpumodel_core::units::{Dim3, to_usize};

    /// What an instruction line says.
    #[derive(Debug, PartialEq)]
    struct Said {
        fixed: Static,
        mask: u32,
        access: Option<(AddressList, Vec<i64>)>,
        tail: Option<Vec<u8>>,
        place: Option<u64>,
    }

    /// What a text says: its lines, and the frame between them with the lines before each mark.
    #[derive(Debug, Default, PartialEq)]
    struct Content {
        lines: Vec<Said>,
        marks: Vec<(Mark, usize, u64)>,
        /// Where it is wrong: line, what was expected, what was found.
        fault: Option<(u64, String, String)>,
    }

    fn said(batch: &Batch, places: &[u64]) -> Vec<Said> {
        let mut accesses = batch.accesses.iter();
        let mut tails = batch.tails.iter().peekable();
        let records = batch.records.iter().enumerate();
        let all = records.map(|(index, record)| {
            let fixed = batch.statics[to_usize(record.number)].clone();
            let access = (fixed.width > 0).then(|| {
                let access = accesses.next().unwrap();
                (AddressList { deltas: 0, ..*access }, batch.deltas(access).to_vec())
            });
            let tail = tails.next_if(|(at, _)| to_usize(*at) == index);
            let tail = tail.map(|(_, text)| batch.texts.get(*text).to_vec());
            Said { fixed, mask: record.mask, access, tail, place: places.get(index).copied() }
        });
        let all = all.collect();
        assert!(accesses.next().is_none() && tails.next().is_none());
        all
    }

    fn content(parsed: Result<Piece, LineFault>) -> Content {
        let piece = match parsed {
            Ok(piece) => piece,
            Err(fault) => {
                let fault = Some((fault.line, fault.expected, fault.found));
                return Content { fault, ..Content::default() };
            }
        };
        let used: std::collections::BTreeSet<u32> =
            piece.batch.records.iter().map(|record| record.number).collect();
        assert_eq!(used, piece.batch.order.iter().copied().collect());
        let frame = piece.marks.iter().filter(|marked| marked.mark != Mark::Stray);
        let marks = frame.map(|marked| (marked.mark.clone(), marked.record, marked.line)).collect();
        Content { lines: said(&piece.batch, &piece.places), marks, fault: None }
    }

    /// What the lines of `text` say, each read alone by the full parser: a text that is read with
    /// all that earlier lines taught must say the same.
    fn one_by_one(text: &[u8], dialect: Dialect) -> Content {
        let mut all = Content::default();
        for (number, line) in (0..).zip(text.split_inclusive(|byte| *byte == b'\n')) {
            let one = content(TextParser::new(dialect).parse(line));
            if let Some((_, expected, found)) = one.fault {
                return Content { fault: Some((number, expected, found)), ..Content::default() };
            }
            let before = all.lines.len();
            all.marks.extend(one.marks.into_iter().map(|(mark, _, _)| (mark, before, number)));
            all.lines.extend(one.lines);
        }
        all
    }

    /// Checks `text` when nothing was learnt before, and when all of it was.
    fn check(text: &[u8], dialect: Dialect) {
        let expected = one_by_one(text, dialect);
        let parser = TextParser::new(dialect);
        for _ in 0..2 {
            let found = content(parser.parse(text));
            assert_eq!(found, expected, "{}", String::from_utf8_lossy(text));
        }
        // After a fault nothing is kept; what comes before it teaches all the same.
        if let Some((line, _, _)) = expected.fault {
            let lines = text.split_inclusive(|byte| *byte == b'\n').take(to_usize(line));
            let whole = lines.collect::<Vec<_>>().concat();
            parser.parse(&whole).unwrap();
            assert_eq!(content(parser.parse(text)), expected, "{}", String::from_utf8_lossy(text));
        }
    }

    /// Bytes of a sample that are read: enough to come by every line of its loops.
    const ENOUGH: usize = 1 << 19;

    fn samples() -> Vec<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/samples");
        let folders = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
        let files = folders.filter(|path| path.is_dir()).flat_map(|path| path.read_dir().unwrap());
        let files = files.map(|entry| entry.unwrap().path());
        files.filter(|path| path.to_string_lossy().contains(".trace")).collect()
    }

    #[test]
    fn lines_of_the_samples_say_the_same_alone() {
        let mut traces = 0;
        for path in samples() {
            let mut block = Source::open(&path).unwrap().block().unwrap().unwrap();
            let header = header::read(&block.bytes).unwrap();
            let body = &mut block.bytes[header.bytes..];
            let end = body.iter().take(ENOUGH).rposition(|byte| *byte == b'\n').unwrap() + 1;
            check(&body[..end], dialect(&body[..end], &header).unwrap());
            traces += 1;
        }
        assert!(traces >= 5, "{traces}");
    }

    /// Lines of every form, with and without what later versions append.
    const LINES: &[&str] = &[
        "0000 ffffffff 1 R1 MOV 0 0 ",
        "0000 ffffffff 1 R1 MOV 0 0 7 ",
        "0010 ffffffff 1 R4 LDG.E 1 R2 4 1 0x7f0000001000 4 0 192 NoVal ",
        "0010 ffffffff 1 R4 LDG.E 1 R2 4 1 0x7f0000001000 4 0 192 ",
        "0020 0000000b 1 UR4 LDG.E 2 R4 P0 16 2 0x7f4001030e00 5 -8 -1 192 NoVal ",
        "0020 0000000f 1 UR4 LDG.E 2 R4 P0 16 2 0x7f4001030e00 5 -8 -1000000 -1 192 NoVal ",
        "0030 00000003 2 R1 UP6 ATOM 1 R9 16 0 0x10 0x20 5 6 7",
        "0040 00000000 0 STG.E 2 R2 R6 4 1 0x0 0 ",
        "0040 00000000 0 STG.E 2 R2 R6 4 0 ",
        "0050 ffffffff 1 R10 IMAD 3 R10 UR4 R3 0 0 0 Val 1 17 3 5 6 4 ",
        "0050 ffffffff 1 R10 IMAD 3 R10 UR4 R3 0 0 0 NoVal ",
        "0050 ffffffff 1 R10 IMAD 3 R10 UR4 R3 0 0 x=1 ",
        "0060 00000001 0 UTMALDG.2D 2 UR8 UR4 16 4 0x7f00 8 -8 0 1 ",
        "0070 ffffffff 1 R24 HGMMA.64x64x16.F32 1 UR4 2 0 0 0 NoVal ",
        "0080 ffffffff 1 R24 HMMA.16816.F32.WITH.A.LONG.NAME.THAT.NO.WORDS.HOLD.ANY.MORE 1 R4 0 0 0 ",
        "0090 ffffffff 0 EXIT 0 0 0 \r",
        "",
        "#BEGIN_TB",
        "thread block = 1,0,0",
        "warp = 0",
        "insts = 7",
        "cluster rank = 3",
        "#END_TB",
    ];

    const WORDS: &[&str] = &[
        "0",
        "1",
        "2",
        "-1",
        "007",
        "+1",
        "-0",
        "0x10",
        "0X10",
        "0x7F00",
        "0x00007f0000001000",
        "0x10000000000000000",
        "R1",
        "00000007",
        "FFFFFFFF",
        "ffffffff",
        "NoVal",
        "Val",
        "=",
        "\t",
        "1234567",
        "-1234567",
        "12345678",
        "999999999999999999",
        "9999999999999999999",
    ];

    /// A line of the pool, and what is done to it: kind, place, word.
    type Edited = (&'static str, Option<(u8, prop::sample::Index, &'static str)>);

    fn edited() -> impl Strategy<Value = Edited> {
        let edit = (0..6_u8, any::<prop::sample::Index>(), prop::sample::select(WORDS));
        (prop::sample::select(LINES), prop::option::weighted(0.3, edit))
    }

    fn text(lines: &[Edited], leading: &str) -> Vec<u8> {
        let mut text = Vec::new();
        for (line, edit) in lines {
            let mut line = line.as_bytes().to_vec();
            if line.first().is_some_and(u8::is_ascii_digit) {
                line.splice(..0, leading.bytes());
            }
            if let Some((kind, at, word)) = edit
                && !line.is_empty()
            {
                let byte = at.index(line.len());
                let mut words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
                let place = at.index(words.len());
                match kind {
                    0 => words[place] = word.as_bytes(),
                    1 => words.insert(place, word.as_bytes()),
                    2 => _ = words.remove(place),
                    _ => {}
                }
                line = words.join(&b' ');
                match kind {
                    3 => line[byte] = word.as_bytes()[0],
                    4 => _ = line.remove(byte),
                    5 => line.insert(byte, word.as_bytes()[0]),
                    _ => {}
                }
            }
            text.extend_from_slice(&line);
            text.push(b'\n');
        }
        text
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 4_000,
            failure_persistence: None,
            ..Default::default()
        })]

        #[test]
        fn lines_of_any_text_say_the_same_alone(
            lines in prop::collection::vec(edited(), 1..24),
            line_info in any::<bool>(),
            leading in prop::sample::select(vec![0, 4, 6]),
            raw in any::<bool>(),
        ) {
            let raw = raw && leading > 0;
            let grid = Dim3::new(2, 1, 1);
            let dialect = Dialect { leading, line_info, raw, grid, warps_per_cta: 2 };
            let fields = ["1", "0", "0", "1", "3", "9"][..leading].join(" ");
            let before = match (leading, line_info) {
                (0, false) => String::new(),
                (0, true) => "117 ".to_owned(),
                (_, false) => format!("{fields} "),
                (_, true) => format!("{fields} 117 "),
            };
            // What does not parse ends the text, so both kinds are wanted: with and without edits.
            check(&text(&lines, &before), dialect);
            let correct: Vec<Edited> = lines.iter().map(|(line, _)| (*line, None)).collect();
            check(&text(&correct, &before), dialect);
        }
    }
}
