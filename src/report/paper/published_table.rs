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
        plain => Ok(vec![Row::new("", "", own, labels)?.value(key, plain)?]),
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
    let row = Row::new(rows, name, cells, labels).map_err(place)?;
    let values = cells.iter().filter(|(key, _)| is_value(key));
    let value = |(column, cell): (&String, &Value)| {
        row.value(column, cell).map_err(|message| place(format!("{column}: {message}")))
    };
    values.map(value).collect()
}

fn is_value(key: &str) -> bool {
    !NAMES.contains(&key) && !key.starts_with(AT)
}

/// What the values of a row have in common.
struct Row<'a> {
    rows: &'a str,
    name: String,
    apps: Vec<PublishedApp>,
    at: BTreeMap<String, f64>,
}

impl<'a> Row<'a> {
    fn new(rows: &'a str, key: &str, cells: &Table, labels: &Labels) -> Result<Self, String> {
        let apps = apps(key, cells, labels)?;
        let called = apps.iter().map(|app| app.label.as_str()).collect::<Vec<_>>().join(" + ");
        let name = if called.is_empty() { key.to_owned() } else { called };
        let place = |(key, value): (&String, &Value)| {
            let at = key.strip_prefix(AT)?.to_owned();
            match TableEntry::read(value) {
                Ok(TableEntry::Number(number)) => Some(Ok((at, number))),
                _ => Some(Err(format!("{key}: expected a number, found {value}"))),
            }
        };
        let at: Result<BTreeMap<String, f64>, String> = cells.iter().filter_map(place).collect();
        Ok(Self { rows, name, apps, at: at? })
    }

    fn value(&self, column: &str, cell: &Value) -> Result<PublishedValue, String> {
        Ok(PublishedValue {
            rows: self.rows.to_owned(),
            row: self.name.clone(),
            apps: self.apps.clone(),
            at: self.at.clone(),
            column: column.to_owned(),
            published: TableEntry::read(cell)?,
            modelled: None,
        })
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

#[cfg(test)]
mod tests {
    use super::{PublishedTable, TableEntry, tables};

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
}
