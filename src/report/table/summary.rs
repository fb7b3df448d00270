//! Several applications or machines in one table.

use std::collections::BTreeMap;

use super::solo::{STALL_WORDS, TOP_SHARE, top_cell};
use super::{Cell, Column, THREAD_IPC, Table};
use crate::distinct;
use crate::format::{float, ratio};
use crate::kernels::{NO_CTA, groups, no_cta, top_stall};
use crate::results::{Analysis, AppRecord};

/// An application on a machine.
struct Row<'a> {
    record: &'a Analysis,
    app: &'a AppRecord,
    /// Shares of the slot-cycles of all SMs, beyond launch latency.
    stalls: BTreeMap<String, f64>,
}

/// The summary of `records` as text; empty where they hold one application on one machine, or
/// queues, whose applications have a table of their own.
pub(super) fn text(records: &[Analysis], width: Option<usize>) -> String {
    let mut table = table(records);
    if table.len() < 2 || records.iter().any(|record| !record.queues.is_empty()) {
        return String::new();
    }
    let machines = distinct(records.iter().map(|record| &record.machine.name));
    let on = if let [one] = machines[..] {
        table = table.without(&["machine"]);
        format!(" on {one}")
    } else {
        String::new()
    };
    let table = table.without(&[TOP_SHARE]).dropping(&[NO_CTA]).terminal(width);
    format!("Each application alone{on}:\n{table}  {STALL_WORDS}\n\n")
}

/// A row for each application and machine.
pub(super) fn table(records: &[Analysis]) -> Table {
    let columns: [Column<Row<'_>>; 9] = [
        ("application", |row| Cell::Cut(row.app.app.clone(), 40)),
        ("machine", |row| Cell::Cut(row.record.machine.name.clone(), 40)),
        ("cycles", |row| Cell::Count(row.app.cycles)),
        (THREAD_IPC, |row| Cell::number((!row.app.memory_only).then_some(row.app.ipc), 2)),
        ("DRAM GB/s", |row| Cell::number(row.dram_gb_per_s(), 1)),
        ("share of peak", |row| {
            let peak = row.record.machine.peak_dram_gb_per_s;
            Cell::Share(row.dram_gb_per_s().and_then(|rate| ratio(rate, peak)))
        }),
        (NO_CTA, |row| Cell::Share(no_cta(&row.stalls))),
        (TOP_SHARE, |row| Cell::Share(top_stall(&row.stalls).map(|(_, share)| share))),
        ("top stall", |row| top_cell(&row.stalls)),
    ];
    let apps = distinct(records.iter().flat_map(|record| record.solo.iter().map(|app| &app.app)));
    let rows = apps.into_iter().flat_map(|name| {
        records.iter().filter_map(move |record| {
            let app = record.solo.iter().find(|app| app.app == *name)?;
            Some(Row::new(record, app))
        })
    });
    Table::new(&columns, rows).left(&[0, 1, 8])
}

impl<'a> Row<'a> {
    fn new(record: &'a Analysis, app: &'a AppRecord) -> Self {
        let launches = || groups(&[(record, app)], 1).pop().map(|all| all.sum.stall_fractions);
        let stalls = app.sm_stalls().or_else(launches).unwrap_or_default();
        Self { record, app, stalls: if app.memory_only { BTreeMap::new() } else { stalls } }
    }

    /// DRAM traffic of the whole run beyond its launch latency; `None` where either is unknown
    /// or times are not modelled.
    fn dram_gb_per_s(&self) -> Option<f64> {
        let (app, core_mhz) = (self.app, self.record.machine.core_mhz);
        let busy = float(app.cycles.saturating_sub(app.launch_cycles));
        let per_cycle = ratio(float(app.dram.bytes()), busy)?;
        (core_mhz > 0.0 && !app.memory_only).then(|| per_cycle * core_mhz / 1000.0)
    }
}
