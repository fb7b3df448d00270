//! A table that a paper prints: in its file, any table that is nothing else.
//!
//! Its rows are tables of a table in it (`[solo.app.NAME]`), a list of tables
//! (`[[partitions.pair]]`), or its own values. `label` is what the paper calls a row,
//! `suite` where its program is from; keys that begin with `at_` say where a row stands.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::file::Set;
use super::headline::{arithmetic, wrong_words};
use crate::document::Block;
use crate::format::trimmed;
use crate::table::NONE;
use crate::{distinct, table};

/// Before the keys that tell rows of the same applications apart.
const AT: &str = "at_";

/// Keys of a row that are its name, not a value.
const NAMES: [&str; 4] = ["label", "suite", "app", "apps"];

/// A table that a paper prints; with ours where runs give it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PublishedTable {
    /// Its key in the paper's file.
    pub name: String,
    /// What it is about.
    pub title: String,
    /// Where it is printed.
    pub published: String,
    /// The schemes that its values are of, in the order of a list of values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schemes: Vec<String>,
    /// Which of its values compare schemes, and how.
    #[serde(skip)]
    pub compared: BTreeMap<String, Compared>,
    /// The values, in the order of the file.
    pub values: Vec<PublishedValue>,
    /// Why ours is missing where it is; absent: no run has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmodelled: Option<String>,
}

/// What a value of a table compares.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compared {
    /// The scheme.
    pub scheme: String,
    /// What it is compared with; absent: nothing, it is a share of the scheme's own.
    #[serde(default)]
    pub over: String,
    /// Over which runs: a key of [`Paper::sets`](super::Paper::sets).
    pub set: String,
    /// The name of a [`Measure`](crate::results::Measure).
    pub measure: String,
    /// `arithmetic`, `geometric`, or of the mixes the `largest` or the `largest-change`.
    #[serde(default = "arithmetic")]
    pub mean: String,
}

/// A value of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PublishedValue {
    /// The key of the rows' table; empty: it is a value of the table itself.
    #[serde(skip)]
    pub rows: String,
    /// The row as the paper calls it: an application, several with ` + ` between them, a
    /// class; empty: the table itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub row: String,
    /// The applications that it is about.
    #[serde(skip)]
    pub apps: Vec<PublishedApp>,
    /// Where the row stands, by the keys behind their `at_`, with their units.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at: BTreeMap<String, f64>,
    /// The column, with its unit.
    pub column: String,
    /// What is printed.
    pub published: TableEntry,
    /// Ours; absent: no run has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modelled: Option<TableEntry>,
}

/// An application of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedApp {
    /// Its workload model.
    pub model: String,
    /// What the paper calls it.
    pub label: String,
}

/// What stands at one place of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TableEntry {
    /// A number.
    Number(f64),
    /// Several: of schemes, of applications, or both ends of a range.
    Numbers(Vec<f64>),
    /// A word.
    Text(String),
    /// Several.
    Texts(Vec<String>),
}

impl Default for TableEntry {
    fn default() -> Self {
        Self::Texts(Vec::new())
    }
}

/// A table as it is written.
#[derive(Deserialize)]
struct Raw {
    published: String,
    title: Option<String>,
    unmodelled: Option<String>,
    #[serde(default)]
    schemes: Vec<String>,
    #[serde(default)]
    compared: BTreeMap<String, Compared>,
    #[serde(flatten)]
    rest: Table,
}

/// What papers call workload models.
type Labels = BTreeMap<String, String>;

/// The tables among `entries` of a paper's file.
pub(super) fn tables(entries: Table) -> Result<Vec<PublishedTable>, String> {
    let labels = labels(&entries);
    let table = |(name, entry): (String, Value)| {
        PublishedTable::read(&name, entry, &labels).map_err(|message| format!("{name}: {message}"))
    };
    entries.into_iter().map(table).collect()
}

/// What papers call the workload models of their rows.
fn labels(entries: &Table) -> Labels {
    let tables = entries.values().filter_map(Value::as_table);
    let rows = tables.flat_map(|table| table.values().filter_map(Value::as_table)).flatten();
    let labelled = |(name, row): (&String, &Value)| {
        Some((name.clone(), row.get("label")?.as_str()?.to_owned()))
    };
    rows.filter_map(labelled).collect()
}

impl PublishedTable {
    fn read(name: &str, entry: Value, labels: &Labels) -> Result<Self, String> {
        if !entry.is_table() {
            return Err(String::from(
                "expected a table with published, or a key of a paper's file",
            ));
        }
        let raw: Raw = entry.try_into().map_err(|error| error.to_string().trim_end().to_owned())?;
        let mut values = Vec::new();
        for (key, entry) in &raw.rest {
            let read = read(key, entry, &raw.rest, labels);
            values.extend(read.map_err(|message| format!("{key}: {message}"))?);
        }
        let known =
            |column: &String| values.iter().any(|value: &PublishedValue| value.column == *column);
        if let Some(column) = raw.compared.keys().find(|column| !known(column)) {
            return Err(format!("compared: there is no value {column}"));
        }
        Ok(Self {
            name: name.to_owned(),
            title: raw.title.unwrap_or_else(|| name.replace('_', " ")),
            published: raw.published,
            unmodelled: raw.unmodelled,
            schemes: raw.schemes,
            compared: raw.compared,
            values,
        })
    }

    /// What no comparison can be, with its place.
    pub(super) fn wrong(&self, sets: &BTreeMap<String, Set>) -> Option<String> {
        let wrong = |(column, compared): (&String, &Compared)| {
            let wrong = wrong_words(&compared.set, &compared.mean, sets)?;
            Some(format!("{}.compared.{column}: {wrong}", self.name))
        };
        self.compared.iter().find_map(wrong)
    }
}

/// The values under `key` of the table `own`.
fn read(
    key: &str,
    entry: &Value,
    own: &Table,
    labels: &Labels,
) -> Result<Vec<PublishedValue>, String> {
    match entry {
        Value::Table(rows) => {
            let row = |(name, cells): (&String, &Value)| read_row(key, name, cells, labels);
            joined(rows.iter().map(row))
        }
        Value::Array(list) if list.iter().any(Value::is_table) => {
            joined(list.iter().map(|cells| read_row(key, "", cells, labels)))
        }
        _ if !is_value(key) => Ok(Vec::new()),
        plain => Ok(vec![row_of("", "", own, labels)?.with(key, plain)?]),
    }
}

fn joined(
    rows: impl Iterator<Item = Result<Vec<PublishedValue>, String>>,
) -> Result<Vec<PublishedValue>, String> {
    let rows: Result<Vec<Vec<PublishedValue>>, String> = rows.collect();
    rows.map(|rows| rows.into_iter().flatten().collect())
}

/// The values of one row of `rows`.
fn read_row(
    rows: &str,
    name: &str,
    cells: &Value,
    labels: &Labels,
) -> Result<Vec<PublishedValue>, String> {
    let place = |message: String| match name {
        "" => message,
        name => format!("{name}: {message}"),
    };
    let cells = cells.as_table().ok_or_else(|| place("expected a table for each row".into()))?;
    let row = row_of(rows, name, cells, labels).map_err(place)?;
    let values = cells.iter().filter(|(key, _)| is_value(key));
    let value = |(column, cell): (&String, &Value)| {
        row.with(column, cell).map_err(|message| place(format!("{column}: {message}")))
    };
    values.map(value).collect()
}

fn is_value(key: &str) -> bool {
    !NAMES.contains(&key) && !key.starts_with(AT)
}

/// What the values of a row have in common, in a value without a column.
fn row_of(rows: &str, key: &str, cells: &Table, labels: &Labels) -> Result<PublishedValue, String> {
    let apps = apps(key, cells, labels)?;
    let called = apps.iter().map(|app| app.label.as_str()).collect::<Vec<_>>().join(" + ");
    let row = if called.is_empty() { key.to_owned() } else { called };
    let place = |(key, value): (&String, &Value)| {
        let at = key.strip_prefix(AT)?.to_owned();
        match TableEntry::read(value) {
            Ok(TableEntry::Number(number)) => Some(Ok((at, number))),
            _ => Some(Err(format!("{key}: expected a number, found {value}"))),
        }
    };
    let at: Result<BTreeMap<String, f64>, String> = cells.iter().filter_map(place).collect();
    Ok(PublishedValue { rows: rows.to_owned(), row, apps, at: at?, ..PublishedValue::default() })
}

impl PublishedValue {
    /// The value of this row in `column`.
    fn with(&self, column: &str, cell: &Value) -> Result<Self, String> {
        let published = TableEntry::read(cell)?;
        Ok(Self { column: column.to_owned(), published, ..self.clone() })
    }
}

/// The applications of a row: itself where it has a label, else those that it names.
fn apps(key: &str, cells: &Table, labels: &Labels) -> Result<Vec<PublishedApp>, String> {
    let app = |model: &str| {
        let label = labels.get(model).map_or(model, String::as_str).to_owned();
        PublishedApp { model: model.to_owned(), label }
    };
    if cells.contains_key("label") {
        return Ok(vec![app(key)]);
    }
    let named = |key: &str| cells.get(key).filter(|value| !value.is_table());
    let names: Option<Vec<&str>> = match (named("app"), named("apps")) {
        (Some(name), _) => name.as_str().map(|name| vec![name]),
        (None, Some(names)) => {
            names.as_array().and_then(|names| names.iter().map(Value::as_str).collect())
        }
        (None, None) => Some(Vec::new()),
    };
    let names = names.ok_or("expected the name of an application as app, or a list as apps")?;
    Ok(names.into_iter().map(app).collect())
}

impl TableEntry {
    fn read(value: &Value) -> Result<Self, String> {
        let expected = || format!("expected a number, a word, or a list of either, found {value}");
        let read: Self = value.clone().try_into().map_err(|_| expected())?;
        let finite = match &read {
            Self::Number(number) => number.is_finite(),
            Self::Numbers(numbers) => numbers.iter().all(|number| number.is_finite()),
            Self::Text(_) | Self::Texts(_) => true,
        };
        if finite { Ok(read) } else { Err(expected()) }
    }
}

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
    let columns = distinct(table.values.iter().map(|value| value.column.as_str()));
    let ordered = columns
        .iter()
        .flat_map(|column| table.values.iter().filter(move |value| value.column == *column));
    let header = ["value", "of", "paper", "model", "difference"];
    let rows = table::Table::of_texts(header, ordered.map(line));
    let unnamed = table.values.iter().all(|value| value.row.is_empty());
    Block::Table(if unnamed { rows.without(&["of"]) } else { rows })
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
    trimmed(value, places)
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
    use super::{PublishedTable, TableEntry, named, published, rounded, tables};
    use crate::document::{Block, markdown};
    use crate::paper::PublishedValue;

    fn read(text: &str) -> Result<Vec<PublishedTable>, String> {
        tables(toml::from_str(text).unwrap())
    }

    const SOLO: &str = "[solo]\npublished = 'table 2'\ncycles = 5\n\
        [solo.app.own-a]\nlabel = 'A'\nsuite = 'S'\nmpki_warp = 1.5\nclass = 'M'\n";

    #[test]
    fn rows_are_values_tables_and_lists() {
        let pairs = "[pairs]\npublished = 'table 3'\ntitle = 'CTAs'\n\
            [[pairs.pair]]\napps = ['own-a', 'own-b']\neven = [4, 1]\nat_sms = 8\n";
        let found = read(&format!("{SOLO}{pairs}")).unwrap();
        let [solo, pairs] = &found[..] else { panic!("{found:?}") };
        let reported: Vec<(&str, &str, &TableEntry)> = solo
            .values
            .iter()
            .map(|value| (value.row.as_str(), value.column.as_str(), &value.published))
            .collect();
        assert_eq!(reported[0], ("", "cycles", &TableEntry::Number(5.0)));
        assert_eq!(reported[1], ("A", "mpki_warp", &TableEntry::Number(1.5)));
        assert_eq!(reported[2], ("A", "class", &TableEntry::Text("M".into())));
        assert_eq!(
            (reported.len(), solo.title.as_str(), pairs.title.as_str()),
            (3, "solo", "CTAs")
        );
        let [even] = &pairs.values[..] else { panic!("{pairs:?}") };
        // A name that another table explains, and one that none does.
        assert_eq!((even.row.as_str(), even.rows.as_str()), ("A + own-b", "pair"));
        assert_eq!(even.apps[0].model, "own-a");
        assert_eq!(even.published, TableEntry::Numbers(vec![4.0, 1.0]));
        assert_eq!(even.at["sms"].to_bits(), 8.0_f64.to_bits());
    }

    #[test]
    fn what_is_no_table_is_told_with_its_key() {
        let wrong = |text: &str, expected: &str| {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        wrong("solos = 3", "solos: expected a table with published");
        wrong("[solo]\ncycles = 5", "solo: missing field `published`");
        wrong(&SOLO.replace("= 5", "= nan"), "solo: cycles: expected a number");
        wrong(&SOLO.replace("1.5", "true"), "solo: app: own-a: mpki_warp: expected a number");
        wrong("[s]\npublished = 'F'\n[s.app]\na = 1", "s: app: a: expected a table for each row");
        let pair = "[s]\npublished = 'F'\n[[s.pair]]\napps = 'a'\nx = 1\n";
        wrong(pair, "s: pair: expected the name of an application");
        let compared = "[solo.compared.ipc]\nscheme = 'a'\nset = 's'\nmeasure = 'stp'\n";
        wrong(&format!("{SOLO}{compared}"), "solo: compared: there is no value ipc");
    }

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
            Some("The paper does not say."),
        );
        for line in [
            "| even | A + B | 4, 3 | 4, 1 | 0, -2 |",
            "| MC | C | 1.5, 1.6 | 1.55 | within |",
            "| MC | M | 1.5, 1.6 | 3.2 | +100.0 % |",
            "| class | A | M | C | another |",
            "| ipc |  | 0.5, 1 | – | – |",
            "–: The paper does not say.",
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
