//! Do we agree with a cycle simulator on real and generated traces, of kernels alone and
//! together?
//!
//! Uses the reference data next to the project if present; the bounds of kernels alone are the
//! current errors, rounded up. The numbers of pairs are in `tests/data/cyclesim_coruns.csv`.

use std::path::{Path, PathBuf};

use gpumodel::app::{AnalyzeRequest, AppName, Unwatched, analyze};
use gpumodel::report::results::{Comparison, Quantity, ReferenceTable};

fn reference() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/reference");
    if folder.join("traces").is_dir() {
        return Some(folder);
    }
    crate::skip::skipped("reference traces not present");
    None
}

/// Traces of every kind that take little time.
const TRACES: &[&str] = &[
    "generated/u_fadd_dep",
    "generated/u_dfma_dep",
    "generated/u_mufu_dep",
    "generated/u_ffma_16w",
    "generated/u_chase_l1",
    "generated/u_chase_dram",
    "generated/vecadd_s",
    "generated/stencil_s",
    "generated/matmul_s",
    "generated/l1reuse_s",
    "apps/bfs",
    "apps/BlackScholes",
    "apps/hotspot",
    "apps/lud",
    "apps/pathfinder",
];

fn compared(reference: &Path) -> Comparison {
    let table = ReferenceTable::read(&reference.join("cyclesim/results.csv")).unwrap();
    let cache = tempfile::tempdir().unwrap();
    let app = |trace: &&str| AppName::parse(reference.join("traces").join(trace).to_str().unwrap());
    let request =
        AnalyzeRequest::new(TRACES.iter().map(app).collect(), "accelsim-qv100", cache.path());
    let analysis = analyze(&request, &Unwatched).unwrap();
    Comparison::new(&[analysis], &table, None)
}

#[test]
fn counters_and_cycles_agree_with_the_cycle_simulator() {
    let Some(reference) = reference() else { return };
    let comparison = compared(&reference);
    assert_eq!(comparison.rows.len(), TRACES.len());
    let mean = |quantity: Quantity| {
        let row = comparison.summary.iter().find(|row| row.quantity == quantity).unwrap();
        assert!(row.counted > 0);
        row.mean_absolute
    };
    let cycles = mean(Quantity::CyclesBeyondLaunch);
    assert!(cycles < 8.0, "cycles {cycles} %");
    for rate in [Quantity::L1HitRate, Quantity::L2HitRate] {
        assert!(mean(rate) < 0.5, "{rate:?} {} points", mean(rate));
    }
    // Bounds in points, as reached; what a cause means is not the same on both sides.
    for (slots, bound) in [
        (Quantity::IssuedSlots, 2.0),
        (Quantity::PipeSlots, 10.0),
        (Quantity::IdleSlots, 10.0),
        (Quantity::ScoreboardSlots, 10.0),
    ] {
        assert!(mean(slots) < bound, "{slots:?} {} points", mean(slots));
    }
    let reads = mean(Quantity::DramReadBytes);
    assert!(reads < 1.0, "DRAM reads {reads} %");
}

/// Cycles that a launch takes on both sides.
const LAUNCH: f64 = 5000.0;

/// Two traces, and the cycles beyond launch of each together and alone.
#[derive(Debug, PartialEq)]
struct Row {
    traces: [String; 2],
    together: [f64; 2],
    alone: [f64; 2],
}

impl Row {
    fn slowdowns(&self) -> [f64; 2] {
        [0, 1].map(|app: usize| self.together[app] / self.alone[app])
    }
}

fn published() -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cyclesim_coruns.csv");
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_path(path).unwrap();
    let row = |fields: csv::StringRecord| {
        let beyond = |at: usize| fields[at].parse::<f64>().unwrap() - LAUNCH;
        Row {
            traces: [fields[0].to_owned(), fields[1].to_owned()],
            together: [beyond(2), beyond(3)],
            alone: [beyond(4), beyond(5)],
        }
    };
    reader.records().map(|fields| row(fields.unwrap())).collect()
}

#[allow(clippy::cast_precision_loss, reason = "runs are below 2^53 cycles")]
fn modelled(folder: &Path, cache: &Path, traces: &[String; 2]) -> Row {
    let pair = folder.join(format!("co_{}__{}", traces[0], traces[1]));
    let app = |place: usize| AppName {
        name: format!("{} ({place})", traces[place]),
        path: pair.join(format!("kernel-{}.traceg.xz", place + 1)),
    };
    let request = AnalyzeRequest {
        schemes: vec![String::from("left-over")],
        ..AnalyzeRequest::new(vec![app(0), app(1)], "accelsim-qv100-fixed-l1", cache)
    };
    let analysis = analyze(&request, &Unwatched).unwrap();
    let both = [0, 1];
    Row {
        traces: traces.clone(),
        together: both.map(|app: usize| analysis.coruns[0].apps[app].end_cycle as f64 - LAUNCH),
        alone: both.map(|app: usize| analysis.solo[app].cycles as f64 - LAUNCH),
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "the table is for readers of the output")]
fn pairs_end_when_the_cycle_simulator_ends_them() {
    let Some(reference) = reference() else { return };
    let folder = reference.join("traces/generated");
    let cache = tempfile::tempdir().unwrap();
    println!("cycles beyond launch, together: model / simulator; slowdown: model / simulator");
    for expected in published() {
        let found = modelled(&folder, cache.path(), &expected.traces);
        for app in 0..2 {
            let (cycles, should) = (found.together[app], expected.together[app]);
            let error = 100.0 * (cycles / should - 1.0);
            let (slower, than) = (found.slowdowns()[app], expected.slowdowns()[app]);
            let name = &expected.traces[app];
            println!("{name:12} {cycles:6} / {should:6} {error:+5.1} %  {slower:.2} / {than:.2}");
            assert!(error.abs() < 12.0, "{name} in {:?}: {error:+.1} %", expected.traces);
            let far = (slower / than - 1.0).abs();
            assert!(far < 0.17, "{name} in {:?}: {slower:.2} for {than:.2}", expected.traces);
            // `transpose_s` loses 3 % there, and gains one here.
            assert!(slower > 0.98, "{name} gains nothing by sharing: {slower}");
        }
        let order = |row: &Row| row.slowdowns()[0] > row.slowdowns()[1];
        assert_eq!(order(&found), order(&expected), "which slows more: {found:?} {expected:?}");
    }
}
