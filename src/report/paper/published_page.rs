//! Tables that papers print, with ours beside each value.

use std::collections::BTreeMap;

use super::published_table::{PublishedTable, PublishedValue, TableEntry};
use crate::document::Block;

/// What stands where ours is missing.
const NONE: &str = "–";

/// The column of rows, which some tables have none of.
const OF: usize = 1;

/// Ends of columns, and their units as readers write them.
const UNITS: [(&str, &str); 11] = [
    ("gb_per_s_per_channel", "GB/s per channel"),
    ("gb_per_s", "GB/s"),
    ("gflop_per_s", "GFLOP/s"),
    ("percent", "%"),
    ("millions", "millions"),
    ("cycles", "cycles"),
    ("bytes", "bytes"),
    ("mb", "MB"),
    ("ghz", "GHz"),
    ("ms", "ms"),
    ("s", "s"),
];

/// The section of `tables`; nothing where there are none.
pub(super) fn published(blocks: &mut Vec<Block>, tables: &[PublishedTable], quick: bool) {
    if tables.is_empty() {
        return;
    }
    blocks.push(Block::Heading(3, String::from("Published tables")));
    if quick {
        let said = "What the model gives is of this short version: of cut inputs and runs.";
        blocks.push(Block::Text(said.to_owned()));
    }
    for table in tables.iter().filter(|table| !table.values.is_empty()) {
        blocks.push(Block::Heading(4, table.title.clone()));
        blocks.push(Block::Text(place(table)));
        blocks.push(lines(table));
        if table.values.iter().any(|value| value.modelled.is_none()) {
            let why = table.unmodelled.as_deref();
            let why = why.unwrap_or("No run of this reproduction has it.");
            blocks.push(Block::Text(format!("{NONE}: {why}")));
        }
    }
}

/// Where a table is printed, and what its lists are.
fn place(table: &PublishedTable) -> String {
    let schemes = match &table.schemes[..] {
        [] => String::new(),
        [one] => format!(" Ours, where it is of a scheme: {one}."),
        several => format!(" Of several values the schemes are, in order: {}.", several.join(", ")),
    };
    format!("{}.{schemes}", table.published)
}

/// A line for each value, those of a column together.
fn lines(table: &PublishedTable) -> Block {
    let mut columns: Vec<&str> = Vec::new();
    for value in &table.values {
        if !columns.contains(&value.column.as_str()) {
            columns.push(&value.column);
        }
    }
    let ordered = columns
        .iter()
        .flat_map(|column| table.values.iter().filter(move |value| value.column == *column));
    let mut header = vec!["value", "of", "paper", "model", "difference"];
    let mut rows: Vec<Vec<String>> = ordered.map(line).collect();
    if table.values.iter().all(|value| value.row.is_empty()) {
        header.remove(OF);
        rows.iter_mut().for_each(|cells| drop(cells.remove(OF)));
    }
    Block::Table(header, rows)
}

fn line(value: &PublishedValue) -> Vec<String> {
    let ours = value.modelled.as_ref().map(|ours| entry(ours, rounded));
    vec![
        named(&value.column),
        row(&value.row, &value.at),
        entry(&value.published, plain),
        ours.unwrap_or_else(|| NONE.to_owned()),
        difference(value).unwrap_or_else(|| NONE.to_owned()),
    ]
}

/// A key as readers write it: `alu_percent` is `alu (%)`.
fn named(key: &str) -> String {
    let unit = UNITS.iter().find_map(|(end, unit)| {
        let rest = key.strip_suffix(*end)?;
        (rest.is_empty() || rest.ends_with('_')).then_some((rest, *unit))
    });
    match unit {
        Some(("", unit)) => unit.to_owned(),
        Some((rest, unit)) => format!("{} ({unit})", rest.trim_end_matches('_').replace('_', " ")),
        None => key.replace('_', " "),
    }
}

/// A row and where it stands.
fn row(name: &str, at: &BTreeMap<String, f64>) -> String {
    let places = at.iter().map(|(key, value)| format!("{} {value}", named(key)));
    let words: Vec<String> = std::iter::once(name.to_owned()).chain(places).collect();
    words.join(", ")
}

fn entry(entry: &TableEntry, number: fn(f64) -> String) -> String {
    match entry {
        TableEntry::Number(value) => number(*value),
        TableEntry::Numbers(values) => {
            values.iter().map(|value| number(*value)).collect::<Vec<_>>().join(", ")
        }
        TableEntry::Text(text) => text.clone(),
        TableEntry::Texts(texts) => texts.join(", "),
    }
}

/// As it is printed.
fn plain(value: f64) -> String {
    value.to_string()
}

/// Four digits where that many say something.
fn rounded(value: f64) -> String {
    let places = match value.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 1.0 => 2,
        size if size >= 0.01 => 3,
        _ => 5,
    };
    let text = format!("{value:.places$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// How far ours is from what is printed: percentages in points, counts of a list as they
/// are, all else over what is printed.
fn difference(value: &PublishedValue) -> Option<String> {
    let percent = value.column.ends_with("percent");
    let of = |ours: f64, printed: f64| {
        if percent {
            Some(format!("{} points", signed(ours - printed, 1)))
        } else {
            over(ours, printed)
        }
    };
    match (value.modelled.as_ref()?, &value.published) {
        (TableEntry::Number(ours), TableEntry::Number(printed)) => of(*ours, *printed),
        (TableEntry::Number(ours), TableEntry::Numbers(range)) => {
            let [low, high] = range[..] else { return None };
            let nearest = ours.clamp(low.min(high), high.max(low));
            if nearest.to_bits() == ours.to_bits() {
                Some("within".into())
            } else {
                of(*ours, nearest)
            }
        }
        (TableEntry::Numbers(ours), TableEntry::Numbers(printed))
            if ours.len() == printed.len() =>
        {
            let counts = printed.iter().chain(ours).all(|value| value.fract() == 0.0);
            let one = |(ours, printed): (&f64, &f64)| {
                if counts { Some(signed(ours - printed, 0)) } else { of(*ours, *printed) }
            };
            let all: Option<Vec<String>> = ours.iter().zip(printed).map(one).collect();
            all.map(|all| all.join(", "))
        }
        (TableEntry::Text(ours), TableEntry::Text(printed)) => {
            Some(if ours == printed { "none" } else { "another" }.to_owned())
        }
        _ => None,
    }
}

/// `ours` over `printed` in percent; `None`: over nothing.
fn over(ours: f64, printed: f64) -> Option<String> {
    let percent = 100.0 * (ours / printed - 1.0);
    percent.is_finite().then(|| format!("{} %", signed(percent, 1)))
}

/// With its sign, which what rounds to zero has not.
fn signed(value: f64, places: usize) -> String {
    let text = format!("{value:+.places$}");
    if text.contains(|c: char| ('1'..='9').contains(&c)) { text } else { text[1..].to_owned() }
}

#[cfg(test)]
mod tests {
    use super::{named, published, rounded};
    use crate::document::{Block, markdown};
    use crate::paper::{PublishedTable, PublishedValue, TableEntry};

    fn value(
        row: &str,
        column: &str,
        published: TableEntry,
        ours: Option<TableEntry>,
    ) -> PublishedValue {
        let (row, column) = (row.to_owned(), column.to_owned());
        PublishedValue { row, column, published, modelled: ours, ..PublishedValue::default() }
    }

    fn written(values: Vec<PublishedValue>, unmodelled: Option<&str>) -> String {
        let table = PublishedTable {
            title: "Alone".into(),
            published: "table 2".into(),
            values,
            unmodelled: unmodelled.map(String::from),
            ..PublishedTable::default()
        };
        let mut blocks: Vec<Block> = Vec::new();
        published(&mut blocks, &[table], false);
        markdown(&blocks)
    }

    #[test]
    fn ours_stands_beside_what_is_printed_column_by_column() {
        let number = TableEntry::Number;
        let text = written(
            vec![
                value("A", "mpki_warp", number(50.0), Some(number(45.0))),
                value("A", "alu_percent", number(48.0), Some(number(51.25))),
                value("B", "mpki_warp", number(1.7), None),
            ],
            None,
        );
        let table = "### Published tables\n\n#### Alone\n\ntable 2.\n\n\
            | value | of | paper | model | difference |\n|---|---|---|---|---|\n\
            | mpki warp | A | 50 | 45 | -10.0 % |\n\
            | mpki warp | B | 1.7 | – | – |\n\
            | alu (%) | A | 48 | 51.25 | +3.2 points |\n\n\
            –: No run of this reproduction has it.\n";
        assert!(text.starts_with(table), "{text}");
    }

    #[test]
    fn lists_are_compared_one_by_one_and_ranges_at_their_ends() {
        let numbers = |values: &[f64]| TableEntry::Numbers(values.to_vec());
        let text = written(
            vec![
                value("A + B", "even", numbers(&[4.0, 3.0]), Some(numbers(&[4.0, 1.0]))),
                value("C", "MC", numbers(&[1.5, 1.6]), Some(TableEntry::Number(1.55))),
                value("M", "MC", numbers(&[1.5, 1.6]), Some(TableEntry::Number(3.2))),
                value(
                    "A",
                    "class",
                    TableEntry::Text("M".into()),
                    Some(TableEntry::Text("C".into())),
                ),
                value("", "ipc", numbers(&[0.5, 1.0]), None),
            ],
            Some("Nobody knows."),
        );
        for line in [
            "| even | A + B | 4, 3 | 4, 1 | 0, -2 |",
            "| MC | C | 1.5, 1.6 | 1.55 | within |",
            "| MC | M | 1.5, 1.6 | 3.2 | +100.0 % |",
            "| class | A | M | C | another |",
            "| ipc |  | 0.5, 1 | – | – |",
            "–: Nobody knows.",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_table_without_rows_has_no_column_of_them() {
        let text = written(vec![value("", "mean_percent", TableEntry::Number(8.9), None)], None);
        let table = "| value | paper | model | difference |\n|---|---|---|---|\n\
            | mean (%) | 8.9 | – | – |\n";
        assert!(text.contains(table), "{text}");
    }

    #[test]
    fn keys_and_numbers_are_for_readers() {
        assert_eq!(named("registers_percent"), "registers (%)");
        assert_eq!(named("l2_gb_per_s_per_channel"), "l2 (GB/s per channel)");
        assert_eq!(named("gb_per_s"), "GB/s");
        assert_eq!(named("ctas"), "ctas");
        assert_eq!(named("time_ms"), "time (ms)");
        let reported = [157_500_000.0, 401.49, 8.0, 0.000_412, -0.000_001].map(rounded);
        assert_eq!(reported, ["157500000", "401.5", "8", "0.00041", "0"]);
    }
}
