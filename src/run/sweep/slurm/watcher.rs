//! Watching the jobs of a sweep: what lives is waited for, what is lost is submitted again.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::record::CellEstimate;

use super::super::SweepWatch;
use super::super::error::SweepError;
use super::SlurmEnd;
use super::answers::Entry;
use super::error::SlurmError;
use super::losses::{self, fates, ranges};
use super::scripts::Task;
use super::submit::Submitter;
use super::tally::Tally;
use super::tasks::tasks;

/// How long Slurm may give no answer: maintenance of a controller takes less.
const PATIENCE: Duration = Duration::from_secs(3600);

/// How soon an interrupt is heard.
const PAUSE: Duration = Duration::from_millis(100);

/// A watch under way.
pub(super) struct Watcher<'a> {
    submitter: Submitter<'a>,
    tally: Tally<'a>,
    watch: &'a dyn SweepWatch,
    /// Writes the list of cells.
    list: &'a dyn Fn() -> Result<(), SweepError>,
    listed: bool,
    /// Hash of the plan's cells, its file and what that held.
    plan: (&'a str, &'a Path, Vec<u8>),
    /// By cell: how often it was submitted.
    times: Vec<u32>,
    /// Places of cells that had no task at the last look.
    bare: BTreeSet<usize>,
    /// A job of the tables is to be submitted, or to wait for more.
    tables_due: bool,
    /// Sentences that were said.
    said: BTreeSet<String>,
    /// Jobs that lived at the last look, and those submitted since.
    living: BTreeSet<u64>,
}

impl<'a> Watcher<'a> {
    /// Watches the cells of `tally`; `plan` is the hash of the plan's cells and its file.
    pub(super) fn new(
        submitter: Submitter<'a>,
        tally: Tally<'a>,
        (hash, plan): (&'a str, &'a Path),
        watch: &'a dyn SweepWatch,
        list: &'a dyn Fn() -> Result<(), SweepError>,
    ) -> Result<Self, SweepError> {
        let text = std::fs::read(plan).map_err(SweepError::folder(plan))?;
        Ok(Self {
            times: vec![0; submitter.estimate.cells.len()],
            submitter,
            tally,
            watch,
            list,
            listed: false,
            plan: (hash, plan, text),
            bare: BTreeSet::new(),
            tables_due: true,
            said: BTreeSet::new(),
            living: BTreeSet::new(),
        })
    }

    /// Watches until all cells have ended and the tables are there, or an interrupt; gives
    /// whether a job has written the tables.
    pub(super) fn run(mut self) -> Result<(SlurmEnd, bool), SweepError> {
        self.watch.begin(self.tally.end());
        let queue = self.queue()?;
        self.take_up(&queue)?;
        // Somebody has thought better of it while traces were converted.
        if self.watch.stopped() {
            return Ok(self.end(true));
        }
        let mut heard = Instant::now();
        let mut answer = Ok(queue);
        loop {
            match answer {
                Ok(queue) => {
                    heard = Instant::now();
                    if self.step(&queue)? {
                        return Ok(self.end(false));
                    }
                }
                Err(error) => self.unanswered(error, heard.elapsed())?,
            }
            if self.rest() {
                return Ok(self.end(true));
            }
            answer = self.queue();
        }
    }

    fn end(&self, interrupted: bool) -> (SlurmEnd, bool) {
        let living = if interrupted { self.living.len() } else { 0 };
        // What earlier jobs have written may be of fewer cells.
        let written = !self.tables_due && self.submitter.tables_written();
        if !interrupted && !self.tables_due && !written {
            self.watch.say("the job of the tables was lost: its work is done here");
        }
        (SlurmEnd { cells: self.tally.end(), living }, written)
    }

    fn queue(&self) -> Result<Vec<Entry>, SlurmError> {
        self.submitter.cluster.queue(&self.submitter.jobs.name)
    }

    /// Goes on from what another watch has left in the queue.
    fn take_up(&mut self, queue: &[Entry]) -> Result<(), SweepError> {
        let jobs = &mut self.submitter.jobs;
        let adopted = jobs.adopt(queue);
        let lives = |entry: &&Entry| entry.lives() && jobs.of(entry).is_some();
        let living: Vec<&Entry> = queue.iter().filter(lives).collect();
        if jobs.plan_hash != self.plan.0 {
            if !living.is_empty() {
                return Err(self.edited());
            }
            self.plan.0.clone_into(&mut self.submitter.jobs.plan_hash);
        }
        if living.is_empty() {
            return Ok(());
        }
        self.living = living.iter().map(|entry| entry.job).collect();
        let count = self.living.len();
        self.watch.say(&format!("{count} jobs are in the queue: the watch is taken up"));
        let first = self.first();
        for number in self.submitter.jobs.submissions.iter().flat_map(|one| one.cells(None)) {
            let place = number.checked_sub(first).and_then(|at| usize::try_from(at).ok());
            if let Some(times) = place.and_then(|place| self.times.get_mut(place)) {
                *times += 1;
            }
        }
        self.tables_due = self.tables(queue).is_none();
        if adopted { self.submitter.save() } else { Ok(()) }
    }

    /// One look at the queue; true when there is nothing left to wait for.
    fn step(&mut self, queue: &[Entry]) -> Result<bool, SweepError> {
        // What had no task when the queue was read has its record by now, or never will.
        self.tally.count(self.watch);
        let ours = |entry: &&Entry| entry.lives() && self.submitter.jobs.of(entry).is_some();
        self.living = queue.iter().filter(ours).map(|entry| entry.job).collect();
        self.tell(queue);
        let open = self.tally.open();
        let tables = self.tables(queue).map(|entry| entry.job);
        if open.is_empty() {
            if let Some(job) = tables {
                self.say(format!("all cells have ended: waiting for the tables of job {job}"));
            }
            self.write_list()?;
            return Ok(tables.is_none());
        }
        let covered = self.covered(queue);
        let bare: BTreeSet<usize> = open.into_iter().filter(|at| !covered[*at]).collect();
        // A record may be there that this machine does not see yet: look twice.
        let lost = |at: &usize| self.times[*at] == 0 || self.bare.contains(at);
        let lost: Vec<usize> = bare.iter().copied().filter(lost).collect();
        self.bare = bare;
        if !lost.is_empty() {
            self.again(&lost, queue)?;
        }
        self.submit_tables(tables)?;
        self.write_list().map(|()| false)
    }

    /// By cell: whether a task that lives is to run it.
    fn covered(&self, queue: &[Entry]) -> Vec<bool> {
        let (first, mut covered) = (self.first(), vec![false; self.times.len()]);
        for entry in queue.iter().filter(|entry| entry.lives()) {
            let Some(submission) = self.submitter.jobs.of(entry) else { continue };
            for number in submission.cells(entry.task) {
                let place = number.checked_sub(first).and_then(|at| usize::try_from(at).ok());
                if let Some(covered) = place.and_then(|place| covered.get_mut(place)) {
                    *covered = true;
                }
            }
        }
        covered
    }

    /// Number of the first cell.
    fn first(&self) -> u64 {
        self.submitter.estimate.cells.first().map_or(1, |cell| cell.number)
    }

    /// The job of the tables that lives.
    fn tables<'q>(&self, queue: &'q [Entry]) -> Option<&'q Entry> {
        let mine = |entry: &&Entry| {
            let of = self.submitter.jobs.of(entry);
            entry.lives() && of.is_some_and(|of| of.writes_tables())
        };
        queue.iter().find(mine)
    }

    /// Submits cells that no task is to run, unless that was done too often.
    fn again(&mut self, lost: &[usize], queue: &[Entry]) -> Result<(), SweepError> {
        let most = self.submitter.request.resubmit;
        let mut told: Vec<usize> = lost.iter().copied().filter(|&at| self.times[at] > 0).collect();
        if !told.is_empty() && std::fs::read(self.plan.1).ok().as_ref() != Some(&self.plan.2) {
            return Err(self.edited());
        }
        let (again, hopeless): (Vec<usize>, Vec<usize>) =
            lost.iter().partition(|&&at| self.times[at] <= most);
        if again.is_empty() {
            // Who lives may still run them: the job of the tables does.
            let lost = || losses::lost(&self.submitter, &self.numbers(&hopeless), most + 1);
            return if self.living.is_empty() { Err(lost().into()) } else { Ok(()) };
        }
        told.retain(|&at| self.times[at] <= most);
        if !told.is_empty() {
            let numbers = self.numbers(&told);
            let (cells, fates) = (ranges(&numbers), fates(&self.submitter, queue, &numbers));
            self.watch.say(&format!("lost, submitted again: cells {cells}{fates}"));
        }
        self.submit(&again)
    }

    /// Submits the cells at the places `again`, in as many arrays as that takes.
    fn submit(&mut self, again: &[usize]) -> Result<(), SweepError> {
        let (estimate, request) = (self.submitter.estimate, self.submitter.request);
        let places = tasks(again, &self.tally.open(), request.chunk(estimate));
        let cells = |task: &Vec<usize>| task.iter().map(|&at| &estimate.cells[at]).collect();
        let cells: Vec<Vec<&CellEstimate>> = places.iter().map(cells).collect();
        for (places, cells) in places.chunks(request.array).zip(cells.chunks(request.array)) {
            let cells: Vec<Task<'_>> = cells.iter().map(Vec::as_slice).collect();
            match self.submitter.array(&cells) {
                Ok(job) => self.living.insert(job),
                Err(SweepError::Slurm(refused)) if !self.living.is_empty() => {
                    self.say(format!("{refused}; cells are left, which are submitted later"));
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            self.tables_due = true;
            for &at in places.iter().flatten() {
                self.times[at] += 1;
                self.bare.remove(&at);
            }
        }
        Ok(())
    }

    /// Submits the job of the tables, or lets the one that is there wait for what is new.
    fn submit_tables(&mut self, there: Option<u64>) -> Result<(), SweepError> {
        if !self.tables_due || self.tally.open().iter().any(|&at| self.times[at] == 0) {
            return Ok(());
        }
        self.tables_due = false;
        let arrays = self.living.iter().copied().filter(|&job| Some(job) != there);
        let arrays: Vec<u64> = arrays.collect();
        if let Some(job) = there {
            // Where it has begun, it shares the cells with the arrays.
            let _ = self.submitter.cluster.depend(job, &arrays);
            return Ok(());
        }
        match self.submitter.tables(&arrays) {
            Ok(job) => {
                self.living.insert(job);
                Ok(())
            }
            Err(SweepError::Slurm(refused)) => {
                self.say(format!("{refused}; this watch writes the tables, if it lasts"));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// The numbers in the plan of the cells at `places`.
    fn numbers(&self, places: &[usize]) -> Vec<u64> {
        places.iter().map(|&at| self.submitter.estimate.cells[at].number).collect()
    }

    fn edited(&self) -> SweepError {
        let (plan, name) = (self.plan.1.to_path_buf(), self.submitter.jobs.name.clone());
        SlurmError::Edited { plan, name }.into()
    }

    /// Puts the cells into the list of the folder, once.
    fn write_list(&mut self) -> Result<(), SweepError> {
        if std::mem::replace(&mut self.listed, true) { Ok(()) } else { (self.list)() }
    }

    /// Says why jobs wait, where that is not because others run.
    fn tell(&mut self, queue: &[Entry]) {
        for entry in queue {
            if let Some(reason) = entry.trouble()
                && self.submitter.jobs.of(entry).is_some()
            {
                self.say(format!("job {} waits: {reason}", entry.job));
            }
        }
    }

    /// Says a sentence once.
    fn say(&mut self, sentence: String) {
        if !self.said.contains(&sentence) {
            self.watch.say(&sentence);
            self.said.insert(sentence);
        }
    }

    /// Bears that Slurm does not answer, for `long` by now.
    fn unanswered(&mut self, error: SlurmError, long: Duration) -> Result<(), SweepError> {
        if long >= PATIENCE {
            let (seconds, source) = (long.as_secs(), Box::new(error));
            return Err(SlurmError::Silent { seconds, source }.into());
        }
        self.say(format!("Slurm does not answer and is asked again: {error}"));
        Ok(())
    }

    /// Rests until the next look; true when an interrupt ends the watch.
    fn rest(&self) -> bool {
        let (begin, poll) = (Instant::now(), self.submitter.request.poll);
        while begin.elapsed() < poll && !self.watch.stopped() {
            std::thread::sleep(PAUSE.min(poll));
        }
        self.watch.stopped()
    }
}

#[cfg(test)]
mod tests;
