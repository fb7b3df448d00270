//! Where the files of a sweep lie, and reading them.
//!
//! | file | holds |
//! |---|---|
//! | `sweep.json` | every cell of the plans, in order |
//! | `cells/KEY.json` | the record of a cell, as `analyze` writes it |
//! | `failed/KEY.json` | why a cell has none |
//! | `slurm` | scripts, logs and the list of jobs of a sweep under Slurm |
//! | `cells.csv`, `cells.jsonl` | a row per cell, with the cargo feature `parquet` also `cells.parquet` |
//! | `apps.csv`, `apps.jsonl` | a row per cell and application, and so on |

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Analysis, CellRecord, FailedCell, RecordError, SweepRecord};

/// The record of a cell, or why there is none.
pub type CellOutcome = Result<Analysis, FailedCell>;

/// The cells of a folder.
#[derive(Debug, Default)]
pub struct SweepListing {
    /// In the order of the list; then others that have ended.
    pub cells: Vec<CellRecord>,
    /// Files of cells that are not in the list and cannot be read.
    pub damaged: Vec<RecordError>,
}

/// The folder of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepFiles {
    root: PathBuf,
}

impl SweepFiles {
    /// The sweep in `root`, which need not be there.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_path_buf() }
    }

    /// True when a sweep has begun in the folder.
    #[must_use]
    pub fn begun(&self) -> bool {
        self.list().is_file()
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The list of cells.
    #[must_use]
    pub fn list(&self) -> PathBuf {
        self.root.join("sweep.json")
    }

    /// Where scripts, logs and the list of jobs of Slurm lie.
    #[must_use]
    pub fn slurm(&self) -> PathBuf {
        self.root.join("slurm")
    }

    /// Where records lie.
    #[must_use]
    pub fn records(&self) -> PathBuf {
        self.root.join("cells")
    }

    /// Where failures lie.
    #[must_use]
    pub fn failures(&self) -> PathBuf {
        self.root.join("failed")
    }

    /// The table `name` in the form that `ending` says.
    #[must_use]
    pub fn table(&self, name: &str, ending: &str) -> PathBuf {
        self.root.join(format!("{name}.{ending}"))
    }

    /// The record of a cell.
    #[must_use]
    pub fn record(&self, key: &str) -> PathBuf {
        self.records().join(format!("{key}.json"))
    }

    /// The failure of a cell.
    #[must_use]
    pub fn failure(&self, key: &str) -> PathBuf {
        self.failures().join(format!("{key}.json"))
    }

    /// Every cell that was planned or has an outcome, each once: those of the list in
    /// its order, then others by key. Those whose file is damaged are left out.
    ///
    /// # Errors
    /// When the list cannot be read.
    pub fn cells(&self) -> Result<Vec<CellRecord>, RecordError> {
        self.listing().map(|listing| listing.cells)
    }

    /// The cells of the folder, and what is damaged of those that the list does not have.
    ///
    /// # Errors
    /// When the list cannot be read.
    pub fn listing(&self) -> Result<SweepListing, RecordError> {
        let listed = if self.begun() { SweepRecord::read(&self.list())?.cells } else { Vec::new() };
        let mut known = BTreeSet::new();
        let cells = listed.into_iter().filter(|cell| known.insert(cell.key.clone())).collect();
        let mut listing = SweepListing { cells, damaged: Vec::new() };
        for key in self.done().into_iter().chain(self.failed()) {
            if !known.insert(key.clone()) {
                continue;
            }
            match self.unlisted(&key) {
                Ok(cell) => listing.cells.push(cell),
                Err(damage) => listing.damaged.push(damage),
            }
        }
        Ok(listing)
    }

    /// The cell that the files of `key` are of.
    fn unlisted(&self, key: &str) -> Result<CellRecord, RecordError> {
        let (record, failure) = (self.record(key), self.failure(key));
        let (path, cell) = if record.is_file() {
            let cell = Analysis::read(&record)?.cell;
            (record, cell)
        } else {
            let cell = FailedCell::read(&failure)?.cell;
            (failure, Some(cell))
        };
        cell.filter(|cell| cell.key == key).ok_or_else(|| {
            let message = format!("expected the cell {key}, found another");
            RecordError::Sweep { path, message }
        })
    }

    /// Whether a cell has a record or a failure, whatever is in it.
    #[must_use]
    pub fn has_ended(&self, key: &str) -> bool {
        self.record(key).is_file() || self.failure(key).is_file()
    }

    /// How a cell ended; `None`: it has not.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn outcome(&self, key: &str) -> Result<Option<CellOutcome>, RecordError> {
        let (record, failure) = (self.record(key), self.failure(key));
        if record.is_file() {
            return Analysis::read(&record).map(|record| Some(Ok(record)));
        }
        if failure.is_file() {
            return match FailedCell::read(&failure) {
                // Somebody runs it again, and has removed it meanwhile.
                Err(_) if !failure.is_file() => Ok(None),
                read => read.map(|failed| Some(Err(failed))),
            };
        }
        Ok(None)
    }

    /// The keys that have a record, in order.
    #[must_use]
    pub fn done(&self) -> Vec<String> {
        keys(&self.records())
    }

    /// The keys that have a failure, in order.
    #[must_use]
    pub fn failed(&self) -> Vec<String> {
        keys(&self.failures())
    }

    /// How many cells have ended.
    #[must_use]
    pub fn ended(&self) -> usize {
        self.done().len() + self.failed().len()
    }
}

/// The keys that have a file in `folder`, in order.
fn keys(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let key = |entry: std::io::Result<fs::DirEntry>| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        let key = name.strip_suffix(".json").filter(|key| !key.starts_with('.'))?;
        Some(key.to_owned())
    };
    let mut keys: Vec<String> = entries.filter_map(key).collect();
    keys.sort();
    keys
}
