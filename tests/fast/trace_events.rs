//! Does `--trace-events` keep the laws of the trace format, and show what the record says?

use std::collections::BTreeMap;

use gpumodel::report::trace_events;
use serde_json::Value;

use crate::common::program::gpumodel_in;
use crate::shown::{crowded, small};

fn events(document: &Value) -> &Vec<Value> {
    document["traceEvents"].as_array().unwrap()
}

fn number(event: &Value, key: &str) -> f64 {
    event[key].as_f64().unwrap_or_else(|| panic!("no {key} in {event}"))
}

/// Every event has what its phase needs; slices of a thread do not overlap; processes and
/// threads with events have names; times do not run backwards within a process.
fn check_laws(document: &Value) {
    let core_mhz = document["otherData"]["core_mhz"].as_f64().unwrap();
    let (mut named, mut busy, mut last) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for event in events(document) {
        let id = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        assert!(event["name"].is_string(), "{event}");
        let phase = event["ph"].as_str().unwrap();
        if phase == "M" {
            named.entry(id).or_insert_with(Vec::new).push(event["name"].clone());
            continue;
        }
        let ts = number(event, "ts");
        assert!(ts >= 0.0 && last.insert(id.0, ts).is_none_or(|before| before <= ts), "{event}");
        match phase {
            "X" => {
                let args = &event["args"];
                let cycles = number(args, "end_cycle") - number(args, "start_cycle");
                assert!((number(event, "dur") * core_mhz - cycles).abs() < 1e-6, "{event}");
                assert!(
                    (number(event, "ts") * core_mhz - number(args, "start_cycle")).abs() < 1e-3
                );
                let end = number(args, "end_cycle");
                let before = busy.insert(id, end);
                assert!(before.is_none_or(|before| before <= number(args, "start_cycle")));
                assert!(named[&id].contains(&"thread_name".into()), "{event}");
            }
            "i" => assert!(event["s"] == "p" && event["args"]["reason"].is_string(), "{event}"),
            "C" => assert!(event["args"].as_object().unwrap().values().all(Value::is_number)),
            other => panic!("{other} is no phase that is written"),
        }
        assert!(named[&(id.0, 0)].contains(&"process_name".into()), "{event}");
    }
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Durations in cycles of the kernels of a process.
fn kernels(document: &Value, pid: u64) -> Vec<u64> {
    let slices = events(document).iter().filter(|e| e["pid"] == pid && e["cat"] == "kernel");
    let mut cycles: Vec<u64> = slices.map(|e| e["args"]["cycles"].as_u64().unwrap()).collect();
    cycles.sort_unstable();
    cycles
}

#[test]
fn a_record_keeps_the_laws_of_the_format_and_its_durations() {
    for record in [small(), crowded(118)] {
        let document = read(&trace_events(&record));
        check_laws(&document);
        for (pid, app) in (1..).zip(&record.solo) {
            let spans = app.kernels.iter().map(|kernel| kernel.end_cycle - kernel.start_cycle);
            let mut cycles: Vec<u64> = spans.collect();
            cycles.sort_unstable();
            assert_eq!(kernels(&document, pid), cycles, "{}", app.app);
        }
        let decisions = record.coruns.iter().map(|run| run.decisions.len()).sum::<usize>();
        assert_eq!(events(&document).iter().filter(|e| e["ph"] == "i").count(), decisions);
        assert_eq!(trace_events(&record), trace_events(&record));
    }
}

#[test]
fn a_run_has_kernels_decisions_counters_and_its_ctas() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let words = ["analyze", "A=traces/samples/saxpy", "B=traces/samples/reduce", "--machine"];
    let words = [&words[..], &["warped-slicer", "--scheme", "even", "--json", "-"]].concat();
    let plain = gpumodel_in(folder, &words);
    let file = folder.join("events.json");
    let asked = ["--trace-events", file.to_str().unwrap(), "--trace-ctas"];
    let output = gpumodel_in(folder, &[&words[..], &asked].concat());
    assert!(output.status.success() && output.stdout == plain.stdout, "the record has changed");
    let document = read(&std::fs::read_to_string(&file).unwrap());
    check_laws(&document);
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = &record["coruns"][0];
    for app in run["apps"].as_array().unwrap() {
        for kernel in app["kernels"].as_array().unwrap() {
            let cycles = number(kernel, "end_cycle") - number(kernel, "start_cycle");
            let slice = |event: &&Value| {
                event["pid"] == 3 && event["cat"] == "kernel" && event["args"]["app"] == app["app"]
            };
            let slice = events(&document).iter().find(slice).unwrap();
            assert!((number(&slice["args"], "cycles") - cycles).abs() < 1e-9, "{slice}");
            let ctas = events(&document).iter().filter(|event| {
                let name = event["name"].as_str().unwrap();
                let of_app = name.starts_with(&format!("{} ", app["app"].as_str().unwrap()));
                event["pid"] == 3 && event["cat"] == "cta" && of_app
            });
            assert_eq!(ctas.count() as u64, kernel["ctas"].as_u64().unwrap());
        }
    }
    for counter in ["warp IPC", "DRAM GB/s", "CTAs by application"] {
        assert!(events(&document).iter().any(|e| e["pid"] == 3 && e["name"] == counter));
    }
    assert_eq!(document["otherData"]["ctas_left_out"], 0);
}

#[test]
fn ctas_need_a_file() {
    let words = ["analyze", "synth:saxpy", "--machine", "v100", "--trace-ctas"];
    let output = gpumodel_in(tempfile::tempdir().unwrap().path(), &words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("--trace-events"), "{said}");
}
