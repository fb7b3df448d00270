//! Stores made on the fly, kept in the user's cache folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use xxhash_rust::xxh3::Xxh3;

use crate::synth::{self, Compression, Workload};
use crate::trace::{self, ConvertRequest, Progress, Store};
use crate::units::{Scratch, WholeFile};

use super::error::RunError;

/// The store of a trace: converted into `cache` unless that was done before and
/// the source has not changed. What was remarked while converting comes with it.
pub(super) fn converted(
    path: &Path,
    cache: &Path,
    progress: &dyn Progress,
) -> Result<(PathBuf, Vec<String>), RunError> {
    let failed = |source| RunError::Cache { path: cache.to_path_buf(), source };
    let stored = cache.join(format!("{:032x}.gpt", source_key(path).map_err(failed)?));
    let notes = stored.with_extension("notes");
    if stored.exists() && Store::open(&stored).is_ok() {
        let notes = fs::read_to_string(notes).unwrap_or_default();
        return Ok((stored, notes.lines().map(str::to_owned).collect()));
    }
    let warnings = convert(path, &stored, cache, progress)?;
    WholeFile::write(&notes, warnings.join("\n").as_bytes()).map_err(failed)?;
    Ok((stored, warnings))
}

/// The store of a workload model, made anew.
pub(super) fn modelled(
    workload: &str,
    models: Option<&Path>,
    cache: &Path,
    progress: &dyn Progress,
) -> Result<(PathBuf, Vec<String>), RunError> {
    let failed = |source| RunError::Cache { path: cache.to_path_buf(), source };
    let workload = Workload::load(workload, models)?;
    fs::create_dir_all(cache).map_err(failed)?;
    let folder = Scratch::create(cache).map_err(failed)?;
    let text = folder.path().join("trace");
    synth::write_folder(&workload, &text, Compression::None, &mut |_| {})?;
    let stored = cache.join(format!("synth-{}-{}.gpt", workload.name(), std::process::id()));
    let warnings = convert(&text, &stored, cache, progress)?;
    Ok((stored, warnings))
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
    let request = ConvertRequest { inputs, output, kernels: None, names: None };
    Ok(trace::convert(&request, progress)?.warnings)
}

/// A number that changes when the source, or the program, does: names, sizes
/// and times of the file or of every file in the folder.
fn source_key(path: &Path) -> std::io::Result<u128> {
    let full = path.canonicalize()?;
    let mut files = vec![full.clone()];
    let folder = if full.is_dir() { Some(full.as_path()) } else { full.parent() };
    for entry in fs::read_dir(folder.unwrap_or(&full))? {
        files.push(entry?.path());
    }
    files.sort();
    let mut hash = Xxh3::new();
    hash.update(concat!(env!("CARGO_PKG_VERSION"), "\n").as_bytes());
    hash.update(full.as_os_str().as_encoded_bytes());
    for file in files {
        // A neighbour may be a broken link, or go while we look.
        let Ok(meta) = fs::metadata(&file) else { continue };
        let changed = meta.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        hash.update(file.as_os_str().as_encoded_bytes());
        hash.update(&meta.len().to_le_bytes());
        hash.update(&changed.as_nanos().to_le_bytes());
    }
    Ok(hash.digest128())
}
