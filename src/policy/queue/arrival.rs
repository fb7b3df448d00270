//! Groups in order of arrival.

use gpumodel_core::contract::{Group, Groups, QueueFacts, QueueView};

use super::{Grouping, Unmatched};

/// The first N_G that wait run together, then the next N_G, and so on.
#[derive(Clone, Copy, Debug, Default)]
pub struct InArrivalOrder;

impl Grouping for InArrivalOrder {
    fn groups(&mut self, facts: &QueueFacts, view: &QueueView) -> Result<Groups, Unmatched> {
        let group = |jobs: &[_]| Group { jobs: jobs.to_vec(), pattern: None };
        let groups = view.waiting.chunks(facts.group_size.max(1)).map(group).collect();
        let reason = format!("{} at a time, in order of arrival", facts.group_size);
        Ok(Groups::new(facts, view, groups, Vec::new(), reason)?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Grouping, InArrivalOrder};
    use gpumodel_core::contract::{Job, QueueFacts, QueueView};
    use gpumodel_core::units::JobId;

    #[test]
    fn the_last_group_may_be_smaller() {
        let facts = QueueFacts {
            sms: 6,
            group_size: 3,
            peak_dram_gb_per_s: 1.0,
            peak_ipc: 1.0,
            apps: Vec::new(),
            jobs: vec![Job { app: 0, arrival: 0 }; 9],
            given: BTreeMap::new(),
        };
        let waiting: Vec<JobId> = [0, 2, 3, 7, 8].map(JobId).to_vec();
        let groups = InArrivalOrder.groups(&facts, &QueueView { now: 5, waiting }).unwrap();
        let jobs: Vec<&[JobId]> = groups.groups().iter().map(|group| &group.jobs[..]).collect();
        assert_eq!(jobs, [&[JobId(0), JobId(2), JobId(3)][..], &[JobId(7), JobId(8)]]);
    }
}
