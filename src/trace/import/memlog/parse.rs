//! Parses one block of a log, independently of all others: each line is a launch, an access, or
//! something else.
//!
//! A line of the tool begins with `MEMTRACE: `; ` - ` separates its fields. Output of the
//! application may come between such lines, and before one.

use std::io::BufRead;

use rustc_hash::FxHashMap;

use super::super::accelsim::header::stream;
use super::super::accelsim::parse as text;
use crate::error::LineFault;
use crate::store::layout::{MOST_CTAS, MOST_THREADS};
use crate::store::records::{AddressList, Record, Static};
use gpumodel_core::isa::{self, Launch, traced_width};
use gpumodel_core::units::{Dim3, WARP_LANES, quoted, to_u32};

/// What every line of the tool begins with.
pub(super) const MARK: &[u8] = b"MEMTRACE: ";
/// What launches and accesses begin with.
const RECORD: &[u8] = b"MEMTRACE: CTX 0x";
/// Longest launch line.
const LONGEST: usize = 1 << 16;
/// Warp slots of an SM that a log may name; no GPU so far has more than 64.
pub(super) const SLOTS: u64 = 1 << 10;

/// A parsed block.
#[derive(Debug, Default)]
pub(super) struct Piece {
    /// The records, still without their places and statics.
    pub(super) records: text::Piece,
    pub(super) statics: Vec<Static>,
    /// Of each static: the line has its PC.
    pub(super) placed: Vec<bool>,
    /// Of each record.
    pub(super) heads: Vec<Head>,
    /// Launches, each with the records before it and its line.
    pub(super) launches: Vec<(usize, u64, Opening)>,
    /// Lines that are not the tool's.
    pub(super) others: u64,
    /// Lines of data and address alone.
    pub(super) pairs: u64,
}

/// Where an access belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) context: u64,
    pub(super) id: u64,
    pub(super) cta: Dim3,
    pub(super) slot: u64,
    /// Line in the block, from 0.
    pub(super) line: u64,
}

/// The fields by which static instructions of a log differ.
type Key<'a> = (&'a str, Option<u8>, Option<u64>);

/// Parses `text`, whole lines.
///
/// # Errors
/// A [`LineFault`] at the first line of the tool that is wrong.
pub(super) fn parse(text: &[u8]) -> Result<Piece, LineFault> {
    let mut piece = Piece::default();
    let mut numbers: FxHashMap<Key<'_>, u32> = FxHashMap::default();
    let mut addresses = [0; WARP_LANES];
    let mut after = text;
    let mut number = 0;
    while !after.is_empty() {
        let rest = after;
        // Reading from memory cannot fail.
        let bytes = after.skip_until(b'\n').unwrap_or(rest.len());
        let content = rest[..bytes].trim_ascii();
        let fault = |expected: &str| LineFault::new(number, expected, quoted(content));
        match read(content).map_err(fault)? {
            Line::Access(access) => {
                read_addresses(access.addresses, &mut addresses).map_err(|expected| {
                    LineFault::new(number, expected, quoted(access.addresses))
                })?;
                piece.access(&access, &addresses, number, &mut numbers);
            }
            Line::Launch(opening) => piece.launches.push((piece.heads.len(), number, *opening)),
            Line::Pair => piece.pairs += 1,
            Line::Other => piece.others += u64::from(!content.is_empty()),
        }
        number += 1;
    }
    Ok(piece)
}

impl Piece {
    fn access<'a>(
        &mut self,
        access: &Access<'a>,
        addresses: &[u64; WARP_LANES],
        line: u64,
        numbers: &mut FxHashMap<Key<'a>, u32>,
    ) {
        let Access { context, id, cta, slot, opcode, size, pc, .. } = *access;
        let number = *numbers.entry((opcode, size, pc)).or_insert_with(|| {
            self.statics.push(Static {
                pc: pc.unwrap_or_default(),
                opcode: opcode.into(),
                destinations: Box::default(),
                sources: Box::default(),
                width: size.unwrap_or_else(|| traced_width(opcode)),
                immediates: Box::default(),
                line: None,
                control: None,
            });
            self.placed.push(pc.is_some());
            to_u32(self.statics.len() - 1)
        });
        let batch = &mut self.records.batch;
        // A lane with address 0 is off.
        let lanes = addresses.iter().enumerate();
        let mask = lanes.fold(0, |mask, (lane, &address)| mask | u32::from(address != 0) << lane);
        let mut listed = isa::Access::default();
        listed.set(mask, addresses);
        batch.records.push(Record { number, mask });
        batch.accesses.push(AddressList::of(&listed, &mut batch.deltas));
        self.heads.push(Head { context, id, cta, slot, line });
    }
}

/// What a line is.
#[derive(Debug, PartialEq)]
enum Line<'a> {
    Launch(Box<Opening>),
    Access(Access<'a>),
    /// `0xDATA,0xADDRESS`: an access that names neither CTA nor warp.
    Pair,
    /// Output of the application or of another part of the tool.
    Other,
}

/// A launch line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Opening {
    pub(super) context: u64,
    /// `grid launch id` as printed.
    pub(super) id: u64,
    pub(super) launch: Launch,
    /// The line.
    pub(super) text: String,
}

/// An access line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Access<'a> {
    context: u64,
    /// `grid_launch_id` as printed.
    id: u64,
    cta: Dim3,
    /// The warp: a slot of its SM.
    slot: u64,
    opcode: &'a str,
    /// Bytes per lane, where the line says so.
    size: Option<u8>,
    pc: Option<u64>,
    /// The rest, which [`read_addresses`] reads.
    addresses: &'a [u8],
}

/// Classifies `line`.
///
/// # Errors
/// What was expected of a line of the tool.
fn read(line: &[u8]) -> Result<Line<'_>, &'static str> {
    if line.starts_with(MARK) {
        return record(line);
    }
    match line.windows(RECORD.len()).position(|start| start == RECORD) {
        Some(start) => record(&line[start..]),
        None if is_pair(line) => Ok(Line::Pair),
        None => Ok(Line::Other),
    }
}

fn is_pair(line: &[u8]) -> bool {
    let mut parts = line.splitn(2, |&byte| byte == b',');
    let mut number = || parts.next()?.trim_ascii().strip_prefix(b"0x").and_then(hexadecimal);
    number().is_some() && number().is_some()
}

fn record(line: &[u8]) -> Result<Line<'_>, &'static str> {
    let rest = &line[MARK.len()..];
    let notices: [&[u8]; 2] = [b"STARTING CONTEXT", b"TERMINATING CONTEXT"];
    if notices.iter().any(|notice| rest.starts_with(notice)) || is_inspection(rest) {
        return Ok(Line::Other);
    }
    let mut fields = Fields(rest);
    let context = fields.next().and_then(|field| field.strip_prefix(b"CTX 0x"));
    let context = context.and_then(hexadecimal).ok_or("`MEMTRACE: CTX 0x… - `")?;
    if fields.0.starts_with(b"LAUNCH - ") {
        return opening(context, line).map(|opening| Line::Launch(Box::new(opening)));
    }
    access(context, fields).map(Line::Access)
}

/// A line that `TOOL_VERBOSE` prints about a function.
fn is_inspection(rest: &[u8]) -> bool {
    let comma = rest.iter().position(|&byte| byte == b',');
    rest.starts_with(b"CTX ") && comma.is_some_and(|at| rest[at..].starts_with(b", Inspecting "))
}

/// The fields between ` - `; the last one has the rest of the line.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let end = self.0.windows(3).position(|three| three == b" - ");
        let (field, rest) = end.map_or((self.0, &self.0[..0]), |at| {
            let (field, rest) = self.0.split_at(at);
            (field, &rest[3..])
        });
        self.0 = rest;
        Some(field)
    }
}

fn access(context: u64, mut fields: Fields<'_>) -> Result<Access<'_>, &'static str> {
    let mut access = Access { context, ..Access::default() };
    let (mut id, mut cta, mut slot) = (None, None, None);
    while !(fields.0.starts_with(b"0x") || fields.0.starts_with(b"MREF")) {
        let field = fields.next().ok_or("` - ` and 32 addresses at the end of the line")?;
        let mut words = field.splitn(2, |&byte| byte == b' ');
        let (key, value) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        match key {
            b"grid_launch_id" => id = Some(decimal(value).ok_or("`grid_launch_id NUMBER`")?),
            b"CTA" => cta = Some(extent(value).ok_or("`CTA x,y,z`")?),
            b"warp" => {
                let found = decimal(value).filter(|&slot| slot < SLOTS);
                slot = Some(found.ok_or("`warp NUMBER`, a slot below 1024")?);
            }
            b"SM_id" | b"SM" | b"sm" => {
                decimal(value).ok_or("`SM_id NUMBER`")?;
            }
            b"pc" | b"PC" => access.pc = Some(counter(value).ok_or("`pc 0xADDRESS`")?),
            b"Size" | b"size" => {
                let size = decimal(value).and_then(|size| u8::try_from(size).ok());
                access.size = Some(size.filter(|&size| size > 0).ok_or("`Size BYTES`, 1 to 255")?);
            }
            _ if access.opcode.is_empty() => {
                access.opcode = opcode(key).ok_or("a field of an access: an opcode, `pc`, …")?;
                if !value.is_empty() {
                    access.pc = Some(counter(value).ok_or("` - ` or a PC after the opcode")?);
                }
            }
            _ => return Err("a field of an access: `CTA`, `warp`, `pc`, …"),
        }
    }
    access.addresses = fields.0;
    access.id = id.ok_or("`grid_launch_id NUMBER` before the addresses")?;
    access.cta = cta.ok_or("`CTA x,y,z` before the addresses")?;
    access.slot = slot.ok_or("`warp NUMBER` before the addresses")?;
    if access.opcode.is_empty() { Err("an opcode before the addresses") } else { Ok(access) }
}

/// A dotted SASS name.
fn opcode(word: &[u8]) -> Option<&str> {
    let dotted = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_');
    let named = word.first().is_some_and(u8::is_ascii_uppercase) && word.iter().all(dotted);
    std::str::from_utf8(word).ok().filter(|_| named)
}

/// `0xADDRESS`, or a decimal number.
fn counter(text: &[u8]) -> Option<u64> {
    text.strip_prefix(b"0x").map_or_else(|| decimal(text), hexadecimal)
}

/// `x,y,z`.
fn extent(text: &[u8]) -> Option<Dim3> {
    let mut parts = text.split(|&byte| byte == b',').map(decimal);
    let mut next = || u32::try_from(parts.next()??).ok();
    let (x, y, z) = (next()?, next()?, next()?);
    parts.next().is_none().then_some(Dim3::new(x, y, z))
}

/// A launch; the name goes up to the last ` - grid launch id `.
fn opening(context: u64, line: &[u8]) -> Result<Opening, &'static str> {
    if line.len() > LONGEST {
        return Err("a launch line of at most 64 KiB");
    }
    let text = String::from_utf8_lossy(line).trim_end().to_owned();
    let name = text.split_once(" - Kernel name ").ok_or("` - Kernel name NAME` in a launch")?.1;
    let (name, rest) = name.rsplit_once(" - grid launch id ").ok_or("` - grid launch id N`")?;
    let value = |key: &str| {
        let mut fields = rest.split(" - ").filter_map(|field| field.strip_prefix(key));
        fields.next().map(str::as_bytes)
    };
    let narrow = |value: u64| u32::try_from(value).ok();
    let id = rest.split(" - ").next().and_then(|digits| decimal(digits.as_bytes()));
    let id = id.ok_or("` - grid launch id NUMBER`")?;
    let registers = value("nregs ").and_then(decimal).and_then(narrow);
    let shared = value("shmem ").and_then(decimal).and_then(narrow);
    let handle = value("cuda stream id ").and_then(|text| stream(std::str::from_utf8(text).ok()?));
    let launch = Launch {
        name: name.to_owned(),
        grid: value("grid size ").and_then(extent).ok_or("` - grid size x,y,z`")?,
        block: value("block size ").and_then(extent).ok_or("` - block size x,y,z`")?,
        registers: registers.ok_or("` - nregs NUMBER`")?,
        shared_bytes: shared.ok_or("` - shmem NUMBER`")?,
        stream: handle.ok_or("` - cuda stream id NUMBER`")?,
        ..Launch::default()
    };
    if !(1..=MOST_CTAS).contains(&launch.grid.count()) {
        return Err("a grid of a GPU");
    }
    if !(1..=MOST_THREADS).contains(&launch.block.count()) {
        return Err("a block of 1 to 1024 threads");
    }
    Ok(Opening { context, id, launch, text })
}

/// Digits of an address that is filled up with zeros.
const PADDED: usize = 16;
/// A padded address and the space after it.
const STEP: usize = 2 + PADDED + 1;

/// The value of every byte as a hexadecimal digit; 255 for other bytes.
const DIGITS: [u8; 256] = {
    let mut digits = [u8::MAX; 256];
    let mut value = 0;
    while value < 16 {
        digits[b"0123456789abcdef"[value as usize] as usize] = value;
        digits[b"0123456789ABCDEF"[value as usize] as usize] = value;
        value += 1;
    }
    digits
};

/// A number of hexadecimal digits, without prefix.
fn hexadecimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > PADDED {
        return None;
    }
    let (mut value, mut all) = (0_u64, 0);
    for &byte in digits {
        let digit = DIGITS[usize::from(byte)];
        all |= digit;
        value = value << 4 | u64::from(digit & 15);
    }
    (all < 16).then_some(value)
}

/// A decimal number.
fn decimal(digits: &[u8]) -> Option<u64> {
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
    let next = |value: u64, byte: &u8| value.checked_mul(10)?.checked_add(digit(byte)?);
    (!digits.is_empty()).then(|| digits.iter().try_fold(0, next)).flatten()
}

/// The addresses of all lanes from `text`: 32 of `0xADDRESS`, or after ` : ` 32 of
/// `Thread<lane>,<data>,0xADDRESS`. Where the first one is filled up to 16 digits,
/// all of them must be, so that a line cut in its last address is refused.
///
/// # Errors
/// What was expected.
fn read_addresses(text: &[u8], into: &mut [u64; WARP_LANES]) -> Result<(), &'static str> {
    if text.starts_with(b"MREF") {
        let start = text.windows(3).position(|three| three == b" : ");
        let start = start.ok_or("` : ` before `Thread<lane>,<data>,0xADDRESS`")?;
        return triples(text[start + 3..].trim_ascii(), into);
    }
    let text = text.trim_ascii();
    if text.len() == WARP_LANES * STEP - 1 && padded(text, into) {
        return Ok(());
    }
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut digits = 0;
    for address in into.iter_mut() {
        let word = words.next().unwrap_or_default();
        *address = one(word, &mut digits).ok_or("32 addresses `0x…`, all as wide as the first")?;
    }
    if words.next().is_some() { Err("32 addresses `0x…`, no more") } else { Ok(()) }
}

/// Reads addresses of 16 digits with single spaces between; false when one is not.
fn padded(text: &[u8], into: &mut [u64; WARP_LANES]) -> bool {
    text.chunks(STEP).zip(into).all(|(word, address)| {
        let framed = word.starts_with(b"0x") && word.get(STEP - 1).is_none_or(|&end| end == b' ');
        let value = hexadecimal(&word[2..2 + PADDED]).filter(|_| framed);
        *address = value.unwrap_or_default();
        value.is_some()
    })
}

fn triples(text: &[u8], into: &mut [u64; WARP_LANES]) -> Result<(), &'static str> {
    let wrong = "32 of `Thread<lane>,<data>,0xADDRESS`, each lane once, all as wide as the first";
    let (mut seen, mut digits) = (0_u32, 0);
    for word in text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        let fields = word.strip_prefix(b"Thread").ok_or(wrong)?;
        let comma = |byte: &u8| *byte == b',';
        let data = fields.iter().position(comma).ok_or(wrong)?;
        let address = fields.iter().rposition(comma).filter(|&last| last > data).ok_or(wrong)?;
        let lane = decimal(&fields[..data]).and_then(|lane| usize::try_from(lane).ok());
        let lane = lane.filter(|&lane| lane < WARP_LANES && seen >> lane & 1 == 0).ok_or(wrong)?;
        into[lane] = one(&fields[address + 1..], &mut digits).ok_or(wrong)?;
        seen |= 1 << lane;
    }
    if seen == u32::MAX { Ok(()) } else { Err(wrong) }
}

/// One address; `digits` are those of the first one, 0 before it.
fn one(word: &[u8], digits: &mut usize) -> Option<u64> {
    let word = word.strip_prefix(b"0x")?;
    if *digits == 0 {
        *digits = word.len();
    }
    let whole = *digits != PADDED || word.len() == PADDED;
    hexadecimal(word).filter(|_| whole)
}

#[cfg(test)]
mod tests {
    use super::{Line, read, read_addresses};
    use gpumodel_core::units::{Dim3, WARP_LANES};

    const LAUNCH: &str = "MEMTRACE: CTX 0x000055e4486faf10 - LAUNCH - Kernel pc 0x00007f2746fa0f00 - \
        Kernel name f<(a) - (b)>(float*, int) - grid launch id 1 - grid size 8,2,1 - \
        block size 100,1,1 - nregs 12 - shmem 48 - cuda stream id 94349043264512";
    const ACCESS: &str =
        "MEMTRACE: CTX 0x1 - grid_launch_id 7 - CTA 5,0,2 - warp 12 - LDG.E.64 - 0x10";

    fn access(text: &str) -> super::Access<'_> {
        match read(text.as_bytes()) {
            Ok(Line::Access(access)) => access,
            other => panic!("{other:?} of {text}"),
        }
    }

    #[test]
    fn a_launch_has_its_name_whole() {
        let Ok(Line::Launch(found)) = read(LAUNCH.as_bytes()) else { panic!("no launch") };
        assert_eq!(found.launch.name, "f<(a) - (b)>(float*, int)");
        assert_eq!((found.context, found.id), (0x55e4_486f_af10, 1));
        assert_eq!((found.launch.grid, found.launch.warps_per_cta()), (Dim3::new(8, 2, 1), 4));
        assert_eq!((found.launch.shared_bytes, found.launch.stream), (48, 94_349_043_264_512));
        for end in 20..LAUNCH.rfind("id 9").unwrap() + 3 {
            assert!(read(&LAUNCH.as_bytes()[..end]).is_err(), "{}", &LAUNCH[..end]);
        }
    }

    #[test]
    fn fields_of_an_access_come_in_any_order() {
        let stock = access(ACCESS);
        assert_eq!((stock.id, stock.cta, stock.slot), (7, Dim3::new(5, 0, 2), 12));
        assert_eq!((stock.opcode, stock.size, stock.addresses), ("LDG.E.64", None, &b"0x10"[..]));
        let other = access(
            "MEMTRACE: CTX 0x1 - grid_launch_id 7 - SM_id 3 - LDG.E.64 0x7f00 - Size 8 - \
             CTA 5,0,2 - warp 12 - MREF per threads(a,b) : Thread0",
        );
        assert_eq!((other.size, other.pc, other.slot), (Some(8), Some(0x7f00), 12));
        assert!(other.addresses.starts_with(b"MREF"));
    }

    #[test]
    fn what_is_broken_is_told_from_what_is_no_line_of_the_tool() {
        for (from, to) in [
            ("warp 12", "warp x"),
            ("warp 12", "warp 1024"),
            ("CTA 5,0,2", "CTA 5,0"),
            ("CTA 5,0,2 - ", ""),
            ("grid_launch_id 7", "grid_launch_id -7"),
            (" - LDG.E.64", ""),
            ("LDG.E.64", "ldg"),
            ("LDG.E.64", "LDG.E.64 x"),
            ("LDG.E.64", "LDG.E.64 - STG"),
            ("LDG.E.64", "Size 0"),
            ("CTX 0x1 ", "CTX 0y1 "),
            (" - 0x10", ""),
        ] {
            let broken = ACCESS.replace(from, to);
            assert!(read(broken.as_bytes()).is_err(), "{broken}");
        }
        let others = ["", "No CUDA error.", "MEMTRACE", "MEMTRACE: STARTING CONTEXT 0x1"];
        for other in others {
            assert_eq!(read(other.as_bytes()), Ok(Line::Other));
        }
        let inspecting = b"MEMTRACE: CTX 0x1, Inspecting CUfunction 0x2 name f at address 0x3";
        assert_eq!(read(inspecting), Ok(Line::Other));
        assert_eq!(read(b"0x000000003f800000,0x00007f27433125fc"), Ok(Line::Pair));
        assert_eq!(access(&format!("done.{ACCESS}")), access(ACCESS));
    }

    fn text(addresses: &[u64; WARP_LANES], padded: bool) -> String {
        let word = |address: &u64| match padded {
            true => format!("0x{address:016x} "),
            false => format!("0x{address:x} "),
        };
        addresses.iter().map(word).collect()
    }

    fn triples(addresses: &[u64; WARP_LANES]) -> String {
        let word = |(lane, address): (usize, &u64)| {
            format!("Thread{lane},0x{:032x},0x{address:016x} ", !lane)
        };
        let words: String = addresses.iter().enumerate().map(word).collect();
        format!("MREF per threads(threadidx,data,address) : {words}")
    }

    fn sample() -> [u64; WARP_LANES] {
        std::array::from_fn(|lane| if lane % 5 == 3 { 0 } else { 0x7f00_0000_0000 + lane as u64 })
    }

    #[test]
    fn every_spelling_says_the_same_addresses() {
        let sample = sample();
        for spelled in [text(&sample, true), text(&sample, false), triples(&sample)] {
            let mut found = [1; WARP_LANES];
            read_addresses(spelled.as_bytes(), &mut found).unwrap();
            assert_eq!(found, sample, "{spelled}");
        }
    }

    #[test]
    fn no_line_that_was_cut_is_whole() {
        for spelled in [text(&sample(), true), triples(&sample())] {
            let whole = spelled.trim_end().len();
            for end in 0..whole {
                let cut = &spelled.as_bytes()[..end];
                assert!(read_addresses(cut, &mut [0; WARP_LANES]).is_err(), "{}", &spelled[..end]);
            }
            let more = format!("{spelled}0x0000000000000001");
            assert!(read_addresses(more.as_bytes(), &mut [0; WARP_LANES]).is_err());
        }
    }
}
