//! Stores that are converted on the fly and kept in the cache folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use xxhash_rust::xxh3::Xxh3;

use gpumodel_trace::workload::Workload;
use gpumodel_trace::{ConvertRequest, Progress, Store, TraceError};

use super::results::key;
use super::{DiskCache, Kind};
use crate::RunError;
use crate::app::ModelSettings;

/// The store of a trace, which may skip damaged files, with remarks: from `cache` if it is intact
/// there and the source has not changed, else converted.
pub(crate) fn trace_store(
    trace: (&Path, bool),
    cache: &Path,
    progress: &dyn Progress,
) -> Result<(PathBuf, Vec<String>), RunError> {
    cached_or_made(source_key(trace)?, cache, |stored| convert(trace, stored, cache, progress))
}

/// The store of a workload model: from `cache` if this build of the program has made it from the
/// same text with the same settings, else converted.
pub(crate) fn model_store(
    settings: &ModelSettings,
    models: Option<&Path>,
    cache: &Path,
    progress: &dyn Progress,
) -> Result<(PathBuf, Vec<String>), RunError> {
    let workload = load(settings, models)?;
    cached_or_made(model_key(&workload, settings), cache, |stored| {
        let report = gpumodel_trace::convert_workload(&workload, stored, progress);
        let report = report.map_err(|error| cache_error(error, cache))?;
        Ok(report.warnings.into_iter().chain(workload.remark()).collect())
    })
}

/// The store of a trace in `cache`; `None` if it is not there or the source has changed.
pub(crate) fn cached_trace(
    trace: (&Path, bool),
    cache: &Path,
) -> Result<Option<PathBuf>, RunError> {
    Ok(cached(source_key(trace)?, cache))
}

/// The store of a workload model in `cache`, if this build made it of the same text with the
/// same settings.
pub(crate) fn cached_model(
    settings: &ModelSettings,
    models: Option<&Path>,
    cache: &Path,
) -> Result<Option<PathBuf>, RunError> {
    Ok(cached(model_key(&load(settings, models)?, settings), cache))
}

fn load(settings: &ModelSettings, models: Option<&Path>) -> Result<Workload, RunError> {
    let ModelSettings { workload, constants, scale } = settings;
    let constants: Vec<(&str, i64)> =
        constants.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let files = crate::models(models)?;
    Ok(Workload::load_with(workload, &files, *scale, &constants)?)
}

fn cached(key: u128, cache: &Path) -> Option<PathBuf> {
    let disk = DiskCache::new(cache);
    intact_notes(&disk, key).map(|_| disk.path(Kind::Store, key))
}

fn model_key(workload: &Workload, settings: &ModelSettings) -> u128 {
    let ModelSettings { scale, constants, .. } = settings;
    let constants = constants.iter().map(|(name, value)| format!("{name}={value}"));
    let fixed = ["synth", workload.name(), workload.text(), &scale.to_string()].map(String::from);
    key(&fixed.into_iter().chain(constants).collect::<Vec<_>>())
}

/// Turns an error of writing into one about the cache.
fn cache_error(error: TraceError, cache: &Path) -> RunError {
    match error {
        TraceError::Output(source) | TraceError::Io { what: "write", source, .. } => {
            RunError::Cache { path: cache.to_path_buf(), source }
        }
        TraceError::Workload(error) => error.into(),
        error => error.into(),
    }
}

/// The store `key` of `cache`, with remarks: the existing one if it is intact, else the one that
/// `make` writes to its path.
fn cached_or_made(
    key: u128,
    cache: &Path,
    make: impl FnOnce(&Path) -> Result<Vec<String>, RunError>,
) -> Result<(PathBuf, Vec<String>), RunError> {
    let failed = |source| RunError::Cache { path: cache.to_path_buf(), source };
    let disk = DiskCache::new(cache);
    let (stored, notes) = (disk.path(Kind::Store, key), disk.path(Kind::Notes, key));
    // An interrupted run may have left a store without notes: that is no damage.
    let exists = stored.exists() && notes.exists();
    if exists && let Some(notes) = intact_notes(&disk, key) {
        disk.touch(Kind::Store, key);
        return Ok((stored, notes));
    }
    let stored = disk.prepare(Kind::Store, key).map_err(failed)?;
    let mut warnings = make(&stored)?;
    disk.put_json(Kind::Notes, key, &warnings);
    if exists {
        warnings.push("its cached store was damaged and was made again".to_owned());
    }
    Ok((stored, warnings))
}

/// The notes of a cached store; `None` if store or notes are damaged.
fn intact_notes(disk: &DiskCache, key: u128) -> Option<Vec<String>> {
    Store::open(&disk.path(Kind::Store, key)).and_then(|store| store.check_blocks()).ok()?;
    disk.get_json(Kind::Notes, key)
}

fn convert(
    (path, skip_damaged): (&Path, bool),
    stored: &Path,
    cache: &Path,
    progress: &dyn Progress,
) -> Result<Vec<String>, RunError> {
    let inputs = vec![path.to_path_buf()];
    let output = stored.to_path_buf();
    let request = ConvertRequest { inputs, output, skip_damaged, ..ConvertRequest::default() };
    let report = gpumodel_trace::convert(&request, progress);
    report.map(|report| report.warnings).map_err(|error| cache_error(error, cache))
}

/// A hash that changes with the source or the program: names, sizes and modification times of
/// the files that are read, also those of lists, and of every file in a folder.
fn source_key((path, skip_damaged): (&Path, bool)) -> Result<u128, RunError> {
    let unread = |source| TraceError::Io { what: "read", path: path.to_path_buf(), source };
    let full = path.canonicalize().map_err(unread)?;
    let sources = gpumodel_trace::sources(&[path.to_path_buf()])?;
    let real = |file: PathBuf| file.canonicalize().unwrap_or(file);
    let mut files: Vec<PathBuf> = sources.into_iter().map(real).collect();
    if full.is_dir() {
        for entry in fs::read_dir(&full).map_err(unread)? {
            files.push(entry.map_err(unread)?.path());
        }
    }
    files.sort();
    files.dedup();
    let mut hash = Xxh3::new();
    hash.update(concat!(env!("CARGO_PKG_VERSION"), "\n").as_bytes());
    hash.update(if skip_damaged { b"skipping damaged files\n" } else { b"" });
    hash.update(full.as_os_str().as_encoded_bytes());
    for file in files {
        // Another file of the folder may be a broken link, or be removed meanwhile.
        let Ok(meta) = fs::metadata(&file) else { continue };
        let changed = meta.modified().map_err(unread)?;
        let changed = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
        hash.update(file.as_os_str().as_encoded_bytes());
        hash.update(&meta.len().to_le_bytes());
        hash.update(&changed.as_nanos().to_le_bytes());
    }
    Ok(hash.digest128())
}
