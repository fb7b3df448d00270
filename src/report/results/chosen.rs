//! Which runs of a part a printed value is about.

use std::collections::BTreeMap;

use super::Analysis;
use gpumodel_core::units::sorted_mix;

/// Which runs a row is about.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chosen<'a> {
    /// Mixes, each by its applications in any order; `None`: all.
    pub mixes: Option<&'a [Vec<String>]>,
    /// What is set of the machine.
    pub overrides: Option<&'a BTreeMap<String, String>>,
    /// The distribution of classes of a queue; `None`: all.
    pub distribution: Option<&'a str>,
    /// A mix without a value is no fault: the runs are a part of the paper's.
    pub partial: bool,
}

impl Chosen<'_> {
    /// The applications of a record that belongs to these, sorted.
    #[must_use]
    pub fn takes<'r>(&self, record: &'r Analysis) -> Option<Vec<&'r str>> {
        let run = record.coruns.first()?;
        let names = sorted_mix(run.apps.iter().map(|app| &app.app));
        let is = |mix: &Vec<String>| sorted_mix(mix) == names;
        let set = self.overrides.is_none_or(|overrides| *overrides == record.overrides);
        let mixes = self.mixes.is_none_or(|mixes| mixes.iter().any(is));
        (set && mixes).then_some(names)
    }
}
