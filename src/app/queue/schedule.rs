//! The schedule of one queue under one scheme, group by group.

use std::collections::VecDeque;

use gpumodel_core::contract::{
    Group, GroupProbe, GroupProbeResult, Groups, PatternUse, QueueFacts, QueueView,
};
use gpumodel_core::units::{Cycle, JobId, to_u32};
use gpumodel_policy::queue::{Grouping, QueueChoice, Unmatched};

use super::tasks::{GroupOutcome, Task};
use super::{Pool, TaskResults};
use crate::RunError;

/// A queue under a scheme. A group starts when the previous one has ended and a job waits; it
/// ends when its last member does.
pub(super) struct Schedule {
    /// The name of the queue, for errors.
    queue: String,
    pub(super) choice: QueueChoice,
    pub(super) grouping: Box<dyn Grouping>,
    pub(super) facts: QueueFacts,
    /// Probes of the grouping; `None` once it has their results.
    asked: Option<Vec<GroupProbe>>,
    /// The current cycle.
    pub(super) now: Cycle,
    /// Number of jobs that have arrived.
    arrived: usize,
    waiting: Vec<JobId>,
    planned: VecDeque<Group>,
    pub(super) decisions: Vec<GroupingDecision>,
    pub(super) groups: Vec<CompletedGroup>,
}

/// A decision on groups.
pub(super) struct GroupingDecision {
    pub(super) cycle: Cycle,
    /// By application: waiting jobs.
    pub(super) waiting: Vec<u64>,
    /// The patterns that were considered.
    pub(super) patterns: Vec<PatternUse>,
    pub(super) reason: String,
}

/// A completed group.
pub(super) struct CompletedGroup {
    pub(super) start: Cycle,
    /// The planned group.
    pub(super) group: Group,
    pub(super) outcome: GroupOutcome,
}

impl Schedule {
    /// A queue at its start.
    pub(super) fn new(
        queue: &str,
        choice: QueueChoice,
        facts: QueueFacts,
    ) -> Result<Self, RunError> {
        let grouping = choice.make();
        let mut schedule = Self {
            queue: queue.to_owned(),
            choice,
            grouping,
            facts,
            asked: None,
            now: 0,
            arrived: 0,
            waiting: Vec::new(),
            planned: VecDeque::new(),
            decisions: Vec::new(),
            groups: Vec::new(),
        };
        let asked = schedule.grouping.probes(&schedule.facts).map_err(|e| schedule.failed(e))?;
        schedule.asked = Some(asked);
        Ok(schedule)
    }

    fn failed(&self, source: Unmatched) -> RunError {
        let (queue, scheme) = (self.queue.clone(), self.choice.to_string());
        RunError::Queue { queue, scheme, source: Box::new(source) }
    }

    /// Advances as far as `results` allow and returns the tasks that it needs next; none: the
    /// queue is empty.
    pub(super) fn advance(
        &mut self,
        pool: &Pool<'_>,
        results: &TaskResults,
    ) -> Result<Vec<Task>, RunError> {
        if let Some(asked) = self.asked.take() {
            let keyed = asked.iter().map(|probe| Task::Pair(probe.clone()));
            let keyed: Vec<(u128, Task)> = keyed.map(|task| (task.key(pool), task)).collect();
            let probe_results: Option<Vec<GroupProbeResult>> =
                keyed.iter().map(|(key, _)| results.pair(*key).cloned()).collect();
            let Some(probe_results) = probe_results else {
                self.asked = Some(asked);
                return Ok(keyed.into_iter().map(|(_, task)| task).collect());
            };
            self.grouping.learn(&self.facts, &probe_results).map_err(|e| self.failed(e))?;
        }
        while self.plan()? {
            let Some(first) = self.planned.front() else { break };
            if let Some(outcome) = results.group(self.task(first).key(pool)) {
                self.completed(outcome.clone());
                continue;
            }
            // Later arrivals may change the plan after the first group.
            let certain =
                if self.arrived == self.facts.jobs.len() { self.planned.len() } else { 1 };
            return Ok(self.planned.iter().take(certain).map(|group| self.task(group)).collect());
        }
        Ok(Vec::new())
    }

    /// Plans the next groups if none is planned; false: no job is left.
    fn plan(&mut self) -> Result<bool, RunError> {
        if self.waiting.is_empty()
            && let Some(next) = self.facts.jobs.get(self.arrived)
        {
            self.now = self.now.max(next.arrival);
        }
        let before = self.arrived;
        while let Some(job) = self.facts.jobs.get(self.arrived)
            && job.arrival <= self.now
        {
            self.waiting.push(JobId(to_u32(self.arrived)));
            self.arrived += 1;
        }
        if self.arrived > before {
            let view = QueueView { now: self.now, waiting: self.waiting.clone() };
            let groups = self.grouping.groups(&self.facts, &view).map_err(|e| self.failed(e))?;
            self.planned = groups.groups().iter().cloned().collect();
            self.note(&groups);
        }
        Ok(!self.planned.is_empty())
    }

    /// Keeps the basis of a decision; the groups are recorded as they run.
    fn note(&mut self, groups: &Groups) {
        if self.grouping.findings().is_none() {
            return;
        }
        let mut waiting = vec![0; self.facts.apps.len()];
        for job in &self.waiting {
            waiting[self.app(*job)] += 1;
        }
        let (patterns, reason) = (groups.patterns().to_vec(), groups.reason().to_owned());
        self.decisions.push(GroupingDecision { cycle: self.now, waiting, patterns, reason });
    }

    /// The task of a group, with its applications in the order of the pool, so that groups of the
    /// same applications are equal.
    fn task(&self, group: &Group) -> Task {
        let apps = sorted(&self.facts, group).iter().map(|job| self.app(*job)).collect();
        Task::Group { apps, within: self.choice.within().clone(), restarts: self.choice.restarts() }
    }

    fn app(&self, job: JobId) -> usize {
        self.facts.jobs[job.index()].app
    }

    /// Records that the first planned group has run.
    fn completed(&mut self, outcome: GroupOutcome) {
        let Some(mut group) = self.planned.pop_front() else { return };
        group.jobs = sorted(&self.facts, &group);
        self.waiting.retain(|job| !group.jobs.contains(job));
        let start = self.now;
        self.now += outcome.cycles;
        self.groups.push(CompletedGroup { start, group, outcome });
    }
}

/// The members of a group by application, then by arrival.
fn sorted(facts: &QueueFacts, group: &Group) -> Vec<JobId> {
    let mut jobs = group.jobs.clone();
    jobs.sort_by_key(|job| (facts.jobs[job.index()].app, *job));
    jobs
}
