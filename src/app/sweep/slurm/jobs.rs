//! The jobs of a sweep, written down: `slurm/jobs.json` in its folder.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use gpumodel_core::units::read_file;

use super::super::error::SweepError;
use super::super::folder::write;
use super::answers::Entry;
use super::ask::Ask;
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
    /// Place of the first submission of this round: when it was made, nothing lived of what
    /// was submitted before.
    #[serde(default)]
    round: usize,
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
    /// First and last of the cells whose tables the job writes; `None`: those of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) part: Option<(u64, u64)>,
    /// What each of its tasks asks for.
    #[serde(default)]
    pub(super) ask: Ask,
    /// What its cells need by what was lost of them before; nothing: by the estimate.
    #[serde(default)]
    pub(super) need: Ask,
    /// Seconds of the calendar when it was submitted, or about to be.
    #[serde(default)]
    pub(super) seconds: u64,
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
        let jobs: Self =
            serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
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
            round: 0,
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

    /// Begins a round of submissions for the plan with the hash `plan_hash`: what was
    /// submitted before counts for nothing.
    pub(super) fn begin_round(&mut self, plan_hash: &str) {
        self.round = self.submissions.len();
        plan_hash.clone_into(&mut self.plan_hash);
    }

    /// The submissions of this round with their places among all.
    pub(super) fn round(&self) -> impl Iterator<Item = (usize, &Submission)> {
        self.submissions.iter().enumerate().skip(self.round)
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
    /// Whether it is the job of the tables of `part` of the cells, or of all.
    pub(super) fn writes_tables(&self, part: Option<(u64, u64)>) -> bool {
        self.tasks.is_empty() && (self.part.is_none() || self.part == part)
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
            ..Submission::default()
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
    fn a_round_begins_after_what_was_submitted_and_old_lists_are_one() {
        let folder = tempfile::tempdir().unwrap();
        let text = "{\"schema\":\"gpumodel.slurm/1\",\"name\":\"n\",\"plan_hash\":\"7f\",\
            \"submissions\":[{\"label\":\"cells-1\",\"job\":9,\"tasks\":[[1,2]]}]}";
        fs::write(Jobs::path(folder.path()), text).unwrap();
        let mut jobs = Jobs::read(folder.path()).unwrap().unwrap();
        assert_eq!(jobs.round().count(), 1);
        jobs.begin_round("8a");
        assert_eq!((jobs.round().count(), jobs.plan_hash.as_str()), (0, "8a"));
        jobs.submissions.push(Submission::default());
        assert_eq!(jobs.round().map(|(place, _)| place).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn the_tables_of_another_part_are_not_those_of_this_one() {
        let of = |part| Submission { part, ..Submission::default() };
        assert!(of(None).writes_tables(None) && of(None).writes_tables(Some((1, 9))));
        let part = of(Some((1, 9)));
        assert!(part.writes_tables(Some((1, 9))) && !part.writes_tables(Some((10, 19))));
        assert!(!part.writes_tables(None) && !jobs().submissions[0].writes_tables(None));
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
