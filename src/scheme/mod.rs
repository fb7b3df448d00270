//! The policies: Facts and View in, Probes and Plan out.
//!
//! A scheme never sees the machine. To add one: a file with a type that is a
//! [`Scheme`], and one row in [`TABLE`].

mod choice;
mod cuda;
mod even;
mod fcfs;
mod left_over;
mod oracle;
mod parameter;
mod present;
mod profile_based;
mod progress;
mod pt;
pub mod queue;
mod room;
mod sequential;
mod shares;
mod sim;
pub mod slate;
mod slices;
mod smra;
mod solo;
pub mod solve;
mod spatial;
#[cfg(test)]
mod table_two;
mod tenancy;
mod vacated;
mod warped_slicer;

use crate::epoch::{Facts, LawBroken, Plan, Probe, ProbeResult, View};

pub use choice::{BadChoice, Choice};
pub use cuda::Cuda;
pub use even::Even;
pub use fcfs::Fcfs;
pub use left_over::LeftOver;
pub use oracle::Oracle;
pub use parameter::{Kind, Parameter, Settings, Value};
pub use profile_based::ProfileBased;
pub use pt::Pt;
pub use sequential::Sequential;
pub use sim::Sim;
pub use slate::Slate;
pub use smra::Smra;
pub use solo::Solo;
pub use spatial::Spatial;
pub use warped_slicer::WarpedSlicer;

/// A policy of sharing.
pub trait Scheme: Send {
    /// What it wants to have measured before it starts: nothing, where a scheme does
    /// not say otherwise.
    ///
    /// # Errors
    /// As [`Scheme::start`].
    fn probes(&self, _facts: &Facts) -> Result<Vec<Probe>, LawBroken> {
        Ok(Vec::new())
    }

    /// The first plan.
    ///
    /// # Errors
    /// When the plan that it makes breaks a law: a defect of the scheme.
    fn start(&mut self, facts: &Facts, probes: &[ProbeResult]) -> Result<Plan, LawBroken>;

    /// The plan from now on.
    ///
    /// # Errors
    /// As [`Scheme::start`].
    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken>;
}

/// One row of the table of schemes.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name on the command line.
    pub name: &'static str,
    /// Where it is from.
    pub paper: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What a user may set.
    pub parameters: &'static [Parameter],
    /// Makes it with settings of these parameters.
    pub make: fn(&Settings) -> Box<dyn Scheme>,
}

impl Row {
    /// Whether it runs `apps` applications to their ends: `solo` serves one.
    #[must_use]
    pub fn serves(&self, apps: usize) -> bool {
        self.name != SOLO || apps == 1
    }
}

const SOLO: &str = "solo";

const TENANCY: &str = "Adaptive simultaneous multi-tenancy (ARCS 2018)";

const SLATE: &str = "Slate (IPDPS 2019)";

const WARPED_SLICER: &str = "Warped-Slicer (ISCA 2016)";

/// Every scheme.
pub const TABLE: &[Row] = &[
    Row {
        name: SOLO,
        paper: "none: the baseline of every other scheme",
        summary: "one application has the whole machine",
        parameters: solo::PARAMETERS,
        make: Solo::make,
    },
    Row {
        name: "sequential",
        paper: WARPED_SLICER,
        summary: "one application after the other, each on the whole machine",
        parameters: &[],
        make: Sequential::make,
    },
    Row {
        name: "left-over",
        paper: WARPED_SLICER,
        summary: "CTAs strictly in launch order: the next launch has what is left over",
        parameters: &[],
        make: LeftOver::make,
    },
    Row {
        name: "fcfs",
        paper: WARPED_SLICER,
        summary: "CTAs of all in turn to wherever they fit",
        parameters: &[],
        make: Fcfs::make,
    },
    Row {
        name: "even",
        paper: WARPED_SLICER,
        summary: "an equal part of every SM for each",
        parameters: &[],
        make: Even::make,
    },
    Row {
        name: "spatial",
        paper: "Adriaens et al. (HPCA 2012), as in Warped-Slicer",
        summary: "an equal number of SMs for each",
        parameters: spatial::PARAMETERS,
        make: Spatial::make,
    },
    Row {
        name: "warped-slicer",
        paper: WARPED_SLICER,
        summary: "every SM sliced by sampled speeds so that the slowest is as fast as can be",
        parameters: warped_slicer::PARAMETERS,
        make: WarpedSlicer::make,
    },
    Row {
        name: "oracle",
        paper: WARPED_SLICER,
        summary: "the fastest of all CTA combinations, left-over and spatial",
        parameters: oracle::PARAMETERS,
        make: Oracle::make,
    },
    Row {
        name: "smra",
        paper: "ILP-SMRA, Algorithm 1",
        summary: "own SMs for each, moved at run time from who waits for memory to who computes",
        parameters: smra::PARAMETERS,
        make: Smra::make,
    },
    Row {
        name: "profile-based",
        paper: "Adriaens et al. (HPCA 2012), as in ILP-SMRA",
        summary: "own SMs for each, as many as its runs alone ask for",
        parameters: profile_based::PARAMETERS,
        make: ProfileBased::make,
    },
    Row {
        name: "pt",
        paper: TENANCY,
        summary: "kernels as persistent workers, as many as fit, first come first served",
        parameters: pt::PARAMETERS,
        make: Pt::make,
    },
    Row {
        name: "sim",
        paper: TENANCY,
        summary: "workers per SM that a service on the host adapts as kernels come and end",
        parameters: sim::PARAMETERS,
        make: Sim::make,
    },
    Row {
        name: "cuda",
        paper: SLATE,
        summary: "processes in turns, each on the whole machine for a time slice",
        parameters: cuda::PARAMETERS,
        make: Cuda::make,
    },
    Row {
        name: "mps-leftover",
        paper: SLATE,
        summary: "the Multi-Process Service as Slate describes it: left-over, whatever the process",
        parameters: &[],
        make: LeftOver::make,
    },
    Row {
        name: "slate",
        paper: SLATE,
        summary: "kernels as workers on SMs of their own, beside those that they go with",
        parameters: slate::PARAMETERS,
        make: Slate::make,
    },
];

/// The row of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::table_two::facts;
    use super::{Choice, TABLE, find, room};
    use crate::epoch::Share;

    #[test]
    fn who_is_alone_may_fill_the_machine_under_every_scheme() {
        let facts = facts(&["IMG"]);
        // `sim` answers later than it is asked, `slate` knows whom it asked.
        for row in TABLE.iter().filter(|row| !["sim", "slate"].contains(&row.name)) {
            let mut scheme = Choice::of(row).make();
            assert!(scheme.probes(&facts).unwrap().is_empty(), "{}", row.name);
            let plan = scheme.start(&facts, &[]).unwrap();
            assert_eq!(plan.shares(), [Share::Quota(vec![8; 16])], "{}", row.name);
            let whole = room::of_sm(&facts);
            assert!(plan.regions().iter().all(|part| room::of_region(part) == whole));
        }
    }

    #[test]
    fn names_are_unique() {
        for row in TABLE {
            assert_eq!(TABLE.iter().filter(|other| other.name == row.name).count(), 1);
            assert!(find(row.name).is_some());
        }
        assert!(find("no such scheme").is_none());
    }
}
