//! Cells on all threads of this machine, as many at once as memory holds.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rayon::Scope;

use gpumodel_core::units::to_u64;
use gpumodel_report::results::Analysis;

use super::super::claims::Claim;
use super::super::error::RunError;
use super::super::stopwatch::measured;
use super::error::{Failure, SweepError};
use super::estimate::{self, MACHINE_BYTES};
use super::folder::{PAUSE, SweepFolder};
use super::job::{self, Job};
use super::room::Room;
use super::seconds::Took;
use super::stock::{Cell, Stock};
use super::{SweepEnd, SweepWatch};

/// A sweep under way in this process.
pub(super) struct Course<'a> {
    stock: &'a Stock,
    folder: &'a SweepFolder,
    cells: &'a [Cell],
    watch: &'a dyn SweepWatch,
    room: Room,
    /// By cell: machines at once that it can use.
    machines: Vec<u64>,
    state: Mutex<State>,
}

/// A cell that was run and is to be kept, with this process's claim on it.
struct Outcome {
    at: usize,
    found: Result<Analysis, Failure>,
    /// Time of the cell, and of claiming it.
    took: [Duration; 2],
    _claim: Claim,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    /// Cells that other processes work on.
    elsewhere: Vec<usize>,
    load: Load,
    end: SweepEnd,
    broken: Option<SweepError>,
}

/// What runs, or is to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load {
    jobs: usize,
    /// Bytes of applications.
    bytes: u64,
    /// Machines that could run at once, had each a thread.
    machines: u64,
}

impl Load {
    /// Whether one more job has a thread and memory, where `fits` says whether there is so
    /// much in all; the only one has, whatever it takes.
    fn has_room(self, job: Self, threads: usize, fits: impl FnOnce(u64) -> bool) -> bool {
        let mut all = self;
        all.add(job);
        self.jobs == 0 || (self.jobs < threads && fits(all.memory(threads)))
    }

    /// Bytes of all: together they run as many machines at once as there are threads.
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

impl<'a> Course<'a> {
    /// The cells that `states` says are open.
    pub(super) fn new(
        (stock, folder): (&'a Stock, &'a SweepFolder),
        (cells, states): (&'a [Cell], &[Option<bool>]),
        watch: &'a dyn SweepWatch,
        room: Room,
    ) -> Self {
        let count = |wanted| states.iter().filter(|&&state| state == wanted).count();
        let end =
            SweepEnd { done: count(Some(true)), failed: count(Some(false)), left: count(None) };
        let mut open: Vec<usize> = (0..cells.len()).filter(|&at| states[at].is_none()).collect();
        // Long ones first, so that no thread is left with one at the end.
        open.sort_by_key(|&at| (std::cmp::Reverse(estimate::work(stock, &cells[at])), at));
        let waiting = job::waiting(stock, folder, cells, open);
        let state = Mutex::new(State { waiting, end, ..State::default() });
        let machines = estimate::machines_of(stock, cells);
        Self { stock, folder, cells, watch, room, machines, state }
    }

    /// Runs all of them, and waits for those that others run.
    pub(super) fn run(self) -> Result<SweepEnd, SweepError> {
        let end = self.state().end;
        self.watch.begin(end);
        let mut told = false;
        loop {
            self.round();
            let mut state = self.state();
            if let Some(broken) = state.broken.take() {
                return Err(broken);
            }
            if state.elsewhere.is_empty() || self.watch.stopped() {
                return Ok(state.end);
            }
            let again = std::mem::take(&mut state.elsewhere);
            if !std::mem::replace(&mut told, true) {
                let holder = self.folder.holder(&self.cells[again[0]].record.key);
                let count = again.len();
                self.watch.say(&format!("waiting for cells of others: {count}, first {holder}"));
            }
            state.waiting.extend(again.into_iter().map(Job::Cell));
            drop(state);
            thread::sleep(PAUSE);
        }
    }

    /// Runs what waits. As many threads as run cells wait for the disk in their place.
    fn round(&self) {
        let threads = rayon::current_num_threads();
        let (keep, kept) = sync_channel(threads);
        let kept = Mutex::new(kept);
        thread::scope(|scope| {
            for _ in 0..threads {
                // Where there are no more threads, others keep the cells.
                let _ = thread::Builder::new().spawn_scoped(scope, || self.keep_all(&kept));
            }
            rayon::scope(|scope| self.admit(scope, &keep));
            drop(keep);
            self.keep_all(&kept);
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Counters and lists: a panic leaves none half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts jobs as long as there are threads and memory for them; one, whatever it
    /// takes. Nobody waits within the pool: who ends starts the next. So memory that others
    /// give back is taken when a job ends.
    fn admit<'s>(&'s self, scope: &Scope<'s>, keep: &'s SyncSender<Outcome>) {
        let threads = rayon::current_num_threads();
        let mut state = self.state();
        while !self.watch.stopped() && state.broken.is_none() {
            let Some(&job) = state.waiting.front() else { break };
            let load = self.load(job);
            if !state.load.has_room(load, threads, |bytes| self.fits(bytes)) {
                break;
            }
            state.waiting.pop_front();
            state.load.add(load);
            scope.spawn(move |scope| {
                self.work(job, keep);
                self.state().load.take(load);
                self.admit(scope, keep);
            });
        }
        self.folder.hold(self.room.held(state.load.memory(threads)));
    }

    /// Whether there is memory for jobs of so many bytes in all. Others are told of them
    /// before they are looked for: of two who want the same, none gets it or one does, and
    /// each has a job that runs.
    fn fits(&self, bytes: u64) -> bool {
        if !self.room.fits(bytes, &[]) {
            return false;
        }
        self.folder.hold(self.room.held(bytes));
        let beside = self.folder.beside();
        beside.is_empty() || self.room.fits(bytes, &beside)
    }

    fn load(&self, job: Job) -> Load {
        let (apps, machines) = match &job {
            Job::Alone { app, .. } => (std::slice::from_ref(app), 1),
            Job::Cell(at) => (&self.cells[*at].mix[..], self.machines[*at]),
        };
        Load { jobs: 1, bytes: estimate::bytes(self.stock, apps), machines }
    }

    fn work(&self, job: Job, keep: &SyncSender<Outcome>) {
        let done = match job {
            Job::Alone { cell, app } => self.alone(&self.cells[cell], app),
            Job::Cell(at) => self.cell(at, keep),
        };
        if let Err(error) = done {
            self.state().broken.get_or_insert(error);
        }
    }

    /// Keeps what comes, until nothing can come any more.
    fn keep_all(&self, kept: &Mutex<Receiver<Outcome>>) {
        loop {
            // The lock goes before the cell is kept: others take the next ones.
            let next = kept.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(outcome) = next else { return };
            self.keep(outcome);
        }
    }

    /// Keeps a cell, and ends its claim.
    fn keep(&self, outcome: Outcome) {
        let Outcome { at, found, took: [own, claimed], _claim } = outcome;
        let (begin, cell, ran) = (Instant::now(), &self.cells[at], found.is_ok());
        match self.folder.keep(cell, found) {
            Ok(good) => {
                if ran {
                    let around = claimed.saturating_add(begin.elapsed());
                    self.stock.seconds.add(&cell.record.key, Took::new(own, around));
                }
                self.count(good);
            }
            Err(error) => {
                self.state().broken.get_or_insert(error);
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

    /// Runs an application alone, unless somebody else does.
    fn alone(&self, cell: &Cell, app: usize) -> Result<(), SweepError> {
        let name = self.stock.name_alone(cell.machine, app);
        if let Some(_mine) = self.folder.take(&name)? {
            // What goes wrong here goes wrong in the cells, which say so.
            let (done, own) = measured(|| caught(|| self.stock.run_alone(cell, app)));
            if done.is_ok() {
                self.stock.seconds.add(&name, Took::new(own, Duration::ZERO));
            }
        }
        Ok(())
    }

    /// Runs a cell, unless somebody else does or has. It is kept by others while this thread
    /// goes on, unless they have enough to do.
    fn cell(&self, at: usize, keep: &SyncSender<Outcome>) -> Result<(), SweepError> {
        let (begin, cell) = (Instant::now(), &self.cells[at]);
        let Some(claim) = self.folder.take(&cell.record.key)? else {
            self.state().elsewhere.push(at);
            return Ok(());
        };
        // A damaged file has been said.
        if let Some(good) = self.folder.state(cell).ok().flatten() {
            self.count(good);
            return Ok(());
        }
        let claimed = begin.elapsed();
        let (found, own) = measured(|| caught(|| self.stock.run(cell)));
        match keep.try_send(Outcome { at, found, took: [own, claimed], _claim: claim }) {
            Err(TrySendError::Full(outcome) | TrySendError::Disconnected(outcome)) => {
                self.keep(outcome);
            }
            Ok(()) => {}
        }
        Ok(())
    }
}

/// The outcome of `work`: errors with their causes, and a panic, which is our bug, as an
/// error of this cell alone.
fn caught<T>(work: impl FnOnce() -> Result<T, RunError>) -> Result<T, Failure> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(outcome) => outcome.map_err(Failure::from),
        Err(panic) => {
            let error = format!(
                "the program panicked: {}; this is a defect, please report it",
                said(panic.as_ref())
            );
            Err(Failure { errors: vec![error], refused: false })
        }
    }
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words")
}

#[cfg(test)]
mod tests {
    use super::{Failure, Load, MACHINE_BYTES, RunError, caught};

    #[test]
    fn no_more_run_at_once_than_threads_and_memory_hold() {
        let most = |sizes: &[u64], threads, memory| {
            let mut load = Load::default();
            for &bytes in sizes {
                let job = Load { jobs: 1, bytes, machines: 0 };
                if load.has_room(job, threads, |bytes| bytes <= memory) {
                    load.add(job);
                }
            }
            (load.jobs, load.bytes)
        };
        assert_eq!(most(&[10; 8], 4, 1000), (4, 40));
        assert_eq!(most(&[10; 8], 4, 35), (3, 30));
        assert_eq!(most(&[10, 30, 5], 4, 20), (2, 15), "a small one fits beside");
        assert_eq!(most(&[100, 1], 4, 20), (1, 100), "one runs in any case, alone");
    }

    #[test]
    fn jobs_share_as_many_machines_as_there_are_threads() {
        let job = Load { jobs: 1, bytes: 10, machines: 30 };
        let mut load = Load::default();
        load.add(job);
        let memory = 4 * MACHINE_BYTES + 20;
        assert!(load.has_room(job, 4, |bytes| bytes <= memory), "not 60 machines");
        assert!(!load.has_room(job, 4, |bytes| bytes < memory));
        load.take(job);
        assert_eq!(load, Load::default());
    }

    #[test]
    fn a_panic_is_the_error_of_its_cell() {
        let fine: Result<u8, Failure> = caught(|| Ok(5));
        assert_eq!(fine, Ok(5));
        let work = || -> Result<u8, RunError> { panic!("at {}", 7) };
        let failure = caught(work).unwrap_err();
        assert!(failure.errors[0].contains("panicked: at 7") && !failure.refused, "{failure:?}");
    }

    #[test]
    fn what_would_be_refused_again_is_told_from_what_may_go_well() {
        let lasting = caught(|| -> Result<u8, RunError> { Err(RunError::NoWindow) });
        assert!(lasting.unwrap_err().refused);
        let lost = || RunError::NoApp { path: "a.gpt".into(), hint: String::new() };
        assert!(!caught(|| -> Result<u8, RunError> { Err(lost()) }).unwrap_err().refused);
    }
}
