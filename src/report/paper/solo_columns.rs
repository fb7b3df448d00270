//! What papers print of a kernel alone, as a solo run has it.
//!
//! The names are those of columns in `models/papers`. Misses are in lines of 128 bytes, as
//! papers count them, where a record counts their four sectors.

use crate::number::float;
use crate::results::{Analysis, AppRecord, KernelRecord};
use gpumodel_core::units::{SECTOR_BYTES, to_u64};

/// Sectors of a line.
const SECTORS: f64 = 4.0;

type Of = fn(&Analysis, &AppRecord) -> Option<f64>;

/// Every column that a solo run has a value of.
const COLUMNS: [(&str, Of); 17] = [
    ("warp_instructions", |_, app| Some(float(app.warp_instructions))),
    ("ipc", |_, app| Some(app.ipc)),
    ("kernels", |_, app| Some(float(to_u64(app.kernels.len())))),
    ("grid", |_, app| one(app, |kernel| kernel.grid.count())),
    ("ctas", |_, app| one(app, |kernel| kernel.grid.count())),
    ("block", |_, app| one(app, |kernel| kernel.block.count())),
    ("threads", |_, app| one(app, |kernel| kernel.block.count())),
    ("registers_percent", |_, app| Some(100.0 * app.utilization?.registers)),
    ("shared_percent", |_, app| Some(100.0 * app.utilization?.shared)),
    ("alu_percent", |_, app| Some(100.0 * app.utilization?.alu)),
    ("sfu_percent", |_, app| Some(100.0 * app.utilization?.sfu)),
    ("load_store_percent", |_, app| Some(100.0 * app.utilization?.load_store)),
    ("issued_percent", |_, app| issued(app)),
    // What the DRAM delivers, and stores that find no line (models/workloads/CALIBRATION.md).
    ("mpki_warp", |_, app| {
        let hits = app.l2.hits.saturating_sub(app.l2.read_hits);
        let missed = app.l2.accesses.saturating_sub(app.l2.reads).saturating_sub(hits);
        per_kilo(app.dram.read_sectors.saturating_add(missed), app.warp_instructions)
    }),
    // Where the L2 keeps lines whole.
    ("mpki_thread", |_, app| per_kilo(app.l2.misses(), app.thread_instructions)),
    ("time_ms", |record, app| seconds(record, app).map(|seconds| seconds * 1e3)),
    // Loads and stores of the SMs, where the L1 keeps no global data.
    ("gb_per_s", |record, app| {
        let bytes = app.l2.accesses.saturating_mul(SECTOR_BYTES);
        Some(float(bytes) / seconds(record, app)? / 1e9)
    }),
];

/// What `column` is of `app`; `window_cycles`: those in which `inst_millions` are done.
pub(super) fn solo_value(
    column: &str,
    window_cycles: Option<f64>,
    record: &Analysis,
    app: &AppRecord,
) -> Option<f64> {
    if app.memory_only {
        return None;
    }
    if column == "inst_millions" {
        return Some(app.ipc * window_cycles? / 1e6);
    }
    let (_, of) = COLUMNS.iter().find(|(name, _)| *name == column)?;
    of(record, app).filter(|value| value.is_finite())
}

/// What all launches have in common.
fn one(app: &AppRecord, of: fn(&KernelRecord) -> u64) -> Option<f64> {
    let first = of(app.kernels.first()?);
    app.kernels.iter().all(|kernel| of(kernel) == first).then(|| float(first))
}

/// The issue slots that launches used, weighted by their cycles.
fn issued(app: &AppRecord) -> Option<f64> {
    let (mut used, mut cycles) = (0.0, 0.0);
    for kernel in &app.kernels {
        let own = float(kernel.cycles.saturating_sub(kernel.launch_cycles));
        used += own * kernel.issue_slot_utilization?;
        cycles += own;
    }
    (cycles > 0.0).then(|| 100.0 * used / cycles)
}

fn per_kilo(sectors: u64, instructions: u64) -> Option<f64> {
    (instructions > 0).then(|| 1e3 * float(sectors) / SECTORS / float(instructions))
}

fn seconds(record: &Analysis, app: &AppRecord) -> Option<f64> {
    let megahertz = record.machine.core_mhz;
    (megahertz > 0.0 && app.cycles > 0).then(|| float(app.cycles) / megahertz / 1e6)
}

#[cfg(test)]
mod tests {
    use super::solo_value;
    use crate::results::{Analysis, AppRecord, CacheCounters, DramCounters, KernelRecord};
    use gpumodel_core::units::Dim3;

    #[test]
    fn columns_are_values_of_a_solo_run() {
        let kernel = |x, cycles, share| KernelRecord {
            grid: Dim3 { x, y: 1, z: 1 },
            cycles,
            issue_slot_utilization: Some(share),
            ..KernelRecord::default()
        };
        let app = AppRecord {
            cycles: 2000,
            ipc: 300.0,
            warp_instructions: 1000,
            thread_instructions: 8000,
            l2: CacheCounters { accesses: 400, hits: 300, reads: 300, read_hits: 220, merged: 0 },
            dram: DramCounters { read_sectors: 20, ..DramCounters::default() },
            kernels: vec![kernel(7, 100, 0.5), kernel(7, 300, 0.9)],
            ..AppRecord::default()
        };
        let mut record = Analysis::default();
        record.machine.core_mhz = 1000.0;
        let of = |column: &str, window| solo_value(column, window, &record, &app);
        assert_eq!(of("grid", None), Some(7.0));
        assert_eq!(of("kernels", None), Some(2.0));
        assert_eq!(of("inst_millions", Some(2e6)), Some(600.0));
        assert_eq!(of("inst_millions", None), None);
        // 20 sectors from the DRAM and 20 stores that missed are ten lines.
        assert_eq!(of("mpki_warp", None), Some(10.0));
        assert_eq!(of("mpki_thread", None), Some(3.125));
        assert!((of("issued_percent", None).unwrap() - 80.0).abs() < 1e-9);
        assert!((of("time_ms", None).unwrap() - 0.002).abs() < 1e-12);
        assert!((of("gb_per_s", None).unwrap() - 6.4).abs() < 1e-9);
        assert_eq!(of("alu_percent", None), None, "the record does not say");
        assert_eq!(of("footprint_mb", None), None);
        let mut others = app.clone();
        others.kernels[0].grid.x = 8;
        assert_eq!(solo_value("grid", None, &record, &others), None);
    }
}
