//! Which jobs live: those in the queue, and those that may only be late to come into it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::answers::{Account, Entry, ended};
use super::jobs::Submission;
use super::submit::Submitter;

/// How long a job that was submitted may stay out of the queue before it counts as lost: a
/// controller that is busy takes less.
const GRACE: Duration = Duration::from_secs(120);

/// What is known of jobs from look to look.
#[derive(Debug)]
pub(super) struct Life {
    grace: Duration,
    /// Jobs that the queue has shown.
    seen: BTreeSet<u64>,
    /// By script of a job that was not in the queue: since when it has been missed, and how
    /// long it was submitted then.
    missed: BTreeMap<String, (Instant, Duration)>,
}

/// What lives at one look.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Living {
    /// Jobs that live, or may.
    pub(super) jobs: BTreeSet<u64>,
    /// By cell: whether a task that lives, or may, is to run it.
    pub(super) covered: Vec<bool>,
    /// Slurm says of some that they live.
    pub(super) certain: bool,
    /// Sentences on jobs that the queue does not show.
    pub(super) told: Vec<String>,
}

impl Default for Life {
    fn default() -> Self {
        Self::new(GRACE)
    }
}

impl Life {
    /// Nothing is known so far; jobs may stay out of the queue for `grace`.
    pub(super) fn new(grace: Duration) -> Self {
        Self { grace, seen: BTreeSet::new(), missed: BTreeMap::new() }
    }

    /// Looks at the queue for who is to run the cells at the places `open`. Of jobs that it
    /// has never shown the accounts are asked, for those of a cluster elsewhere; who is in
    /// neither is waited for a while.
    pub(super) fn look(
        &mut self,
        submitter: &Submitter<'_>,
        queue: &[Entry],
        open: &[usize],
    ) -> Living {
        let covered = vec![false; submitter.estimate.cells.len()];
        let mut living = Living { covered, ..Living::default() };
        self.seen.extend(queue.iter().map(|entry| entry.job));
        for entry in queue.iter().filter(|entry| entry.lives()) {
            if let Some(one) = submitter.jobs.of(entry) {
                living.certain = true;
                living.add(submitter, one, entry.task);
            }
        }
        let unseen = |one: &&Submission| one.job.is_none_or(|job| !self.seen.contains(&job));
        let missing = submitter.jobs.round().map(|(_, one)| one).filter(unseen);
        let missing: Vec<&Submission> =
            missing.filter(|one| living.lacks(submitter, one, open)).collect();
        let jobs: Vec<u64> = missing.iter().filter_map(|one| one.job).collect();
        let accounts = if jobs.is_empty() { Vec::new() } else { submitter.cluster.accounts(&jobs) };
        for one in missing {
            let mine = |account: &&Account| one.job == Some(account.job);
            let states: Vec<_> = accounts.iter().filter(mine).collect();
            if states.is_empty() {
                self.wait(&mut living, submitter, one);
            }
            for Account { job, task, state, .. } in
                states.into_iter().filter(|account| !ended(&account.state))
            {
                living.certain = true;
                living.add(submitter, one, *task);
                let told = "the accounts have it as";
                living.told.push(format!("job {job} is not in the queue; {told} {state}"));
            }
        }
        living
    }

    /// Takes a job of which nobody knows for one that lives, until it was missed too long.
    fn wait(&mut self, living: &mut Living, submitter: &Submitter<'_>, one: &Submission) {
        let since = |one: &Submission| {
            // A calendar that was set back says nothing: the job is waited for from now on.
            let before = calendar_seconds().saturating_sub(one.seconds);
            (Instant::now(), Duration::from_secs(before))
        };
        let missed = self.missed.entry(one.label.clone()).or_insert_with(|| since(one));
        let job = one.job.map_or_else(|| one.label.clone(), |job| format!("job {job}"));
        if missed.0.elapsed().saturating_add(missed.1) < self.grace {
            living.add(submitter, one, None);
            let seconds = self.grace.as_secs();
            living.told.push(format!("{job} is not in the queue yet: it may take {seconds} s"));
        } else if missed.1 < self.grace {
            living.told.push(format!("{job} has not come into the queue: it counts as lost"));
        }
    }
}

impl Living {
    /// Whether a job lives, or may, of which not even the number is known.
    pub(super) fn any(&self) -> bool {
        !self.jobs.is_empty() || self.covered.contains(&true)
    }

    fn add(&mut self, submitter: &Submitter<'_>, one: &Submission, task: Option<u64>) {
        self.jobs.extend(one.job);
        for place in one.cells(task).filter_map(|number| submitter.place(number)) {
            self.covered[place] = true;
        }
    }

    /// Whether nobody is to run a cell at the places `open` that was to be run by `one`.
    fn lacks(&self, submitter: &Submitter<'_>, one: &Submission, open: &[usize]) -> bool {
        let bare = |place: usize| !self.covered[place] && open.binary_search(&place).is_ok();
        one.cells(None).filter_map(|number| submitter.place(number)).any(bare)
    }
}

/// What the calendar says, in seconds.
pub(super) fn calendar_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::fakes::{Fake, entry, estimate, request};
    use super::super::jobs::Jobs;
    use super::{Life, Submission, Submitter, calendar_seconds};

    /// A job of the cells 1-2 and 3, submitted so many seconds ago.
    fn submission(job: Option<u64>, ago: u64) -> Submission {
        Submission {
            label: String::from("cells-1"),
            job,
            tasks: vec![(1, 2), (3, 3)],
            seconds: calendar_seconds() - ago,
            ..Submission::default()
        }
    }

    /// What a look at an empty queue finds: cells that are covered, and what is said.
    fn look(life: &mut Life, one: Submission, accounts: &[(u64, Option<u64>, &str)]) -> String {
        let out = tempfile::tempdir().unwrap();
        let (fake, request, estimate) = (Fake::default(), request(out.path()), estimate(4));
        fake.account(accounts);
        let mut jobs = Jobs::open(out.path(), out.path(), "7f").unwrap();
        jobs.submissions.push(one);
        let submitter = Submitter::new(&fake, &request, &estimate, jobs);
        let living = life.look(&submitter, &[], &[0, 1, 2, 3]);
        format!("{:?} {:?} {}", living.covered, living.jobs, living.told.join("; "))
    }

    #[test]
    fn a_job_that_the_queue_does_not_show_is_waited_for_a_while() {
        let mut life = Life::new(Duration::from_secs(100));
        let found = look(&mut life, submission(Some(7), 0), &[]);
        assert!(found.starts_with("[true, true, true, false] {7} job 7 is not"), "{found}");
        let found = look(&mut Life::new(Duration::from_secs(100)), submission(None, 50), &[]);
        assert!(found.starts_with("[true, true, true, false] {} cells-1 is not"), "{found}");
        let found = look(&mut Life::new(Duration::from_secs(100)), submission(Some(7), 101), &[]);
        assert_eq!(found, "[false, false, false, false] {} ", "it has come and gone");
        // From the future: by a calendar that was set back since.
        let mut late = submission(Some(7), 0);
        late.seconds += 1 << 30;
        let mut life = Life::new(Duration::from_millis(200));
        let found = look(&mut life, late.clone(), &[]);
        assert!(found.starts_with("[true, true, true, false]"), "{found}");
        std::thread::sleep(Duration::from_millis(200));
        let found = look(&mut life, late, &[]);
        assert!(found.starts_with("[false, false, false, false] {} job 7 has not"), "{found}");
    }

    #[test]
    fn the_accounts_are_asked_for_what_the_queue_has_never_shown() {
        let mut life = Life::new(Duration::from_secs(100));
        let states = [(7, Some(0), "RUNNING"), (7, Some(1), "FAILED")];
        let found = look(&mut life, submission(Some(7), 5000), &states);
        assert!(found.starts_with("[true, true, false, false] {7} job 7 is not in"), "{found}");
        assert!(found.ends_with("the accounts have it as RUNNING"), "{found}");
        // Once the queue has shown it, the queue says how it goes on.
        life.seen.insert(entry("7|1|FAILED|None|/x/cells-1.sh").job);
        let found = look(&mut life, submission(Some(7), 0), &states);
        assert_eq!(found, "[false, false, false, false] {} ");
    }
}
