//! Do logs of NVBit's `mem_trace` become stores with the same content, and does the store of a
//! real log match the log's columns?

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use gpumodel::core::units::ByteCount;
use gpumodel::trace::{ConvertRequest, CtaChoice, Filter, Silent, Store, convert};
use proptest::prelude::*;
use serde_json::Value;

use crate::memlog_text::{
    Access, DIALECTS, Dialect, Said, access_line, accesses, launch_line, log, made, pc, program,
    request, said, try_bytes, wanted,
};
use crate::rendering::{converted, reference, text};

#[test]
fn every_dialect_gives_the_same_accesses_by_launch_cta_and_slot() {
    let accesses = accesses();
    for dialect in DIALECTS {
        let made = made(&log(&accesses, 2, dialect));
        let store = made.store();
        store.verify().unwrap();
        assert_eq!(said(&store), wanted(&accesses), "{dialect:?}");
        for kernel in 0..2 {
            let summary = store.kernel(kernel);
            let launch = summary.launch();
            assert!(summary.memory_only());
            assert_eq!(launch.name, format!("void k{kernel}<(a) - (b)>(float*, int)"));
            assert_eq!(launch.id, u32::try_from(kernel + 1).unwrap());
            assert_eq!((launch.registers, launch.warps_per_cta()), (12, 3));
            assert_eq!(summary.warp_instructions(), summary.memory_instructions());
            let code = store.code(kernel).unwrap();
            let pcs: Vec<u64> = code.instructions.iter().map(|one| one.pc).collect();
            let reported = [pc("LDG.E.SYS"), pc("STG.E.64.SYS")];
            assert_eq!(pcs, if dialect == Dialect::Triples { reported } else { [0, 0x10] });
            assert!(code.instructions.iter().all(|one| one.sources.is_empty()));
        }
        let bytes = |of: fn(&gpumodel::trace::KernelSummary<'_>) -> u64| {
            (0..2).map(|kernel| of(&store.kernel(kernel))).sum::<u64>()
        };
        assert_eq!(bytes(|kernel| kernel.text_bytes()), made.report.text_bytes);
        let warnings = made.report.warnings.join("\n");
        assert!(warnings.contains("memory-only"), "{warnings}");
        assert!(warnings.contains(": 6 lines left out: neither launch nor access"), "{warnings}");
    }
}

#[test]
fn logs_are_known_by_their_content_in_every_compression() {
    let plain = log(&accesses(), 2, Dialect::Ahead);
    let hash = made(&plain).store().content_hash();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(plain.as_bytes()).unwrap();
    let mut bzip = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip.write_all(plain.as_bytes()).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(plain.as_bytes()).unwrap();
    let zstd = zstd::bulk::compress(plain.as_bytes(), 3).unwrap();
    let packed = [gzip.finish().unwrap(), bzip.finish().unwrap(), xz.finish().unwrap(), zstd];
    for packed in packed {
        assert_eq!(try_bytes(&packed).unwrap().store().content_hash(), hash);
        let cut = try_bytes(&packed[..packed.len() - 9]).err().unwrap().to_string();
        assert!(cut.contains("expected whole"), "{cut}");
    }
    assert_eq!(made(&plain.replace('\n', "\r\n")).store().content_hash(), hash);
}

#[test]
fn the_memory_limit_does_not_change_the_store() {
    let log = log(&accesses(), 2, Dialect::Equal);
    let place = tempfile::tempdir().unwrap();
    let stored = |memory: Option<u64>| {
        // Of the same name each time: the store remembers it.
        let folder = place.path().join("log");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let memory = memory.map(ByteCount);
        let request = ConvertRequest { memory, ..request(&folder, log.as_bytes()) };
        convert(&request, &Silent).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "something was left");
        fs::read(&request.output).unwrap()
    };
    let usual = stored(None);
    assert!([2000, 300, 0].into_iter().all(|memory| stored(Some(memory)) == usual));
}

#[test]
fn filters_take_launches_and_ctas() {
    let accesses = accesses();
    let log = log(&accesses, 2, Dialect::Ahead);
    let filtered = |filter: Filter| {
        let folder = tempfile::tempdir().unwrap();
        let request = ConvertRequest { filter, ..request(folder.path(), log.as_bytes()) };
        let report = convert(&request, &Silent).unwrap();
        (said(&Store::open(&request.output).unwrap()), report.left_out)
    };
    let kept = |keep: fn(&Access) -> bool| {
        let kept: Vec<Access> = accesses.iter().filter(|one| keep(one)).cloned().collect();
        wanted(&kept)
    };
    let second = Filter { kernels: Some("2".parse().unwrap()), ..Filter::default() };
    let (found, left_out) = filtered(second);
    let mut rows = kept(|one| one.launch == 1).into_iter();
    assert!(found.into_iter().eq(rows.by_ref().map(|((_, cta, warp), row)| ((0, cta, warp), row))));
    assert_eq!(left_out, 1);
    let ctas = |typed: &str| {
        let choice: CtaChoice = typed.parse().unwrap();
        filtered(Filter { ctas: Some(choice), ..Filter::default() }).0
    };
    assert_eq!(ctas("1"), kept(|one| one.cta == [1, 0, 0]));
    assert_eq!(ctas("first:2"), kept(|one| one.cta == [0, 0, 0] || one.cta == [1, 0, 0]));
}

#[test]
fn slots_beyond_the_warps_follow_in_the_first_ones() {
    let one = |slot, at| Access {
        launch: 0,
        cta: [0; 3],
        slot,
        opcode: "LDG.E",
        addresses: std::array::from_fn(|lane| if lane == 0 { at } else { 0 }),
    };
    let accesses = [one(9, 1), one(3, 2), one(7, 3), one(5, 4), one(9, 5), one(3, 6)];
    let made = made(&log(&accesses, 1, Dialect::Ahead));
    let firsts: BTreeMap<u32, Vec<u64>> = said(&made.store())
        .into_iter()
        .map(|((_, _, warp), rows)| (warp, rows.iter().map(|row| row.2[0]).collect()))
        .collect();
    assert_eq!(firsts, BTreeMap::from([(0, vec![2, 6, 1, 5]), (1, vec![4]), (2, vec![3])]));
    let warnings = made.report.warnings.join("\n");
    assert!(warnings.contains("1 thread block with more slots"), "{warnings}");
}

fn refused(from: &str, to: &str, line: u64, expected: &str) {
    let log = log(&accesses()[..2], 2, Dialect::Ahead);
    assert!(log.contains(from), "{from}");
    let error = try_bytes(log.replacen(from, to, 1).as_bytes()).err().unwrap().to_string();
    let place = format!("log:{line}: expected ");
    assert!(error.contains(&place) && error.contains(expected), "{from} -> {to}: {error}");
}

#[test]
fn broken_lines_name_their_place() {
    refused("grid size 3,2,1", "grid size 3,2", 4, "grid size x,y,z");
    refused("grid size 3,2,1", "grid size 0,2,1", 4, "a grid of a GPU");
    refused("grid size 3,2,1", "grid size 4294967295,4294967295,9", 4, "a grid of a GPU");
    refused("block size 72,1,1", "block size 72,1,15", 4, "1 to 1024 threads");
    refused(" - shmem 0", " - shmem -1", 4, "shmem NUMBER");
    refused(" - cuda stream id 0\n", "\n", 4, "cuda stream id");
    refused("LAUNCH - ", "LAUNCHED - ", 4, "a field of an access");
    refused("grid_launch_id 0", "grid_launch_id 7", 8, "the launch line of `grid_launch_id 7`");
    refused("CTA 0,0,0", "CTA 3,0,0", 8, "a CTA inside the launch's grid (3,2,1)");
    refused("warp ", "warp 99", 8, "a slot below 1024");
    refused("LDG.E.SYS - 0x", "0x", 8, "an opcode before the addresses");
    refused("LDG.E.SYS - 0x", "LDG.E.SYS - 0y", 8, "a field of an access");
    refused("00007f0000000008 ", "00007f000000008 ", 8, "as wide as the first");
    refused("0x00007f0000000008 ", "", 8, "32 addresses");
    refused("0x00007f0000000008 ", "0x00007f0000000008 0x0000000000000001 ", 8, "no more");
    refused("0x00007f0000000008 ", "0x0000\x007f0000000008 ", 8, "32 addresses");
    refused("MEMTRACE: STARTING", "MEMTRACE: FINISHING", 3, "`MEMTRACE: CTX 0x");
}

#[test]
fn a_log_without_launches_or_places_is_refused() {
    let accesses = accesses();
    let error = |log: &str| try_bytes(log.as_bytes()).err().unwrap().to_string();
    assert!(error("MEMTRACE: STARTING CONTEXT 0x1\n").contains("without a launch line"));
    assert!(error(&access_line(&accesses[0], Dialect::Ahead)).contains("the launch line of"));
    let pairs = launch_line(0, Dialect::Ahead) + "0x3f800000,0x00007f27433125fc\n";
    assert!(error(&pairs).contains("1 line of `0xDATA,0xADDRESS` alone"));
    assert!(error("hello\n").contains("a log of NVBit's `mem_trace`"));
    let silent = made(&launch_line(0, Dialect::Ahead));
    assert_eq!(silent.store().kernel(0).cta_count(), 0);
    assert!(silent.report.warnings.join("\n").contains("1 launch without an access"));
}

/// `log` truncated at `end` gives a part of the accesses, or an error.
fn cut_is_part(log: &[u8], end: usize, whole: &Said) {
    let Ok(made) = try_bytes(&log[..end]) else { return };
    for (key, rows) in said(&made.store()) {
        assert!(whole[&key].starts_with(&rows), "cut at {end}: {key:?}");
    }
}

#[test]
fn cut_logs_are_refused_or_are_their_first_lines() {
    for dialect in [Dialect::Ahead, Dialect::Equal, Dialect::Triples] {
        // One slot per CTA, so that a missing one does not renumber the others.
        let mut accesses = accesses();
        accesses.iter_mut().for_each(|one| one.slot = 4);
        let log = log(&accesses, 2, dialect);
        let (log, whole) = (log.as_bytes(), wanted(&accesses));
        (1..50).for_each(|part| cut_is_part(log, log.len() * part / 50, &whole));
        let last = log.len() - 900;
        (last..log.len()).step_by(7).for_each(|end| cut_is_part(log, end, &whole));
    }
}

#[test]
fn a_line_of_100_mb_is_refused_in_little_memory() {
    let mut bomb = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    bomb.write_all(launch_line(0, Dialect::Ahead).as_bytes()).unwrap();
    bomb.write_all(b"MEMTRACE: CTX 0x1 - grid_launch_id 0 - ").unwrap();
    (0..100).for_each(|_| bomb.write_all(&vec![b'x'; 1 << 20]).unwrap());
    let error = try_bytes(&bomb.finish().unwrap()).err().unwrap().to_string();
    assert!(error.contains("log:2: expected a line of less than 2 MiB"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..Default::default() })]

    #[test]
    fn flipped_logs_never_panic_and_leave_nothing(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..8), 1..4),
        dialect in prop::sample::select(&DIALECTS[..]),
    ) {
        let mut bytes = log(&accesses()[..12], 2, dialect).into_bytes();
        for (at, bit) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        if let Ok(made) = try_bytes(&bytes) {
            made.store().verify().unwrap();
        }
    }
}

#[test]
fn the_program_lists_what_is_not_modelled() {
    let made = made(&log(&accesses(), 2, Dialect::Ahead));
    let folder = made.folder.path();
    let (code, shown, _) = program(folder, &["inspect", "out.gpt"]);
    assert_eq!(code, Some(0));
    assert!(shown.contains("2 of 2 kernels are memory-only"), "{shown}");
    let analyze = ["analyze", "out.gpt", "--machine", "v100"];
    let (code, shown, _) = program(folder, &[&analyze[..], &["--report", "report"]].concat());
    assert_eq!(code, Some(0));
    assert!(shown.contains("memory-only: IPC is not modelled"), "{shown}");
    assert!(!shown.contains("thread instructions per cycle"), "{shown}");
    let row = shown.lines().find(|line| line.contains("k0")).unwrap();
    assert_eq!(row.matches('–').count(), 4, "IPC, bandwidth, CTAs and stall: {row}");
    let (code, json, _) = program(folder, &[&analyze[..], &["--json", "-"]].concat());
    assert_eq!(code, Some(0));
    let json: Value = serde_json::from_str(&json).unwrap();
    let app = &json["solo"][0];
    for row in [app, &app["kernels"][0], &app["kernels"][1]] {
        assert_eq!(row["memory_only"], true);
        assert!(row["ipc"].is_f64());
    }
    let lines = app["kernels"][0]["assumptions"].as_array().unwrap();
    let open =
        lines.iter().find(|open| open["what"] == "access of a log without its code").unwrap();
    assert_eq!(open["instructions"], app["kernels"][0]["warp_instructions"]);
    let page = fs::read_to_string(folder.join("report/index.html")).unwrap();
    assert!(page.contains("IPC is not modelled") && !folder.join("report/roofline.svg").exists());
    let csv = fs::read_to_string(folder.join("report/kernels.csv")).unwrap();
    assert!(csv.lines().skip(1).all(|line| line.ends_with(",true")), "{csv}");
    let words = ["convert", "out.gpt", "--to", "traceg", "-o", "text"];
    let (code, _, said) = program(folder, &words);
    assert_eq!((code, folder.join("text").exists()), (Some(2), false));
    assert!(said.contains("which has accesses alone"), "{said}");
}

#[test]
fn a_log_next_to_a_trace_marks_only_its_launches() {
    let folder = tempfile::tempdir().unwrap();
    let mut request = request(folder.path(), log(&accesses(), 2, Dialect::Ahead).as_bytes());
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/golden/v1.traceg");
    request.inputs.insert(0, trace);
    convert(&request, &Silent).unwrap();
    let store = Store::open(&request.output).unwrap();
    let marks: Vec<bool> = (0..3).map(|kernel| store.kernel(kernel).memory_only()).collect();
    assert_eq!(marks, [false, true, true]);
    assert_eq!(store.commands().count(), 3, "the marks are no commands");
}

/// The stores of logs that were kept say what they said: `BLESS=1` writes it once.
#[test]
fn the_golden_log_is_unchanged() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/golden");
    let (text, path) = (golden.join("memlog-v1.txt"), golden.join("memlog-v1.gpt"));
    let accesses = &accesses()[..8];
    let folder = tempfile::tempdir().unwrap();
    if std::env::var_os("BLESS").is_some() {
        fs::write(&text, log(accesses, 2, Dialect::Ahead)).unwrap();
        let request = request(folder.path(), &fs::read(&text).unwrap());
        convert(&request, &Silent).unwrap();
        fs::copy(&request.output, &path).unwrap();
    }
    let store = Store::open(&path).unwrap();
    store.verify().unwrap();
    assert!(store.kernel(0).memory_only() && store.kernel(1).memory_only());
    assert_eq!(said(&store), wanted(accesses));
    let fresh = try_bytes(&fs::read(&text).unwrap()).unwrap().store();
    assert_eq!(fresh.content_hash(), store.content_hash());
}

fn real(name: &str) -> Option<PathBuf> {
    Some(reference()?.join("real/memtrace_logs").join(name))
}

/// Launch 0's accesses of a real log of triples, read in another way: by its columns.
fn columns(text: &str) -> Vec<(u32, u32, String, Vec<u64>)> {
    let lines = text.lines().filter(|line| line.contains(" - grid_launch_id "));
    let row = |line: &str| {
        let columns: Vec<&str> = line.split(' ').collect();
        let at = |key: &str| columns.iter().position(|&column| column == key).unwrap();
        let cta = columns[at("CTA") + 1].split(',').next().unwrap().parse().unwrap();
        let slot = columns[at("warp") + 1].parse().unwrap();
        let addresses = columns.iter().filter_map(|column| {
            let (lane, address) = column.rsplit_once(",0x")?;
            lane.starts_with("Thread").then(|| u64::from_str_radix(address, 16).unwrap())
        });
        (cta, slot, columns[at("warp") + 3].to_owned(), addresses.collect())
    };
    lines.map(row).collect()
}

#[test]
fn the_real_log_of_vecadd_matches_its_columns() {
    let Some(path) = real("vectoradd_modified_memtrace.txt.xz") else { return };
    let rows = columns(&text(&path));
    let count = |opcode: &str| rows.iter().filter(|row| row.2 == opcode).count();
    assert_eq!([count("LDG.E.64.SYS"), count("STG.E.64.SYS"), rows.len()], [512, 256, 8 * 32 * 3]);
    let folder = tempfile::tempdir().unwrap();
    let store = converted(&path, folder.path());
    let said = said(&store);
    assert_eq!(said.len(), 8 * 32);
    for ((_, cta, warp), found) in &said {
        // Every slot from 0 to 31 of the CTA is used.
        let of = rows.iter().filter(|row| row.0 == cta[0] && row.1 == *warp);
        let wanted: Vec<_> = of.map(|row| (row.2.clone(), 8, row.3.clone())).collect();
        let found: Vec<_> =
            found.iter().map(|row| (row.0.clone(), row.1, row.2.to_vec())).collect();
        assert_eq!(found, wanted, "CTA {cta:?} warp {warp}");
    }
}

#[test]
fn caches_and_dram_of_the_real_log_are_its_sectors() {
    let Some(path) = real("vectoradd_modified_memtrace.txt.xz") else { return };
    let rows = columns(&text(&path));
    let sectors = |opcode: &str| {
        let of = rows.iter().filter(|row| row.2.starts_with(opcode));
        let mut all: Vec<u64> = of.flat_map(|row| row.3.iter().map(|at| at / 32)).collect();
        all.sort_unstable();
        all.dedup();
        u64::try_from(all.len()).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let words = ["analyze", path.to_str().unwrap(), "--machine", "v100", "--json", "-"];
    let (code, json, said) = program(folder.path(), &words);
    assert_eq!(code, Some(0), "{said}");
    let json: Value = serde_json::from_str(&json).unwrap();
    let kernel = &json["solo"][0]["kernels"][0];
    assert_eq!(kernel["warp_instructions"], 768);
    // Every sector once: 32 lanes of 8 bytes are 8 sectors, and no two accesses meet.
    assert_eq!(kernel["l1"]["accesses"], sectors("LDG") + sectors("STG"));
    assert_eq!(kernel["l1"]["reads"], sectors("LDG"));
    assert_eq!(kernel["dram"]["read_sectors"], sectors("LDG"));
}

#[test]
fn the_real_log_of_pairs_is_refused_with_its_reason() {
    let Some(path) = real("memtrace_out.txt.xz") else { return };
    let pairs = text(&path).lines().filter(|line| line.starts_with("0x")).count();
    let folder = tempfile::tempdir().unwrap();
    let words = ["convert", path.to_str().unwrap(), "-o", "out.gpt"];
    let (code, _, said) = program(folder.path(), &words);
    assert_eq!((code, pairs), (Some(2), 24_576));
    assert!(said.contains("24576 lines of `0xDATA,0xADDRESS` alone"), "{said}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
