//! Makespans of applications together over those under a baseline scheme: one cluster
//! of bars per mix, the geometric mean last; orders of arrival are averaged (ARCS 2018,
//! Fig. 10 and 11; Slate, Fig. 7).

use std::collections::BTreeSet;

use super::{Drawing, FigureInput, NO_CORUN, ReportError, empty};
use crate::chart::{Bars, Cluster, Entry, Fill, Swatch};
use crate::group::short_app;
use crate::machine::machine_words;
use crate::mix::{apart, scheme_names};
use crate::number::{float, ratio};
use crate::results::statistics::{geometric_mean, mean};
use crate::results::{Analysis, CoRun};
use crate::values::{cell, csv};
use gpumodel_core::units::sorted_mix;

/// The baselines where none is named, the first that some mix ran under.
const USUAL: [&str; 2] = ["sequential", "cuda"];

/// Mixes that are drawn; the means are over all.
const MIXES: usize = 48;

/// Bars up to which values stand above them.
const LABELLED: usize = 30;

/// What is missing where no mix ended under the baseline.
const MISSING: &str = "no two applications finished together; run `gpumodel analyze A B --scheme sequential,S,… --json FILE`";

/// One run of a mix.
struct Run {
    record: usize,
    scheme: String,
    makespan: u64,
}

/// A mix with its runs, whatever the order of arrival.
struct Mix {
    label: String,
    runs: Vec<Run>,
}

/// Makespan of the baseline over that of a scheme: the mean over runs, both ends, and
/// how many there are.
#[derive(Clone, Copy)]
struct Gain {
    mean: f64,
    ends: (f64, f64),
    runs: usize,
}

pub(super) fn draw(input: &FigureInput<'_>) -> Result<Drawing, ReportError> {
    let mixes = mixes(input.records());
    if mixes.is_empty() {
        let missing = if input.coruns().is_empty() { NO_CORUN } else { MISSING };
        return Err(empty("makespan", missing));
    }
    let schemes = schemes(&mixes);
    let baseline = baseline(&schemes, input.baseline())?;
    let gains: Vec<Vec<Option<Gain>>> = mixes
        .iter()
        .map(|mix| schemes.iter().map(|scheme| mix.gain(scheme, baseline)).collect())
        .collect();
    if gains.iter().flatten().flatten().count() == 0 {
        let missing = format!("no mix finished under {baseline}; choose with --baseline SCHEME");
        return Err(empty("makespan", &missing));
    }
    let means = means(&gains, schemes.len());
    let mut sheet = input.sheet(&format!("Makespan speedup against {baseline}"));
    let fills: Vec<Fill> = (0..schemes.len()).map(Fill::of).collect();
    let entry = |(name, fill): (&String, &Fill)| Entry::new(Swatch::Fill(*fill), name);
    sheet.legend(&schemes.iter().zip(&fills).map(entry).collect::<Vec<_>>());
    let clusters = clusters(&mixes, &gains, &means);
    let title = "speedup";
    Bars { clusters: &clusters, fills: &fills, title, reference: Some(1.0), most: 0.0 }
        .draw(&mut sheet);
    for note in notes(&gains) {
        sheet.note(&note);
    }
    let csv = table(&mixes, &schemes, &gains, &means);
    Ok(sheet.finish(&input.footer()).with_csv(csv))
}

/// From the first arrival to the last end; `None` where not all have finished.
fn makespan(run: &CoRun) -> Option<u64> {
    let whole = run.apps.len() > 1 && run.apps.iter().all(|app| app.finished && !app.memory_only);
    let first = run.apps.iter().map(|app| app.arrival_cycle).min()?;
    let last = run.apps.iter().map(|app| app.end_cycle).max()?;
    last.checked_sub(first).filter(|&span| whole && span > 0)
}

/// The mixes of `records` in order of first appearance: the same applications on one
/// machine are one mix, whatever their order.
fn mixes(records: &[Analysis]) -> Vec<Mix> {
    let mut found: Vec<((&str, Vec<&str>), Mix)> = Vec::new();
    for (index, record) in records.iter().enumerate() {
        for (scheme, run) in scheme_names(&record.coruns).into_iter().zip(&record.coruns) {
            let Some(makespan) = makespan(run) else { continue };
            let apps = run.apps.iter().map(|app| &app.app);
            let label = apps.clone().map(|app| short_app(app)).collect::<Vec<_>>().join("+");
            let key = (record.machine.hash.as_str(), sorted_mix(apps));
            let run = Run { record: index, scheme, makespan };
            match found.iter_mut().find(|(other, _)| *other == key) {
                Some((_, mix)) => mix.runs.push(run),
                None => found.push((key, Mix { label, runs: vec![run] })),
            }
        }
    }
    let mixes: Vec<Mix> = found.into_iter().map(|(_, mix)| mix).collect();
    let own: Vec<&Analysis> = mixes.iter().map(|mix| &records[mix.runs[0].record]).collect();
    let words = machine_words(&own);
    let labels = mixes.iter().zip(words).map(|(mix, words)| mix.label.clone() + &words);
    let labels = apart(labels.collect());
    mixes.into_iter().zip(labels).map(|(mix, label)| Mix { label, ..mix }).collect()
}

impl Mix {
    /// The makespans under `scheme`, of one record or of all.
    fn makespans(&self, scheme: &str, record: Option<usize>) -> Vec<f64> {
        let of =
            |run: &&Run| run.scheme == scheme && record.is_none_or(|record| run.record == record);
        self.runs.iter().filter(of).map(|run| float(run.makespan)).collect()
    }

    /// What `scheme` gains over `baseline` in the same record, else over the mean of the
    /// baseline's runs.
    fn gain(&self, scheme: &str, baseline: &str) -> Option<Gain> {
        let all = mean(&self.makespans(baseline, None));
        let gain = |run: &Run| {
            let own = mean(&self.makespans(baseline, Some(run.record)));
            ratio(own.or(all)?, float(run.makespan))
        };
        let runs = self.runs.iter().filter(|run| run.scheme == scheme);
        let gains: Vec<f64> = runs.filter_map(gain).collect();
        let low = gains.iter().copied().fold(f64::MAX, f64::min);
        let high = gains.iter().copied().fold(0.0, f64::max);
        Some(Gain { mean: mean(&gains)?, ends: (low, high), runs: gains.len() })
    }
}

/// Every scheme, in the order in which they first come.
fn schemes(mixes: &[Mix]) -> Vec<String> {
    let mut used = BTreeSet::new();
    let all = mixes.iter().flat_map(|mix| &mix.runs).map(|run| run.scheme.clone());
    all.filter(|scheme| used.insert(scheme.clone())).collect()
}

fn baseline<'a>(schemes: &'a [String], asked: Option<&str>) -> Result<&'a str, ReportError> {
    let known = |name: &str| schemes.iter().find(|scheme| *scheme == name).map(String::as_str);
    match asked {
        None => Ok(USUAL.into_iter().find_map(known).unwrap_or(&schemes[0])),
        Some(name) => known(name).ok_or_else(|| {
            let all = schemes.join(", ");
            empty("makespan", &format!("no mix finished under {name}; the schemes are {all}"))
        }),
    }
}

/// The geometric mean of each scheme over the mixes that have it.
fn means(gains: &[Vec<Option<Gain>>], schemes: usize) -> Vec<Option<f64>> {
    let of = |place: usize| {
        let found: Vec<f64> = gains.iter().filter_map(|mix| Some(mix[place]?.mean)).collect();
        geometric_mean(&found)
    };
    (0..schemes).map(of).collect()
}

fn clusters(mixes: &[Mix], gains: &[Vec<Option<Gain>>], means: &[Option<f64>]) -> Vec<Cluster> {
    let labelled = mixes.len() * means.len() <= LABELLED;
    let cluster = |(mix, gains): (&Mix, &Vec<Option<Gain>>)| Cluster {
        name: mix.label.clone(),
        values: gains.iter().map(|gain| gain.map(|gain| gain.mean)).collect(),
        labelled,
        ends: gains.iter().map(|gain| gain.filter(|gain| gain.runs > 1).map(|g| g.ends)).collect(),
        mean: false,
    };
    let mut clusters: Vec<Cluster> = mixes.iter().zip(gains).take(MIXES).map(cluster).collect();
    if mixes.len() > 1 {
        let (name, values) = ("GMEAN".into(), means.to_vec());
        clusters.push(Cluster { name, values, labelled: true, ends: Vec::new(), mean: true });
    }
    clusters
}

fn notes(gains: &[Vec<Option<Gain>>]) -> Vec<String> {
    let mut notes = vec!["From the first arrival to the last end; more is better.".to_string()];
    if gains.iter().flatten().flatten().any(|gain| gain.runs > 1) {
        notes.push("Bars: means over orders of arrival; lines on them: least and most.".into());
    }
    if gains.len() > MIXES {
        notes.push(format!("{} more mixes are in the mean and not drawn.", gains.len() - MIXES));
    }
    let partial = gains.iter().filter(|mix| mix.iter().any(Option::is_none)).count();
    if partial > 0 {
        notes.push(format!(
            "{partial} of {} mixes lack a scheme: means are over those that have it.",
            gains.len()
        ));
    }
    notes
}

fn table(
    mixes: &[Mix],
    schemes: &[String],
    gains: &[Vec<Option<Gain>>],
    means: &[Option<f64>],
) -> String {
    let mut lines = Vec::new();
    for (mix, gains) in mixes.iter().zip(gains) {
        lines.extend(schemes.iter().zip(gains).map(|(scheme, gain)| {
            let makespan = mean(&mix.makespans(scheme, None));
            let runs = gain.map_or(0, |gain| gain.runs).to_string();
            let (low, high) = (cell(gain.map(|g| g.ends.0)), cell(gain.map(|g| g.ends.1)));
            let speedup = cell(gain.map(|gain| gain.mean));
            [mix.label.clone(), scheme.clone(), runs, cell(makespan), speedup, low, high]
        }));
    }
    lines.extend(schemes.iter().zip(means).map(|(scheme, mean)| {
        let none = String::new;
        ["GMEAN".into(), scheme.clone(), none(), none(), cell(*mean), none(), none()]
    }));
    csv(["mix", "scheme", "runs", "makespan_cycles", "speedup", "low", "high"], lines)
}
