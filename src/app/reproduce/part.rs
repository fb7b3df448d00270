//! One part of a paper's evaluation: a sweep by its plan, or a queue.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use gpumodel_core::toml::Node;
use gpumodel_core::units::{FolderPurpose, WholeFile, sorted_mix};
use gpumodel_report::paper::{Paper, Part, ReproducedPart};
use gpumodel_report::results::{Analysis, SweepFiles};
use gpumodel_sim::config::Models;

use super::published::figures;
use super::{BUILD, check};
use crate::cache::results::key;
use crate::sweep::{plan_names, refuse_other_builds, so_far};
use crate::{
    AnalyzeRequest, ReproduceError, ReproduceRequest, SweepError, SweepProgress, SweepRequest,
    SweepWatch, analyze, sweep,
};

/// A part whose plan or queue is written to its folder and checked.
pub(super) struct Prepared<'a> {
    part: &'a Part,
    /// Its folder, in that of the report.
    folder: PathBuf,
    /// The plan or queue.
    file: PathBuf,
    /// Number of mixes of the whole plan, if it lists them.
    mixes: Option<usize>,
}

impl<'a> Prepared<'a> {
    /// Creates the folder of `part` and writes its plan or queue there; `None` if this
    /// reproduction does not include the part.
    pub(super) fn new(
        paper: &Paper,
        part: &'a Part,
        models: &Models,
        request: &ReproduceRequest,
    ) -> Result<Option<Self>, ReproduceError> {
        let (kind, whole) =
            if part.plan.is_some() { ("plans", &part.plan) } else { ("mixes", &part.queue) };
        let stem = if request.quick { &part.quick } else { whole };
        let Some(stem) = stem else { return Ok(None) };
        let model = models.text(kind, stem).map_err(|source| ReproduceError::Part {
            paper: paper.name.clone(),
            part: part.name.clone(),
            source: Box::new(source),
        })?;
        let quick = if request.quick { "quick-" } else { "" };
        let folder = Path::new("parts").join(format!("{quick}{}-{}", paper.name, part.name));
        let root = request.report.join(&folder);
        fs::create_dir_all(&root).map_err(unwritable(&root))?;
        if part.plan.is_some() {
            FolderPurpose::Sweep.mark(&root).map_err(unwritable(&root))?;
        }
        let mut file = root.join(format!("{stem}.toml"));
        WholeFile::write(&file, model.text.as_bytes()).map_err(unwritable(&file))?;
        // A file of the user is read in place: its paths are relative to its folder, and errors
        // name it.
        if request.models.is_some() && Path::new(&model.origin).is_file() {
            file = PathBuf::from(&model.origin);
        }
        if part.plan.is_some() {
            if !request.mixed_versions {
                refuse_other_builds(&root).map_err(|source| failed(part, source))?;
            }
            let plan = plan_names(&file).map_err(|source| failed(part, source))?;
            // A short version has only some of the schemes and mixes.
            if !request.quick {
                check::rows(paper, part, &plan)?;
            }
        }
        let mixes = part.plan.as_ref().and_then(|stem| counted(models, stem));
        Ok(Some(Self { part, folder, file, mixes }))
    }

    /// The name of the part.
    pub(super) fn name(&self) -> &str {
        &self.part.name
    }

    /// Runs it, or reads the existing results: the part with its records.
    pub(super) fn run(
        &self,
        models: &Models,
        request: &ReproduceRequest,
        watch: &dyn SweepWatch,
    ) -> Result<(ReproducedPart, Vec<Analysis>), ReproduceError> {
        let (part, root) = (self.part, request.report.join(&self.folder));
        let (paths, end) = if part.plan.is_some() {
            swept(part, &self.file, &root, request, watch)?
        } else {
            queued(part, &self.file, (&root, models), request, watch)?
        };
        let records: Result<Vec<Analysis>, _> =
            paths.iter().map(|path| Analysis::read(path)).collect();
        let records = records?;
        let within = |path: &PathBuf| {
            path.strip_prefix(&request.report).unwrap_or(path).to_string_lossy().into_owned()
        };
        let covers = if request.quick { &part.quick_covers } else { &part.covers };
        let found = ReproducedPart {
            name: part.name.clone(),
            title: part.title.clone(),
            covers: covers.clone(),
            records: paths.iter().map(within).collect(),
            failed: end.failed,
            left: end.left,
            other_builds: other_builds(&records),
            mixes: self.mixes,
            figures: figures(part),
        };
        Ok((found, records))
    }
}

/// The number of mixes of a plan, if it lists them.
fn counted(models: &Models, plan: &str) -> Option<usize> {
    listed(&models.text("plans", plan).ok()?.text)
}

fn failed(part: &Part, source: SweepError) -> ReproduceError {
    ReproduceError::Sweep { part: part.name.clone(), source: Box::new(source) }
}

fn unwritable(path: &Path) -> impl FnOnce(std::io::Error) -> ReproduceError {
    let path = path.to_path_buf();
    move |source| ReproduceError::Folder { path, source }
}

/// The number of `records` of each other build of the program.
fn other_builds(records: &[Analysis]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let builds = records.iter().filter_map(|record| Some(&record.cell.as_ref()?.build));
    for build in builds.filter(|build| *build != BUILD) {
        *counts.entry(build.clone()).or_insert(0) += 1;
    }
    counts
}

/// The sweep of `plan` into `folder`.
fn sweep_of(plan: &Path, folder: &Path, request: &ReproduceRequest) -> SweepRequest {
    SweepRequest {
        plan: plan.to_path_buf(),
        out: folder.to_path_buf(),
        resume: true,
        retry_failed: true,
        mixed_versions: request.mixed_versions,
        memory_bytes: request.memory_bytes,
        plan_hash: None,
        part: None,
        models: request.models.clone(),
        cache: request.cache.clone(),
    }
}

/// The records of a plan's cells in its order, and the counts of cells.
fn swept(
    part: &Part,
    plan: &Path,
    folder: &Path,
    request: &ReproduceRequest,
    watch: &dyn SweepWatch,
) -> Result<(Vec<PathBuf>, SweepProgress), ReproduceError> {
    let asked = sweep_of(plan, folder, request);
    let files = SweepFiles::new(folder);
    let (end, cells) = if request.so_far {
        so_far(&asked, watch).map_err(|source| failed(part, source))?
    } else {
        let end = match sweep(&asked, watch) {
            Ok(end) if end.left == 0 => end,
            Ok(end) => return Err(stopped(part, end.left)),
            Err(SweepError::Stopped { .. }) => return Err(stopped(part, 1)),
            Err(error) => return Err(failed(part, error)),
        };
        // The plan's cells are listed first.
        (end, files.cells()?.into_iter().take(end.done + end.failed).collect())
    };
    let records = cells.iter().map(|cell| files.record(&cell.key)).filter(|path| path.is_file());
    Ok((records.collect(), end))
}

fn stopped(part: &Part, left: usize) -> ReproduceError {
    ReproduceError::Stopped { part: part.name.clone(), left }
}

/// The record of a queue under all schemes; its name is the hash of the build, the part and all
/// model files.
fn queued(
    part: &Part,
    queue: &Path,
    (folder, models): (&Path, &Models),
    request: &ReproduceRequest,
    watch: &dyn SweepWatch,
) -> Result<(Vec<PathBuf>, SweepProgress), ReproduceError> {
    let machine = part.machine.clone().unwrap_or_default();
    let mut words = vec![BUILD.to_owned(), queue.display().to_string(), machine.clone()];
    words.extend(part.schemes.iter().cloned());
    words.extend(models.texts().flat_map(|(path, text)| [path.to_owned(), text.to_owned()]));
    let path = folder.join(format!("{:032x}.json", key(&words)));
    let done = SweepProgress { done: 1, ..SweepProgress::default() };
    if Analysis::read(&path).is_ok() {
        return Ok((vec![path], done));
    }
    if request.so_far {
        return Ok((Vec::new(), SweepProgress { left: 1, ..SweepProgress::default() }));
    }
    if watch.stopped() {
        return Err(stopped(part, 1));
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
    WholeFile::write(&path, record.to_json().as_bytes()).map_err(unwritable(&path))?;
    if watch.stopped() { Err(stopped(part, 1)) } else { Ok((vec![path], done)) }
}

/// The number of `mixes`, counting orders of the same applications once.
pub(super) fn distinct(mixes: &[Vec<String>]) -> usize {
    mixes.iter().map(sorted_mix).collect::<BTreeSet<_>>().len()
}

/// The number of mixes of the plan `text`; `None` if it does not list them.
pub(super) fn listed(text: &str) -> Option<usize> {
    let plan = Node::read("plan", text).ok()?;
    let mixes = plan.entries()?.get("mixes")?.entries()?;
    let lists: Vec<Vec<String>> = mixes.get("lists").filter(|_| mixes.len() == 1)?.decode().ok()?;
    Some(distinct(&lists))
}

#[cfg(test)]
mod tests {
    use gpumodel_report::results::CellRecord;

    use super::{Analysis, BUILD, listed, other_builds};

    #[test]
    fn records_are_counted_by_builds_that_are_not_this_one() {
        let record = |build: &str| Analysis {
            cell: Some(CellRecord { build: build.to_owned(), ..CellRecord::default() }),
            ..Analysis::default()
        };
        let records = [record("0.0.9+1"), record(BUILD), record("0.0.9+1"), Analysis::default()];
        assert_eq!(other_builds(&records), [("0.0.9+1".to_owned(), 2)].into());
    }

    #[test]
    fn orders_of_the_same_applications_are_counted_once() {
        let plan = "[mixes]\nlists = [['a', 'b'], ['b', 'a'], ['a', 'c'], ['a', 'a']]\n";
        assert_eq!(listed(plan), Some(3));
    }

    #[test]
    fn mixes_that_a_plan_does_not_list_are_not_counted() {
        assert_eq!(listed("[mixes]\nlists = [['a', 'b']]\nall = 2\n"), None);
        assert_eq!(listed("[mixes]\nall = 2\n"), None);
        assert_eq!(listed("[mixes]\nlists = ['a']\n"), None);
    }
}
