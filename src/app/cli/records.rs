//! Reads the records that a command line names: those of `analyze`, of reports and of sweeps.

use std::fs;
use std::path::{Path, PathBuf};

use gpumodel_core::units::with_causes;
use gpumodel_report::RECORD;
use gpumodel_report::results::{Analysis, RecordError, SweepFiles, cells_of_table, joined};

use super::output::alert;

/// Records, and the argument from which each was read.
#[derive(Default)]
pub(super) struct Records {
    pub(super) all: Vec<Analysis>,
    pub(super) from: Vec<PathBuf>,
}

/// Every record of `paths`, in order. For the folder of a report: its record, or those of its
/// machines by name; for the folder of a sweep: those of its cells; for a table in such a folder: those of the cells in it.
/// Records of cells are joined as `analyze` would have written them.
pub(super) fn read_all(paths: &[PathBuf]) -> Result<Records, RecordError> {
    let mut records = Records::default();
    for path in paths {
        records.all.extend(read(path)?);
        records.from.resize(records.all.len(), path.clone());
    }
    Ok(records)
}

fn read(path: &Path) -> Result<Vec<Analysis>, RecordError> {
    let files = SweepFiles::new(path);
    if files.begun() {
        return Ok(joined(read_cells(&files)?));
    }
    if path.is_dir() {
        return reports(path)?.iter().map(|report| Analysis::read(report)).collect();
    }
    let bytes = fs::read(path).map_err(|source| RecordError::file(path, source))?;
    match cells_of_table(&bytes, path)? {
        Some(keys) => Ok(joined(read_rows(path, &keys)?)),
        None => Ok(vec![Analysis::from_json(&bytes, path)?]),
    }
}

/// The files and folders that reading `paths` may read.
pub(super) fn sources(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in paths {
        let folder = path.is_dir();
        match reports(path) {
            Ok(records) => found.extend(records),
            Err(_) if folder => found.push(path.join(RECORD)),
            Err(_) => found.push(path.clone()),
        }
        let root = if folder { Some(path.as_path()) } else { path.parent() };
        let files = SweepFiles::new(root.unwrap_or(Path::new("")));
        if files.begun() {
            found.extend([files.list(), files.records(), files.failures()]);
        }
    }
    found
}

/// The record in the folder of a report; where it reports several machines, that of each, in the
/// order of their names.
fn reports(folder: &Path) -> Result<Vec<PathBuf>, RecordError> {
    let record = folder.join(RECORD);
    if record.is_file() {
        return Ok(vec![record]);
    }
    let entries = fs::read_dir(folder).map_err(|source| RecordError::file(folder, source))?;
    let machines = entries.filter_map(Result::ok).map(|entry| entry.path().join(RECORD));
    let mut records: Vec<PathBuf> = machines.filter(|record| record.is_file()).collect();
    records.sort();
    if records.is_empty() {
        return Err(RecordError::Folder { path: folder.to_path_buf() });
    }
    Ok(records)
}

/// The records of the cells that are done.
fn read_cells(files: &SweepFiles) -> Result<Vec<Analysis>, RecordError> {
    let listing = files.listing()?;
    for damage in &listing.damaged {
        alert(format_args!("warning: left out: {}", with_causes(damage).join(": ")));
    }
    let mut records = Vec::new();
    for cell in listing.cells {
        records.extend(files.outcome(&cell.key)?.and_then(Result::ok));
    }
    Ok(records)
}

/// The records of those cells of `keys` that are done, from the folder of the table `path`.
fn read_rows(path: &Path, keys: &[String]) -> Result<Vec<Analysis>, RecordError> {
    let files = SweepFiles::new(path.parent().unwrap_or(Path::new("")));
    let mut records = Vec::new();
    for key in keys {
        let outcome = files.outcome(key)?.ok_or_else(|| RecordError::MissingRecord {
            path: path.to_path_buf(),
            record: files.record(key),
        })?;
        records.extend(outcome.ok());
    }
    Ok(records)
}
