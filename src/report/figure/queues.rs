//! Schemes over a baseline scheme on queues: one cluster of bars per distribution of
//! classes, the average last, one panel per group size (ILP-SMRA, Fig. 3 and 4).

use super::{Drawing, FigureInput, NO_QUEUE, ReportError, empty};
use crate::chart::{Bars, Cluster, Entry, Fill, Sheet, Swatch, highest};
use crate::queue::{BASELINE, Panel, over_name, panels};
use crate::results::{Gain, Over, QueueGain};
use crate::values::{cell, csv};

/// Queues that are drawn of a panel; the average is over all.
const QUEUES: usize = 40;

/// Something by which schemes are compared.
struct Metric {
    name: &'static str,
    label: &'static str,
    of: fn(&QueueGain) -> Option<Gain>,
}

const METRICS: [Metric; 3] = [
    Metric { name: "throughput", label: "Throughput", of: |gain| gain.throughput },
    Metric { name: "ipc", label: "Mean IPC of jobs", of: |gain| gain.ipc },
    Metric {
        name: "job-ipc",
        label: "IPC of each job's application, the mean",
        of: |gain| gain.job_ipc,
    },
];

/// A panel's gains, and what is drawn of them.
struct Gains {
    title: String,
    group_size: u64,
    machine: String,
    gains: Vec<QueueGain>,
}

pub(super) fn draw(input: &FigureInput<'_>) -> Result<Drawing, ReportError> {
    let panels = panels(input.records());
    if panels.is_empty() {
        return Err(empty("queues", NO_QUEUE));
    }
    let metric = metric(input.metric())?;
    let baseline = baseline(&panels, input.baseline())?;
    let gains = |panel: &Panel<'_>| Gains {
        title: panel.title(),
        group_size: panel.group_size,
        machine: panel.machine.name.clone(),
        gains: panel.gains(baseline),
    };
    let mut all: Vec<Gains> = panels.iter().map(gains).collect();
    all.sort_by_key(|gains| gains.group_size);
    all.retain(|panel| panel.gains.iter().any(|gain| (metric.of)(gain).is_some()));
    if all.is_empty() {
        return Err(empty("queues", &format!("no queue has a value under {baseline}")));
    }
    let schemes = places(all.iter().flat_map(|panel| &panel.gains).map(|gain| &gain.scheme));
    let fills: Vec<Fill> = (0..schemes.len()).map(Fill::of).collect();
    let mut sheet = input.sheet(&format!("{} over {baseline}", metric.label));
    let entry = |(name, fill): (&&String, &Fill)| Entry::new(Swatch::Fill(*fill), *name);
    sheet.legend(&schemes.iter().zip(&fills).map(entry).collect::<Vec<_>>());
    let shown: Vec<Shown> = all.iter().map(|panel| panel.shown(metric, &schemes)).collect();
    draw_panels(&mut sheet, &all, &shown, &fills);
    if all.iter().flat_map(|panel| &panel.gains).any(|gain| ends(metric, gain).is_some()) {
        sheet.note("Lines on bars: 95 % interval over seeds.");
    }
    Ok(sheet.finish(&input.footer()).with_csv(table(metric, &all)))
}

fn metric(asked: Option<&str>) -> Result<&'static Metric, ReportError> {
    let name = asked.unwrap_or(METRICS[0].name);
    METRICS.iter().find(|metric| metric.name == name).ok_or_else(|| {
        let known = METRICS.map(|metric| metric.name).join(", ");
        empty("queues", &format!("no metric is called {name}; there are {known}"))
    })
}

/// The baseline: what was asked for, where some queue ran under it.
fn baseline<'a>(panels: &[Panel<'_>], asked: Option<&'a str>) -> Result<&'a str, ReportError> {
    let name = asked.unwrap_or(BASELINE);
    let named = panels.iter().flat_map(Panel::named);
    let known = places(named.map(|named| named.name.to_string()));
    let is = |scheme: &String| scheme == name || scheme.split(':').next() == Some(name);
    if known.iter().any(is) {
        return Ok(name);
    }
    let missing = format!("no queue ran under {name}; the schemes are {}", known.join(", "));
    Err(empty("queues", &format!("{missing}; choose with --baseline")))
}

/// Each item once, in order of first appearance.
fn places<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut places = Vec::new();
    for item in items {
        if !places.contains(&item) {
            places.push(item);
        }
    }
    places
}

fn ends(metric: &Metric, gain: &QueueGain) -> Option<(f64, f64)> {
    (metric.of)(gain).and_then(|gain| gain.interval)
}

/// The bars of a panel, and how many queues are left out.
struct Shown {
    clusters: Vec<Cluster>,
    left: usize,
}

/// Draws the bars of all panels on one scale.
fn draw_panels(sheet: &mut Sheet, panels: &[Gains], shown: &[Shown], fills: &[Fill]) {
    let most = shown.iter().map(|shown| highest(&shown.clusters)).fold(0.0, f64::max);
    for (panel, Shown { clusters, left }) in panels.iter().zip(shown) {
        sheet.note(&panel.title);
        sheet.skip(3.0);
        let title = "normalised";
        Bars { clusters, fills, title, reference: Some(1.0), most }.draw(sheet);
        if *left > 0 {
            sheet.note(&format!("{left} more queues are in the average and not drawn."));
        }
    }
}

impl Gains {
    fn shown(&self, metric: &Metric, schemes: &[&String]) -> Shown {
        let mut overs = places(self.gains.iter().map(|gain| &gain.over));
        overs.sort_by_key(|over| **over == Over::Average);
        let left = overs.len().saturating_sub(QUEUES + 1);
        overs.drain(overs.len() - 1 - left..overs.len() - 1);
        let few = overs.len() * schemes.len() <= 30;
        let cluster = |over: &&Over| {
            let of = |scheme: &&String| {
                self.gains.iter().find(|gain| gain.scheme == **scheme && gain.over == **over)
            };
            let found: Vec<Option<&QueueGain>> = schemes.iter().map(of).collect();
            let mean = **over == Over::Average;
            Cluster {
                name: over_name(over).into(),
                values: found.iter().map(|gain| Some((metric.of)((*gain)?)?.mean)).collect(),
                labelled: few || mean,
                ends: found.iter().map(|gain| gain.and_then(|gain| ends(metric, gain))).collect(),
                mean,
            }
        };
        Shown { clusters: overs.iter().map(cluster).collect(), left }
    }
}

fn table(metric: &Metric, panels: &[Gains]) -> String {
    let mut lines = Vec::new();
    for panel in panels {
        lines.extend(panel.gains.iter().map(|gain| {
            let value = (metric.of)(gain);
            let ends = value.and_then(|value| value.interval);
            [
                panel.machine.clone(),
                panel.group_size.to_string(),
                over_name(&gain.over).to_string(),
                gain.scheme.clone(),
                metric.name.to_string(),
                gain.queues.to_string(),
                cell(value.map(|value| value.mean)),
                cell(ends.map(|ends| ends.0)),
                cell(ends.map(|ends| ends.1)),
            ]
        }));
    }
    let header = [
        "machine",
        "group_size",
        "queues",
        "scheme",
        "metric",
        "count",
        "normalized",
        "low",
        "high",
    ];
    csv(header, lines)
}
