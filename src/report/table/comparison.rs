//! Records against a reference: both values and the error per row, then the
//! errors over all rows, then what was left out.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Cell, Column, NONE, Table, wrapped};
use crate::format::{brief, bytes, plain_name};
use crate::results::{ComparedRow, Comparison, Coverage, ErrorUnit, Quantity, Summary};

const NAMED: usize = 10;

/// `comparison` as text.
#[must_use]
pub fn comparison(comparison: &Comparison, width: Option<usize>) -> String {
    let rows = rows(comparison);
    let summary = summaries(&comparison.summary);
    let mut text = rows.terminal(width) + "\n" + &summary.terminal(width) + "\n";
    coverage(&mut text, &comparison.coverage);
    legend(&mut text, comparison);
    wrapped(&text, width)
}

/// The tables of `comparison` by name: `rows`, and the `errors` over them.
#[must_use]
pub fn comparison_tables(comparison: &Comparison) -> [(&'static str, Table); 2] {
    let mut keys = KEYS;
    if comparison.without_launch {
        keys[1..3].copy_from_slice(&KEYS_WITHOUT_LAUNCH);
    }
    if comparison.speed() == Quantity::Duration {
        keys[1..4].copy_from_slice(&KEYS_OF_TIME);
    }
    [("rows", rows(comparison).named(&keys)), ("errors", summaries(&comparison.summary))]
}

/// The quantities of the rows.
fn shown(comparison: &Comparison) -> [Quantity; 4] {
    [comparison.speed(), Quantity::L1HitRate, Quantity::L2HitRate, Quantity::DramBytes]
}

const ROWS: [&str; 13] = [
    "trace",
    "cycles",
    "ref.",
    "error",
    "L1 hit",
    "L1 ref.",
    "L1 points",
    "L2 hit",
    "L2 ref.",
    "L2 points",
    "DRAM",
    "DRAM ref.",
    "DRAM error",
];

/// The columns that a narrow terminal leaves out, the first of them first: the error says what
/// is most wanted of both values.
const DROPPED: [&str; 6] = ["DRAM ref.", "L1 ref.", "L2 ref.", "DRAM", "L1 hit", "L2 hit"];

/// The same columns in CSV.
const KEYS: [&str; 13] = [
    "trace",
    "cycles",
    "reference cycles",
    "cycles error percent",
    "L1 hit",
    "reference L1 hit",
    "L1 error points",
    "L2 hit",
    "reference L2 hit",
    "L2 error points",
    "DRAM bytes",
    "reference DRAM bytes",
    "DRAM error percent",
];

/// Heads of both sides' cycles where launch latency is taken off them.
const ROWS_WITHOUT_LAUNCH: [&str; 2] = ["cycles - launch", "ref. - launch"];

/// The same columns in CSV.
const KEYS_WITHOUT_LAUNCH: [&str; 2] = ["cycles without launch", "reference cycles without launch"];

/// Heads of both sides' times, where the reference has no cycles.
const ROWS_OF_TIME: [&str; 2] = ["time", "ref."];

/// The same columns in CSV.
const KEYS_OF_TIME: [&str; 3] = ["nanoseconds", "reference nanoseconds", "time error percent"];

fn rows(comparison: &Comparison) -> Table {
    let mut header = ROWS;
    if comparison.without_launch {
        header[1..3].copy_from_slice(&ROWS_WITHOUT_LAUNCH);
    }
    if comparison.speed() == Quantity::Duration {
        header[1..3].copy_from_slice(&ROWS_OF_TIME);
    }
    let rows = &comparison.rows;
    let mut labels = BTreeMap::<String, usize>::new();
    for row in rows {
        *labels.entry(row.label()).or_default() += 1;
    }
    let with_kernel = |one: &ComparedRow| comparison.profile || labels[&one.label()] > 1;
    let shown = shown(comparison);
    let cells = rows.iter().map(|one| row(one, shown, with_kernel(one)));
    let table = Table::of_cells(header, cells);
    table.dropping(&DROPPED)
}

/// A row, with its kernel where several rows are about one application.
fn row(row: &ComparedRow, shown: [Quantity; 4], with_kernel: bool) -> Vec<Cell> {
    let cells = |quantity: Quantity, say: fn(f64) -> Cell| {
        row.pairs.get(&quantity).map_or_else(
            || [NONE.into(), NONE.into(), NONE.into()],
            |pair| {
                let mark = if pair.counted { "" } else { "*" };
                let shown = |error| (error, error_words(quantity, error) + mark);
                let error = pair.error.map(shown).map_or(NONE.into(), |(e, s)| Cell::Shown(e, s));
                [say(pair.model), say(pair.reference), error]
            },
        )
    };
    let rate = |share: f64| Cell::Share(Some(share));
    let sampled = if row.sampled { " (sampled)" } else { "" };
    let kernel = row.kernel.as_deref().filter(|_| with_kernel);
    let kernel = kernel.map(|name| format!(" {}", brief(&plain_name(name), 28)));
    let label = brief(&row.label(), 36) + &kernel.unwrap_or_default();
    let mut all = vec![Cell::Text(label + sampled)];
    let [speed, l1, l2, dram] = shown;
    if speed == Quantity::Duration {
        all.extend(cells(speed, |value| Cell::Shown(value, microseconds(value))));
    } else {
        all.extend(cells(speed, |value| Cell::Number(value, 0)));
    }
    all.extend(cells(l1, rate));
    all.extend(cells(l2, rate));
    all.extend(cells(dram, |value| Cell::Shown(value, bytes(value))));
    all
}

fn microseconds(nanoseconds: f64) -> String {
    format!("{:.2} µs", nanoseconds / 1000.0)
}

fn error_words(quantity: Quantity, value: f64) -> String {
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
            let worst = format!("{:+.2}", summary.worst);
            Cell::Noted(worst, brief(&summary.worst_trace, 28))
        }),
        ("r", |summary| Cell::number(summary.correlation, 4)),
    ];
    Table::new(&columns, all).left(&[0, 6])
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
}

/// Says what the signs of the table mean that it shows.
fn legend(text: &mut String, comparison: &Comparison) {
    let quantities = shown(comparison);
    for note in &comparison.notes {
        let _ = writeln!(text, "  {note}");
    }
    if comparison.without_launch {
        let _ = writeln!(text, "  - launch: launch latency is subtracted from both sides");
    }
    let shown = |quantity: &Quantity| {
        let pairs = comparison.rows.iter().filter_map(|row| row.pairs.get(quantity));
        pairs.into_iter().any(|pair| pair.error.is_some() && !pair.counted)
    };
    if quantities.iter().any(shown) {
        let _ = writeln!(text, "  *: the reference is too small for the mean");
    }
}
