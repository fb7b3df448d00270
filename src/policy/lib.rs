//! The policies: Facts and View in, Probes and Plan out.
//!
//! A scheme never sees the machine. To add one: a file with a type that is a [`Scheme`], its
//! `mod` line below, and one row of [`TABLE`].

mod choice;
mod cuda;
mod even;
mod fcfs;
#[cfg(test)]
mod fixture;
mod green_contexts;
mod left_over;
mod mig;
mod mps;
mod oracle;
mod parameter;
mod profile_based;
mod pt;
pub mod queue;
mod sequential;
mod shares;
mod sim;
mod slate;
mod smra;
mod solo;
pub mod solve;
mod spatial;
mod table;
mod time_slicing;
mod ugpu;
mod warped_slicer;

use gpumodel_core::contract::{Facts, LawBroken, Plan, Probe, ProbeResult, View};

pub use choice::{BadChoice, Choice};
pub use parameter::{Kind, Parameter, Settings, Value};
pub use solo::Solo;
pub use table::{Row, TABLE, find};

/// A policy of sharing.
pub trait Scheme: Send {
    /// The runs that must be measured before it starts; none by default.
    ///
    /// # Errors
    /// As [`Scheme::start`].
    fn probes(&self, _facts: &Facts) -> Result<Vec<Probe>, LawBroken> {
        Ok(Vec::new())
    }

    /// The first plan.
    ///
    /// # Errors
    /// When the plan breaks a law: a defect of the scheme, or the machine lacks what the
    /// scheme shares.
    fn start(&mut self, facts: &Facts, probes: &[ProbeResult]) -> Result<Plan, LawBroken>;

    /// The plan from now on; by default the first one again.
    ///
    /// # Errors
    /// As [`Scheme::start`].
    fn decide(&mut self, facts: &Facts, _view: &View) -> Result<Plan, LawBroken> {
        self.start(facts, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::facts;
    use super::{Choice, Row, TABLE, find, shares};
    use gpumodel_core::contract::{Facts, Share};

    #[test]
    fn an_application_alone_may_fill_the_machine_under_every_scheme() {
        let groups = vec![vec![0, 1, 2], vec![3, 4, 5]];
        let facts = Facts { channel_groups: groups, pages_follow: true, ..facts(&["IMG"]) };
        // `sim` answers after a delay, `slate` needs the results of its probes.
        let tried =
            |row: &&Row| row.serves(1) && !row.instances && !["sim", "slate"].contains(&row.name);
        for row in TABLE.iter().filter(tried) {
            let mut scheme = Choice::of(row).make();
            assert!(scheme.probes(&facts).unwrap().is_empty(), "{}", row.name);
            let plan = scheme.start(&facts, &[]).unwrap();
            assert_eq!(plan.shares(), [Share::Quota(vec![8; 16])], "{}", row.name);
            let whole = shares::sm_resources(&facts);
            assert!(plan.regions().iter().all(|part| shares::region_resources(part) == whole));
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
