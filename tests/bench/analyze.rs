//! Warp instructions per second of the whole machine, store to record, one thread.
//!
//! On the samples, and on the reference traces where they lie next to the
//! project. Conversion is not counted; stores are made before.

use std::path::{Path, PathBuf};

use divan::Bencher;
use divan::counter::ItemsCount;
use gpumodel::app::{AnalyzeRequest, AppName, Unwatched, analyze};
use gpumodel::trace::{ConvertRequest, Silent, Store, convert};

fn main() {
    divan::main();
}

/// Streams, compute, shared memory with barriers, atomics, random reads.
const SAMPLES: [&str; 5] = ["saxpy", "compute", "matmul-tiled", "histogram", "gather"];

/// The same of the reference traces, larger.
const REFERENCE: [&str; 5] =
    ["generated/vecadd_s", "generated/ffma_s", "apps/transpose", "apps/mriq", "generated/gups_s"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Converts `trace` into `folder`: the store and its warp instructions.
fn store(trace: PathBuf, folder: &Path) -> (PathBuf, u64) {
    let output = folder.join("x.gpt");
    let request =
        ConvertRequest { inputs: vec![trace], output: output.clone(), ..ConvertRequest::default() };
    convert(&request, &Silent).expect("the trace converts");
    let store = Store::open(&output).expect("what was written opens");
    let count = (0..store.kernel_count()).map(|k| store.kernel(k).warp_instructions()).sum();
    (output, count)
}

fn bench(bencher: Bencher<'_, '_>, trace: PathBuf) {
    if !trace.exists() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder for the store");
    let (path, count) = store(trace, folder.path());
    let request = AnalyzeRequest::new(
        vec![AppName { name: String::from("bench"), path }],
        "accelsim-qv100",
        folder.path(),
    );
    bencher.counter(ItemsCount::new(count)).bench(|| analyze(&request, &Unwatched));
}

#[divan::bench(args = SAMPLES, sample_count = 10)]
fn sample(bencher: Bencher<'_, '_>, name: &str) {
    bench(bencher, root().join("traces/samples").join(name));
}

#[divan::bench(args = REFERENCE, sample_count = 5)]
fn reference(bencher: Bencher<'_, '_>, name: &str) {
    bench(bencher, root().join("../shared/reference/traces").join(name));
}
