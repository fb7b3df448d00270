//! `merge`: joins folders of sweeps.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gpumodel_report::results::{CellRecord, FailedCell, RecordError, SweepFiles, SweepRecord};

use super::SweepFolder;
use super::folder::{write, write_tables};
use crate::SweepError;

/// The request of `merge`.
#[derive(Clone, Debug)]
pub struct MergeRequest {
    /// Folders of sweeps.
    pub folders: Vec<PathBuf>,
    /// The folder to write, without cells or with those of the same merge that was interrupted.
    pub out: PathBuf,
    /// Accept cells of several versions of the program.
    pub mixed_versions: bool,
}

/// The file that a merged cell is copied from.
struct Source {
    path: PathBuf,
    done: bool,
}

/// Cells in order, and their files by key.
type Collected = (Vec<CellRecord>, BTreeMap<String, Source>);

/// Joins folders: their cells in the order of the folders, each once, records before failures,
/// then the tables of all. Returns the numbers of done and failed cells. Continues an
/// interrupted merge of the same folders.
///
/// # Errors
/// When a folder holds no sweep or is the output, the output holds other cells, versions are
/// mixed without [`MergeRequest::mixed_versions`], two records of a cell differ, or a file is
/// damaged.
pub fn merge(request: &MergeRequest) -> Result<(usize, usize), SweepError> {
    let real = |folder: &PathBuf| folder.canonicalize().ok();
    let itself =
        |folder: &&PathBuf| real(folder).is_some_and(|one| real(&request.out) == Some(one));
    if let Some(folder) = request.folders.iter().find(itself) {
        return Err(SweepError::IntoItself { folder: folder.clone() });
    }
    let (order, sources) = collected(request)?;
    check_output(&SweepFiles::new(&request.out), &order, &sources)?;
    let folder = SweepFolder::open(&request.out)?;
    copy(&folder.files, order, &sources)
}

/// The cells and files of the folders.
fn collected(request: &MergeRequest) -> Result<Collected, SweepError> {
    let mut order: Vec<CellRecord> = Vec::new();
    let mut sources = BTreeMap::new();
    let mut builds: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut found: Vec<(String, Source)> = Vec::new();
    for folder in &request.folders {
        let files = SweepFiles::new(folder);
        if !files.begun() {
            return Err(SweepError::NoSweep { folder: folder.clone() });
        }
        let listing = files.listing()?;
        if let Some(damaged) = listing.damaged.into_iter().next() {
            return Err(damaged.into());
        }
        for cell in listing.cells {
            if let Some(source) = source(&files, &cell)? {
                builds.entry(cell.build.clone()).or_insert_with(|| folder.clone());
                found.push((cell.key.clone(), source));
            }
            order.push(cell);
        }
    }
    if builds.len() > 1 && !request.mixed_versions {
        let versions =
            builds.iter().map(|(build, folder)| format!("{build} in {}", folder.display()));
        return Err(SweepError::Mixed { versions: versions.collect::<Vec<_>>().join(", ") });
    }
    for (key, source) in found {
        add_source(&mut sources, key, source)?;
    }
    let mut known = std::collections::BTreeSet::new();
    order.retain(|cell| known.insert(cell.key.clone()));
    Ok((order, sources))
}

/// Refuses an output folder with other contents than this merge writes.
fn check_output(
    out: &SweepFiles,
    order: &[CellRecord],
    sources: &BTreeMap<String, Source>,
) -> Result<(), SweepError> {
    let foreign =
        || SweepError::OtherContents { folder: out.root().to_path_buf(), cells: out.ended() };
    if out.begun() && SweepRecord::read(&out.list())?.cells != order {
        return Err(foreign());
    }
    if out.failed().iter().any(|key| !sources.contains_key(key)) {
        return Err(foreign());
    }
    for key in out.done() {
        let source = sources.get(&key).filter(|source| source.done).ok_or_else(foreign)?;
        let record = out.record(&key);
        if read(&record)? != read(&source.path)? {
            return Err(SweepError::Differ { one: record, other: source.path.clone() });
        }
    }
    Ok(())
}

/// The file of a cell, checked.
fn source(files: &SweepFiles, cell: &CellRecord) -> Result<Option<Source>, RecordError> {
    let path = |done| if done { files.record(&cell.key) } else { files.failure(&cell.key) };
    let outcome = files.outcome(&cell.key)?;
    let found = outcome.map(|outcome| {
        let done = outcome.is_ok();
        let own = outcome.map_or_else(|failed: FailedCell| Some(failed.cell), |one| one.cell);
        (done, own)
    });
    match found {
        None => Ok(None),
        Some((done, Some(own))) if own.key == cell.key => {
            Ok(Some(Source { path: path(done), done }))
        }
        Some((done, _)) => {
            let message = format!("expected the cell {}, found another", cell.key);
            Err(RecordError::Sweep { path: path(done), message })
        }
    }
}

/// Uses `source` for the cell `key` unless a source as good is known.
fn add_source(
    sources: &mut BTreeMap<String, Source>,
    key: String,
    source: Source,
) -> Result<(), SweepError> {
    if let Some(known) = sources.get(&key) {
        if known.done && source.done && read(&known.path)? != read(&source.path)? {
            return Err(SweepError::Differ { one: known.path.clone(), other: source.path });
        }
        if known.done || !source.done {
            return Ok(());
        }
    }
    sources.insert(key, source);
    Ok(())
}

fn read(path: &Path) -> Result<String, SweepError> {
    Ok(fs::read_to_string(path).map_err(|source| RecordError::file(path, source))?)
}

fn copy(
    out: &SweepFiles,
    order: Vec<CellRecord>,
    sources: &BTreeMap<String, Source>,
) -> Result<(usize, usize), SweepError> {
    let mut count = (0, 0);
    for (key, source) in sources {
        let (record, failure) = (out.record(key), out.failure(key));
        if !source.done {
            write(&failure, &read(&source.path)?)?;
            count.1 += 1;
            continue;
        }
        if !record.is_file() {
            write(&record, &read(&source.path)?)?;
        }
        if failure.is_file() {
            fs::remove_file(&failure).map_err(SweepError::folder(failure))?;
        }
        count.0 += 1;
    }
    // The list makes the folder that of a sweep.
    write(&out.list(), &SweepRecord::new(order).to_json())?;
    write_tables(out, |_| ()).map(|()| count)
}
