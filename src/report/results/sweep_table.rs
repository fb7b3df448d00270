//! The tables of a sweep: a row per cell, and a row per cell and application, as CSV and
//! JSON lines; and which cells a table names.
//!
//! Units are in the names of the columns, and in `reports/COLUMNS.md`, which has a row for each of
//! them. What is missing, or has no bound, is empty.

use std::collections::BTreeSet;
use std::io;
use std::io::Write;
use std::path::Path;

use gpumodel_core::units::to_u64;
use serde_json::{Map, Value};

use super::sweep::settings;
use super::{Analysis, CellRecord, CoRun, CoRunApp, FailedCell, RecordError};

/// One field of a row; `None`: empty in CSV, `null` in JSON.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Field {
    Text(Option<String>),
    Count(Option<u64>),
    /// Finite.
    Number(Option<f64>),
    Flag(Option<bool>),
}

/// A row: its columns in order, with their fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row(Vec<(&'static str, Field)>);

impl Row {
    /// Adds columns.
    pub(super) fn extend(&mut self, columns: impl IntoIterator<Item = (&'static str, Field)>) {
        self.0.extend(columns);
    }

    /// The columns in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|&(name, _)| name)
    }

    /// The fields in the order of the columns.
    pub(super) fn fields(&self) -> impl Iterator<Item = &Field> {
        self.0.iter().map(|(_, field)| field)
    }

    /// The row as a JSON object.
    pub(super) fn to_json(&self) -> Map<String, Value> {
        self.0.iter().map(|(name, field)| ((*name).to_owned(), field.to_json())).collect()
    }
}

impl Field {
    /// Of the same type without a value.
    fn emptied(self) -> Self {
        match self {
            Self::Text(_) => Self::Text(None),
            Self::Count(_) => Self::Count(None),
            Self::Number(_) => Self::Number(None),
            Self::Flag(_) => Self::Flag(None),
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => text.clone().into(),
            Self::Count(count) => (*count).into(),
            Self::Number(number) => (*number).into(),
            Self::Flag(flag) => (*flag).into(),
        }
    }

    /// As CSV has it.
    pub(super) fn plain(&self) -> String {
        match self.to_json() {
            Value::Null => String::new(),
            Value::String(text) => text,
            other => other.to_string(),
        }
    }
}

macro_rules! fields {
    ($($type:ty, $value:ident => $field:expr;)+) => {
        $(impl From<$type> for Field {
            fn from($value: $type) -> Self {
                $field
            }
        })+
    };
}

fields! {
    &str, text => Self::Text(Some(text.to_owned()));
    String, text => Self::Text(Some(text));
    Option<String>, text => Self::Text(text);
    u64, count => Self::Count(Some(count));
    Option<u64>, count => Self::Count(count);
    usize, count => to_u64(count).into();
    f64, number => Some(number).into();
    Option<f64>, number => Self::Number(number.filter(|number| number.is_finite()));
    bool, flag => Self::Flag(Some(flag));
}

/// What stands between the values of the applications of a mix, as between their names.
const SEPARATOR: &str = " + ";

/// The row of a cell: what it is, how it ended, and its figures of merit.
fn cell_row(cell: &CellRecord, outcome: &Result<Analysis, FailedCell>) -> Row {
    let record = outcome.as_ref().ok();
    let mut row = identity(cell, record);
    let (status, error) = match outcome {
        Ok(_) => ("done", Field::Text(None)),
        Err(failed) => ("failed", failed.errors.join(": ").into()),
    };
    row.extend([("status", status.into())]);
    figures(&mut row, record.and_then(|record| record.coruns.first()));
    row.extend([("error", error)]);
    row
}

/// A row for each application of a cell with its record.
fn app_rows(cell: &CellRecord, record: &Analysis) -> impl Iterator<Item = Row> {
    let apps = record.coruns.first().map_or(&[][..], |run| &run.apps);
    apps.iter().enumerate().map(|(place, app)| {
        let mut row = identity(cell, Some(record));
        row.extend([("place", place.into())]);
        of_app(&mut row, app);
        row.extend([("store_hash", record.store_hash(&app.app).map(str::to_owned).into())]);
        row
    })
}

/// What tells a cell from others. Its record says what is in the stores of its
/// applications.
fn identity(cell: &CellRecord, record: Option<&Analysis>) -> Row {
    let hash = |app: &String| record?.store_hash(app);
    let hashes: Option<Vec<&str>> = cell.apps.iter().map(hash).collect();
    let mut row = Row::default();
    row.extend([
        ("key", cell.key.as_str().into()),
        ("machine", cell.machine.as_str().into()),
        ("machine_hash", cell.machine_hash.as_str().into()),
        ("overrides", settings(&cell.overrides).into()),
        ("mix", cell.mix().into()),
        ("app_count", cell.apps.len().into()),
        ("scheme", cell.scheme.as_str().into()),
        ("parameters", settings(&cell.parameters).into()),
        ("seed", cell.seed.into()),
        ("until", cell.until.as_str().into()),
        ("window_cycles", cell.window_cycles.into()),
        ("arrival_cycles", settings(&cell.arrival_cycles).into()),
        ("build", cell.build.as_str().into()),
        ("store_hashes", hashes.map(|hashes| hashes.join(SEPARATOR)).into()),
    ]);
    row
}

/// The figures of a co-run; none where there is no run.
fn figures(row: &mut Row, run: Option<&CoRun>) {
    let nothing = CoRun::default();
    let of = run.unwrap_or(&nothing);
    // 0 stands for a machine without figures of energy.
    let energy = Some(of.energy_joules).filter(|joules| *joules > 0.0 && joules.is_finite());
    let values: [(&str, Field); 18] = [
        ("cycles", of.cycles.into()),
        ("stp", of.stp.into()),
        ("antt", of.antt.into()),
        ("fairness_min_speedup", of.fairness_min_speedup.into()),
        ("harmonic_speedup", of.harmonic_speedup.into()),
        ("ipc_throughput", of.ipc_throughput.into()),
        ("makespan_cycles", of.makespan_cycles.into()),
        ("makespan_speedup", of.makespan_speedup.into()),
        ("energy_joules", Field::Number(energy)),
        ("l1_accesses", of.l1.accesses.into()),
        ("l1_hits", of.l1.hits.into()),
        ("l2_accesses", of.l2.accesses.into()),
        ("l2_hits", of.l2.hits.into()),
        ("dram_read_sectors", of.dram.read_sectors.into()),
        ("dram_write_sectors", of.dram.write_sectors.into()),
        ("dram_bandwidth_utilization", of.dram.bandwidth_utilization.into()),
        ("killed_ctas", of.killed_ctas.into()),
        ("decision_count", of.decisions.len().into()),
    ];
    let reported = |field: Field| if run.is_some() { field } else { field.emptied() };
    row.extend(values.map(|(name, field)| (name, reported(field))));
}

fn of_app(row: &mut Row, app: &CoRunApp) {
    row.extend([
        ("app", app.app.as_str().into()),
        ("arrival_cycle", app.arrival_cycle.into()),
        ("end_cycle", app.end_cycle.into()),
        ("cycles", app.cycles.into()),
        ("finished", app.finished.into()),
        ("runs", app.runs.into()),
        ("memory_only", app.memory_only.into()),
        ("warp_instructions", app.warp_instructions.into()),
        ("thread_instructions", app.thread_instructions.into()),
        ("ipc", app.ipc.into()),
        ("solo_ipc", app.solo_ipc.into()),
        ("slowdown", app.slowdown.into()),
        ("normalized_progress", app.normalized_progress.into()),
        ("mpki_warp", app.mpki_warp.into()),
        ("mpki_thread", app.mpki_thread.into()),
        ("l1_accesses", app.l1.accesses.into()),
        ("l1_hits", app.l1.hits.into()),
        ("l2_accesses", app.l2.accesses.into()),
        ("l2_hits", app.l2.hits.into()),
        ("dram_read_sectors", app.dram.read_sectors.into()),
        ("dram_write_sectors", app.dram.write_sectors.into()),
        ("dram_share", app.dram_share.into()),
        ("sms", app.sms.into()),
        ("ctas_per_sm", app.ctas_per_sm.into()),
        ("channels", app.channels.into()),
        ("mean_sms", app.mean_sms.into()),
        ("mean_channels", app.mean_channels.into()),
        ("killed_ctas", app.killed_ctas.into()),
        ("pages_moved", app.migration.map(|migration| migration.pages_moved).into()),
    ]);
}

const CSV: &str = "csv";
const LINES: &str = "jsonl";

/// What the files of the forms end with: CSV with a line of column names, and JSON lines.
pub const TABLE_FORMS: &[&str] = &[CSV, LINES];

/// A table whose rows have the same columns in the same order, written as they come in
/// several forms at once. Without rows CSV names the columns, and there are no JSON lines.
pub struct Tidy<W: Write + Send> {
    csv: csv::Writer<W>,
    lines: W,
}

impl<W: Write + Send> Tidy<W> {
    /// A table of cells without rows, written into what `open` gives for an ending of
    /// [`TABLE_FORMS`].
    ///
    /// # Errors
    /// Those of `open`.
    pub fn of_cells(open: impl FnMut(&str) -> io::Result<W>) -> io::Result<Self> {
        let failed = FailedCell::default();
        Self::new(&cell_row(&failed.cell.clone(), &Err(failed)), open)
    }

    /// A table of the applications of cells, as [`Tidy::of_cells`].
    ///
    /// # Errors
    /// Those of `open`.
    pub fn of_apps(open: impl FnMut(&str) -> io::Result<W>) -> io::Result<Self> {
        let run = CoRun { apps: vec![CoRunApp::default()], ..CoRun::default() };
        let record = Analysis { coruns: vec![run], ..Analysis::default() };
        let row = app_rows(&CellRecord::default(), &record).next();
        Self::new(&row.unwrap_or_default(), open)
    }

    /// A table whose columns are those of `row`.
    fn new(row: &Row, mut open: impl FnMut(&str) -> io::Result<W>) -> io::Result<Self> {
        let mut csv = csv::Writer::from_writer(open(CSV)?);
        csv.write_record(row.names())?;
        Ok(Self { csv, lines: open(LINES)? })
    }

    /// Adds the row of a cell: what it is, how it ended, and its figures of merit.
    ///
    /// # Errors
    /// Whatever writing says; so of the others.
    pub fn push_cell(
        &mut self,
        cell: &CellRecord,
        outcome: &Result<Analysis, FailedCell>,
    ) -> io::Result<()> {
        self.push(cell_row(cell, outcome))
    }

    /// Adds a row for each application of a cell that is done.
    ///
    /// # Errors
    /// As [`Tidy::push_cell`].
    pub fn push_apps(&mut self, cell: &CellRecord, record: &Analysis) -> io::Result<()> {
        app_rows(cell, record).try_for_each(|row| self.push(row))
    }

    fn push(&mut self, row: Row) -> io::Result<()> {
        self.csv.write_record(row.fields().map(Field::plain))?;
        serde_json::to_writer(&mut self.lines, &row.to_json())?;
        self.lines.write_all(b"\n")?;
        Ok(())
    }

    /// What the forms were written to.
    ///
    /// # Errors
    /// As [`Tidy::push_cell`].
    pub fn finish(self) -> io::Result<Vec<W>> {
        let csv = self.csv.into_inner().map_err(csv::IntoInnerError::into_error)?;
        Ok(vec![csv, self.lines])
    }
}

/// The column that says which cell a row is of.
const KEY: &str = "key";

/// The cells that the table in `bytes` names, each once, in the order of its rows; `None`:
/// it is no table, and `path`, its name for error messages, does not say that it is one.
///
/// # Errors
/// When a row does not say its cell, or the table cannot be read.
pub fn cells_of_table(bytes: &[u8], path: &Path) -> Result<Option<Vec<String>>, RecordError> {
    let first = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let keys = if key_of(first).is_some() {
        of_lines(bytes, path)?
    } else if let Some(column) = place(first) {
        of_csv(bytes, column, path)?
    } else {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if !TABLE_FORMS.contains(&ending) {
            return Ok(None);
        }
        let message =
            format!("expected a table of `gpumodel sweep`, with a column {KEY} in line 1");
        return Err(RecordError::table(path, 1, message));
    };
    let mut known = BTreeSet::new();
    Ok(Some(keys.into_iter().filter(|key| known.insert(key.clone())).collect()))
}

/// The cell of a row in JSON; `None`: the line is none.
fn key_of(line: &[u8]) -> Option<String> {
    let row: Value = serde_json::from_slice(line).ok()?;
    row.get(KEY)?.as_str().filter(|key| !key.is_empty()).map(str::to_owned)
}

fn of_lines(bytes: &[u8], path: &Path) -> Result<Vec<String>, RecordError> {
    let lines = bytes.split(|&byte| byte == b'\n').enumerate();
    let lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
    let key = |(at, line): (usize, &[u8])| {
        let message = format!("expected a JSON object with a text {KEY}");
        key_of(line).ok_or_else(|| RecordError::table(path, to_u64(at + 1), message))
    };
    lines.map(key).collect()
}

/// The place of the column with the cells, where `line` names columns.
fn place(line: &[u8]) -> Option<usize> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line);
    let names = reader.records().next()?.ok()?;
    names.iter().position(|name| name.trim_start_matches('\u{feff}') == KEY)
}

fn of_csv(bytes: &[u8], column: usize, path: &Path) -> Result<Vec<String>, RecordError> {
    let mut reader = csv::Reader::from_reader(bytes);
    let mut keys = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|error| {
            let line = error.position().map_or(1, csv::Position::line);
            RecordError::table(path, line, error.to_string())
        })?;
        let line = row.position().map_or(1, csv::Position::line);
        let key = row.get(column).filter(|key| !key.is_empty());
        let empty = || RecordError::table(path, line, format!("expected a cell in column {KEY}"));
        keys.push(key.ok_or_else(empty)?.to_owned());
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::Value;

    use super::{Tidy, cells_of_table};
    use crate::results::{Alone, Analysis, CellRecord, CoRun, CoRunApp, FailedCell};

    fn cell(scheme: &str) -> CellRecord {
        let parameters = [("b", "2"), ("a", "x")].map(|(k, v)| (k.into(), v.into())).into();
        CellRecord {
            apps: vec!["p".into(), "q, r".into()],
            scheme: scheme.into(),
            parameters,
            machine_hash: "h".into(),
            arrival_cycles: [("p".into(), 7)].into(),
            ..CellRecord::default()
        }
    }

    fn ended(table: Tidy<Vec<u8>>) -> (String, String) {
        let mut forms = table.finish().unwrap().into_iter();
        let mut next = || String::from_utf8(forms.next().unwrap()).unwrap();
        (next(), next())
    }

    /// One application halves its speed, the other starves.
    fn record() -> Analysis {
        let app = |name: &str, done| CoRunApp {
            app: name.into(),
            cycles: 100,
            end_cycle: 100,
            thread_instructions: done,
            finished: done > 0,
            ..CoRunApp::default()
        };
        let apps = vec![app("p", 500), app("q, r", 0)];
        let mut run = CoRun { apps, cycles: 100, ..CoRun::default() };
        run.judge(&[Alone { cycles: 50, ipc: 10.0 }; 2]);
        Analysis { coruns: vec![run], ..Analysis::default() }
    }

    #[test]
    fn every_row_has_every_column_and_its_own_cell() {
        let mut cells = Tidy::of_cells(|_| Ok(Vec::new())).unwrap();
        cells.push_cell(&cell("even"), &Ok(record())).unwrap();
        let failed = FailedCell::new(cell("spatial"), vec!["no".into(), "because".into()]);
        cells.push_cell(&cell("spatial"), &Err(failed)).unwrap();
        let (text, lines) = ended(cells);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers().unwrap().clone();
        let place = |name: &str| header.iter().position(|column| column == name).unwrap();
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        let reported = |row: usize, name: &str| rows[row][place(name)].to_owned();
        assert_eq!(
            (reported(0, "mix"), reported(0, "parameters")),
            ("p + q, r".into(), "a=x:b=2".into())
        );
        assert_eq!(
            (reported(0, "stp"), reported(0, "antt"), reported(0, "status")),
            ("0.5".into(), String::new(), "done".into())
        );
        assert_eq!(
            (reported(1, "stp"), reported(1, "error")),
            (String::new(), "no: because".into())
        );
        assert_eq!(
            (reported(0, "machine_hash"), reported(0, "arrival_cycles")),
            ("h".into(), "p=7".into())
        );
        assert_eq!(lines.lines().count(), 2);
    }

    #[test]
    fn a_table_without_rows_names_its_columns() {
        let (text, lines) = ended(Tidy::of_apps(|_| Ok(Vec::new())).unwrap());
        assert!(text.starts_with("key,") && text.ends_with(",store_hash\n"), "{text}");
        assert_eq!((text.lines().count(), lines), (1, String::new()));
    }

    #[test]
    fn energy_is_empty_where_the_machine_has_no_figures_of_it() {
        let energy = |joules| {
            let mut record = record();
            record.coruns[0].energy_joules = joules;
            let mut cells = Tidy::of_cells(|_| Ok(Vec::new())).unwrap();
            cells.push_cell(&cell("even"), &Ok(record)).unwrap();
            let line: Value = serde_json::from_str(&ended(cells).1).unwrap();
            line["energy_joules"].clone()
        };
        assert_eq!((energy(0.0), energy(0.5)), (Value::Null, Value::from(0.5_f64)));
    }

    #[test]
    fn lines_of_json_say_what_the_csv_says() {
        let mut apps = Tidy::of_apps(|_| Ok(Vec::new())).unwrap();
        apps.push_apps(&cell("even"), &record()).unwrap();
        let (text, lines) = ended(apps);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers().unwrap().clone();
        let plain = |value: &Value| match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        for (row, line) in reader.records().zip(lines.lines()) {
            let line: serde_json::Map<String, Value> = serde_json::from_str(line).unwrap();
            assert!(header.iter().eq(line.keys()));
            let plain: Vec<String> = line.values().map(plain).collect();
            assert_eq!(row.unwrap().iter().collect::<Vec<_>>(), plain);
        }
        assert!(text.contains("\"p + q, r\"") && text.lines().count() == 3);
    }

    fn read(name: &str, text: &str) -> Result<Option<Vec<String>>, String> {
        cells_of_table(text.as_bytes(), Path::new(name)).map_err(|error| error.to_string())
    }

    fn keys(keys: &[&str]) -> Result<Option<Vec<String>>, String> {
        Ok(Some(keys.iter().map(ToString::to_string).collect()))
    }

    #[test]
    fn rows_name_their_cells_whoever_wrote_them() {
        assert_eq!(read("a", "key,stp\nx,1\ny,2\nx,3\n"), keys(&["x", "y"]));
        assert_eq!(read("a", "\"\",\"key\"\r\n\"0\",\"x\"\r\n"), keys(&["x"]));
        assert_eq!(read("a", "\u{feff}key\nx\n"), keys(&["x"]));
        assert_eq!(read("a", "{\"key\":\"x\",\"stp\":1}\n\n{\"key\":\"y\"}"), keys(&["x", "y"]));
        assert_eq!(read("a", "key,stp\n"), keys(&[]));
    }

    #[test]
    fn what_names_no_cells_is_said_with_its_line() {
        assert_eq!(read("a.json", "{\n  \"schema\": \"s\"\n}"), Ok(None));
        for (name, text, words) in [
            ("a.csv", "mix,stp\n", "a.csv:1: expected a table of `gpumodel sweep`, with a column"),
            ("a.jsonl", "", "a.jsonl:1: expected a table"),
            ("a", "key,stp\nx,1\n,2\n", "a:3: expected a cell in column key"),
            ("a", "key,stp\nx\n", "a:2: CSV error"),
            ("a", "{\"key\":\"x\"}\n{\"key\":5}\n", "a:2: expected a JSON object"),
        ] {
            let said = read(name, text).unwrap_err();
            assert!(said.starts_with(words), "{said}");
        }
    }
}
