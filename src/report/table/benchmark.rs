//! Microbenchmarks in the model, next to published values.

use std::fmt::Write as _;

use super::{Cell, Column, Table};
use crate::results::{BenchmarkErrors, BenchmarkRecord, BenchmarkRow, Measurements};

/// A value with its benchmark.
type Value<'a> = (&'a BenchmarkRecord, &'a BenchmarkRow);

/// The values of `measurements` as text: a table for the terminal and the errors.
#[must_use]
pub fn benchmarks(measurements: &Measurements, width: Option<usize>) -> String {
    let mut text = values(measurements).terminal(width) + "\n";
    if measurements.errors.is_some() {
        text += &errors(measurements).terminal(width);
    }
    match measurements.errors {
        Some(all) => {
            let BenchmarkErrors { count, mean_percent, median_percent, worst_percent } = all;
            let _ = writeln!(
                text,
                "\n{count} published values: mean error {mean_percent:.1} %, median \
                 {median_percent:.1} %, worst {worst_percent:.0} %"
            );
        }
        None => text += "no published values: give a table with --measured\n",
    }
    text
}

/// The tables of `measurements` by name: every value, and the errors of each benchmark.
#[must_use]
pub fn benchmark_tables(measurements: &Measurements) -> [(&'static str, Table); 2] {
    [("values", values(measurements)), ("errors", errors(measurements))]
}

fn values(measurements: &Measurements) -> Table {
    let columns: [Column<Value<'_>>; 7] = [
        ("benchmark", |(benchmark, _)| benchmark.name.clone().into()),
        ("at", |(_, row)| row.at.clone().into()),
        ("model", |(_, row)| Cell::Number(row.model, decimals(row.model))),
        ("published", |(_, row)| Cell::number(row.published, row.published.map_or(0, decimals))),
        ("unit", |(benchmark, _)| benchmark.unit.clone().into()),
        ("error %", |(_, row)| Cell::number(row.error_percent, 0)),
        ("source", |(_, row)| row.source.clone().into()),
    ];
    let rows = measurements.benchmarks.iter();
    let rows = rows.flat_map(|benchmark| benchmark.rows.iter().map(move |row| (benchmark, row)));
    Table::new(&columns, rows).left(&[0, 4, 6]).dropping(&["source"])
}

fn errors(measurements: &Measurements) -> Table {
    let columns: [Column<(&BenchmarkRecord, BenchmarkErrors)>; 5] = [
        ("benchmark", |(benchmark, _)| benchmark.name.clone().into()),
        ("published values", |(_, errors)| Cell::Count(errors.count as u64)),
        ("mean error %", |(_, errors)| Cell::Number(errors.mean_percent, 1)),
        ("median", |(_, errors)| Cell::Number(errors.median_percent, 1)),
        ("worst", |(_, errors)| Cell::Number(errors.worst_percent, 0)),
    ];
    let known = measurements.benchmarks.iter();
    Table::new(&columns, known.filter_map(|one| Some((one, one.errors()?)))).left(&[0])
}

/// Decimals of a value, so that three digits are shown.
fn decimals(value: f64) -> usize {
    match value {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    }
}
