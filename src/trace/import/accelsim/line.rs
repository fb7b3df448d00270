//! One instruction line, field by field.
//!
//! `[cta_x cta_y cta_z warp …] [line] PC mask nd dest* opcode ns src* width
//! [mode address…] [immediates] [tail]`; of bulk copies, of lines with address modes 3 and 4
//! and of opcodes with `GMMA` (a commit group comes before the width) everything
//! after the sources is tail. Only lines that no earlier line explains come here
//! ([`super::line_cache`]).

use std::io::BufRead;

use nom::branch::alt;
use nom::bytes::complete::{tag, take_till1};
use nom::character::complete::{digit1, hex_digit1, space0, space1};
use nom::combinator::{map_opt, opt, recognize, verify};
use nom::error::{ErrorKind, ParseError};
use nom::multi::count;
use nom::sequence::preceded;
use nom::{IResult, Parser};

use crate::async_fields::is_open;
use crate::store::lanes;
use crate::store::records::Static;
use gpumodel_core::isa::{AddressMode, MOST_IMMEDIATES, Register, RegisterFile};
use gpumodel_core::units::to_usize;

/// Most registers that one list may name.
const MOST_REGISTERS: usize = 255;
/// What the parser expected where it stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expected<'a> {
    pub(crate) at: &'a [u8],
    pub(crate) what: &'static str,
}

impl<'a> ParseError<&'a [u8]> for Expected<'a> {
    fn from_error_kind(at: &'a [u8], _: ErrorKind) -> Self {
        Self { at, what: "a field" }
    }

    fn append(_: &'a [u8], _: ErrorKind, other: Self) -> Self {
        other
    }
}

type Parsed<'a, T> = IResult<&'a [u8], T, Expected<'a>>;

/// Addresses of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) mode: AddressMode,
    pub(crate) base: u64,
    pub(crate) stride: i64,
    pub(crate) deltas: Vec<i64>,
}

/// A parsed line. The slices are what follows the mask, the width and the
/// addresses: with them the same text is known again without parsing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fields<'a> {
    pub(crate) fixed: Static,
    pub(crate) mask: u32,
    pub(crate) addresses: Option<Addresses>,
    pub(crate) tail: &'a [u8],
    pub(crate) from_mask: &'a [u8],
    pub(crate) after_width: &'a [u8],
    pub(crate) after_addresses: &'a [u8],
}

fn expecting<'a, T>(
    what: &'static str,
    mut parser: impl Parser<&'a [u8], Output = T, Error = Expected<'a>>,
) -> impl FnMut(&'a [u8]) -> Parsed<'a, T> {
    move |input| parser.parse(input).map_err(|e| e.map(|_| Expected { at: input, what }))
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

fn first<'a, T>(
    parser: impl Parser<&'a [u8], Output = T, Error = Expected<'a>>,
) -> impl Parser<&'a [u8], Output = T, Error = Expected<'a>> {
    preceded(space0, parser)
}

fn field<'a, T>(
    parser: impl Parser<&'a [u8], Output = T, Error = Expected<'a>>,
) -> impl Parser<&'a [u8], Output = T, Error = Expected<'a>> {
    preceded(space1, parser)
}

fn hexadecimal(input: &[u8]) -> Parsed<'_, u64> {
    map_opt(hex_digit1, |digits| u64::from_str_radix(text(digits), 16).ok()).parse(input)
}

fn decimal(input: &[u8]) -> Parsed<'_, u64> {
    map_opt(digit1, |digits| text(digits).parse().ok()).parse(input)
}

fn signed(input: &[u8]) -> Parsed<'_, i64> {
    let digits = recognize((opt(tag("-")), digit1));
    map_opt(digits, |digits| text(digits).parse().ok()).parse(input)
}

fn address(input: &[u8]) -> Parsed<'_, u64> {
    preceded(opt(tag("0x")), hexadecimal).parse(input)
}

fn word(input: &[u8]) -> Parsed<'_, &[u8]> {
    take_till1(|byte: u8| byte.is_ascii_whitespace()).parse(input)
}

fn mask(input: &[u8]) -> Parsed<'_, u32> {
    let digits = verify(hex_digit1, |digits: &[u8]| digits.len() == 8);
    map_opt(digits, |digits| u32::from_str_radix(text(digits), 16).ok()).parse(input)
}

fn register(input: &[u8]) -> Parsed<'_, Register> {
    let file = alt((
        nom::combinator::value(RegisterFile::UniformPredicate, tag("UP")),
        nom::combinator::value(RegisterFile::Uniform, tag("UR")),
        nom::combinator::value(RegisterFile::General, tag("R")),
        nom::combinator::value(RegisterFile::Predicate, tag("P")),
    ));
    let number = map_opt(decimal, |number| u16::try_from(number).ok());
    map_opt((file, number), |(file, number)| Register::new(file, number)).parse(input)
}

fn registers<'a>(what: &'static str, input: &'a [u8]) -> Parsed<'a, Vec<Register>> {
    let few = |number: &u64| *number <= gpumodel_core::units::to_u64(MOST_REGISTERS);
    let (rest, number) = expecting(what, field(verify(decimal, few))).parse(input)?;
    count(expecting("a register", field(register)), to_usize(number)).parse(rest)
}

/// Most bytes of an opcode: real ones have some forty.
const LONGEST_OPCODE: usize = 256;

fn opcode(input: &[u8]) -> Parsed<'_, Box<str>> {
    let short = verify(word, |word: &[u8]| word.len() <= LONGEST_OPCODE);
    map_opt(short, |word| std::str::from_utf8(word).ok().map(Into::into)).parse(input)
}

fn addresses(mask: u32, input: &[u8]) -> Parsed<'_, Addresses> {
    let first = u8::try_from(mask.count_ones()).unwrap_or_default();
    let further = to_usize(lanes::delta_count(mask));
    let known = verify(decimal, |mode: &u64| *mode <= 2);
    let (rest, mode) = expecting("an address mode from 0 to 4", field(known)).parse(input)?;
    let mut one = expecting("an address", field(address));
    if mode == 0 {
        let (rest, all) = count(one, usize::from(first)).parse(rest)?;
        let deltas = all.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]).cast_signed());
        let base = all.first().copied().unwrap_or(0);
        let deltas = deltas.collect();
        return Ok((rest, Addresses { mode: AddressMode::List, base, stride: 0, deltas }));
    }
    let (rest, base) = one.parse(rest)?;
    if mode == 1 {
        let (rest, stride) = expecting("a stride", field(signed)).parse(rest)?;
        return Ok((
            rest,
            Addresses { mode: AddressMode::Stride, base, stride, deltas: Vec::new() },
        ));
    }
    let difference = expecting("one difference per further active lane", field(signed));
    let (rest, deltas) = count(difference, further).parse(rest)?;
    Ok((rest, Addresses { mode: AddressMode::Delta, base, stride: 0, deltas }))
}

/// Bytes of the first line of `text`, its end included.
pub(super) fn bytes(text: &[u8]) -> usize {
    let mut after = text;
    // Reading from memory cannot fail.
    after.skip_until(b'\n').unwrap_or(text.len())
}

/// A line without its end and the one space that tracers put before it.
pub(super) fn without_end(line: &[u8]) -> &[u8] {
    let ends: [&[u8]; 3] = [b"\n", b"\r", b" "];
    ends.into_iter().fold(line, |line, end| line.strip_suffix(end).unwrap_or(line))
}

/// The numbers after the addresses, and what is left from the first word on
/// that is not a number as tracers print it.
fn immediates(input: &[u8]) -> (Vec<i64>, &[u8]) {
    let mut found = Vec::new();
    let mut rest = without_end(input).trim_ascii_start();
    while found.len() < MOST_IMMEDIATES && !rest.is_empty() {
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        let word = text(&rest[..end]);
        match word.parse::<i64>() {
            Ok(value) if value.to_string() == word => found.push(value),
            _ => break,
        }
        rest = rest[end..].trim_ascii_start();
    }
    (found, rest)
}

fn width(input: &[u8]) -> Parsed<'_, u8> {
    let narrow = map_opt(decimal, |width| u8::try_from(width).ok());
    expecting("a width in bytes", field(narrow)).parse(input)
}

/// True when the address mode that follows a width is one of TMA.
fn is_tma(after_width: &[u8]) -> bool {
    let mut words = after_width.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    matches!(words.next(), Some(b"3" | b"4"))
}

/// The first three fields as numbers, and all of them as text; see
/// [`gpumodel_core::isa::Instruction::is_open`].
fn verbatim(after_sources: &[u8]) -> (Vec<i64>, &[u8]) {
    let tail = without_end(after_sources).trim_ascii_start();
    let words = tail.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let numbers = words.map(|word| text(word).parse().unwrap_or(0));
    let first = numbers.chain(std::iter::repeat(0)).take(MOST_IMMEDIATES + 1).collect();
    (first, tail)
}

/// Parses `line` (without leading CTA fields); `line_info` says that a source
/// line number comes first.
///
/// # Errors
/// The first field that is not what the format says.
pub(crate) fn parse(line: &[u8], line_info: bool) -> Result<Fields<'_>, Expected<'_>> {
    match fields(line, line_info) {
        Ok((_, fields)) => Ok(fields),
        Err(nom::Err::Error(expected) | nom::Err::Failure(expected)) => Err(expected),
        Err(nom::Err::Incomplete(_)) => Err(Expected { at: line, what: "a whole line" }),
    }
}

/// The source line number, if there is one, and the program counter.
fn place(input: &[u8], line_info: bool) -> Parsed<'_, (Option<u32>, u64)> {
    const PC: &str = "a program counter";
    if !line_info {
        return expecting(PC, first(hexadecimal)).map(|pc| (None, pc)).parse(input);
    }
    let number = map_opt(decimal, |number| u32::try_from(number).ok());
    let (rest, line) = expecting("a source line number", first(number)).parse(input)?;
    expecting(PC, field(hexadecimal)).map(|pc| (Some(line), pc)).parse(rest)
}

fn fields(input: &[u8], line_info: bool) -> Parsed<'_, Fields<'_>> {
    let (rest, (line, pc)) = place(input, line_info)?;
    let (from_mask, _) = expecting("a space", space1).parse(rest)?;
    let (rest, mask) = expecting("a mask of 8 hexadecimal digits", mask).parse(from_mask)?;
    let (rest, destinations) = registers("a count of destinations", rest)?;
    let (rest, opcode) = expecting("an opcode", field(opcode)).parse(rest)?;
    let (after_sources, sources) = registers("a count of sources", rest)?;
    let open = is_open(&opcode);
    let (after_width, width) = match open {
        true => {
            expecting("a commit group or a width", field(signed)).map(|_| 0).parse(after_sources)?
        }
        false => width(after_sources)?,
    };
    let open = open || (width > 0 && is_tma(after_width));
    let (after_addresses, addresses) = match open || width == 0 {
        true => (after_width, None),
        false => (|rest| addresses(mask, rest)).map(Some).parse(after_width)?,
    };
    let separate = after_addresses.first().is_none_or(u8::is_ascii_whitespace);
    if !separate {
        return Err(nom::Err::Error(Expected { at: after_addresses, what: "a space" }));
    }
    let (immediates, tail) = match open {
        true => verbatim(after_sources),
        false => immediates(after_addresses),
    };
    let width = if open { 0 } else { width };
    let fixed = Static {
        pc,
        opcode,
        destinations: destinations.into(),
        sources: sources.into(),
        width,
        immediates: immediates.into(),
        line,
        control: None,
    };
    let fields = Fields { fixed, mask, addresses, tail, from_mask, after_width, after_addresses };
    Ok((&[], fields))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::parse;
    use gpumodel_core::isa::{AddressMode, MOST_IMMEDIATES, Register, RegisterFile};

    #[test]
    fn every_field_of_a_late_line() {
        let line = b"12 00a0 0000000b 1 UR4 LDG.E 2 R4 P0 4 2 0x7f4001030e00 4 -8 -1 192 NoVal x ";
        let fields = parse(line, true).unwrap();
        assert_eq!((fields.fixed.pc, fields.fixed.line, fields.mask), (0xa0, Some(12), 0xb));
        assert_eq!(fields.fixed.destinations[0].to_string(), "UR4");
        assert_eq!(&*fields.fixed.immediates, [-1, 192]);
        let addresses = fields.addresses.unwrap();
        assert_eq!((addresses.mode, addresses.deltas), (AddressMode::Delta, vec![4, -8]));
        assert_eq!(fields.tail, b"NoVal x");
        // Some dialects end in two spaces.
        let fields = parse(b"0010 ffffffff 0 EXIT 0 0 0 x=1  \r\n", false).unwrap();
        assert_eq!(fields.tail, b"x=1 ");
    }

    #[test]
    fn lines_without_immediates_and_with_odd_ones() {
        assert!(parse(b"0010 ffffffff 0 EXIT 0 0", false).unwrap().fixed.immediates.is_empty());
        assert_eq!(parse(b"0010 ffffffff 0 EXIT 0 0 007", false).unwrap().tail, b"007");
    }

    #[test]
    fn what_is_not_modelled_is_kept_verbatim() {
        let fields = parse(b"0010 00000001 0 UTMALDG.2D 2 UR8 UR4 16 4 0x7f00 8 -8 0 1 ", false);
        let fields = fields.unwrap();
        assert_eq!((fields.tail, fields.fixed.width), (&b"16 4 0x7f00 8 -8 0 1"[..], 0));
        assert_eq!((&*fields.fixed.immediates, fields.addresses), (&[16, 4, 0][..], None));
        let fields = parse(b"0010 ffffffff 1 R24 HGMMA.64x64x16.F32 1 UR4 2 0 0 0 NoVal ", false);
        let fields = fields.unwrap();
        assert_eq!(
            (fields.tail, &*fields.fixed.immediates),
            (&b"2 0 0 0 NoVal"[..], &[2, 0, 0][..])
        );
        let fields = parse(b"0010 ffffffff 1 R24 HMMA.16816.F32 1 R4 0 0 0 ", false).unwrap();
        assert_eq!((fields.tail, fields.fixed.immediates.len()), (&b""[..], 2));
    }

    #[test]
    fn fields_that_run_together_are_none() {
        for line in
            ["0010 ffffffff 1 R1MOV 0 0", "0010 ffffffff 1R1 MOV 0 0", "0010 ffffffff 0EXIT 0 0"]
        {
            assert!(parse(line.as_bytes(), false).is_err(), "{line}");
        }
        assert!(parse(b"0010 0000000f 0 LDG 0 4 1 0x10-4 0", false).is_err());
    }

    #[test]
    fn expected_fields_are_named() {
        let what = |line: &'static [u8]| parse(line, false).unwrap_err().what;
        assert_eq!(what(b"zz ffffffff 0 EXIT 0 0"), "a program counter");
        assert_eq!(what(b"0010 ffff 0 EXIT 0 0"), "a mask of 8 hexadecimal digits");
        assert_eq!(what(b"0010 ffffffff 1 X7 MOV 0 0"), "a register");
        assert_eq!(what(b"0010 ffffffff 0 LDG 0 4 5 0x0"), "an address mode from 0 to 4");
        assert_eq!(
            what(b"0010 00000003 0 LDG 0 4 2 0x0"),
            "one difference per further active lane"
        );
        assert_eq!(what(b"0010 ffffffff 0 EXIT 0"), "a width in bytes");
    }

    /// What a line says, registers as they print. Read by splitting at spaces, slowly and plainly,
    /// it is what the parser must agree with.
    #[derive(Debug, PartialEq)]
    struct Said {
        line: Option<u32>,
        pc: u64,
        mask: u32,
        registers: [Vec<String>; 2],
        opcode: String,
        width: u8,
        addresses: Option<(AddressMode, u64, i64, Vec<i64>)>,
        immediates: Vec<i64>,
        tail: Vec<String>,
    }

    fn digits<T: std::str::FromStr>(word: &str) -> Option<T> {
        word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok())?
    }

    fn signed(word: &str) -> Option<i64> {
        digits::<u64>(word.strip_prefix('-').unwrap_or(word))?;
        word.parse().ok()
    }

    fn hexadecimal(word: &str) -> Option<u64> {
        word.bytes()
            .all(|byte| byte.is_ascii_hexdigit())
            .then(|| u64::from_str_radix(word, 16).ok())?
    }

    fn register(word: &str) -> Option<String> {
        let files = [
            ("UP", RegisterFile::UniformPredicate),
            ("UR", RegisterFile::Uniform),
            ("R", RegisterFile::General),
            ("P", RegisterFile::Predicate),
        ];
        let found = files.iter().find_map(|(name, file)| Some((file, word.strip_prefix(name)?)));
        let (file, number) = found?;
        Register::new(*file, digits(number)?).map(|register| register.to_string())
    }

    fn addresses<'a>(
        mask: u32,
        mut next: impl FnMut() -> Option<&'a str>,
    ) -> Option<(AddressMode, u64, i64, Vec<i64>)> {
        let mode: u64 = digits(next()?)?;
        let lanes = mask.count_ones();
        let mut address = || next().and_then(|w| hexadecimal(w.strip_prefix("0x").unwrap_or(w)));
        if mode == 0 {
            let all: Vec<u64> = (0..lanes).map(|_| address()).collect::<Option<_>>()?;
            let steps = all.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]).cast_signed());
            return Some((
                AddressMode::List,
                all.first().copied().unwrap_or(0),
                0,
                steps.collect(),
            ));
        }
        let base = address()?;
        match mode {
            1 => Some((AddressMode::Stride, base, signed(next()?)?, Vec::new())),
            2 => {
                let steps = (1..lanes).map(|_| signed(next()?)).collect::<Option<_>>()?;
                Some((AddressMode::Delta, base, 0, steps))
            }
            _ => None,
        }
    }

    fn plain(text: &str, line_info: bool) -> Option<Said> {
        let mut words = text.split(' ').filter(|word| !word.is_empty());
        let line = if line_info { Some(digits(words.next()?)?) } else { None };
        let pc = hexadecimal(words.next()?)?;
        let mask = words.next().filter(|word| word.len() == 8)?;
        let mask = u32::try_from(hexadecimal(mask)?).ok()?;
        let mut list = || {
            let count = words.next().and_then(digits::<u64>).filter(|count| *count <= 255)?;
            let all = (0..count).map(|_| words.next().and_then(register)).collect::<Option<_>>()?;
            Some((all, words.next()?))
        };
        let (destinations, opcode) = list()?;
        let (sources, width) = list()?;
        let width: u8 = digits(width)?;
        let addresses = if width > 0 { Some(addresses(mask, || words.next())?) } else { None };
        let rest: Vec<&str> = words.collect();
        let number = |word: &&str| word.parse::<i64>().ok().filter(|n| n.to_string() == **word);
        let immediates: Vec<i64> = rest.iter().map_while(number).take(MOST_IMMEDIATES).collect();
        let tail = rest[immediates.len()..].iter().map(|word| (*word).to_owned()).collect();
        let (registers, opcode) = ([destinations, sources], opcode.to_owned());
        Some(Said { line, pc, mask, registers, opcode, width, addresses, immediates, tail })
    }

    /// What the parser says.
    fn parsed(text: &str, line_info: bool) -> Option<Said> {
        let fields = parse(text.as_bytes(), line_info).ok()?;
        let fixed = fields.fixed;
        let print = |all: &[Register]| all.iter().map(ToString::to_string).collect();
        let tail =
            std::str::from_utf8(fields.tail).unwrap().split(' ').filter(|word| !word.is_empty());
        Some(Said {
            line: fixed.line,
            pc: fixed.pc,
            mask: fields.mask,
            registers: [print(&fixed.destinations), print(&fixed.sources)],
            opcode: fixed.opcode.to_string(),
            width: fixed.width,
            addresses: fields.addresses.map(|a| (a.mode, a.base, a.stride, a.deltas)),
            immediates: fixed.immediates.to_vec(),
            tail: tail.map(str::to_owned).collect(),
        })
    }

    const LINES: &[&str] = &[
        "0000 ffffffff 1 R1 MOV 0 0 7 ",
        "00a0 0000000b 1 UR4 LDG.E 2 R4 P0 16 2 0x7f4001030e00 5 -8 -1 192 NoVal x ",
        "0010 0000000f 0 STG.E.64 2 R2 R255 8 1 0x100 -16 0",
        "1f0 00000003 2 R1 UP6 ATOM 1 R9 16 0 0x10 0x20 5 6 7",
        "0020 00000000 0 EXIT 0 0",
    ];

    const WORDS: &[&str] = &[
        "0",
        "1",
        "2",
        "00",
        "255",
        "256",
        "+1",
        "-1",
        "-0",
        "0x",
        "0x0",
        "0xfffffffffffffffff",
        "R1",
        "R255",
        "R256",
        "UR63",
        "UR64",
        "P7",
        "P8",
        "R",
        "X",
        "EXIT",
        "ffffffff",
        "0ffffffff",
        "00000007",
        "9223372036854775808",
        "18446744073709551616",
        "NoVal",
        "",
    ];

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 20_000,
            failure_persistence: None,
            ..Default::default()
        })]

        #[test]
        fn the_parser_agrees_with_plain_splitting(
            start in prop::sample::select(LINES),
            edits in prop::collection::vec(
                (any::<prop::sample::Index>(), 0..5, prop::sample::select(WORDS)),
                0..4,
            ),
            line_info in any::<bool>(),
        ) {
            let mut words: Vec<String> = start.split(' ').map(str::to_owned).collect();
            for (at, kind, word) in edits {
                let at = at.index(words.len());
                match kind {
                    0 => words[at] = word.to_owned(),
                    1 => words.insert(at, word.to_owned()),
                    2 if words.len() > 1 => drop(words.remove(at)),
                    3 => words[at].push_str(word),
                    _ => words[at].insert_str(0, word),
                }
            }
            let text = words.join(" ");
            let (plain, parsed) = (plain(&text, line_info), parsed(&text, line_info));
            prop_assert_eq!(plain, parsed, "{}", text);
        }
    }
}
