//! Records against a reference: both values and the error per row, then the
//! errors over all rows, then what was left out.

use std::fmt::Write as _;

use crate::document::{Cell, Column, NONE, Table};
use crate::format::{brief, bytes, percent};
use crate::results::{ComparedRow, Comparison, Coverage, ErrorUnit, Quantity, Summary};

const NAMED: usize = 10;

/// `comparison` as text.
#[must_use]
pub fn comparison(comparison: &Comparison) -> String {
    let rows = Table::of_texts(ROWS, comparison.rows.iter().map(row));
    let summary = summaries(&comparison.summary);
    let mut text = rows.terminal() + "\n" + &summary.terminal() + "\n";
    coverage(&mut text, &comparison.coverage);
    text
}

const ROWS: [&str; 13] = [
    "trace", "cycles", "ref.", "error", "L1 hit", "ref.", "points", "L2 hit", "ref.", "points",
    "DRAM", "ref.", "error",
];

fn row(row: &ComparedRow) -> Vec<String> {
    let cells = |quantity: Quantity, say: fn(f64) -> String| {
        row.pairs.get(&quantity).map_or_else(
            || [NONE.to_string(), NONE.to_string(), NONE.to_string()],
            |pair| {
                let mark = if pair.counted { "" } else { "*" };
                let error = pair.error.map_or_else(|| NONE.into(), |e| error(quantity, e));
                [say(pair.model), say(pair.reference), format!("{error}{mark}")]
            },
        )
    };
    let rate = |share: f64| percent(Some(share));
    let mut all = vec![brief(&row.label(), 36) + if row.sampled { " (sampled)" } else { "" }];
    all.extend(cells(Quantity::CyclesBeyondLaunch, |v| format!("{v:.0}")));
    all.extend(cells(Quantity::L1HitRate, rate));
    all.extend(cells(Quantity::L2HitRate, rate));
    all.extend(cells(Quantity::DramBytes, bytes));
    all
}

fn error(quantity: Quantity, value: f64) -> String {
    match quantity.unit() {
        ErrorUnit::Percent => format!("{value:+.1} %"),
        ErrorUnit::Points => format!("{value:+.1}"),
    }
}

fn summaries(all: &[Summary]) -> Table {
    let columns: [Column<&Summary>; 8] = [
        ("error of", |summary| {
            let unit = match summary.quantity.unit() {
                ErrorUnit::Percent => "%",
                ErrorUnit::Points => "points",
            };
            format!("{} ({unit})", summary.quantity.label()).into()
        }),
        ("rows", |summary| summary.pairs.to_string().into()),
        ("counted", |summary| summary.counted.to_string().into()),
        ("mean |e|", |summary| Cell::Number(summary.mean_absolute, 2)),
        ("median |e|", |summary| Cell::Number(summary.median_absolute, 2)),
        ("bias", |summary| format!("{:+.2}", summary.mean_signed).into()),
        ("worst", |summary| {
            format!("{:+.2} {}", summary.worst, brief(&summary.worst_trace, 28)).into()
        }),
        ("r", |summary| Cell::number(summary.correlation, 4)),
    ];
    Table::new(&columns, all)
}

fn coverage(text: &mut String, coverage: &Coverage) {
    let _ = writeln!(
        text,
        "coverage: {} of {} reference rows for these machines; {} records without a row",
        coverage.compared_rows,
        coverage.reference_rows,
        coverage.records_without_row.len()
    );
    let lists = [
        ("rows without a record", &coverage.rows_without_record),
        ("records without a row", &coverage.records_without_row),
        ("not comparable", &coverage.not_comparable),
    ];
    for (name, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        let more = list.len().saturating_sub(NAMED);
        let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
        let shown = &list[..list.len() - more];
        let _ = writeln!(text, "  {name}: {}{tail}", shown.join("; "));
    }
    let _ = writeln!(text, "  *: the reference is too small for the mean");
}
