//! Submitting the cells that no task is to run: the first time in chunks, then one by one,
//! so that a bad one takes no others along.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;

use gpumodel_core::units::read_file;
use gpumodel_report::results::CellEstimate;

use super::super::super::error::SweepError;
use super::super::ask::{Ask, Cause};
use super::super::error::SlurmError;
use super::super::fates::{self, Fate, LastTask, fates};
use super::super::losses::{self, ranges};
use super::super::scripts::Task;
use super::super::submit::Sent;
use super::super::tasks::tasks;
use super::{Attempt, Watcher};

/// The fates of the last tasks of cells.
type Fates = BTreeMap<LastTask, Fate>;

impl Watcher<'_> {
    /// Submits cells that no task is to run, unless somebody has cancelled their tasks, or
    /// that was done too often: then they have failed.
    pub(super) fn again(&mut self, lost: &[usize]) -> Result<(), SweepError> {
        let most = self.submitter.request.resubmit;
        let (new, told): (Vec<usize>, Vec<usize>) =
            lost.iter().partition(|&&at| self.attempts[at].times == 0);
        if !told.is_empty() && !self.same_plan()? {
            return Ok(());
        }
        let (again, hopeless): (Vec<usize>, Vec<usize>) =
            told.into_iter().partition(|&at| self.attempts[at].times <= most);
        if new.is_empty() && again.is_empty() {
            // Who lives may still run them: the job of the tables does.
            return if self.living.is_empty() { self.fail(&hopeless) } else { Ok(()) };
        }
        if !new.is_empty() {
            let chunk = self.submitter.request.chunk(self.submitter.estimate);
            self.submit(&new, chunk, Ask::default())?;
        }
        if again.is_empty() { Ok(()) } else { self.one_by_one(&again) }
    }

    /// Whether the plan can be read and is what it was; says why it cannot.
    fn same_plan(&mut self) -> Result<bool, SweepError> {
        match read_file(self.plan.1) {
            Ok(text) if text == self.plan.2 => Ok(true),
            Err(error) if error.kind() != ErrorKind::NotFound => {
                let plan = self.plan.1.display();
                self.say(format!("{plan}: {error}; cells that were lost wait until it is read"));
                Ok(false)
            }
            _ => Err(self.edited()),
        }
    }

    /// Submits cells that were lost, each as a task of its own, with more of what there was
    /// too little of. Where Slurm refuses that and nothing lives, they have failed.
    ///
    /// Approximate: whatever the refusal is for, the cluster is taken to have no more.
    fn one_by_one(&mut self, again: &[usize]) -> Result<(), SweepError> {
        let fates = self.fates(again);
        let mut groups: BTreeMap<Ask, Vec<usize>> = BTreeMap::new();
        for at in self.uncancelled(again, &fates) {
            let need = self.need(at, &fates);
            self.attempts[at].need = need;
            groups.entry(need).or_default().push(at);
        }
        for (need, places) in groups {
            let last: Vec<_> = places.iter().map(|&at| self.attempts[at].last).collect();
            let sent = match self.submit(&places, 1, need) {
                Err(SweepError::Slurm(refused @ SlurmError::Refused { .. }))
                    if need != Ask::default() =>
                {
                    self.keep_failed(&places, &fates, Some((need, &refused)))?;
                    continue;
                }
                sent => sent?,
            };
            if sent > 0 {
                let said = self.told((&places[..sent], &last[..sent]), need, &fates);
                self.watch.say(&said);
            }
        }
        Ok(())
    }

    /// How the last tasks of cells have ended.
    fn fates(&self, places: &[usize]) -> Fates {
        let last = places.iter().filter_map(|&at| self.attempts[at].last).collect();
        fates(&self.submitter, &self.ends, &last)
    }

    /// Those of some cells whose last task nobody has cancelled; says and remembers which the
    /// others are. A sweep that goes on when nothing lives any more submits them anew.
    fn uncancelled(&mut self, places: &[usize], fates: &Fates) -> Vec<usize> {
        let fate = |at: usize| self.attempts[at].last.and_then(|last| fates.get(&last));
        let by_somebody =
            |at: &&usize| fate(**at).is_some_and(|fate| fate.cause == Cause::Cancelled);
        let (cancelled, others): (Vec<usize>, Vec<usize>) = places.iter().partition(by_somebody);
        if !cancelled.is_empty() {
            let last: BTreeSet<_> =
                cancelled.iter().filter_map(|&at| self.attempts[at].last).collect();
            let ends = fates::told(last.iter().filter_map(|last| fates.get(last)));
            let cells = ranges(&self.numbers(&cancelled));
            let run = if self.tables_live() {
                "the job of the tables runs them unless it is cancelled too"
            } else {
                "--resume runs them once no job lives"
            };
            self.watch.say(&format!(
                "cancelled by somebody, not submitted again: cells {cells}{ends}; {run}"
            ));
        }
        self.cancelled.extend(cancelled);
        others
    }

    /// Whether a job of the tables lives, or may.
    fn tables_live(&self) -> bool {
        let part = self.submitter.part();
        let lives = |job: u64| self.living.contains(&job);
        let all = &self.submitter.jobs.submissions;
        all.iter().any(|one| one.writes_tables(part) && one.job.is_some_and(lives))
    }

    /// Keeps cells as failed that have ended none of their tasks.
    fn fail(&mut self, hopeless: &[usize]) -> Result<(), SweepError> {
        let fates = self.fates(hopeless);
        let places = self.uncancelled(hopeless, &fates);
        self.keep_failed(&places, &fates, None)
    }

    /// Keeps the cells at `places`, whose last tasks were lost, as failed, unless somebody
    /// else works on them; `refused`: another task of each would need so much, which Slurm
    /// refuses.
    fn keep_failed(
        &mut self,
        places: &[usize],
        fates: &Fates,
        refused: Option<(Ask, &SlurmError)>,
    ) -> Result<(), SweepError> {
        let mut claimed = Vec::new();
        for &at in places {
            let Attempt { times, last, .. } = self.attempts[at];
            let Some((last, fate)) = last.and_then(|last| Some((last, fates.get(&last)?))) else {
                continue;
            };
            let mut errors = losses::lost(&self.submitter, last, fate, times);
            errors.extend(refused.map(|(need, words)| {
                let ask = self.ask(&[at]).at_least(need);
                format!("another one with {ask} was refused: {words}")
            }));
            if !(self.deeds.fail)(at, errors)? {
                claimed.push(at);
            }
        }
        if !claimed.is_empty() {
            let cells = ranges(&self.numbers(&claimed));
            self.say(format!("no task has them, but others have claimed them: cells {cells}"));
        }
        Ok(())
    }

    /// What a cell needs after its last task was lost.
    fn need(&self, at: usize, fates: &Fates) -> Ask {
        let Attempt { last, need, .. } = self.attempts[at];
        let Some(fate) = last.and_then(|last| fates.get(&last)) else { return need };
        need.after(fate.ask, fate.cause, self.ask(&[at]))
    }

    /// What cells ask for by the estimate, each in a task of its own.
    fn ask(&self, places: &[usize]) -> Ask {
        let (request, estimate) = (self.submitter.request, self.submitter.estimate);
        let cells: Vec<&CellEstimate> = places.iter().map(|&at| &estimate.cells[at]).collect();
        let tasks: Vec<Task<'_>> = cells.chunks(1).collect();
        request.ask_of(&tasks, estimate)
    }

    /// What is said of cells that were lost with their last tasks and need so much.
    fn told(
        &self,
        (places, last): (&[usize], &[Option<LastTask>]),
        need: Ask,
        fates: &Fates,
    ) -> String {
        let last: BTreeSet<LastTask> = last.iter().flatten().copied().collect();
        let ended: Vec<&Fate> = last.iter().filter_map(|last| fates.get(last)).collect();
        let (cells, ask) = (ranges(&self.numbers(places)), self.ask(places).at_least(need));
        let ends = fates::told(ended.iter().copied());
        let overruling = self.submitter.cluster.overruling();
        let mut said =
            format!("lost, submitted again: cells {cells}{ends}, one per task with {ask}");
        if ended.iter().any(|fate| fate.cause.short()) && !overruling.is_empty() {
            let names = overruling.join(" and ");
            said += &format!("; {names} in the environment overrules that: set more there");
        }
        said
    }

    /// Submits the cells at `places`, `chunk` in a task, in as many arrays as that takes.
    /// Gives the number of tasks, which are the first ones.
    pub(super) fn submit(
        &mut self,
        places: &[usize],
        chunk: usize,
        need: Ask,
    ) -> Result<usize, SweepError> {
        let (estimate, request) = (self.submitter.estimate, self.submitter.request);
        let places = tasks(places, &self.tally.open(), chunk);
        let cells = |task: &Vec<usize>| task.iter().map(|&at| &estimate.cells[at]).collect();
        let cells: Vec<Vec<&CellEstimate>> = places.iter().map(cells).collect();
        let mut count = 0;
        for (places, cells) in places.chunks(request.array).zip(cells.chunks(request.array)) {
            let cells: Vec<Task<'_>> = cells.iter().map(Vec::as_slice).collect();
            let sent = match self.submitter.array(&cells, need) {
                Err(SweepError::Slurm(refused)) if !self.living.is_empty() => {
                    self.say(format!("{refused}; cells are left, which are submitted later"));
                    return Ok(count);
                }
                sent => sent?,
            };
            self.sent(places);
            count += places.len();
            match sent {
                Sent::Job(job) => self.living.insert(job),
                Sent::Unclear(refused) => {
                    self.say(format!("{refused}; the job may be there: it is looked for"));
                    return Ok(count);
                }
            };
        }
        Ok(count)
    }

    /// The last submission was of these tasks.
    fn sent(&mut self, tasks: &[Vec<usize>]) {
        self.tables_due = true;
        let last = self.submitter.jobs.submissions.len() - 1;
        for (task, places) in tasks.iter().enumerate() {
            for &at in places {
                self.attempts[at].times += 1;
                self.attempts[at].last = Some((last, task));
                self.bare.remove(&at);
            }
        }
    }

    /// Submits the job of the tables, or lets the one that is there wait for what is new.
    pub(super) fn submit_tables(&mut self, there: Option<u64>) -> Result<(), SweepError> {
        // It waits for jobs whose numbers are known.
        let number = |(one, _): LastTask| self.submitter.jobs.submissions[one].job;
        let unsent = |at: &usize| self.attempts[*at].last.and_then(number).is_none();
        if !self.tables_due || self.tally.open().iter().any(unsent) {
            return Ok(());
        }
        // One that is new would run what somebody has cancelled.
        if there.is_none() && !self.cancelled.is_empty() {
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
        let need = |need: Ask, attempt: &Attempt| need.at_least(attempt.need);
        let need = self.attempts.iter().fold(Ask::default(), need);
        match self.submitter.tables(&arrays, need) {
            Ok(Sent::Job(job)) => {
                self.living.insert(job);
                Ok(())
            }
            Ok(Sent::Unclear(refused)) | Err(SweepError::Slurm(refused)) => {
                self.say(format!("{refused}; this watch writes the tables, if it lasts"));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}
