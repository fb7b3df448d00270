//! Are faults of traces, streams and the end of a run handled as public troubles ask for? On own
//! small traces, and on those of the reference where it is present.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

use crate::skip;

/// Runs `analyze` of `trace` with a record on standard output.
fn analyzed(trace: &Path, machine: &str, set: &[&str]) -> (Option<i32>, Value, String) {
    let cache = tempfile::tempdir().unwrap();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("gpumodel"));
    command.env("GPUMODEL_CACHE", cache.path()).args(["analyze", "--json", "-", "-m", machine]);
    command.args(set.iter().flat_map(|key| ["--set", key])).arg(trace);
    let output = command.output().unwrap();
    let record = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), record, String::from_utf8(output.stderr).unwrap())
}

/// A trace of the reference, where it is present.
fn reference(case: &str) -> Option<PathBuf> {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/reference/cases");
    let path = cases.join(case);
    if path.exists() {
        return Some(path);
    }
    skip::skipped(&format!("no {}", path.display()));
    None
}

/// The notes of a record, in one text.
fn notes(record: &Value) -> String {
    record["notes"].to_string()
}

/// A trace folder of kernels of one warp: the stream of each and its instructions.
fn folder(kernels: &[(&str, &[&str])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut list = String::new();
    for (place, (stream, lines)) in kernels.iter().enumerate() {
        let (id, count, lines) = (place + 1, lines.len(), lines.join("\n"));
        let text = format!(
            "-kernel name = k{id}\n-kernel id = {id}\n-grid dim = (1,1,1)\n\
             -block dim = (32,1,1)\n-shmem = 0\n-nregs = 8\n-binary version = 70\n\
             -cuda stream id = {stream}\n-accelsim tracer version = 3\n\n#traces format = x\n\n\
             #BEGIN_TB\n\nthread block = 0,0,0\n\nwarp = 0\ninsts = {count}\n{lines}\n\n#END_TB\n"
        );
        fs::write(folder.path().join(format!("kernel-{id}.traceg")), text).unwrap();
        list += &format!("kernel-{id}.traceg\n");
    }
    fs::write(folder.path().join("kernelslist.g"), list).unwrap();
    folder
}

/// When the launches of the only application start and end.
fn spans(record: &Value) -> Vec<[u64; 2]> {
    let kernels = record["solo"][0]["kernels"].as_array().unwrap();
    let span =
        |kernel: &Value| ["start_cycle", "end_cycle"].map(|key| kernel[key].as_u64().unwrap());
    kernels.iter().map(span).collect()
}

#[test]
fn the_default_stream_waits_for_the_others_unless_it_is_one_per_thread() {
    let lines = &["0000 ffffffff 1 R4 MUFU.RCP 1 R4 0", "0010 ffffffff 0 EXIT 0 0"][..];
    let three = folder(&[("11", lines), ("0", lines), ("33", lines)]);
    let (code, record, said) = analyzed(three.path(), "gv100", &[]);
    assert_eq!(code, Some(0), "{said}");
    let one_by_one = spans(&record);
    assert!(one_by_one.windows(2).all(|two| two[1][0] >= two[0][1]), "{one_by_one:?}");
    assert!(notes(&record).contains("taken as the legacy default stream"), "{record}");
    let per_thread = "quirks.per_thread_default_stream=true";
    let (_, record, _) = analyzed(three.path(), "gv100", &[per_thread]);
    let at_once = spans(&record);
    assert!(at_once.windows(2).all(|two| two[1][0] < two[0][1]), "{at_once:?}");
    assert!(notes(&record).contains("a default stream per thread"), "{record}");
    // Streams without the default one run at once, and nothing is assumed.
    let others = folder(&[("1", lines), ("2", lines)]);
    let (_, record, _) = analyzed(others.path(), "gv100", &[]);
    assert!(spans(&record)[1][0] < spans(&record)[0][1]);
    assert!(!notes(&record).contains("stream"), "{record}");
}

#[test]
fn lanes_at_null_are_told_in_a_note_and_in_the_assumptions() {
    let lines = ["0000 ffffffff 1 R4 LDG.E 1 R2 4 1 0x0 0", "0010 ffffffff 0 EXIT 0 0"];
    let (code, record, said) = analyzed(folder(&[("0", &lines)]).path(), "gv100", &[]);
    assert_eq!((code, &record["solo"][0]["l1"]["accesses"]), (Some(0), &Value::from(0)), "{said}");
    assert!(notes(&record).contains("32 active lanes of 1 accesses are at address 0"), "{record}");
    let assumed = record["solo"][0]["kernels"][0]["assumptions"].to_string();
    assert!(assumed.contains("active lane at address 0"), "{assumed}");
}

#[test]
fn a_lost_arrival_is_bad_input() {
    let lines = ["0000 ffffffff 0 BAR.SYNC 0 0 1 64", "0010 ffffffff 0 EXIT 0 0"];
    let (code, _, said) = analyzed(folder(&[("0", &lines)]).path(), "v100", &[]);
    let words = "CTA (0,0,0) of kernel k1 waits forever at barrier 1 with 1 of 2 arrivals: warp 0";
    assert!(code == Some(2) && said.contains(words), "{said}");
    assert!(said.contains("at PC 0x0000") && said.contains("a fault of the trace"), "{said}");
    assert!(!said.contains("defect"), "{said}");
}

#[test]
fn published_troubles_have_their_right_values() {
    if let Some(path) = reference("copies-between-kernels/default-stream") {
        let cycles = analyzed(&path, "gv100", &[]).1["solo"][0]["cycles"].as_u64().unwrap();
        assert!(cycles.abs_diff(3 * 30_419) * 50 < 3 * 30_419, "{cycles}");
    }
    for case in ["one-mb", "one-mb-then-idle"] {
        let Some(path) = reference(&format!("write-through-l2/{case}")) else { continue };
        let through = analyzed(&path, "accelsim-qv100", &["l2.cache.write=write-through"]).1;
        let written = &through["solo"][0]["kernels"][0]["dram"]["write_sectors"];
        assert_eq!(written, &Value::from(32_768), "{case}");
    }
    if let Some(path) = reference("null-addresses") {
        let record = analyzed(&path, "gv100", &[]).1;
        assert!(notes(&record).contains("64 active lanes of 2 accesses"), "{record}");
    }
    if let Some(path) = reference("lost-arrival") {
        let (code, _, said) = analyzed(&path, "h100", &[]);
        assert!(code == Some(2) && said.contains("1 of 2 arrivals"), "{said}");
        assert_eq!(analyzed(&path.join("whole"), "h100", &[]).0, Some(0));
    }
}

/// Three launches, the last with twice the instructions: cycles per instruction and scheduler.
fn rate(record: &Value) -> f64 {
    let kernel =
        |place: usize, key: &str| record["solo"][0]["kernels"][place][key].as_f64().unwrap();
    let more = |key: &str| kernel(2, key) - kernel(1, key);
    more("cycles") / (more("warp_instructions") / 4.0)
}

/// `reference/cases/README.md`: the time of the work at the published rate.
#[test]
fn matrix_multiplies_take_the_time_of_their_work() {
    for (case, machine, cycles) in [
        ("tensor-rate/HMMA_16816_F32__B_in_R5", "a100", 8.0),
        ("tensor-rate/HMMA_16816_F32__warps_8", "a100", 8.0),
        ("tensor-rate/four_warps_HMMA_16816_F32", "a100", 8.0),
        ("tensor-rate/four_warps_HMMA_1688_F32_TF32", "a100", 8.0),
        ("tensor-rate/MUFU_RCP", "a100", 8.0),
        ("tensor-rate/HMMA_16816_F32__warps_8", "v100", 16.0),
        ("hopper/rate-HGMMA_64x64x16_F32_BF16-hand-32", "h100", 32.0),
        ("hopper/rate-HGMMA_64x128x16_F32-hand-64", "h100", 64.0),
        ("hopper/indep-HGMMA_64x128x16_F32-hand-64", "h100", 64.0),
    ] {
        let Some(path) = reference(case) else { return };
        let (code, record, said) = analyzed(&path, machine, &[]);
        assert_eq!(code, Some(0), "{said}");
        assert!((rate(&record) / cycles - 1.0).abs() < 0.01, "{case}: {}", rate(&record));
        let foreign = notes(&record).contains("instructions of another architecture");
        assert_eq!(foreign, machine == "v100", "{case}");
    }
}

#[test]
fn bulk_copies_of_the_reference_move_their_boxes() {
    let Some(path) = reference("hopper") else { return };
    let (code, record, said) = analyzed(&path, "h100", &[]);
    assert_eq!(code, Some(0), "{said}");
    // Each of four CTAs copies the same box of 64 by 64 elements of two bytes.
    let sectors = |key: &str| record["solo"][0]["l2"][key].as_u64().unwrap();
    assert!(sectors("reads") >= 4 * 8192 / 32, "{}", record["solo"][0]["l2"]);
    assert!(record["solo"][0]["dram"]["read_sectors"].as_u64().unwrap() >= 8192 / 32);
    assert!(notes(&record).contains("8 bulk copies without addresses"), "{record}");
}
