//! The cells of a sweep as tidy rows: a row per cell, and a row per cell and application.
//! Units are in the names of the columns, and in `reports/COLUMNS.md`, which has a row for
//! each of them.
//!
//! What there is not, or what has no bound, is empty.

use super::cell::settings;
use super::field::{Field, Row};
use super::{Analysis, CellRecord, CoRun, CoRunApp, FailedCell};

/// What stands between the values of the applications of a mix, as between their names.
const BESIDE: &str = " + ";

/// The row of a cell: what it is, how it ended, and its figures of merit.
pub(super) fn cell_row(cell: &CellRecord, outcome: &Result<Analysis, FailedCell>) -> Row {
    let record = outcome.as_ref().ok();
    let mut row = identity(cell, record);
    let (status, error) = match outcome {
        Ok(_) => ("done", Field::Text(None)),
        Err(failed) => ("failed", failed.errors.join(": ").into()),
    };
    row.extend([("status", status.into())]);
    figures(&mut row, record.and_then(|record| record.coruns.first()));
    row.extend([("error", error)]);
    row
}

/// A row for each application of a cell with its record.
pub(super) fn app_rows(cell: &CellRecord, record: &Analysis) -> impl Iterator<Item = Row> {
    let apps = record.coruns.first().map_or(&[][..], |run| &run.apps);
    apps.iter().enumerate().map(|(place, app)| {
        let mut row = identity(cell, Some(record));
        row.extend([("place", place.into())]);
        of_app(&mut row, app);
        row.extend([("store_hash", record.store_hash(&app.app).map(str::to_owned).into())]);
        row
    })
}

/// What tells a cell from others. Its record says what is in the stores of its
/// applications.
fn identity(cell: &CellRecord, record: Option<&Analysis>) -> Row {
    let hash = |app: &String| record?.store_hash(app);
    let hashes: Option<Vec<&str>> = cell.apps.iter().map(hash).collect();
    let mut row = Row::default();
    row.extend([
        ("key", cell.key.as_str().into()),
        ("machine", cell.machine.as_str().into()),
        ("machine_hash", cell.machine_hash.as_str().into()),
        ("overrides", settings(&cell.overrides).into()),
        ("mix", cell.mix().into()),
        ("app_count", cell.apps.len().into()),
        ("scheme", cell.scheme.as_str().into()),
        ("parameters", settings(&cell.parameters).into()),
        ("seed", cell.seed.into()),
        ("until", cell.until.as_str().into()),
        ("window_cycles", cell.window_cycles.into()),
        ("arrival_cycles", settings(&cell.arrival_cycles).into()),
        ("build", cell.build.as_str().into()),
        ("store_hashes", hashes.map(|hashes| hashes.join(BESIDE)).into()),
    ]);
    row
}

/// The figures of a co-run; none where there is no run.
fn figures(row: &mut Row, run: Option<&CoRun>) {
    let nothing = CoRun::default();
    let of = run.unwrap_or(&nothing);
    // 0 stands for a machine without figures of energy.
    let energy = Some(of.energy_joules).filter(|joules| *joules > 0.0 && joules.is_finite());
    let values: [(&str, Field); 18] = [
        ("cycles", of.cycles.into()),
        ("stp", of.stp.into()),
        ("antt", of.antt.into()),
        ("fairness_min_speedup", of.fairness_min_speedup.into()),
        ("harmonic_speedup", of.harmonic_speedup.into()),
        ("ipc_throughput", of.ipc_throughput.into()),
        ("makespan_cycles", of.makespan_cycles.into()),
        ("makespan_speedup", of.makespan_speedup.into()),
        ("energy_joules", Field::Number(energy)),
        ("l1_accesses", of.l1.accesses.into()),
        ("l1_hits", of.l1.hits.into()),
        ("l2_accesses", of.l2.accesses.into()),
        ("l2_hits", of.l2.hits.into()),
        ("dram_read_sectors", of.dram.read_sectors.into()),
        ("dram_write_sectors", of.dram.write_sectors.into()),
        ("dram_bandwidth_utilization", of.dram.bandwidth_utilization.into()),
        ("killed_ctas", of.killed_ctas.into()),
        ("decision_count", of.decisions.len().into()),
    ];
    let reported = |field: Field| if run.is_some() { field } else { field.emptied() };
    row.extend(values.map(|(name, field)| (name, reported(field))));
}

fn of_app(row: &mut Row, app: &CoRunApp) {
    row.extend([
        ("app", app.app.as_str().into()),
        ("arrival_cycle", app.arrival_cycle.into()),
        ("end_cycle", app.end_cycle.into()),
        ("cycles", app.cycles.into()),
        ("finished", app.finished.into()),
        ("runs", app.runs.into()),
        ("memory_only", app.memory_only.into()),
        ("warp_instructions", app.warp_instructions.into()),
        ("thread_instructions", app.thread_instructions.into()),
        ("ipc", app.ipc.into()),
        ("solo_ipc", app.solo_ipc.into()),
        ("slowdown", app.slowdown.into()),
        ("normalized_progress", app.normalized_progress.into()),
        ("mpki_warp", app.mpki_warp.into()),
        ("mpki_thread", app.mpki_thread.into()),
        ("l1_accesses", app.l1.accesses.into()),
        ("l1_hits", app.l1.hits.into()),
        ("l2_accesses", app.l2.accesses.into()),
        ("l2_hits", app.l2.hits.into()),
        ("dram_read_sectors", app.dram.read_sectors.into()),
        ("dram_write_sectors", app.dram.write_sectors.into()),
        ("dram_share", app.dram_share.into()),
        ("sms", app.sms.into()),
        ("ctas_per_sm", app.ctas_per_sm.into()),
        ("channels", app.channels.into()),
        ("mean_sms", app.mean_sms.into()),
        ("mean_channels", app.mean_channels.into()),
        ("killed_ctas", app.killed_ctas.into()),
        ("pages_moved", app.migration.map(|migration| migration.pages_moved).into()),
    ]);
}
