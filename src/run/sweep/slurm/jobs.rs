//! The jobs of a sweep, written down: `slurm/jobs.json` in its folder.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::units::read_file;

use super::super::error::SweepError;
use super::super::folder::write;
use super::answers::Entry;
use super::error::SlurmError;

/// Value of [`Jobs::schema`].
const SCHEMA: &str = "gpumodel.slurm/1";

/// Everything that was submitted for a sweep, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Jobs {
    schema: String,
    /// What all of them are called.
    pub(super) name: String,
    /// Hash of the plan's cells that they were submitted for.
    pub(super) plan_hash: String,
    pub(super) submissions: Vec<Submission>,
}

/// A script that was submitted, or was about to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Submission {
    /// Name of its script, without its ending.
    pub(super) label: String,
    /// Its number; `None`: nobody has written it down.
    pub(super) job: Option<u64>,
    /// By place in the array: first and last cell, by their numbers in the plan. Empty:
    /// the job of the tables.
    pub(super) tasks: Vec<(u64, u64)>,
}

/// What jobs of the sweep in `out` are called.
pub(super) fn name(out: &Path) -> String {
    let path = std::path::absolute(out).unwrap_or_else(|_| out.to_path_buf());
    format!("gpumodel-{:016x}", xxh3_64(path.as_os_str().as_encoded_bytes()))
}

impl Jobs {
    /// The file in the folder of scripts.
    pub(super) fn path(folder: &Path) -> PathBuf {
        folder.join("jobs.json")
    }

    /// Reads the file; `None`: there is none.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>, SweepError> {
        let path = Self::path(folder);
        let bytes = match read_file(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(SweepError::Folder { path, source }),
        };
        let wrong = |message| SlurmError::Jobs { path: path.clone(), message };
        let jobs: Self = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        if jobs.schema != SCHEMA {
            let found = &jobs.schema;
            Err(wrong(format!("expected schema \"{SCHEMA}\", found \"{found}\"")))?;
        }
        Ok(Some(jobs))
    }

    /// What is written down, or nothing so far, for a plan with the hash `plan_hash`.
    pub(super) fn open(folder: &Path, out: &Path, plan_hash: &str) -> Result<Self, SweepError> {
        let new = || Self {
            schema: SCHEMA.to_owned(),
            name: name(out),
            plan_hash: plan_hash.to_owned(),
            submissions: Vec::new(),
        };
        Ok(Self::read(folder)?.unwrap_or_else(new))
    }

    /// Writes the file, whole; removes it where nothing was submitted.
    pub(super) fn save(&self, folder: &Path) -> Result<(), SweepError> {
        let path = Self::path(folder);
        if self.submissions.is_empty() {
            return match fs::remove_file(&path) {
                Err(source) if source.kind() != ErrorKind::NotFound => {
                    Err(SweepError::Folder { path, source })
                }
                _ => Ok(()),
            };
        }
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| SlurmError::Jobs { path: path.clone(), message: error.to_string() })?;
        write(&path, &(text + "\n"))
    }

    /// Writes down the numbers of jobs that were submitted by somebody who could not; true
    /// when there were any.
    pub(super) fn adopt(&mut self, queue: &[Entry]) -> bool {
        let known: Vec<u64> = self.submissions.iter().filter_map(|one| one.job).collect();
        let mut adopted = false;
        for one in self.submissions.iter_mut().filter(|one| one.job.is_none()) {
            let mine = |entry: &&Entry| {
                entry.lives() && entry.label == one.label && !known.contains(&entry.job)
            };
            one.job = queue.iter().filter(mine).map(|entry| entry.job).max();
            adopted |= one.job.is_some();
        }
        adopted
    }

    /// The next label of a kind of script.
    pub(super) fn label(&self, kind: &str) -> String {
        let number = |label: &str| label.strip_prefix(kind)?.strip_prefix('-')?.parse().ok();
        let last = self.submissions.iter().filter_map(|one| number(&one.label)).max();
        format!("{kind}-{}", last.unwrap_or(0u64) + 1)
    }

    /// The submission that an entry of the queue is of.
    pub(super) fn of(&self, entry: &Entry) -> Option<&Submission> {
        self.submissions.iter().find(|one| one.job == Some(entry.job))
    }
}

impl Submission {
    /// Whether it is the job of the tables.
    pub(super) fn writes_tables(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The cells of the tasks that an entry is of.
    pub(super) fn cells(&self, task: Option<u64>) -> impl Iterator<Item = u64> + '_ {
        let mine = move |place: usize| task.is_none_or(|task| usize::try_from(task) == Ok(place));
        let tasks = self.tasks.iter().enumerate().filter(move |(place, _)| mine(*place));
        tasks.flat_map(|(_, &(first, last))| first..=last)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::fakes::entry;
    use super::{Jobs, Submission, name};

    fn jobs() -> Jobs {
        let mut jobs = Jobs::open(Path::new("/nowhere"), Path::new("/out"), "7f").unwrap();
        let array = |label: &str, job| Submission {
            label: label.to_owned(),
            job,
            tasks: vec![(1, 3), (4, 4), (6, 7)],
        };
        jobs.submissions = vec![array("cells-1", Some(10)), array("cells-2", None)];
        jobs.submissions.push(Submission { label: "tables-1".into(), ..Submission::default() });
        jobs
    }

    #[test]
    fn what_is_written_is_read_and_what_is_damaged_is_said() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Jobs::read(folder.path()).unwrap(), None);
        jobs().save(folder.path()).unwrap();
        assert_eq!(Jobs::read(folder.path()).unwrap(), Some(jobs()));
        for (text, words) in [
            ("{", "EOF while"),
            (
                "{\"schema\":\"x\",\"name\":\"\",\
            \"plan_hash\":\"\",\"submissions\":[]}",
                "expected schema",
            ),
        ] {
            fs::write(Jobs::path(folder.path()), text).unwrap();
            let said = Jobs::read(folder.path()).unwrap_err().to_string();
            assert!(said.contains("jobs.json") && said.contains(words), "{said}");
        }
        Jobs { submissions: Vec::new(), ..jobs() }.save(folder.path()).unwrap();
        assert_eq!(Jobs::read(folder.path()).unwrap(), None, "nothing was submitted");
    }

    #[test]
    fn a_job_whose_number_nobody_wrote_down_is_found_by_its_script() {
        let mut jobs = jobs();
        let ended = entry("30|0|FAILED|BadConstraints|/x/cells-2.sh");
        let other = entry("10|0|RUNNING|None|/x/cells-1.sh");
        assert!(!jobs.adopt(&[ended.clone(), other.clone()]));
        assert!(jobs.adopt(&[ended, other, entry("12|1|PENDING|None|/x/cells-2.sh")]));
        let numbers: Vec<_> = jobs.submissions.iter().map(|one| one.job).collect();
        assert_eq!(numbers, [Some(10), Some(12), None]);
    }

    #[test]
    fn labels_go_on_and_tasks_tell_their_cells() {
        let jobs = jobs();
        assert_eq!(
            (jobs.label("cells"), jobs.label("tables")),
            ("cells-3".into(), "tables-2".into())
        );
        let cells = |task| jobs.submissions[0].cells(task).collect::<Vec<_>>();
        assert_eq!(cells(Some(2)), [6, 7]);
        assert_eq!(cells(Some(9)), Vec::<u64>::new());
        assert_eq!(cells(None), [1, 2, 3, 4, 6, 7]);
        assert_ne!(name(Path::new("/a")), name(Path::new("/b")));
    }
}
