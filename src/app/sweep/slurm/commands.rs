//! Slurm's commands as processes.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use super::answers::{self, ACCOUNT_FORMAT, Account, Entry, QUEUE_FORMAT};
use super::error::SlurmError;

/// What is asked of a cluster.
pub(super) trait Cluster {
    /// Whether anybody is there to ask.
    fn check(&self) -> Result<(), SlurmError>;

    /// Submits a script, to begin when the jobs `after` have ended; gives its number.
    fn submit(&self, script: &Path, after: &[u64]) -> Result<u64, SlurmError>;

    /// The jobs called `name`, those too that ended lately.
    fn queue(&self, name: &str) -> Result<Vec<Entry>, SlurmError>;

    /// Lets a job that waits wait for the jobs `after`.
    fn depend(&self, job: u64, after: &[u64]) -> Result<(), SlurmError>;

    /// The states of jobs and their tasks: by the accounts, where the cluster keeps some and
    /// they have a job, else as far as the controller remembers it, which is for
    /// `MinJobAge` after it has ended.
    fn accounts(&self, jobs: &[u64]) -> Vec<Account>;

    /// What goes before the memory and the time that scripts ask for.
    fn overruling(&self) -> Vec<&'static str>;
}

/// Where a user says what clusters `sbatch` submits to: the other commands ask those.
const CLUSTERS: &str = "SBATCH_CLUSTERS";

/// Where a user says what every job asks for.
const OVERRULING: [&str; 4] =
    ["SBATCH_MEM_PER_CPU", "SBATCH_MEM_PER_GPU", "SBATCH_MEM_PER_NODE", "SBATCH_TIMELIMIT"];

/// What the environment may not say to Slurm's commands: the names and logs of jobs are
/// those of the scripts, and the queue is asked for these jobs wherever they are.
const OWN_WORDS: [&str; 8] = [
    "SBATCH_ARRAY_INX",
    "SBATCH_JOB_NAME",
    "SBATCH_OUTPUT",
    "SQUEUE_ACCOUNT",
    "SQUEUE_NAMES",
    "SQUEUE_PARTITION",
    "SQUEUE_STATES",
    "SQUEUE_USERS",
];

/// The commands that the system finds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Commands;

impl Cluster for Commands {
    fn check(&self) -> Result<(), SlurmError> {
        said("sbatch", [OsStr::new("--version")]).map(|_| ())
    }

    fn submit(&self, script: &Path, after: &[u64]) -> Result<u64, SlurmError> {
        let mut words = vec![String::from("--parsable")];
        if !after.is_empty() {
            words.push(format!("--dependency=afterany:{}", list(after, ":")));
        }
        let words = words.iter().map(OsStr::new).chain([script.as_os_str()]);
        answers::submitted("sbatch", &said("sbatch", words)?)
    }

    fn queue(&self, name: &str) -> Result<Vec<Entry>, SlurmError> {
        let format = format!("--format={QUEUE_FORMAT}");
        let name = format!("--name={name}");
        let words = ["--noheader", "--all", "--array", "--states=all", &name, &format];
        answers::queue("squeue", &said("squeue", words.map(OsStr::new))?)
    }

    fn depend(&self, job: u64, after: &[u64]) -> Result<(), SlurmError> {
        let (job, after) =
            (format!("JobId={job}"), format!("Dependency=afterany:{}", list(after, ":")));
        said("scontrol", ["update", &job, &after].map(OsStr::new)).map(|_| ())
    }

    fn accounts(&self, jobs: &[u64]) -> Vec<Account> {
        let (all, format) =
            (format!("--jobs={}", list(jobs, ",")), format!("--format={ACCOUNT_FORMAT}"));
        let mut words = ["--noheader", "--parsable2", "--allocations", &all, &format].to_vec();
        let clusters = std::env::var(CLUSTERS).map(|names| format!("--clusters={names}"));
        words.extend(clusters.as_deref());
        // Many clusters keep none, or do not show them.
        let mut known = said("sacct", words.into_iter().map(OsStr::new))
            .map_or_else(|_| Vec::new(), |text| answers::accounts(&text));
        for job in jobs {
            if !known.iter().any(|one| one.job == *job) {
                let number = job.to_string();
                let words = ["--oneliner", "show", "job", &number].map(OsStr::new);
                // One that it has forgotten is an error.
                let text = said("scontrol", words).unwrap_or_default();
                known.extend(answers::shown(&text).into_iter().filter(|one| one.job == *job));
            }
        }
        known
    }

    fn overruling(&self) -> Vec<&'static str> {
        OVERRULING.into_iter().filter(|word| std::env::var_os(word).is_some()).collect()
    }
}

fn list(jobs: &[u64], between: &str) -> String {
    jobs.iter().map(u64::to_string).collect::<Vec<_>>().join(between)
}

/// Runs a command to its end and gives what it wrote.
fn said<'a>(
    program: &str,
    words: impl IntoIterator<Item = &'a OsStr>,
) -> Result<String, SlurmError> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null());
    for word in OWN_WORDS {
        command.env_remove(word);
    }
    if let Some(clusters) = std::env::var_os(CLUSTERS) {
        command.env("SLURM_CLUSTERS", clusters);
    }
    apart(&mut command);
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
    let said = if lines.is_empty() { output.status.to_string() } else { lines.join("; ") };
    Err(SlurmError::Refused { command: program.to_owned(), said })
}

/// Keeps an interrupt that somebody types from ending the command halfway.
#[cfg(unix)]
fn apart(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

#[cfg(not(unix))]
fn apart(_: &mut Command) {}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::{SlurmError, said};

    #[test]
    fn a_command_that_is_missing_or_refuses_is_said() {
        let missing = said("gpumodel-no-such-command", []).unwrap_err();
        assert!(matches!(missing, SlurmError::Missing { .. }));
        assert!(missing.to_string().contains("login node of a cluster; --print"), "{missing}");
        let words = ["-c", "echo fine; printf 'sh: error: not today\\n\\nnor now\\n' >&2; exit 3"]
            .map(OsStr::new);
        assert_eq!(said("sh", words).unwrap_err().to_string(), "sh: not today; nor now");
        let quiet = said("sh", ["-c", "exit 3"].map(OsStr::new)).unwrap_err();
        assert!(quiet.to_string().contains("exit status: 3"), "{quiet}");
        assert_eq!(said("sh", ["-c", "echo fine"].map(OsStr::new)).unwrap(), "fine\n");
    }
}
