//! Do generated traces, however odd, survive the store, raw and grouped?

use std::fmt::Write as _;
use std::fs;

use gpumodel::trace::{ConvertRequest, export};
use proptest::prelude::*;

use crate::rendering::{compare_all, converted};

/// A static instruction of a generated kernel.
#[derive(Clone, Debug)]
pub(crate) struct Fixed {
    text: String,
    width: u8,
    immediates: String,
}

/// A dynamic instruction: which static, mask, address mode, base, step, tail.
pub(crate) type Executed = (prop::sample::Index, u32, u8, u64, i64, Option<String>);

/// A kernel: grid, statics, and per CTA and warp the executed instructions.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    line_info: bool,
    statics: Vec<Fixed>,
    pub(crate) ctas: Vec<Vec<Vec<Executed>>>,
}

fn fixed() -> impl Strategy<Value = Fixed> {
    let register = prop_oneof!["R(0|[1-9][0-9]?)", "UR[0-9]", "P[0-6]", "UP[0-6]"];
    let registers = prop::collection::vec(register, 0..4);
    let opcode = "[A-Z][A-Z0-9]{1,5}(\\.[A-Z0-9]{1,4}){0,2}";
    let width = prop_oneof![2 => Just(0_u8), 1 => Just(4_u8), 1 => Just(16_u8)];
    let immediates = prop::collection::vec(any::<i32>(), 0..3);
    (0_u32..0x400, registers.clone(), opcode, registers, width, immediates).prop_map(
        |(pc, destinations, opcode, sources, width, immediates)| {
            let list = |all: &[String]| {
                all.iter().fold(all.len().to_string(), |text, one| format!("{text} {one}"))
            };
            let (destinations, sources) = (list(&destinations), list(&sources));
            let text = format!("{destinations} {opcode} {sources} {width}");
            let immediates = immediates.iter().map(|i| format!(" {i}")).collect();
            Fixed { text: format!("{:04x}|{text}", pc * 16), width, immediates }
        },
    )
}

fn executed() -> impl Strategy<Value = Executed> {
    let mask = prop_oneof![
        4 => Just(u32::MAX),
        1 => Just(0),
        1 => Just(0xffff),
        1 => (0_u32..32).prop_map(|lane| 1 << lane),
        2 => any::<u32>(),
    ];
    let base = prop_oneof![0_u64..4096, 0x7f00_0000_0000_u64..0x7f00_0010_0000, any::<u64>()];
    let step = prop_oneof![4 => Just(4_i64), 1 => Just(0), 1 => -64_i64..64, 1 => any::<i64>()];
    let tail =
        prop_oneof![8 => Just(None), 1 => "[a-z][a-zA-Z0-9:=]{0,8}( [a-z]{1,3})?".prop_map(Some)];
    (any::<prop::sample::Index>(), mask, 0_u8..5, base, step, tail)
}

pub(crate) fn kernel() -> impl Strategy<Value = Kernel> {
    let warp = prop::collection::vec(executed(), 0..30);
    let warps = prop::collection::vec(warp, 2..=2);
    let ctas = prop::collection::vec(warps, 1..5);
    let statics = prop::collection::vec(fixed(), 1..8);
    (any::<bool>(), statics, ctas).prop_map(|(line_info, statics, ctas)| Kernel {
        line_info,
        statics,
        ctas,
    })
}

/// The fields of one line after the mask's; modes above 2 follow the tracer's rule.
fn line(kernel: &Kernel, executed: &Executed) -> String {
    let (index, mask, mode, base, step, tail) = executed;
    let fixed = index.get(&kernel.statics);
    let (pc, rest) = fixed.text.split_once('|').unwrap();
    let mut text = if kernel.line_info { format!("{} ", base % 100) } else { String::new() };
    write!(text, "{pc} {mask:08x} {rest}").unwrap();
    if fixed.width > 0 {
        addresses(&mut text, *mask, *mode, *base, *step);
    }
    text.push_str(&fixed.immediates);
    if let Some(tail) = tail {
        write!(text, " {tail}").unwrap();
    }
    text
}

fn addresses(text: &mut String, mask: u32, mode: u8, base: u64, step: i64) {
    let lanes: Vec<u32> = (0..32).filter(|lane| mask >> lane & 1 == 1).collect();
    let neighbours = lanes.windows(2).all(|pair| pair[1] == pair[0] + 1);
    let mode = match (mode, lanes.len()) {
        (0..=2, _) => mode,
        (_, 0) => return text.push_str(" 1 0x0 0"),
        (_, 1) => 2,
        _ if neighbours => 1,
        _ => 2,
    };
    let at = |lane: u32| base.wrapping_add_signed(step.wrapping_mul(i64::from(lane)));
    match mode {
        0 => {
            text.push_str(" 0");
            lanes.iter().for_each(|lane| write!(text, " 0x{:x}", at(*lane)).unwrap());
        }
        1 => write!(text, " 1 0x{base:x} {step}").unwrap(),
        _ => {
            write!(text, " 2 0x{base:x}").unwrap();
            for pair in lanes.windows(2) {
                let delta = at(pair[1]).wrapping_sub(at(pair[0])).cast_signed();
                write!(text, " {delta}").unwrap();
            }
        }
    }
}

fn header(kernel: &Kernel) -> String {
    format!(
        "-kernel name = g\n-kernel id = 1\n-grid dim = ({},1,1)\n-block dim = (64,1,1)\n\
         -shmem = 0\n-nregs = 8\n-accelsim tracer version = 4\n-enable lineinfo = {}\n\
         #traces format = g\n\n",
        kernel.ctas.len(),
        u8::from(kernel.line_info)
    )
}

pub(crate) fn grouped(kernel: &Kernel) -> String {
    only(kernel, |_| true)
}

/// The grouped text with those CTAs that `takes` takes.
pub(crate) fn only(kernel: &Kernel, takes: impl Fn(usize) -> bool) -> String {
    let mut text = header(kernel);
    for (cta, warps) in kernel.ctas.iter().enumerate().filter(|(cta, _)| takes(*cta)) {
        if warps.iter().all(Vec::is_empty) {
            continue;
        }
        write!(text, "#BEGIN_TB\n\nthread block = {cta},0,0\n").unwrap();
        for (warp, lines) in warps.iter().enumerate() {
            write!(text, "\nwarp = {warp}\ninsts = {}\n", lines.len()).unwrap();
            lines
                .iter()
                .for_each(|executed| writeln!(text, "{} ", line(kernel, executed)).unwrap());
        }
        text.push_str("\n#END_TB\n\n");
    }
    text
}

/// The same records, warps taking turns.
pub(crate) fn raw(kernel: &Kernel) -> String {
    let mut text = header(kernel);
    for turn in 0..30 {
        for (cta, warps) in kernel.ctas.iter().enumerate().rev() {
            for (warp, lines) in warps.iter().enumerate() {
                if let Some(executed) = lines.get(turn) {
                    writeln!(text, "{cta} 0 0 {warp} {} ", line(kernel, executed)).unwrap();
                }
            }
        }
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn generated_kernels_survive(kernel in kernel()) {
        prop_assume!(kernel.ctas.iter().flatten().any(|warp| !warp.is_empty()));
        let folder = tempfile::tempdir().unwrap();
        let mut hashes = Vec::new();
        for text in [grouped(&kernel), raw(&kernel)] {
            let input = folder.path().join("kernel-1.trace");
            fs::write(&input, &text).unwrap();
            let store = converted(&input, folder.path());
            store.verify().unwrap();
            compare_all(&store, 0, &text);
            hashes.push(store.content_hash());
        }
        prop_assert_eq!(&hashes[0], &hashes[1]);
    }
}

/// Text that follows a line's fields may have an `=` in it; only `key = value` is
/// a setting.
#[test]
fn raw_lines_may_end_in_an_equals_sign() {
    let mut text =
        header(&Kernel { line_info: false, statics: Vec::new(), ctas: vec![Vec::new()] });
    text.push_str("0 0 0 1 0000 ffffffff 0 A0 0 0 a= \n");
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("kernel-1.trace");
    fs::write(&input, &text).unwrap();
    compare_all(&converted(&input, folder.path()), 0, &text);
}

/// The value after `-accelsim tracer version = ` in headers; empty: no such line.
const VERSIONS: &[&str] = &["", "1.2", "3", "4", "5", "6"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..Default::default() })]

    #[test]
    fn stores_survive_a_round_trip_through_text(
        kernel in kernel(),
        version in prop::sample::select(VERSIONS),
        in_frames in any::<bool>(),
    ) {
        prop_assume!(kernel.ctas.iter().flatten().any(|warp| !warp.is_empty()));
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let key = "-accelsim tracer version = ";
        let keys = if version.is_empty() { String::new() } else { format!("{key}{version}\n") };
        let text = if in_frames { grouped(&kernel) } else { raw(&kernel) };
        fs::write(at("kernel-1.trace"), text.replace(&format!("{key}4\n"), &keys)).unwrap();
        let store = converted(&at("kernel-1.trace"), folder.path());
        let request = ConvertRequest { output: at("text"), ..ConvertRequest::default() };
        export(&store, &request).unwrap();
        let again = converted(&at("text"), folder.path());
        prop_assert_eq!(store.content_hash(), again.content_hash());
    }
}

/// Raw text with `extra` fields after the warp, and a pair of records per copy.
pub(crate) fn copies(extra: &str, version: u32, immediate: &str) -> String {
    let copy = "0010 ffffffff 0 LDGSTS.E.128 2 R2 R4 16 1 ";
    format!(
        "-kernel name = c\n-kernel id = 1\n-grid dim = (1,1,1)\n-block dim = (32,1,1)\n-shmem = 0\n\
         -nregs = 8\n-accelsim tracer version = {version}\n#traces format = c\n\n\
         0 0 0 0 {extra}0000 ffffffff 1 R2 MOV 0 0{immediate}\n\
         0 0 0 0 {extra}{copy}0x80 16{immediate}\n\
         0 0 0 0 {extra}{copy}0x7f0000000000 16{immediate}\n\
         0 0 0 0 {extra}{copy}0x280 16{immediate}\n\
         0 0 0 0 {extra}{copy}0x7f0000000400 16{immediate}\n\
         0 0 0 0 {extra}0020 ffffffff 0 EXIT 0 0{immediate}\n"
    )
}

/// The addresses that the store of `text` has, and its instruction count.
fn bases(text: &str) -> (Vec<u64>, u64) {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("kernel-1.trace");
    fs::write(&input, text).unwrap();
    let store = converted(&input, folder.path());
    let code = store.code(0).unwrap();
    let mut cursor = store.cta(0, 0).unwrap().warp(0);
    let (mut bases, mut access) = (Vec::new(), gpumodel::core::isa::Access::default());
    while cursor.next_segment().is_some() {
        while let Some(number) = cursor.instruction() {
            if code.instructions[usize::try_from(number).unwrap()].width == 0 {
                cursor.skip(1);
            } else {
                cursor.access(&mut access);
                bases.push(access.base);
            }
        }
    }
    (bases, store.kernel(0).warp_instructions())
}

#[test]
fn the_shared_half_of_an_asynchronous_copy_is_dropped() {
    let global = vec![0x7f00_0000_0000, 0x7f00_0000_0400];
    assert_eq!(bases(&copies("", 5, " 0")), (global.clone(), 4));
    // Late version 4 prints immediates and doubles; early version 4 does neither.
    assert_eq!(bases(&copies("", 4, " 0")), (global, 4));
    assert_eq!(bases(&copies("", 4, "")).1, 6);
}

#[test]
fn extra_leading_fields_are_skipped() {
    assert_eq!(bases(&copies("17 3 ", 5, " 0")), bases(&copies("", 5, " 0")));
    assert_eq!(bases(&copies("1 2 3 4 5 6 7 ", 6, " 0")), bases(&copies("", 6, " 0")));
}

#[test]
fn old_grouped_lines_keep_their_leading_fields() {
    let text = "-kernel name = old\n-kernel id = 1\n-grid dim = (1,1,1)\n-block dim = (32,1,1)\n\
        -shmem = 0\n-nregs = 8\n\n#traces format = old\n\n#BEGIN_TB\n\nthread block = 0,0,0\n\n\
        warp = 0\ninsts = 2\n0 0 0 0 0008 ffffffff 1 R2 LDG 1 R1 4 1 0x00000b0000000100 4\n\
        0 0 0 0 0010 ffffffff 0 EXIT 0 0\n\n#END_TB\n";
    assert_eq!(bases(text), (vec![0xb00_0000_0100], 2));
}

#[test]
fn stores_and_cursors_can_be_shared_and_sent() {
    fn shared<T: Send + Sync>() {}
    shared::<gpumodel::trace::Store>();
    shared::<gpumodel::trace::WarpCursor>();
}

/// A kernel of several chunks: `ctas` CTAs of 8 warps that run a loop of 40
/// turns; `scatter` makes the addresses of every CTA its own.
fn long(ctas: u64, scatter: u64) -> String {
    let mut text = format!(
        "-kernel name = l\n-kernel id = 1\n-grid dim = ({ctas},1,1)\n-block dim = (256,1,1)\n\
         -shmem = 0\n-nregs = 8\n-accelsim tracer version = 3\n#traces format = l\n"
    );
    for cta in 0..ctas {
        write!(text, "\n#BEGIN_TB\n\nthread block = {cta},0,0\n").unwrap();
        for warp in 0..8 {
            write!(text, "\nwarp = {warp}\ninsts = 121\n").unwrap();
            for turn in 0..40_u64 {
                let base =
                    4096 + warp * 128 + turn * 8192 + (cta * 97 + turn * turn) % 1013 * scatter;
                writeln!(text, "0010 ffffffff 1 R1 LDS 1 R2 4 1 0x{base:x} 4 ").unwrap();
                writeln!(text, "0020 ffffffff 1 R1 FADD 2 R1 R1 0 ").unwrap();
                writeln!(text, "0030 ffffffff 0 BRA 0 0 ").unwrap();
            }
            text.push_str("0040 ffffffff 0 EXIT 0 0 \n");
        }
        text.push_str("\n#END_TB\n");
    }
    text
}

#[test]
fn kernels_of_many_chunks_survive() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("kernel-1.traceg");
    let sizes = [0, 4096].map(|scatter| {
        // 213 CTAs of 968 warp instructions: three chunks and a bit.
        let text = long(213, scatter);
        fs::write(&input, &text).unwrap();
        let store = converted(&input, folder.path());
        store.verify().unwrap();
        compare_all(&store, 0, &text);
        let kernel = store.kernel(0);
        assert_eq!(kernel.warp_instructions(), 213 * 968);
        kernel.decoded_bytes()
    });
    // CTAs that repeat each other share everything but a few bytes per warp.
    assert!(sizes[0] < 213 * 8 * 4, "{sizes:?}");
    // Otherwise each CTA has 40 separate residues, which its warps still share.
    assert!((213 * 40 * 2..213 * 40 * 6).contains(&sizes[1]), "{sizes:?}");
}
