//! Queues: which applications run together. QueueFacts and QueueView in, GroupProbes and
//! Groups out.
//!
//! A scheme for queues is a [`Grouping`] and a scheme of [`super::TABLE`] under which
//! the members of a group share the machine. To add one: a file with a type that is a
//! [`Grouping`], and one row in [`QUEUE_TABLE`].

mod choice;
mod class;
mod ilp;
mod interference;

use thiserror::Error;

use gpumodel_core::contract::{
    Findings, Group, GroupLaw, GroupProbe, GroupProbeResult, Groups, QueueFacts, QueueView,
};

use super::solve::NoMatching;
use super::{Parameter, Settings};

pub use choice::{EarlyFinishers, QueueChoice};
pub use class::{CLASSES, published_classes};
use ilp::Ilp;

/// A policy of which applications run together.
pub trait Grouping: Send {
    /// The runs that must be measured before the queue starts; none by default.
    ///
    /// # Errors
    /// When the slow-downs or bounds of the user do not fit the applications.
    fn probes(&self, _facts: &QueueFacts) -> Result<Vec<GroupProbe>, Unmatched> {
        Ok(Vec::new())
    }

    /// Takes the answers, in the order of the probes. Called once before
    /// [`Grouping::groups`], also without probes.
    ///
    /// # Errors
    /// As [`Grouping::probes`].
    fn learn(
        &mut self,
        _facts: &QueueFacts,
        _answers: &[GroupProbeResult],
    ) -> Result<(), Unmatched> {
        Ok(())
    }

    /// Groups all that wait, in the order in which the groups run. Called when the machine is
    /// free and an application has arrived since the last call.
    ///
    /// # Errors
    /// When no grouping is possible, or none is proven.
    fn groups(&mut self, facts: &QueueFacts, view: &QueueView) -> Result<Groups, Unmatched>;

    /// The measured properties of the applications, if it uses any.
    fn findings(&self) -> Option<&Findings> {
        None
    }
}

/// Why a queue is not grouped.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unmatched {
    /// The groups break a law: a defect of the grouping.
    #[error("the groups are unlawful")]
    Law(#[from] GroupLaw),
    /// The integer program has no proven solution.
    #[error(transparent)]
    NoMatching(#[from] NoMatching),
    /// The integer program has too many patterns.
    #[error(
        "{classes} classes in groups of {places} make more than {most} patterns; classify the \
         applications (classes=class) or run fewer at a time"
    )]
    Patterns {
        /// Classes that wait, and one more where places stay idle.
        classes: usize,
        /// Applications that run together.
        places: usize,
        /// The most patterns.
        most: u64,
    },
    /// The bound of a class is above that of the class before it.
    #[error("beta {beta} is above alpha {alpha}: no application could be in class MC")]
    Bounds {
        /// Of MB_max.
        alpha: String,
        /// Of MB_max.
        beta: String,
    },
    /// The machine has too few SMs for two applications.
    #[error("slow-downs are measured on half of the SMs; expected two or more, found {sms}")]
    NoPair {
        /// SMs of the machine.
        sms: u16,
    },
    /// The user has not measured a slow-down that is needed.
    #[error(
        "no slow-down of class {suffers} next to class {disturbs} is given; expected one for \
         every pair of the classes in the queue: {classes}"
    )]
    Missing {
        /// The class that disturbs.
        disturbs: String,
        /// The class that suffers.
        suffers: String,
        /// Every class of the queue.
        classes: String,
    },
}

/// Groups in order of arrival: the first N_G that wait, then the next N_G, and so on.
#[derive(Clone, Copy, Debug, Default)]
struct InArrivalOrder;

impl Grouping for InArrivalOrder {
    fn groups(&mut self, facts: &QueueFacts, view: &QueueView) -> Result<Groups, Unmatched> {
        let group = |jobs: &[_]| Group { jobs: jobs.to_vec(), pattern: None };
        let groups = view.waiting.chunks(facts.group_size.max(1)).map(group).collect();
        let reason = format!("{} at a time, in order of arrival", facts.group_size);
        Ok(Groups::new(facts, view, groups, Vec::new(), reason)?)
    }
}

/// One row of the table of schemes for queues.
#[derive(Clone, Copy, Debug)]
pub struct QueueRow {
    /// The name on the command line.
    pub name: &'static str,
    /// The paper or system that it is from.
    pub paper: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What a user may set, in addition to the parameters of [`QueueRow::within`].
    pub parameters: &'static [Parameter],
    /// The scheme under which members of a group share the machine.
    pub within: &'static str,
    /// Makes it with settings of these parameters.
    pub make: fn(&Settings) -> Box<dyn Grouping>,
}

/// The parameter of schemes within groups for the SMs of a member that ends before its group.
pub const FREED: &str = super::shares::FREED.name;

const ILP_SMRA: &str = "ILP-SMRA (Punyala et al.)";

/// Every scheme that needs a queue.
pub const QUEUE_TABLE: &[QueueRow] = &[
    QueueRow {
        name: "even-queue",
        paper: ILP_SMRA,
        summary: "groups in order of arrival, the SMs divided evenly",
        parameters: &[],
        within: "spatial",
        make: |_| Box::new(InArrivalOrder),
    },
    QueueRow {
        name: "ilp",
        paper: ILP_SMRA,
        summary: "least disturbing classes together, SMs split evenly",
        parameters: ilp::PARAMETERS,
        within: "spatial",
        make: Ilp::make,
    },
    QueueRow {
        name: "ilp-smra",
        paper: ILP_SMRA,
        summary: "least disturbing classes together, SMs moved by smra",
        parameters: ilp::PARAMETERS,
        within: "smra",
        make: Ilp::make,
    },
];

/// The row of that name.
#[must_use]
pub fn find_queue(name: &str) -> Option<&'static QueueRow> {
    QUEUE_TABLE.iter().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::super::{TABLE, find};
    use std::collections::BTreeMap;

    use gpumodel_core::contract::{Job, QueueFacts, QueueView};
    use gpumodel_core::units::JobId;

    use super::{Grouping, InArrivalOrder, QUEUE_TABLE, QueueChoice};

    #[test]
    fn every_name_means_one_scheme_and_one_parameter() {
        for row in QUEUE_TABLE {
            assert!(TABLE.iter().all(|other| other.name != row.name), "{}", row.name);
            assert_eq!(QUEUE_TABLE.iter().filter(|other| other.name == row.name).count(), 1);
            assert_eq!(QueueChoice::parse(row.name).unwrap().to_string(), row.name);
            let within = find(row.within).unwrap().parameters;
            for one in row.parameters {
                assert!(within.iter().all(|other| other.name != one.name), "{}", one.name);
            }
        }
    }

    #[test]
    fn a_parameter_is_of_the_grouping_or_of_the_scheme_within() {
        let choice = QueueChoice::parse("ilp-smra:n_r=4:alpha=0.5:freed=idle").unwrap();
        assert_eq!(choice.to_string(), "ilp-smra:alpha=0.5:n_r=4:freed=idle");
        assert_eq!(choice.within().to_string(), "smra:n_r=4:freed=idle");
        let choice = QueueChoice::parse("ilp").unwrap().or("freed", "idle");
        let (typed, within) = (choice.to_string(), choice.within().to_string());
        assert_eq!([typed, within], ["ilp", "spatial:freed=idle"]);
        assert!(QueueChoice::parse("ilp:n_r=4").is_err(), "spatial moves no SMs");
    }

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
