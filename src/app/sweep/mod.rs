//! Sweeps: the mixes x machines x schemes x seeds of a plan, each cell once.
//!
//! A cell is one mix on one machine under one scheme with one seed. Its key is the hash of
//! everything that can change its numbers; its record is the one that `analyze` would write.
//! Processes need no coordination: a record is written whole, a process that finds one skips
//! the cell, and two that run the same cell write the same bytes. Solo runs and the probes of
//! schemes run once and are kept in the cache folder.

mod estimate;
mod folder;
mod inputs;
mod merge;
mod mixes;
mod plan;
mod run;
mod slurm;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use gpumodel_core::toml::TomlError;
use gpumodel_core::units::{check_writable, with_causes};
use gpumodel_report::results::{CellRecord, RecordError, SweepEstimate, SweepFiles};
use gpumodel_sim::config::SpecError;

use crate::analyze::CONVERTING_PHASE;
use crate::cache::results::key;
use crate::error::location;
use crate::{Phase, RunError, Unwatched, Watch};
use folder::SweepFolder;
use inputs::{Cell, SweepInputs};
use plan::Plan;
use run::{LocalRun, MemoryBudget};

pub use merge::{MergeRequest, merge};
pub(crate) use plan::{PlanNames, plan_names};
pub use slurm::{SlurmError, SlurmOutcome, SlurmRequest, slurm_sweep};

/// The request of `sweep`.
#[derive(Clone, Debug)]
pub struct SweepRequest {
    /// The plan.
    pub plan: PathBuf,
    /// The folder of the sweep.
    pub out: PathBuf,
    /// Continue also in a folder with cells that are not of this plan.
    pub resume: bool,
    /// Run failed cells again.
    pub retry_failed: bool,
    /// Continue in a folder with cells of another version of the program; those with a record do
    /// not run again.
    pub mixed_versions: bool,
    /// The most memory for all cells that run at once; `None`: the free memory. A cell starts only
    /// if its memory is free, or if no other cell runs.
    pub memory_bytes: Option<u64>,
    /// The required hash of the plan's cells; `None`: any. Slurm jobs set it, and leave the tables
    /// to the last job.
    pub plan_hash: Option<String>,
    /// The cells to run, as ranges of their numbers in the plan, from 1; `None`: all.
    pub part: Option<Vec<(usize, usize)>>,
    /// A folder of model files that take precedence over the built-in ones.
    pub models: Option<PathBuf>,
    /// The cache folder, for converted traces and results.
    pub cache: PathBuf,
}

/// The counts of a sweep's cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepProgress {
    /// Cells with a record.
    pub done: usize,
    /// Cells that failed.
    pub failed: usize,
    /// Cells that have not ended.
    pub left: usize,
}

impl SweepProgress {
    /// Counts cells by whether they have a record; `None`: not ended.
    fn of(states: &[Option<bool>]) -> Self {
        let count = |wanted| states.iter().filter(|&&state| state == wanted).count();
        Self { done: count(Some(true)), failed: count(Some(false)), left: count(None) }
    }
}

/// Receives the progress of a sweep, from several threads, and may stop it.
pub trait SweepWatch: Watch {
    /// Called when a part of a reproduction begins, which is one of `of` sweeps and queues.
    fn part(&self, number: usize, of: usize, name: &str);

    /// Called once, before the first cell runs.
    fn begin(&self, so_far: SweepProgress);

    /// Called when a cell has ended; `done`: it has a record.
    fn ended(&self, done: bool);

    /// Whether no more cells should start.
    fn stopped(&self) -> bool;

    /// Receives a warning, as about a damaged file.
    fn say(&self, sentence: &str);
}

impl SweepWatch for Unwatched {
    fn part(&self, _: usize, _: usize, _: &str) {}

    fn begin(&self, _: SweepProgress) {}

    fn ended(&self, _: bool) {}

    fn stopped(&self) -> bool {
        false
    }

    fn say(&self, _: &str) {}
}

/// Estimates the selected cells of a plan on `threads` threads, from the times in the cache
/// folder: for each its number in the plan, how it has ended in the folder of the sweep, and the
/// records of other builds. The sums are those of the cells that have not ended. Converts
/// nothing: cells with an application that is not in the cache folder are not estimated.
///
/// # Errors
/// [`SweepError`]: an invalid plan, an application or a machine that cannot be used, or a damaged
/// list.
pub fn sweep_estimate(request: &SweepRequest, threads: usize) -> Result<SweepEstimate, SweepError> {
    let plan = Plan::read(&request.plan)?;
    part(request, plan.cells())?;
    let (inputs, cells) =
        with_cells(request, SweepInputs::found(plan, request.models.as_deref(), &request.cache)?)?;
    let part = part(request, cells.len())?;
    let cells = cells_at(&cells, &part);
    let files = SweepFiles::new(&request.out);
    let other_builds = folder::others(&inputs, &cells, &files)?;
    Ok(SweepEstimate {
        other_builds,
        ..estimate::estimate(&inputs, (&part, &cells), threads, &files)
    })
}

/// All cells of the plan, and the indices of the selected ones.
fn selected_cells(
    request: &SweepRequest,
    watch: &dyn SweepWatch,
) -> Result<(SweepInputs, Vec<Cell>, Vec<usize>), SweepError> {
    let plan = Plan::read(&request.plan)?;
    part(request, plan.cells())?;
    let (inputs, cells) = sweep_inputs(request, plan, watch)?;
    let part = part(request, cells.len())?;
    Ok((inputs, cells, part))
}

/// The cells at `indices`.
fn cells_at(cells: &[Cell], indices: &[usize]) -> Vec<Cell> {
    indices.iter().map(|&at| cells[at].clone()).collect()
}

/// The cells of a plan that have a record in the folder of the sweep, in order, and how many
/// failed or have not ended; runs none.
///
/// # Errors
/// [`SweepError`]: as [`remaining`], where the list of the folder is damaged, and where it has
/// cells of another build that were not asked for.
pub(super) fn so_far(
    request: &SweepRequest,
    watch: &dyn SweepWatch,
) -> Result<(SweepProgress, Vec<CellRecord>), SweepError> {
    let files = SweepFiles::new(&request.out);
    if !request.mixed_versions {
        folder::refuse_others(&files)?;
    }
    let (_, cells, part) = selected_cells(request, watch)?;
    let cells = cells_at(&cells, &part);
    let states = folder::states(&files, &cells, watch);
    let end = SweepProgress::of(&states);
    let done = cells.into_iter().zip(&states).filter(|(_, state)| **state == Some(true));
    Ok((end, done.map(|(cell, _)| cell.record).collect()))
}

/// Refuses a folder with cells of another build.
///
/// # Errors
/// [`SweepError::Mixed`], or a damaged list.
pub(super) fn refuse_other_builds(folder: &Path) -> Result<(), SweepError> {
    folder::refuse_others(&SweepFiles::new(folder))
}

/// Runs the cells of a plan that have not ended, and writes the tables of all.
///
/// # Errors
/// [`SweepError`] when the sweep cannot run. A cell that fails is recorded and counted.
pub fn sweep(request: &SweepRequest, watch: &dyn SweepWatch) -> Result<SweepProgress, SweepError> {
    // Of many jobs, the last one writes the tables.
    let tables = request.plan_hash.is_none();
    let phase = |number, what| watch.phase(Phase { number, of: usize::from(tables) + 2, what });
    phase(1, CONVERTING_PHASE);
    let OpenSweep { folder, inputs, cells: all, part, .. } = open(request, watch)?;
    folder.list(&all)?;
    let cells = cells_at(&all, &part);
    if request.retry_failed {
        folder.clear_failures(&cells)?;
    }
    let states = folder.states(&cells, watch);
    let budget = MemoryBudget::new(request.memory_bytes);
    phase(2, "cells, after what they need of each application alone");
    let end = LocalRun::new((&inputs, &folder), (&cells, &states), watch, budget).run()?;
    if tables {
        phase(3, "tables");
        folder.tables(watch)?;
    }
    Ok(end)
}

/// Writes the tables of the sweep in the folder `out`, and counts its cells.
///
/// # Errors
/// [`SweepError`]: a folder without a sweep, a damaged list, or tables that cannot be written.
pub fn sweep_tables(out: &Path, watch: &dyn SweepWatch) -> Result<SweepProgress, SweepError> {
    let files = SweepFiles::new(out);
    if !files.begun() {
        return Err(SweepError::NoSweep { folder: out.to_path_buf() });
    }
    folder::write_tables(&files, |sentence| watch.say(sentence))?;
    let mut end = SweepProgress::default();
    for cell in files.cells()? {
        let count = match files.outcome(&cell.key) {
            Ok(Some(Ok(_))) => &mut end.done,
            Ok(Some(Err(_))) => &mut end.failed,
            // A damaged file has been reported; its cell runs again.
            Ok(None) | Err(_) => &mut end.left,
        };
        *count += 1;
    }
    Ok(end)
}

/// A sweep with a valid plan and a writable folder.
struct OpenSweep {
    folder: SweepFolder,
    inputs: SweepInputs,
    /// All cells of the plan.
    cells: Vec<Cell>,
    /// The indices of the selected ones.
    part: Vec<usize>,
    /// The hash of the plan's cells.
    hash: String,
}

/// Opens a sweep, and refuses a folder that the request does not allow.
fn open(request: &SweepRequest, watch: &dyn SweepWatch) -> Result<OpenSweep, SweepError> {
    let plan = Plan::read(&request.plan)?;
    part(request, plan.cells())?;
    if !request.mixed_versions {
        folder::refuse_others(&SweepFiles::new(&request.out))?;
    }
    check_writable(&request.out).map_err(SweepError::folder(&request.out))?;
    let folder = SweepFolder::open(&request.out)?;
    let sweep_inputs = sweep_inputs(request, plan, watch).and_then(|(inputs, cells)| {
        let hash = plan_hash(&cells);
        check_hash(request, &hash)?;
        check_other_cells(request, &cells, watch)?;
        Ok((part(request, cells.len())?, inputs, cells, hash))
    });
    match sweep_inputs {
        Ok((part, inputs, cells, hash)) => Ok(OpenSweep { folder, inputs, cells, part, hash }),
        Err(error) => {
            folder.remove_if_empty();
            Err(error)
        }
    }
}

/// Refuses a folder with cells that are not of the plan, or warns of them where they are
/// accepted; not in jobs, since the submitting process has warned.
fn check_other_cells(
    request: &SweepRequest,
    cells: &[Cell],
    watch: &dyn SweepWatch,
) -> Result<(), SweepError> {
    let files = SweepFiles::new(&request.out);
    let own: BTreeSet<&str> = cells.iter().map(|cell| cell.record.key.as_str()).collect();
    let listed = if request.plan_hash.is_none() { files.cells()? } else { Vec::new() };
    let other = |cell: &&CellRecord| !own.contains(cell.key.as_str()) && files.has_ended(&cell.key);
    let others = listed.iter().filter(other).count();
    if others > 0 && !request.resume && !request.retry_failed {
        return Err(SweepError::OtherPlan { folder: request.out.clone(), cells: others });
    }
    if others > 0 {
        watch.say(&format!(
            "{} holds {others} cells that are not of this plan: they stay, also in the tables; \
             column store_hashes distinguishes applications of one name, and plot and compare \
             take a table with the rows that you choose",
            request.out.display()
        ));
    }
    Ok(())
}

/// The hash of the cells of a plan, in order; it makes their numbers valid.
fn plan_hash(cells: &[Cell]) -> String {
    let keys: Vec<String> = cells.iter().map(|cell| cell.record.key.clone()).collect();
    format!("{:032x}", key(&keys))
}

/// Refuses a plan whose cells do not have the required hash.
fn check_hash(request: &SweepRequest, found: &str) -> Result<(), SweepError> {
    match &request.plan_hash {
        Some(expected) if expected != found => {
            Err(SweepError::PlanChanged { plan: request.plan.clone() })
        }
        _ => Ok(()),
    }
}

fn sweep_inputs(
    request: &SweepRequest,
    plan: Plan,
    watch: &dyn SweepWatch,
) -> Result<(SweepInputs, Vec<Cell>), SweepError> {
    let (models, cache) = (request.models.as_deref(), &request.cache);
    with_cells(request, SweepInputs::new(plan, models, cache, watch)?)
}

/// The inputs with their cells; those of other versions where they are accepted.
fn with_cells(
    request: &SweepRequest,
    inputs: SweepInputs,
) -> Result<(SweepInputs, Vec<Cell>), SweepError> {
    let mut cells = inputs.cells()?;
    if request.mixed_versions {
        folder::adopt(&inputs, &mut cells, &SweepFiles::new(&request.out))?;
    }
    Ok((inputs, cells))
}

/// The indices of the selected cells, out of `count`, in order.
fn part(request: &SweepRequest, count: usize) -> Result<Vec<usize>, SweepError> {
    let Some(ranges) = &request.part else { return Ok((0..count).collect()) };
    let mut places = BTreeSet::new();
    for &(first, last) in ranges {
        if first < 1 || first > last || last > count {
            return Err(SweepError::Plan {
                path: request.plan.clone(),
                line: None,
                message: format!("expected cells from 1 to {count}, found {first}-{last}"),
            });
        }
        places.extend(first - 1..last);
    }
    Ok(places.into_iter().collect())
}

/// Why a sweep or a merge was refused, or had to stop.
#[derive(Debug, Error)]
pub enum SweepError {
    /// The plan is no TOML, or has unknown keys.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The plan is invalid.
    #[error(transparent)]
    Toml(#[from] Box<TomlError>),
    /// An invalid value.
    #[error("{}: {message}", location(path, *line))]
    Plan {
        /// The plan.
        path: PathBuf,
        /// The line, from 1; `None`: the error is about the whole plan.
        line: Option<u32>,
        /// Key, what was expected and what was found.
        message: String,
    },
    /// An application or a machine of the plan cannot be used.
    #[error("{}: {key}", location(path, *line))]
    Part {
        /// The plan.
        path: PathBuf,
        /// The line, as of [`SweepError::Plan`].
        line: Option<u32>,
        /// The key.
        key: String,
        /// Why.
        source: Box<RunError>,
    },
    /// Several applications of the plan cannot be used.
    #[error("{}: {} applications cannot be used{}", path.display(), invalid.len(), listed(invalid))]
    Apps {
        /// The plan.
        path: PathBuf,
        /// Why, for each in the order of the plan.
        invalid: Vec<SweepError>,
    },
    /// The cells of the plan have changed since the script of a job was written, which names them
    /// by number.
    #[error(
        "{}: has other cells than when the script of this job was written: the plan, a trace, a \
         machine or the program has changed; nothing was run: undo the change, or write and \
         submit the scripts again", plan.display()
    )]
    PlanChanged {
        /// The plan.
        plan: PathBuf,
    },
    /// Slurm refuses or does not answer.
    #[error(transparent)]
    Slurm(#[from] SlurmError),
    /// The folder holds cells of another plan, and no option accepts them.
    #[error(
        "{} holds {cells} cells that are not of this plan: name another folder, or add --force \
         to keep them there and continue",
        folder.display()
    )]
    OtherPlan {
        /// The folder.
        folder: PathBuf,
        /// Cells of other plans there, done or failed.
        cells: usize,
    },
    /// The output folder of a merge holds other cells.
    #[error(
        "{} holds {cells} cells that are not those of the folders to be joined: name another folder",
        folder.display()
    )]
    OtherContents {
        /// The folder.
        folder: PathBuf,
        /// Cells there, done or failed.
        cells: usize,
    },
    /// An interrupt before the first cell.
    #[error("interrupted while {meanwhile}")]
    Stopped {
        /// What was done meanwhile.
        meanwhile: String,
    },
    /// A file of the sweep's folder cannot be read or written. Existing files are unchanged: the
    /// same command continues the sweep.
    #[error("cannot write into {}", path.display())]
    Folder {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of a sweep's folder is damaged.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A folder that is to be merged holds no sweep.
    #[error("{}: expected the folder of a sweep, with a file sweep.json", folder.display())]
    NoSweep {
        /// The folder.
        folder: PathBuf,
    },
    /// A folder that is to be merged is the one that is to be written.
    #[error("{}: a folder cannot be merged into itself; name a new one with --out", folder.display())]
    IntoItself {
        /// The folder.
        folder: PathBuf,
    },
    /// Cells of several builds of the program.
    #[error(
        "cells of several versions: {versions}; numbers of different versions should not share a \
         table: run them again with one version, or add --mixed-versions"
    )]
    Mixed {
        /// Each version with a folder that has it.
        versions: String,
    },
    /// Two records of one cell with different numbers.
    #[error(
        "{} and {} are records of the same cell and differ: one of them was changed by hand, or \
         this is a defect of the program",
        one.display(),
        other.display()
    )]
    Differ {
        /// A record.
        one: PathBuf,
        /// Another one.
        other: PathBuf,
    },
}

/// Errors with their causes, one per line.
fn listed(errors: &[SweepError]) -> String {
    errors.iter().map(|error| format!("\n  {}", with_causes(error).join(": "))).collect()
}

impl SweepError {
    /// An error of the file system at `path`.
    fn folder(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Folder { path, source }
    }
}

/// Why a cell has no record.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CellFailure {
    /// The error, then its causes.
    errors: Vec<String>,
    /// The cell would fail again in every run.
    refused: bool,
}

impl From<RunError> for CellFailure {
    fn from(error: RunError) -> Self {
        Self { errors: with_causes(&error), refused: error.refuses() }
    }
}
