//! What a figure is drawn from: records, the applications chosen from them, and
//! a comparison where there is one.

use std::collections::{BTreeMap, BTreeSet};

use super::categories::{app_rank, kernel_rank};
use super::{Missing, NO_CORUN, NO_MIX};
use crate::ReportError;
use crate::chart::{Layout, Sheet};
use crate::kernels::{Group, Profile, cause_words, profiles, ranked_groups};
use crate::look::scheme_looks;
use crate::mix::{MixesByScheme, mix_names, scheme_names};
use crate::results::{
    Analysis, AppRecord, CoRun, CoRunApp, Comparison, KernelRecord, MachineRecord, UnitShares,
};
use crate::solo_run::SoloRun;

/// How one of several records is chosen.
pub(super) const ONE: &str = "give one of them: its file of `analyze --json`; of a sweep \
    cells/KEY.json, or a table with the rows of one mix out of its cells.csv";

/// Records that an error names at most.
const NAMED: usize = 16;

/// Records with a choice of applications.
#[derive(Clone, Debug)]
pub struct FigureInput<'a> {
    /// All records.
    pub(super) records: &'a [Analysis],
    /// The chosen applications with their records.
    pub(super) apps: Vec<(&'a Analysis, &'a AppRecord)>,
    /// The comparison, where there is one.
    pub(super) comparison: Option<&'a Comparison>,
    /// The scheme that others are compared with, where one was asked for.
    pub(super) baseline: Option<&'a str>,
    /// The metric by which schemes are compared, where one was asked for.
    pub(super) metric: Option<&'a str>,
    /// The queue that was asked for.
    pub(super) queue: Option<&'a str>,
    /// How the figure is set.
    pub(super) sheet: Sheet,
    /// The metrics that were asked for; empty: all.
    pub(super) metrics: &'a [String],
    /// How many times as high as usual plots are whose height can be chosen.
    stretch: f64,
    /// What renamed categories are called in the records, by their new names.
    before: Option<&'a BTreeMap<String, String>>,
    /// Applications and kernels that come first, or last and in the opposite order.
    order: (&'a [String], bool),
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
        let (sheet, published) = (Sheet::default(), None);
        Self {
            records,
            apps,
            comparison: None,
            baseline,
            metric,
            queue,
            sheet,
            metrics: &[],
            stretch: 1.0,
            before: None,
            order: (&[], false),
            published,
        }
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
    pub fn with(self, comparison: &'a Comparison) -> Self {
        Self { comparison: Some(comparison), ..self }
    }

    /// With the scheme that others are compared with.
    #[must_use]
    pub fn against(self, scheme: &'a str) -> Self {
        Self { baseline: Some(scheme), ..self }
    }

    /// With the metric by which schemes are compared.
    #[must_use]
    pub fn by(self, metric: &'a str) -> Self {
        Self { metric: Some(metric), ..self }
    }

    /// With the metrics that a figure of several shows, in that order.
    #[must_use]
    pub fn showing(self, metrics: &'a [String]) -> Self {
        Self { metrics, ..self }
    }

    /// With what [`rename`](super::rename) returned: the provenance has the records' own names.
    #[must_use]
    pub fn renamed(self, before: &'a BTreeMap<String, String>) -> Self {
        Self { before: Some(before), ..self }
    }

    /// With the kernels and the applications of co-runs that `order` names first where a figure
    /// shows them, or last, as [`order`](super::order()) does with the rest.
    #[must_use]
    pub fn ordered(self, order: &'a [String], last: bool) -> Self {
        Self { order: (order, last), ..self }
    }

    /// The place of a kernel of the chosen application number `app` in the order that was asked
    /// for.
    pub(super) fn kernel_rank(&self, app: usize, kernel: &str) -> usize {
        let app = self.apps.get(app).map_or("", |(_, app)| app.app.as_str());
        kernel_rank(self.order.0, self.order.1, (self.before(app), self.before(kernel)))
    }

    /// The place of an application in the order that was asked for.
    pub(super) fn app_rank(&self, app: &str) -> usize {
        app_rank(self.order.0, self.order.1, self.before(app))
    }

    /// The places of the applications of a run, in the order that was asked for.
    pub(super) fn places(&self, run: &CoRun) -> Vec<usize> {
        let mut places: Vec<usize> = (0..run.apps.len()).collect();
        places.sort_by_key(|&place| self.app_rank(&run.apps[place].app));
        places
    }

    /// The applications of a run in the order that was asked for.
    pub(super) fn in_order<'r>(&self, run: &'r CoRun) -> Vec<&'r CoRunApp> {
        self.places(run).into_iter().map(|place| &run.apps[place]).collect()
    }

    /// The kernels of the chosen applications, all beyond `most` as one group.
    pub(super) fn groups(&self, most: usize) -> Vec<Group> {
        ranked_groups(&self.apps, most, |app, kernel| self.kernel_rank(app, kernel))
    }

    /// The profiles of the kernels of the chosen applications, and how many beyond `most` are
    /// left out.
    pub(super) fn profiles(
        &self,
        most: usize,
        of: impl Fn(&KernelRecord) -> Option<UnitShares>,
    ) -> (Vec<Profile>, usize) {
        profiles(&self.apps, most, |app, kernel| self.kernel_rank(app, kernel), of)
    }

    /// The new name of a class, or of what else keeps its name in the records.
    pub(super) fn shown<'n>(&'n self, name: &'n str) -> &'n str {
        let renamed = self.before.into_iter().flatten().find(|(_, before)| *before == name);
        renamed.map_or(name, |(new, _)| new)
    }

    /// A cause of stalls as figures show it.
    pub(super) fn cause_words(&self, cause: &str) -> String {
        match self.shown(cause) {
            shown if shown == cause => cause_words(cause),
            shown => shown.to_owned(),
        }
    }

    /// What `name` was before it was renamed.
    fn before<'n>(&self, name: &'n str) -> &'n str
    where
        'a: 'n,
    {
        self.before.and_then(|names| names.get(name)).map_or(name, String::as_str)
    }

    /// The looks of `schemes`, those of their own names where they were renamed.
    pub(super) fn scheme_looks<S: AsRef<str>>(&self, schemes: &[S]) -> Vec<usize> {
        let before: Vec<&str> = schemes.iter().map(|name| self.before(name.as_ref())).collect();
        scheme_looks(&before)
    }

    /// With the queue that a figure of one queue shows.
    #[must_use]
    pub fn of(self, queue: &'a str) -> Self {
        Self { queue: Some(queue), ..self }
    }

    /// Set like that.
    #[must_use]
    pub fn on(self, sheet: Sheet) -> Self {
        Self { sheet, ..self }
    }

    /// With plots that are `stretch` times as high as usual, where their height can be chosen.
    pub(super) fn stretched(self, stretch: f64) -> Self {
        Self { stretch, ..self }
    }

    /// With the gains of schemes over the baseline by the metric that a paper prints, in
    /// percent: both ends.
    #[must_use]
    pub fn with_published(self, published: &'a BTreeMap<String, [f64; 2]>) -> Self {
        Self { published: Some(published), ..self }
    }

    /// A layout of the figure called `title`.
    pub(super) fn layout(&self, title: &str) -> Layout {
        Layout::new(self.sheet, title).stretched(self.stretch)
    }

    /// What a paper prints of `scheme`, over the baseline.
    pub(super) fn published(&self, scheme: &str) -> Option<(f64, f64)> {
        let [low, high] = self.published?.get(scheme)?.map(|percent| 1.0 + percent / 100.0);
        Some((low, high))
    }

    /// Every co-run of the records with the name of its scheme.
    pub(super) fn coruns(&self) -> Vec<(String, &'a CoRun)> {
        let named =
            |record: &'a Analysis| scheme_names(&record.coruns).into_iter().zip(&record.coruns);
        self.records.iter().flat_map(named).collect()
    }

    /// Every whole run of one chosen application alone under a scheme.
    pub(super) fn whole_solo_runs(&self) -> Vec<SoloRun<'a>> {
        self.solo_runs().into_iter().filter(SoloRun::is_whole).collect()
    }

    /// The same with runs that ended before the application.
    pub(super) fn solo_runs(&self) -> Vec<SoloRun<'a>> {
        let chosen = |run: &SoloRun<'_>| {
            let own = |(record, app): &(&Analysis, &AppRecord)| {
                std::ptr::eq(*record, run.record) && app.app == run.app.app
            };
            let known = run.record.solo.iter().any(|solo| solo.app == run.app.app);
            !known || self.apps.iter().any(own)
        };
        let of = |record: &'a Analysis| {
            record.coruns.iter().filter_map(move |run| SoloRun::new(record, run))
        };
        self.records.iter().flat_map(of).filter(chosen).collect()
    }

    /// The runs of several applications together, by machine; all have the same schemes.
    pub(super) fn mixes_by_machine(&self) -> Result<Vec<MixesByScheme<'a>>, Missing> {
        let found = MixesByScheme::by_machine(self.records);
        if found.iter().all(|one| one.mixes.is_empty()) { Err(NO_MIX.into()) } else { Ok(found) }
    }

    /// The records that hold co-runs.
    pub(super) fn mixes(&self) -> Result<Vec<&'a Analysis>, Missing> {
        let mixes: Vec<_> =
            self.records.iter().filter(|record| !record.coruns.is_empty()).collect();
        if mixes.is_empty() { Err(NO_CORUN.into()) } else { Ok(mixes) }
    }

    /// The only record that holds co-runs.
    pub(super) fn mix(&self) -> Result<&'a Analysis, Missing> {
        let mixes = self.mixes()?;
        if let [record] = mixes[..] {
            return Ok(record);
        }
        let (names, count) = (listed(&mix_names(&mixes), &mixes), mixes.len());
        Err(format!("shows one mix, the records hold {count}: {names}; {ONE}").into())
    }

    /// The machine of all chosen applications; `None` when there are several or none.
    pub(super) fn machine(&self) -> Option<&'a MachineRecord> {
        let first = self.apps.first().map(|(record, _)| &record.machine)?;
        let same = |record: &Analysis| record.machine.hash == first.hash;
        self.apps.iter().all(|(record, _)| same(record)).then_some(first)
    }

    /// What the figure's numbers come from: machine, trace, program, seed.
    pub(super) fn footer(&self) -> String {
        let before = |name| self.before(name);
        let machines = self.records.iter().map(|r| named(before(&r.machine.name), &r.machine.hash));
        let sampled = |app: &AppRecord| if app.is_sampled() { ", sampled" } else { "" };
        let trace = |app: &'a AppRecord| named(before(&app.app), &app.store_hash) + sampled(app);
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

/// A name with the first characters of a hash, unless it holds them.
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
