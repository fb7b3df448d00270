//! Schemes over a baseline scheme: one cluster of bars per mix, the geometric mean
//! last (Warped-Slicer, Fig. 6); one panel per machine, as no mean spans two.

use super::prelude::*;

/// The baseline where none is named and a mix ran under it.
const USUAL: &str = "left-over";

/// Mixes that are drawn; the mean is over all.
const MIXES: usize = 48;

/// Something by which schemes are compared.
struct Metric {
    name: &'static str,
    label: &'static str,
    axis: &'static str,
    of: fn(&CoRun) -> f64,
}

const METRICS: [Metric; 7] = [
    Metric { name: "ipc", label: "Combined IPC", axis: "IPC", of: |run| run.ipc_throughput },
    Metric { name: "stp", label: "STP", axis: "STP", of: |run| run.stp },
    Metric { name: "antt", label: "ANTT (less is better)", axis: "ANTT", of: |run| run.antt },
    Metric {
        name: "fairness",
        label: "Minimum speedup",
        axis: "fairness",
        of: |run| run.fairness_min_speedup,
    },
    Metric {
        name: "harmonic",
        label: "Harmonic speedup",
        axis: "harmonic",
        of: |run| run.harmonic_speedup,
    },
    Metric {
        name: "makespan",
        label: "Makespan speedup",
        axis: "speedup",
        of: |run| run.makespan_speedup,
    },
    Metric {
        name: "energy",
        label: "Energy (less is better)",
        axis: "energy",
        of: |run| run.energy_joules,
    },
];

/// Metrics of which more is better: a gain over the baseline is their ratio, less one.
const MARKED: [&str; 4] = ["ipc", "stp", "fairness", "makespan"];

/// Both ends of what a paper prints, over the baseline.
type Mark = Option<(f64, f64)>;

/// One mix: values and shares of the baseline's by scheme; `None` where it did not
/// run, or either has no value.
struct Row {
    mix: String,
    values: Vec<Option<f64>>,
    shares: Vec<Option<f64>>,
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let records = input.mixes()?;
    let metric = metric(&METRICS, |metric| metric.name, input.metric)?;
    let schemes = distinct(records.iter().flat_map(|record| scheme_names(&record.coruns)));
    let baseline = baseline(input, &schemes, &[USUAL], "ran")?;
    let rows = rows(&records, &schemes, &schemes[baseline], metric);
    if rows.iter().all(|row| row.shares.iter().flatten().count() == 0) {
        let missing = format!("no mix has a value under {}", schemes[baseline]);
        return Err(missing.into());
    }
    let looks = input.scheme_looks(&schemes);
    let mut layout = input.layout(&format!("{} over {}", metric.label, schemes[baseline]));
    layout.legend(&Entry::looks(&schemes, &looks, Swatch::look));
    let marks = marks(input, metric, &schemes);
    let short: Vec<String> = records.iter().map(|record| mix_name(record)).collect();
    let (panels, notes) = machine_panels(&records, &short);
    let panels: Vec<Part<'_>> =
        panels.into_iter().map(|panel| Part::of(panel, &rows, schemes.len())).collect();
    let drawn: Vec<Vec<Cluster>> =
        panels.iter().map(|part| part.clusters(MIXES / panels.len(), &marks)).collect();
    let most = highest(drawn.iter().flatten());
    let axis = format!("relative {}", metric.axis);
    for (part, clusters) in panels.iter().zip(&drawn) {
        part.panel.head(&mut layout);
        let bars = Bars::new(clusters, &axis).reference(1.0).most(most);
        bars.looks(&looks).draw(&mut layout);
    }
    layout.note(&format!("{} over that under {}.", metric.label, schemes[baseline]));
    if rows.len() > 1 && marks.iter().any(Option::is_some) {
        layout.note("Marks at GMEAN: what the paper prints.");
    }
    notes.iter().for_each(|note| layout.note(note));
    let left = panels.iter().map(|part| part.rows.len().saturating_sub(MIXES / panels.len()));
    layout.left_out(left.sum(), MORE_MIXES);
    let lacking = rows.iter().filter(|row| row.shares.iter().any(Option::is_none)).count();
    partial(&mut layout, lacking, rows.len(), "a scheme or a value: means");
    Ok(layout.finish(&input.footer()).with_csv(table(metric, &schemes, &rows, &panels)))
}

fn rows(records: &[&Analysis], schemes: &[String], baseline: &str, metric: &Metric) -> Vec<Row> {
    let usable = |value: &f64| value.is_finite() && *value > 0.0;
    let row = |(record, mix): (&&Analysis, String)| {
        let names = scheme_names(&record.coruns);
        let value = |scheme: &str| {
            let place = names.iter().position(|name| name == scheme)?;
            Some((metric.of)(&record.coruns[place])).filter(usable)
        };
        let base = value(baseline);
        let values: Vec<Option<f64>> = schemes.iter().map(|scheme| value(scheme)).collect();
        let shares = values.iter().map(|value| Some((*value)? / base?)).collect();
        Row { mix, values, shares }
    };
    records.iter().zip(mix_names(records)).map(row).collect()
}

/// What a paper prints of each scheme, where a gain is more of the metric.
fn marks(input: &FigureInput<'_>, metric: &Metric, schemes: &[String]) -> Vec<Mark> {
    let mark = |scheme: &String| input.published(scheme).filter(|_| MARKED.contains(&metric.name));
    schemes.iter().map(mark).collect()
}

/// The mixes of one panel, and their means by scheme.
struct Part<'a> {
    panel: MachinePanel,
    rows: Vec<&'a Row>,
    means: Vec<Option<f64>>,
}

impl<'a> Part<'a> {
    fn of(panel: MachinePanel, rows: &'a [Row], schemes: usize) -> Self {
        let rows: Vec<&Row> = panel.places.iter().map(|&place| &rows[place]).collect();
        let means = means(schemes, |at| rows.iter().filter_map(move |row| row.shares[at]));
        Self { panel, rows, means }
    }

    /// The first `most` of its mixes, and the mean of all where there are several.
    fn clusters(&self, most: usize, marks: &[Mark]) -> Vec<Cluster> {
        let one = self.rows.len() == 1;
        let drawn = self.rows.iter().zip(&self.panel.labels).take(most);
        let drawn = drawn.map(|(row, label)| Cluster::new(label, row.shares.clone(), one));
        let mean = Cluster::mean("GMEAN", self.means.clone()).with_ends(marks.to_vec());
        drawn.chain((!one && self.panel.alike).then_some(mean)).collect()
    }
}

fn table(metric: &Metric, schemes: &[String], rows: &[Row], parts: &[Part<'_>]) -> String {
    let line = |mix: &str, scheme: &str, value: Option<f64>, share: Option<f64>| {
        row![mix, scheme, metric.name, value, share]
    };
    let mut lines = Vec::new();
    for row in rows {
        let values = row.values.iter().zip(&row.shares);
        let named = schemes.iter().zip(values);
        lines.extend(named.map(|(scheme, (value, share))| line(&row.mix, scheme, *value, *share)));
    }
    for part in parts.iter().filter(|part| part.panel.alike) {
        let name = part.panel.mean_name("GMEAN");
        let means = schemes.iter().zip(&part.means);
        lines.extend(means.map(|(scheme, mean)| line(&name, scheme, None, *mean)));
    }
    csv("mix,scheme,metric,value,normalized", lines)
}
