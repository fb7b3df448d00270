//! Does a compute-bound kernel with twice the loop take twice the time? Store to
//! record, one thread: the loop's length doubles from line to line.
//!
//! The simulator's work grows with events, not with instructions: it merges
//! repetitions of a loop without memory accesses. Conversion is not counted.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use divan::Bencher;
use divan::counter::ItemsCount;
use gpumodel::app::{AnalyzeRequest, AppName, Unwatched, analyze};
use gpumodel::trace::workload::{Compression, Workload, write_folder};
use gpumodel::trace::{ConvertRequest, Silent, Store, convert};

/// Times the shortest loop, of [`SHORTEST`] repetitions.
const TIMES: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Repetitions, of 18 instructions each.
const SHORTEST: u32 = 64;

fn main() {
    divan::main();
}

/// Eight CTAs of four warps, four chains of FFMA each.
fn workload(repetitions: u32) -> String {
    format!(
        r#"
description = "four independent FFMA chains per thread"
behaviour = "a loop of arithmetic"
source = "own design of the gpumodel authors"
[[kernel]]
name = "loop"
grid = [8]
block = [128]
registers = 16
code = [
  "R4 = MOV",
  {{ loop = "k", count = {repetitions}, counter = "R4", body = [
      {{ copies = "u", count = 4, body = [
          {{ copies = "c", count = 4, body = ["R{{8 + c}} = FFMA R{{8 + c}}, R3, R{{8 + c}}"] }},
      ] }},
  ] }},
  "EXIT",
]
"#
    )
}

/// The store of the loop in `folder`, and its warp instructions.
fn store(folder: &std::path::Path, repetitions: u32) -> (PathBuf, u64) {
    let file = folder.join("loop.toml");
    std::fs::write(&file, workload(repetitions)).unwrap();
    let workload = Workload::load(file.to_str().unwrap(), &gpumodel::models()).unwrap();
    let (text, path) = (folder.join("text"), folder.join("loop.gpt"));
    write_folder(&workload, &text, Compression::None, &mut |_| {}).unwrap();
    let request =
        ConvertRequest { inputs: vec![text], output: path.clone(), ..ConvertRequest::default() };
    convert(&request, &Silent).unwrap();
    let count = Store::open(&path).unwrap().kernel(0).warp_instructions();
    (path, count)
}

fn bench(bencher: Bencher<'_, '_>, machine: &str, times: u32) {
    let folder = tempfile::tempdir().unwrap();
    let (path, count) = store(folder.path(), times * SHORTEST);
    let request = AnalyzeRequest::new(
        vec![AppName { name: String::from("loop"), path }],
        machine,
        folder.path(),
    );
    bencher.counter(ItemsCount::new(count)).bench(|| analyze(&request, &Unwatched));
}

#[divan::bench(args = TIMES, sample_count = 20)]
fn cycle_simulator_s_machine(bencher: Bencher<'_, '_>, times: u32) {
    bench(bencher, "accelsim-qv100", times);
}

#[divan::bench(args = TIMES, sample_count = 20)]
fn hardware_machine(bencher: Bencher<'_, '_>, times: u32) {
    bench(bencher, "v100", times);
}
