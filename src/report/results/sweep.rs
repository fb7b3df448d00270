//! The cells of a sweep: what each is, where its files lie, what it is thought to take, and cells of
//! one mix as one record.
//!
//! | file | holds |
//! |---|---|
//! | `sweep.json` | every cell of the plans, in order |
//! | `cells/KEY.json` | the record of a cell, as `analyze` writes it |
//! | `failed/KEY.json` | why a cell has none |
//! | `slurm` | scripts, logs and the list of jobs of a sweep under Slurm |
//! | `cells.csv`, `cells.jsonl` | a row per cell |
//! | `apps.csv`, `apps.jsonl` | a row per cell and application |

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use gpumodel_core::units::{Cycle, message_in_words};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::check::pretty;
use super::{Analysis, AppRecord, CoRun, RecordError};

/// Value of [`SweepRecord::schema`].
pub const SWEEP_SCHEMA: &str = "gpumodel.sweep/1";

/// What to do about a list of cells that is damaged: the records do not need it.
const LIST_AGAIN: &str = "delete it, and what wrote the folder makes it again, `gpumodel sweep \
                          PLAN.toml --out DIR --resume` or `gpumodel merge`; no record is lost";

/// What a cell of a sweep is: one mix on one machine under one scheme.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CellRecord {
    /// xxh3-128 in hex of everything that can change the numbers; the name of its files.
    pub key: String,
    /// Program name and version.
    pub program: String,
    /// The build: version, and a hash of the program's source.
    pub build: String,
    /// Name of the machine.
    pub machine: String,
    /// Hash of the machine as it was set, in hex; empty in records of before it was kept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine_hash: String,
    /// Machine keys that the plan sets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overrides: BTreeMap<String, String>,
    /// The applications, in the order in which they were put on the machine.
    pub apps: Vec<String>,
    /// Scheme name.
    pub scheme: String,
    /// Scheme parameters, defaults included.
    pub parameters: BTreeMap<String, String>,
    /// The seed.
    pub seed: u64,
    /// When the co-run ends.
    pub until: String,
    /// The solo window that it is compared with; absent: the end says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_cycles: Option<Cycle>,
    /// Steady stretches were passed over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fast_forward: bool,
    /// Applications that arrive after cycle 0, with their cycle.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arrival_cycles: BTreeMap<String, Cycle>,
}

/// The cells of a sweep's folder, in order: `sweep.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepRecord {
    /// Always [`SWEEP_SCHEMA`].
    pub schema: String,
    /// Every cell that a plan for this folder had.
    pub cells: Vec<CellRecord>,
}

/// A cell that has no record: `failed/KEY.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCell {
    /// Always [`SWEEP_SCHEMA`].
    pub schema: String,
    /// Which cell.
    pub cell: CellRecord,
    /// What went wrong, then its causes.
    pub errors: Vec<String>,
    /// It would fail the same again: what the plan asks for cannot be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
}

impl CellRecord {
    /// Its applications with ` + ` between them.
    #[must_use]
    pub fn mix(&self) -> String {
        self.apps.join(" + ")
    }

    /// Cells that differ in their scheme alone, or in the build that ran them, have equal
    /// ones: mixing builds in a folder is reported.
    #[must_use]
    fn without_scheme(&self) -> Self {
        Self {
            key: String::new(),
            program: String::new(),
            build: String::new(),
            scheme: String::new(),
            parameters: BTreeMap::new(),
            ..self.clone()
        }
    }
}

/// `key=value` with colons between them: as `--scheme` and plans take them.
pub(super) fn settings(settings: &BTreeMap<String, impl Display>) -> String {
    let words: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    words.join(":")
}

impl SweepRecord {
    /// Cells in order.
    #[must_use]
    pub fn new(cells: Vec<CellRecord>) -> Self {
        Self { schema: SWEEP_SCHEMA.to_owned(), cells }
    }

    /// Reads `sweep.json`.
    ///
    /// # Errors
    /// [`RecordError`] with the file, what is wrong and how the file comes back.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        let record = read_document(path, SWEEP_SCHEMA, |record: &Self| &record.schema);
        record.map_err(|error| match error {
            RecordError::Sweep { path, message } => {
                RecordError::Sweep { path, message: format!("{message}; {LIST_AGAIN}") }
            }
            other => other,
        })
    }

    /// The document as JSON with a final newline.
    #[must_use]
    pub fn to_json(&self) -> String {
        pretty(self)
    }
}

impl FailedCell {
    /// The failure of a cell, which may run another time.
    #[must_use]
    pub fn new(cell: CellRecord, errors: Vec<String>) -> Self {
        Self { schema: SWEEP_SCHEMA.to_owned(), cell, errors, refused: false }
    }

    /// Reads a file of `failed`.
    ///
    /// # Errors
    /// [`RecordError`] with the file and what is wrong.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        read_document(path, SWEEP_SCHEMA, |record: &Self| &record.schema)
    }

    /// The document as JSON with a final newline.
    #[must_use]
    pub fn to_json(&self) -> String {
        pretty(self)
    }
}

/// The document at `path`, whose `schema` has to be the one `expected`.
pub(crate) fn read_document<T: DeserializeOwned>(
    path: &Path,
    expected: &str,
    schema: fn(&T) -> &str,
) -> Result<T, RecordError> {
    let bytes = std::fs::read(path).map_err(|source| RecordError::file(path, source))?;
    let wrong = |message| RecordError::Sweep { path: path.to_path_buf(), message };
    let read: T =
        serde_json::from_slice(&bytes).map_err(|e| wrong(message_in_words(&e.to_string())))?;
    match schema(&read) {
        found if found != expected => {
            Err(wrong(format!("expected schema \"{expected}\", found \"{found}\"")))
        }
        _ => Ok(read),
    }
}

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
                // Another process runs it again, and has removed it meanwhile.
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

/// Cells of the same stores that differ in their scheme alone as one record, its co-runs in
/// the order of the cells; cells of several builds too, as long as no scheme comes twice:
/// then each build has its own record. Records that are no cells stay as they are.
#[must_use]
pub fn joined(records: Vec<Analysis>) -> Vec<Analysis> {
    let mut mixes: Vec<Analysis> = Vec::new();
    let mut known: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for mut record in records {
        let Some(words) = group(&record) else {
            mixes.push(record);
            continue;
        };
        let places = known.entry(words).or_default();
        let open = places.iter().copied().filter(|&place| !holds(&mixes[place], &record));
        let of_build = |place: &usize| build(&mixes[*place]) == build(&record);
        let place = open.clone().find(of_build).or_else(|| open.min());
        match place {
            Some(place) => mixes[place].coruns.append(&mut record.coruns),
            None => {
                places.push(mixes.len());
                mixes.push(record);
            }
        }
    }
    mixes
}

/// What cells of one group have in common; `None`: the record is of no cell.
fn group(record: &Analysis) -> Option<String> {
    let stores: Vec<&str> = record.solo.iter().map(|app| app.store_hash.as_str()).collect();
    let conditions = record.cell.as_ref()?.without_scheme();
    Some(format!("{conditions:?} {} {stores:?}", record.machine.hash))
}

/// Whether a co-run of `record` is one of `mix` already.
fn holds(mix: &Analysis, record: &Analysis) -> bool {
    let same = |a: &CoRun, b: &CoRun| a.scheme == b.scheme && a.parameters == b.parameters;
    record.coruns.iter().any(|run| mix.coruns.iter().any(|known| same(known, run)))
}

/// The build of a record's first cell.
fn build(record: &Analysis) -> Option<&str> {
    record.cell.as_ref().map(|cell| cell.build.as_str())
}

/// Leaves in `records` each application alone on a machine once: the cells that it is in
/// all hold the same. Of other records those count as the same that took as many cycles.
pub fn alone_once(records: &mut [Analysis]) {
    let mut known = BTreeSet::new();
    for record in records.iter_mut() {
        let (machine, cell) = (record.machine.hash.clone(), record.cell.is_some());
        let mut new = |app: &AppRecord| {
            let cycles = (!cell).then_some(app.cycles);
            known.insert((machine.clone(), app.app.clone(), app.store_hash.clone(), cycles))
        };
        record.solo.retain(|app| new(app));
    }
}

/// The cells of a plan with what they are thought to take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepEstimate {
    /// Those that were asked for, in order.
    pub cells: Vec<CellEstimate>,
    /// Seconds of one core, the applications alone included.
    pub core_seconds: u64,
    /// Milliseconds of one core for the applications alone, each once per machine.
    pub alone_milliseconds: u64,
    /// Cells at once at most.
    pub threads: u64,
    /// Seconds until the end, on so many threads.
    pub seconds: u64,
    /// Bytes of the largest cell.
    pub memory_bytes: u64,
    /// What this rests on.
    pub basis: String,
    /// By other build of the program: of how many of the cells the folder of the sweep holds
    /// a record that it has made, and none of this build.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub other_builds: BTreeMap<String, u64>,
}

impl SweepEstimate {
    /// The cells that have not ended.
    pub fn open(&self) -> impl Iterator<Item = &CellEstimate> {
        self.cells.iter().filter(|one| one.ended.is_none())
    }

    /// Seconds of one core for the longest cell that has not ended and has an estimate.
    pub(crate) fn longest_seconds(&self) -> u64 {
        self.open()
            .filter(|one| one.is_estimated())
            .map(|one| one.core_milliseconds)
            .max()
            .unwrap_or(0)
            .div_ceil(1000)
    }

    /// Nodes of [`SweepEstimate::threads`] each beyond which more make the sweep no shorter:
    /// its longest cell then takes as long as all others side by side.
    pub(crate) fn useful_nodes(&self) -> u64 {
        let cores = self.core_seconds.div_ceil(self.longest_seconds().max(1));
        cores.div_ceil(self.threads.max(1)).max(1)
    }
}

/// One cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellEstimate {
    /// Its number among all cells of the plan, from 1.
    pub number: u64,
    /// Which cell.
    pub cell: CellRecord,
    /// Runs of the machine: one, and those that the scheme asks for before it.
    pub runs: u64,
    /// Milliseconds of one core, without the applications alone.
    pub core_milliseconds: u64,
    /// Milliseconds of one core for its applications alone, where they are not known yet.
    pub alone_milliseconds: u64,
    /// Bytes.
    pub memory_bytes: u64,
    /// How it has ended in the folder of the sweep, true for a record; `None`: it has not, or
    /// it was not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<bool>,
    /// Why it cannot run, where that shows already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Its applications that are still to be converted; it has no estimate if there are some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unconverted: Vec<String>,
}

impl CellEstimate {
    /// Whether its runs, time and memory are known: all its applications are converted.
    #[must_use]
    pub fn is_estimated(&self) -> bool {
        self.unconverted.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{alone_once, joined};
    use crate::results::{Analysis, AppRecord, CellRecord, CoRun};

    #[test]
    fn an_application_of_several_cells_is_there_once_alone() {
        let app = |name: &&str| AppRecord { app: (*name).into(), ..AppRecord::default() };
        let cell = |apps: &[&str]| Analysis {
            cell: Some(CellRecord::default()),
            solo: apps.iter().map(app).collect(),
            ..Analysis::default()
        };
        let mut records = [cell(&["a", "b"]), cell(&["b", "c"]), cell(&["a", "c"])];
        alone_once(&mut records);
        let left: Vec<usize> = records.iter().map(|record| record.solo.len()).collect();
        assert_eq!(left, [2, 1, 0]);
        let record = |cycles| {
            let app = AppRecord { cycles, ..app(&"a") };
            Analysis { solo: vec![app], ..Analysis::default() }
        };
        let mut records = [record(5), record(6), record(5)];
        alone_once(&mut records);
        assert!(records.iter().map(|record| record.solo.len()).eq([1, 1, 0]));
    }

    #[test]
    fn builds_that_ran_the_same_scheme_stay_apart() {
        let cell = |build: &str, scheme: &str| Analysis {
            cell: Some(CellRecord {
                scheme: scheme.into(),
                build: build.into(),
                ..CellRecord::default()
            }),
            coruns: vec![CoRun {
                scheme: scheme.into(),
                antt: f64::from(build == "b"),
                ..CoRun::default()
            }],
            ..Analysis::default()
        };
        let cells = [("a", "even"), ("b", "even"), ("b", "spatial"), ("a", "fcfs"), ("c", "bp")];
        let records = joined(cells.map(|(build, scheme)| cell(build, scheme)).to_vec());
        let reported = |record: &Analysis| -> String {
            let word = |run: &CoRun| format!("{}{} ", run.scheme, run.antt);
            record.coruns.iter().map(word).collect()
        };
        let reported: Vec<String> = records.iter().map(reported).collect();
        assert_eq!(reported, ["even0 fcfs0 bp0 ", "even1 spatial1 "]);
    }

    #[test]
    fn cells_of_one_mix_are_one_record_with_all_schemes() {
        let cell = |app: &str, scheme: &str, seed| Analysis {
            cell: Some(CellRecord {
                key: format!("{app}{scheme}"),
                apps: vec![app.into(), "b".into()],
                scheme: scheme.into(),
                seed,
                build: format!("0.1.0+{scheme}"),
                ..CellRecord::default()
            }),
            coruns: vec![CoRun { scheme: scheme.into(), ..CoRun::default() }],
            ..Analysis::default()
        };
        let plain = Analysis::default();
        let records = joined(vec![
            cell("a", "even", 0),
            cell("c", "even", 0),
            plain.clone(),
            cell("a", "spatial", 0),
            plain,
            cell("a", "fcfs", 1),
        ]);
        let schemes = |record: &Analysis| -> Vec<String> {
            record.coruns.iter().map(|run| run.scheme.clone()).collect()
        };
        let reported: Vec<Vec<String>> = records.iter().map(schemes).collect();
        assert_eq!(reported[0], ["even", "spatial"], "in the order of the cells");
        assert_eq!((reported.len(), reported[1].len(), reported[4][0].as_str()), (5, 1, "fcfs"));
    }

    #[test]
    fn cells_of_other_stores_under_the_same_names_stay_apart() {
        let cell = |store: &str| Analysis {
            cell: Some(CellRecord { apps: vec!["a".into()], ..CellRecord::default() }),
            solo: vec![AppRecord {
                app: "a".into(),
                store_hash: store.into(),
                ..AppRecord::default()
            }],
            ..Analysis::default()
        };
        assert_eq!(joined(vec![cell("1"), cell("2"), cell("1")]).len(), 2);
    }
}
