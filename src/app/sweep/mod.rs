//! Sweeps: the mixes x machines x schemes x seeds of a plan, each cell once.
//!
//! A cell is one mix on one machine under one scheme with one seed. Its key is the hash of
//! everything that can change its numbers; its record is the one that `analyze` would write.
//! Processes need no coordination: a record is written whole, a process that finds one skips
//! the cell, and two that run the same cell write the same bytes. Solo runs and the probes of
//! schemes run once and are kept in the cache folder.

mod error;
mod estimate;
mod folder;
mod inputs;
mod merge;
mod mixes;
mod plan;
mod run;
mod slurm;
mod versions;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gpumodel_core::units::check_writable;
use gpumodel_report::results::{CellRecord, SweepEstimate, SweepFiles};

use crate::analyze::CONVERTING_PHASE;
use crate::cache::results::key;
use crate::{Phase, Unwatched, Watch};
use folder::SweepFolder;
use inputs::{Cell, SweepInputs};
use plan::Plan;
use run::{LocalRun, MemoryBudget};

pub use error::SweepError;
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
    let other_builds = versions::others(&inputs, &cells, &files)?;
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
        versions::refuse_others(&files)?;
    }
    let (_, cells, part) = selected_cells(request, watch)?;
    let cells = cells_at(&cells, &part);
    let states = folder::states(&files, &cells, watch);
    let count = |wanted| states.iter().filter(|&&state| state == wanted).count();
    let end =
        SweepProgress { done: count(Some(true)), failed: count(Some(false)), left: count(None) };
    let done = cells.into_iter().zip(&states).filter(|(_, state)| **state == Some(true));
    Ok((end, done.map(|(cell, _)| cell.record).collect()))
}

/// Refuses a folder with cells of another build.
///
/// # Errors
/// [`SweepError::Mixed`], or a damaged list.
pub(super) fn refuse_other_builds(folder: &Path) -> Result<(), SweepError> {
    versions::refuse_others(&SweepFiles::new(folder))
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
        versions::refuse_others(&SweepFiles::new(&request.out))?;
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
        versions::adopt(&inputs, &mut cells, &SweepFiles::new(&request.out))?;
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
