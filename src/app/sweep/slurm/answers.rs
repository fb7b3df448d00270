//! What Slurm's commands answer.

use std::path::Path;

use super::error::SlurmError;

/// What `squeue` is asked for: job, place in its array, state, reason, script.
pub(super) const QUEUE_FORMAT: &str = "%F|%K|%T|%r|%o";

/// What `sacct` is asked for.
pub(super) const ACCOUNT_FORMAT: &str = "JobID,State,ExitCode";

/// How jobs end by signal 9, as CODE:SIGNAL, and scripts that tell of a command so ended.
const KILLED: [&str; 2] = ["0:9", "137:0"];

/// States of jobs that run no more. All others may still come to something.
const ENDED: [&str; 11] = [
    "COMPLETED",
    "CANCELLED",
    "FAILED",
    "TIMEOUT",
    "NODE_FAIL",
    "PREEMPTED",
    "BOOT_FAIL",
    "DEADLINE",
    "OUT_OF_MEMORY",
    "REVOKED",
    "LAUNCH_FAILED",
];

/// Why jobs wait when all is well.
const USUAL: [&str; 8] = [
    "None",
    "Priority",
    "Resources",
    "Dependency",
    "JobArrayTaskLimit",
    "BeginTime",
    "Reservation",
    "Prolog",
];

/// A job, or a task of an array, in the queue or lately ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Number of the job; tasks of one array share it.
    pub(super) job: u64,
    /// Place in the array; `None`: the job has none, or all places of it.
    pub(super) task: Option<u64>,
    /// As Slurm calls it.
    pub(super) state: String,
    /// Why it waits, or how it ended.
    pub(super) reason: String,
    /// Name of its script, without its ending.
    pub(super) label: String,
}

impl Entry {
    /// Whether it runs, or may.
    pub(super) fn lives(&self) -> bool {
        !ended(&self.state)
    }

    /// Why it waits, where somebody should know.
    pub(super) fn trouble(&self) -> Option<&str> {
        let waits = self.state == "PENDING" || self.state.starts_with("REQUEUE");
        (waits && !USUAL.contains(&self.reason.as_str())).then_some(self.reason.as_str())
    }
}

/// A job, or a task of an array, by the accounts or by the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Account {
    /// Number of the job; tasks of one array share it.
    pub(super) job: u64,
    /// Place in the array; `None`: the job has none, or several places of it.
    pub(super) task: Option<u64>,
    /// As Slurm calls it.
    pub(super) state: String,
    /// Signal 9 ended it.
    pub(super) killed: bool,
}

/// Whether a job in this state runs no more.
pub(super) fn ended(state: &str) -> bool {
    ENDED.contains(&state)
}

/// Reads a table of `squeue`.
///
/// # Errors
/// [`SlurmError::Unreadable`] with the first line that is no entry.
pub(super) fn queue(command: &str, text: &str) -> Result<Vec<Entry>, SlurmError> {
    let unreadable = |line: &str| SlurmError::Unreadable {
        command: command.to_owned(),
        expected: "JOB|TASK|STATE|REASON|SCRIPT",
        found: line.to_owned(),
    };
    // Of several clusters each has a line before its jobs.
    let told = |line: &&str| !line.trim().is_empty() && !line.starts_with("CLUSTER: ");
    let lines = text.lines().filter(told);
    lines.map(|line| entry(line).ok_or_else(|| unreadable(line))).collect()
}

fn entry(line: &str) -> Option<Entry> {
    let mut words = line.trim().splitn(5, '|');
    let (job, task) = (words.next()?.parse().ok()?, words.next()?);
    let (state, reason, script) = (words.next()?, words.next()?, words.next()?);
    // A word that is no number, as 3-7%2, stands for several places: for all, to be safe.
    let label = Path::new(script).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let word = |word: &str| word.trim().to_owned();
    let one =
        Entry { job, task: task.parse().ok(), state: word(state), reason: word(reason), label };
    let known = |c: char| c.is_ascii_uppercase() || c == '_';
    (!one.state.is_empty() && one.state.chars().all(known)).then_some(one)
}

/// Reads what `sbatch --parsable` says: `JOB` or `JOB;CLUSTER`.
///
/// # Errors
/// [`SlurmError::Unreadable`] when the last line is none.
pub(super) fn submitted(command: &str, text: &str) -> Result<u64, SlurmError> {
    let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    let number = last.split(';').next().unwrap_or_default().trim().parse();
    number.map_err(|_| SlurmError::Unreadable {
        command: command.to_owned(),
        expected: "the number of a job",
        found: text.trim().to_owned(),
    })
}

/// Reads a table of `sacct`: job and task, state, exit code; leaves out what it does not
/// know. A task that is no number, as `[3-7%2]`, stands for several places: for all, to be
/// safe.
pub(super) fn accounts(text: &str) -> Vec<Account> {
    let line = |line: &str| {
        let mut words = line.trim().split('|');
        let (id, state) = (words.next()?, words.next()?);
        let (job, task) = id.split_once('_').map_or((id, None), |(job, task)| (job, Some(task)));
        let several = task.is_some_and(|task| task.starts_with('['));
        let task = task.filter(|_| !several).map(str::parse).transpose().ok()?;
        // "CANCELLED by 1000".
        let state = state.split_whitespace().next()?.to_owned();
        let killed = words.next().is_some_and(|code| KILLED.contains(&code));
        Some(Account { job: job.parse().ok()?, task, state, killed })
    };
    text.lines().filter_map(line).collect()
}

/// Reads what `scontrol --oneliner show job` says, a line per task of an array; leaves out
/// what it does not know.
pub(super) fn shown(text: &str) -> Vec<Account> {
    let line = |line: &str| {
        let word = |name: &str| {
            let value = |word: &str| Some(word.strip_prefix(name)?.strip_prefix('=')?.to_owned());
            line.split_whitespace().find_map(value)
        };
        let job = word("ArrayJobId").or_else(|| word("JobId"))?.parse().ok()?;
        let task = word("ArrayTaskId").and_then(|task| task.parse().ok());
        let killed = word("ExitCode").is_some_and(|code| KILLED.contains(&code.as_str()));
        Some(Account { job, task, state: word("JobState")?, killed })
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::{Account, Entry, accounts, queue, shown, submitted};

    fn known(job: u64, task: Option<u64>, state: &str, killed: bool) -> Account {
        Account { job, task, state: state.to_owned(), killed }
    }

    #[test]
    fn a_queue_is_read_line_by_line() {
        let text = "17|3|RUNNING|None|/a|b/slurm/cells-2.sh\n\
            17|4|PENDING|JobArrayTaskLimit|/a|b/slurm/cells-2.sh\n\n\
            18|N/A|PENDING|Dependency|/a b/slurm/tables-1.sh\n\
            CLUSTER: far\n\
            17|5-9%2|PENDING|launch failed requeued held|/x/cells-2.sh\n\
            17|0|OUT_OF_MEMORY|OutOfMemory|/x/cells-2.sh\n";
        let read = queue("squeue", text).unwrap();
        let task = |entry: &Entry| (entry.job, entry.task, entry.lives(), entry.label.clone());
        assert_eq!(task(&read[0]), (17, Some(3), true, "cells-2".into()));
        assert_eq!(task(&read[2]), (18, None, true, "tables-1".into()));
        assert_eq!(task(&read[3]), (17, None, true, "cells-2".into()));
        assert_eq!(task(&read[4]), (17, Some(0), false, "cells-2".into()));
        let troubles: Vec<_> = read.iter().filter_map(Entry::trouble).collect();
        assert_eq!(troubles, ["launch failed requeued held"]);
        assert_eq!(queue("squeue", "").unwrap(), []);
    }

    #[test]
    fn what_is_no_entry_is_an_error_that_shows_it() {
        for wrong in
            ["slurm_load_jobs error: x", "1|2|RUNNING|None", "x|2|RUNNING|None|/a", "1|2||a|b"]
        {
            let said = queue("squeue --x", &format!("17|3|RUNNING|None|/a\n{wrong}\n"));
            let said = said.unwrap_err().to_string();
            assert!(
                said.contains("squeue --x: expected JOB|TASK") && said.contains(wrong),
                "{said}"
            );
        }
    }

    #[test]
    fn a_number_is_read_with_and_without_a_cluster() {
        assert_eq!(submitted("sbatch", "123\n").unwrap(), 123);
        assert_eq!(submitted("sbatch", "Welcome!\n123;far\n").unwrap(), 123);
        for wrong in ["", "Submitted batch job 5\n", "\n"] {
            assert!(submitted("sbatch", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn accounts_are_read_as_far_as_they_can_be() {
        let text = "12_3|CANCELLED by 1000|0:9\n12_[4-9]|PENDING|0:0\n13|TIMEOUT|0:0\n\
            13.batch|FAILED|0:9\n14_0|OUT_OF_MEMORY|0:125\n14_1|FAILED|137:0\n14_2|FAILED|1:0\n\
            14_3|NODE_FAIL\nnoise\n";
        let expected = [
            known(12, Some(3), "CANCELLED", true),
            known(12, None, "PENDING", false),
            known(13, None, "TIMEOUT", false),
            known(14, Some(0), "OUT_OF_MEMORY", false),
            known(14, Some(1), "FAILED", true),
            known(14, Some(2), "FAILED", false),
            known(14, Some(3), "NODE_FAIL", false),
        ];
        assert_eq!(accounts(text), expected);
    }

    /// As Slurm 22.05 has shown it, cut short.
    const SHOWN: &str = "\
        JobId=3 ArrayJobId=1 ArrayTaskId=1 JobName=t UserId=root(0) JobState=FAILED \
        Reason=JobLaunchFailure Requeue=1 ExitCode=0:9 RunTime=00:00:00 TimeLimit=00:01:00\n\
        JobId=1 ArrayJobId=1 ArrayTaskId=5 JobName=t UserId=root(0) JobState=CANCELLED \
        Reason=None Requeue=1 ExitCode=0:15 RunTime=00:00:05 TimeLimit=00:01:00\n\
        JobId=9 ArrayJobId=9 ArrayTaskId=6-8%2 JobName=t UserId=root(0) JobState=PENDING \
        Reason=Resources Requeue=1 ExitCode=0:0 RunTime=00:00:00 TimeLimit=00:01:00\n\
        JobId=11 JobName=t UserId=root(0) JobState=TIMEOUT Reason=TimeLimit ExitCode=0:15\n";

    #[test]
    fn what_the_controller_remembers_is_read_task_by_task() {
        let expected = [
            known(1, Some(1), "FAILED", true),
            known(1, Some(5), "CANCELLED", false),
            known(9, None, "PENDING", false),
            known(11, None, "TIMEOUT", false),
        ];
        assert_eq!(shown(SHOWN), expected);
        assert_eq!(shown("slurm_load_jobs error: Invalid job id specified\n"), []);
    }
}
