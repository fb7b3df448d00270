//! What it costs to divide the machine again: the share of an epoch in which SMs were
//! vacated, and in which pages were under way (UGPU, Fig. 12a).

use super::prelude::*;
use crate::results::EpochShares;

/// Mixes that are drawn; the means are over all.
const MIXES: usize = 48;
/// Bars up to which values stand above them.
const LABELLED: usize = 30;

/// What is missing where no epoch is known.
const MISSING: &str = "no run has epochs of a scheme that owns memory channels; run `gpumodel analyze A B --scheme ugpu:epoch=N --until cycles=M --json FILE` with M of several N";

/// Shares of the epochs of one run, by application; empty: the record does not say.
type Epochs = Vec<Vec<f64>>;

/// One run: what it spent on vacating SMs and on moving pages.
struct Cost<'a> {
    run: &'a CoRun,
    epochs: usize,
    parts: [Epochs; 2],
}

/// The mean over epochs and the largest.
#[derive(Clone, Copy)]
struct Share {
    mean: f64,
    worst: f64,
}

/// A mix with its runs by scheme.
struct Row<'a> {
    mix: &'a str,
    label: &'a str,
    costs: Vec<Option<Cost<'a>>>,
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let found = input.mixes_by_machine()?;
    let (schemes, parts) = rows(&found);
    ensure(!parts.is_empty(), MISSING)?;
    let looks = input.scheme_looks(&schemes);
    let mut layout = input.layout("Share of an epoch spent on reallocation");
    layout.legend(&Entry::looks(&schemes, &looks, Swatch::look));
    let room = MIXES / parts.len();
    for (panel, rows) in &parts {
        panel.head(&mut layout);
        draw_part(&mut layout, panel, rows, &looks, room);
    }
    layout.note("Bars: means over all epochs, in each the application with the largest share; lines on them: up to the worst epoch; numbers: the means. Applications run on meanwhile.");
    left_out(&found, &schemes).iter().for_each(|note| layout.note(note));
    let left = parts.iter().map(|(_, rows)| rows.len().saturating_sub(room));
    layout.left_out(left.sum(), MORE_MIXES);
    Ok(layout.finish(&input.footer()).with_csv(table(&schemes, &parts)))
}

/// The mixes of one machine.
type Part<'a> = (&'a MachinePanel, Vec<Row<'a>>);

fn draw_part(
    layout: &mut Layout,
    panel: &MachinePanel,
    rows: &[Row<'_>],
    looks: &[usize],
    room: usize,
) {
    let parts = [0, 1].map(|part| clusters(panel, rows, looks.len(), (part, room)));
    let most = highest(parts.iter().flatten());
    for (name, clusters) in ["SMs vacated", "Pages under way"].into_iter().zip(&parts) {
        layout.skip(4.0);
        layout.note(&format!("{name}:"));
        Bars::new(clusters, "% of epoch").most(most).looks(looks).draw(layout);
    }
}

/// The mixes that know of epochs, under the schemes that do.
fn rows<'a>(found: &'a [MixesByScheme<'a>]) -> (Vec<&'a str>, Vec<Part<'a>>) {
    let mixes = || found.iter().flat_map(|part| &part.mixes);
    let known = |place: &usize| mixes().any(|mix| mix.runs[*place].and_then(Cost::of).is_some());
    let schemes = &found[0].schemes;
    let places: Vec<usize> = (0..schemes.len()).filter(known).collect();
    let row = |mix: &'a Mix<'a>| {
        let costs = places.iter().map(|&place| mix.runs[place].and_then(Cost::of)).collect();
        Row { mix: &mix.name, label: &mix.label, costs }
    };
    let part = |part: &'a MixesByScheme<'a>| -> Part<'a> {
        let rows = part.mixes.iter().map(row);
        (&part.panel, rows.filter(|row| row.costs.iter().any(Option::is_some)).collect())
    };
    let parts = found.iter().map(part).filter(|(_, rows)| !rows.is_empty()).collect();
    (places.iter().map(|&place| schemes[place].as_str()).collect(), parts)
}

/// Says which schemes that looked, or meant to, are not among those that are `drawn`.
fn left_out(found: &[MixesByScheme<'_>], drawn: &[&str]) -> Vec<String> {
    let (mut blind, mut late) = (Vec::new(), Vec::new());
    for (place, scheme) in found[0].schemes.iter().enumerate() {
        let mixes = || found.iter().flat_map(|part| &part.mixes);
        let runs = || mixes().filter_map(|mix| mix.runs[place]);
        if drawn.contains(&scheme.as_str()) {
            continue;
        }
        if runs().flat_map(|run| &run.decisions).any(DecisionRecord::is_timed) {
            blind.push(scheme.as_str());
        } else if runs().any(|run| run.missed_timed().is_some()) {
            late.push(scheme.as_str());
        }
    }
    let whys = [
        (blind, "no memory channels were owned, and records of such runs do not say what moved"),
        (late, "no run came to its first look"),
    ];
    let named = whys.iter().filter(|(schemes, _)| !schemes.is_empty());
    named.map(|(schemes, why)| format!("Not drawn: {}: {why}.", schemes.join(", "))).collect()
}

impl<'a> Cost<'a> {
    /// `None` where no channels were owned, or the scheme never looked.
    fn of(run: &'a CoRun) -> Option<Self> {
        let EpochShares { epochs, vacating, moving } = EpochShares::of(run)?;
        Some(Self { run, epochs, parts: [vacating, moving] })
    }

    /// The share of one application.
    fn share(&self, part: usize, app: usize) -> Option<Share> {
        Share::of(self.parts[part].get(app)?)
    }

    /// The share of, in each epoch, the application with the largest.
    fn most(&self, part: usize) -> Option<Share> {
        let apps = &self.parts[part];
        let most = |epoch: usize| apps.iter().map(|app| app[epoch]).fold(0.0, f64::max);
        let known = if apps.is_empty() { 0 } else { self.epochs };
        Share::of(&(0..known).map(most).collect::<Vec<f64>>())
    }
}

impl Share {
    fn of(epochs: &[f64]) -> Option<Self> {
        let worst = epochs.iter().copied().fold(0.0, f64::max);
        Some(Self { mean: mean(epochs)?, worst })
    }
}

/// The bars of one part: mixes that are drawn, and the mean of all where there are
/// several.
fn clusters(
    panel: &MachinePanel,
    rows: &[Row<'_>],
    schemes: usize,
    (part, room): (usize, usize),
) -> Vec<Cluster> {
    let labelled = rows.len() * schemes <= LABELLED;
    let percent = |share: &Option<Share>| share.map(|share| 100.0 * share.mean);
    let reach = |share: &Option<Share>| share.map(|s| (100.0 * s.mean, 100.0 * s.worst));
    let drawn = rows.iter().take(room).map(|row| {
        let shares: Vec<_> = row.costs.iter().map(|cost| cost.as_ref()?.most(part)).collect();
        Cluster::new(row.label, shares.iter().map(percent).collect(), labelled)
            .with_ends(shares.iter().map(reach).collect())
    });
    let all: Vec<_> = (0..schemes).map(|scheme| overall(rows, scheme, part)).collect();
    let mean = Cluster::mean("MEAN", all.iter().map(percent).collect())
        .with_ends(all.iter().map(reach).collect());
    drawn.chain((rows.len() > 1 && panel.alike).then_some(mean)).collect()
}

/// The mean over the mixes of a scheme, and the worst epoch of any.
fn overall(rows: &[Row<'_>], scheme: usize, part: usize) -> Option<Share> {
    let of = |row: &Row<'_>| row.costs[scheme].as_ref()?.most(part);
    let shares: Vec<Share> = rows.iter().filter_map(of).collect();
    let worst = shares.iter().map(|share| share.worst).fold(0.0, f64::max);
    let means: Vec<f64> = shares.iter().map(|share| share.mean).collect();
    Some(Share { mean: mean(&means)?, worst })
}

fn table(schemes: &[&str], parts: &[Part<'_>]) -> String {
    let mut lines = Vec::new();
    let line = |[mix, scheme, app]: [&str; 3], epochs: Option<usize>, shares: [_; 2]| {
        let [vacated, moving] = shares.map(|share: Option<Share>| {
            (share.map(|share| share.mean), share.map(|share| share.worst))
        });
        row![mix, scheme, app, epochs, vacated.0, vacated.1, moving.0, moving.1]
    };
    for row in parts.iter().flat_map(|(_, rows)| rows) {
        let costs = schemes.iter().zip(&row.costs);
        for (scheme, cost) in costs.filter_map(|(scheme, cost)| Some((*scheme, cost.as_ref()?))) {
            let epochs = Some(cost.epochs);
            lines.extend(cost.run.apps.iter().enumerate().map(|(place, app)| {
                let shares = [0, 1].map(|part| cost.share(part, place));
                line([row.mix, scheme, &app.app], epochs, shares)
            }));
            let most = [0, 1].map(|part| cost.most(part));
            lines.push(line([row.mix, scheme, "most"], epochs, most));
        }
    }
    for (panel, rows) in parts.iter().filter(|(panel, _)| panel.alike) {
        let name = panel.mean_name("MEAN");
        lines.extend(schemes.iter().enumerate().map(|(place, scheme)| {
            let shares = [0, 1].map(|part| overall(rows, place, part));
            line([&name, scheme, "most"], None, shares)
        }));
    }
    csv("mix,scheme,app,epochs,vacated,vacated_worst,moving,moving_worst", lines)
}
