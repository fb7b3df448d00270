//! Records of a store as trace text, and trace text as records: the two sides
//! that round trips compare. It implements the text format again, without
//! code of the importer.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};

use gpumodel::core::isa::{Access, AddressMode, Code, Instruction, Register};
use gpumodel::core::units::Dim3;
use gpumodel::trace::{ConvertRequest, CtaTrailingFields, Silent, Store, WarpCursor, convert};

/// The reference traces, if this machine has them.
pub(crate) fn reference() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/reference/traces");
    if path.is_dir() {
        return Some(path);
    }
    // As in `skip.rs`, which benchmarks do not include.
    let _ = std::io::stderr().write_all(b"skipped: reference traces not present\n");
    None
}

/// Converts `input` into `folder` and opens the store.
pub(crate) fn converted(input: &Path, folder: &Path) -> Store {
    let output = folder.join("out.gpt");
    let inputs = vec![input.to_path_buf()];
    let request = ConvertRequest { inputs, output: output.clone(), ..ConvertRequest::default() };
    convert(&request, &Silent).unwrap();
    Store::open(&output).unwrap()
}

/// The decompressed text of a file.
pub(crate) fn text(path: &Path) -> String {
    let bytes = fs::read(path).unwrap();
    if !bytes.starts_with(&[0xfd, b'7', b'z']) {
        return String::from_utf8(bytes).unwrap();
    }
    let mut text = String::new();
    liblzma::read::XzDecoder::new_multi_decoder(&*bytes).read_to_string(&mut text).unwrap();
    text
}

/// One CTA as text: position, notes, and per warp its lines without CTA fields.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Lines<'a> {
    pub(crate) position: Dim3,
    pub(crate) notes: Vec<&'a str>,
    pub(crate) warps: BTreeMap<u32, Vec<&'a str>>,
}

fn position(text: &str) -> Dim3 {
    let parts: Vec<u32> = text.trim().split(',').map(|part| part.parse().unwrap()).collect();
    Dim3::new(parts[0], parts[1], parts[2])
}

/// The CTAs of grouped text.
pub(crate) fn grouped(text: &str) -> Vec<Lines<'_>> {
    let mut all: Vec<Lines<'_>> = Vec::new();
    let mut warp = 0;
    for line in text.lines().map(without_end) {
        if let Some(at) = line.strip_prefix("thread block = ") {
            all.push(Lines { position: position(at), ..Lines::default() });
        } else if let Some(number) = line.strip_prefix("warp = ") {
            warp = number.parse().unwrap();
        } else if line.starts_with("insts") || line.starts_with(['#', '-']) || line.is_empty() {
        } else if line.contains(" = ") {
            all.last_mut().unwrap().notes.push(line);
        } else {
            all.last_mut().unwrap().warps.entry(warp).or_default().push(line);
        }
    }
    all.retain(|cta| !cta.warps.is_empty() || !cta.notes.is_empty());
    all
}

/// A line without the space that tracers put at its end.
fn without_end(line: &str) -> &str {
    line.strip_suffix(' ').unwrap_or(line)
}

/// The CTAs of raw text, grouped by the tracer's own rule.
pub(crate) fn raw(text: &str) -> Vec<Lines<'_>> {
    let late = text.contains("-accelsim tracer version = 5");
    let mut all: BTreeMap<[u32; 3], Lines<'_>> = BTreeMap::new();
    let mut halves: BTreeMap<([u32; 3], u32), bool> = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())) {
        let mut fields = line.splitn(5, ' ');
        let mut number = || fields.next().unwrap().parse::<u32>().unwrap();
        let (x, y, z, warp) = (number(), number(), number(), number());
        if late && line.contains(" LDGSTS") {
            let half = halves.entry(([z, y, x], warp)).or_default();
            *half = !*half;
            if *half {
                continue;
            }
        }
        let cta = all.entry([z, y, x]).or_default();
        cta.position = Dim3::new(x, y, z);
        cta.warps.entry(warp).or_default().push(without_end(fields.next().unwrap()));
    }
    all.into_values().collect()
}

/// The parts of a static instruction's canonical line.
#[derive(Debug)]
struct Parts {
    /// Up to the mask, and from there to the width.
    before: String,
    after: String,
    immediates: String,
    addressed: bool,
}

impl Parts {
    fn new(instruction: &Instruction, code: &Code) -> Self {
        let line = instruction.line.map(|line| format!("{line} ")).unwrap_or_default();
        let list = |registers: &[Register]| {
            registers.iter().fold(registers.len().to_string(), |text, one| format!("{text} {one}"))
        };
        let opcode = &code.opcodes[usize::try_from(instruction.opcode).unwrap()];
        let (destinations, sources) = (list(&instruction.destinations), list(&instruction.sources));
        let before = format!("{line}{:04x} ", instruction.pc);
        if instruction.immediates.len() > 2 {
            // All that follows the sources is in the tail.
            let after = format!(" {destinations} {opcode} {sources}");
            return Self { before, after, immediates: String::new(), addressed: false };
        }
        Self {
            before,
            after: format!(" {destinations} {opcode} {sources} {}", instruction.width),
            immediates: instruction.immediates.iter().map(|i| format!(" {i}")).collect(),
            addressed: instruction.width > 0,
        }
    }

    /// Writes one record as a line of canonical text.
    fn render(&self, access: &Access, out: &mut String) {
        out.clear();
        out.push_str(&self.before);
        match access.mask {
            u32::MAX => out.push_str("ffffffff"),
            0 => out.push_str("00000000"),
            mask => write!(out, "{mask:08x}").unwrap(),
        }
        out.push_str(&self.after);
        if self.addressed {
            render_addresses(access, out);
        }
        out.push_str(&self.immediates);
    }
}

fn render_addresses(access: &Access, out: &mut String) {
    match access.mode {
        AddressMode::Stride => write!(out, " 1 0x{:x} {}", access.base, access.stride).unwrap(),
        AddressMode::List => {
            out.push_str(" 0");
            for (_, address) in access.active() {
                write!(out, " 0x{address:x}").unwrap();
            }
        }
        AddressMode::Delta => {
            write!(out, " 2 0x{:x}", access.base).unwrap();
            let mut last = access.base;
            for (_, address) in access.active().skip(1) {
                write!(out, " {}", address.wrapping_sub(last).cast_signed()).unwrap();
                last = address;
            }
        }
    }
}

/// The fields of a line, with addresses brought to one spelling.
fn fields(line: &str) -> impl Iterator<Item = &str> {
    line.split_ascii_whitespace().map(|field| match field.strip_prefix("0x") {
        Some(digits) if digits.len() > 1 => digits.trim_start_matches('0'),
        Some("0") => "",
        Some(digits) => digits,
        None => field,
    })
}

/// Compares every record of CTA `ordinal` with `expected`.
fn compare(store: &Store, kernel: usize, ordinal: u64, parts: &[Parts], expected: &Lines<'_>) {
    let code = store.code(kernel).unwrap();
    let cta = store.cta(kernel, ordinal).unwrap();
    let CtaTrailingFields { note, warps: tails } = store.tails(kernel, ordinal).unwrap();
    assert_eq!(cta.position, expected.position);
    assert_eq!(String::from_utf8(note).unwrap(), expected.notes.join("\n"));
    for warp in 0..cta.warp_count() {
        let lines = expected.warps.get(&warp).map_or(&[][..], |lines| &lines[..]);
        let tails = tails.get(usize::try_from(warp).unwrap()).map_or(&[][..], |tails| &tails[..]);
        assert_eq!(cta.warp_instructions(warp), u64::try_from(lines.len()).unwrap());
        compare_warp(cta.warp(warp), &code, parts, lines, tails);
    }
}

fn compare_warp(
    mut cursor: WarpCursor,
    code: &Code,
    parts: &[Parts],
    lines: &[&str],
    tails: &[(u64, Vec<u8>)],
) {
    let (mut line, mut access) = (String::new(), Access::default());
    let mut expected = lines.iter().zip(0_u64..);
    let mut tails = tails.iter().peekable();
    while let Some(segment) = cursor.next_segment() {
        for number in code.segments[usize::try_from(segment).unwrap()].range() {
            let parts = &parts[number];
            access.mask = cursor.mask();
            if parts.addressed {
                cursor.access(&mut access);
            } else {
                assert_eq!(cursor.skip(1), u64::from(access.mask.count_ones()));
            }
            parts.render(&access, &mut line);
            let (expected, at) = expected.next().unwrap();
            if let Some((_, tail)) = tails.next_if(|tail| tail.0 == at) {
                line.push(' ');
                line.push_str(std::str::from_utf8(tail).unwrap());
            }
            let same = line == *expected || fields(&line).eq(fields(expected));
            assert!(same, "instruction {at}: {line} is not {expected}");
        }
    }
    assert_eq!((expected.next(), tails.next()), (None, None));
}

/// Compares every record of a kernel with the text it came from.
pub(crate) fn compare_all(store: &Store, kernel: usize, text: &str) {
    let expected = if text.contains("#BEGIN_TB") { grouped(text) } else { raw(text) };
    assert_eq!(store.kernel(kernel).cta_count(), u64::try_from(expected.len()).unwrap());
    let code = store.code(kernel).unwrap();
    let parts: Vec<Parts> = code.instructions.iter().map(|one| Parts::new(one, &code)).collect();
    for (ordinal, lines) in expected.iter().enumerate() {
        compare(store, kernel, u64::try_from(ordinal).unwrap(), &parts, lines);
    }
}
