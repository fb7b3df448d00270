//! How fast are the store and its importer? Bytes of decompressed text per
//! second for converting and expanding, warp instructions per second for walking.
//! `expand_tracez` minus `zstd_alone` is the cost that reading a `.tracez` adds to zstd.
//!
//! One thread unless a name says otherwise; the trace is made here: loops with
//! strided loads, one scattered load, a divergent branch.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::LazyLock;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use gpumodel::core::isa::Access;
use gpumodel::trace::{ConvertRequest, Silent, Store, convert, expand};
use zstd::dict::DecoderDictionary;

#[path = "../common/packing.rs"]
mod packing;
#[allow(dead_code)]
#[path = "../common/rendering.rs"]
mod rendering;

const CTAS: u64 = 128;
const WARPS: u64 = 8;
const TURNS: u64 = 60;

fn main() {
    divan::main();
}

/// A folder with the trace, in plain and compressed form, and its store.
struct Made {
    folder: tempfile::TempDir,
    text_bytes: usize,
    instructions: u64,
}

static MADE: LazyLock<Made> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let text = trace();
    std::fs::write(folder.path().join("plain.traceg"), &text).unwrap();
    let packed = zstd::bulk::compress(text.as_bytes(), 3).unwrap();
    std::fs::write(folder.path().join("packed.traceg.zst"), packed).unwrap();
    let binary = packing::packed(&text, packing::Packing { chunk: 1024, ..Default::default() });
    std::fs::write(folder.path().join("packed.tracez"), binary).unwrap();
    for form in FORMS {
        std::fs::write(folder.path().join(form.name), form.of(&text)).unwrap();
    }
    let made = Made { folder, text_bytes: text.len(), instructions: 0 };
    store_of(&made, "plain.traceg", "walk.gpt");
    let store = Store::open(&made.folder.path().join("walk.gpt")).unwrap();
    Made { instructions: store.kernel(0).warp_instructions(), ..made }
});

/// A version of the tracer's text, made of the one of late version 4.
struct Form {
    name: &'static str,
    version: &'static str,
    /// CTA and warp come first.
    leading: bool,
    line: &'static str,
    /// Text in place of the immediate.
    tail: &'static str,
    raw: bool,
}

const LATE_4: Form =
    Form { name: "late 4", version: "4", leading: false, line: "", tail: " 0 ", raw: false };

const FORMS: &[Form] = &[
    Form { name: "1.2", version: "1.2", leading: true, tail: " ", ..LATE_4 },
    Form { name: "3", version: "3", tail: " ", ..LATE_4 },
    Form { name: "4, source lines", line: "117 ", tail: " ", ..LATE_4 },
    LATE_4,
    Form { name: "late 5", version: "5", tail: " 0 192 ", ..LATE_4 },
    Form { name: "6", version: "6", tail: " 0 0 NoVal ", ..LATE_4 },
    Form { name: "5, raw", version: "5", leading: true, raw: true, ..LATE_4 },
];

impl Form {
    fn of(&self, text: &str) -> String {
        let Self { version, line, .. } = self;
        let lines = u8::from(!line.is_empty());
        let head = format!("version = {version}\n-enable lineinfo = {lines}");
        let (header, body) = text.split_at(text.find("\n#BEGIN_TB").unwrap());
        let mut out = header.replace("version = 4", &head) + "\n";
        let (mut cta, mut warp) = (0, 0);
        for one in body.lines() {
            if let Some(instruction) = one.strip_suffix(" 0 ") {
                let lead = if self.leading { format!("{cta} 0 0 {warp} ") } else { String::new() };
                writeln!(out, "{lead}{line}{instruction}{}", self.tail).unwrap();
                continue;
            }
            if let Some(at) = one.strip_prefix("thread block = ") {
                cta = at.split(',').next().unwrap().parse().unwrap();
            } else if let Some(number) = one.strip_prefix("warp = ") {
                warp = number.parse::<u32>().unwrap();
            }
            if !self.raw {
                writeln!(out, "{one}").unwrap();
            }
        }
        out
    }
}

fn trace() -> String {
    let mut text = format!(
        "-kernel name = bench\n-kernel id = 1\n-grid dim = ({CTAS},1,1)\n-block dim = (256,1,1)\n\
         -shmem = 0\n-nregs = 32\n-accelsim tracer version = 4\n#traces format = bench\n"
    );
    for cta in 0..CTAS {
        write!(text, "\n#BEGIN_TB\n\nthread block = {cta},0,0\n").unwrap();
        for warp in 0..WARPS {
            write!(text, "\nwarp = {warp}\ninsts = {}\n", 2 + TURNS * 12).unwrap();
            warp_lines(&mut text, cta * WARPS + warp);
        }
        text.push_str("\n#END_TB\n");
    }
    text
}

fn warp_lines(text: &mut String, warp: u64) {
    text.push_str("0000 ffffffff 1 R1 MOV 0 0 0 \n");
    for turn in 0..TURNS {
        let base = 0x7f00_0000_0000 + warp * 128 + turn * 0x20000;
        let scattered = 0x7f10_0000_0000 + (warp * 7919 + turn * 104_729) % 4096 * 64;
        let mask = 0xffff_ffff_u64 >> (turn % 3 * 7);
        writeln!(text, "0010 ffffffff 1 R4 LDG.E 1 R2 4 1 0x{base:x} 4 0 ").unwrap();
        writeln!(text, "0020 ffffffff 1 R5 LDG.E 1 R8 4 1 0x{:x} 4 0 ", base + 64).unwrap();
        for pc in (0x30..0x90).step_by(0x10) {
            writeln!(text, "{pc:04x} ffffffff 1 R6 FFMA 3 R4 R5 R6 0 0 ").unwrap();
        }
        write!(text, "0090 {mask:08x} 1 R7 LDG.E 1 R10 4 2 0x{scattered:x}").unwrap();
        for lane in 1..mask.count_ones() {
            write!(text, " {}", i64::from(lane * 37 % 64) * 4 - 100).unwrap();
        }
        text.push_str(" 0 \n");
        writeln!(text, "00a0 {mask:08x} 1 R6 FADD 2 R6 R7 0 0 ").unwrap();
        writeln!(text, "00b0 ffffffff 0 STG.E 2 R2 R6 4 1 0x{base:x} 4 0 ").unwrap();
        text.push_str("00c0 ffffffff 0 BRA 0 0 0 \n");
    }
    text.push_str("00d0 ffffffff 0 EXIT 0 0 0 \n");
}

fn store_of(made: &Made, name: &str, output: &str) -> PathBuf {
    let output = made.folder.path().join(output);
    let inputs = vec![made.folder.path().join(name)];
    let request = ConvertRequest { inputs, output: output.clone(), ..ConvertRequest::default() };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| convert(&request, &Silent)).unwrap();
    output
}

/// Bytes of a form's text.
#[divan::bench(args = FORMS.iter().map(|form| form.name), sample_count = 5)]
fn convert_version(bencher: Bencher<'_, '_>, name: &str) {
    let made = &*MADE;
    let bytes = std::fs::metadata(made.folder.path().join(name)).unwrap().len();
    bencher.counter(BytesCount::new(bytes)).bench_local(|| store_of(made, name, "version.gpt"));
}

/// The frames of a `.tracez`, its dictionary, and the bytes of text in them.
fn frames(file: &[u8]) -> (Vec<&[u8]>, DecoderDictionary<'static>, u64) {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let number = |at: usize| usize::try_from(word(at)).unwrap();
    let nul = file.iter().position(|&byte| byte == 0).unwrap();
    let start = nul + 9 + number(nul + 1);
    let end = number(file.len() - 8);
    let (mut at, mut frames, mut bytes) = (start, Vec::new(), 0);
    while at < end {
        let chunks = number(at + 4);
        at += 8;
        for _ in 0..chunks {
            let frame = &file[at + 4..at + 4 + number(at)];
            bytes += zstd::zstd_safe::get_frame_content_size(frame).unwrap().unwrap();
            frames.push(frame);
            at += 4 + frame.len();
        }
    }
    (frames, DecoderDictionary::copy(&file[nul + 9..start]), bytes)
}

#[divan::bench]
fn zstd_alone(bencher: Bencher<'_, '_>) {
    let file = std::fs::read(MADE.folder.path().join("packed.tracez")).unwrap();
    let (frames, dictionary, bytes) = frames(&file);
    let decoder = zstd::bulk::Decompressor::with_prepared_dictionary(&dictionary);
    let mut decoder = decoder.unwrap();
    let mut text = Vec::with_capacity(1 << 20);
    bencher.counter(BytesCount::new(bytes)).bench_local(|| {
        for frame in &frames {
            decoder.decompress_to_buffer(black_box(frame), &mut text).unwrap();
            black_box(&text);
        }
    });
}

#[divan::bench]
fn expand_tracez(bencher: Bencher<'_, '_>) {
    let path = MADE.folder.path().join("packed.tracez");
    let file = std::fs::read(&path).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    bencher.counter(BytesCount::new(frames(&file).2)).bench_local(|| {
        pool.install(|| expand(black_box(&path), &mut std::io::sink()).unwrap());
    });
}

#[divan::bench(args = ["plain.traceg", "packed.traceg.zst", "packed.tracez"], sample_count = 5)]
fn convert_text(bencher: Bencher<'_, '_>, name: &str) {
    let made = &*MADE;
    bencher
        .counter(BytesCount::new(made.text_bytes))
        .bench_local(|| store_of(made, name, "bench.gpt"));
}

/// A log of `mem_trace`: per warp the loads and stores of a loop, warps mixed.
fn log(triples: bool) -> String {
    let context = "MEMTRACE: CTX 0x00000000deadbee0 -";
    let mut text = format!(
        "{context} LAUNCH - Kernel pc 0x00007f0000000000 - Kernel name bench(float*) - grid launch id \
         0 - grid size {CTAS},1,1 - block size 256,1,1 - nregs 32 - shmem 0 - cuda stream id 0\n"
    );
    for turn in 0..TURNS / 2 {
        for warp in 0..CTAS * WARPS {
            let (cta, slot) = (warp / WARPS, warp % WARPS * 4 + cta_slot(warp));
            let opcode = if turn % 3 == 2 { "STG.E.SYS" } else { "LDG.E.SYS" };
            write!(text, "{context} grid_launch_id 0 - CTA {cta},0,0 - warp {slot} - {opcode} - ")
                .unwrap();
            if triples {
                text.push_str("Size 4 - MREF per threads(threadidx,data,address) : ");
            }
            for lane in 0..32 {
                let base = 0x7f00_0000_0000 + warp * 128 + turn * 0x20000;
                let scattered = (warp * 7919 + turn * 104_729 + lane * 37) % 4096 * 64;
                let at = base + if turn % 8 == 7 { scattered } else { lane * 4 };
                match triples {
                    true => write!(text, "Thread{lane},0x{:016x},0x{at:016x} ", lane * 3).unwrap(),
                    false => write!(text, "0x{at:016x} ").unwrap(),
                }
            }
            text.push('\n');
        }
    }
    text
}

/// CTAs that share an SM take turns in its slots.
fn cta_slot(warp: u64) -> u64 {
    warp / WARPS % 4
}

#[divan::bench(args = [false, true], sample_count = 5)]
fn convert_log(bencher: Bencher<'_, '_>, triples: bool) {
    let made = &*MADE;
    let name = format!("log-{triples}.txt");
    let text = log(triples);
    std::fs::write(made.folder.path().join(&name), &text).unwrap();
    bencher.counter(BytesCount::new(text.len())).bench_local(|| store_of(made, &name, "log.gpt"));
}

#[divan::bench]
fn open(bencher: Bencher<'_, '_>) {
    let path = MADE.folder.path().join("walk.gpt");
    bencher.bench_local(|| Store::open(black_box(&path)).unwrap());
}

/// Walks every warp; `visit` consumes one segment.
fn walk(visit: impl Fn(&mut gpumodel::trace::WarpCursor, &[u32], &mut Access) -> u64) -> u64 {
    let store = Store::open(&MADE.folder.path().join("walk.gpt")).unwrap();
    let code = store.code(0).unwrap();
    // Per segment: instructions before each one with addresses, and after the last.
    let gaps: Vec<Vec<u32>> = code
        .segments
        .iter()
        .map(|segment| {
            let statics = &code.instructions[segment.range()];
            let runs = statics.split(|instruction| instruction.width > 0);
            runs.map(|run| u32::try_from(run.len()).unwrap()).collect()
        })
        .collect();
    let mut access = Access::default();
    let mut sum = 0_u64;
    for ordinal in 0..store.kernel(0).cta_count() {
        let cta = store.cta(0, ordinal).unwrap();
        for warp in 0..cta.warp_count() {
            let mut cursor = cta.warp(warp);
            while let Some(segment) = cursor.next_segment() {
                let gaps = &gaps[usize::try_from(segment).unwrap()];
                sum = sum.wrapping_add(visit(&mut cursor, gaps, &mut access));
            }
        }
    }
    sum
}

#[divan::bench]
fn walk_without_addresses(bencher: Bencher<'_, '_>) {
    bencher
        .counter(ItemsCount::new(MADE.instructions))
        .bench_local(|| walk(|cursor, _, _| cursor.skip(cursor.left())));
}

#[divan::bench]
fn walk_with_addresses(bencher: Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(MADE.instructions)).bench_local(|| {
        walk(|cursor, gaps, access| {
            let mut sum = cursor.skip(gaps[0]);
            for gap in &gaps[1..] {
                cursor.access(access);
                sum = sum.wrapping_add(access.base);
                sum += cursor.skip(*gap);
            }
            sum
        })
    });
}
