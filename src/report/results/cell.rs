//! The cells of a sweep: what each is, in records and in the sweep's own files.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use serde::{Deserialize, Serialize};

use gpumodel_core::units::{Cycle, message_in_words};

use super::RecordError;

/// Value of [`SweepRecord::schema`].
pub const SWEEP_SCHEMA: &str = "gpumodel.sweep/1";

/// What to do about a list of cells that is damaged: the records do not need it.
const LIST_AGAIN: &str = "delete it, and what wrote the folder makes it again, `gpumodel sweep \
                          PLAN.toml --out DIR --resume` or `gpumodel merge`; no record is lost";

/// What a cell of a sweep is: one mix on one machine under one scheme.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Who comes later than at cycle 0, and when.
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
    /// ones: who mixes builds in a folder was told so.
    #[must_use]
    pub fn beside(&self) -> Self {
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
        let record = read(path).and_then(|record: Self| {
            check(path, &record.schema)?;
            Ok(record)
        });
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
        let record: Self = read(path)?;
        check(path, &record.schema).map(|()| record)
    }

    /// The document as JSON with a final newline.
    #[must_use]
    pub fn to_json(&self) -> String {
        pretty(self)
    }
}

fn pretty(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("plain data with string keys");
    text.push('\n');
    text
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, RecordError> {
    let bytes = std::fs::read(path).map_err(|source| RecordError::file(path, source))?;
    serde_json::from_slice(&bytes).map_err(|error| RecordError::Sweep {
        path: path.to_path_buf(),
        message: message_in_words(&error.to_string()),
    })
}

fn check(path: &Path, schema: &str) -> Result<(), RecordError> {
    if schema == SWEEP_SCHEMA {
        return Ok(());
    }
    let message = format!("expected schema \"{SWEEP_SCHEMA}\", found \"{schema}\"");
    Err(RecordError::Sweep { path: path.to_path_buf(), message })
}
