//! Schemes over a baseline scheme on queues: one cluster of bars per distribution of
//! classes, the average last, one panel per group size (ILP-SMRA, Fig. 3 and 4).

use super::prelude::*;
use crate::queue::{BASELINE, Panel, over_name, panels};
use crate::results::{Gain, Over, QueueGain};

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
        label: "Mean over jobs of the IPC of each job's application",
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

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let panels = panels(input.records);
    ensure(!panels.is_empty(), NO_QUEUE)?;
    let metric = metric(&METRICS, |metric| metric.name, input.metric)?;
    let baseline = baseline(input, &panels)?;
    let gains = |panel: &Panel<'_>| Gains {
        title: panel.title(),
        group_size: panel.group_size,
        machine: panel.machine.name.clone(),
        gains: panel.gains(baseline),
    };
    let mut all: Vec<Gains> = panels.iter().map(gains).collect();
    all.sort_by_key(|gains| gains.group_size);
    all.retain(|panel| panel.gains.iter().any(|gain| (metric.of)(gain).is_some()));
    ensure(!all.is_empty(), format!("no queue has a value under {baseline}"))?;
    let schemes = distinct(all.iter().flat_map(|panel| &panel.gains).map(|gain| &gain.scheme));
    let mut layout = input.layout(&format!("{} over {baseline}", metric.label));
    let looks = input.scheme_looks(&schemes);
    layout.legend(&Entry::looks(&schemes, &looks, Swatch::look));
    let shown: Vec<Shown> = all.iter().map(|panel| panel.shown(metric, &schemes)).collect();
    draw_panels(&mut layout, &all, &shown, &looks);
    layout.note(&format!("{} over that under {baseline}.", metric.label));
    if all.iter().flat_map(|panel| &panel.gains).any(|gain| ends(metric, gain).is_some()) {
        layout.note("Lines on bars: 95 % interval over seeds.");
    }
    Ok(layout.finish(&input.footer()).with_csv(table(metric, &all)))
}

/// The baseline: what was asked for, else the usual one as it is shown, where some queue ran
/// under it.
fn baseline<'n>(input: &'n FigureInput<'_>, panels: &[Panel<'_>]) -> Result<&'n str, Missing> {
    let name = input.baseline.unwrap_or_else(|| input.shown(BASELINE));
    let named = panels.iter().flat_map(Panel::named);
    let known = distinct(named.map(|named| named.name.to_string()));
    let is = |scheme: &String| scheme == name || scheme.split(':').next() == Some(name);
    if known.iter().any(is) {
        return Ok(name);
    }
    let missing = format!("no queue ran under {name}; the schemes are {}", known.join(", "));
    Err(format!("{missing}; choose with --baseline").into())
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
fn draw_panels(layout: &mut Layout, panels: &[Gains], shown: &[Shown], looks: &[usize]) {
    let most = highest(shown.iter().flat_map(|shown| &shown.clusters));
    for (panel, Shown { clusters, left }) in panels.iter().zip(shown) {
        layout.note(&panel.title);
        layout.skip(3.0);
        Bars::new(clusters, "normalised").reference(1.0).most(most).looks(looks).draw(layout);
        layout.left_out(*left, "queues are in the average and not drawn");
    }
}

impl Gains {
    fn shown(&self, metric: &Metric, schemes: &[&String]) -> Shown {
        let mut overs = distinct(self.gains.iter().map(|gain| &gain.over));
        overs.sort_by_key(|over| **over == Over::Average);
        let left = overs.len().saturating_sub(QUEUES + 1);
        overs.drain(overs.len() - 1 - left..overs.len() - 1);
        let few = overs.len() * schemes.len() <= 30;
        let cluster = |over: &&Over| {
            let of = |scheme: &&String| {
                self.gains.iter().find(|gain| gain.scheme == **scheme && gain.over == **over)
            };
            let found: Vec<Option<&QueueGain>> = schemes.iter().map(of).collect();
            let values = found.iter().map(|gain| Some((metric.of)((*gain)?)?.mean)).collect();
            let ends = found.iter().map(|gain| gain.and_then(|gain| ends(metric, gain)));
            let bars = match over {
                Over::Average => Cluster::mean(over_name(over), values),
                Over::Distribution(_) | Over::Queue(_) => {
                    Cluster::new(over_name(over), values, few)
                }
            };
            bars.with_ends(ends.collect())
        };
        Shown { clusters: overs.iter().map(cluster).collect(), left }
    }
}

fn table(metric: &Metric, panels: &[Gains]) -> String {
    let mut lines = Vec::new();
    for panel in panels {
        lines.extend(panel.gains.iter().map(|gain| {
            let (mean, ends) = ((metric.of)(gain).map(|value| value.mean), ends(metric, gain));
            let (low, high) = (ends.map(|ends| ends.0), ends.map(|ends| ends.1));
            let (over, QueueGain { scheme, queues, .. }) = (over_name(&gain.over), gain);
            let Gains { machine, group_size, .. } = panel;
            row![machine, group_size, over, scheme, metric.name, queues, mean, low, high]
        }));
    }
    csv("machine,group_size,queues,scheme,metric,count,normalized,low,high", lines)
}
