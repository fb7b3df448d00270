//! Do we agree with a cycle simulator on real and generated traces?
//!
//! Uses the reference data next to the project if present; the bounds are the
//! current errors, rounded up.

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
