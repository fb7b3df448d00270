//! Records beside a reference: both values and the error per row, then the
//! errors over all rows, then what was left out.

use std::fmt::Write as _;

use super::{brief, plain};
use crate::format::{bytes, percent};
use crate::results::{ComparedRow, Comparison, Coverage, ErrorUnit, Quantity, Summary};

const NAMED: usize = 10;

/// `comparison` as text.
#[must_use]
pub fn comparison(comparison: &Comparison) -> String {
    let rows = comparison.rows.iter().map(row).collect();
    let summary = comparison.summary.iter().map(summary).collect();
    let mut text = plain(ROWS, rows) + "\n" + &plain(SUMMARY, summary) + "\n";
    coverage(&mut text, &comparison.coverage);
    text
}

const ROWS: [&str; 13] = [
    "trace", "cycles", "ref.", "error", "L1 hit", "ref.", "points", "L2 hit", "ref.", "points",
    "DRAM", "ref.", "error",
];

fn row(row: &ComparedRow) -> [String; ROWS.len()] {
    let cells = |quantity: Quantity, say: fn(f64) -> String| {
        row.pairs.get(&quantity).map_or_else(
            || ["–".to_string(), "–".to_string(), "–".to_string()],
            |pair| {
                let mark = if pair.counted { "" } else { "*" };
                let error = pair.error.map_or_else(|| "–".into(), |e| error(quantity, e));
                [say(pair.model), say(pair.reference), format!("{error}{mark}")]
            },
        )
    };
    let [cycles, cycles_ref, cycles_error] =
        cells(Quantity::CyclesBeyondLaunch, |v| format!("{v:.0}"));
    let [l1, l1_ref, l1_error] = cells(Quantity::L1HitRate, |v| percent(Some(v)));
    let [l2, l2_ref, l2_error] = cells(Quantity::L2HitRate, |v| percent(Some(v)));
    let [dram, dram_ref, dram_error] = cells(Quantity::DramBytes, bytes);
    [
        brief(&row.label(), 36) + if row.sampled { " (sampled)" } else { "" },
        cycles,
        cycles_ref,
        cycles_error,
        l1,
        l1_ref,
        l1_error,
        l2,
        l2_ref,
        l2_error,
        dram,
        dram_ref,
        dram_error,
    ]
}

fn error(quantity: Quantity, value: f64) -> String {
    match quantity.unit() {
        ErrorUnit::Percent => format!("{value:+.1} %"),
        ErrorUnit::Points => format!("{value:+.1}"),
    }
}

const SUMMARY: [&str; 8] =
    ["error of", "rows", "counted", "mean |e|", "median |e|", "bias", "worst", "r"];

fn summary(summary: &Summary) -> [String; SUMMARY.len()] {
    let unit = match summary.quantity.unit() {
        ErrorUnit::Percent => "%",
        ErrorUnit::Points => "points",
    };
    [
        format!("{} ({unit})", summary.quantity.label()),
        summary.pairs.to_string(),
        summary.counted.to_string(),
        format!("{:.2}", summary.mean_absolute),
        format!("{:.2}", summary.median_absolute),
        format!("{:+.2}", summary.mean_signed),
        format!("{:+.2} {}", summary.worst, brief(&summary.worst_trace, 28)),
        summary.correlation.map_or_else(|| "–".into(), |r| format!("{r:.4}")),
    ]
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
