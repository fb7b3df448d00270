//! How the tasks of lost cells ended, as far as Slurm and their logs say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::units::to_usize;

use super::answers::{Entry, ended};
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

/// The fates of some tasks, each once.
pub(super) fn fates(
    submitter: &Submitter<'_>,
    queue: &[Entry],
    tasks: &BTreeSet<LastTask>,
) -> BTreeMap<LastTask, Fate> {
    let submissions = &submitter.jobs.submissions;
    let jobs: BTreeSet<u64> = tasks.iter().filter_map(|&(one, _)| submissions[one].job).collect();
    let in_queue = queue.iter().filter(|entry| !entry.lives());
    let mut known: Vec<(u64, Option<u64>, String)> =
        in_queue.map(|entry| (entry.job, entry.task, entry.state.clone())).collect();
    let accounts = submitter.cluster.accounts(&jobs.into_iter().collect::<Vec<_>>());
    known.extend(accounts.into_iter().filter(|(_, _, state)| ended(state)));
    let mut states: BTreeMap<(u64, Option<usize>), &str> = BTreeMap::new();
    for (job, task, state) in &known {
        states.entry((*job, task.map(to_usize))).or_insert(state);
    }
    let fate = |&(one, task): &LastTask| {
        let submission = &submissions[one];
        let of = |job| states.get(&(job, Some(task))).or_else(|| states.get(&(job, None)));
        let state = submission.job.and_then(|job| of(job).copied());
        let name = submission.job.map(|job| format!("{job}_{task}"));
        let words = name.zip(state).map(|(name, state)| format!("{name} {state}"));
        let cause = cause(state, &submitter.log(&submission.label, task));
        ((one, task), Fate { words, cause, ask: submission.ask })
    };
    tasks.iter().map(fate).collect()
}

/// What there was too little of: by the state, or by what Slurm wrote into the log of a task
/// whose state does not say it.
fn cause(state: Option<&str>, log: &Path) -> Cause {
    match state {
        Some("OUT_OF_MEMORY") => return Cause::Memory,
        Some("TIMEOUT") => return Cause::Time,
        _ => {}
    }
    let end = log_end(log).unwrap_or_default();
    if ["oom_kill", "oom-kill", "Out Of Memory"].iter().any(|words| end.contains(words)) {
        Cause::Memory
    } else if end.contains("DUE TO TIME LIMIT") {
        Cause::Time
    } else {
        Cause::Other
    }
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
    use super::{Ask, Cause, Submitter, fates, told};

    #[test]
    fn the_ends_of_tasks_are_told_by_the_queue_by_the_accounts_and_by_logs() {
        let out = tempfile::tempdir().unwrap();
        let (fake, request, estimate) = (Fake::default(), request(out.path()), estimate(5));
        let jobs = Jobs::open(out.path(), out.path(), "7f").unwrap();
        let mut submitter = Submitter::new(&fake, &request, &estimate, jobs);
        let cells: Vec<_> = estimate.cells.iter().collect();
        let tasks: Vec<_> = cells.chunks(1).collect();
        submitter.array(&tasks, Ask { megabytes: 9000, minutes: 0 }).unwrap();
        let queue = [entry("100|1|TIMEOUT|TimeLimit|/x/cells-1.sh")];
        fake.account(&[(100, Some(0), "OUT_OF_MEMORY"), (100, Some(2), "RUNNING")]);
        let log = |task, text: &str| fs::write(submitter.log("cells-1", task), text).unwrap();
        log(2, "slurmstepd: error: Detected 1 oom_kill event in StepId=100.batch.");
        log(3, "slurmstepd: error: *** JOB 104 ON n CANCELLED AT 2026 DUE TO TIME LIMIT ***");
        let all: BTreeSet<_> = (0..5).map(|task| (0, task)).collect();
        let found = fates(&submitter, &queue, &all);
        let causes: Vec<Cause> = found.values().map(|fate| fate.cause).collect();
        let (memory, time) = (Cause::Memory, Cause::Time);
        assert_eq!(causes, [memory, time, memory, time, Cause::Other]);
        assert_eq!(told(found.values()), " (100_0 OUT_OF_MEMORY, 100_1 TIMEOUT)");
        assert_eq!(told([].into_iter()), "");
        assert!(found.values().all(|fate| fate.ask.megabytes == 9000 && fate.ask.minutes > 0));
    }
}
