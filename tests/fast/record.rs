//! Does a record come back as it was written, is a wrong one refused, and do the records of the
//! program meet the JSON Schema that it publishes?

use std::fs;
use std::path::Path;

use gpumodel::report::results::{
    Analysis, AppRecord, CacheCounters, Interval, KernelRecord, ResidencyRecord, ResidencyRow,
    SCHEMA,
};
use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::program::{gpumodel, stdout};
use crate::shown::{crowded, data, small};

fn reread(analysis: &Analysis) -> Analysis {
    Analysis::from_json(analysis.to_json().as_bytes(), Path::new("r.json")).unwrap()
}

#[test]
fn records_come_back_as_written() {
    for record in [small(), crowded(118), Analysis { schema: SCHEMA.into(), ..Analysis::default() }]
    {
        assert_eq!(reread(&record), record);
    }
}

#[test]
fn keys_of_later_versions_are_ignored_and_optional_ones_may_be_missing() {
    let text = small().to_json();
    let later = text.replacen("\"seed\"", "\"colour\": {\"a\": [1]},\n  \"seed\"", 1);
    assert_eq!(Analysis::from_json(later.as_bytes(), Path::new("r.json")).unwrap(), small());
    let earlier = text.replace("      \"launch\": 3,\n", "").replace("\"reference_name\"", "\"x\"");
    let read = Analysis::from_json(earlier.as_bytes(), Path::new("r.json")).unwrap();
    assert_eq!(read.machine.reference_name, "");
}

#[test]
fn older_coruns_are_read_and_no_progress_is_null() {
    let record = small();
    let mut text: Value = serde_json::from_str(&record.to_json()).unwrap();
    let forget = |row: &mut Value, keys: &[&str]| {
        keys.iter().for_each(|key| _ = row.as_object_mut().unwrap().remove(*key));
    };
    for run in text["coruns"].as_array_mut().unwrap() {
        forget(run, &["harmonic_speedup", "residency", "killed_ctas", "l1", "l2", "dram"]);
        for app in run["apps"].as_array_mut().unwrap() {
            forget(app, &["finished", "runs", "stall_fractions", "dram_share", "solo_ipc", "l1"]);
        }
        for decision in run["decisions"].as_array_mut().unwrap() {
            forget(decision, &["curves"]);
        }
    }
    let read = Analysis::from_json(text.to_string().as_bytes(), Path::new("r.json")).unwrap();
    let (old, new) = (&read.coruns[0], &record.coruns[0]);
    assert_eq!((old.harmonic_speedup, old.residency.is_none()), (0.0, true));
    assert!(!old.apps[0].finished && old.decisions[0].curves.is_empty());
    assert_eq!((old.stp, &old.apps[1].kernels), (new.stp, &new.apps[1].kernels));
    let mut starving = record.clone();
    (starving.coruns[0].antt, starving.coruns[0].apps[0].slowdown) = (f64::INFINITY, f64::INFINITY);
    let text = starving.to_json();
    assert!(text.contains("\"antt\": null") && text.contains("\"slowdown\": null"));
    assert_eq!(reread(&starving), starving);
}

#[test]
fn malformed_records_are_refused_with_file_and_line() {
    let text = small().to_json();
    let cases = [
        (text.replacen("\"seed\": 7", "\"seed\": -7", 1), "r.json:4:"),
        (text.replacen("\"seed\": 7", "\"seed\" 7", 1), "r.json:4:"),
        (text.replacen("analysis/1", "analysis/2", 1), "r.json:2: expected schema"),
        (text.replacen("\"schema\"", "\"scheme\"", 1), "found none"),
        (text[..text.len() / 2].to_string(), "r.json:"),
        (String::new(), "r.json:1:"),
        ("[]".into(), "r.json:1:"),
    ];
    for (wrong, place) in cases {
        let error = Analysis::from_json(wrong.as_bytes(), Path::new("r.json")).unwrap_err();
        assert!(error.to_string().contains(place), "{place}: {error}");
    }
    let nowhere = Analysis::read(&data("nowhere.json")).unwrap_err().to_string();
    assert!(nowhere.contains("nowhere.json"), "{nowhere}");
}

#[test]
fn records_that_break_the_counting_rules_are_refused_with_the_key() {
    let broken = |change: fn(&mut Analysis)| {
        let mut record = small();
        change(&mut record);
        let text = record.to_json();
        Analysis::from_json(text.as_bytes(), Path::new("r.json")).unwrap_err().to_string()
    };
    let message = broken(|r| r.solo[0].kernels[2].l2.hits = 51);
    assert!(message.contains("solo[0].kernels[2].l2: expected hits <= accesses"), "{message}");
    let message = broken(|r| r.solo[0].kernels[1].end_cycle = 5);
    assert!(message.contains("solo[0].kernels[1].end_cycle: expected an end"), "{message}");
    let message = broken(|r| r.solo[0].timeline[1].end_cycle = 3);
    assert!(message.contains("solo[0].timeline[1]"), "{message}");
    let message = broken(|r| r.coruns[1].apps[1].l1.merged = 1);
    assert!(message.contains("coruns[1].apps[1].l1: expected merged <= hits"), "{message}");
    let message = broken(|r| r.coruns[0].apps[0].dram_share = 1.2);
    assert!(message.contains("coruns[0].apps[0].dram_share"), "{message}");
    let message = broken(|r| {
        let row = ResidencyRow { app_index: 2, ..ResidencyRow::default() };
        let grid = ResidencyRecord { interval_cycles: 64, rows: vec![row] };
        r.coruns[0].residency = Some(grid);
    });
    assert!(message.contains("coruns[0].residency.rows[0].app_index"), "{message}");
    let message = broken(|r| {
        r.solo[0].kernels[0].stall_fractions.insert("idle".into(), 1.5);
    });
    assert!(message.contains("stall_fractions.idle"), "{message}");
}

#[test]
fn the_csv_has_a_line_per_launch_and_quotes_names() {
    let csv = small().kernels_csv();
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.unwrap()).collect();
    assert_eq!(rows.len(), 4);
    assert_eq!(&rows[1][5], "scale<float, 4> & \"co\"");
    assert_eq!((&rows[1][10], &rows[1][16], &rows[1][17]), ("3000", "500", "150"));
}

prop_compose! {
    fn cache()(accesses in any::<u64>(), shares in any::<[u32; 4]>()) -> CacheCounters {
        let part = |whole: u64, share: u32| whole / (u64::from(share) + 1);
        let (hits, reads) = (part(accesses, shares[0]), part(accesses, shares[1]));
        CacheCounters {
            accesses, hits, merged: part(hits, shares[2]), reads, read_hits: part(reads, shares[3]),
        }
    }
}

prop_compose! {
    fn kernel()(
        name in ".*",
        start in any::<u32>(),
        cycles in any::<u32>(),
        l1 in cache(),
        ipc in -1e300_f64..1e300,
        stalls in prop::collection::btree_map(".{0,8}", 0.0..1.0_f64, 0..5),
    ) -> KernelRecord {
        let (start_cycle, cycles) = (u64::from(start), u64::from(cycles));
        KernelRecord {
            name, start_cycle, end_cycle: start_cycle + cycles, cycles, ipc, l1,
            stall_fractions: stalls, ..KernelRecord::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_record_comes_back_as_written(
        kernels in prop::collection::vec(kernel(), 0..4),
        seed in any::<u64>(),
        resident_ctas in any::<f64>().prop_filter("finite", |v| v.is_finite()),
        note in ".*",
    ) {
        let timeline = vec![Interval { resident_ctas, ..Interval::default() }];
        let app = AppRecord { kernels, timeline, ..AppRecord::default() };
        let record = Analysis {
            schema: SCHEMA.into(), seed, solo: vec![app], notes: vec![note], ..Analysis::default()
        };
        prop_assert_eq!(reread(&record), record);
    }

    #[test]
    fn hostile_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Analysis::from_json(&bytes, Path::new("r.json")).is_err());
    }
}

/// The published schema; a key that it does not list is refused too.
fn strict() -> Validator {
    let published = stdout(&gpumodel(&["guide", "--schema"]).success());
    let mut schema: Value = serde_json::from_str(&published).unwrap();
    refuse_unlisted(&mut schema);
    jsonschema::validator_for(&schema).unwrap()
}

fn refuse_unlisted(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.values_mut().for_each(refuse_unlisted);
            if map.get("properties").is_some_and(Value::is_object) {
                map.insert("additionalProperties".into(), false.into());
            }
        }
        Value::Array(list) => list.iter_mut().for_each(refuse_unlisted),
        _ => {}
    }
}

fn complaints(validator: &Validator, record: &Value) -> Vec<String> {
    let complaint =
        |error: jsonschema::ValidationError| format!("{}: {error:.200}", error.instance_path());
    validator.iter_errors(record).map(complaint).collect()
}

/// The record of `gpumodel analyze` with these words.
fn analyzed(words: &[&str]) -> Value {
    let words = [&["analyze"], words, &["--json", "-"]].concat();
    serde_json::from_str(&stdout(&gpumodel(&words).success())).unwrap()
}

#[test]
fn records_of_every_kind_pass_the_schema() {
    let validator = strict();
    let (one, two) = ("traces/samples/matmul-tiled", "traces/samples/saxpy");
    let queue = tempfile::NamedTempFile::new().unwrap();
    fs::write(&queue, "group_size = 2\norder = [\"a\", \"b\"]\n").unwrap();
    let (a, b) = (format!("a={one}"), format!("b={two}"));
    let committed = fs::read(data("record.json")).unwrap();
    let schemes = "even,warped-slicer:warmup=500:window=500";
    for (kind, record) in [
        ("committed", serde_json::from_slice(&committed).unwrap()),
        ("by hand", serde_json::from_str(&small().to_json()).unwrap()),
        ("crowded", serde_json::from_str(&crowded(9).to_json()).unwrap()),
        ("alone", analyzed(&[one, "--machine", "v100"])),
        ("translated", analyzed(&[one, "--machine", "ugpu"])),
        ("sampled", analyzed(&[two, "--machine", "v100", "--sample"])),
        ("together", analyzed(&[one, two, "--machine", "warped-slicer", "--scheme", schemes])),
        (
            "queue",
            analyzed(&[&a, &b, "--machine", "ilp-smra", "--queue", queue.path().to_str().unwrap()]),
        ),
    ] {
        assert_eq!(complaints(&validator, &record), [""; 0], "{kind}");
    }
}

#[test]
fn a_wrong_record_fails_the_schema() {
    let validator = strict();
    let record: Value = serde_json::from_str(&small().to_json()).unwrap();
    for (key, value) in [
        ("/schema", json!("gpumodel.analysis/2")),
        ("/solo/0/cycles", json!(-1)),
        ("/solo/0/kernels/0/grid", json!([1, 2])),
        ("/coruns/0/stp", json!("1.5")),
    ] {
        let mut wrong = record.clone();
        *wrong.pointer_mut(key).unwrap() = value;
        assert_eq!(complaints(&validator, &wrong).len(), 1, "{key}");
    }
}
