//! The tables of a sweep, in every form that this build writes.

use std::io::{self, Write};

use super::cell_rows::{app_rows, cell_row};
#[cfg(feature = "parquet")]
use super::columnar::Columnar;
use super::field::{Field, Row};
use super::{Analysis, CellRecord, CoRun, CoRunApp, FailedCell};

const CSV: &str = "csv";
const LINES: &str = "jsonl";
const PARQUET: &str = "parquet";

/// What the files of the forms end with: CSV with a line of column names, JSON lines, and
/// Parquet in builds with the cargo feature `parquet`.
pub const TABLE_FORMS: &[&str] =
    if cfg!(feature = "parquet") { &[CSV, LINES, PARQUET] } else { &[CSV, LINES] };

/// Those that another build may have written.
pub const OTHER_FORMS: &[&str] = if cfg!(feature = "parquet") { &[] } else { &[PARQUET] };

/// A table whose rows have the same columns in the same order, written as they come in
/// several forms at once. Without rows CSV names the columns, and there are no JSON lines.
pub struct Tidy<W: Write + Send> {
    csv: csv::Writer<W>,
    lines: W,
    #[cfg(feature = "parquet")]
    columnar: Columnar<W>,
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
        Ok(Self {
            csv,
            lines: open(LINES)?,
            #[cfg(feature = "parquet")]
            columnar: Columnar::new(row, open(PARQUET)?)?,
        })
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
        #[cfg(feature = "parquet")]
        self.columnar.push(row)?;
        Ok(())
    }

    /// What the forms were written to.
    ///
    /// # Errors
    /// As [`Tidy::push_cell`].
    pub fn finish(self) -> io::Result<Vec<W>> {
        let csv = self.csv.into_inner().map_err(csv::IntoInnerError::into_error)?;
        Ok(vec![
            csv,
            self.lines,
            #[cfg(feature = "parquet")]
            self.columnar.finish()?,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::Tidy;
    use serde_json::Value;

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
}
