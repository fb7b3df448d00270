//! Is a workload model's trace valid, and the same in any order of access?

use std::collections::BTreeMap;
use std::fs;

use gpumodel::core::isa::{Access, AddressMode, Register};
use gpumodel::core::units::Dim3;
use gpumodel::trace::workload::{Compression, Kernel, Workload, WorkloadError, write_folder};

use crate::common::workloads;

/// A kernel of one CTA of 40 threads around `code`.
pub(crate) fn small(code: &str) -> String {
    format!(
        "description = 'd'\nbehaviour = 'b'\nsource = 's'\n[buffers]\nx = {{ bytes = 4096 }}\n\
         [[kernel]]\nname = 'k'\ngrid = [2]\nblock = [40]\nregisters = 16\nshared_bytes = 256\n\
         code = [\n{code}\n]\n"
    )
}

pub(crate) fn parse(text: &str) -> Result<Workload, WorkloadError> {
    Workload::parse("test", "test.toml", text.to_owned(), 1.0)
}

/// The texts of a workload's launches.
fn texts(workload: &Workload) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    write_folder(workload, &target, Compression::None, &mut |_| {}).unwrap();
    let path = |launch| target.join(format!("kernel-{launch}.traceg"));
    (1..=workload.kernel_count()).map(|launch| fs::read_to_string(path(launch)).unwrap()).collect()
}

/// Instruction lines of one warp of CTA 0.
fn lines(text: &str, warp: u32) -> Vec<String> {
    let start = text.find(&format!("\nwarp = {warp}\n")).unwrap();
    let body = text[start..].lines().skip(3).take_while(|line| !line.is_empty());
    body.map(|line| line.trim_end().to_owned()).collect()
}

fn masks(text: &str, warp: u32) -> Vec<String> {
    let short = |line: String| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    lines(text, warp).into_iter().map(short).collect()
}

#[test]
fn a_branch_and_a_loop_diverge_the_lanes() {
    let code = r#"
        { when = "lane < 4", body = ["FADD"], else = ["FMUL"] },
        { loop = "k", count = "lane % 3", counter = "R4", body = ["R2 = FFMA R2, R3"] },
        "@(thread == 0) EXIT",
        "EXIT","#;
    let text = &texts(&parse(&small(code)).unwrap())[0];
    let expected = [
        // BSSY, the branch of the lanes that leave, their bodies, BSYNC.
        "0000 ffffffff",
        "0010 fffffff0",
        "0020 0000000f",
        "0030 0000000f",
        "0040 fffffff0",
        "0050 ffffffff",
        // BSSY, the branch of lanes 0, 3, 6, … around the loop, then two trips.
        "0060 ffffffff",
        "0070 49249249",
        "0080 b6db6db6",
        "0090 b6db6db6",
        "00a0 b6db6db6",
        "00b0 24924924",
        "0080 24924924",
        "0090 24924924",
        "00a0 24924924",
        "00b0 00000000",
        "00c0 ffffffff",
        // Lane 0 exits, the others later.
        "00d0 00000001",
        "00e0 fffffffe",
    ];
    assert_eq!(masks(text, 0), expected);
    assert_eq!(masks(text, 1)[0], "0000 000000ff", "40 threads leave 8 to the second warp");
}

#[test]
fn a_branch_that_no_lane_takes_runs_no_instruction() {
    let code = r#"
        { when = "cta > 5", body = ["FADD"] },
        { when = "thread >= 32", body = ["EXIT"], else = ["FMUL"] },
        "MUFU.RCP", "EXIT","#;
    let text = &texts(&parse(&small(code)).unwrap())[0];
    // The first condition is the same for a warp: no BSSY, and all lanes branch.
    let opcodes = |warp| -> Vec<String> {
        lines(text, warp).iter().map(|l| l.split(' ').nth(3).unwrap().to_owned()).collect()
    };
    assert_eq!(opcodes(0), ["BRA", "BSSY", "BRA", "FMUL", "BSYNC", "MUFU.RCP", "EXIT"]);
    // The second warp leaves in the body; nothing is left for what follows.
    assert_eq!(opcodes(1), ["BRA", "BSSY", "BRA", "EXIT"]);
}

#[test]
fn addresses_are_listed_as_the_tracer_lists_them() {
    let code = r#"
        "R2 = LDG.E.SYS R4 [x + 4*thread]",
        "R2 = LDG.E.SYS R4 [x + 128 - 4*lane]",
        "R2 = LDG.E.64.SYS R4 [x + 8*(lane ^ 1)]",
        "R2 = LDG.E.SYS R4 [x]",
        "@(lane == 5) R2 = LDG.E.SYS R4 [x + 4*lane]",
        "@(lane % 16 == 0) STS R4, R2 [8*lane]",
        "@0 STS R4, R2 [4*lane] #3",
        "EXIT","#;
    let lines = lines(&texts(&parse(&small(code)).unwrap())[0], 0);
    let pairs = "-8 24 ".repeat(16);
    let pairs = pairs.trim_end().strip_suffix(" 24").unwrap();
    assert_eq!(lines[0], "0000 ffffffff 1 R2 LDG.E.SYS 1 R4 4 1 0x7f4000000000 4 0");
    assert_eq!(lines[1], "0010 ffffffff 1 R2 LDG.E.SYS 1 R4 4 1 0x7f4000000080 -4 0");
    assert_eq!(
        lines[2],
        format!("0020 ffffffff 1 R2 LDG.E.64.SYS 1 R4 8 2 0x7f4000000008 {pairs} 0")
    );
    assert_eq!(lines[3], "0030 ffffffff 1 R2 LDG.E.SYS 1 R4 4 1 0x7f4000000000 0 0");
    assert_eq!(lines[4], "0040 00000020 1 R2 LDG.E.SYS 1 R4 4 2 0x7f4000000014 0");
    assert_eq!(lines[5], "0050 00010001 0 STS 2 R4 R2 4 2 0x0 128 0");
    assert_eq!(lines[6], "0060 00000000 0 STS 2 R4 R2 4 1 0x0 0 3");
}

/// One dynamic instruction.
#[derive(Debug, PartialEq)]
struct Record {
    pc: u64,
    opcode: String,
    registers: Vec<Register>,
    mask: u32,
    access: Option<(AddressMode, Vec<(usize, u64)>)>,
}

/// The records of a warp from its stream.
fn streamed(kernel: &Kernel, cta: u64, warp: u32) -> Vec<Record> {
    let code = kernel.code();
    let mut stream = kernel.cta(cta).warp(warp);
    let mut records = Vec::new();
    while let Some(segment) = stream.next_segment() {
        for instruction in &code.instructions[code.segments[segment as usize].range()] {
            let mask = stream.mask();
            let mut access = Access::default();
            let access = if instruction.width == 0 {
                assert_eq!(stream.skip(1), u64::from(mask.count_ones()));
                None
            } else {
                stream.access(&mut access);
                Some((access.mode, access.active().collect()))
            };
            let registers = instruction.destinations.iter().chain(&*instruction.sources);
            records.push(Record {
                pc: instruction.pc,
                opcode: code.opcodes[instruction.opcode as usize].clone(),
                registers: registers.copied().collect(),
                mask,
                access,
            });
        }
    }
    records
}

/// A general register.
fn register(word: &str) -> Register {
    let number = word.strip_prefix('R').unwrap().parse().unwrap();
    Register::new(gpumodel::core::isa::RegisterFile::General, number).unwrap()
}

/// Reads an instruction line of tracer version 5, token by token.
fn read(line: &str) -> Record {
    let mut words = line.split_ascii_whitespace();
    let mut word = || words.next().unwrap_or_else(|| panic!("short: {line}"));
    let pc = u64::from_str_radix(word(), 16).unwrap();
    let mask = u32::from_str_radix(word(), 16).unwrap();
    let destinations: usize = word().parse().unwrap();
    assert!(destinations <= 1, "{line}");
    let mut registers: Vec<_> = (0..destinations).map(|_| register(word())).collect();
    let opcode = word().to_owned();
    let sources: usize = word().parse().unwrap();
    assert!(sources <= 4, "{line}");
    registers.extend((0..sources).map(|_| register(word())));
    // What follows is kept as text.
    if opcode.contains("GMMA") || opcode.starts_with("UTMA") {
        return Record { pc, opcode, registers, mask, access: None };
    }
    let access = (word() != "0").then(|| {
        let lanes = (0..32).filter(|lane| mask >> lane & 1 == 1);
        let mode = word();
        let base = u64::from_str_radix(word().strip_prefix("0x").unwrap(), 16).unwrap();
        let mut address = base;
        if mode == "1" {
            let step: i64 = word().parse().unwrap();
            let at = |(k, lane): (u64, usize)| {
                (lane, base.wrapping_add(k.wrapping_mul(step.cast_unsigned())))
            };
            return (AddressMode::Stride, (0..).zip(lanes).map(at).collect());
        }
        assert_eq!(mode, "2", "{line}");
        let listed = lanes.enumerate().map(|(k, lane)| {
            if k > 0 {
                address = address.wrapping_add_signed(word().parse().unwrap());
            }
            (lane, address)
        });
        (AddressMode::Delta, listed.collect())
    });
    let _immediate: i64 = word().parse().unwrap();
    assert!(matches!(words.next(), None | Some("Val")), "{line}");
    Record { pc, opcode, registers, mask, access }
}

/// CTAs by ordinal, each with its position and its warps' records.
type Ctas = Vec<(u64, Dim3, Vec<Vec<Record>>)>;

/// Reads every `step`th CTA of a grouped text, and the count of all.
fn read_every(step: u64, text: &str) -> (Ctas, u64) {
    let (mut ctas, mut count, mut expected) = (Ctas::new(), 0, 0);
    for line in text.lines().skip_while(|line| !line.starts_with("#traces")).skip(1) {
        if let Some(position) = line.strip_prefix("thread block = ") {
            let parts: Vec<u32> = position.split(',').map(|n| n.parse().unwrap()).collect();
            if count % step == 0 {
                ctas.push((count, Dim3::new(parts[0], parts[1], parts[2]), Vec::new()));
            }
            count += 1;
            continue;
        }
        if count == 0 || (count - 1) % step != 0 {
            continue;
        }
        let warps = &mut ctas.last_mut().unwrap().2;
        if let Some(warp) = line.strip_prefix("warp = ") {
            assert_eq!(warps.len(), warp.parse::<usize>().unwrap());
            warps.push(Vec::new());
        } else if let Some(count) = line.strip_prefix("insts = ") {
            expected = count.parse().unwrap();
        } else if !line.is_empty() && !line.starts_with('#') && !line.starts_with("cluster") {
            warps.last_mut().unwrap().push(read(line));
        } else if line.is_empty() || line == "#END_TB" {
            let done = warps.last().map_or(0, Vec::len);
            assert!(done == 0 || done == expected, "{done} instructions, {expected} announced");
        }
    }
    (ctas, count)
}

/// A workload with few CTAs: by its scale, and where that leaves much text, by constants.
fn shortened(name: &str) -> Workload {
    let long = ["attention", "ilp-", "md5hash", "sgemm", "ugpu-", "ws-m"];
    let scale = if long.iter().any(|start| name.starts_with(start)) { 0.0001 } else { 0.004 };
    let constants: &[(&str, i64)] = match name {
        "attention-mma" | "attention-wgmma" => &[("length", 512), ("heads", 1)],
        "ilp-fft" => &[("batch", 16)],
        "sgemm-tiled" => &[("columns", 256), ("depth", 128)],
        "ugpu-convs" | "ugpu-cp" => &[("width", 512)],
        "ws-img" => &[("columns", 4)],
        "ws-mm" => &[("width", 256), ("height", 64)],
        "ws-mvp" => &[("grid", 8)],
        _ => &[],
    };
    Workload::load_with(name, &gpumodel::models(), scale, constants).unwrap()
}

/// Up to four CTAs of two launches of each kernel of every workload.
#[test]
fn texts_and_streams_agree() {
    for name in gpumodel::trace::workload::names(&gpumodel::models()).into_iter() {
        // A fifth of the text of all together; others have the kinds of its kernels.
        if name == "bert-layer" {
            continue;
        }
        let workload = shortened(name);
        let mut launches = BTreeMap::new();
        for (index, text) in texts(&workload).iter().enumerate() {
            let kernel = workload.kernel(index);
            let launch = launches.entry(kernel.launch().name.clone()).or_insert(0);
            *launch += 1;
            if *launch > 2 {
                continue;
            }
            let (ctas, count) = read_every(kernel.cta_count().div_ceil(4), text);
            assert_eq!(count, kernel.cta_count(), "{name}");
            // Backwards: a warp's instructions do not depend on earlier requests.
            for (ordinal, position, warps) in ctas.iter().rev() {
                assert_eq!(kernel.cta(*ordinal).position(), *position);
                assert_eq!(warps.len(), kernel.cta(*ordinal).warp_count() as usize);
                for (warp, records) in warps.iter().enumerate() {
                    let same =
                        streamed(&kernel, *ordinal, u32::try_from(warp).unwrap()) == *records;
                    assert!(same, "{name}: CTA {position}, warp {warp}");
                }
            }
        }
    }
}

#[test]
fn warps_walked_on_other_threads_are_equal() {
    let workload = Workload::load_scaled("two-streams", &gpumodel::models(), 0.02).unwrap();
    let kernel = workload.kernel(1);
    let here: Vec<_> = (0..2).map(|warp| streamed(&kernel, 0, warp)).collect();
    let there: Vec<_> = std::thread::scope(|scope| {
        let walks = [0, 1].map(|warp| {
            scope.spawn({
                let k = &kernel;
                move || streamed(k, 0, warp)
            })
        });
        walks.into_iter().map(|walk| walk.join().unwrap()).collect()
    });
    assert_eq!(here, there);
    assert_ne!(here[0], here[1], "lists differ from warp to warp");
}

#[test]
fn a_header_repeats_what_the_file_says() {
    let workload = Workload::load_scaled("two-streams", &gpumodel::models(), 0.01).unwrap();
    let text = &texts(&workload)[3];
    for line in [
        "-kernel name = _Z5chasePK4NodePi",
        "-kernel id = 4",
        "-grid dim = (1,1,1)",
        "-block dim = (64,1,1)",
        "-shmem = 0",
        "-nregs = 16",
        "-binary version = 70",
        "-cuda stream id = 2",
        "-shmem base_addr = 0x00007f3e02000000",
        "-local mem base_addr = 0x00007f3e00000000",
        "-accelsim tracer version = 5",
        "-enable lineinfo = 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}");
    }
}

#[test]
fn launches_repeat_in_rows_and_rounds() {
    let kernel = |name: &str, launches: u32| {
        format!(
            "[[kernel]]\nname = '{name}'\ngrid = [1]\nblock = [32]\nlaunches = {launches}\n\
             code = ['@(launch % 2) FADD', 'EXIT']\n"
        )
    };
    let head = "description = 'd'\nbehaviour = 'b'\nsource = 's'\nrounds = 2\n";
    let workload = parse(&[head, &kernel("a", 2), &kernel("b", 1)].concat()).unwrap();
    let names: Vec<String> =
        (0..workload.kernel_count()).map(|k| workload.kernel(k).launch().name.clone()).collect();
    assert_eq!(names, ["a", "a", "b", "a", "a", "b"]);
    let first: Vec<String> = texts(&workload).iter().map(|text| masks(text, 0).remove(0)).collect();
    // Launches of `a` are numbered 0 to 3, those of `b` 0 and 1.
    let (none, all) = ("0000 00000000", "0000 ffffffff");
    assert_eq!(first, [none, all, none, none, all, all]);
}

#[test]
fn rounds_may_be_a_scaled_constant() {
    let head = "description = 'd'\nbehaviour = 'b'\nsource = 's'\nrounds = 'passes'\n\
                [scaled]\npasses = 8\n";
    let kernel = "[[kernel]]\nname = 'k'\ngrid = [1]\nblock = [32]\ncode = ['EXIT']\n";
    for (scale, launches) in [(1.0, 8), (0.25, 2), (0.01, 1)] {
        let workload = Workload::parse("w", "w.toml", [head, kernel].concat(), scale).unwrap();
        assert_eq!(workload.kernel_count(), launches);
    }
    let kernel = kernel.replace("code", "launches = 'passes / 4'\ncode");
    assert_eq!(parse(&[head, &kernel].concat()).unwrap().kernel_count(), 16);
    let none = kernel.replace("passes / 4", "passes - 8");
    let error = parse(&[head, &none].concat()).unwrap_err().to_string();
    assert!(error.contains("`launches` is 0, expected 1 to"), "{error}");
}

/// CTAs of a cluster know their place, bring bulk copies for each other, and arrive at each
/// other's barrier objects: their addresses have the rank above bit 24.
#[test]
fn a_kernel_may_have_clusters() {
    let kernel = |cluster: &str, copy: &str, object: &str| {
        format!(
            "description = 'd'\nbehaviour = 'b'\nsource = 's'\n[buffers]\nx = {{ bytes = 64 }}\n\
             [[kernel]]\nname = 'k'\ngrid = [4]\nblock = [32]\ncluster = {cluster}\n\
             shared_bytes = 64\nbinary_version = 90\ncode = [\n\
             {{ bulk = 'UBLKCP', address = 'x', rows = 1, row_bytes = 64, object = 8{copy} }},\n\
             '@(lane == 0) SYNCS.ARRIVE.TRANS64.A1T0 R2, R3 [{object}] #{{0}}', 'EXIT']\n"
        )
    };
    let workload = parse(&kernel("[2]", ", multicast = 3", "8 + 16777216 * (cta % 2)")).unwrap();
    let text = &texts(&workload)[0];
    assert!(text.contains("thread block = 3,0,0\ncluster id = 1,0,0\ncluster cta = 1,0,0\n"));
    assert!(text.contains(" 16 0x8 1 0x3 64 0 "), "{text}");
    assert!(text.contains("0x1000008"), "{text}");
    let outside = parse(&kernel("[2]", "", "8 + 33554432")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let error = write_folder(&outside, folder.path(), Compression::None, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("lie beyond `shared_bytes`"), "{error}");
    for (cluster, copy) in [("[3]", ""), ("[1, 32]", ""), ("[2]", ", multicast = 65536")] {
        let error = parse(&kernel(cluster, copy, "8")).unwrap_err().to_string();
        let said = ["whole clusters", "expected 1 to 16", "expected 16 bits"];
        assert!(said.iter().any(|words| error.contains(words)), "{error}");
    }
    assert!(!texts(&parse(&kernel("[1]", "", "8")).unwrap())[0].contains("cluster"));
}

#[test]
fn a_loop_that_all_warps_run_equally_may_contain_a_barrier() {
    let code = "{ loop = 'k', count = '1 + hash(cta, 4)', body = ['BAR.SYNC'] }, 'EXIT'";
    let workload = parse(&small(code)).unwrap();
    let barriers = |warp| streamed(&workload.kernel(0), 1, warp).len();
    assert_eq!(barriers(0), barriers(1));
}

#[test]
fn equal_seeds_give_equal_traces_and_different_seeds_do_not() {
    let text = fs::read_to_string(workloads().join("gather.toml")).unwrap();
    let with = |text: &str| {
        let workload = Workload::parse("gather", "gather.toml", text.to_owned(), 0.01).unwrap();
        texts(&workload).remove(0)
    };
    let other = text.replace("seed = 20261121", "seed = 20261122");
    assert_ne!(other, text);
    assert_eq!(with(&text), with(&text));
    assert_ne!(with(&text), with(&other));
}
