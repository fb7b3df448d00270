//! The cells of a sweep as tidy tables: a row per cell, and a row per cell and
//! application. The same columns as CSV and as JSON lines; units are in their names.
//!
//! What there is not, or what has no bound, is empty in CSV and `null` in JSON.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::cell::settings;
use super::{Analysis, CellRecord, CoRun, CoRunApp, FailedCell};

/// A table whose rows have the same columns in the same order, written as they come: as
/// CSV with a line of column names, and as JSON lines. Both are empty without rows.
#[derive(Debug)]
pub struct Tidy<C: Write, J: Write> {
    csv: csv::Writer<C>,
    lines: J,
    begun: bool,
}

impl<C: Write, J: Write> Tidy<C, J> {
    /// A table without rows.
    pub fn new(csv: C, lines: J) -> Self {
        Self { csv: csv::Writer::from_writer(csv), lines, begun: false }
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
        let mut row = identity(cell);
        let (status, error) = match outcome {
            Ok(_) => ("done", Value::Null),
            Err(failed) => ("failed", failed.errors.join(": ").into()),
        };
        row.insert("status".into(), status.into());
        figures(&mut row, outcome.as_ref().ok().and_then(|record| record.coruns.first()));
        row.insert("error".into(), error);
        self.push(&row)
    }

    /// Adds a row for each application of a cell that is done.
    ///
    /// # Errors
    /// As [`Tidy::push_cell`].
    pub fn push_apps(&mut self, cell: &CellRecord, record: &Analysis) -> io::Result<()> {
        let run = record.coruns.first();
        for (place, app) in run.iter().flat_map(|run| run.apps.iter().enumerate()) {
            let mut row = identity(cell);
            row.insert("place".into(), place.into());
            of_app(&mut row, app);
            self.push(&row)?;
        }
        Ok(())
    }

    fn push(&mut self, row: &Map<String, Value>) -> io::Result<()> {
        if !self.begun {
            self.csv.write_record(row.keys())?;
            self.begun = true;
        }
        self.csv.write_record(row.values().map(plain))?;
        serde_json::to_writer(&mut self.lines, row)?;
        self.lines.write_all(b"\n")
    }

    /// What the two forms were written to.
    ///
    /// # Errors
    /// As [`Tidy::push_cell`].
    pub fn finish(self) -> io::Result<(C, J)> {
        let csv = self.csv.into_inner().map_err(csv::IntoInnerError::into_error)?;
        Ok((csv, self.lines))
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn fill(row: &mut Map<String, Value>, values: Value) {
    if let Value::Object(values) = values {
        row.extend(values);
    }
}

/// What tells a cell from others.
fn identity(cell: &CellRecord) -> Map<String, Value> {
    let mut row = Map::new();
    let values = json!({
        "key": cell.key,
        "machine": cell.machine,
        "machine_hash": cell.machine_hash,
        "overrides": settings(&cell.overrides),
        "mix": cell.mix(),
        "app_count": cell.apps.len(),
        "scheme": cell.scheme,
        "parameters": settings(&cell.parameters),
        "seed": cell.seed,
        "until": cell.until,
        "window_cycles": cell.window_cycles,
        "arrival_cycles": settings(&cell.arrival_cycles),
        "build": cell.build,
    });
    fill(&mut row, values);
    row
}

/// The figures of a co-run; none where there is no run.
fn figures(row: &mut Map<String, Value>, run: Option<&CoRun>) {
    let nothing = CoRun::default();
    let of = run.unwrap_or(&nothing);
    let values = json!({
        "cycles": of.cycles,
        "stp": of.stp,
        "antt": of.antt,
        "fairness_min_speedup": of.fairness_min_speedup,
        "harmonic_speedup": of.harmonic_speedup,
        "ipc_throughput": of.ipc_throughput,
        "makespan_cycles": of.makespan_cycles,
        "makespan_speedup": of.makespan_speedup,
        "energy_joules": of.energy_joules,
        "l1_accesses": of.l1.accesses,
        "l1_hits": of.l1.hits,
        "l2_accesses": of.l2.accesses,
        "l2_hits": of.l2.hits,
        "dram_read_sectors": of.dram.read_sectors,
        "dram_write_sectors": of.dram.write_sectors,
        "dram_bandwidth_utilization": of.dram.bandwidth_utilization,
        "killed_ctas": of.killed_ctas,
        "decision_count": of.decisions.len(),
    });
    let empty = |values: Map<String, Value>| values.into_iter().map(|(key, _)| (key, Value::Null));
    match values {
        Value::Object(values) if run.is_none() => row.extend(empty(values)),
        values => fill(row, values),
    }
}

fn of_app(row: &mut Map<String, Value>, app: &CoRunApp) {
    let values = json!({
        "app": app.app,
        "arrival_cycle": app.arrival_cycle,
        "end_cycle": app.end_cycle,
        "cycles": app.cycles,
        "finished": app.finished,
        "runs": app.runs,
        "memory_only": app.memory_only,
        "warp_instructions": app.warp_instructions,
        "thread_instructions": app.thread_instructions,
        "ipc": app.ipc,
        "solo_ipc": app.solo_ipc,
        "slowdown": app.slowdown,
        "normalized_progress": app.normalized_progress,
        "mpki_warp": app.mpki_warp,
        "mpki_thread": app.mpki_thread,
        "l1_accesses": app.l1.accesses,
        "l1_hits": app.l1.hits,
        "l2_accesses": app.l2.accesses,
        "l2_hits": app.l2.hits,
        "dram_read_sectors": app.dram.read_sectors,
        "dram_write_sectors": app.dram.write_sectors,
        "dram_share": app.dram_share,
        "sms": app.sms,
        "ctas_per_sm": app.ctas_per_sm,
        "channels": app.channels,
        "killed_ctas": app.killed_ctas,
        "pages_moved": app.migration.map(|migration| migration.pages_moved),
    });
    fill(row, values);
}

#[cfg(test)]
mod tests {
    use super::Tidy;
    use crate::record::{Alone, Analysis, CellRecord, CoRun, CoRunApp, FailedCell};

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

    type Table = Tidy<Vec<u8>, Vec<u8>>;

    fn table() -> Table {
        Tidy::new(Vec::new(), Vec::new())
    }

    fn ended(table: Table) -> (String, String) {
        let (csv, lines) = table.finish().unwrap();
        (String::from_utf8(csv).unwrap(), String::from_utf8(lines).unwrap())
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
        let mut cells = table();
        cells.push_cell(&cell("even"), &Ok(record())).unwrap();
        let failed = FailedCell::new(cell("spatial"), vec!["no".into(), "because".into()]);
        cells.push_cell(&cell("spatial"), &Err(failed)).unwrap();
        let (text, lines) = ended(cells);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers().unwrap().clone();
        let place = |name: &str| header.iter().position(|column| column == name).unwrap();
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        let told = |row: usize, name: &str| rows[row][place(name)].to_owned();
        assert_eq!((told(0, "mix"), told(0, "parameters")), ("p + q, r".into(), "a=x:b=2".into()));
        assert_eq!(
            (told(0, "stp"), told(0, "antt"), told(0, "status")),
            ("0.5".into(), String::new(), "done".into())
        );
        assert_eq!((told(1, "stp"), told(1, "error")), (String::new(), "no: because".into()));
        assert_eq!(
            (told(0, "machine_hash"), told(0, "arrival_cycles")),
            ("h".into(), "p=7".into())
        );
        assert_eq!(lines.lines().count(), 2);
    }

    #[test]
    fn lines_of_json_say_what_the_csv_says() {
        let mut apps = table();
        apps.push_apps(&cell("even"), &record()).unwrap();
        let (text, lines) = ended(apps);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers().unwrap().clone();
        for (row, line) in reader.records().zip(lines.lines()) {
            let line: serde_json::Map<String, serde_json::Value> =
                serde_json::from_str(line).unwrap();
            assert!(header.iter().eq(line.keys()));
            let plain: Vec<String> = line.values().map(super::plain).collect();
            assert_eq!(row.unwrap().iter().collect::<Vec<_>>(), plain);
        }
        assert!(text.contains("\"p + q, r\"") && text.lines().count() == 3);
    }
}
