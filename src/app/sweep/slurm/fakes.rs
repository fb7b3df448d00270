//! A cluster for tests that does as it is told, and somebody who listens.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gpumodel_report::results::{CellEstimate, SweepEstimate};
use gpumodel_trace::{Progress, Silent};

use super::super::super::watch::Watch;
use super::super::{SweepEnd, SweepWatch};
use super::answers::{Account, Entry, queue};
use super::commands::Cluster;
use super::error::SlurmError;
use super::jobs::Jobs;
use super::request::SlurmRequest;

/// One line of a queue.
pub(super) fn entry(line: &str) -> Entry {
    queue("squeue", line).unwrap().remove(0)
}

/// A request for the folder `out`: tasks of two cells, arrays of two tasks.
pub(super) fn request(out: &Path) -> SlurmRequest {
    SlurmRequest {
        program: PathBuf::from("gpumodel"),
        plan: out.join("plan.toml"),
        out: out.to_path_buf(),
        words: Vec::new(),
        array_words: Vec::new(),
        memory_bytes: None,
        part: false,
        chunk: Some(2),
        threads: 1,
        array: 2,
        at_once: None,
        poll: Duration::from_millis(1),
        resubmit: 2,
    }
}

/// Cells of a second each, with their numbers as keys.
pub(super) fn estimate(cells: u64) -> SweepEstimate {
    let cell = |number: u64| {
        let mut cell = CellEstimate { number, core_milliseconds: 1000, ..CellEstimate::default() };
        cell.cell.key = format!("k{number}");
        cell
    };
    SweepEstimate { cells: (1..=cells).map(cell).collect(), ..SweepEstimate::default() }
}

/// Gives jobs numbers from 100 on.
#[derive(Default)]
pub(super) struct Fake {
    queue: RefCell<Vec<Entry>>,
    refusals: RefCell<Vec<String>>,
    silent: Cell<bool>,
    accounts: RefCell<Vec<Account>>,
    seen: RefCell<Vec<Jobs>>,
    /// Label of the script and what it waits for, by submission; `update` for a change.
    asked: RefCell<Vec<(String, Vec<u64>)>>,
}

impl Fake {
    /// The queue from now on.
    pub(super) fn set(&self, queue: Vec<Entry>) {
        *self.queue.borrow_mut() = queue;
    }

    /// Refuses the next submission.
    pub(super) fn refuse(&self, said: &str) {
        self.refusals.borrow_mut().push(said.to_owned());
    }

    /// Whether the queue is shown to nobody.
    pub(super) fn silence(&self, silent: bool) {
        self.silent.set(silent);
    }

    /// What the accounts say from now on; `FAILED 0:9`: signal 9 ended it.
    pub(super) fn account(&self, states: &[(u64, Option<u64>, &str)]) {
        let known = |&(job, task, state): &(u64, Option<u64>, &str)| {
            let plain = state.strip_suffix(" 0:9");
            let (killed, state) = (plain.is_some(), plain.unwrap_or(state).to_owned());
            Account { job, task, state, killed }
        };
        *self.accounts.borrow_mut() = states.iter().map(known).collect();
    }

    /// The written list of jobs as it was at each submission.
    pub(super) fn seen(&self) -> Vec<Jobs> {
        self.seen.borrow().clone()
    }

    /// What was asked for since the last call, as `SCRIPT after 1:2`.
    pub(super) fn asked(&self) -> Vec<String> {
        let all = self.asked.borrow_mut().drain(..).collect::<Vec<_>>();
        let one = |(label, after): (String, Vec<u64>)| format!("{label} after {after:?}");
        all.into_iter().map(one).collect()
    }
}

impl Cluster for Fake {
    fn check(&self) -> Result<(), SlurmError> {
        Ok(())
    }

    fn submit(&self, script: &Path, after: &[u64]) -> Result<u64, SlurmError> {
        let written = Jobs::read(script.parent().unwrap()).unwrap().unwrap();
        self.seen.borrow_mut().push(written);
        if let Some(said) = self.refusals.borrow_mut().pop() {
            return Err(SlurmError::Refused { command: "sbatch".into(), said });
        }
        let label = script.file_stem().unwrap().to_string_lossy().into_owned();
        self.asked.borrow_mut().push((label, after.to_vec()));
        Ok(99 + u64::try_from(self.seen.borrow().len()).unwrap())
    }

    fn queue(&self, _: &str) -> Result<Vec<Entry>, SlurmError> {
        if self.silent.get() {
            let (command, said) = ("squeue".into(), "Slurm is asleep".into());
            return Err(SlurmError::Refused { command, said });
        }
        Ok(self.queue.borrow().clone())
    }

    fn depend(&self, job: u64, after: &[u64]) -> Result<(), SlurmError> {
        self.asked.borrow_mut().push((format!("update {job}"), after.to_vec()));
        Ok(())
    }

    fn accounts(&self, jobs: &[u64]) -> Vec<Account> {
        let mut known = self.accounts.borrow().clone();
        known.retain(|account| jobs.contains(&account.job));
        known
    }

    fn overruling(&self) -> Vec<&'static str> {
        Vec::new()
    }
}

/// Keeps what it is told.
#[derive(Default)]
pub(super) struct Listener {
    ended: Mutex<Vec<bool>>,
    said: Mutex<Vec<String>>,
    stopped: AtomicBool,
}

impl Listener {
    /// How cells ended, in order.
    pub(super) fn ended(&self) -> Vec<bool> {
        self.ended.lock().unwrap().clone()
    }

    /// What was said since the last call.
    pub(super) fn said(&self) -> String {
        self.said.lock().unwrap().drain(..).collect::<Vec<_>>().join("\n")
    }

    /// Asks for an end.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }
}

impl Watch for Listener {
    fn converting(&self) -> &dyn Progress {
        &Silent
    }

    fn running(&self) -> &dyn Progress {
        &Silent
    }
}

impl SweepWatch for Listener {
    fn begin(&self, _: SweepEnd) {}

    fn ended(&self, done: bool) {
        self.ended.lock().unwrap().push(done);
    }

    fn stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    fn say(&self, sentence: &str) {
        self.said.lock().unwrap().push(sentence.to_owned());
    }
}
