//! Tests: instruction lines read by splitting at spaces, slowly and plainly, as what
//! the parser must agree with.

use proptest::prelude::*;

use super::line;
use gpumodel_core::isa::{AddressMode, MOST_IMMEDIATES, Register, RegisterFile};

/// What a line says, registers as they print.
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
    word.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u64::from_str_radix(word, 16).ok())?
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
        return Some((AddressMode::List, all.first().copied().unwrap_or(0), 0, steps.collect()));
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
    let fields = line::parse(text.as_bytes(), line_info).ok()?;
    let fixed = fields.fixed;
    let print = |all: &[Register]| all.iter().map(ToString::to_string).collect();
    let tail = std::str::from_utf8(fields.tail).unwrap().split(' ').filter(|word| !word.is_empty());
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
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_parser_agrees_with_plain_splitting(
        start in prop::sample::select(LINES),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..5, prop::sample::select(WORDS)), 0..4),
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
