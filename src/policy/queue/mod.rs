//! Queues: which applications run together. QueueFacts and QueueView in, GroupProbes
//! and Groups out.
//!
//! A scheme for queues is a [`Grouping`] and a scheme of [`super::TABLE`] under which
//! the members of a group share the machine. To add one: a file with a type that is a
//! [`Grouping`], and one row in [`QUEUE_TABLE`].

mod arrival;
mod choice;
mod class;
mod ilp;
mod interference;

use thiserror::Error;

use gpumodel_core::contract::{
    Findings, GroupLaw, GroupProbe, GroupProbeResult, Groups, QueueFacts, QueueView,
};

use super::{Parameter, Settings};

pub use arrival::InArrivalOrder;
pub use choice::QueueChoice;
pub use class::{CLASSES, published_classes};
pub use ilp::Ilp;

/// A policy of who runs with whom.
pub trait Grouping: Send {
    /// What it wants to have measured before the queue starts.
    ///
    /// # Errors
    /// When what the user has given does not suit the applications.
    fn probes(&self, _facts: &QueueFacts) -> Result<Vec<GroupProbe>, Unmatched> {
        Ok(Vec::new())
    }

    /// Takes the answers, in the order of the questions. Called once before
    /// [`Grouping::groups`], also where nothing was asked.
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

    /// Groups all that wait, in the order in which the groups are to run. Asked when
    /// the machine is free and somebody has arrived since it was asked last.
    ///
    /// # Errors
    /// When there is no grouping, or none that is proven to be right.
    fn groups(&mut self, facts: &QueueFacts, view: &QueueView) -> Result<Groups, Unmatched>;

    /// What it has found out about the applications, where it looked.
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
    /// No choice of patterns uses every application exactly once.
    #[error("no set of patterns takes every application once: {0}")]
    Infeasible(String),
    /// The solver has no proven answer.
    #[error("the solver found no proven answer: {0}")]
    Solver(String),
    /// The solver's answer does not hold.
    #[error("the solver's answer does not hold: {0}")]
    Wrong(String),
    /// There are more patterns than can be weighed.
    #[error(
        "{classes} classes in groups of {places} make more than {most} patterns; classify the \
         applications (classes=class) or run fewer at a time"
    )]
    Patterns {
        /// Classes that wait, and one more where places stay idle.
        classes: usize,
        /// Applications that run together.
        places: usize,
        /// Patterns that are weighed at most.
        most: u64,
    },
    /// A bound of a class lies above that of the class before it.
    #[error("beta {beta} is above alpha {alpha}: no application could be in class MC")]
    Bounds {
        /// Of MB_max.
        alpha: String,
        /// Of MB_max.
        beta: String,
    },
    /// No two applications can run side by side.
    #[error("slow-downs are measured on half of the SMs; expected two or more, found {sms}")]
    NoPair {
        /// SMs of the machine.
        sms: u16,
    },
    /// A slow-down that is needed and not among those that were given.
    #[error(
        "no slow-down of class {suffers} beside class {disturbs} is given; expected one for \
         every pair of the classes in the queue: {classes}"
    )]
    Missing {
        /// Who disturbs.
        disturbs: String,
        /// Who suffers.
        suffers: String,
        /// Every class of the queue.
        classes: String,
    },
}

/// One row of the table of schemes for queues.
#[derive(Clone, Copy, Debug)]
pub struct QueueRow {
    /// The name on the command line.
    pub name: &'static str,
    /// Where it is from.
    pub paper: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What a user may set, beside the parameters of [`QueueRow::within`].
    pub parameters: &'static [Parameter],
    /// The scheme under which members of a group share the machine.
    pub within: &'static str,
    /// Makes it with settings of these parameters.
    pub make: fn(&Settings) -> Box<dyn Grouping>,
}

/// The parameter of schemes within groups that says what becomes of the SMs of a member
/// that ends before its group.
pub const FREED: &str = super::shares::FREED.name;

const ILP_SMRA: &str = "ILP-SMRA (Punyala et al.)";

/// Every scheme that is for queues alone.
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
        summary: "classes that disturb each other least together, the SMs divided evenly",
        parameters: ilp::PARAMETERS,
        within: "spatial",
        make: Ilp::make,
    },
    QueueRow {
        name: "ilp-smra",
        paper: ILP_SMRA,
        summary: "classes that disturb each other least together, SMs moved at run time",
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
    use super::{QUEUE_TABLE, QueueChoice};

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
}
