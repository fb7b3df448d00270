//! Submitting, written down before and after.

use std::fs;
use std::path::{Path, PathBuf};

use gpumodel_core::units::read_file;
use gpumodel_report::results::SweepEstimate;

use super::super::error::SweepError;
use super::super::folder::write;
use super::ask::Ask;
use super::commands::Cluster;
use super::error::SlurmError;
use super::jobs::{Jobs, Submission};
use super::life::calendar_seconds;
use super::request::SlurmRequest;
use super::scripts::{Label, Task, range};

/// Writes scripts and submits them.
pub(super) struct Submitter<'a> {
    pub(super) cluster: &'a dyn Cluster,
    pub(super) request: &'a SlurmRequest,
    pub(super) estimate: &'a SweepEstimate,
    pub(super) jobs: Jobs,
    folder: PathBuf,
}

impl<'a> Submitter<'a> {
    /// Submits the cells of `estimate` for the sweep that `jobs` are of.
    pub(super) fn new(
        cluster: &'a dyn Cluster,
        request: &'a SlurmRequest,
        estimate: &'a SweepEstimate,
        jobs: Jobs,
    ) -> Self {
        Self { cluster, request, estimate, jobs, folder: super::folder(&request.out) }
    }

    /// The place of the cell with that number in the plan among those of the estimate.
    pub(super) fn place(&self, number: u64) -> Option<usize> {
        let first = self.estimate.cells.first()?.number;
        let place = usize::try_from(number.checked_sub(first)?).ok()?;
        (place < self.estimate.cells.len()).then_some(place)
    }

    /// First and last of the cells, where not all of the plan were asked for.
    pub(super) fn part(&self) -> Option<(u64, u64)> {
        let ends = self.estimate.cells.first().zip(self.estimate.cells.last());
        ends.filter(|_| self.request.part).map(|(first, last)| (first.number, last.number))
    }

    /// Submits an array of tasks that ask for what they need at least.
    pub(super) fn array(&mut self, tasks: &[Task<'_>], need: Ask) -> Result<Sent, SweepError> {
        let script = self.jobs.label("cells");
        let ask = self.request.ask_of(tasks, self.estimate).at_least(need);
        let text = self.request.tasks_script(&self.folder, self.label(&script), tasks, ask);
        let tasks = tasks.iter().map(|task| range(task)).collect();
        // Tables that were written before are without these cells.
        let _ = self.last_end().map(fs::remove_file);
        let submission = Submission { label: script, tasks, ask, need, ..Submission::default() };
        self.submit(&text, submission, &[])
    }

    /// Submits the job that follows the jobs `after`, for cells of which some need more.
    pub(super) fn tables(&mut self, after: &[u64], need: Ask) -> Result<Sent, SweepError> {
        let script = self.jobs.label("tables");
        let (label, end) = (self.label(&script), self.end(&script));
        let ask = self.request.ask_last(self.estimate).at_least(need);
        let text = self.request.tables_script(&self.folder, label, (self.estimate, ask), &end);
        // One of that name is of jobs that somebody has forgotten.
        let _ = fs::remove_file(end);
        let part = self.part();
        let submission = Submission { label: script, part, ask, ..Submission::default() };
        self.submit(&text, submission, after)
    }

    /// Whether the last job of the tables has come to its end, and written them.
    pub(super) fn tables_written(&self) -> bool {
        let code = self.last_end().and_then(|end| read_file(&end).ok());
        code.is_some_and(|code| [&b"0"[..], b"1"].contains(&code.trim_ascii()))
    }

    /// Where the last job of the tables leaves its exit code.
    fn last_end(&self) -> Option<PathBuf> {
        let part = self.part();
        let last = self.jobs.submissions.iter().rfind(|one| one.writes_tables(part));
        last.map(|one| self.end(&one.label))
    }

    /// Where a job of the tables leaves its exit code.
    fn end(&self, label: &str) -> PathBuf {
        self.folder.join(format!("{label}.end"))
    }

    /// The log of a task.
    pub(super) fn log(&self, label: &str, task: usize) -> PathBuf {
        self.folder.join(format!("{label}_{task}.log"))
    }

    /// Writes the list of jobs.
    pub(super) fn save(&self) -> Result<(), SweepError> {
        self.jobs.save(&self.folder)
    }

    fn label<'l>(&'l self, script: &'l str) -> Label<'l> {
        Label { name: &self.jobs.name, script, plan_hash: &self.jobs.plan_hash }
    }

    fn submit(
        &mut self,
        text: &str,
        submission: Submission,
        after: &[u64],
    ) -> Result<Sent, SweepError> {
        fs::create_dir_all(&self.folder).map_err(SweepError::folder(&self.folder))?;
        let script = self.folder.join(format!("{}.sh", submission.label));
        write(&script, text)?;
        self.jobs.submissions.push(Submission { seconds: calendar_seconds(), ..submission });
        self.save()?;
        match self.number(&script, after) {
            Ok(sent) => {
                if let (Sent::Job(job), Some(last)) = (&sent, self.jobs.submissions.last_mut()) {
                    last.job = Some(*job);
                }
                self.save().map(|()| sent)
            }
            Err(error) => {
                self.jobs.submissions.pop();
                self.save()?;
                Err(error.into())
            }
        }
    }

    /// Submits a script. An answer that is an error, or none, may be of a job that is in the
    /// queue nonetheless, or that comes into it: the controller was only slow.
    fn number(&mut self, script: &Path, after: &[u64]) -> Result<Sent, SlurmError> {
        let refused = match self.cluster.submit(script, after) {
            Ok(job) => return Ok(Sent::Job(job)),
            Err(missing @ SlurmError::Missing { .. }) => return Err(missing),
            Err(refused) => refused,
        };
        let queue = self.cluster.queue(&self.jobs.name);
        let unknown = queue.is_err() || refused.unclear();
        self.jobs.adopt(&queue.unwrap_or_default());
        match self.jobs.submissions.last().and_then(|last| last.job) {
            Some(job) => Ok(Sent::Job(job)),
            None if unknown => Ok(Sent::Unclear(refused)),
            None => Err(refused),
        }
    }
}

/// What became of a script that was submitted.
#[derive(Debug)]
pub(super) enum Sent {
    /// It is the job of that number.
    Job(u64),
    /// Nobody knows; the list of jobs holds it, so that its job is found by its name.
    Unclear(SlurmError),
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::fakes::{Fake, entry, estimate, request};
    use super::super::jobs::Jobs;
    use super::{Ask, Sent, Submitter};

    fn job(sent: &Sent) -> Option<u64> {
        if let Sent::Job(job) = sent { Some(*job) } else { None }
    }

    #[test]
    fn what_is_submitted_is_written_down_before_and_after() {
        let out = tempfile::tempdir().unwrap();
        let (fake, request, estimate) = (Fake::default(), request(out.path()), estimate(3));
        let folder = super::super::folder(out.path());
        let jobs = Jobs::open(&folder, out.path(), "7f").unwrap();
        let mut submitter = Submitter::new(&fake, &request, &estimate, jobs);
        let cells: Vec<_> = estimate.cells.iter().collect();
        let sent = submitter.array(&[&cells[..2], &cells[2..]], Ask::default()).unwrap();
        assert_eq!(job(&sent), Some(100));
        let need = Ask { megabytes: 9000, minutes: 0 };
        assert_eq!(job(&submitter.tables(&[100], need).unwrap()), Some(101));
        let script = fs::read_to_string(folder.join("tables-1.sh")).unwrap();
        assert!(script.contains("--mem=9000M\n") && script.contains("--time=11\n"), "{script}");
        // What the cluster saw when it was asked: the entry was there, without a number.
        let seen = fake.seen();
        assert_eq!(seen[0].submissions[0].tasks, [(1, 2), (3, 3)]);
        assert_eq!((seen[0].submissions[0].job, seen[1].submissions[0].job), (None, Some(100)));
        let written = Jobs::read(&folder).unwrap().unwrap();
        let numbers: Vec<_> = written.submissions.iter().map(|one| one.job).collect();
        assert_eq!(numbers, [Some(100), Some(101)]);
        assert!(!submitter.tables_written());
        fs::write(folder.join("tables-1.end"), "1\n").unwrap();
        assert!(submitter.tables_written());
        fs::write(folder.join("tables-1.end"), "2\n").unwrap();
        assert!(!submitter.tables_written());
    }

    #[test]
    fn a_refusal_leaves_no_entry_unless_the_job_is_there_nonetheless() {
        let out = tempfile::tempdir().unwrap();
        let (fake, request, estimate) = (Fake::default(), request(out.path()), estimate(1));
        let folder = super::super::folder(out.path());
        let jobs = Jobs::open(&folder, out.path(), "7f").unwrap();
        let mut submitter = Submitter::new(&fake, &request, &estimate, jobs);
        let cells: Vec<_> = estimate.cells.iter().collect();
        fake.refuse("Invalid partition name specified");
        let said = submitter.array(&[&cells], Ask::default()).unwrap_err().to_string();
        assert!(said.contains("sbatch: Invalid partition"), "{said}");
        assert_eq!(Jobs::read(&folder).unwrap(), None);
        fake.refuse("Socket timed out");
        fake.set(vec![entry("44|0|PENDING|None|/x/cells-1.sh")]);
        assert_eq!(job(&submitter.array(&[&cells], Ask::default()).unwrap()), Some(44));
        assert_eq!(Jobs::read(&folder).unwrap().unwrap().submissions[0].job, Some(44));
    }

    #[test]
    fn what_may_have_been_submitted_stays_written_down() {
        let out = tempfile::tempdir().unwrap();
        let (fake, request, estimate) = (Fake::default(), request(out.path()), estimate(1));
        let folder = super::super::folder(out.path());
        let jobs = Jobs::open(&folder, out.path(), "7f").unwrap();
        let mut submitter = Submitter::new(&fake, &request, &estimate, jobs);
        let cells: Vec<_> = estimate.cells.iter().collect();
        // Nobody hears whether it is in the queue; then it does not show there at once.
        for (said, silent) in [("Slurm is asleep", true), ("Socket timed out on send", false)] {
            fake.refuse(said);
            fake.silence(silent);
            let sent = submitter.array(&[&cells], Ask::default()).unwrap();
            assert!(matches!(sent, Sent::Unclear(_)), "{said}: {sent:?}");
        }
        let mut written = Jobs::read(&folder).unwrap().unwrap();
        let labels: Vec<&str> = written.submissions.iter().map(|one| one.label.as_str()).collect();
        assert_eq!(labels, ["cells-1", "cells-2"]);
        assert!(written.submissions.iter().all(|one| one.job.is_none() && one.seconds > 0));
        assert!(written.adopt(&[entry("45|0|PENDING|None|/x/cells-2.sh")]));
        assert_eq!((written.submissions[0].job, written.submissions[1].job), (None, Some(45)));
    }
}
