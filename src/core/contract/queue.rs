//! Which applications run together: a queue of them in, groups out. How the members of a
//! group share the machine is another decision.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::units::{Cycle, JobId, to_u32};

/// What is fixed for a queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueFacts {
    /// Streaming multiprocessors.
    pub sms: u16,
    /// Applications that run together at most (N_G).
    pub group_size: usize,
    /// Peak DRAM bandwidth of all channels (MB_max).
    pub peak_dram_gb_per_s: f64,
    /// Thread instructions that all SMs issue per cycle at most (IPC_max).
    pub peak_ipc: f64,
    /// The different applications, as they are alone on the machine.
    pub apps: Vec<Profile>,
    /// The queue in order of arrival; index is the [`JobId`].
    pub jobs: Vec<Job>,
    /// Slow-downs that the user has measured: by the name of the class that disturbs,
    /// then of the class that suffers; empty: they are to be found by probes.
    pub given: BTreeMap<String, BTreeMap<String, f64>>,
}

/// An application alone on the whole machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Cycles of the run.
    pub cycles: Cycle,
    /// Thread instructions per cycle (IPC).
    pub ipc: f64,
    /// Bytes over the DRAM pins, both ways (MB).
    pub dram_gb_per_s: f64,
    /// Bytes read from the L2 by the SMs (L2->L1).
    pub l2_to_l1_gb_per_s: f64,
    /// Memory instructions over all others (R).
    pub memory_to_compute: f64,
    /// The class that the user gives it, by its place in Table I of ILP-SMRA; `None`: it
    /// follows from the metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_class: Option<usize>,
}

/// One place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its application, by its place in [`QueueFacts::apps`].
    pub app: usize,
    /// When it may run at the earliest.
    pub arrival: Cycle,
}

/// "Run these applications together, each on its own SMs, this many, and report."
/// The run ends when each has ended once; an early one restarts
/// meanwhile, so that the others are disturbed to their ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupProbe {
    /// The applications, by their places in [`QueueFacts::apps`]; one may be there
    /// twice.
    pub apps: Vec<usize>,
    /// SMs of each, neighbours from the lowest on.
    pub sms: Vec<u16>,
}

/// The answer to a [`GroupProbe`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupProbeResult {
    /// By member: cycles of its first run.
    pub cycles: Vec<Cycle>,
    /// By member: warp instructions of its first run.
    pub warp_instructions: Vec<u64>,
}

/// What a grouping sees when the machine is free.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueView {
    /// The cycle.
    pub now: Cycle,
    /// Who has arrived and not run, the earliest first; never empty.
    pub waiting: Vec<JobId>,
}

/// Jobs that run together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Its members.
    pub jobs: Vec<JobId>,
    /// The pattern that it follows, by its place in [`Groups::patterns`].
    pub pattern: Option<usize>,
}

/// A pattern: how many applications of each class a group has (P_k).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PatternUse {
    /// Applications of each class, by [`Findings::classes`]; behind them places that
    /// stay idle.
    pub counts: Vec<u32>,
    /// What it is worth (e_k).
    pub efficiency: f64,
    /// Groups that follow it (L_k).
    pub groups: u64,
}

/// Who runs together, one group after the other: made only by [`Groups::new`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Groups {
    groups: Vec<Group>,
    patterns: Vec<PatternUse>,
    reason: String,
}

/// Which law of groups a draft breaks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GroupLaw {
    /// A group has no member or more than run together.
    #[error("group {group} has {found} members; expected 1 to {most}")]
    Size {
        /// Which group, from 0.
        group: usize,
        /// Its members.
        found: usize,
        /// Members allowed.
        most: usize,
    },
    /// A job is not waiting, or in two groups.
    #[error("job {0} is in two groups or does not wait")]
    NotWaiting(JobId),
    /// A waiting job is in no group.
    #[error("job {0} waits and is in no group")]
    LeftOut(JobId),
    /// A group follows an unknown pattern.
    #[error("group {0} follows a pattern that is not listed")]
    Pattern(usize),
}

impl Groups {
    /// Checks the laws: every waiting job is in exactly one group, no other job is in
    /// any, and no group has more members than run together.
    ///
    /// # Errors
    /// [`GroupLaw`] says which law is broken and where.
    pub fn new(
        facts: &QueueFacts,
        view: &QueueView,
        groups: Vec<Group>,
        patterns: Vec<PatternUse>,
        reason: String,
    ) -> Result<Self, GroupLaw> {
        let mut waits = vec![false; facts.jobs.len()];
        for job in &view.waiting {
            waits[job.index()] = true;
        }
        for (number, group) in groups.iter().enumerate() {
            let (found, most) = (group.jobs.len(), facts.group_size);
            if found == 0 || found > most {
                return Err(GroupLaw::Size { group: number, found, most });
            }
            if group.pattern.is_some_and(|pattern| pattern >= patterns.len()) {
                return Err(GroupLaw::Pattern(number));
            }
            for job in &group.jobs {
                let waiting = waits.get_mut(job.index()).is_some_and(std::mem::take);
                waiting.then_some(()).ok_or(GroupLaw::NotWaiting(*job))?;
            }
        }
        if let Some(left) = waits.iter().position(|&waits| waits) {
            return Err(GroupLaw::LeftOut(JobId(to_u32(left))));
        }
        Ok(Self { groups, patterns, reason })
    }

    /// The groups in the order in which they run.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Every pattern that was weighed; empty where none was.
    #[must_use]
    pub fn patterns(&self) -> &[PatternUse] {
        &self.patterns
    }

    /// Why, in one sentence.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// What a grouping has measured of applications before it groups them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// Names of the classes.
    pub classes: Vec<String>,
    /// By application: its class.
    pub classified: Vec<Classified>,
    /// What metrics are compared with; empty where applications are classes.
    pub thresholds: Vec<Threshold>,
    /// `slowdown[j][i]`: how many times as long an application of class `i` takes
    /// next to one of class `j` (S of j on i).
    pub slowdown: Vec<Vec<f64>>,
    /// What that was measured with; empty where it was given.
    pub pairs: Vec<PairFound>,
}

/// The class of an application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Classified {
    /// By its place in [`QueueFacts::apps`].
    pub app: usize,
    /// By its place in [`Findings::classes`].
    pub class: usize,
    /// It fits the rule of the class; otherwise that class is the nearest.
    pub fits: bool,
    /// Why, in one sentence.
    pub reason: String,
}

/// A bound of the classification.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Threshold {
    /// Its name in the paper.
    pub name: String,
    /// Which metric is compared with it, with its unit.
    pub metric: String,
    /// Its value.
    pub value: f64,
}

/// Two applications that were run together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PairFound {
    /// Both, by their places in [`QueueFacts::apps`].
    pub apps: [usize; 2],
    /// How many times as long each took, against alone on as many SMs.
    pub slowdown: [f64; 2],
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Group, GroupLaw, Groups, Job, QueueFacts, QueueView};
    use crate::units::JobId;

    fn groups(members: &[&[u32]]) -> Result<Groups, GroupLaw> {
        let facts = QueueFacts {
            sms: 4,
            group_size: 2,
            peak_dram_gb_per_s: 1.0,
            peak_ipc: 1.0,
            apps: Vec::new(),
            jobs: vec![Job { app: 0, arrival: 0 }; 4],
            given: BTreeMap::new(),
        };
        let view = QueueView { now: 0, waiting: vec![JobId(0), JobId(1), JobId(3)] };
        let group = |jobs: &&[u32]| Group {
            jobs: jobs.iter().map(|&job| JobId(job)).collect(),
            pattern: None,
        };
        Groups::new(&facts, &view, members.iter().map(group).collect(), Vec::new(), String::new())
    }

    #[test]
    fn everybody_who_waits_is_in_one_group() {
        assert_eq!(groups(&[&[3, 0], &[1]]).unwrap().groups().len(), 2);
        assert_eq!(groups(&[&[3, 0]]), Err(GroupLaw::LeftOut(JobId(1))));
        assert_eq!(groups(&[&[3, 0], &[1, 0]]), Err(GroupLaw::NotWaiting(JobId(0))));
        assert_eq!(groups(&[&[3, 2], &[1, 0]]), Err(GroupLaw::NotWaiting(JobId(2))));
        assert_eq!(groups(&[&[3, 9]]), Err(GroupLaw::NotWaiting(JobId(9))));
        let large = GroupLaw::Size { group: 0, found: 3, most: 2 };
        assert_eq!(groups(&[&[0, 1, 3]]), Err(large));
        let none = GroupLaw::Size { group: 1, found: 0, most: 2 };
        assert_eq!(groups(&[&[0, 1], &[]]), Err(none));
    }
}
