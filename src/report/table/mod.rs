//! Tables for the terminal: plain text, no colour, the same on a terminal and
//! in a pipe.

mod comparison;
mod corun;
mod queue;
mod solo;
mod sweep;

pub use comparison::comparison;
pub use corun::corun;
pub use queue::queue;
pub use solo::solo;
pub use sweep::{failures, planned};

use super::format::brief;
use comfy_table::{CellAlignment, Table, presets};

/// A table without frames: `header` above, the first column to the left and
/// numbers to the right.
fn plain<const N: usize>(header: [&str; N], rows: Vec<[String; N]>) -> String {
    let rows = rows.into_iter().map(Vec::from).collect();
    words(header.map(String::from).into(), rows, |column| column == 0)
}

/// As [`plain`], for tables whose columns are known from the record alone; those of
/// `left` are text.
pub(super) fn words(
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    left: impl Fn(usize) -> bool,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        let first = column.index == 0;
        column.set_padding((if first { 2 } else { 1 }, 1));
        let text = left(column.index);
        column.set_cell_alignment(if text { CellAlignment::Left } else { CellAlignment::Right });
    }
    let text = table.trim_fmt() + "\n";
    crate::dump::dump("table", &text);
    text
}

/// A value with `places` decimals; `–` for none.
fn decimal(value: Option<f64>, places: usize) -> String {
    value.map_or_else(|| "–".into(), |value| format!("{value:.places$}"))
}
