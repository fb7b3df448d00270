//! How the tasks of lost cells ended, as far as Slurm and their logs say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gpumodel_core::units::to_usize;

use super::answers::{Account, Entry, ended};
use super::ask::{Ask, Cause};
use super::losses::{TOLD, log_end};
use super::submit::Submitter;

/// The last task of a cell: which submission, and which place in its array.
pub(super) type LastTask = (usize, usize);

/// How a task ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fate {
    /// In words, as `17_3 CANCELLED`; `None`: nobody says.
    pub(super) words: Option<String>,
    pub(super) cause: Cause,
    /// What it had.
    pub(super) ask: Ask,
}

/// How tasks ended, by all looks at the queue: it shows what has ended for a while only, and
/// a watch may look seldom.
#[derive(Debug, Default)]
pub(super) struct Ends(BTreeMap<(u64, Option<u64>), String>);

impl Ends {
    /// Looks at a queue for tasks that have ended, and for those that were begun again since.
    pub(super) fn look(&mut self, queue: &[Entry]) {
        for entry in queue {
            let task = (entry.job, entry.task);
            if entry.lives() {
                self.0.remove(&task);
            } else {
                self.0.insert(task, entry.state.clone());
            }
        }
    }

    /// The same as accounts, which do not say by which signal.
    fn accounts(&self) -> impl Iterator<Item = Account> + '_ {
        let account = |(&(job, task), state): (&(u64, Option<u64>), &String)| Account {
            job,
            task,
            state: state.clone(),
            killed: false,
        };
        self.0.iter().map(account)
    }
}

/// The fates of some tasks, each once.
pub(super) fn fates(
    submitter: &Submitter<'_>,
    ends: &Ends,
    tasks: &BTreeSet<LastTask>,
) -> BTreeMap<LastTask, Fate> {
    let submissions = &submitter.jobs.submissions;
    let jobs: BTreeSet<u64> = tasks.iter().filter_map(|&(one, _)| submissions[one].job).collect();
    let mut known = submitter.cluster.accounts(&jobs.into_iter().collect::<Vec<_>>());
    known.retain(|account| ended(&account.state));
    known.extend(ends.accounts());
    let mut by_task: BTreeMap<(u64, Option<usize>), &Account> = BTreeMap::new();
    for account in &known {
        by_task.entry((account.job, account.task.map(to_usize))).or_insert(account);
    }
    let fate = |&(one, task): &LastTask| {
        let submission = &submissions[one];
        let of = |job| by_task.get(&(job, Some(task))).or_else(|| by_task.get(&(job, None)));
        let account = submission.job.and_then(|job| of(job).copied());
        let words = account.map(|account| words(account, task));
        let cause = cause(account, &submitter.log(&submission.label, task));
        ((one, task), Fate { words, cause, ask: submission.ask })
    };
    tasks.iter().map(fate).collect()
}

/// A task and its end, as `17_3 FAILED by signal 9`.
fn words(Account { job, state, killed, .. }: &Account, task: usize) -> String {
    let signal = if *killed { " by signal 9" } else { "" };
    format!("{job}_{task} {state}{signal}")
}

/// What logs hold of tasks that had too little memory: Slurm's words, of its own counting and
/// of the system's, and ours where the system gave no more.
const MEMORY_WORDS: [&str; 6] = [
    "oom_kill",
    "oom-kill",
    "Out Of Memory",
    "exceeded memory limit",
    "Exceeded job memory limit",
    "memory allocation of ",
];

/// Why a task ended: by its state, or by what Slurm wrote into its log where the state does
/// not say it, or has been forgotten.
///
/// Approximate: who has begun by the log, is ended by signal 9 and fails is taken for one that
/// had too little memory. The system's own killer ends so, and Slurm does not see it where no
/// group of processes counts memory; others may send the signal too. Then the next task asks
/// for more than it needs, within the bounds of [`Ask::after`].
fn cause(account: Option<&Account>, log: &Path) -> Cause {
    let state = account.map(|account| account.state.as_str());
    match state {
        Some("OUT_OF_MEMORY") => return Cause::Memory,
        Some("TIMEOUT") => return Cause::Time,
        _ => {}
    }
    let end = log_end(log).unwrap_or_default();
    let killed = state == Some("FAILED") && account.is_some_and(|account| account.killed);
    if (killed && began(&end)) || MEMORY_WORDS.iter().any(|words| end.contains(words)) {
        Cause::Memory
    } else if end.contains("DUE TO TIME LIMIT") {
        Cause::Time
    } else if state == Some("CANCELLED") || (state.is_none() && cancelled(&end)) {
        Cause::Cancelled
    } else {
        Cause::Other
    }
}

/// Whether a log has a line that is not Slurm's, as scripts write one first: Slurm gives a task
/// that it cannot launch the same end as one that is killed.
///
/// Approximate: what else writes into logs, as programs of a cluster that go before tasks,
/// counts too.
fn began(log: &str) -> bool {
    log.lines().any(|line| !line.trim().is_empty() && !line.starts_with("slurmstepd"))
}

/// Whether a log ends with Slurm's word that the task was cancelled, and not by Slurm.
fn cancelled(log: &str) -> bool {
    let last = log.lines().rfind(|line| line.contains(" CANCELLED AT "));
    last.is_some_and(|line| !line.contains(" DUE TO "))
}

/// Some fates in words, the first few, as ` (17_3 CANCELLED)`.
pub(super) fn told<'f>(fates: impl Iterator<Item = &'f Fate>) -> String {
    let words: Vec<&str> = fates.filter_map(|fate| fate.words.as_deref()).take(TOLD).collect();
    if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::super::fakes::{Fake, entry, estimate, request};
    use super::super::jobs::Jobs;
    use super::{Account, Ask, Cause, Ends, Submitter, cause, fates, told};

    #[test]
    fn the_ends_of_tasks_are_told_by_the_queue_by_the_accounts_and_by_logs() {
        let out = tempfile::tempdir().unwrap();
        let (fake, request, estimate) = (Fake::default(), request(out.path()), estimate(5));
        let jobs = Jobs::open(out.path(), out.path(), "7f").unwrap();
        let mut submitter = Submitter::new(&fake, &request, &estimate, jobs);
        let cells: Vec<_> = estimate.cells.iter().collect();
        let tasks: Vec<_> = cells.chunks(1).collect();
        submitter.array(&tasks, Ask { megabytes: 9000, minutes: 0 }).unwrap();
        let mut ends = Ends::default();
        ends.look(&[entry("100|1|TIMEOUT|TimeLimit|/x/cells-1.sh")]);
        fake.account(&[(100, Some(0), "OUT_OF_MEMORY"), (100, Some(2), "RUNNING")]);
        let log = |task, text: &str| fs::write(submitter.log("cells-1", task), text).unwrap();
        log(2, "slurmstepd: error: Detected 1 oom_kill event in StepId=100.batch.");
        log(3, "slurmstepd: error: *** JOB 104 ON n CANCELLED AT 2026 DUE TO TIME LIMIT ***");
        let all: BTreeSet<_> = (0..5).map(|task| (0, task)).collect();
        let found = fates(&submitter, &ends, &all);
        let causes: Vec<Cause> = found.values().map(|fate| fate.cause).collect();
        let (memory, time) = (Cause::Memory, Cause::Time);
        assert_eq!(causes, [memory, time, memory, time, Cause::Other]);
        assert_eq!(told(found.values()), " (100_0 OUT_OF_MEMORY, 100_1 TIMEOUT)");
        assert_eq!(told([].into_iter()), "");
        assert!(found.values().all(|fate| fate.ask.megabytes == 9000 && fate.ask.minutes > 0));
    }

    #[test]
    fn an_end_is_known_after_the_queue_has_forgotten_it_unless_the_task_was_begun_again() {
        let mut ends = Ends::default();
        let known = |ends: &Ends| {
            let words = |one: Account| super::words(&one, 0);
            ends.accounts().map(words).collect::<Vec<_>>()
        };
        ends.look(&[entry("7|0|NODE_FAIL|NodeDown|/x/cells-1.sh")]);
        ends.look(&[]);
        assert_eq!(known(&ends), ["7_0 NODE_FAIL"]);
        ends.look(&[entry("7|0|PENDING|BeginTime|/x/cells-1.sh")]);
        assert_eq!(known(&ends), Vec::<String>::new());
    }

    /// Why a task ended with a state, as `FAILED 0:9`, or none that is known, and a log.
    fn found(state: Option<&str>, log: &str) -> Cause {
        let out = tempfile::tempdir().unwrap();
        let path = out.path().join("log");
        fs::write(&path, log).unwrap();
        let account = state.map(|state| {
            let plain = state.strip_suffix(" 0:9");
            let (killed, state) = (plain.is_some(), plain.unwrap_or(state).to_owned());
            Account { job: 7, task: None, state, killed }
        });
        cause(account.as_ref(), &path)
    }

    /// What Slurm writes into the log of a task that it ends.
    fn ended_at(why: &str) -> String {
        format!("slurmstepd-n: error: *** JOB 9 ON n CANCELLED AT 2026-11-25T03:34:31{why} ***\n")
    }

    #[test]
    fn what_somebody_has_cancelled_is_told_from_what_slurm_has() {
        assert_eq!(found(Some("CANCELLED"), &ended_at("")), Cause::Cancelled);
        assert_eq!(found(Some("CANCELLED"), ""), Cause::Cancelled, "it had not begun");
        assert_eq!(found(Some("CANCELLED"), &ended_at(" DUE TO TIME LIMIT")), Cause::Time);
        let own = "slurmstepd: error: StepId=9.batch exceeded memory limit (9 > 5), being killed\n";
        assert_eq!(found(Some("CANCELLED"), &(own.to_owned() + &ended_at(""))), Cause::Memory);
        for state in ["NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "FAILED"] {
            assert_eq!(found(Some(state), &ended_at("")), Cause::Other, "{state}");
        }
        // Nobody remembers the state.
        assert_eq!(found(None, &ended_at("")), Cause::Cancelled);
        let failed = ended_at(" DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS");
        assert_eq!(found(None, &(ended_at("") + &failed)), Cause::Other, "the last one counts");
        assert_eq!(found(None, &ended_at(" DUE TO PREEMPTION")), Cause::Other);
        assert_eq!(found(None, ""), Cause::Other);
    }

    #[test]
    fn who_had_too_little_memory_is_known_without_a_group_that_counts_it() {
        let begun = "cells 1-2 begin\n";
        assert_eq!(found(Some("FAILED 0:9"), begun), Cause::Memory);
        assert_eq!(found(Some("CANCELLED 0:9"), begun), Cause::Cancelled);
        assert_eq!(found(Some("NODE_FAIL 0:9"), begun), Cause::Other);
        assert_eq!(found(Some("FAILED"), begun), Cause::Other);
        assert_eq!(found(Some("FAILED"), "memory allocation of 99 bytes failed\n"), Cause::Memory);
        assert_eq!(found(Some("FAILED"), "error: no such file\n"), Cause::Other);
    }

    #[test]
    fn a_task_that_was_not_launched_had_no_memory_to_be_too_little() {
        let slurm = "slurmstepd-n: error: Could not open stdout file: Permission denied\n";
        for log in ["", "\n", slurm] {
            assert_eq!(found(Some("FAILED 0:9"), log), Cause::Other, "{log}");
        }
        assert_eq!(found(Some("FAILED 0:9"), &(slurm.to_owned() + "waiting\n")), Cause::Memory);
    }
}
