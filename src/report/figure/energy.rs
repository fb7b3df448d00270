//! What an instruction costs in energy under each scheme, of the GPU and of its memory,
//! over the whole under a baseline scheme: a stacked bar each (UGPU, Fig. 12b).

use super::prelude::*;

/// Mixes that are drawn; the means are over all.
const MIXES: usize = 48;
/// Bars up to which values stand above them.
const LABELLED: usize = 30;

/// What is missing where nothing can be compared.
const MISSING: &str = "no mix knows the energy under two schemes, one of them the baseline; run `gpumodel analyze A B --scheme bp,ugpu --until cycles=M --json FILE` on a machine with an energy table";

/// Energy of a thread instruction, in joules or over a baseline's whole.
#[derive(Clone, Copy)]
struct Cost {
    gpu: f64,
    memory: f64,
}

/// One mix: costs over the baseline's whole by scheme; `None`: not known.
struct Row<'a> {
    mix: &'a str,
    label: &'a str,
    costs: Vec<Option<Cost>>,
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let machines = input.mixes_by_machine()?;
    let schemes = &machines[0].schemes;
    let baseline = baseline(input, schemes, &[], "ran")?;
    let part = |part| Row::all(part, baseline);
    let parts: Vec<Part<'_>> =
        machines.iter().map(part).filter(|part| !part.1.is_empty()).collect();
    ensure(!parts.is_empty(), MISSING)?;
    let over = &schemes[baseline];
    let mut layout = input.layout(&format!("Energy of a thread instruction over {over}"));
    let looks = input.scheme_looks(schemes);
    layout.legend(&Entry::looks(schemes, &looks, Swatch::look));
    layout.legend(&[
        Entry::new(Swatch::Fill(Fill::plain(SOFT_INK)), "below: GPU"),
        Entry::new(Swatch::Fill(Fill::plain(SOFT_INK).pale()), "above, pale: memory"),
    ]);
    let room = MIXES / parts.len();
    let drawn: Vec<Vec<Cluster>> =
        parts.iter().map(|part| clusters(part, schemes.len(), room)).collect();
    let most = highest(drawn.iter().flatten());
    for ((panel, _), clusters) in parts.iter().zip(&drawn) {
        panel.head(&mut layout);
        let bars = Bars::new(clusters, "% of baseline").reference(100.0).most(most);
        bars.looks(&looks).draw(&mut layout);
    }
    layout.note(&format!(
        "In % of what GPU and memory take together for an instruction under {over}; less is better."
    ));
    let left = parts.iter().map(|(_, rows)| rows.len().saturating_sub(room));
    layout.left_out(left.sum(), MORE_MIXES);
    Ok(layout.finish(&input.footer()).with_csv(table(schemes, &parts)))
}

/// The mixes of one machine.
type Part<'a> = (&'a MachinePanel, Vec<Row<'a>>);

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

    fn whole(self) -> f64 {
        self.gpu + self.memory
    }

    fn over(self, whole: f64) -> Self {
        Self { gpu: self.gpu / whole, memory: self.memory / whole }
    }
}

impl<'a> Row<'a> {
    /// Those of one machine.
    fn all(part: &'a MixesByScheme<'a>, baseline: usize) -> Part<'a> {
        (&part.panel, part.mixes.iter().filter_map(|mix| Self::of(mix, baseline)).collect())
    }

    /// `None` where the baseline or every other scheme is missing.
    fn of(mix: &'a Mix<'a>, baseline: usize) -> Option<Self> {
        let costs: Vec<Option<Cost>> = mix.runs.iter().map(|run| Cost::of((*run)?)).collect();
        let whole = costs[baseline].map(Cost::whole)?;
        let several = costs.iter().flatten().count() > 1;
        let costs = costs.into_iter().map(|cost| Some(cost?.over(whole))).collect();
        (several && whole > 0.0).then_some(Self { mix: &mix.name, label: &mix.label, costs })
    }
}

/// The mean over the mixes that have the scheme.
fn overall(rows: &[Row<'_>], scheme: usize) -> Option<Cost> {
    let costs = || rows.iter().filter_map(|row| row.costs[scheme]);
    let gpu = mean(&costs().map(|cost| cost.gpu).collect::<Vec<f64>>())?;
    let memory = mean(&costs().map(|cost| cost.memory).collect::<Vec<f64>>())?;
    Some(Cost { gpu, memory })
}

/// The bars of a machine: the first `room` mixes, and the mean of all where there are several.
fn clusters((panel, rows): &Part<'_>, schemes: usize, room: usize) -> Vec<Cluster> {
    let whole = |costs: &[Option<Cost>]| -> Vec<Option<f64>> {
        costs.iter().map(|cost| cost.map(|cost| 100.0 * cost.whole())).collect()
    };
    let memory = |costs: &[Option<Cost>]| -> Vec<Option<f64>> {
        costs.iter().map(|cost| cost.map(|cost| 100.0 * cost.memory)).collect()
    };
    let labelled = rows.len() * schemes <= LABELLED;
    let drawn = rows.iter().take(room).map(|row| {
        Cluster::new(row.label, whole(&row.costs), labelled).with_uppers(memory(&row.costs))
    });
    let mut clusters: Vec<Cluster> = drawn.collect();
    if rows.len() > 1 && panel.alike {
        let all: Vec<Option<Cost>> = (0..schemes).map(|scheme| overall(rows, scheme)).collect();
        clusters.push(Cluster::mean("MEAN", whole(&all)).with_uppers(memory(&all)));
    }
    clusters
}

fn table(schemes: &[String], parts: &[Part<'_>]) -> String {
    let line = |mix: &str, scheme: &str, cost: Option<Cost>| {
        let (gpu, memory) = (cost.map(|cost| cost.gpu), cost.map(|cost| cost.memory));
        row![mix, scheme, cost.map(Cost::whole), gpu, memory]
    };
    let mut lines = Vec::new();
    for row in parts.iter().flat_map(|(_, rows)| rows) {
        let costs = schemes.iter().zip(&row.costs);
        lines.extend(costs.map(|(scheme, cost)| line(row.mix, scheme, *cost)));
    }
    for (panel, rows) in parts.iter().filter(|(panel, _)| panel.alike) {
        let name = panel.mean_name("MEAN");
        let means = schemes.iter().enumerate();
        lines.extend(means.map(|(place, scheme)| line(&name, scheme, overall(rows, place))));
    }
    csv("mix,scheme,whole,gpu,memory", lines)
}
