//! Stores made on the fly, kept in the user's cache folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use gpumodel_core::units::{WholeFile, read_file};
use gpumodel_trace::workload::Workload;
use gpumodel_trace::{ConvertRequest, Progress, Store, TraceError};

use super::error::RunError;
use super::model_records::{ModelRecords, told};
use super::recall::{is_key, key};

/// The store of a trace: converted into `cache` unless that was done before, the
/// source has not changed and what was kept is whole. What was remarked while
/// converting comes with it.
pub(super) fn converted(
    path: &Path,
    cache: &Path,
    progress: &dyn Progress,
) -> Result<(PathBuf, Vec<String>), RunError> {
    kept_or_made(source_key(path)?, cache, |stored| convert(path, stored, cache, progress))
}

/// The store of a workload model at a scale: made in `cache` unless this build of the program has
/// made it before of the same text.
pub(super) fn modelled(
    (workload, scale): (&str, f64),
    models: Option<&Path>,
    cache: &Path,
    progress: &dyn Progress,
) -> Result<(PathBuf, Vec<String>), RunError> {
    let failed = |source| RunError::Cache { path: cache.to_path_buf(), source };
    let files = crate::models(models)?;
    let workload = Workload::load_scaled(workload, &files, scale)?;
    let words = ["synth", workload.name(), workload.text(), &scale.to_string()].map(String::from);
    kept_or_made(key(&words), cache, |stored| {
        fs::create_dir_all(cache).map_err(failed)?;
        let records = ModelRecords::new(&workload)?;
        let report = gpumodel_trace::convert_launches(&records, stored, progress);
        let remarked = |warnings: Vec<String>| warnings.into_iter().chain(workload.remark());
        report.map(|report| remarked(report.warnings).collect()).map_err(|error| {
            match told(error) {
                Ok(error) => RunError::from(error),
                Err(error) => unwritten(error, cache),
            }
        })
    })
}

/// An error of writing is about the cache.
fn unwritten(error: TraceError, cache: &Path) -> RunError {
    match error {
        TraceError::Output(source) | TraceError::Io { what: "write", source, .. } => {
            RunError::Cache { path: cache.to_path_buf(), source }
        }
        error => error.into(),
    }
}

/// The store called `key` in `cache`: what is there, if it is whole, or what `make`
/// writes to its path; with what was remarked on it.
fn kept_or_made(
    key: u128,
    cache: &Path,
    make: impl FnOnce(&Path) -> Result<Vec<String>, RunError>,
) -> Result<(PathBuf, Vec<String>), RunError> {
    let failed = |source| RunError::Cache { path: cache.to_path_buf(), source };
    let stored = cache.join(format!("{key:032x}.gpt"));
    let notes = stored.with_extension("notes");
    // A run that was ended may have left a store without notes: that is no damage.
    let there = stored.exists() && notes.exists();
    if there && let Some(notes) = kept(&stored, &notes) {
        return Ok((stored, notes));
    }
    let mut warnings = make(&stored)?;
    for warning in &mut warnings {
        *warning = warning.replace('\n', "\\n");
    }
    WholeFile::write(&notes, sealed(&warnings).as_bytes()).map_err(failed)?;
    if there {
        warnings.push("what the cache kept of it was damaged: made again".to_owned());
    }
    Ok((stored, warnings))
}

/// The notes of a conversion that was kept; `None` when it or they are damaged.
fn kept(stored: &Path, notes: &Path) -> Option<Vec<String>> {
    Store::open(stored).and_then(|store| store.check_blocks()).ok()?;
    let text = String::from_utf8(read_file(notes).ok()?).ok()?;
    let (_, lines) = text.split_once('\n')?;
    let lines: Vec<String> = lines.lines().map(str::to_owned).collect();
    (sealed(&lines) == text).then_some(lines)
}

/// Notes one per line under their own hash.
fn sealed(notes: &[String]) -> String {
    let text = notes.join("\n");
    format!("{:016x}\n{text}", xxh3_64(text.as_bytes()))
}

fn convert(
    path: &Path,
    stored: &Path,
    cache: &Path,
    progress: &dyn Progress,
) -> Result<Vec<String>, RunError> {
    let failed = |source| RunError::Cache { path: cache.to_path_buf(), source };
    fs::create_dir_all(cache).map_err(failed)?;
    let inputs = vec![path.to_path_buf()];
    let output = stored.to_path_buf();
    let request = ConvertRequest { inputs, output, ..ConvertRequest::default() };
    let report = gpumodel_trace::convert(&request, progress);
    report.map(|report| report.warnings).map_err(|error| unwritten(error, cache))
}

/// Removes what programs have left in `cache` that were killed while they wrote a store or
/// its notes: whoever makes that store again does so too, but its source may have changed.
pub(super) fn clean(cache: &Path) {
    let own = |name: &str| {
        let key = name.strip_suffix(".gpt").or_else(|| name.strip_suffix(".notes"));
        key.is_some_and(is_key)
    };
    WholeFile::remove_abandoned_in(cache, own);
}

/// A number that changes when the source, or the program, does: names, sizes and
/// times of the files that are read, wherever lists find them, and of every file in
/// a folder.
fn source_key(path: &Path) -> Result<u128, RunError> {
    let unread = |source| TraceError::Io { what: "read", path: path.to_path_buf(), source };
    let full = path.canonicalize().map_err(unread)?;
    let sources = gpumodel_trace::sources(&[path.to_path_buf()])?;
    let place = |file: PathBuf| file.canonicalize().unwrap_or(file);
    let mut files: Vec<PathBuf> = sources.into_iter().map(place).collect();
    if full.is_dir() {
        for entry in fs::read_dir(&full).map_err(unread)? {
            files.push(entry.map_err(unread)?.path());
        }
    }
    files.sort();
    files.dedup();
    let mut hash = Xxh3::new();
    hash.update(concat!(env!("CARGO_PKG_VERSION"), "\n").as_bytes());
    hash.update(full.as_os_str().as_encoded_bytes());
    for file in files {
        // A neighbour may be a broken link, or go while we look.
        let Ok(meta) = fs::metadata(&file) else { continue };
        let changed = meta.modified().map_err(unread)?;
        let changed = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
        hash.update(file.as_os_str().as_encoded_bytes());
        hash.update(&meta.len().to_le_bytes());
        hash.update(&changed.as_nanos().to_le_bytes());
    }
    Ok(hash.digest128())
}
