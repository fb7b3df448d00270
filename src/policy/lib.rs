//! The policies: Facts and View in, Probes and Plan out.
//!
//! A scheme never sees the machine. To add one: a file with a type that is a
//! [`Scheme`], and one row in [`TABLE`].

mod active_apps;
mod choice;
mod cta_resources;
mod cuda;
mod even;
mod fcfs;
#[cfg(test)]
mod fixture;
mod left_over;
mod oracle;
mod parameter;
mod profile_based;
mod progress;
mod pt;
pub mod queue;
mod sequential;
mod shares;
mod sim;
pub mod slate;
mod smra;
mod solo;
pub mod solve;
mod spatial;
mod table;
mod tenancy;
mod ugpu;
mod warped_slicer;

use gpumodel_core::contract::{Facts, LawBroken, Plan, Probe, ProbeResult, View};

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
pub use table::{Row, TABLE, find};
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
    /// When the plan that it makes breaks a law: a defect of the scheme, or the machine
    /// lacks what it shares.
    fn start(&mut self, facts: &Facts, probes: &[ProbeResult]) -> Result<Plan, LawBroken>;

    /// The plan from now on.
    ///
    /// # Errors
    /// As [`Scheme::start`].
    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken>;
}

#[cfg(test)]
mod tests {
    use super::fixture::facts;
    use super::{Choice, Row, TABLE, cta_resources, find};
    use gpumodel_core::contract::{Facts, Share};

    #[test]
    fn who_is_alone_may_fill_the_machine_under_every_scheme() {
        let groups = vec![vec![0, 1, 2], vec![3, 4, 5]];
        let facts = Facts { channel_groups: groups, pages_follow: true, ..facts(&["IMG"]) };
        // `sim` answers later than it is asked, `slate` knows whom it asked.
        let asked = |row: &&Row| row.serves(1) && !["sim", "slate"].contains(&row.name);
        for row in TABLE.iter().filter(asked) {
            let mut scheme = Choice::of(row).make();
            assert!(scheme.probes(&facts).unwrap().is_empty(), "{}", row.name);
            let plan = scheme.start(&facts, &[]).unwrap();
            assert_eq!(plan.shares(), [Share::Quota(vec![8; 16])], "{}", row.name);
            let whole = cta_resources::of_sm(&facts);
            assert!(plan.regions().iter().all(|part| cta_resources::of_region(part) == whole));
            let channels = plan.channels();
            assert_eq!(channels.is_empty(), !row.channels, "{}", row.name);
            assert!(channels.iter().all(|owned| owned.len() == 6), "{}: {channels:?}", row.name);
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
