//! Submitting, written down before and after.

use std::fs;
use std::path::{Path, PathBuf};

use crate::record::SweepEstimate;

use super::super::error::SweepError;
use super::super::folder::write;
use super::commands::Cluster;
use super::error::SlurmError;
use super::jobs::{Jobs, Submission};
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

    /// Submits an array; gives its number.
    pub(super) fn array(&mut self, tasks: &[Task<'_>]) -> Result<u64, SweepError> {
        let script = self.jobs.label("cells");
        let text =
            self.request.tasks_script(&self.folder, self.label(&script), tasks, self.estimate);
        let tasks = tasks.iter().map(|task| range(task)).collect();
        // Tables that were written before are without these cells.
        let _ = self.last_end().map(fs::remove_file);
        self.submit(&text, Submission { label: script, job: None, tasks }, &[])
    }

    /// Submits the job that follows the jobs `after`.
    pub(super) fn tables(&mut self, after: &[u64]) -> Result<u64, SweepError> {
        let script = self.jobs.label("tables");
        let (label, end) = (self.label(&script), self.end(&script));
        let text = self.request.tables_script(&self.folder, label, self.estimate, &end);
        // One of that name is of jobs that somebody has forgotten.
        let _ = fs::remove_file(end);
        self.submit(&text, Submission { label: script, ..Submission::default() }, after)
    }

    /// Whether the last job of the tables has come to its end, and written them.
    pub(super) fn tables_written(&self) -> bool {
        let code = self.last_end().and_then(|end| fs::read_to_string(end).ok());
        code.is_some_and(|code| ["0", "1"].contains(&code.trim()))
    }

    /// Where the last job of the tables leaves its exit code.
    fn last_end(&self) -> Option<PathBuf> {
        let last = self.jobs.submissions.iter().rfind(|one| one.writes_tables());
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
    ) -> Result<u64, SweepError> {
        fs::create_dir_all(&self.folder).map_err(SweepError::folder(&self.folder))?;
        let script = self.folder.join(format!("{}.sh", submission.label));
        write(&script, text)?;
        self.jobs.submissions.push(submission);
        self.save()?;
        match self.number(&script, after) {
            Ok(job) => {
                if let Some(last) = self.jobs.submissions.last_mut() {
                    last.job = Some(job);
                }
                self.save().map(|()| job)
            }
            Err(error) => {
                self.jobs.submissions.pop();
                self.save()?;
                Err(error.into())
            }
        }
    }

    /// Submits a script. An answer that is an error, or none, may be of a job that is in the
    /// queue nonetheless: the controller was only slow.
    fn number(&mut self, script: &Path, after: &[u64]) -> Result<u64, SlurmError> {
        let refused = match self.cluster.submit(script, after) {
            Ok(job) => return Ok(job),
            Err(missing @ SlurmError::Missing { .. }) => return Err(missing),
            Err(refused) => refused,
        };
        let queue = self.cluster.queue(&self.jobs.name).unwrap_or_default();
        self.jobs.adopt(&queue);
        self.jobs.submissions.last().and_then(|last| last.job).ok_or(refused)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::fakes::{Fake, entry, estimate, request};
    use super::super::jobs::Jobs;
    use super::Submitter;

    #[test]
    fn what_is_submitted_is_written_down_before_and_after() {
        let out = tempfile::tempdir().unwrap();
        let (fake, request, estimate) = (Fake::default(), request(out.path()), estimate(3));
        let folder = super::super::folder(out.path());
        let jobs = Jobs::open(&folder, out.path(), "7f").unwrap();
        let mut submitter = Submitter::new(&fake, &request, &estimate, jobs);
        let cells: Vec<_> = estimate.cells.iter().collect();
        assert_eq!(submitter.array(&[&cells[..2], &cells[2..]]).unwrap(), 100);
        assert_eq!(submitter.tables(&[100]).unwrap(), 101);
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
        let said = submitter.array(&[&cells]).unwrap_err().to_string();
        assert!(said.contains("sbatch: Invalid partition"), "{said}");
        assert_eq!(Jobs::read(&folder).unwrap(), None);
        fake.refuse("Socket timed out");
        fake.set(vec![entry("44|0|PENDING|None|/x/cells-1.sh")]);
        assert_eq!(submitter.array(&[&cells]).unwrap(), 44);
        assert_eq!(Jobs::read(&folder).unwrap().unwrap().submissions[0].job, Some(44));
    }
}
