//! What papers print of a kernel alone and of a run under a scheme, as records have it.
//!
//! The names are those of columns in `models/papers`. Misses are in lines of 128 bytes, as papers
//! count them, where a record counts their four sectors.

use gpumodel_core::units::{Cycle, SECTOR_BYTES};

use crate::format::{float, ratio};
use crate::results::statistics::mean;
use crate::results::{Analysis, AppRecord, CoRun, CoRunApp, HostTime, KernelRecord, WorkersRecord};

/// Sectors of a line.
const SECTORS: f64 = 4.0;

type SoloColumn = fn(&Analysis, &AppRecord) -> Option<f64>;

/// Every column that a solo run has a value of.
const SOLO_COLUMNS: [(&str, SoloColumn); 17] = [
    ("warp_instructions", |_, app| Some(float(app.warp_instructions))),
    ("ipc", |_, app| Some(app.ipc)),
    ("kernels", |_, app| Some(float(app.kernels.len()))),
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
    // What the DRAM delivers, lines of stores that miss included (models/workloads/CALIBRATION.md).
    ("mpki_warp", |_, app| per_kilo(app.dram.read_sectors, app.warp_instructions)),
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
    let (_, of) = SOLO_COLUMNS.iter().find(|(name, _)| *name == column)?;
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
        let own = float(kernel.busy_cycles());
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

type CoRunColumn = fn(&Analysis, &CoRun) -> Option<f64>;

/// Every column that a co-run has a value of.
const CORUN_COLUMNS: [(&str, CoRunColumn); 8] = [
    ("warp_ipc_per_sm", |record, run| {
        let sms = float(record.machine.sms);
        ratio(sum(run, executed), float(run.cycles) * sms)
    }),
    // Loads and stores of the SMs, where the L1 keeps no global data.
    ("gb_per_s", |record, run| {
        let bytes = float(run.l2.accesses.saturating_mul(SECTOR_BYTES));
        ratio(bytes * record.machine.core_mhz / 1e3, float(run.cycles))
    }),
    ("communication_percent", |_, run| spent(run, |host| host.communication_cycles)),
    ("compilation_percent", |_, run| spent(run, |host| host.compilation_cycles)),
    ("added_percent", |_, run| {
        let added = |app: &CoRunApp| app.workers.as_ref().map_or(0, |work| work.added_instructions);
        ratio(100.0 * sum(run, added), sum(run, |app| app.warp_instructions))
    }),
    ("added_registers_percent", |_, run| {
        workers(run, |work| {
            100.0 * (float(work.registers) / float(work.registers_as_written) - 1.0)
        })
    }),
    ("added_shared_bytes", |_, run| {
        workers(run, |work| float(work.shared_bytes.saturating_sub(work.shared_bytes_as_written)))
    }),
    ("added_time_percent", |record, run| {
        let [app] = &run.apps[..] else { return None };
        let alone = record.solo.iter().find(|solo| solo.app == app.app)?;
        let longer = ratio(100.0 * float(app.cycles), float(alone.cycles))? - 100.0;
        app.finished.then_some(longer)
    }),
];

/// What `column` is of the form of `app` as workers, whatever runs next to it.
pub(super) fn worker_value(column: &str, app: &CoRunApp) -> Option<f64> {
    let work = app.workers.as_ref()?;
    match column {
        "worker_registers" => Some(float(work.registers)),
        "worker_shared_bytes" => Some(float(work.shared_bytes)),
        _ => None,
    }
}

/// What `column` is of `run`.
pub(super) fn corun_value(column: &str, record: &Analysis, run: &CoRun) -> Option<f64> {
    let (_, of) = CORUN_COLUMNS.iter().find(|(name, _)| *name == column)?;
    of(record, run).filter(|value| value.is_finite())
}

fn sum(run: &CoRun, of: fn(&CoRunApp) -> u64) -> f64 {
    float(run.apps.iter().map(of).fold(0, u64::saturating_add))
}

/// Warp instructions with those that its form has added.
fn executed(app: &CoRunApp) -> u64 {
    let added = app.workers.as_ref().map_or(0, |work| work.added_instructions);
    app.warp_instructions.saturating_add(added)
}

/// The mean over applications of what a part of their time is of all, in percent.
fn spent(run: &CoRun, of: fn(&HostTime) -> Cycle) -> Option<f64> {
    let share = |app: &CoRunApp| {
        let host = app.host.as_ref()?;
        let parts = [
            host.kernel_cycles,
            host.communication_cycles,
            host.compilation_cycles,
            host.waiting_cycles,
        ];
        ratio(100.0 * float(of(host)), parts.map(float).iter().sum())
    };
    mean(&run.apps.iter().filter_map(share).collect::<Vec<f64>>())
}

/// The mean over applications that ran as workers.
fn workers(run: &CoRun, of: fn(&WorkersRecord) -> f64) -> Option<f64> {
    mean(&run.apps.iter().filter_map(|app| app.workers.as_ref().map(of)).collect::<Vec<f64>>())
}

#[cfg(test)]
mod tests {
    use gpumodel_core::units::Dim3;

    use super::{corun_value, solo_value, worker_value};
    use crate::results::{
        Analysis, AppRecord, CacheCounters, CoRun, CoRunApp, DramCounters, HostTime, KernelRecord,
        WorkersRecord,
    };

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
        // 20 sectors from the DRAM are five lines.
        assert_eq!(of("mpki_warp", None), Some(5.0));
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

    #[test]
    fn columns_are_values_of_a_run() {
        let workers = WorkersRecord {
            registers: 28,
            registers_as_written: 20,
            added_instructions: 50,
            ..WorkersRecord::default()
        };
        let host = HostTime { kernel_cycles: 90, communication_cycles: 10, ..HostTime::default() };
        let app = CoRunApp {
            app: "a".into(),
            cycles: 110,
            finished: true,
            warp_instructions: 950,
            workers: Some(workers),
            host: Some(host),
            ..CoRunApp::default()
        };
        let run = CoRun { cycles: 100, apps: vec![app], ..CoRun::default() };
        let alone = AppRecord { app: "a".into(), cycles: 100, ..AppRecord::default() };
        let mut record = Analysis { solo: vec![alone], ..Analysis::default() };
        record.machine.sms = 5;
        let of = |column: &str| corun_value(column, &record, &run);
        assert_eq!(of("warp_ipc_per_sm"), Some(2.0));
        assert_eq!(of("communication_percent"), Some(10.0));
        assert_eq!(of("worker_registers"), None);
        assert_eq!(worker_value("worker_registers", &run.apps[0]), Some(28.0));
        assert!((of("added_registers_percent").unwrap() - 40.0).abs() < 1e-9);
        assert!((of("added_time_percent").unwrap() - 10.0).abs() < 1e-9);
        assert!((of("added_percent").unwrap() - 5000.0 / 950.0).abs() < 1e-9);
        assert_eq!(of("time_s"), None);
    }
}
