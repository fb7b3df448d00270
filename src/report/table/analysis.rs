//! Analyses: the text of `analyze`, and its tables for CSV; several applications or machines in
//! one table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::corun::{Named, apps, corun, moves, named, schemes};
use super::hot::{hot, hot_table};
use super::queue::queue;
use super::solo::{STALL_WORDS, TOP_SHARE, kernel_table, solo, top_cell};
use super::{Cell, Column, THREAD_IPC, Table, queue_csv, stall_table, wrapped};
use crate::distinct;
use crate::format::{brief, float, ratio};
use crate::kernels::{NO_CTA, groups, no_cta, top_stall};
use crate::mix::scheme_names;
use crate::results::{Analysis, AppRecord};

/// The names of the tables of [`analysis_tables`].
pub const NAMES: [&str; 13] = [
    "summary",
    "kernels",
    "stalls",
    "hot",
    "schemes",
    "applications",
    "moves",
    "queues",
    "gains",
    "groups",
    "patterns",
    "classes",
    "slowdowns",
];

/// `records`, each of one machine, as text: per application its totals and one line per kernel
/// name, longest-running first; of several applications or machines a summary of all; then
/// co-runs and queues.
#[must_use]
pub fn analysis(records: &[Analysis], width: Option<usize>) -> String {
    let mut text = String::new();
    for record in records {
        text += &solo(record, width);
        text += &hot(record, width);
        for note in &record.notes {
            let _ = writeln!(text, "note: {}", brief(note, 400));
        }
        if !record.notes.is_empty() {
            text.push('\n');
        }
    }
    text += &summary_text(records, width);
    for record in records {
        let together = corun(record, width) + &queue(record, width);
        if records.len() > 1 && !together.is_empty() {
            let _ = writeln!(text, "Together on {}:", record.machine.name);
        }
        text += &together;
    }
    text.truncate(text.trim_end().len());
    wrapped(&(text + "\n"), width)
}

/// The tables of `records` by name, those that have rows: `summary` has a row for each
/// application and machine, the others one for each kernel, hot instruction, scheme, application
/// under a scheme, queue under a scheme, group or pattern of a queue, classified application, or
/// pair of classes.
#[must_use]
pub fn analysis_tables(records: &[Analysis]) -> Vec<(&'static str, Table)> {
    let runs: Vec<(&Analysis, &AppRecord)> =
        records.iter().flat_map(|one| one.solo.iter().map(move |app| (one, app))).collect();
    let kernels = runs.iter().map(|(record, app)| {
        let own = kernel_table(record, app, usize::MAX, 2).behind("application", &app.app);
        own.behind("machine", &record.machine.name)
    });
    let whole = |of: fn(&Analysis) -> Table| {
        let own = |one: &Analysis| of(one).behind("machine", &one.machine.name);
        Table::joined(records.iter().map(own))
    };
    let tables = [
        summary_table(records),
        Table::joined(kernels),
        stall_table(&runs, usize::MAX),
        hot_table(&runs),
        whole(|record| of_coruns(record, schemes)).renamed("energy", "energy (J)"),
        whole(|record| of_coruns(record, apps)),
        whole(|record| of_coruns(record, moves)),
        whole(queue_csv::runs),
        whole(queue_csv::gains),
        whole(queue_csv::groups),
        whole(queue_csv::patterns),
        whole(queue_csv::classes),
        whole(queue_csv::slowdowns),
    ];
    NAMES.into_iter().zip(tables).filter(|(_, table)| !table.is_empty()).collect()
}

/// The table `of` the co-runs of `record`.
fn of_coruns(record: &Analysis, of: fn(&[Named<'_>]) -> Table) -> Table {
    of(&named(&scheme_names(&record.coruns), &record.coruns))
}

/// An application on a machine.
struct Row<'a> {
    record: &'a Analysis,
    app: &'a AppRecord,
    /// Shares of the slot-cycles of all SMs, beyond launch latency.
    stalls: BTreeMap<String, f64>,
}

/// The summary of `records` as text; empty where they hold one application on one machine, or
/// queues, whose applications have a table of their own.
fn summary_text(records: &[Analysis], width: Option<usize>) -> String {
    let mut table = summary_table(records);
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
fn summary_table(records: &[Analysis]) -> Table {
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
