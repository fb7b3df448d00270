//! Makespans of applications together over those under a baseline scheme: one cluster
//! of bars per mix, the geometric mean last; one panel per machine, orders of arrival
//! averaged (ARCS 2018, Fig. 10 and 11; Slate, Fig. 7).

use gpumodel_core::units::sorted_mix;

use super::prelude::*;

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
    /// Its applications in their order.
    label: String,
}

/// A mix with its runs, whatever the order of arrival.
struct Mix {
    label: String,
    runs: Vec<Run>,
}

/// The mixes of one panel with what schemes gain, and the means.
struct Part<'a> {
    panel: MachinePanel,
    gains: Vec<&'a [Option<Gain>]>,
    means: Vec<Option<f64>>,
}

/// Makespan of the baseline over that of a scheme: the mean over runs, both ends, and
/// how many there are.
#[derive(Clone, Copy)]
struct Gain {
    mean: f64,
    ends: (f64, f64),
    runs: usize,
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let (mixes, panels) = mixes(input.records);
    if mixes.is_empty() {
        let missing = if input.coruns().is_empty() { NO_CORUN } else { MISSING };
        return Err(missing.into());
    }
    let schemes = distinct(mixes.iter().flat_map(|mix| &mix.runs).map(|run| run.scheme.clone()));
    let baseline = &schemes[baseline(input, &schemes, &USUAL, "finished")?];
    let gains: Vec<Vec<Option<Gain>>> = mixes
        .iter()
        .map(|mix| schemes.iter().map(|scheme| mix.gain(scheme, baseline)).collect())
        .collect();
    if gains.iter().flatten().flatten().count() == 0 {
        let missing = format!("no mix finished under {baseline}; choose with --baseline SCHEME");
        return Err(missing.into());
    }
    let parts: Vec<Part<'_>> =
        panels.into_iter().map(|panel| Part::of(panel, &gains, schemes.len())).collect();
    let looks = input.scheme_looks(&schemes);
    let mut layout = input.layout(&format!("Makespan speedup against {baseline}"));
    layout.legend(&Entry::looks(&schemes, &looks, Swatch::look));
    let room = MIXES / parts.len();
    let drawn: Vec<Vec<Cluster>> = parts.iter().map(|part| part.clusters(room)).collect();
    let most = highest(drawn.iter().flatten());
    for (part, clusters) in parts.iter().zip(&drawn) {
        part.panel.head(&mut layout);
        Bars::new(clusters, "speedup").reference(1.0).most(most).looks(&looks).draw(&mut layout);
    }
    layout
        .left_out(parts.iter().map(|part| part.gains.len().saturating_sub(room)).sum(), MORE_MIXES);
    notes(&mut layout, &gains);
    let csv = table(&mixes, &schemes, &gains, &parts);
    Ok(layout.finish(&input.footer()).with_csv(csv))
}

/// The mixes of `records` in order of first appearance: the same applications on one
/// machine are one mix, whatever their order; and the panels that they are drawn in.
fn mixes(records: &[Analysis]) -> (Vec<Mix>, Vec<MachinePanel>) {
    let runs = records.iter().enumerate().flat_map(|(record, own)| {
        let named = scheme_names(&own.coruns).into_iter().zip(&own.coruns);
        named.filter_map(move |(scheme, run)| {
            let several = run.apps.len() > 1;
            let makespan = run.makespan().filter(|&span| several && span > 0)?;
            let apps = run.apps.iter().map(|app| &app.app);
            let label = apps.clone().map(|app| last_component(app)).collect::<Vec<_>>().join("+");
            let key = (own.machine.hash.as_str(), sorted_mix(apps));
            Some((key, Run { record, scheme, makespan, label }))
        })
    });
    let mixes: Vec<Vec<Run>> = group_by(runs).into_iter().map(|(_, runs)| runs).collect();
    let own: Vec<&Analysis> = mixes.iter().map(|runs| &records[runs[0].record]).collect();
    let names: Vec<String> = mixes.iter().map(|runs| runs[0].label.clone()).collect();
    let words = machine_words(&own).into_iter();
    let labels = names.iter().zip(words).map(|(name, words)| name.clone() + &words);
    let labels = apart(labels.collect());
    let mixes = labels.into_iter().zip(mixes).map(|(label, runs)| Mix { label, runs }).collect();
    (mixes, machine_panels(&own, &names).0)
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

impl<'a> Part<'a> {
    fn of(panel: MachinePanel, gains: &'a [Vec<Option<Gain>>], schemes: usize) -> Self {
        let gains: Vec<&[Option<Gain>]> =
            panel.places.iter().map(|&place| gains[place].as_slice()).collect();
        let means = means(schemes, |at| gains.iter().filter_map(move |mix| Some(mix[at]?.mean)));
        Self { panel, gains, means }
    }

    /// The first `most` of its mixes, and the mean of all where there are several.
    fn clusters(&self, most: usize) -> Vec<Cluster> {
        let labelled = self.gains.len() * self.means.len() <= LABELLED;
        let cluster = |(label, gains): (&String, &&[Option<Gain>])| {
            let values = gains.iter().map(|gain| gain.map(|gain| gain.mean)).collect();
            let ends = gains.iter().map(|gain| gain.filter(|gain| gain.runs > 1).map(|g| g.ends));
            Cluster::new(label, values, labelled).with_ends(ends.collect())
        };
        let drawn = self.panel.labels.iter().zip(&self.gains).take(most).map(cluster);
        let several = self.gains.len() > 1 && self.panel.alike;
        let mean = several.then(|| Cluster::mean("GMEAN", self.means.clone()));
        drawn.chain(mean).collect()
    }
}

fn notes(layout: &mut Layout, gains: &[Vec<Option<Gain>>]) {
    layout.note("From the first arrival to the last end; more is better.");
    if gains.iter().flatten().flatten().any(|gain| gain.runs > 1) {
        layout.note("Bars: means over orders of arrival; lines on them: least and most.");
    }
    let lacking = gains.iter().filter(|mix| mix.iter().any(Option::is_none)).count();
    partial(layout, lacking, gains.len(), "a scheme: means");
}

fn table(
    mixes: &[Mix],
    schemes: &[String],
    gains: &[Vec<Option<Gain>>],
    parts: &[Part<'_>],
) -> String {
    let mut lines = Vec::new();
    for (mix, gains) in mixes.iter().zip(gains) {
        lines.extend(schemes.iter().zip(gains).map(|(scheme, gain)| {
            let makespan = mean(&mix.makespans(scheme, None));
            let (runs, speedup) = (gain.map_or(0, |gain| gain.runs), gain.map(|gain| gain.mean));
            let (low, high) = (gain.map(|gain| gain.ends.0), gain.map(|gain| gain.ends.1));
            row![mix.label, scheme, runs, makespan, speedup, low, high]
        }));
    }
    for part in parts.iter().filter(|part| part.panel.alike) {
        let (name, means) = (part.panel.mean_name("GMEAN"), schemes.iter().zip(&part.means));
        lines.extend(means.map(|(scheme, mean)| row![name, scheme, "", "", mean, "", ""]));
    }
    csv("mix,scheme,runs,makespan_cycles,speedup,low,high", lines)
}
