//! Sweeps under Slurm: job arrays over parts of the cells, and a job after them that
//! finishes what was lost and writes the tables.
//!
//! Every task works in the sweep's own folder, so nothing is to be fetched and a task
//! that is run again does only what is left. Scripts can be written alone
//! ([`slurm_scripts`]) or submitted and watched ([`slurm_sweep`]). What is submitted is
//! written down in the folder before and after, so that a watch can be taken up by
//! another process, on another machine.

mod answers;
mod ask;
mod commands;
mod error;
#[cfg(test)]
mod fakes;
mod fates;
mod jobs;
mod life;
mod losses;
mod request;
mod scripts;
mod submit;
mod tally;
mod tasks;
mod watcher;

use std::path::{Path, PathBuf};

use gpumodel_report::results::SweepFiles;

use super::error::{Failure, SweepError};
use super::folder::SweepFolder;
use super::stock::Cell;
use super::{Opened, SweepEnd, SweepRequest, SweepWatch, estimate, open};
use commands::{Cluster, Commands};
use jobs::Jobs;
use submit::Submitter;
use tally::Tally;
use watcher::{Deeds, Watcher};

pub use error::SlurmError;
pub use request::SlurmRequest;
pub use scripts::slurm_scripts;

/// How a watch ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlurmEnd {
    /// The cells.
    pub cells: SweepEnd,
    /// Jobs that go on without being watched: an interrupt has ended the watch.
    pub living: usize,
}

/// What all jobs of the sweep in `out` are called, so that one `squeue --name` shows and
/// one `scancel --name` ends them.
#[must_use]
pub fn slurm_name(out: &Path) -> String {
    let written = Jobs::read(&folder(out)).ok().flatten().map(|jobs| jobs.name);
    written.unwrap_or_else(|| jobs::name(out))
}

/// Submits the cells of a plan that have not ended, watches their jobs until all have, and
/// submits again what is lost. Jobs that a watch before has submitted are taken up. A cell
/// that is lost with all of its tasks is kept as failed, and so is one that was lost and needs
/// more than Slurm takes a job for; one whose task somebody has cancelled is left as it is.
///
/// # Errors
/// [`SweepError`]: what keeps the sweep from being run; [`SlurmError`] in it where Slurm
/// refuses or does not answer.
pub fn slurm_sweep(
    request: &SweepRequest,
    slurm: &SlurmRequest,
    watch: &dyn SweepWatch,
) -> Result<SlurmEnd, SweepError> {
    watched(&Commands, request, slurm, watch)
}

/// Where scripts, logs and the list of jobs lie.
fn folder(out: &Path) -> PathBuf {
    SweepFiles::new(out).root().join("slurm")
}

fn watched(
    cluster: &dyn Cluster,
    request: &SweepRequest,
    slurm: &SlurmRequest,
    watch: &dyn SweepWatch,
) -> Result<SlurmEnd, SweepError> {
    cluster.check()?;
    let place = folder(&slurm.out);
    unsubmitted(request, &place)?;
    let opened = open(request, watch)?;
    let (all, part) = (&opened.cells, opened.part.clone());
    let cells = &all[part.clone()];
    let folder = &opened.folder;
    let mine = folder.wait("watch", &Jobs::path(&place), watch)?;
    let forgiven = if request.retry_failed { folder.forgive(cells, watch)? } else { Vec::new() };
    let estimate = estimate::estimate(&opened.stock, (part.start, cells), 1);
    let keys: Vec<&str> = cells.iter().map(|cell| cell.record.key.as_str()).collect();
    let states = folder.states(cells, watch);
    folder.discard(cells, &states)?;
    let tally = Tally::new(&folder.files, &keys, states);
    let jobs = Jobs::open(&place, &slurm.out, &opened.hash)?;
    let submitter = Submitter::new(cluster, slurm, &estimate, jobs);
    let list = || folder.list(all, watch);
    let fail = |at: usize, errors| failed(folder, &cells[at], errors);
    let deeds = Deeds { list: &list, fail: &fail };
    let ended = Watcher::new(submitter, tally, (&opened.hash, &request.plan), watch, deeds)
        .and_then(|watcher| watcher.retrying(forgiven).run());
    let whole = request.part.is_none() || folder.complete(all);
    drop(mine);
    close(opened, ended, whole, watch)
}

/// Leaves the folder of a watch that has ended: writes the tables of the `whole` sweep where
/// no job has and nothing is left.
fn close(
    Opened { folder, cells, .. }: Opened,
    ended: Result<(SlurmEnd, bool), SweepError>,
    whole: bool,
    watch: &dyn SweepWatch,
) -> Result<SlurmEnd, SweepError> {
    // Nothing was submitted, so nobody has to go on with it.
    if !folder.files.begun() {
        folder.leave();
        return ended.map(|(end, _)| end);
    }
    let (end, written) = ended?;
    if end.cells.left == 0 && end.living == 0 && whole && !written {
        folder.tables(watch)?;
    }
    folder.clean(&cells);
    Ok(end)
}

/// Keeps a cell as failed that no task has ended, unless it has ended nonetheless; false:
/// somebody has it claimed.
fn failed(folder: &SweepFolder, cell: &Cell, errors: Vec<String>) -> Result<bool, SweepError> {
    let Some(_mine) = folder.take(&cell.record.key)? else { return Ok(false) };
    if folder.state(cell).ok().flatten().is_none() {
        folder.keep(cell, Err(Failure { errors, refused: false }))?;
    }
    Ok(true)
}

/// Refuses a sweep that was submitted before, unless it is to go on.
fn unsubmitted(request: &SweepRequest, place: &Path) -> Result<(), SweepError> {
    if request.resume || request.retry_failed || Jobs::read(place)?.is_none() {
        return Ok(());
    }
    let cells = SweepFiles::new(&request.out).ended();
    Err(SweepError::NotEmpty { folder: request.out.clone(), cells })
}
