//! One part of a paper's evaluation: a sweep by its plan, or a queue.

use std::fs;
use std::path::{Path, PathBuf};

use crate::record::{Analysis, ReproducedFigure, ReproducedPart, SweepFiles};
use crate::spec::{Models, Part};
use crate::units::WholeFile;

use super::super::recall::{BUILD, key};
use super::super::request::{AnalyzeRequest, analyze};
use super::super::sweep::{SweepError, SweepRequest, SweepWatch, sweep};
use super::{ReproduceError, ReproduceRequest};

/// Runs `part` in `folder` of the report; `None`: it is no part of this reproduction.
pub(super) fn run(
    part: &Part,
    folder: &Path,
    models: &Models,
    request: &ReproduceRequest,
    watch: &dyn SweepWatch,
) -> Result<Option<(ReproducedPart, Vec<Analysis>)>, ReproduceError> {
    let folder =
        if request.quick { folder.with_file_name(quick(folder)) } else { folder.to_path_buf() };
    let place = request.report.join(&folder);
    let stem =
        |whole: &Option<String>| if request.quick { part.quick.clone() } else { whole.clone() };
    let (kind, whole) =
        if part.plan.is_some() { ("plans", &part.plan) } else { ("mixes", &part.queue) };
    let Some(stem) = stem(whole) else { return Ok(None) };
    fs::create_dir_all(&place).map_err(wrong(&place))?;
    let model = models.text(kind, &stem)?;
    let mut file = place.join(format!("{stem}.toml"));
    WholeFile::write(&file, model.text.as_bytes()).map_err(wrong(&file))?;
    // The user's own: paths in it are from its folder on, and errors name it.
    if request.models.is_some() && Path::new(&model.origin).is_file() {
        file = PathBuf::from(&model.origin);
    }
    let (paths, failed) = if part.plan.is_some() {
        swept(part, &file, &place, request, watch)?
    } else {
        queued(part, &file, (&place, models), request, watch)?
    };
    let records: Result<Vec<Analysis>, _> = paths.iter().map(|path| Analysis::read(path)).collect();
    let within = |path: &PathBuf| {
        path.strip_prefix(&request.report).unwrap_or(path).to_string_lossy().into_owned()
    };
    let covers = if request.quick { &part.quick_covers } else { &part.covers };
    let found = ReproducedPart {
        name: part.name.clone(),
        title: part.title.clone(),
        covers: covers.clone(),
        records: paths.iter().map(within).collect(),
        failed,
        figures: part.figures.iter().map(ReproducedFigure::from).collect(),
    };
    Ok(Some((found, records?)))
}

fn quick(folder: &Path) -> String {
    format!("quick-{}", folder.file_name().unwrap_or_default().to_string_lossy())
}

fn wrong(path: &Path) -> impl FnOnce(std::io::Error) -> ReproduceError {
    let path = path.to_path_buf();
    move |source| ReproduceError::Folder { path, source }
}

/// The records of a plan's cells in its order, and how many cells failed.
fn swept(
    part: &Part,
    plan: &Path,
    place: &Path,
    request: &ReproduceRequest,
    watch: &dyn SweepWatch,
) -> Result<(Vec<PathBuf>, usize), ReproduceError> {
    let failed = |source: SweepError| ReproduceError::Sweep {
        part: part.name.clone(),
        source: Box::new(source),
    };
    let asked = SweepRequest {
        plan: plan.to_path_buf(),
        out: place.to_path_buf(),
        resume: true,
        retry_failed: true,
        // Cells of other builds stay where they are; only those of this one are read.
        mixed_versions: true,
        memory_bytes: request.memory_bytes,
        part: None,
        expiry: request.expiry,
        models: request.models.clone(),
        cache: request.cache.clone(),
    };
    let end = match sweep(&asked, watch) {
        Ok(end) if end.left == 0 => end,
        Ok(end) => return Err(ReproduceError::Stopped { part: part.name.clone(), left: end.left }),
        Err(SweepError::Stopped { .. }) => {
            return Err(ReproduceError::Stopped { part: part.name.clone(), left: 1 });
        }
        Err(error) => return Err(failed(error)),
    };
    let files = SweepFiles::new(place);
    let own = files.cells()?.into_iter().take(end.done + end.failed);
    let records = own.map(|cell| files.record(&cell.key)).filter(|path| path.is_file());
    Ok((records.collect(), end.failed))
}

/// The record of a queue under all schemes, kept under the hash of the build, the part and
/// every model file.
fn queued(
    part: &Part,
    queue: &Path,
    (place, models): (&Path, &Models),
    request: &ReproduceRequest,
    watch: &dyn SweepWatch,
) -> Result<(Vec<PathBuf>, usize), ReproduceError> {
    let stopped = || ReproduceError::Stopped { part: part.name.clone(), left: 1 };
    let machine = part.machine.clone().unwrap_or_default();
    let mut words = vec![BUILD.to_owned(), queue.display().to_string(), machine.clone()];
    words.extend(part.schemes.iter().cloned());
    words.extend(models.texts().flat_map(|(path, text)| [path.to_owned(), text.to_owned()]));
    let path = place.join(format!("{:032x}.json", key(&words)));
    if Analysis::read(&path).is_ok() {
        return Ok((vec![path], 0));
    }
    if watch.stopped() {
        return Err(stopped());
    }
    let asked = AnalyzeRequest {
        schemes: part.schemes.clone(),
        queue: Some(queue.to_path_buf()),
        models: request.models.clone(),
        ..AnalyzeRequest::new(Vec::new(), &machine, &request.cache)
    };
    let failed =
        |source| ReproduceError::Queue { part: part.name.clone(), source: Box::new(source) };
    let record = analyze(&asked, watch).map_err(failed)?;
    WholeFile::write(&path, record.to_json().as_bytes()).map_err(wrong(&path))?;
    if watch.stopped() { Err(stopped()) } else { Ok((vec![path], 0)) }
}
