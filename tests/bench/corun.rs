//! How long do two applications take together for the two million cycles of
//! Warped-Slicer's experiments, under every scheme? One thread; the bar is 5 seconds
//! per scheme.
//!
//! And two that keep the memory of UGPU's machine busy, for half a million cycles.
//!
//! A row is the solo runs that set the targets and the co-run, so subtract
//! `alone`. Conversion is not counted; its text briefly takes 1 GB.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use divan::Bencher;
use gpumodel::app::{AnalyzeRequest, AppName, Unwatched, analyze};
use gpumodel::trace::workload::{Compression, Workload, write_folder};
use gpumodel::trace::{ConvertRequest, Silent, convert};

/// Cycles of the window.
const WINDOW: u64 = 2_000_000;

/// `alone` is no scheme: the window of each application, and no co-run.
const SCHEMES: [&str; 8] = [
    "alone",
    "sequential",
    "left-over",
    "fcfs",
    "even",
    "spatial",
    "warped-slicer",
    "oracle:most=2",
];

/// An SFU-bound kernel and a stream, as stores.
static PAIR: LazyLock<(tempfile::TempDir, Vec<AppName>)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let app = |name: &str| AppName { name: name.to_owned(), path: store(folder.path(), name) };
    let apps = ["options", "stream"].map(app).to_vec();
    (folder, apps)
});

/// Two of UGPU's, with inputs a sixteenth as large.
static SLICED: LazyLock<(tempfile::TempDir, Vec<AppName>)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let app = |name: &str| {
        let workload = Workload::load_scaled(name, &gpumodel::models(), 0.06).unwrap();
        AppName { name: name.to_owned(), path: converted(folder.path(), name, &workload) }
    };
    let apps = ["ugpu-lbm", "ugpu-dxtc"].map(app).to_vec();
    (folder, apps)
});

fn main() {
    divan::main();
}

fn store(folder: &Path, name: &str) -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench/corun");
    let file = data.join(format!("{name}.toml"));
    converted(folder, name, &Workload::load(file.to_str().unwrap(), &gpumodel::models()).unwrap())
}

fn converted(folder: &Path, name: &str, workload: &Workload) -> PathBuf {
    let (text, path) = (folder.join(name), folder.join(format!("{name}.gpt")));
    write_folder(workload, &text, Compression::None, &mut |_| {}).unwrap();
    let inputs = vec![text.clone()];
    let request = ConvertRequest { inputs, output: path.clone(), ..ConvertRequest::default() };
    convert(&request, &Silent).unwrap();
    std::fs::remove_dir_all(text).unwrap();
    path
}

#[divan::bench(args = SCHEMES, sample_count = 3, sample_size = 1)]
fn two_million_cycles(bencher: Bencher<'_, '_>, scheme: &str) {
    let (folder, apps) = &*PAIR;
    let mut request = AnalyzeRequest::new(apps.clone(), "warped-slicer", folder.path());
    request.window = Some(WINDOW);
    request.until = "targets".parse().unwrap();
    request.schemes = vec![scheme.to_owned()];
    if scheme == "alone" {
        // The machine stops at once where the co-run ends: what is left is the runs
        // before it.
        request.schemes = vec![String::from("left-over")];
        request.until = "targets,cycles=1".parse().unwrap();
    }
    on_one_thread(bencher, &request);
}

#[divan::bench(args = ["bp", "ugpu:epoch=100000"], sample_count = 3, sample_size = 1)]
fn half_a_million_cycles_of_slices(bencher: Bencher<'_, '_>, scheme: &str) {
    let (folder, apps) = &*SLICED;
    let mut request = AnalyzeRequest::new(apps.clone(), "ugpu", folder.path());
    request.until = "cycles=500000".parse().unwrap();
    request.schemes = vec![scheme.to_owned()];
    on_one_thread(bencher, &request);
}

fn on_one_thread(bencher: Bencher<'_, '_>, request: &AnalyzeRequest) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    bencher.bench_local(|| pool.install(|| analyze(request, &Unwatched).unwrap()));
}
