//! What an instruction costs in energy under each scheme, of the GPU and of its memory,
//! over the whole under a baseline scheme (UGPU, Fig. 12b).

use super::prelude::*;

/// Mixes that are drawn; the means are over all.
const MIXES: usize = 48;
/// Bars up to which values stand above them.
const LABELLED: usize = 30;

/// What is missing where nothing can be compared.
const MISSING: &str = "no mix knows the energy under two schemes, one of them the baseline; run `gpumodel analyze A B --scheme bp,ugpu --until cycles=M --json FILE` on a machine with an energy table";

/// A panel: what it is called, and the part of a cost that it shows.
type Part = (&'static str, fn(&Cost) -> f64);

/// Panels: what they are called, and which part of a cost they show.
const PARTS: [Part; 3] = [
    ("GPU and memory", |cost| cost.gpu + cost.memory),
    ("GPU", |cost| cost.gpu),
    ("Memory", |cost| cost.memory),
];

/// Panels of one scale, from the first on: the memory's part is small.
const SAME: usize = 2;

/// Energy of a thread instruction, in joules or over a baseline's whole.
#[derive(Clone, Copy)]
struct Cost {
    gpu: f64,
    memory: f64,
}

/// One mix: costs over the baseline's whole by scheme; `None`: not known.
struct Row<'a> {
    mix: &'a str,
    costs: Vec<Option<Cost>>,
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let mixes = input.mixes_by_scheme()?;
    let baseline = baseline(&mixes.schemes, input.baseline, &[], "ran")?;
    let rows: Vec<Row<'_>> = mixes.mixes.iter().filter_map(|mix| Row::of(mix, baseline)).collect();
    ensure(!rows.is_empty(), MISSING)?;
    let schemes = &mixes.schemes;
    let mut layout =
        input.layout(&format!("Energy of a thread instruction over {}", schemes[baseline]));
    layout.legend(&Entry::fills(schemes));
    let parts = [0, 1, 2].map(|part| clusters(&rows, schemes.len(), part));
    for (part, (name, _)) in PARTS.iter().enumerate() {
        layout.skip(4.0);
        layout.note(&format!("{name}:"));
        let bars = Bars::new(&parts[part], "%");
        let bars = if part == 0 { bars.reference(100.0) } else { bars };
        bars.most(if part < SAME { highest(&parts[0]) } else { 0.0 }).draw(&mut layout);
    }
    layout.note(&format!(
        "All in % of what GPU and memory take together for an instruction under {}: the lower two add up to the first. Memory has its own scale.",
        schemes[baseline]
    ));
    layout.left_out(rows.len().saturating_sub(MIXES), MORE_MIXES);
    Ok(layout.finish(&input.footer()).with_csv(table(schemes, &rows)))
}

impl Cost {
    /// `None`: nothing was executed, or the machine has no energy table.
    fn of(run: &CoRun) -> Option<Self> {
        let energy = run.energy.as_ref()?;
        let work = float(run.work()?);
        let memory = energy.memory_joules();
        let cost = Self { gpu: (energy.total_joules() - memory) / work, memory: memory / work };
        let usable = |value: f64| value.is_finite() && value >= 0.0;
        (usable(cost.gpu) && usable(cost.memory)).then_some(cost)
    }

    fn over(self, whole: f64) -> Self {
        Self { gpu: self.gpu / whole, memory: self.memory / whole }
    }
}

impl<'a> Row<'a> {
    /// `None` where the baseline or every other scheme is missing.
    fn of(mix: &'a Mix<'a>, baseline: usize) -> Option<Self> {
        let costs: Vec<Option<Cost>> = mix.runs.iter().map(|run| Cost::of((*run)?)).collect();
        let whole = costs[baseline].map(|cost| cost.gpu + cost.memory)?;
        let several = costs.iter().flatten().count() > 1;
        let costs = costs.into_iter().map(|cost| Some(cost?.over(whole))).collect();
        (several && whole > 0.0).then_some(Self { mix: &mix.name, costs })
    }
}

/// The mean of a part over the mixes that have the scheme.
fn overall(rows: &[Row<'_>], scheme: usize, part: usize) -> Option<f64> {
    let of = |row: &Row<'_>| row.costs[scheme].as_ref().map(PARTS[part].1);
    mean(&rows.iter().filter_map(of).collect::<Vec<f64>>())
}

/// The bars of one part: mixes that are drawn, and the mean of all where there are
/// several.
fn clusters(rows: &[Row<'_>], schemes: usize, part: usize) -> Vec<Cluster> {
    let percent = |value: Option<f64>| value.map(|value| 100.0 * value);
    let labelled = rows.len() * schemes <= LABELLED;
    let drawn = rows.iter().take(MIXES).map(|row| {
        let values = row.costs.iter().map(|cost| percent(cost.as_ref().map(PARTS[part].1)));
        Cluster::new(row.mix, values.collect(), labelled)
    });
    let mut clusters: Vec<Cluster> = drawn.collect();
    if rows.len() > 1 {
        let all = (0..schemes).map(|scheme| percent(overall(rows, scheme, part))).collect();
        clusters.push(Cluster::mean("MEAN", all));
    }
    clusters
}

fn table(schemes: &[String], rows: &[Row<'_>]) -> String {
    let line = |mix: &str, scheme: &str, [whole, gpu, memory]: [Option<f64>; 3]| {
        row![mix, scheme, whole, gpu, memory]
    };
    let mut lines = Vec::new();
    for row in rows {
        let costs = schemes.iter().zip(&row.costs);
        lines.extend(costs.map(|(scheme, cost)| {
            line(row.mix, scheme, PARTS.map(|(_, part)| cost.as_ref().map(part)))
        }));
    }
    lines.extend(schemes.iter().enumerate().map(|(place, scheme)| {
        line("MEAN", scheme, [0, 1, 2].map(|part| overall(rows, place, part)))
    }));
    csv("mix,scheme,whole,gpu,memory", lines)
}
