//! Tests: texts read with all that earlier lines taught must say what each of their lines
//! says alone, which the full parser reads.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::header;
use super::parse::{Dialect, Mark, Piece, TextParser};
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

/// What the lines of `text` say, each read alone.
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
        check(&body[..end], super::dialect(&body[..end], &header).unwrap());
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
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..Default::default() })]

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
