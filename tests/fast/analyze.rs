//! Does `analyze` run, and does its record keep its promises?

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

use crate::common::program::gpumodel_in;

/// A folder for one test: its cache and its outputs.
struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::cargo_bin("gpumodel").unwrap();
        command.env("GPUMODEL_CACHE", self.path("cache")).current_dir(root());
        command.args(words).output().unwrap()
    }

    fn record(&self, words: &[&str]) -> Value {
        let mut all = vec!["analyze", "--json", "-"];
        all.extend_from_slice(words);
        let output = self.run(&all);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs arguments that must be refused; returns the error.
    fn refused(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(output.stdout.is_empty(), "{words:?} printed a result");
        said
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn samples() -> Vec<String> {
    let mut found: Vec<String> = std::fs::read_dir(root().join("traces/samples"))
        .unwrap()
        .map(|entry| entry.unwrap().path().to_string_lossy().into_owned())
        .collect();
    found.sort();
    found
}

#[test]
fn every_sample_runs_and_its_record_adds_up() {
    let bench = Bench::new();
    let samples = samples();
    let mut words = vec!["--machine", "v100"];
    words.extend(samples.iter().map(String::as_str));
    let record = bench.record(&words);
    assert_eq!(record["schema"], "gpumodel.analysis/1");
    assert_eq!(record["solo"].as_array().unwrap().len(), samples.len());
    for app in record["solo"].as_array().unwrap() {
        let kernels = app["kernels"].as_array().unwrap();
        let sum = |key: &str| kernels.iter().map(|k| k[key].as_u64().unwrap()).sum::<u64>();
        assert_eq!(app["warp_instructions"].as_u64().unwrap(), sum("warp_instructions"));
        assert!(app["cycles"].as_u64().unwrap() > app["launch_cycles"].as_u64().unwrap());
        for kernel in kernels {
            let stalls = kernel["stall_fractions"].as_object().unwrap();
            let whole: f64 = stalls.values().map(|v| v.as_f64().unwrap()).sum();
            assert!((whole - 1.0).abs() < 1e-9, "{}: {whole}", kernel["name"]);
            let mix = kernel["instruction_mix"].as_object().unwrap();
            let mixed: u64 = mix.values().map(|v| v.as_u64().unwrap()).sum();
            assert_eq!(mixed, kernel["warp_instructions"].as_u64().unwrap());
            for cache in ["l1", "l2"] {
                let count = |key: &str| kernel[cache][key].as_u64().unwrap();
                assert!(count("merged") <= count("hits") && count("hits") <= count("accesses"));
            }
        }
    }
}

#[test]
fn the_instructions_of_a_record_are_those_of_the_store() {
    let bench = Bench::new();
    let store = bench.path("saxpy.gpt");
    let store = store.to_str().unwrap();
    assert!(bench.run(&["convert", "traces/samples/saxpy", "-o", store]).status.success());
    let inspected = bench.run(&["inspect", store, "--json", "-"]);
    let inspected: Value = serde_json::from_slice(&inspected.stdout).unwrap();
    let record = bench.record(&["--machine", "accelsim-qv100", store]);
    for key in ["warp_instructions", "thread_instructions"] {
        let counted: u64 =
            inspected["kernels"].as_array().unwrap().iter().map(|k| k[key].as_u64().unwrap()).sum();
        assert_eq!(record["solo"][0][key].as_u64().unwrap(), counted, "{key}");
    }
}

#[test]
fn the_record_does_not_depend_on_threads_or_on_the_form_of_the_trace() {
    let bench = Bench::new();
    let samples = samples();
    let mut words: Vec<&str> = vec!["analyze", "--machine", "rtx-3070", "--json", "-"];
    words.extend(samples.iter().take(4).map(String::as_str));
    let one = bench.run(&[&words[..], &["--threads", "1"]].concat());
    let two = bench.run(&[&words[..], &["--threads", "2"]].concat());
    assert!(one.status.success() && one.stdout == two.stdout);
    let store = bench.path("x.gpt");
    let store = store.to_str().unwrap();
    assert!(bench.run(&["convert", "traces/samples/reduce", "-o", store]).status.success());
    let folder = bench.record(&["A=traces/samples/reduce", "--machine", "v100"]);
    let named = format!("A={store}");
    assert_eq!(folder, bench.record(&[&named, "--machine", "v100"]));
}

#[test]
fn every_machine_runs_the_smallest_workload() {
    let bench = Bench::new();
    let list = bench.run(&["machine", "list", "--json", "-"]);
    let list: Value = serde_json::from_slice(&list.stdout).unwrap();
    let machines = list["machines"].as_array().or_else(|| list.as_array()).unwrap();
    assert!(machines.len() >= 20, "{} machines", machines.len());
    for machine in machines {
        let name = machine["name"].as_str().unwrap();
        let record = bench.record(&["traces/samples/reduce", "--machine", name]);
        assert!(record["solo"][0]["ipc"].as_f64().unwrap() > 0.0, "{name}");
        assert!(record["machine"]["peak_dram_gb_per_s"].as_f64().unwrap() > 10.0, "{name}");
    }
}

#[cfg(unix)]
#[test]
fn a_broken_link_next_to_a_trace_does_no_harm() {
    let bench = Bench::new();
    let folder = bench.path("trace");
    std::fs::create_dir(&folder).unwrap();
    for entry in std::fs::read_dir(root().join("traces/samples/reduce")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
    }
    std::os::unix::fs::symlink("/no/such/file", folder.join("gone")).unwrap();
    bench.record(&[folder.to_str().unwrap(), "--machine", "v100"]);
}

#[test]
fn a_workload_model_runs_like_its_sample() {
    let bench = Bench::new();
    let model = bench.record(&["A=synth:saxpy", "--machine", "v100"]);
    let sample = bench.record(&["A=traces/samples/saxpy", "--machine", "v100"]);
    assert!(
        model["solo"][0]["warp_instructions"].as_u64()
            >= sample["solo"][0]["warp_instructions"].as_u64()
    );
    let left = std::fs::read_dir(bench.path("cache")).unwrap();
    let models =
        left.filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().contains("synth"));
    assert_eq!(models.count(), 0, "a model's store stayed in the cache");
}

#[test]
fn a_report_is_written_whole() {
    let bench = Bench::new();
    let out = bench.path("out");
    let words = ["analyze", "traces/samples/reduce", "--machine", "v100", "--report"];
    let words = [&words[..], &[out.to_str().unwrap()]].concat();
    assert!(bench.run(&words).status.success());
    let files: Vec<String> = std::fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    for wanted in ["index.html", "record.json"] {
        assert!(files.iter().any(|file| file == wanted), "{files:?}");
    }
    for figure in ["stalls", "roofline", "traffic", "timeline"] {
        assert!(files.iter().any(|f| f.contains(figure) && f.ends_with(".svg")), "{files:?}");
    }
}

#[test]
fn a_report_over_another_leaves_only_its_own_figures() {
    let bench = Bench::new();
    let out = bench.path("out");
    let folder = out.to_str().unwrap();
    let run = |apps: &[&str]| {
        let words = [&["analyze", "--machine", "v100", "--report", folder], apps].concat();
        assert!(bench.run(&words).status.success());
        let names = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect::<BTreeSet<_>>()
    };
    let (reduce, gather) = ("traces/samples/reduce", "traces/samples/gather");
    let two = run(&[reduce, gather, "--scheme", "even"]);
    assert!(two.contains("schemes.svg") && two.contains("reduce-stalls.svg"), "{two:?}");
    std::fs::write(out.join("gather-mine.svg"), "mine").unwrap();
    let one = run(&[reduce]);
    assert!(one.contains("stalls.svg") && one.contains("gather-mine.svg"), "{one:?}");
    assert!(!one.contains("schemes.svg") && !one.contains("reduce-stalls.svg"), "{one:?}");
    let index = std::fs::read_to_string(out.join("index.html")).unwrap();
    for name in one.iter().filter(|name| name.ends_with(".svg") && *name != "gather-mine.svg") {
        assert!(index.contains(name.as_str()), "{name}");
    }
}

#[test]
fn bad_words_and_bad_files_are_refused_by_name() {
    let bench = Bench::new();
    let sample = "traces/samples/reduce";
    let said = bench.refused(&["analyze", "no/such/trace", "--machine", "v100"]);
    assert!(said.contains("no/such/trace"), "{said}");
    let said = bench.refused(&["analyze", sample, "--machine", "v10"]);
    assert!(said.contains("v100"), "{said}");
    let said = bench.refused(&["analyze", sample, "--machine", "v100", "--set", "l1.latency=3"]);
    assert!(said.contains("l1.latency"), "{said}");
    let said = bench.refused(&["analyze", sample, "--machine", "v100", "--scheme", "nobody"]);
    assert!(said.contains("solo"), "{said}");
    let said = bench.refused(&["analyze", sample, sample, "--machine", "v100"]);
    assert!(said.contains("NAME="), "{said}");
    let said = bench.refused(&["analyze", sample, "--machine", "v100", "--kernels", "99"]);
    assert!(said.contains("samples/reduce") && said.contains("--kernels"), "{said}");
    let said = bench.refused(&["analyze", sample, "--machine", "v100", "--threads", "100000"]);
    assert!(said.contains("1024"), "{said}");
    let said = bench.refused(&["analyze", sample, "--machine", "v100", "--sample", "0.01"]);
    assert!(said.contains("--sample=0.01"), "{said}");
    let narrow = "sm.registers=512";
    let said = bench.refused(&["analyze", sample, "--machine", "v100", "--set", narrow]);
    assert_eq!(said.matches("does not hold that").count(), 1, "{said}");
    let junk = bench.path("junk.gpt");
    std::fs::write(&junk, b"gptrace\nnot a store at all").unwrap();
    let said = bench.refused(&["analyze", junk.to_str().unwrap(), "--machine", "v100"]);
    assert!(said.contains("junk.gpt"), "{said}");
}

#[test]
fn a_damaged_store_is_refused_and_leaves_no_report() {
    let bench = Bench::new();
    let store = bench.path("x.gpt");
    let words = ["convert", "traces/samples/reduce", "-o"];
    assert!(bench.run(&[&words[..], &[store.to_str().unwrap()]].concat()).status.success());
    let mut bytes = std::fs::read(&store).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 0x40;
    std::fs::write(&store, bytes).unwrap();
    let out = bench.path("out");
    let words = ["analyze", store.to_str().unwrap(), "--machine", "v100"];
    let said = bench.refused(&[&words[..], &["--report", out.to_str().unwrap()]].concat());
    assert!(said.contains("x.gpt"), "{said}");
    assert!(!out.exists());
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_run() {
    let bench = Bench::new();
    let file = bench.path("taken");
    std::fs::write(&file, "").unwrap();
    let words = ["analyze", "traces/samples/saxpy", "--machine", "v100", "--report"];
    let said = bench.refused(&[&words[..], &[file.to_str().unwrap()]].concat());
    assert!(said.contains("cannot write") && said.contains("taken"), "{said}");
    let record = bench.path("nowhere/x.json");
    let words = ["analyze", "no-such-trace", "--machine", "v100", "--json"];
    let said = bench.refused(&[&words[..], &[record.to_str().unwrap()]].concat());
    assert!(said.contains("x.json") && !said.contains("no-such-trace"), "{said}");
}

#[test]
fn copies_take_time_where_the_machine_has_a_link_and_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/samples/saxpy");
    let record = |words: &[&str]| {
        let mut all = vec!["analyze", sample, "--machine", "v100", "--json", "-"];
        all.extend(words);
        let output = gpumodel_in(folder.path(), &all);
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let (plain, timed, set) =
        (record(&[]), record(&["--copies"]), record(&["--set", "link.copies=true"]));
    assert_eq!(timed, set);
    let cycles = |record: &serde_json::Value| record["solo"][0]["cycles"].as_u64().unwrap();
    let took = timed["solo"][0]["link"]["copy_cycles"].as_u64().unwrap();
    // Two copies of 163840 bytes at 12.4 GB/s behind 2 us, at 1530 MHz.
    assert_eq!(took, 2 * (3060 + 20_216));
    assert!(cycles(&timed) > took && cycles(&plain) < took);
    assert!(plain["solo"][0].get("link").is_none());
    assert_eq!(timed["overrides"]["link.copies"], "true");
    let refused = |words: &[&str], said: &str| {
        let output = gpumodel_in(folder.path(), words);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && error.contains(said), "{error}");
    };
    let foreign = ["analyze", sample, "--machine", "accelsim-qv100", "--copies"];
    refused(&foreign, "found accelsim-qv100, which has none");
    refused(&["analyze", sample, "--machine", "v100", "--copies", "--sample"], "without --sample");
}
