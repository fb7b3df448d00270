//! The tables of a paper, with what the parts that have been run give of them.

use gpumodel_report::paper::{
    Compared, Headline, Paper, PublishedLookup, PublishedTable, PublishedValue, TableEntry,
};

use super::{Ran, filled};

/// The value of a table that says how many cycles it is about.
const WINDOW: &str = "cycles";

/// Every table of `paper`, with ours; `partial`: runs are a part of the paper's.
pub(super) fn tables(paper: &Paper, ran: &[Ran], partial: bool) -> Vec<PublishedTable> {
    let mut tables = paper.tables.clone();
    for (own, table) in tables.iter_mut().zip(&paper.tables) {
        for value in &mut own.values {
            value.modelled = match table.compared.get(&value.column) {
                Some(compared) => gain(compared, paper, ran, partial),
                None => found(table, value, ran),
            };
        }
    }
    tables
}

/// What one scheme has over another.
fn gain(compared: &Compared, paper: &Paper, ran: &[Ran], partial: bool) -> Option<TableEntry> {
    let headline = Headline {
        scheme: compared.scheme.clone(),
        over: compared.over.clone(),
        set: compared.set.clone(),
        measure: compared.measure.clone(),
        mean: compared.mean.clone(),
        ..Headline::default()
    };
    let row = filled(&headline, &paper.sets[&compared.set], ran, partial);
    row.modelled_percent.map(TableEntry::Number)
}

/// What the first part that has it gives.
fn found(table: &PublishedTable, value: &PublishedValue, ran: &[Ran]) -> Option<TableEntry> {
    let names = value.apps.iter().map(|app| vec![app.model.clone(), app.label.clone()]);
    let apps: Vec<Vec<String>> = names.collect();
    let window = |value: &PublishedValue| match value.published {
        TableEntry::Number(cycles) if value.rows.is_empty() && value.column == WINDOW => {
            Some(cycles)
        }
        _ => None,
    };
    let lookup = PublishedLookup {
        rows: &value.rows,
        row: &value.row,
        column: &value.column,
        apps: &apps,
        schemes: &table.schemes,
        at: &value.at,
        window_cycles: table.values.iter().find_map(window),
    };
    ran.iter().find_map(|ran| lookup.value(&ran.records))
}
