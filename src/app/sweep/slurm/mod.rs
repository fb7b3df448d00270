//! Sweeps under Slurm: job arrays over static slices of the cells, and a job after them that
//! writes the tables.
//!
//! Every task works in the folder of the sweep, so no results need to be fetched, and a task
//! that Slurm requeues runs only the cells that are left. The folder lists what was submitted;
//! another call submits the cells that have no record by then.

mod commands;
mod scripts;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use gpumodel_report::results::{CellEstimate, FailedCell, SweepEstimate, SweepFiles};

use crate::sweep::estimate::estimate;
use crate::sweep::folder::write;
use crate::sweep::{OpenSweep, cells_at, open};
use crate::{SweepError, SweepProgress, SweepRequest, SweepWatch};
use commands::States;
use scripts::{JobLabel, Resources, Slice, list, quoted, ranges, slices};

pub use commands::SlurmError;
pub use scripts::SlurmRequest;

/// The outcome of a submission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlurmOutcome {
    /// The counts of the selected cells.
    pub cells: SweepProgress,
    /// Cells that failed before, each with its cause.
    pub failed: Vec<FailedCell>,
    /// Cells that earlier jobs lost: why, and their new resources.
    pub lost: Vec<String>,
    /// The numbers of submitted cells and tasks.
    pub submitted: (usize, usize),
    /// Job numbers; the job of the tables is last.
    pub jobs: Vec<u64>,
    /// The name of all jobs, for `squeue --name` and `scancel --name`.
    pub name: String,
    /// The script that submits the others, if they were only written.
    pub script: Option<PathBuf>,
}

/// Submits the cells of a plan without a record, except refused ones, which would fail again. If
/// none is missing, writes the tables.
///
/// # Errors
/// [`SweepError`] when the sweep cannot run; with a [`SlurmError`] when Slurm refuses or does not
/// answer, or earlier jobs of the folder have not ended.
pub fn slurm_sweep(
    request: &SweepRequest,
    slurm: &SlurmRequest,
    watch: &dyn SweepWatch,
) -> Result<SlurmOutcome, SweepError> {
    let place = SweepFiles::new(&slurm.out).slurm();
    let jobs = Jobs::read(&place, &slurm.out)?;
    let states = earlier_states(slurm, &jobs)?;
    let opened = open(request, watch)?;
    let OpenSweep { folder, inputs, cells: all, part, hash } = &opened;
    let cells = cells_at(all, part);
    let mut estimate = estimate(inputs, (part, &cells), 1, &folder.files);
    let found = folder.states(&cells, watch);
    estimate.cells.iter_mut().zip(&found).for_each(|(one, &state)| one.ended = state);
    let mut end = before(&jobs, &folder.files, &estimate);
    let missing: Vec<&CellEstimate> =
        estimate.cells.iter().filter(|one| needs_submission(request, &folder.files, one)).collect();
    if missing.is_empty() {
        return if slurm.print { Ok(end) } else { folder.tables(watch).map(|()| end) };
    }
    let lost_cells = LostCells { jobs: &jobs, states, plan_hash: hash };
    let groups = lost_cells.groups(slurm, &missing, &mut end.lost);
    let arrays = arrays(slurm, &estimate, &groups);
    end.submitted = (missing.len(), arrays.iter().map(|(slices, _)| slices.len()).sum());
    let mut submitter = Submitter { request: slurm, jobs, hash, folder: place, sent: Vec::new() };
    if slurm.print {
        end.script = Some(submitter.print(&arrays, all.len())?);
    } else {
        // If no job was submitted, the folder is removed.
        let sent = submitter.submit(&arrays, all.len()).inspect_err(|_| folder.remove_if_empty());
        sent.and_then(|()| folder.list(all))?;
        end.jobs = submitter.sent;
    }
    Ok(end)
}

/// The outcome before anything is submitted.
fn before(jobs: &Jobs, files: &SweepFiles, estimate: &SweepEstimate) -> SlurmOutcome {
    let with = |state| estimate.cells.iter().filter(move |one| one.ended == state);
    let count = |state| with(state).count();
    let failure = |one: &CellEstimate| FailedCell::read(&files.failure(&one.cell.key)).ok();
    SlurmOutcome {
        cells: SweepProgress {
            done: count(Some(true)),
            failed: count(Some(false)),
            left: count(None),
        },
        failed: with(Some(false)).filter_map(failure).collect(),
        name: jobs.name.clone(),
        ..SlurmOutcome::default()
    }
}

/// The states of earlier jobs of the sweep.
///
/// # Errors
/// When they have not ended.
fn earlier_states(slurm: &SlurmRequest, jobs: &Jobs) -> Result<States, SweepError> {
    if slurm.print {
        return Ok(States::new());
    }
    commands::check()?;
    let mut states = commands::queue(&jobs.name)?;
    let active = states.iter().filter(|(_, state)| commands::is_active(state));
    let active: BTreeSet<u64> = active.map(|((job, _), _)| *job).collect();
    if !active.is_empty() {
        let (folder, active) = (slurm.out.clone(), active.into_iter().collect());
        return Err(SlurmError::Queued { folder, active, name: jobs.name.clone() }.into());
    }
    let numbers: Vec<u64> = jobs.submissions.iter().map(|one| one.job).collect();
    if !numbers.is_empty() {
        states.extend(commands::accounts(&numbers));
    }
    Ok(states)
}

/// Whether to submit a cell: it has no record, and was not refused.
fn needs_submission(request: &SweepRequest, files: &SweepFiles, one: &CellEstimate) -> bool {
    let refused = || FailedCell::read(&files.failure(&one.cell.key)).is_ok_and(|one| one.refused);
    match one.ended {
        Some(true) => false,
        Some(false) => request.retry_failed || !refused(),
        None => true,
    }
}

/// Finds out why earlier jobs lost cells.
struct LostCells<'a> {
    jobs: &'a Jobs,
    states: States,
    plan_hash: &'a str,
}

impl LostCells<'_> {
    /// Groups cells by their least resources: those that ran out of memory or time request more.
    /// Adds to `lost` the reason for each cell without a recorded failure.
    fn groups<'c>(
        &self,
        slurm: &SlurmRequest,
        cells: &[&'c CellEstimate],
        lost: &mut Vec<String>,
    ) -> BTreeMap<Resources, Slice<'c>> {
        let mut groups: BTreeMap<Resources, Slice<'c>> = BTreeMap::new();
        let mut reasons: BTreeMap<String, Slice<'c>> = BTreeMap::new();
        for &cell in cells {
            let (need, words) = self.of(slurm, cell);
            groups.entry(need).or_default().push(cell);
            if let Some(words) = words.filter(|_| cell.ended.is_none()) {
                reasons.entry(words).or_default().push(cell);
            }
        }
        lost.extend(reasons.iter().map(|(why, cells)| format!("{}: {why}", list(&ranges(cells)))));
        groups
    }

    /// The least resources of a cell, and why it was lost; `None` if it was in no task.
    fn of(&self, slurm: &SlurmRequest, cell: &CellEstimate) -> (Resources, Option<String>) {
        let Some((one, place)) = self.jobs.last(self.plan_hash, cell.number) else {
            return (Resources::default(), None);
        };
        let task = format!("task {}_{place}", one.job);
        let Resources { megabytes, minutes } = one.resources;
        match self.states.get(&(one.job, place)).map(String::as_str) {
            Some("OUT_OF_MEMORY") => {
                let megabytes = megabytes.saturating_mul(slurm.mem_factor);
                let why = format!("{task} ran out of memory: requests {megabytes}M now");
                (Resources { megabytes, minutes: 0 }, Some(why))
            }
            Some("TIMEOUT") => {
                let minutes = minutes.saturating_mul(slurm.time_factor);
                let why = format!("{task} ran out of time: requests {minutes} minutes now");
                (Resources { megabytes: 0, minutes }, Some(why))
            }
            state => {
                let state = state.map_or_else(String::new, |state| format!(" ({task} {state})"));
                let why = format!("no record and no cause: ended by the scheduler{state}");
                (Resources::default(), Some(why))
            }
        }
    }
}

/// The slices of an array, and the resources of each.
type Array<'a> = (Vec<Slice<'a>>, Resources);

/// The arrays of all groups, each as large as the cluster allows.
fn arrays<'a>(
    slurm: &SlurmRequest,
    estimate: &SweepEstimate,
    groups: &BTreeMap<Resources, Slice<'a>>,
) -> Vec<Array<'a>> {
    let limit = if slurm.print { commands::DEFAULT_ARRAY_SIZE } else { commands::array_limit() };
    let whole = groups.values().flatten().map(|cell| cell.core_milliseconds.max(1)).sum();
    let mut arrays = Vec::new();
    for (need, cells) in groups {
        let slices = slices(cells, slurm.count(cells, whole));
        for slices in slices.chunks(limit) {
            let resources = slurm.resources(slices, estimate.alone_milliseconds).at_least(*need);
            arrays.push((slices.to_vec(), resources));
        }
    }
    arrays
}

/// Writes scripts, submits them and lists the jobs.
struct Submitter<'a> {
    request: &'a SlurmRequest,
    jobs: Jobs,
    hash: &'a str,
    folder: PathBuf,
    sent: Vec<u64>,
}

impl Submitter<'_> {
    /// Submits arrays, then the job that writes the tables of `cells` cells.
    fn submit(&mut self, arrays: &[Array<'_>], cells: usize) -> Result<(), SweepError> {
        for (slices, resources) in arrays {
            let tasks = slices.iter().map(|slice| ranges(slice)).collect();
            self.send("cells", (tasks, *resources), |request, label| {
                request.array(label, slices, *resources)
            })?;
        }
        let resources = SlurmRequest::ask_tables(cells);
        self.send("tables", (Vec::new(), resources), |request, label| {
            request.tables(label, resources)
        })
    }

    /// Submits one script; one without tasks starts after all previous ones.
    fn send(
        &mut self,
        kind: &str,
        (tasks, resources): (Vec<Vec<(u64, u64)>>, Resources),
        text: impl FnOnce(&SlurmRequest, JobLabel<'_>) -> String,
    ) -> Result<(), SweepError> {
        let label = format!("{kind}-{}", self.jobs.submissions.len() + 1);
        let script = self.script(&label, text)?;
        let after = if tasks.is_empty() { &self.sent[..] } else { &[] };
        let job = commands::submit(&script, after).map_err(|source| self.partly(source))?;
        self.sent.push(job);
        let plan_hash = self.hash.to_owned();
        self.jobs.add(&self.folder, Submission { label, job, plan_hash, tasks, resources })
    }

    /// An error, with the jobs submitted before it.
    fn partly(&self, source: SlurmError) -> SlurmError {
        if self.sent.is_empty() {
            return source;
        }
        let (submitted, name) = (self.sent.clone(), self.jobs.name.clone());
        SlurmError::PartlySubmitted { submitted, name, source: Box::new(source) }
    }

    /// Writes the script `label`.
    fn script(
        &self,
        label: &str,
        text: impl FnOnce(&SlurmRequest, JobLabel<'_>) -> String,
    ) -> Result<PathBuf, SweepError> {
        let Self { folder, jobs, hash, .. } = self;
        fs::create_dir_all(folder).map_err(SweepError::folder(folder))?;
        let path = folder.join(format!("{label}.sh"));
        let label = JobLabel { folder, name: &jobs.name, script: label, plan_hash: hash };
        write(&path, &text(self.request, label)).map(|()| path)
    }

    /// Writes all scripts and one that submits them; returns the latter.
    fn print(&self, arrays: &[Array<'_>], cells: usize) -> Result<PathBuf, SweepError> {
        let mut lines = vec![String::from("#!/bin/sh\n# Submits the sweep. Run it once.\nset -e")];
        let mut after = Vec::new();
        for (number, (slices, resources)) in arrays.iter().enumerate() {
            let array = |request: &SlurmRequest, label: JobLabel<'_>| {
                request.array(label, slices, *resources)
            };
            let script = self.script(&format!("cells-{}", number + 1), array)?;
            lines.push(format!("job{number}=$(sbatch --parsable {})", quoted(&script)));
            after.push(format!("${{job{number}%%;*}}"));
        }
        let resources = SlurmRequest::ask_tables(cells);
        let script = self.script("tables", |request, label| request.tables(label, resources))?;
        lines.push(format!("sbatch --dependency=afterany:{} {}", after.join(":"), quoted(&script)));
        let path = self.folder.join("submit.sh");
        write(&path, &(lines.join("\n") + "\n")).map(|()| path)
    }
}

/// Value of [`Jobs::schema`].
const SCHEMA: &str = "gpumodel.slurm/2";

/// The list of submitted jobs, in order: `slurm/jobs.json` in the folder of a sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Jobs {
    schema: String,
    /// The name of all jobs.
    name: String,
    submissions: Vec<Submission>,
}

/// A submitted script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Submission {
    /// The name of its script, without extension.
    label: String,
    /// The job number.
    job: u64,
    /// The hash of the plan's cells.
    plan_hash: String,
    /// By array index: ranges of cell numbers in the plan. Empty for the job of the tables.
    tasks: Vec<Vec<(u64, u64)>>,
    /// The resources of each task.
    #[serde(flatten)]
    resources: Resources,
}

/// The name of the jobs of the sweep in `out`, for `squeue --name` and `scancel --name`.
fn name(out: &Path) -> String {
    let path = std::path::absolute(out).unwrap_or_else(|_| out.to_path_buf());
    format!("gpumodel-{:016x}", xxh3_64(path.as_os_str().as_encoded_bytes()))
}

impl Jobs {
    /// Reads the list in `folder`, the folder of scripts of the sweep in `out`.
    fn read(folder: &Path, out: &Path) -> Result<Self, SweepError> {
        let path = file(folder);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let (schema, name) = (SCHEMA.to_owned(), name(out));
                return Ok(Self { schema, name, submissions: Vec::new() });
            }
            Err(source) => return Err(SweepError::Folder { path, source }),
        };
        let invalid = |message| SlurmError::Jobs { path: path.clone(), message };
        let jobs: Self =
            serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))?;
        if jobs.schema != SCHEMA {
            let found = &jobs.schema;
            Err(invalid(format!("expected schema \"{SCHEMA}\", found \"{found}\"")))?;
        }
        Ok(jobs)
    }

    /// Adds a submission and writes the file.
    fn add(&mut self, folder: &Path, one: Submission) -> Result<(), SweepError> {
        self.submissions.push(one);
        let text = serde_json::to_string_pretty(self).expect("jobs are plain data");
        write(&file(folder), &(text + "\n"))
    }

    /// The last task with the cell of this number: its submission and array index.
    fn last(&self, plan_hash: &str, cell: u64) -> Option<(&Submission, usize)> {
        let holds = |task: &Vec<(u64, u64)>| task.iter().any(|&(a, b)| (a..=b).contains(&cell));
        let of = |one: &Submission| one.tasks.iter().position(holds);
        let same = self.submissions.iter().rev().filter(|one| one.plan_hash == plan_hash);
        same.filter_map(|one| Some((one, of(one)?))).next()
    }
}

fn file(folder: &Path) -> PathBuf {
    folder.join("jobs.json")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{Jobs, Resources, Submission, file};

    #[test]
    fn lists_round_trip_and_damage_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let read = || Jobs::read(folder.path(), Path::new("/out"));
        let mut jobs = read().unwrap();
        for job in [10, 11] {
            let tasks = vec![vec![(1, 3), (5, 5)], vec![(4, 4)]];
            let resources = Resources { megabytes: job, minutes: 7 };
            let (label, plan_hash) = (format!("cells-{job}"), String::from("7f"));
            let one = Submission { label, job, plan_hash, tasks, resources };
            jobs.add(folder.path(), one).unwrap();
        }
        assert_eq!(read().unwrap(), jobs);
        let last = |hash: &str, cell| jobs.last(hash, cell).map(|(one, at)| (one.job, at));
        assert_eq!((last("7f", 2), last("7f", 4)), (Some((11, 0)), Some((11, 1))));
        assert_eq!((last("7f", 6), last("80", 2)), (None, None));
        let other = "{\"schema\":\"x\",\"name\":\"\",\"submissions\":[]}";
        for (text, words) in [("{", "EOF while"), (other, "expected schema")] {
            fs::write(file(folder.path()), text).unwrap();
            let said = read().unwrap_err().to_string();
            assert!(said.contains("jobs.json") && said.contains(words), "{said}");
        }
    }
}
