//! Runs cells on all threads of this machine, as many at once as fit in memory.
//!
//! Memory is approximate: estimates may be off by several times, and other processes may take
//! more.

use std::any::Any;
use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::Scope;
use sysinfo::System;

use gpumodel_core::units::to_u64;

use super::CellFailure;
use super::estimate::{self, MACHINE_BYTES};
use super::{Cell, SweepFolder, SweepInputs};
use crate::cache::times::measured;
use crate::{RunError, SweepError, SweepProgress, SweepWatch};

/// A sweep that runs in this process.
pub(super) struct LocalRun<'a> {
    inputs: &'a SweepInputs,
    folder: &'a SweepFolder,
    cells: &'a [Cell],
    watch: &'a dyn SweepWatch,
    budget: MemoryBudget,
    /// By cell: the most machines that run at once.
    machines: Vec<u64>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<WorkItem>,
    load: Load,
    end: SweepProgress,
    broken: Option<SweepError>,
}

/// Running work, or work to start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load {
    jobs: usize,
    /// Bytes of applications.
    bytes: u64,
    /// Machines that could run at once with enough threads.
    machines: u64,
}

impl Load {
    /// Whether a thread and memory are free for one more job; `fits` checks the memory of all and
    /// of the job. The first job always starts.
    fn admits(self, job: Self, threads: usize, fits: impl FnOnce(u64, u64) -> bool) -> bool {
        let mut all = self;
        all.add(job);
        let fits = || fits(all.memory(threads), job.memory(threads));
        self.jobs == 0 || (self.jobs < threads && fits())
    }

    /// Bytes of all: together they run at most one machine per thread.
    fn memory(self, threads: usize) -> u64 {
        let machines = self.machines.min(to_u64(threads)).saturating_mul(MACHINE_BYTES);
        self.bytes.saturating_add(machines)
    }

    fn add(&mut self, job: Self) {
        self.jobs += job.jobs;
        self.bytes = self.bytes.saturating_add(job.bytes);
        self.machines = self.machines.saturating_add(job.machines);
    }

    fn take(&mut self, job: Self) {
        self.jobs -= job.jobs;
        self.bytes -= job.bytes;
        self.machines -= job.machines;
    }
}

impl<'a> LocalRun<'a> {
    /// A run of the cells that are open by `states`.
    pub(super) fn new(
        (inputs, folder): (&'a SweepInputs, &'a SweepFolder),
        (cells, states): (&'a [Cell], &[Option<bool>]),
        watch: &'a dyn SweepWatch,
        budget: MemoryBudget,
    ) -> Self {
        let end = SweepProgress::of(states);
        let mut open: Vec<usize> = (0..cells.len()).filter(|&at| states[at].is_none()).collect();
        // Long cells first, so that none runs alone at the end.
        open.sort_by_key(|&at| (std::cmp::Reverse(estimate::work(inputs, &cells[at])), at));
        let waiting = waiting(cells, open);
        let state = Mutex::new(State { waiting, end, ..State::default() });
        let machines = estimate::machines_of(inputs, cells);
        Self { inputs, folder, cells, watch, budget, machines, state }
    }

    /// Runs all of them.
    pub(super) fn run(self) -> Result<SweepProgress, SweepError> {
        let end = self.state().end;
        self.watch.begin(end);
        rayon::scope(|scope| self.admit(scope));
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.broken.map_or(Ok(state.end), Err)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts jobs while threads and memory are free, and at least one. No job waits in the pool:
    /// each one that ends starts the next.
    fn admit<'s>(&'s self, scope: &Scope<'s>) {
        let threads = rayon::current_num_threads();
        let mut state = self.state();
        while !self.watch.stopped() && state.broken.is_none() {
            let Some(&job) = state.waiting.front() else { break };
            let load = self.load(job);
            let fits = |all, one| self.budget.fits(all, one);
            if !state.load.admits(load, threads, fits) {
                break;
            }
            state.waiting.pop_front();
            state.load.add(load);
            scope.spawn(move |scope| {
                self.work(job);
                self.state().load.take(load);
                self.admit(scope);
            });
        }
    }

    fn load(&self, job: WorkItem) -> Load {
        let (apps, machines) = match &job {
            WorkItem::Solo { app, .. } => (std::slice::from_ref(app), 1),
            WorkItem::Cell(at) => (&self.cells[*at].mix[..], self.machines[*at]),
        };
        Load { jobs: 1, bytes: estimate::bytes(self.inputs, apps), machines }
    }

    fn work(&self, job: WorkItem) {
        match job {
            WorkItem::Solo { cell, app } => self.solo(&self.cells[cell], app),
            WorkItem::Cell(at) => {
                if let Err(error) = self.cell(&self.cells[at]) {
                    self.state().broken.get_or_insert(error);
                }
            }
        }
    }

    /// Counts a cell that has ended.
    fn count(&self, good: bool) {
        let end = &mut self.state().end;
        end.left -= 1;
        *(if good { &mut end.done } else { &mut end.failed }) += 1;
        self.watch.ended(good);
    }

    /// Runs an application alone.
    fn solo(&self, cell: &Cell, app: usize) {
        // An error here repeats in the cells, which report it.
        let (done, own) = measured(|| catch_panic(|| self.inputs.run_solo(cell, app)));
        if done.is_ok() {
            self.inputs.times.add(&self.inputs.solo_name(cell.machine, app), own);
        }
    }

    /// Runs a cell and writes its outcome, unless another process has ended it meanwhile.
    fn cell(&self, cell: &Cell) -> Result<(), SweepError> {
        // A damaged file has been reported.
        if let Some(good) = self.folder.state(cell).ok().flatten() {
            self.count(good);
            return Ok(());
        }
        let (found, own) = measured(|| catch_panic(|| self.inputs.run(cell)));
        let ran = found.is_ok();
        let good = self.folder.keep(cell, found)?;
        if ran {
            self.inputs.times.add(&cell.record.key, own);
        }
        self.count(good);
        Ok(())
    }
}

/// The outcome of `work`: errors with their causes. A panic, which is our bug, fails only this
/// cell.
fn catch_panic<T>(work: impl FnOnce() -> Result<T, RunError>) -> Result<T, CellFailure> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(outcome) => outcome.map_err(CellFailure::from),
        Err(panic) => {
            let error = format!(
                "the program panicked: {}; this is a defect, please report it",
                panic_message(panic.as_ref())
            );
            Err(CellFailure { errors: vec![error], refused: false })
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// A unit of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkItem {
    /// An application alone on the machine of a cell.
    Solo {
        cell: usize,
        app: usize,
    },
    Cell(usize),
}

/// The solo runs that the open cells need, then the cells, in order.
pub(super) fn waiting(cells: &[Cell], open: Vec<usize>) -> VecDeque<WorkItem> {
    let mut known = BTreeSet::new();
    let mut jobs = VecDeque::new();
    for &cell in &open {
        for &app in &cells[cell].mix {
            if known.insert((cells[cell].machine, app)) {
                jobs.push_back(WorkItem::Solo { cell, app });
            }
        }
    }
    jobs.extend(open.into_iter().map(WorkItem::Cell));
    jobs
}

/// The share of the free memory for cells, in tenths; the program and others need the rest.
const USABLE_TENTHS: u64 = 8;

/// The total memory of which cells get `cells` bytes.
pub(super) fn for_cells(cells: u64) -> u64 {
    cells.div_ceil(USABLE_TENTHS).saturating_mul(10)
}

/// The memory that all cells of this process may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryBudget {
    most: u64,
}

impl MemoryBudget {
    /// The budget of a process without running cells: a share of the free memory, and at most
    /// `most` bytes.
    pub(super) fn new(most: Option<u64>) -> Self {
        Self { most: most.unwrap_or(u64::MAX).min(of_free(free())) }
    }

    /// Whether cells of `all` bytes fit, of which the next one takes `one`.
    pub(super) fn fits(self, all: u64, one: u64) -> bool {
        all <= self.most && one <= of_free(free())
    }
}

fn of_free(free: u64) -> u64 {
    free / 10 * USABLE_TENTHS
}

/// Free bytes of this machine and of the control group of this process; unbounded if the system
/// does not report them.
fn free() -> u64 {
    let mut system = System::new();
    system.refresh_memory();
    let machine = system.available_memory();
    let group = system.cgroup_limits().map_or(u64::MAX, |limits| limits.free_memory);
    if machine == 0 { u64::MAX } else { machine.min(group) }
}

#[cfg(test)]
mod tests {
    use super::{CellFailure, Load, MACHINE_BYTES, MemoryBudget, RunError, catch_panic, for_cells};

    #[test]
    fn no_more_run_at_once_than_threads_and_memory_hold() {
        let most = |sizes: &[u64], threads, memory| {
            let mut load = Load::default();
            for &bytes in sizes {
                let job = Load { jobs: 1, bytes, machines: 0 };
                if load.admits(job, threads, |bytes, _| bytes <= memory) {
                    load.add(job);
                }
            }
            (load.jobs, load.bytes)
        };
        assert_eq!(most(&[10; 8], 4, 1000), (4, 40));
        assert_eq!(most(&[10; 8], 4, 35), (3, 30));
        assert_eq!(most(&[10, 30, 5], 4, 20), (2, 15), "a small one fits, too");
        assert_eq!(most(&[100, 1], 4, 20), (1, 100), "one runs in any case, alone");
    }

    #[test]
    fn jobs_share_as_many_machines_as_there_are_threads() {
        let job = Load { jobs: 1, bytes: 10, machines: 30 };
        let mut load = Load::default();
        load.add(job);
        let memory = 4 * MACHINE_BYTES + 20;
        assert!(load.admits(job, 4, |bytes, _| bytes <= memory), "not 60 machines");
        assert!(!load.admits(job, 4, |bytes, _| bytes < memory));
        load.take(job);
        assert_eq!(load, Load::default());
    }

    #[test]
    fn a_panic_is_the_error_of_its_cell() {
        let fine: Result<u8, CellFailure> = catch_panic(|| Ok(5));
        assert_eq!(fine, Ok(5));
        let work = || -> Result<u8, RunError> { panic!("at {}", 7) };
        let failure = catch_panic(work).unwrap_err();
        assert!(failure.errors[0].contains("panicked: at 7") && !failure.refused, "{failure:?}");
    }

    #[test]
    fn what_would_be_refused_again_is_told_from_what_may_go_well() {
        let lasting = catch_panic(|| -> Result<u8, RunError> { Err(RunError::NoWindow) });
        assert!(lasting.unwrap_err().refused);
        let lost = || RunError::NoApp { path: "a.gpt".into(), hint: String::new() };
        assert!(!catch_panic(|| -> Result<u8, RunError> { Err(lost()) }).unwrap_err().refused);
    }

    #[test]
    fn cells_take_no_more_than_is_given_or_free() {
        let budget = MemoryBudget::new(Some(1000));
        assert!(budget.fits(1000, 10) && !budget.fits(1001, 10));
        let free = MemoryBudget::new(None);
        assert!(free.most > 0 && !free.fits(free.most.saturating_add(1), 0));
        assert!(!free.fits(0, u64::MAX), "more than any machine has");
        assert_eq!(for_cells(800), 1000);
    }
}
