//! Do filters select the same launches and CTAs of raw text, grouped text and stores,
//! and list the choices when they select nothing?

use std::fs;
use std::path::Path;

use gpumodel::trace::{ConvertRequest, CtaChoice, Filter, Silent, Store, convert};
use proptest::prelude::*;
use serde_json::Value;

use crate::rendering::{compare_all, converted};
use crate::trace_generated::{Kernel, kernel, only, raw};

fn filter(ctas: &str) -> Filter {
    let ctas: CtaChoice = ctas.parse().unwrap();
    Filter { ctas: Some(ctas), ..Filter::default() }
}

/// The CTAs of `kernel` that `ctas` takes.
fn taken(kernel: &Kernel, ctas: &str) -> Vec<usize> {
    let full = |cta: &usize| kernel.ctas[*cta].iter().any(|warp| !warp.is_empty());
    let all = (0..kernel.ctas.len()).filter(full);
    match ctas.strip_prefix("first:") {
        Some(count) => all.take(count.parse().unwrap()).collect(),
        None => {
            let (first, last) = ctas.split_once('-').unwrap();
            let range = first.parse().unwrap()..=last.parse().unwrap();
            all.filter(|cta| range.contains(cta)).collect()
        }
    }
}

/// The store of the filtered part of `text`, or the reason for its absence.
fn part(text: &str, filter: &Filter, folder: &Path) -> Result<Store, String> {
    let input = folder.join("kernel-1.trace");
    fs::write(&input, text).unwrap();
    let output = folder.join("part.gpt");
    let request = ConvertRequest {
        inputs: vec![input],
        output: output.clone(),
        filter: filter.clone(),
        ..ConvertRequest::default()
    };
    convert(&request, &Silent).map_err(|error| error.to_string())?;
    Ok(Store::open(&output).unwrap())
}

fn counts(store: &Store) -> [u64; 4] {
    let kernel = store.kernel(0);
    [
        kernel.cta_count(),
        kernel.warp_instructions(),
        kernel.thread_instructions(),
        kernel.memory_instructions(),
    ]
}

/// Warp instructions, from how often every segment is executed.
fn executed(store: &Store) -> u64 {
    let code = store.code(0).unwrap();
    let counts = store.executed(0).unwrap();
    counts.iter().zip(&code.segments).map(|(count, one)| count * u64::from(one.length)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_part_equals_a_trace_of_that_part(
        kernel in kernel(),
        ctas in prop_oneof!["first:[1-4]", "0-[0-3]", "[12]-[2-4]"],
    ) {
        let taken = taken(&kernel, &ctas);
        prop_assume!(!taken.is_empty());
        let folder = tempfile::tempdir().unwrap();
        let text = only(&kernel, |cta| taken.contains(&cta));
        let input = folder.path().join("kernel-1.traceg");
        fs::write(&input, &text).unwrap();
        let whole = converted(&input, folder.path());
        let filter = filter(&ctas);
        for from in [raw(&kernel), only(&kernel, |_| true)] {
            let part = part(&from, &filter, folder.path()).unwrap();
            prop_assert_eq!(part.content_hash(), whole.content_hash());
        }
        fs::write(&input, only(&kernel, |_| true)).unwrap();
        let mut narrow = converted(&input, folder.path());
        narrow.narrow(&filter).unwrap();
        compare_all(&narrow, 0, &text);
        prop_assert_eq!(counts(&narrow), counts(&whole));
        prop_assert_eq!(executed(&narrow), counts(&whole)[1]);
        let ranges: u64 = narrow.cta_ranges(0).unwrap().iter().map(|[a, b]| b - a + 1).sum();
        prop_assert_eq!(ranges, counts(&whole)[0]);
    }
}

struct Bench(tempfile::TempDir);

impl Bench {
    fn run(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let mut program = assert_cmd::Command::cargo_bin("gpumodel").unwrap();
        program.env("GPUMODEL_CACHE", self.0.path().join("cache"));
        program.current_dir(env!("CARGO_MANIFEST_DIR"));
        let output = program.args(words).output().unwrap();
        let [out, said] = [output.stdout, output.stderr].map(|b| String::from_utf8(b).unwrap());
        (output.status.code(), out, said)
    }

    fn json(&self, words: &[&str]) -> Value {
        let (code, out, said) = self.run(words);
        assert_eq!(code, Some(0), "{said}");
        serde_json::from_str(&out).unwrap()
    }
}

const SAMPLE: &str = "traces/samples/two-streams";

#[test]
fn text_store_and_filtered_store_run_the_same_part() {
    let bench = Bench(tempfile::tempdir().unwrap());
    let [store, part] = ["all.gpt", "part.gpt"].map(|name| bench.0.path().join(name));
    let [store, part] = [&store, &part].map(|path| path.to_str().unwrap());
    let words = ["--kernels", "1-3", "--names", "^.", "--ctas", "first:3"];
    assert_eq!(bench.run(&["convert", SAMPLE, "-o", store]).0, Some(0));
    let convert = [&["convert", SAMPLE, "-o", part][..], &words].concat();
    assert_eq!(bench.run(&convert).0, Some(0));
    let run = |app: &str, words: &[&str]| {
        let app = format!("x={app}");
        bench.json(&[&["analyze", &app, "-m", "v100", "--json", "-"][..], words].concat())
    };
    let (of_text, of_store, of_part) = (run(SAMPLE, &words), run(store, &words), run(part, &[]));
    let filters = serde_json::json!({"kernels": "1-3", "names": "^.", "ctas": "first:3"});
    assert_eq!(of_text["filters"], filters);
    assert!(of_part.get("filters").is_none());
    for key in ["cycles", "warp_instructions", "thread_instructions", "l1", "l2", "dram"] {
        assert_eq!(of_text["solo"][0][key], of_part["solo"][0][key], "{key}");
        assert_eq!(of_text["solo"][0][key], of_store["solo"][0][key], "{key}");
    }
    assert!(of_store["notes"].to_string().contains("--ctas first:3 takes 9 of"));
    let shown = bench.json(&["inspect", part, "--json", "-"]);
    let of_store = bench.json(&[&["inspect", store, "--json", "-"][..], &words].concat());
    for key in ["mix", "footprint", "thread_instructions"] {
        assert_eq!(of_store[key], shown[key], "{key}");
    }
    assert_eq!(of_store["kernels"].as_array().unwrap().len(), 3);
    let kernel = &shown["kernels"][0];
    assert_eq!(kernel["ctas"], 3);
    assert!(kernel["grid_ctas"].as_u64().unwrap() > 3);
    assert_eq!(kernel["cta_ranges"], serde_json::json!([[0, 2]]));
}

#[test]
fn a_filter_that_selects_nothing_lists_the_choices() {
    let bench = Bench(tempfile::tempdir().unwrap());
    let output = bench.0.path().join("none.gpt");
    let output = output.to_str().unwrap();
    for words in [["--kernels", "77"], ["--names", "no_such"], ["--ctas", "900000-900001"]] {
        let convert = [&["convert", SAMPLE, "-o", output][..], &words].concat();
        let analyze = [&["analyze", SAMPLE, "-m", "v100"][..], &words].concat();
        for all in [convert, analyze] {
            let (code, _, said) = bench.run(&all);
            assert_eq!(code, Some(2), "{said}");
            assert!(said.contains(&words.join(" ")) && said.contains("(id 1"), "{said}");
            assert!(said.contains("CTAs)"), "{said}");
        }
    }
    for words in [["--ctas", "last:3"], ["--names", "("], ["--kernels", "5-3"]] {
        let (code, _, said) = bench.run(&[&["convert", SAMPLE, "-o", output][..], &words].concat());
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(words[0]), "{said}");
    }
    assert!(!Path::new(output).exists());
}

#[test]
fn text_written_from_a_store_obeys_the_filters() {
    let bench = Bench(tempfile::tempdir().unwrap());
    let [store, text] = ["all.gpt", "text"].map(|name| bench.0.path().join(name));
    let [from, to] = [&store, &text].map(|path| path.to_str().unwrap());
    assert_eq!(bench.run(&["convert", SAMPLE, "-o", from]).0, Some(0));
    let words = ["--kernels", "2", "--ctas", "1-2"];
    let words = [&["convert", from, "--to", "traceg", "-o", to][..], &words].concat();
    assert_eq!(bench.run(&words).0, Some(0));
    let text = fs::read_to_string(text.join("kernel-1.traceg")).unwrap();
    let blocks: Vec<&str> = text.lines().filter(|line| line.starts_with("thread block")).collect();
    assert_eq!(blocks, ["thread block = 1,0,0", "thread block = 2,0,0"]);
}

#[test]
fn unknown_ids_and_skipped_launches_are_reported() {
    let bench = Bench(tempfile::tempdir().unwrap());
    let output = bench.0.path().join("some.gpt");
    let words = ["--kernels", "1,77"];
    let convert = [&["convert", SAMPLE, "-o", output.to_str().unwrap()][..], &words].concat();
    let (code, _, said) = bench.run(&convert);
    assert!(code == Some(0) && said.contains("no launch was taken for 77"), "{said}");
    let analyze = [&["analyze", SAMPLE, "-m", "v100", "--json", "-"][..], &words].concat();
    let notes = bench.json(&analyze)["notes"].to_string();
    assert!(notes.contains("taken for 77") && notes.contains("takes 1 of 4 launches"), "{notes}");
    let (_, _, said) = bench.run(&["convert", "no-such", "-o", output.to_str().unwrap()]);
    assert!(!said.contains("taken for"), "{said}");
}

#[test]
fn an_empty_selection_of_a_store_writes_no_folder() {
    let bench = Bench(tempfile::tempdir().unwrap());
    let [store, text] = ["all.gpt", "text"].map(|name| bench.0.path().join(name));
    let [from, to] = [&store, &text].map(|path| path.to_str().unwrap());
    assert_eq!(bench.run(&["convert", SAMPLE, "-o", from]).0, Some(0));
    let (code, _, said) =
        bench.run(&["convert", from, "--to", "traceg", "-o", to, "--names", "zz"]);
    assert!(code == Some(2) && said.contains("--names zz"), "{said}");
    assert!(!text.exists());
}
