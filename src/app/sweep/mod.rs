//! Sweeps: mixes x machines x schemes x seeds as a plan says, each cell once, nothing
//! lost when a process ends.
//!
//! A cell is one mix on one machine under one scheme with one seed. Its key is the hash
//! of everything that can change its numbers, its record is what `analyze` would have
//! written. Processes need not know of each other: a record appears whole under its name, a
//! process that finds one skips the cell, and two that run the same cell write the same bytes. Applications alone and what schemes ask for before they start are found out
//! once and kept in the cache folder.

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

use crate::cache::results::key;
use crate::{Unwatched, Watch};
use folder::SweepFolder;
use inputs::{Cell, SweepInputs};
use plan::Plan;
use run::{LocalRun, MemoryBudget};

pub use error::SweepError;
pub use merge::{MergeRequest, merge};
pub(crate) use plan::{PlanNames, plan_names};
pub use slurm::{SlurmError, SlurmOutcome, SlurmRequest, slurm_sweep};

/// What `sweep` is asked for.
#[derive(Clone, Debug)]
pub struct SweepRequest {
    /// The plan.
    pub plan: PathBuf,
    /// The folder of the sweep.
    pub out: PathBuf,
    /// Go on with the cells that are there.
    pub resume: bool,
    /// Run those again that failed.
    pub retry_failed: bool,
    /// Go on in a folder that holds cells of another version of the program: those that
    /// have a record are not run again.
    pub mixed_versions: bool,
    /// Bytes that cells may take together at most; `None`: as many as are free. In any case
    /// a cell begins only where that much is free, unless none runs.
    pub memory_bytes: Option<u64>,
    /// Hash that the cells of the plan must have; `None`: any. Who names it is one of many
    /// jobs, and leaves the tables to the job after them.
    pub plan_hash: Option<String>,
    /// The part of the plan's cells to run, as ranges of their numbers from 1; `None`: all.
    pub part: Option<Vec<(usize, usize)>>,
    /// A folder of model files before the built-in ones.
    pub models: Option<PathBuf>,
    /// Where converted traces and what was found out are kept.
    pub cache: PathBuf,
}

/// How far a sweep has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepProgress {
    /// Cells with a record.
    pub done: usize,
    /// Cells that failed.
    pub failed: usize,
    /// Cells that have not ended.
    pub left: usize,
}

/// Somebody who watches a sweep. Called from several threads.
pub trait SweepWatch: Watch {
    /// Told once, before the first cell runs.
    fn begin(&self, so_far: SweepProgress);

    /// Told whenever a cell has ended, with whether it has a record.
    fn ended(&self, done: bool);

    /// Asked whether no more cells are to be begun.
    fn stopped(&self) -> bool;

    /// Told what somebody should know meanwhile: what is damaged.
    fn say(&self, sentence: &str);
}

impl SweepWatch for Unwatched {
    fn begin(&self, _: SweepProgress) {}

    fn ended(&self, _: bool) {}

    fn stopped(&self) -> bool {
        false
    }

    fn say(&self, _: &str) {}
}

/// The cells of a plan that were asked for, with their numbers in the plan, how they have ended
/// in the folder of the sweep, and of how many it has records of other builds that were not
/// asked for. The sums are what those that have not ended are thought to take on `threads`
/// threads, by what the cache folder knows of the time of cells.
///
/// # Errors
/// [`SweepError`]: a wrong plan, an application or a machine that cannot be used, and where
/// the list of the folder is damaged.
pub fn sweep_estimate(
    request: &SweepRequest,
    threads: usize,
    watch: &dyn SweepWatch,
) -> Result<SweepEstimate, SweepError> {
    let (inputs, cells, part) = selected_cells(request, watch)?;
    let cells = chosen(&cells, &part);
    let files = SweepFiles::new(&request.out);
    let other_builds = versions::others(&inputs, &cells, &files)?;
    Ok(SweepEstimate {
        other_builds,
        ..estimate::estimate(&inputs, (&part, &cells), threads, &files)
    })
}

/// All cells of the plan, and the places of those that were asked for.
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

/// The cells at `places`.
fn chosen(cells: &[Cell], places: &[usize]) -> Vec<Cell> {
    places.iter().map(|&at| cells[at].clone()).collect()
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
    let cells = chosen(&cells, &part);
    let states = folder::states(&files, &cells, watch);
    let count = |wanted| states.iter().filter(|&&state| state == wanted).count();
    let end =
        SweepProgress { done: count(Some(true)), failed: count(Some(false)), left: count(None) };
    let done = cells.into_iter().zip(&states).filter(|(_, state)| **state == Some(true));
    Ok((end, done.map(|(cell, _)| cell.record).collect()))
}

/// Refuses a folder whose cells another build has made.
///
/// # Errors
/// [`SweepError::Mixed`], and where the list of the folder is damaged.
pub(super) fn refuse_other_builds(folder: &Path) -> Result<(), SweepError> {
    versions::refuse_others(&SweepFiles::new(folder))
}

/// Runs the cells of a plan that have not ended, and writes the tables of all.
///
/// # Errors
/// [`SweepError`]: what keeps the sweep from being run. A cell that fails is kept as
/// such, and counted.
pub fn sweep(request: &SweepRequest, watch: &dyn SweepWatch) -> Result<SweepProgress, SweepError> {
    let OpenSweep { folder, inputs, cells: all, part, .. } = open(request, watch)?;
    folder.list(&all)?;
    let cells = chosen(&all, &part);
    if request.retry_failed {
        folder.clear_failures(&cells)?;
    }
    let states = folder.states(&cells, watch);
    let budget = MemoryBudget::new(request.memory_bytes);
    let end = LocalRun::new((&inputs, &folder), (&cells, &states), watch, budget).run()?;
    // Of many jobs, the one after them writes the tables.
    if request.plan_hash.is_none() {
        folder.tables(watch)?;
    }
    Ok(end)
}

/// Writes the tables of the sweep in the folder `out`, and counts its cells.
///
/// # Errors
/// [`SweepError`]: a folder that holds no sweep, a damaged list, or tables that cannot be
/// written.
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

/// A sweep whose plan is understood and whose folder can be written.
struct OpenSweep {
    folder: SweepFolder,
    inputs: SweepInputs,
    /// All cells of the plan.
    cells: Vec<Cell>,
    /// The places of those that were asked for.
    part: Vec<usize>,
    /// Hash of the cells of the plan.
    hash: String,
}

/// Opens a sweep; refuses what was not asked for.
fn open(request: &SweepRequest, watch: &dyn SweepWatch) -> Result<OpenSweep, SweepError> {
    let plan = Plan::read(&request.plan)?;
    part(request, plan.cells())?;
    let files = SweepFiles::new(&request.out);
    let go_on = request.resume || request.retry_failed;
    if !go_on && (files.begun() || files.ended() > 0) {
        let (folder, cells) = (request.out.clone(), files.ended());
        return Err(SweepError::NotEmpty { folder, cells });
    }
    if !request.mixed_versions {
        versions::refuse_others(&files)?;
    }
    check_writable(&request.out).map_err(SweepError::folder(&request.out))?;
    let folder = SweepFolder::open(&request.out)?;
    let sweep_inputs = sweep_inputs(request, plan, watch).and_then(|(inputs, cells)| {
        let hash = plan_hash(&cells);
        expected(request, &hash)?;
        Ok((part(request, cells.len())?, inputs, cells, hash))
    });
    match sweep_inputs {
        Ok((part, inputs, cells, hash)) => {
            note_other_cells(request, &cells, watch)?;
            Ok(OpenSweep { folder, inputs, cells, part, hash })
        }
        Err(error) => {
            folder.remove_if_empty();
            Err(error)
        }
    }
}

/// Says that the folder holds cells that are not of the plan. Jobs leave it to who submitted
/// them.
fn note_other_cells(
    request: &SweepRequest,
    cells: &[Cell],
    watch: &dyn SweepWatch,
) -> Result<(), SweepError> {
    let files = SweepFiles::new(&request.out);
    let own: BTreeSet<&str> = cells.iter().map(|cell| cell.record.key.as_str()).collect();
    let listed = if request.plan_hash.is_none() { files.cells()? } else { Vec::new() };
    let other = |cell: &&CellRecord| !own.contains(cell.key.as_str()) && files.has_ended(&cell.key);
    let others = listed.iter().filter(other).count();
    if others > 0 {
        watch.say(&format!(
            "{} holds {others} cells that are not of this plan: they stay, also in the tables; \
             column store_hashes tells applications of one name apart, and plot and compare take \
             a table with the rows that you choose",
            request.out.display()
        ));
    }
    Ok(())
}

/// Hash of the cells of a plan, in order: who names a cell by its number means one of these.
fn plan_hash(cells: &[Cell]) -> String {
    let keys: Vec<String> = cells.iter().map(|cell| cell.record.key.clone()).collect();
    format!("{:032x}", key(&keys))
}

/// Refuses a plan that has other cells than somebody expects.
fn expected(request: &SweepRequest, found: &str) -> Result<(), SweepError> {
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
    let inputs = SweepInputs::new(plan, models, cache, watch)?;
    let mut cells = inputs.cells()?;
    if request.mixed_versions {
        versions::adopt(&inputs, &mut cells, &SweepFiles::new(&request.out))?;
    }
    Ok((inputs, cells))
}

/// The places of the cells that were asked for, out of `count`, in order.
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
