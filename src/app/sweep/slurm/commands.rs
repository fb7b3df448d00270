//! Runs Slurm's commands and parses their output.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use thiserror::Error as ThisError;

/// Why a sweep could not be submitted. Jobs are never cancelled.
#[derive(Debug, ThisError)]
pub enum SlurmError {
    /// A command cannot be started.
    #[error(
        "{command} cannot be run: expected the commands of Slurm here, as on the login node \
         of a cluster; --print writes the scripts alone"
    )]
    Missing {
        /// Which.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// A command ended with an error.
    #[error("{command}: {run_command}")]
    Refused {
        /// Which.
        command: String,
        /// Its error output.
        run_command: String,
    },
    /// A command printed something unexpected.
    #[error("{command}: expected {expected}, found {found:?}")]
    Unreadable {
        /// Which.
        command: String,
        /// What was expected.
        expected: &'static str,
        /// What it printed.
        found: String,
    },
    /// Only some jobs could be submitted.
    #[error(
        "submitted so far: {}; cancel with scancel --name={name}; then the same command submits \
         what is missing",
        jobs(submitted)
    )]
    PartlySubmitted {
        /// Job numbers.
        submitted: Vec<u64>,
        /// The name of the jobs.
        name: String,
        /// Why the next one failed.
        source: Box<SlurmError>,
    },
    /// Earlier jobs of the folder have not ended.
    #[error(
        "{}: {} queued or running: run the same command when they have ended \
         (squeue --name={name}), or cancel them first: scancel --name={name}",
        folder.display(), jobs(active)
    )]
    Queued {
        /// The folder of the sweep.
        folder: PathBuf,
        /// Job numbers.
        active: Vec<u64>,
        /// The name of the jobs.
        name: String,
    },
    /// The list of jobs is damaged.
    #[error(
        "{}: {message}; if no job of this sweep is in the queue, remove the file",
        path.display()
    )]
    Jobs {
        /// The file.
        path: PathBuf,
        /// The problem.
        message: String,
    },
}

fn jobs(numbers: &[u64]) -> String {
    let text: Vec<String> = numbers.iter().map(u64::to_string).collect();
    format!("{} {}", if text.len() == 1 { "job" } else { "jobs" }, text.join(", "))
}

/// The clusters that `sbatch` submits to; the other commands query the same ones.
const CLUSTERS: &str = "SBATCH_CLUSTERS";

/// Variables that Slurm's commands must not get: names and logs of jobs are set by the scripts,
/// and `squeue` must list these jobs in any state and partition.
const CLEARED_VARIABLES: [&str; 8] = [
    "SBATCH_ARRAY_INX",
    "SBATCH_JOB_NAME",
    "SBATCH_OUTPUT",
    "SQUEUE_ACCOUNT",
    "SQUEUE_NAMES",
    "SQUEUE_PARTITION",
    "SQUEUE_STATES",
    "SQUEUE_USERS",
];

/// The most tasks of an array if the cluster does not say: Slurm's default.
pub(super) const DEFAULT_ARRAY_SIZE: usize = 1001;

/// The state of each task, as `TIMEOUT`, by job and array index. A job that is no array has index
/// 0.
pub(super) type States = BTreeMap<(u64, usize), String>;

/// Checks that `sbatch` runs.
pub(super) fn check() -> Result<(), SlurmError> {
    run_command("sbatch", ["--version"]).map(drop)
}

/// Submits a script to start after the jobs `after`; returns its number.
pub(super) fn submit(script: &Path, after: &[u64]) -> Result<u64, SlurmError> {
    let mut words = vec![String::from("--parsable")];
    if !after.is_empty() {
        let after: Vec<String> = after.iter().map(u64::to_string).collect();
        words.push(format!("--dependency=afterany:{}", after.join(":")));
    }
    let words = words.iter().map(OsStr::new).chain([script.as_os_str()]);
    let answer = run_command("sbatch", words)?;
    // NUMBER or NUMBER;CLUSTER, possibly after lines of a site's plugin.
    let number = answer.lines().rev().find_map(|line| line.split(';').next()?.trim().parse().ok());
    number.ok_or_else(|| SlurmError::Unreadable {
        command: String::from("sbatch"),
        expected: "the number of a job",
        found: answer.trim().to_owned(),
    })
}

/// The most tasks of an array.
pub(super) fn array_limit() -> usize {
    let answer = run_command("scontrol", ["show", "config"]).unwrap_or_default();
    let line = answer.lines().find_map(|line| line.strip_prefix("MaxArraySize"));
    let limit = line.and_then(|rest| rest.trim().trim_start_matches('=').trim().parse().ok());
    limit.unwrap_or(DEFAULT_ARRAY_SIZE).max(1)
}

/// The states of the jobs called `name`, as far as the controller has them.
pub(super) fn queue(name: &str) -> Result<States, SlurmError> {
    let name = format!("--name={name}");
    let words = ["--noheader", "--all", "--array", "--states=all", &name, "--format=%F|%K|%T"];
    Ok(queued(&run_command("squeue", words)?))
}

/// The states of `jobs` in the accounting; empty if the cluster has none.
pub(super) fn accounts(jobs: &[u64]) -> States {
    let list: Vec<String> = jobs.iter().map(u64::to_string).collect();
    let list = format!("--jobs={}", list.join(","));
    let words = ["--noheader", "--parsable2", "--allocations", &list, "--format=JobID,State"];
    let clusters = std::env::var(CLUSTERS).map(|names| format!("--clusters={names}"));
    let words = words.into_iter().chain(clusters.as_deref().ok());
    accounted(&run_command("sacct", words).unwrap_or_default())
}

/// Lines of `squeue`: `12|3|RUNNING`, or `12|N/A|RUNNING`.
fn queued(text: &str) -> States {
    let line = |line: &str| {
        let mut words = line.trim().split('|');
        let (job, index, state) = (words.next()?, words.next()?, words.next()?);
        let index = if index == "N/A" { 0 } else { index.parse().ok()? };
        Some(((job.parse().ok()?, index), state.to_owned()))
    };
    text.lines().filter_map(line).collect()
}

/// Lines of `sacct`: `12_3|CANCELLED by 1000`, or `12|COMPLETED`.
fn accounted(text: &str) -> States {
    let line = |line: &str| {
        let (id, state) = line.trim().split_once('|')?;
        let (job, index) = id.split_once('_').unwrap_or((id, "0"));
        let state = state.split_whitespace().next()?.trim_end_matches('+');
        Some(((job.parse().ok()?, index.parse().ok()?), state.to_owned()))
    };
    text.lines().filter_map(line).collect()
}

/// Whether a task in this state may still run.
pub(super) fn is_active(state: &str) -> bool {
    const ENDED: [&str; 10] = [
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    ];
    !ENDED.contains(&state)
}

/// Runs a command and returns its output.
fn run_command<'a, W: AsRef<OsStr> + ?Sized + 'a>(
    program: &str,
    words: impl IntoIterator<Item = &'a W>,
) -> Result<String, SlurmError> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null());
    for word in CLEARED_VARIABLES {
        command.env_remove(word);
    }
    if let Some(clusters) = std::env::var_os(CLUSTERS) {
        command.env("SLURM_CLUSTERS", clusters);
    }
    let missing = |source| SlurmError::Missing { command: program.to_owned(), source };
    let output = command.output().map_err(missing)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let own = format!("{program}: ");
    let words = |line: &str| {
        let line = line.trim();
        let line = line.strip_prefix(&own).unwrap_or(line);
        line.strip_prefix("error: ").unwrap_or(line).to_owned()
    };
    let lines: Vec<String> = text.lines().map(words).filter(|line| !line.is_empty()).collect();
    let run_command = if lines.is_empty() { output.status.to_string() } else { lines.join("; ") };
    Err(SlurmError::Refused { command: program.to_owned(), run_command })
}

#[cfg(test)]
mod tests {
    use super::{SlurmError, accounted, is_active, queued, run_command};

    #[test]
    fn missing_and_failing_commands_are_reported() {
        let missing = run_command::<str>("gpumodel-no-such-command", []).unwrap_err();
        assert!(matches!(missing, SlurmError::Missing { .. }));
        assert!(missing.to_string().contains("login node of a cluster; --print"), "{missing}");
        let words = ["-c", "echo fine; printf 'sh: error: not today\n\nnor now\n' >&2; exit 3"];
        assert_eq!(run_command("sh", words).unwrap_err().to_string(), "sh: not today; nor now");
        assert!(
            run_command("sh", ["-c", "exit 3"]).unwrap_err().to_string().contains("exit status: 3")
        );
        assert_eq!(run_command("sh", ["-c", "echo fine"]).unwrap(), "fine\n");
    }

    #[test]
    fn states_are_read_by_job_and_place() {
        let found = queued("12|3|RUNNING\n13|N/A|PENDING\n\nodd\n");
        assert_eq!(found, [((12, 3), "RUNNING".into()), ((13, 0), "PENDING".into())].into());
        let found = accounted("12_0|OUT_OF_MEMORY\n12_1|CANCELLED by 1000\n12_[2-9]|PENDING\n");
        let expected = [((12, 0), "OUT_OF_MEMORY".into()), ((12, 1), "CANCELLED".into())];
        assert_eq!(found, expected.into());
        assert!(is_active("RUNNING") && is_active("COMPLETING") && !is_active("OUT_OF_MEMORY"));
    }
}
