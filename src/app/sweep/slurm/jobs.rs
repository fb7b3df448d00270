//! The list of submitted jobs: `slurm/jobs.json` in the folder of a sweep.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::{Resources, write};
use crate::{SlurmError, SweepError};

/// Value of [`Jobs::schema`].
const SCHEMA: &str = "gpumodel.slurm/2";

/// The submissions of a sweep, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Jobs {
    schema: String,
    /// The name of all jobs.
    pub(super) name: String,
    pub(super) submissions: Vec<Submission>,
}

/// A submitted script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Submission {
    /// The name of its script, without extension.
    pub(super) label: String,
    /// The job number.
    pub(super) job: u64,
    /// The hash of the plan's cells.
    pub(super) plan_hash: String,
    /// By array index: ranges of cell numbers in the plan. Empty for the job of the tables.
    pub(super) tasks: Vec<Vec<(u64, u64)>>,
    /// The resources of each task.
    #[serde(flatten)]
    pub(super) resources: Resources,
}

/// The name of the jobs of the sweep in `out`, for `squeue --name` and `scancel --name`.
fn name(out: &Path) -> String {
    let path = std::path::absolute(out).unwrap_or_else(|_| out.to_path_buf());
    format!("gpumodel-{:016x}", xxh3_64(path.as_os_str().as_encoded_bytes()))
}

impl Jobs {
    /// Reads the list in `folder`, the folder of scripts of the sweep in `out`.
    pub(super) fn read(folder: &Path, out: &Path) -> Result<Self, SweepError> {
        let path = file(folder);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let (schema, name) = (SCHEMA.to_owned(), name(out));
                return Ok(Self { schema, name, submissions: Vec::new() });
            }
            Err(source) => return Err(SweepError::Folder { path, source }),
        };
        let invalid = |message| SlurmError::Jobs { path: path.clone(), message };
        let jobs: Self =
            serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))?;
        if jobs.schema != SCHEMA {
            let found = &jobs.schema;
            Err(invalid(format!("expected schema \"{SCHEMA}\", found \"{found}\"")))?;
        }
        Ok(jobs)
    }

    /// Adds a submission and writes the file.
    pub(super) fn add(&mut self, folder: &Path, one: Submission) -> Result<(), SweepError> {
        self.submissions.push(one);
        let text = serde_json::to_string_pretty(self).expect("jobs are plain data");
        write(&file(folder), &(text + "\n"))
    }

    /// The last task with the cell of this number: its submission and array index.
    pub(super) fn last(&self, plan_hash: &str, cell: u64) -> Option<(&Submission, usize)> {
        let holds = |task: &Vec<(u64, u64)>| task.iter().any(|&(a, b)| (a..=b).contains(&cell));
        let of = |one: &Submission| one.tasks.iter().position(holds);
        let same = self.submissions.iter().rev().filter(|one| one.plan_hash == plan_hash);
        same.filter_map(|one| Some((one, of(one)?))).next()
    }
}

fn file(folder: &Path) -> PathBuf {
    folder.join("jobs.json")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{Jobs, Resources, Submission, file};

    #[test]
    fn lists_round_trip_and_damage_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let read = || Jobs::read(folder.path(), Path::new("/out"));
        let mut jobs = read().unwrap();
        for job in [10, 11] {
            let tasks = vec![vec![(1, 3), (5, 5)], vec![(4, 4)]];
            let resources = Resources { megabytes: job, minutes: 7 };
            let (label, plan_hash) = (format!("cells-{job}"), String::from("7f"));
            let one = Submission { label, job, plan_hash, tasks, resources };
            jobs.add(folder.path(), one).unwrap();
        }
        assert_eq!(read().unwrap(), jobs);
        let last = |hash: &str, cell| jobs.last(hash, cell).map(|(one, at)| (one.job, at));
        assert_eq!((last("7f", 2), last("7f", 4)), (Some((11, 0)), Some((11, 1))));
        assert_eq!((last("7f", 6), last("80", 2)), (None, None));
        let other = "{\"schema\":\"x\",\"name\":\"\",\"submissions\":[]}";
        for (text, words) in [("{", "EOF while"), (other, "expected schema")] {
            fs::write(file(folder.path()), text).unwrap();
            let said = read().unwrap_err().to_string();
            assert!(said.contains("jobs.json") && said.contains(words), "{said}");
        }
    }
}
