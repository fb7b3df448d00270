//! What papers print of a run under a scheme, as a co-run has it.
//!
//! The names are those of columns in `models/papers`.

use crate::number::float;
use crate::results::statistics::mean;
use crate::results::{Analysis, CoRun, CoRunApp, HostTime, WorkersRecord};
use gpumodel_core::units::{Cycle, SECTOR_BYTES};

type Of = fn(&Analysis, &CoRun) -> Option<f64>;

/// Every column that a co-run has a value of.
const COLUMNS: [(&str, Of); 8] = [
    ("warp_ipc_per_sm", |record, run| {
        let sms = float(record.machine.sms);
        per(sum(run, executed), float(run.cycles) * sms)
    }),
    // Loads and stores of the SMs, where the L1 keeps no global data.
    ("gb_per_s", |record, run| {
        let bytes = float(run.l2.accesses.saturating_mul(SECTOR_BYTES));
        per(bytes * record.machine.core_mhz / 1e3, float(run.cycles))
    }),
    ("communication_percent", |_, run| spent(run, |host| host.communication_cycles)),
    ("compilation_percent", |_, run| spent(run, |host| host.compilation_cycles)),
    ("added_percent", |_, run| {
        let added = |app: &CoRunApp| app.workers.as_ref().map_or(0, |work| work.added_instructions);
        per(100.0 * sum(run, added), sum(run, |app| app.warp_instructions))
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
        let longer = per(100.0 * float(app.cycles), float(alone.cycles))? - 100.0;
        app.finished.then_some(longer)
    }),
];

/// What `column` is of the form of `app` as workers, whatever runs beside it.
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
    let (_, of) = COLUMNS.iter().find(|(name, _)| *name == column)?;
    of(record, run).filter(|value| value.is_finite())
}

fn per(what: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| what / whole)
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
        per(100.0 * float(of(host)), parts.map(float).iter().sum())
    };
    mean(&run.apps.iter().filter_map(share).collect::<Vec<f64>>())
}

/// The mean over applications that ran as workers.
fn workers(run: &CoRun, of: fn(&WorkersRecord) -> f64) -> Option<f64> {
    mean(&run.apps.iter().filter_map(|app| app.workers.as_ref().map(of)).collect::<Vec<f64>>())
}

#[cfg(test)]
mod tests {
    use super::{corun_value, worker_value};
    use crate::results::{Analysis, AppRecord, CoRun, CoRunApp, HostTime, WorkersRecord};

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
