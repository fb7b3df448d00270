//! Values of published tables, looked for in records, and published slow-downs.

use std::collections::BTreeMap;

use gpumodel_core::models::ModelFiles;
use gpumodel_core::toml::Node;
use serde::Deserialize;

use super::columns::{corun_value, solo_value, worker_value};
use super::file::{PaperError, read};
use super::published_table::TableEntry;
use crate::format::float;
use crate::results::statistics::mean;
use crate::results::{
    Analysis, CoRun, CoRunApp, CurveRecord, InterferenceRecord, PublishedSlowdown, first_partition,
};

/// The slowdowns of classes of applications by each other: a row per class that disturbs, a column
/// per class that is slowed down.
const SLOWDOWN: &str = "slowdown";

/// Speed of an application over its best, where it has a part of its CTAs.
const OF_BEST: &str = "of_best_percent";

/// That part.
const CTAS: &str = "ctas_percent";

/// The fewest SMs on which an application is as fast as on any: within a twentieth.
const PEAK: &str = "peak_at_sms";

/// Of the highest speed.
const ENOUGH: f64 = 0.95;

/// Which value of a table is meant.
#[derive(Clone, Copy, Debug)]
pub struct PublishedLookup<'a> {
    /// What kind of rows it is in.
    pub rows: &'a str,
    /// Its row.
    pub row: &'a str,
    /// Its column, with the unit.
    pub column: &'a str,
    /// The applications that it is about, each by every name that it may have.
    pub apps: &'a [Vec<String>],
    /// The schemes that it is of.
    pub schemes: &'a [String],
    /// Where its row stands.
    pub at: &'a BTreeMap<String, f64>,
    /// The cycles that the table is about.
    pub window_cycles: Option<f64>,
}

impl PublishedLookup<'_> {
    /// What those of `records` have of it whose machine is as its file has it; `None`:
    /// nothing, or it cannot be computed.
    #[must_use]
    pub fn value(&self, records: &[Analysis]) -> Option<TableEntry> {
        let plain = records.iter().filter(|record| record.overrides.is_empty());
        let records = &plain.collect::<Vec<&Analysis>>()[..];
        if self.rows == SLOWDOWN {
            return self.slowdown(records).map(TableEntry::Number);
        }
        if self.schemes.len() > 1 {
            return self.by_scheme(records);
        }
        let lists = || self.partition(records).map(TableEntry::Numbers);
        let class = || self.class(records).map(TableEntry::Text);
        let studied = || self.curve(records).or_else(|| self.peak(records));
        let number = || studied().or_else(|| self.alone(records)).map(TableEntry::Number);
        lists().or_else(|| self.by_scheme(records)).or_else(number).or_else(class)
    }

    fn slowdown(&self, records: &[&Analysis]) -> Option<f64> {
        let found = records.iter().flat_map(|record| &record.interference).next()?;
        let place = |name: &str| found.classes.iter().position(|class| class == name);
        found.slowdown.get(place(self.row)?)?.get(place(self.column)?).copied()
    }

    /// CTAs per SM of applications that share every SM under the scheme of the column.
    fn partition(&self, records: &[&Analysis]) -> Option<Vec<f64>> {
        if self.apps.len() < 2 || self.rows.is_empty() {
            return None;
        }
        let of = |(_, run): (&Analysis, &CoRun)| -> Option<Vec<f64>> {
            let ctas = shared(run)?;
            let place = |names: &Vec<String>| run.apps.iter().position(|app| is(names, &app.app));
            self.apps.iter().map(|names| ctas.get(place(names)?).copied()).collect()
        };
        self.runs(records, &self.column.replace('_', "-")).find_map(of)
    }

    /// The mean over the runs of each scheme.
    fn by_scheme(&self, records: &[&Analysis]) -> Option<TableEntry> {
        let of = |scheme: &String| {
            let of_run = |(record, run)| corun_value(self.column, record, run);
            let values: Vec<f64> = self.runs(records, scheme).filter_map(of_run).collect();
            mean(&values).or_else(|| self.form(records, scheme))
        };
        let values: Option<Vec<f64>> = self.schemes.iter().map(of).collect();
        match values?[..] {
            [] => None,
            [one] => Some(TableEntry::Number(one)),
            ref several => Some(TableEntry::Numbers(several.to_vec())),
        }
    }

    /// What the one application takes as workers, in any run of the scheme that has it.
    fn form(&self, records: &[&Analysis], scheme: &str) -> Option<f64> {
        let [names] = self.apps else { return None };
        let runs = records.iter().flat_map(|record| &record.coruns);
        let apps = runs.filter(|run| run.is_under(scheme)).flat_map(|run| &run.apps);
        let own = |app: &&CoRunApp| is(names, &app.app);
        apps.filter(own).find_map(|app| worker_value(self.column, app))
    }

    /// A point of the curves that schemes saw of the one application.
    fn curve(&self, records: &[&Analysis]) -> Option<f64> {
        let [names] = self.apps else { return None };
        let percent = *self.at.get(CTAS).filter(|_| self.column == OF_BEST)?;
        let decisions = records.iter().flat_map(|record| &record.coruns);
        let curves = decisions.flat_map(|run| &run.decisions).flat_map(|decided| &decided.curves);
        let own = curves.filter(|curve| is(names, &curve.app));
        mean(&own.filter_map(|curve| near(curve, percent)).collect::<Vec<f64>>())
    }

    /// Where the one application saturates, of its runs on several numbers of SMs.
    fn peak(&self, records: &[&Analysis]) -> Option<f64> {
        if self.column != PEAK || self.apps.len() != 1 {
            return None;
        }
        let runs = self.runs(records, "solo").filter_map(|(_, run)| run.apps.first());
        let runs: Vec<&CoRunApp> = runs.filter(|app| app.finished && app.sms > 0).collect();
        let best = runs.iter().map(|app| app.cycles).min().filter(|_| runs.len() > 1)?;
        let enough = runs.iter().filter(|app| float(best) >= ENOUGH * float(app.cycles));
        enough.map(|app| app.sms).min().map(float)
    }

    fn alone(&self, records: &[&Analysis]) -> Option<f64> {
        let [names] = self.apps else { return None };
        let solos =
            records.iter().flat_map(|record| record.solo.iter().map(move |app| (record, app)));
        let mut own = solos.filter(|(_, app)| is(names, &app.app));
        own.find_map(|(record, app)| solo_value(self.column, self.window_cycles, record, app))
    }

    fn class(&self, records: &[&Analysis]) -> Option<String> {
        let [names] = self.apps else { return None };
        let known = records.iter().flat_map(|record| &record.interference);
        let mut own = known.flat_map(|found| &found.apps).filter(|app| is(names, &app.app));
        own.next().filter(|_| self.column == "class").map(|app| app.class.clone())
    }

    /// Runs under `scheme` of just the applications; of all where it is about none.
    fn runs<'r>(
        &self,
        records: &[&'r Analysis],
        scheme: &str,
    ) -> impl Iterator<Item = (&'r Analysis, &'r CoRun)> {
        let own = move |run: &CoRun| {
            let has = |names: &Vec<String>| run.apps.iter().any(|app| is(names, &app.app));
            let all = run.apps.len() == self.apps.len() && self.apps.iter().all(has);
            run.is_under(scheme) && (self.apps.is_empty() || all)
        };
        let of = |record: &'r Analysis| record.coruns.iter().map(move |run| (record, run));
        let runs = records.iter().copied().flat_map(of);
        runs.filter(move |(_, run)| own(run))
    }
}

/// CTAs per SM by application, where all SMs are shared alike: as decided on from curves,
/// else as the first plan has it.
fn shared(run: &CoRun) -> Option<Vec<f64>> {
    let chosen = first_partition(run).filter(|chosen| chosen.iter().all(|&ctas| ctas > 0));
    if let Some(chosen) = chosen {
        return Some(chosen.into_iter().map(f64::from).collect());
    }
    let shares = run.decisions.first()?.plan.get("shares")?.as_array()?;
    shares.iter().map(|share| share.as_u64().map(float)).collect()
}

/// Speed over the best with the count that is nearest to `percent` of the most CTAs.
fn near(curve: &CurveRecord, percent: f64) -> Option<f64> {
    let most = float(curve.normalized.len());
    let far = |ctas: u64| (100.0 * float(ctas) / most - percent).abs();
    let points = (1_u64..).zip(&curve.normalized);
    let (_, speed) = points.min_by(|a, b| far(a.0).total_cmp(&far(b.0)))?;
    speed.map(|speed| 100.0 * speed)
}

/// Whether a plan's `app` is one of `names`, spelt in any way.
fn is(names: &[String], app: &str) -> bool {
    let plain = |name: &str| -> String {
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    names.iter().any(|name| plain(name) == plain(app))
}

/// Slow-downs as ILP-SMRA prints them (Fig. 2, and the text about it).
#[derive(Clone, Debug, Default)]
pub struct PublishedSlowdowns(Vec<PublishedSlowdown>);

/// What is printed of a class under one class, by the class that disturbs and the one that
/// suffers.
type Printed = BTreeMap<String, BTreeMap<String, Entry>>;

#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Entry {
    Value(f64),
    Range([f64; 2]),
}

const PAPER: &str = "ilp-smra";

impl PublishedSlowdowns {
    /// Reads what the model files say.
    ///
    /// # Errors
    /// Those of [`Paper::load`](super::Paper::load).
    pub fn load(models: &ModelFiles) -> Result<Self, PaperError> {
        let file = read(models, PAPER)?;
        let printed = file.entries().and_then(|file| file.get("interference"));
        let printed = printed.and_then(|tables| tables.entries()?.get("slowdown"));
        let printed: Printed = printed.map(Node::decode).transpose()?.unwrap_or_default();
        let entries = printed.iter().flat_map(|(disturbs, row)| {
            row.iter().map(move |(suffers, &entry)| slowdown(disturbs, suffers, entry))
        });
        Ok(Self(entries.collect()))
    }

    /// Adds them to what the model gives, where it is about the same classes.
    pub fn add_to(&self, record: &mut InterferenceRecord) {
        let known = |class: &String| record.classes.contains(class);
        if self.0.iter().all(|one| known(&one.disturbs) && known(&one.suffers)) {
            record.published.clone_from(&self.0);
        }
    }
}

fn slowdown(disturbs: &str, suffers: &str, entry: Entry) -> PublishedSlowdown {
    let (low, high) = match entry {
        Entry::Value(value) => (value, value),
        Entry::Range([low, high]) => (low, high),
    };
    PublishedSlowdown { disturbs: disturbs.to_owned(), suffers: suffers.to_owned(), low, high }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{PublishedLookup, PublishedSlowdowns, TableEntry};
    use crate::results::{
        Analysis, AppRecord, CoRun, CoRunApp, CurveRecord, DecisionRecord, InterferenceRecord,
        WorkersRecord,
    };

    fn run(scheme: &str, apps: [&str; 2], decision: DecisionRecord) -> CoRun {
        CoRun {
            scheme: scheme.into(),
            apps: apps.map(|app| CoRunApp { app: app.into(), ..CoRunApp::default() }).into(),
            decisions: vec![decision],
            ..CoRun::default()
        }
    }

    fn named(names: &[&str]) -> Vec<Vec<String>> {
        names.iter().map(|name| vec![format!("own-{name}"), (*name).to_owned()]).collect()
    }

    #[test]
    fn shared_sms_are_in_the_order_of_the_paper() {
        let curve = |app: &str, chosen| CurveRecord {
            app: app.into(),
            normalized: vec![Some(0.5), Some(0.9), None, Some(1.0)],
            chosen,
            ..CurveRecord::default()
        };
        let curves = vec![curve("b", 3), curve("mri-q", 5)];
        let even =
            DecisionRecord { plan: serde_json::json!({"shares": [4, 2]}), ..Default::default() };
        let sliced = DecisionRecord { curves, ..DecisionRecord::default() };
        let apps = ["b", "mri-q"];
        let record = Analysis {
            coruns: vec![run("even", apps, even), run("warped-slicer", apps, sliced)],
            ..Analysis::default()
        };
        let at = BTreeMap::from([("ctas_percent".to_owned(), 50.0)]);
        let of = |column, names: &[&str]| {
            let apps = named(names);
            let lookup = PublishedLookup {
                rows: "pair",
                row: "",
                column,
                apps: &apps,
                schemes: &[],
                at: &at,
                window_cycles: None,
            };
            lookup.value(std::slice::from_ref(&record))
        };
        assert_eq!(of("even", &["MRIQ", "B"]), Some(TableEntry::Numbers(vec![2.0, 4.0])));
        assert_eq!(of("warped_slicer", &["MRIQ", "B"]), Some(TableEntry::Numbers(vec![5.0, 3.0])));
        assert_eq!(of("spatial", &["MRIQ", "B"]), None);
        assert_eq!(of("even", &["MRIQ", "C"]), None);
        assert_eq!(of("of_best_percent", &["B"]), Some(TableEntry::Number(90.0)));
    }

    #[test]
    fn values_are_of_runs_alone_or_under_schemes() {
        let workers = WorkersRecord { registers: 28, ..WorkersRecord::default() };
        let mut pt = run("pt", ["bo", "x"], DecisionRecord::default());
        pt.apps[0].workers = Some(workers);
        let solo = AppRecord { app: "bo".into(), warp_instructions: 7, ..AppRecord::default() };
        let interference = InterferenceRecord {
            classes: vec!["M".into(), "C".into()],
            slowdown: vec![vec![1.0, 2.0], vec![3.0, 4.0]],
            ..InterferenceRecord::default()
        };
        let record = Analysis {
            solo: vec![solo],
            coruns: vec![pt],
            interference: vec![interference],
            ..Analysis::default()
        };
        let schemes = [String::from("pt")];
        let of = |rows, row, column| {
            let (apps, at) = (named(&["BO"]), BTreeMap::new());
            let lookup = PublishedLookup {
                rows,
                row,
                column,
                apps: &apps,
                schemes: &schemes,
                at: &at,
                window_cycles: None,
            };
            lookup.value(std::slice::from_ref(&record))
        };
        assert_eq!(of("app", "BO", "worker_registers"), Some(TableEntry::Number(28.0)));
        assert_eq!(of("app", "BO", "warp_instructions"), Some(TableEntry::Number(7.0)));
        assert_eq!(of("slowdown", "C", "M"), Some(TableEntry::Number(3.0)));
        assert_eq!(of("app", "BO", "time_s"), None);
    }

    #[test]
    fn an_application_saturates_where_more_sms_make_it_little_faster() {
        let run = |sms, cycles| CoRun {
            scheme: "solo".into(),
            apps: vec![CoRunApp {
                app: "stream".into(),
                finished: true,
                sms,
                cycles,
                ..CoRunApp::default()
            }],
            ..CoRun::default()
        };
        let peak = |coruns: Vec<CoRun>| {
            let (apps, at) = (named(&["stream"]), BTreeMap::new());
            let (rows, row, column, schemes) = ("", "stream", "peak_at_sms", &[]);
            PublishedLookup {
                rows,
                row,
                column,
                apps: &apps,
                schemes,
                at: &at,
                window_cycles: None,
            }
            .value(&[Analysis { coruns, ..Analysis::default() }])
        };
        let runs = [run(30, 950), run(9, 1000), run(3, 2000)];
        assert_eq!(peak(runs.to_vec()), Some(TableEntry::Number(9.0)));
        assert_eq!(peak(runs[..1].to_vec()), None);
    }

    #[test]
    fn a_list_by_scheme_is_no_value_of_a_run_alone() {
        let run = |scheme: &str, cycles| CoRun {
            scheme: scheme.into(),
            cycles,
            apps: vec![CoRunApp { app: "gs".into(), warp_instructions: 8, ..Default::default() }],
            ..CoRun::default()
        };
        let solo = AppRecord { app: "gs".into(), cycles: 9, ..AppRecord::default() };
        let mut record = Analysis { solo: vec![solo], ..Analysis::default() };
        (record.machine.sms, record.machine.core_mhz) = (2, 1000.0);
        let schemes = ["cuda", "slate"].map(String::from);
        let of = |column, record: &Analysis| {
            let (rows, row, at) = ("", "GS", &BTreeMap::new());
            let apps = &named(&["GS"])[..];
            PublishedLookup { rows, row, column, apps, schemes: &schemes, at, window_cycles: None }
                .value(std::slice::from_ref(record))
        };
        assert_eq!(of("gb_per_s", &record), None);
        record.coruns = vec![run("cuda", 4), run("slate", 2)];
        assert_eq!(of("warp_ipc_per_sm", &record), Some(TableEntry::Numbers(vec![1.0, 2.0])));
    }

    #[test]
    fn runs_of_a_machine_that_was_set_otherwise_do_not_count() {
        let record = |cycles, set: &[(&str, &str)]| {
            let app = CoRunApp { app: "gs".into(), warp_instructions: 8, ..Default::default() };
            let run = CoRun { scheme: "cuda".into(), cycles, apps: vec![app], ..CoRun::default() };
            let set = set.iter().map(|&(key, value)| (key.to_owned(), value.to_owned()));
            let solo = AppRecord { app: "gs".into(), cycles, ..AppRecord::default() };
            let (overrides, solo, coruns) = (set.collect(), vec![solo], vec![run]);
            let mut record = Analysis { overrides, solo, coruns, ..Analysis::default() };
            (record.machine.sms, record.machine.core_mhz) = (2, 1000.0);
            record
        };
        let of = |column, records: &[Analysis]| {
            let (rows, row, at) = ("", "GS", &BTreeMap::new());
            let (apps, schemes) = (&named(&["GS"])[..], &[String::from("cuda")][..]);
            PublishedLookup { rows, row, column, apps, schemes, at, window_cycles: None }
                .value(records)
        };
        let both = [record(1, &[("l2.latency", "9")]), record(4, &[])];
        assert_eq!(of("warp_ipc_per_sm", &both), Some(TableEntry::Number(1.0)));
        assert_eq!(of("warp_ipc_per_sm", &both[..1]), None);
        // The same of runs alone.
        let time = of("time_ms", &both[1..]);
        assert!(time.is_some());
        assert_eq!((of("time_ms", &both), of("time_ms", &both[..1])), (time, None));
    }

    #[test]
    fn what_the_paper_prints_is_there() {
        let published = PublishedSlowdowns::load(&gpumodel_models::builtin()).unwrap();
        let of = |disturbs: &str, suffers: &str| {
            let found = published.0.iter().find(|o| o.disturbs == disturbs && o.suffers == suffers);
            found.map(|one| (one.low, one.high))
        };
        assert_eq!(of("MC", "M"), Some((2.05, 2.05)));
        assert_eq!(of("A", "C"), Some((1.50, 1.51)), "within the row and the column");
        assert_eq!(of("M", "M"), None);
        assert!(published.0.iter().all(|one| one.low <= one.high));
    }
}
