//! What a figure is drawn from: records, the applications chosen from them, and
//! a comparison where there is one.

use std::collections::BTreeSet;

use crate::record::{Analysis, AppRecord, CoRun, Comparison, MachineRecord};
use crate::report::ReportError;

/// Records with a choice of applications.
#[derive(Clone, Debug)]
pub struct Scene<'a> {
    records: &'a [Analysis],
    apps: Vec<(&'a Analysis, &'a AppRecord)>,
    comparison: Option<&'a Comparison>,
}

impl<'a> Scene<'a> {
    /// Every application of `records`.
    #[must_use]
    pub fn new(records: &'a [Analysis]) -> Self {
        let apps = records.iter().flat_map(|r| r.solo.iter().map(move |app| (r, app))).collect();
        Self { records, apps, comparison: None }
    }

    /// Only the solo run at `index` of `record`.
    ///
    /// # Panics
    /// When there is no such run: the caller counts them.
    #[must_use]
    pub fn one(record: &'a Analysis, index: usize) -> Self {
        let apps = vec![(record, &record.solo[index])];
        Self { records: std::slice::from_ref(record), apps, comparison: None }
    }

    /// Only the applications called `name`.
    ///
    /// # Errors
    /// [`ReportError::UnknownApp`] when no record holds one.
    pub fn only(mut self, name: &str) -> Result<Self, ReportError> {
        let known: BTreeSet<&str> = self.apps.iter().map(|(_, app)| app.app.as_str()).collect();
        if !known.contains(name) {
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            return Err(ReportError::UnknownApp { name: name.into(), known });
        }
        self.apps.retain(|(_, app)| app.app == name);
        Ok(self)
    }

    /// With a comparison, for figures that show one.
    #[must_use]
    pub fn with(mut self, comparison: &'a Comparison) -> Self {
        self.comparison = Some(comparison);
        self
    }

    /// The chosen applications.
    pub(super) fn apps(&self) -> Vec<&'a AppRecord> {
        self.apps.iter().map(|&(_, app)| app).collect()
    }

    /// The chosen applications with their records.
    pub(super) fn runs(&self) -> &[(&'a Analysis, &'a AppRecord)] {
        &self.apps
    }

    /// Every co-run of the records.
    pub(super) fn coruns(&self) -> Vec<&'a CoRun> {
        self.records.iter().flat_map(|record| &record.coruns).collect()
    }

    /// The comparison, where there is one.
    pub(super) fn comparison(&self) -> Option<&'a Comparison> {
        self.comparison
    }

    /// The machine of all chosen applications; `None` when there are several or none.
    pub(super) fn machine(&self) -> Option<&'a MachineRecord> {
        let first = self.apps.first().map(|(record, _)| &record.machine)?;
        let same = |record: &Analysis| record.machine.hash == first.hash;
        self.apps.iter().all(|(record, _)| same(record)).then_some(first)
    }

    /// What the figure's numbers come from: machine, trace, program, seed.
    pub(super) fn footer(&self) -> String {
        let machines = self.records.iter().map(|r| named(&r.machine.name, &r.machine.hash));
        let sampled = |app: &AppRecord| if app.is_sampled() { ", sampled" } else { "" };
        let trace = |app: &AppRecord| named(&app.app, &app.store_hash) + sampled(app);
        let traces = self.apps.iter().map(|(_, app)| trace(app));
        let programs = self.records.iter().map(|r| r.program.clone());
        let seeds = self.records.iter().map(|r| format!("seed {}", r.seed));
        [
            few(machines, "machines"),
            few(traces, "traces"),
            few(programs, "programs"),
            few(seeds, "seeds"),
        ]
        .join(" · ")
    }
}

/// A name with the first characters of a hash.
fn named(name: &str, hash: &str) -> String {
    let start: String = hash.chars().take(8).collect();
    if start.is_empty() { name.to_string() } else { format!("{name} ({start})") }
}

/// Up to two different words, else how many there are.
fn few(words: impl Iterator<Item = String>, plural: &str) -> String {
    let words: BTreeSet<String> = words.collect();
    if words.len() > 2 {
        return format!("{} {plural}", words.len());
    }
    words.into_iter().collect::<Vec<_>>().join(", ")
}
