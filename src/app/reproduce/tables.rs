//! The tables of a paper, with what the parts that have been run give of them.

use gpumodel_report::results::{HeadlineRow, PublishedTable, PublishedValue, Quoted, Sought};
use gpumodel_sim::config::{Compared, Paper, Printed, PrintedTable, PrintedValue};

use super::{Ran, filled};

/// The value of a table that says how many cycles it is about.
const WINDOW: &str = "cycles";

/// Every table of `paper`; `partial`: runs are a part of the paper's.
pub(super) fn tables(paper: &Paper, ran: &[Ran], partial: bool) -> Vec<PublishedTable> {
    let table = |table: &PrintedTable| {
        let value = |value: &PrintedValue| PublishedValue {
            row: value.row.clone(),
            at: value.at.clone(),
            column: value.column.clone(),
            published: quoted(&value.printed),
            modelled: match table.compared.get(&value.column) {
                Some(compared) => gain(compared, paper, ran, partial),
                None => found(table, value, ran),
            },
        };
        PublishedTable {
            name: table.name.clone(),
            title: table.title.clone(),
            published: table.published.clone(),
            schemes: table.schemes.clone(),
            values: table.values.iter().map(value).collect(),
            unmodelled: table.unmodelled.clone(),
        }
    };
    paper.tables.iter().map(table).collect()
}

fn quoted(printed: &Printed) -> Quoted {
    match printed.clone() {
        Printed::Number(number) => Quoted::Number(number),
        Printed::Numbers(numbers) => Quoted::Numbers(numbers),
        Printed::Text(text) => Quoted::Text(text),
        Printed::Texts(texts) => Quoted::Texts(texts),
    }
}

/// What one scheme has over another.
fn gain(compared: &Compared, paper: &Paper, ran: &[Ran], partial: bool) -> Option<Quoted> {
    let row = HeadlineRow {
        scheme: compared.scheme.clone(),
        over: compared.over.clone(),
        set: compared.set.clone(),
        measure: compared.measure.clone(),
        mean: compared.mean.clone(),
        ..HeadlineRow::default()
    };
    let row = filled(row, &paper.sets[&compared.set], ran, partial);
    row.modelled_percent.map(Quoted::Number)
}

/// What the first part that has it gives.
fn found(table: &PrintedTable, value: &PrintedValue, ran: &[Ran]) -> Option<Quoted> {
    let names = value.apps.iter().map(|app| vec![app.model.clone(), app.label.clone()]);
    let apps: Vec<Vec<String>> = names.collect();
    let window = |value: &PrintedValue| match value.printed {
        Printed::Number(cycles) if value.rows.is_empty() && value.column == WINDOW => Some(cycles),
        _ => None,
    };
    let sought = Sought {
        rows: &value.rows,
        row: &value.row,
        column: &value.column,
        apps: &apps,
        schemes: &table.schemes,
        at: &value.at,
        window_cycles: table.values.iter().find_map(window),
    };
    ran.iter().find_map(|ran| sought.value(&ran.records))
}
