//! Reference tables: numbers of another model or of real hardware, as CSV.
//!
//! Profiles of Nsight Compute and Nsight Systems have their reader. Else three shapes are distinguished by their header line:
//! - runs of a cycle simulator (`machine,trace,launches,kernels,cycles,…`):
//!   totals of the launches named, cycles with the launch latency included;
//! - launches of a cycle simulator (`machine,trace,launch,name,cycles,…`);
//! - hardware counters (`machine,trace,kernel,elapsed_cycles,…`): means per
//!   launch, over the launches of a column `launches`; a profiler's elapsed cycles begin with the launch, so both sides
//!   are compared whole.
//!
//! A `kernel` in a row of any shape makes the row about the launches of that kernel alone.
//! Other columns are ignored; a missing counter column means that the table
//! does not say.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use gpumodel_core::units::quoted;

use super::profile::{self, Unmatched};
use super::{Analysis, Launches, Quantity, RecordError, SlotShares};

/// A reference table, rows in file order.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceTable {
    /// Where it was read from.
    pub path: PathBuf,
    /// Its rows.
    pub rows: Vec<ReferenceRow>,
    /// What a profile says that is in no row; `None`: the table is no profile.
    pub unmatched: Option<Unmatched>,
}

/// One row, in the terms of the counting rules. `None`: the table does not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReferenceRow {
    /// Name of the machine as the table knows it.
    pub machine: String,
    /// Name of the application.
    pub trace: String,
    /// Line in the file, from 1.
    pub line: u64,
    /// The launches that the row is about.
    pub launches: Launches,
    /// The kernel's name, plain or mangled, or a part that only its names hold, where the
    /// row is about one kernel.
    pub kernel: Option<String>,
    /// Beginning of the launch's kernel name, where the row is about one launch.
    pub name_start: Option<String>,
    /// Number of launches, where the table says it.
    pub launch_count: Option<u64>,
    /// Values are means per launch (else totals).
    pub mean_per_launch: bool,
    /// Cycles; see [`ReferenceRow::includes_launch`].
    pub cycles: Option<f64>,
    /// `cycles` contain one launch latency per launch, which is taken off both
    /// sides; else cycles are compared whole, launch included.
    pub includes_launch: bool,
    /// Thread instructions.
    pub thread_instructions: Option<f64>,
    /// L1 hits over accesses, reads and writes, 0 to 1.
    pub l1_hit_rate: Option<f64>,
    /// L1 sector reads that hit.
    pub l1_read_hits: Option<f64>,
    /// L2 hits over accesses, reads and writes, 0 to 1.
    pub l2_hit_rate: Option<f64>,
    /// 32-byte sectors read from DRAM.
    pub dram_read_sectors: Option<f64>,
    /// 32-byte sectors written to DRAM.
    pub dram_write_sectors: Option<f64>,
    /// Where scheduler slot-cycles went.
    pub slots: Option<SlotShares>,
    /// What a profile says, by quantity.
    pub measured: BTreeMap<Quantity, f64>,
}

impl ReferenceTable {
    /// Reads the CSV file at `path`.
    ///
    /// # Errors
    /// [`RecordError`] with the file and line of the first thing wrong.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        let file = File::open(path).map_err(|e| RecordError::file(path, e))?;
        let mut reader = csv::Reader::from_reader(file);
        let header = reader.headers().map_err(|e| csv_error(path, &e))?.clone();
        let shape = Shape::of(&header).map_err(|m| RecordError::table(path, 1, m))?;
        let mut rows = Vec::new();
        let mut known = BTreeMap::new();
        for record in reader.records() {
            let record = record.map_err(|e| csv_error(path, &e))?;
            let line = record.position().map_or(0, csv::Position::line);
            let cells = Cells { header: &header, record: &record };
            let row = shape.row(&cells, line).map_err(|m| RecordError::table(path, line, m))?;
            if let Some(first) = known.insert(row.about(), line) {
                return Err(RecordError::table(path, line, again(&row, first)));
            }
            rows.push(row);
        }
        if rows.is_empty() {
            return Err(RecordError::table(path, 1, "expected rows below the header, found none"));
        }
        Ok(Self { path: path.to_path_buf(), rows, unmatched: None })
    }

    /// Reads the file at `path`: a table as [`ReferenceTable::read`] takes it, or a profile
    /// (`ncu --csv`, `nsys stats --format csv`), whose launches are found among those of
    /// `records`.
    ///
    /// # Errors
    /// [`RecordError`] with the file and line of the first thing wrong.
    pub fn read_for(path: &Path, records: &[Analysis]) -> Result<Self, RecordError> {
        let bytes = std::fs::read(path).map_err(|e| RecordError::file(path, e))?;
        profile::read(path, &bytes, records)?.map_or_else(|| Self::read(path), Ok)
    }
}

impl ReferenceRow {
    /// What the row is about: machine, application, launches, and the kernel where it says
    /// one.
    fn about(&self) -> [String; 5] {
        let word = |word: &Option<String>| word.clone().unwrap_or_default();
        let (kernel, start) = (word(&self.kernel), word(&self.name_start));
        [self.machine.clone(), self.trace.clone(), self.launches.to_string(), kernel, start]
    }
}

/// What is wrong with a row that is about the same as that in line `first`.
fn again(row: &ReferenceRow, first: u64) -> String {
    let [machine, trace, launches, ..] = row.about();
    let [machine, trace] = [machine, trace].map(|word| quoted(word.as_bytes()));
    format!(
        "expected one row about {machine} {trace} (launches {launches}), found another in line \
         {first}; leave one of them out"
    )
}

fn csv_error(path: &Path, error: &csv::Error) -> RecordError {
    let line = error.position().map_or(1, csv::Position::line);
    RecordError::table(path, line, format!("not a CSV table: {error}"))
}

/// One line by column name.
struct Cells<'r> {
    header: &'r csv::StringRecord,
    record: &'r csv::StringRecord,
}

impl Cells<'_> {
    fn text(&self, column: &str) -> Option<&str> {
        let at = self.header.iter().position(|name| name.trim() == column)?;
        self.record.get(at).map(str::trim)
    }

    fn word(&self, column: &str) -> Result<String, String> {
        match self.text(column) {
            Some(word) if !word.is_empty() => Ok(word.to_string()),
            _ => Err(format!("column `{column}`: expected a name, found nothing")),
        }
    }

    /// What is in `column`, which has to be a number that is `right`; `None` where the table has
    /// no such column or an empty cell.
    fn parsed<T: FromStr>(
        &self,
        column: &str,
        right: fn(&T) -> bool,
        expected: &str,
    ) -> Result<Option<T>, String> {
        let Some(text) = self.text(column).filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let value = text.parse().ok().filter(right);
        value.map(Some).ok_or_else(|| {
            let found = quoted(text.as_bytes());
            format!("column `{column}`: expected {expected}, found {found}")
        })
    }

    fn number(&self, column: &str) -> Result<Option<f64>, String> {
        let right = |value: &f64| value.is_finite() && *value >= 0.0;
        self.parsed(column, right, "a number >= 0")
    }

    fn needed(&self, column: &str) -> Result<f64, String> {
        self.number(column)?
            .ok_or_else(|| format!("column `{column}`: expected a number, found nothing"))
    }

    /// The whole number above zero in `column`.
    fn count(&self, column: &str) -> Result<Option<u32>, String> {
        self.parsed(column, |value| *value > 0, "a whole number > 0")
    }

    /// Sum of two columns; `None` unless both are present.
    fn sum(&self, first: &str, second: &str) -> Result<Option<f64>, String> {
        Ok(self.number(first)?.zip(self.number(second)?).map(|(a, b)| a + b))
    }
}

/// The shapes of table that are read.
#[derive(Clone, Copy)]
enum Shape {
    Runs,
    Launches,
    Hardware,
}

impl Shape {
    fn of(header: &csv::StringRecord) -> Result<Self, String> {
        let has = |name: &str| header.iter().any(|column| column.trim() == name);
        let named = has("machine") && has("trace");
        match (named, has("elapsed_cycles"), has("cycles"), has("launch")) {
            (true, true, _, _) => Ok(Self::Hardware),
            (true, false, true, true) => Ok(Self::Launches),
            (true, false, true, false) => Ok(Self::Runs),
            _ => Err(format!(
                "expected the columns `machine`, `trace` and `cycles` or `elapsed_cycles`, found {}",
                quoted(header.iter().collect::<Vec<_>>().join(",").as_bytes())
            )),
        }
    }

    fn row(self, cells: &Cells<'_>, line: u64) -> Result<ReferenceRow, String> {
        let mut row = ReferenceRow {
            machine: cells.word("machine")?,
            trace: cells.word("trace")?,
            line,
            includes_launch: true,
            thread_instructions: cells.number("thread_instructions")?,
            kernel: cells.text("kernel").filter(|name| !name.is_empty()).map(str::to_string),
            ..ReferenceRow::default()
        };
        match self {
            Self::Runs => fill_run(&mut row, cells)?,
            Self::Launches => {
                let launch = cells.count("launch")?.ok_or("column `launch`: found nothing")?;
                row.launches = Launches::one(launch);
                row.launch_count = Some(1);
                row.name_start = cells.text("name").filter(|n| !n.is_empty()).map(str::to_string);
                row.cycles = Some(cells.needed("cycles")?);
            }
            Self::Hardware => fill_hardware(&mut row, cells)?,
        }
        Ok(row)
    }
}

fn fill_run(row: &mut ReferenceRow, cells: &Cells<'_>) -> Result<(), String> {
    row.launches = Launches::parse(cells.text("launches").unwrap_or("all"))?;
    row.launch_count = cells.count("kernels")?.map(u64::from);
    row.cycles = Some(cells.needed("cycles")?);
    let l1 = cells.number("l1_accesses")?.zip(cells.number("l1_misses")?);
    row.l1_hit_rate = hit_rate("l1", l1)?;
    row.l1_read_hits = cells.sum("l1_read_hits", "l1_read_pending")?;
    let l2 = cells.number("l2_accesses")?.zip(cells.number("l2_misses")?);
    row.l2_hit_rate = hit_rate("l2", l2)?;
    row.dram_read_sectors = cells.number("dram_reads")?;
    row.dram_write_sectors = cells.number("dram_writes")?;
    row.slots = slots(cells)?;
    Ok(())
}

/// Shares of slot-cycles; `None` unless the table tells all four parts.
fn slots(cells: &Cells<'_>) -> Result<Option<SlotShares>, String> {
    let mut parts = [0.0; 4];
    let columns = ["issued", "stall_pipe", "idle", "scoreboard"];
    for (part, column) in parts.iter_mut().zip(columns) {
        let Some(count) = cells.number(&format!("scheduler_{column}"))? else { return Ok(None) };
        *part = count;
    }
    Ok(SlotShares::of_counts(parts))
}

fn fill_hardware(row: &mut ReferenceRow, cells: &Cells<'_>) -> Result<(), String> {
    row.mean_per_launch = true;
    row.launches = Launches::parse(cells.text("launches").unwrap_or("all"))?;
    row.cycles = Some(cells.needed("elapsed_cycles")?);
    row.includes_launch = false;
    // The L1's read misses are no basis for a rate where texture or other
    // paths are not counted; its read hits are what such a table measures.
    row.l1_read_hits = cells.number("l1_read_hits")?;
    let hits = cells.sum("l2_read_hits", "l2_write_hits")?;
    let misses = cells.sum("l2_read_misses", "l2_write_misses")?;
    row.l2_hit_rate = hit_rate("l2", hits.zip(misses).map(|(hit, miss)| (hit + miss, miss)))?;
    row.dram_read_sectors = cells.number("dram_read_sectors")?;
    row.dram_write_sectors = cells.number("dram_write_sectors")?;
    Ok(())
}

/// Hits over accesses from (accesses, misses); `None` without accesses.
fn hit_rate(cache: &str, counts: Option<(f64, f64)>) -> Result<Option<f64>, String> {
    match counts {
        Some((accesses, misses)) if misses > accesses => {
            Err(format!("{cache}: expected misses <= accesses, found {misses} > {accesses}"))
        }
        Some((accesses, misses)) if accesses > 0.0 => Ok(Some(1.0 - misses / accesses)),
        _ => Ok(None),
    }
}
