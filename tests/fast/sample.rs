//! Does a sample of the CTAs estimate the whole launch?

use std::path::Path;

use gpumodel::app::{AnalyzeRequest, AppName, SampleRequest, Unwatched, analyze};
use gpumodel::report::results::{Analysis, KernelRecord};

/// A kernel of 1200 CTAs, two on an SM at once: streams, and loops `trips` times.
fn workload(trips: &str, last: &str) -> String {
    format!(
        r#"
description = "streams and computes"
behaviour = "made for the tests of sampling: a load, a loop of dependent arithmetic, a store"
source = "own design"
[buffers]
x = {{ bytes = "4 * 64 * 1200" }}
[[kernel]]
name = "kernel"
grid = [1200]
block = [64]
registers = 32
shared_bytes = 49152
code = [
  "R2 = LDG.E.SYS R4 [x + 4 * global]",
  {{ loop = "k", count = "{trips}", counter = "R7", body = [
      "R2 = FFMA R2, R2, R2",
      "R3 = FFMA R2, R2, R3",
  ] }},
  "{last}",
  "EXIT",
]
"#
    )
}

fn run(folder: &Path, text: &str, sample: Option<SampleRequest>, seed: u64) -> Analysis {
    let file = folder.join("kernel.toml");
    std::fs::write(&file, text).unwrap();
    let request = AnalyzeRequest {
        seed,
        sample,
        ..AnalyzeRequest::new(
            vec![AppName::parse(format!("synth:{}", file.display()))],
            "v100",
            &folder.join("cache"),
        )
    };
    analyze(&request, &Unwatched).unwrap()
}

const STORE: &str = "STG.E.SYS R4, R2 [x + 4 * global]";

fn wish() -> Option<SampleRequest> {
    Some(SampleRequest { fewest_instructions: 1000, ..SampleRequest::default() })
}

fn only(analysis: &Analysis) -> &KernelRecord {
    &analysis.solo[0].kernels[0]
}

/// `a` over `b`, as a distance from 1.
fn apart(a: u64, b: u64) -> f64 {
    (a as f64 / b as f64 - 1.0).abs()
}

/// Runs whole and sampled within `half_width`; `bound` is how far the cycles of so
/// short a launch (13 to 20 k cycles, of which its end is a large part) may be apart.
fn check_against_whole(trips: &str, half_width: f64, bound: f64) -> KernelRecord {
    let folder = tempfile::tempdir().unwrap();
    let text = workload(trips, STORE);
    let whole = run(folder.path(), &text, None, 0);
    let wish = SampleRequest { fewest_instructions: 1000, half_width };
    let sampled = run(folder.path(), &text, Some(wish), 0);
    let (whole, kernel) = (only(&whole), only(&sampled));
    let sample = kernel.sample.clone().unwrap();
    assert!(sample.ctas_run * 4 <= sample.ctas, "{sample:?}");
    assert!(apart(kernel.cycles, whole.cycles) < bound, "{} {}", kernel.cycles, whole.cycles);
    assert!(sample.cycles_low <= kernel.cycles && kernel.cycles <= sample.cycles_high);
    assert!(sample.ipc_low <= kernel.ipc && kernel.ipc <= sample.ipc_high, "{sample:?}");
    assert_eq!(kernel.warp_instructions, whole.warp_instructions);
    assert_eq!(kernel.thread_instructions, whole.thread_instructions);
    assert_eq!(kernel.instruction_mix.values().sum::<u64>(), whole.warp_instructions);
    assert!(apart(kernel.l2.accesses, whole.l2.accesses) < 0.05);
    assert!(apart(kernel.dram.read_sectors, whole.dram.read_sectors) < 0.1);
    assert!(whole.sample.is_none());
    kernel.clone()
}

#[test]
fn equal_ctas_are_estimated_from_a_part() {
    let kernel = check_against_whole("40", SampleRequest::HALF_WIDTH, 0.05);
    assert_eq!(kernel.sample.unwrap().strata, 1);
}

#[test]
fn two_paths_are_weighted_by_their_share_of_the_grid() {
    let kernel = check_against_whole("select(hash(cta, 4) == 0, 120, 20)", 0.15, 0.08);
    assert_eq!(kernel.sample.unwrap().strata, 2);
}

#[test]
fn the_seed_alone_decides_the_sample_whatever_the_threads() {
    let folder = tempfile::tempdir().unwrap();
    let text = workload("10 + hash(cta, 8)", STORE);
    let on = |threads: usize, seed: u64| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run(folder.path(), &text, wish(), seed))
    };
    let one = on(1, 3);
    assert_eq!(one, on(2, 3));
    assert_ne!(only(&one).cycles, only(&on(2, 4)).cycles);
}

#[test]
fn small_or_irregular_launches_run_whole_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let atomic = "RED.E.ADD.STRONG.GPU R4, R2 [x + 4 * global]";
    for (trips, last, wish, reason) in [
        ("9", STORE, Some(SampleRequest::default()), "too few instructions"),
        ("9", atomic, wish(), "atomics"),
        ("select(cta == 700, 3000, 2)", STORE, wish(), "no sample predicts the end"),
    ] {
        let text = workload(trips, last);
        let whole = run(folder.path(), &text, None, 0);
        let sampled = run(folder.path(), &text, wish, 0);
        assert_eq!(sampled.solo, whole.solo, "{reason}");
        assert!(sampled.notes.iter().any(|note| note.contains(reason)), "{:?}", sampled.notes);
    }
}

/// The interval stays wider than a tenth of a per cent: every set runs, then all CTAs.
#[test]
fn an_interval_that_stays_wide_ends_in_a_whole_run() {
    let folder = tempfile::tempdir().unwrap();
    let text = workload("10 + hash(cta, 40)", STORE);
    let whole = run(folder.path(), &text, None, 0);
    let wish = SampleRequest { half_width: 1e-3, fewest_instructions: 1000 };
    let sampled = run(folder.path(), &text, Some(wish), 0);
    let sample = only(&sampled).sample.clone().unwrap();
    assert_eq!((sample.ctas_run, sample.runs), (sample.ctas, 4));
    assert_eq!(only(&sampled).cycles, only(&whole).cycles);
    assert!(sampled.notes.iter().any(|note| note.contains("wider interval")));
}

#[test]
fn a_sample_s_record_names_what_it_did_not_sample() {
    let folder = tempfile::tempdir().unwrap();
    let text = workload("12", STORE);
    let whole = run(folder.path(), &text, None, 0);
    let sampled = run(folder.path(), &text, wish(), 0);
    let named = |analysis: &Analysis, what: &str| {
        let open = only(analysis).assumptions.iter().find(|open| open.what.starts_with(what));
        open.map(|open| open.instructions)
    };
    assert_eq!(named(&whole, "CTA that no sample"), None);
    let sample = only(&sampled).sample.clone().unwrap();
    let left = named(&sampled, "CTA that no sample").unwrap();
    let all = only(&sampled).warp_instructions;
    assert_eq!(left, all / 1200 * (1200 - sample.ctas_run));
    assert_eq!(named(&whole, "atomic"), None);
}

#[test]
fn the_csv_marks_sampled_rows() {
    let folder = tempfile::tempdir().unwrap();
    let text = workload("12", STORE);
    let cells = |sample: Option<SampleRequest>| {
        let csv = run(folder.path(), &text, sample, 0).kernels_csv();
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let names = reader.headers().unwrap().clone();
        let row = reader.records().next().unwrap().unwrap();
        ["sample_ctas_run", "sample_cycles_low", "cycles", "sample_cycles_high"].map(|column| {
            row[names.iter().position(|name| name == column).unwrap()].parse::<u64>().ok()
        })
    };
    let [run, low, cycles, high] = cells(wish()).map(Option::unwrap);
    assert!(run < 1200 && low <= cycles && cycles <= high);
    let [run, low, cycles, high] = cells(None);
    assert!(cycles.is_some() && (run, low, high) == (None, None, None));
}
