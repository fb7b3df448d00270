//! How many times faster than a cycle simulator is a run? Warp instructions per
//! CPU second of both, for every row of the reference table that took the
//! simulator more than a second.
//!
//! One thread, store to record, the best of three rounds; conversion and the start
//! of the process (about a millisecond) are not counted. The simulator's
//! `cpu_seconds` were taken on a busy machine, within 1.5x. On Linux this is CPU
//! time, elsewhere wall-clock time. Without the reference data next to the
//! project nothing is measured.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::path::Path;
use std::time::Instant;

use gpumodel::app::{AnalyzeRequest, AppName, Unwatched, analyze};
use gpumodel::trace::Filter;

/// Rounds of runs of each row, and the least CPU seconds of one.
const ROUNDS: usize = 3;
const ROUND_SECONDS: f64 = 0.2;

/// The rows of the simulator that count, in its CPU seconds.
const LEAST_SECONDS: f64 = 1.0;

/// One row of the table.
#[derive(serde::Deserialize)]
struct Row {
    machine: String,
    trace: String,
    launches: String,
    warp_instructions: f64,
    cpu_seconds: f64,
}

fn main() {
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/reference");
    let table = reference.join("cyclesim/results.csv");
    if !table.exists() || !reference.join("traces").is_dir() {
        println!("skipped: reference traces not present");
        return;
    }
    let rows = csv::Reader::from_path(table).unwrap().into_deserialize().map(Result::unwrap);
    let rows: Vec<Row> = rows.filter(|row: &Row| row.cpu_seconds > LEAST_SECONDS).collect();
    let cache = tempfile::tempdir().unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let mut ratios: Vec<(f64, f64, &Row)> = rows
        .iter()
        .map(|row| {
            let request = request(row, &reference.join("traces"), cache.path());
            let seconds = pool.install(|| best(&request));
            (row.cpu_seconds / seconds, seconds, row)
        })
        .collect();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    println!("{:>7}  {:>9}  {:>12}  machine, trace", "ratio", "seconds", "instr./s");
    for (ratio, seconds, row) in &ratios {
        let rate = row.warp_instructions / seconds;
        println!("{ratio:7.0}  {seconds:9.4}  {rate:12.0}  {} {}", row.machine, row.trace);
    }
    let count = f64::from(u32::try_from(ratios.len()).unwrap());
    let mean = (ratios.iter().map(|row| row.0.ln()).sum::<f64>() / count).exp();
    let below = ratios.iter().filter(|row| row.0 < 100.0).count();
    println!("{} rows: least {:.0}, geometric mean {mean:.0}", ratios.len(), ratios[0].0);
    println!("{below} rows below 100; peak memory {}", peak_memory());
}

fn request(row: &Row, traces: &Path, cache: &Path) -> AnalyzeRequest {
    let app = AppName { name: row.trace.clone(), path: traces.join(&row.trace) };
    let kernels = (row.launches != "all").then(|| row.launches.parse().unwrap());
    AnalyzeRequest {
        filter: Filter { kernels, ..Filter::default() },
        ..AnalyzeRequest::new(vec![app], &row.machine, cache)
    }
}

/// CPU seconds of one run, after one that converts: the least of the means of
/// [`ROUNDS`] rounds, each long enough for the system's clock ticks.
fn best(request: &AnalyzeRequest) -> f64 {
    analyze(request, &Unwatched).unwrap();
    let round = || {
        let (clock, cpu) = (Instant::now(), cpu_seconds());
        let spent = || {
            let clocked = clock.elapsed().as_secs_f64();
            cpu_seconds().zip(cpu).map_or(clocked, |(end, start)| end - start)
        };
        let mut runs = 0;
        while spent() < ROUND_SECONDS {
            analyze(request, &Unwatched).unwrap();
            runs += 1;
        }
        spent() / f64::from(runs)
    };
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}

/// CPU time of this thread, where the system has it.
fn cpu_seconds() -> Option<f64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds * 1e-9)
}

/// The most memory that the process held.
fn peak_memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| String::from("unknown"), |size| size.trim().to_owned())
}
