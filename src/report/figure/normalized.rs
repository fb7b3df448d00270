//! Schemes over a baseline scheme: one cluster of bars per mix, the geometric mean
//! last (Warped-Slicer, Fig. 6).

use super::prelude::*;

/// The baseline where none is named and a mix ran under it.
const USUAL: &str = "left-over";

/// Mixes that are drawn; the mean is over all.
const MIXES: usize = 48;

/// Something by which schemes are compared.
struct Metric {
    name: &'static str,
    label: &'static str,
    of: fn(&CoRun) -> f64,
}

const METRICS: [Metric; 7] = [
    Metric { name: "ipc", label: "Combined IPC", of: |run| run.ipc_throughput },
    Metric { name: "stp", label: "STP", of: |run| run.stp },
    Metric { name: "antt", label: "ANTT (less is better)", of: |run| run.antt },
    Metric { name: "fairness", label: "Minimum speedup", of: |run| run.fairness_min_speedup },
    Metric { name: "harmonic", label: "Harmonic speedup", of: |run| run.harmonic_speedup },
    Metric { name: "makespan", label: "Makespan speedup", of: |run| run.makespan_speedup },
    Metric { name: "energy", label: "Energy (less is better)", of: |run| run.energy_joules },
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
    let baseline = baseline(&schemes, input.baseline, &[USUAL], "ran")?;
    let rows = rows(&records, &schemes, &schemes[baseline], metric);
    if rows.iter().all(|row| row.shares.iter().flatten().count() == 0) {
        let missing = format!("no mix has a value under {}", schemes[baseline]);
        return Err(missing.into());
    }
    let means = means(schemes.len(), |at| rows.iter().filter_map(move |row| row.shares[at]));
    let mut layout = input.layout(&format!("{} over {}", metric.label, schemes[baseline]));
    layout.legend(&Entry::fills(&schemes));
    let named = mix_labels(&records);
    let marks = marks(input, metric, &schemes);
    let clusters = clusters(&rows, &named.labels, &means, &marks);
    Bars::new(&clusters, "normalised").reference(1.0).draw(&mut layout);
    if rows.len() > 1 && marks.iter().any(Option::is_some) {
        layout.note("Marks at GMEAN: what the paper prints.");
    }
    named.notes.iter().for_each(|note| layout.note(note));
    layout.left_out(rows.len().saturating_sub(MIXES), MORE_MIXES);
    let lacking = rows.iter().filter(|row| row.shares.iter().any(Option::is_none)).count();
    partial(&mut layout, lacking, rows.len(), "a scheme or a value: means");
    Ok(layout.finish(&input.footer()).with_csv(table(metric, &schemes, &rows, &means)))
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

/// The mixes that are drawn, and their mean where there are several.
fn clusters(
    rows: &[Row],
    labels: &[String],
    means: &[Option<f64>],
    marks: &[Mark],
) -> Vec<Cluster> {
    let one = rows.len() == 1;
    let drawn = rows.iter().zip(labels).take(MIXES);
    let drawn = drawn.map(|(row, label)| Cluster::new(label, row.shares.clone(), one));
    let mean = Cluster::mean("GMEAN", means.to_vec()).with_ends(marks.to_vec());
    drawn.chain((!one).then_some(mean)).collect()
}

fn table(metric: &Metric, schemes: &[String], rows: &[Row], means: &[Option<f64>]) -> String {
    let line = |mix: &str, scheme: &str, value: Option<f64>, share: Option<f64>| {
        row![mix, scheme, metric.name, value, share]
    };
    let mut lines = Vec::new();
    for row in rows {
        let values = row.values.iter().zip(&row.shares);
        let named = schemes.iter().zip(values);
        lines.extend(named.map(|(scheme, (value, share))| line(&row.mix, scheme, *value, *share)));
    }
    lines
        .extend(schemes.iter().zip(means).map(|(scheme, mean)| line("GMEAN", scheme, None, *mean)));
    csv("mix,scheme,metric,value,normalized", lines)
}
