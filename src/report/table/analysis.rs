//! Analyses: the text of `analyze`, and its tables for CSV.

use std::fmt::Write as _;

use super::corun::{Named, apps, corun, moves, named, schemes};
use super::hot::{hot, hot_table};
use super::queue::queue;
use super::queue_csv;
use super::solo::{kernel_table, solo};
use super::{Table, stall_table, summary, wrapped};
use crate::format::brief;
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
    text += &summary::text(records, width);
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
        summary::table(records),
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
