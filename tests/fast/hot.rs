//! Hot spots: does `analyze --hot` change nothing, and do its stalls add up to the launch's?

use std::path::Path;

use serde_json::Value;

use crate::common::program::gpumodel_in;
use crate::shown::small;

/// The record of `analyze` of some samples with more words.
fn record(folder: &Path, more: &[&str]) -> Value {
    let words = ["analyze", "traces/samples/transpose", "traces/samples/two-streams"];
    let words = [&words[..], &["--machine", "warped-slicer", "--json", "-"], more].concat();
    let output = gpumodel_in(folder, &words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_record_has_its_hot_spots_and_is_else_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let plain = record(folder, &[]);
    let mut hot = record(folder, &["--hot", "2"]);
    for kernel in kernels(&mut hot) {
        let found = kernel.as_object_mut().unwrap().remove("hot").unwrap();
        let rows = found["rows"].as_array().unwrap();
        assert!((2..=8).contains(&rows.len()) && found["most"] == 2, "{found}");
    }
    assert!(hot == plain, "other keys have changed");
}

#[test]
fn all_instructions_together_lose_what_the_launch_loses_by_every_cause() {
    let mut hot = record(tempfile::tempdir().unwrap().path(), &["--hot", "1000"]);
    for kernel in kernels(&mut hot) {
        let found = &kernel["hot"];
        let whole = found["stall_slot_cycles"].as_f64().unwrap();
        let rest = found["unattributed_slot_cycles"].as_f64().unwrap();
        assert!(whole > 0.0 && rest.abs() < 1e-3 * whole, "{rest} of {whole}");
        let rows = found["rows"].as_array().unwrap();
        let fractions = kernel["stall_fractions"].as_object().unwrap();
        let stalls = fractions.iter().filter(|(cause, _)| !["issued", "idle"].contains(&&***cause));
        let sum: f64 = stalls.clone().map(|(_, share)| share.as_f64().unwrap()).sum();
        for (cause, share) in stalls {
            let lost: f64 = rows.iter().filter_map(|row| row["stalls"][cause].as_f64()).sum();
            let (found, expected) = (lost / whole, share.as_f64().unwrap() / sum);
            assert!((found - expected).abs() < 1e-3, "{cause}: {found} is not {expected}");
        }
        let misses: u64 = rows.iter().map(|row| row["l1_misses"].as_u64().unwrap()).sum();
        let l1 = |key: &str| kernel["l1"][key].as_u64().unwrap();
        assert_eq!(misses, l1("accesses") - l1("hits"), "{}", kernel["name"]);
        let passes = rows.iter().filter(|row| row["opcode"].as_str().unwrap().starts_with("LDS"));
        assert!(passes.clone().all(|row| row["sectors"] == 0 && row["requests"] != 0));
    }
}

fn kernels(record: &mut Value) -> impl Iterator<Item = &mut Value> {
    let apps = record["solo"].as_array_mut().unwrap().iter_mut();
    apps.flat_map(|app| app["kernels"].as_array_mut().unwrap())
}

#[test]
fn the_table_marks_the_largest_and_shows_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let words = ["analyze", "traces/samples/two-streams", "--machine", "v100", "--hot", "1"];
    let output = gpumodel_in(folder, &words);
    let text = String::from_utf8(output.stdout).unwrap();
    let marked = |line: &str| line.contains(" %*") && line.contains("long memory latency");
    assert!(text.lines().any(|line| marked(line) && line.contains("LDG")), "{text}");
    assert!(text.contains("other instructions") && text.contains("charged to none"), "{text}");
    assert!(!gpumodel::report::table::analysis(&[small()], None).contains("slot-cycles stalled"));
}

#[test]
fn a_sample_has_no_hot_spots() {
    let words = ["analyze", "synth:saxpy", "--machine", "v100", "--hot", "3", "--sample"];
    let output = gpumodel_in(tempfile::tempdir().unwrap().path(), &words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("--sample"), "{said}");
}
