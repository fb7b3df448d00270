//! The policies: Facts and View in, Probes and Plan out.
//!
//! A scheme never sees the machine. To add one: a file with a type that is a
//! [`Scheme`], and one row in [`TABLE`].

mod solo;
pub mod solve;

use crate::epoch::{Facts, LawBroken, Plan, Probe, ProbeResult, View};

pub use solo::Solo;

/// A policy of sharing.
pub trait Scheme: Send {
    /// What it wants to have measured before it starts.
    ///
    /// # Errors
    /// As [`Scheme::start`].
    fn probes(&self, facts: &Facts) -> Result<Vec<Probe>, LawBroken>;

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
#[derive(Clone, Copy)]
pub struct Row {
    /// The name on the command line.
    pub name: &'static str,
    /// Where it is from.
    pub paper: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Makes it with its default parameters.
    pub make: fn() -> Box<dyn Scheme>,
}

/// Every scheme.
pub const TABLE: &[Row] = &[Row {
    name: "solo",
    paper: "none: the baseline of every other scheme",
    summary: "one application has the whole machine",
    make: || Box::new(Solo),
}];

/// The row of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::{TABLE, find};

    #[test]
    fn names_are_unique() {
        for row in TABLE {
            assert_eq!(TABLE.iter().filter(|other| other.name == row.name).count(), 1);
            assert!(find(row.name).is_some());
        }
        assert!(find("no such scheme").is_none());
    }
}
