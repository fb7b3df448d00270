//! Watching the jobs of a sweep: what lives is waited for, what is lost is submitted again.

mod resubmission;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use super::super::SweepWatch;
use super::super::error::SweepError;
use super::SlurmEnd;
use super::answers::Entry;
use super::ask::Ask;
use super::error::SlurmError;
use super::fates::{Ends, LastTask};
use super::life::{Life, Living};
use super::submit::Submitter;
use super::tally::Tally;

/// How long Slurm may give no answer: maintenance of a controller takes less.
const PATIENCE: Duration = Duration::from_secs(3600);

/// How soon an interrupt is heard.
const PAUSE: Duration = Duration::from_millis(100);

/// A watch under way.
pub(super) struct Watcher<'a> {
    submitter: Submitter<'a>,
    tally: Tally<'a>,
    watch: &'a dyn SweepWatch,
    deeds: Deeds<'a>,
    listed: bool,
    /// Hash of the plan's cells, its file and what that held.
    plan: (&'a str, &'a Path, Vec<u8>),
    attempts: Vec<Attempt>,
    /// Places of cells that somebody wants anew, whatever became of them before.
    anew: BTreeSet<usize>,
    /// Places of cells whose last task somebody has cancelled: those are not submitted again.
    cancelled: BTreeSet<usize>,
    life: Life,
    ends: Ends,
    /// Places of cells that had no task at the last look.
    bare: BTreeSet<usize>,
    /// A job of the tables is to be submitted, or to wait for more.
    tables_due: bool,
    /// Sentences that were said.
    said: BTreeSet<String>,
    /// Jobs that lived at the last look, and those submitted since.
    living: BTreeSet<u64>,
}

/// What a watch does in the folder of the sweep.
#[derive(Clone, Copy)]
pub(super) struct Deeds<'a> {
    /// Writes the list of cells.
    pub(super) list: &'a dyn Fn() -> Result<(), SweepError>,
    /// Keeps the cell at a place as failed, with its errors; false: somebody has it claimed.
    pub(super) fail: &'a dyn Fn(usize, Vec<String>) -> Result<bool, SweepError>,
}

/// What was done for a cell in this round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Attempt {
    /// How often it was submitted.
    times: u32,
    /// The last task that was to run it.
    last: Option<LastTask>,
    /// What it needs by what was lost; nothing: by the estimate.
    need: Ask,
}

impl<'a> Watcher<'a> {
    /// Watches the cells of `tally`; `plan` is the hash of the plan's cells and its file.
    pub(super) fn new(
        submitter: Submitter<'a>,
        tally: Tally<'a>,
        (hash, plan): (&'a str, &'a Path),
        watch: &'a dyn SweepWatch,
        deeds: Deeds<'a>,
    ) -> Result<Self, SweepError> {
        let text = std::fs::read(plan).map_err(SweepError::folder(plan))?;
        Ok(Self {
            attempts: vec![Attempt::default(); submitter.estimate.cells.len()],
            anew: BTreeSet::new(),
            cancelled: BTreeSet::new(),
            life: Life::default(),
            ends: Ends::default(),
            submitter,
            tally,
            watch,
            deeds,
            listed: false,
            plan: (hash, plan, text),
            bare: BTreeSet::new(),
            tables_due: true,
            said: BTreeSet::new(),
            living: BTreeSet::new(),
        })
    }

    /// The cells at `places` have failed and are wanted anew.
    pub(super) fn retrying(self, places: Vec<usize>) -> Self {
        Self { anew: places.into_iter().collect(), ..self }
    }

    /// Watches until all cells have ended and the tables are there, or those are left alone
    /// that somebody has cancelled, or an interrupt; gives whether a job has written the
    /// tables.
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
        let end = self.tally.end();
        if !interrupted && !self.tables_due && !written && end.left == 0 {
            self.watch.say("the job of the tables was lost: its work is done here");
        }
        (SlurmEnd { cells: end, living }, written)
    }

    fn queue(&self) -> Result<Vec<Entry>, SlurmError> {
        self.submitter.cluster.queue(&self.submitter.jobs.name)
    }

    /// Goes on from what another watch has left in the queue.
    fn take_up(&mut self, queue: &[Entry]) -> Result<(), SweepError> {
        let adopted = self.submitter.jobs.adopt(queue);
        let living = self.look(queue);
        let same = self.submitter.jobs.plan_hash == self.plan.0;
        if !same && living.certain {
            return Err(self.edited());
        }
        if !same || !living.any() {
            self.submitter.jobs.begin_round(self.plan.0);
            return Ok(());
        }
        let count = living.jobs.len();
        self.living = living.jobs;
        if count > 0 {
            let are = if living.certain { "are" } else { "may be" };
            self.watch.say(&format!("{count} jobs {are} in the queue: the watch is taken up"));
        }
        for (one, submission) in self.submitter.jobs.round() {
            for (task, &(first, last)) in submission.tasks.iter().enumerate() {
                let places = (first..=last).filter_map(|number| self.submitter.place(number));
                for place in places.filter(|place| !self.anew.contains(place)) {
                    let times = self.attempts[place].times + 1;
                    let (last, need) = (Some((one, task)), submission.need);
                    self.attempts[place] = Attempt { times, last, need };
                }
            }
        }
        self.tables_due = self.tables(queue).is_none();
        if adopted { self.submitter.save() } else { Ok(()) }
    }

    /// Who lives by `queue`; says who is not in it.
    fn look(&mut self, queue: &[Entry]) -> Living {
        let mut living = self.life.look(&self.submitter, queue, &self.tally.open());
        living.told.drain(..).for_each(|sentence| self.say(sentence));
        living
    }

    /// One look at the queue; true when there is nothing left to wait for.
    fn step(&mut self, queue: &[Entry]) -> Result<bool, SweepError> {
        // What had no task when the queue was read has its record by now, or never will.
        self.tally.count(self.watch);
        if self.submitter.jobs.adopt(queue) {
            self.submitter.save()?;
        }
        let Living { jobs, covered, .. } = self.look(queue);
        self.living = jobs;
        self.ends.look(queue);
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
        let bare: BTreeSet<usize> = open.into_iter().filter(|at| !covered[*at]).collect();
        // A record may be there that this machine does not see yet: look twice.
        let lost = |at: &usize| {
            let twice = self.attempts[*at].times == 0 || self.bare.contains(at);
            twice && !self.cancelled.contains(at)
        };
        let lost: Vec<usize> = bare.iter().copied().filter(lost).collect();
        self.bare = bare;
        if !lost.is_empty() {
            self.again(&lost)?;
        }
        self.submit_tables(tables)?;
        self.write_list()?;
        let given_up = |at| self.cancelled.contains(at);
        Ok(self.living.is_empty() && self.tally.open().iter().all(given_up))
    }

    /// The job of the tables that lives.
    fn tables<'q>(&self, queue: &'q [Entry]) -> Option<&'q Entry> {
        let part = self.submitter.part();
        let mine = |entry: &&Entry| {
            let of = self.submitter.jobs.of(entry);
            entry.lives() && of.is_some_and(|of| of.writes_tables(part))
        };
        queue.iter().find(mine)
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
        if std::mem::replace(&mut self.listed, true) { Ok(()) } else { (self.deeds.list)() }
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
