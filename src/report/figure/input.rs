//! What a figure is drawn from: records, the applications chosen from them, and
//! a comparison where there is one.

use std::collections::{BTreeMap, BTreeSet};

use crate::ReportError;
use crate::chart::{Sheet, Width};
use crate::grid::Grid;
use crate::mix::{mix_names, scheme_names};
use crate::results::{Analysis, AppRecord, CoRun, Comparison, MachineRecord};
use crate::solo_run::SoloRun;

use super::{NO_CORUN, NO_MIX, empty};

/// How one of several records is chosen.
pub(super) const ONE: &str = "give one of them: its file of `analyze --json`; of a sweep \
    cells/KEY.json, or a table with the rows of one mix out of its cells.csv";

/// Records that an error names at most.
const NAMED: usize = 16;

/// Records with a choice of applications.
#[derive(Clone, Debug)]
pub struct FigureInput<'a> {
    records: &'a [Analysis],
    apps: Vec<(&'a Analysis, &'a AppRecord)>,
    comparison: Option<&'a Comparison>,
    baseline: Option<&'a str>,
    metric: Option<&'a str>,
    queue: Option<&'a str>,
    wide: Width,
    published: Option<&'a BTreeMap<String, [f64; 2]>>,
}

impl<'a> FigureInput<'a> {
    /// Every application of `records`.
    #[must_use]
    pub fn new(records: &'a [Analysis]) -> Self {
        let apps = records.iter().flat_map(|r| r.solo.iter().map(move |app| (r, app))).collect();
        Self::of_apps(records, apps)
    }

    /// Nothing chosen but `apps`.
    fn of_apps(records: &'a [Analysis], apps: Vec<(&'a Analysis, &'a AppRecord)>) -> Self {
        let (baseline, metric, queue) = (None, None, None);
        let (wide, published) = (Width::Screen, None);
        Self { records, apps, comparison: None, baseline, metric, queue, wide, published }
    }

    /// Only the solo run at `index` of `record`.
    ///
    /// # Panics
    /// When there is no such run: the caller counts them.
    #[must_use]
    pub fn one(record: &'a Analysis, index: usize) -> Self {
        let apps = vec![(record, &record.solo[index])];
        Self::of_apps(std::slice::from_ref(record), apps)
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

    /// With the scheme that others are compared with.
    #[must_use]
    pub fn against(mut self, scheme: &'a str) -> Self {
        self.baseline = Some(scheme);
        self
    }

    /// With the metric by which schemes are compared.
    #[must_use]
    pub fn by(mut self, metric: &'a str) -> Self {
        self.metric = Some(metric);
        self
    }

    /// With the queue that a figure of one queue shows.
    #[must_use]
    pub fn of(mut self, queue: &'a str) -> Self {
        self.queue = Some(queue);
        self
    }

    /// As wide as that, for print.
    #[must_use]
    pub fn sized(mut self, wide: Width) -> Self {
        self.wide = wide;
        self
    }

    /// How wide its figure is.
    pub(super) fn wide(&self) -> Width {
        self.wide
    }

    /// A sheet as wide as its figure, with `title` above everything.
    pub(super) fn sheet(&self, title: &str) -> Sheet {
        Sheet::new(self.wide, title)
    }

    /// With the gains of schemes over the baseline by the metric that a paper prints, in
    /// percent: both ends.
    #[must_use]
    pub fn beside(mut self, published: &'a BTreeMap<String, [f64; 2]>) -> Self {
        self.published = Some(published);
        self
    }

    /// What a paper prints of `scheme`, over the baseline.
    pub(super) fn published(&self, scheme: &str) -> Option<(f64, f64)> {
        let [low, high] = self.published?.get(scheme)?.map(|percent| 1.0 + percent / 100.0);
        Some((low, high))
    }

    /// The queue that was asked for.
    pub(super) fn queue(&self) -> Option<&'a str> {
        self.queue
    }

    /// All records.
    pub(super) fn records(&self) -> &'a [Analysis] {
        self.records
    }

    /// The scheme that others are compared with, where one was asked for.
    pub(super) fn baseline(&self) -> Option<&'a str> {
        self.baseline
    }

    /// The metric by which schemes are compared, where one was asked for.
    pub(super) fn metric(&self) -> Option<&'a str> {
        self.metric
    }

    /// The chosen applications with their records.
    pub(super) fn runs(&self) -> &[(&'a Analysis, &'a AppRecord)] {
        &self.apps
    }

    /// Every co-run of the records with the name of its scheme.
    pub(super) fn coruns(&self) -> Vec<(String, &'a CoRun)> {
        let named =
            |record: &'a Analysis| scheme_names(&record.coruns).into_iter().zip(&record.coruns);
        self.records.iter().flat_map(named).collect()
    }

    /// Every whole run of one chosen application alone under a scheme.
    pub(super) fn alone(&self) -> Vec<SoloRun<'a>> {
        self.alone_or_cut().into_iter().filter(SoloRun::is_whole).collect()
    }

    /// The same with runs that ended before the application.
    pub(super) fn alone_or_cut(&self) -> Vec<SoloRun<'a>> {
        let chosen = |alone: &SoloRun<'_>| {
            let own = |(record, app): &(&Analysis, &AppRecord)| {
                std::ptr::eq(*record, alone.record) && app.app == alone.app.app
            };
            let known = alone.record.solo.iter().any(|solo| solo.app == alone.app.app);
            !known || self.apps.iter().any(own)
        };
        let of = |record: &'a Analysis| {
            record.coruns.iter().filter_map(move |run| SoloRun::new(record, run))
        };
        self.records.iter().flat_map(of).filter(chosen).collect()
    }

    /// The runs of several applications together, mixes by schemes.
    ///
    /// # Errors
    /// [`ReportError::Empty`] for `figure` when there are none.
    pub(super) fn grid(&self, figure: &'static str) -> Result<Grid<'a>, ReportError> {
        let grid = Grid::new(self.records);
        if grid.mixes.is_empty() { Err(empty(figure, NO_MIX)) } else { Ok(grid) }
    }

    /// The records that hold co-runs.
    pub(super) fn mixes(&self) -> Vec<&'a Analysis> {
        self.records.iter().filter(|record| !record.coruns.is_empty()).collect()
    }

    /// The only record that holds co-runs.
    ///
    /// # Errors
    /// [`ReportError::Empty`] for `figure` when none does, or several do.
    pub(super) fn mix(&self, figure: &'static str) -> Result<&'a Analysis, ReportError> {
        match self.mixes()[..] {
            [record] => Ok(record),
            [] => Err(empty(figure, NO_CORUN)),
            ref several => {
                let names = listed(&mix_names(several), several);
                let count = several.len();
                let missing = format!("shows one mix, the records hold {count}: {names}; {ONE}");
                Err(empty(figure, &missing))
            }
        }
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
        let mut facts = vec![
            few(machines, "machines"),
            few(traces, "traces"),
            few(programs, "programs"),
            few(seeds, "seeds"),
        ];
        facts.retain(|fact| !fact.is_empty());
        facts.join(" · ")
    }
}

/// `names` of `records`, each with what leads to it: the file of its cell, else the schemes
/// that ran.
pub(super) fn listed(names: &[String], records: &[&Analysis]) -> String {
    let one = |(name, record): (&String, &&Analysis)| match &record.cell {
        Some(cell) => format!("{name} (cells/{}.json)", cell.key),
        None if record.coruns.is_empty() => name.clone(),
        None => format!("{name} (under {})", scheme_names(&record.coruns).join(", ")),
    };
    let mut reported: Vec<String> = names.iter().zip(records).take(NAMED).map(one).collect();
    if names.len() > NAMED {
        reported.push(format!("{} more", names.len() - NAMED));
    }
    reported.join("; ")
}

/// A name with the first characters of a hash, unless it tells them.
fn named(name: &str, hash: &str) -> String {
    let start: String = hash.chars().take(8).collect();
    let reported = start.is_empty() || name.ends_with(&format!("({start})"));
    if reported { name.to_string() } else { format!("{name} ({start})") }
}

/// Up to two different words, else how many there are.
fn few(words: impl Iterator<Item = String>, plural: &str) -> String {
    let words: BTreeSet<String> = words.collect();
    if words.len() > 2 {
        return format!("{} {plural}", words.len());
    }
    words.into_iter().collect::<Vec<_>>().join(", ")
}
