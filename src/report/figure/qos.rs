//! What the application with the high priority keeps of its speed alone, against what
//! it was promised, and the throughput (UGPU, Fig. 16).

use super::prelude::*;

/// Mixes up to which each has bars; more are lines by rank.
const MIXES: usize = 16;
/// Bars up to which values stand above them.
const LABELLED: usize = 30;
/// Height of lines by rank.
const HEIGHT: f64 = 176.0;

/// What is missing where no scheme promises anything, or no mix knows its solo runs.
const MISSING: &str = "no run of several applications promises one of them a part of its speed alone and says what it keeps of that; run `gpumodel analyze A B --scheme qos-mps-share,qos-bp,qos-ugpu --json FILE`";

/// One mix under the schemes.
struct Row<'a> {
    mix: &'a str,
    label: &'a str,
    points: Vec<Option<Point<'a>>>,
}

/// One run.
#[derive(Clone, Copy)]
struct Point<'a> {
    /// The application with the high priority.
    high: &'a str,
    /// Its normalised progress.
    progress: f64,
    /// What it was promised.
    target: f64,
    stp: f64,
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let machines = input.mixes_by_machine()?;
    let schemes = &machines[0].schemes;
    let runs = machines.iter().flat_map(|part| &part.mixes).flat_map(|mix| &mix.runs).flatten();
    let targets = distinct(runs.filter_map(|run| run.qos_target()));
    let Some(&target) = targets.first() else { return Err(MISSING.into()) };
    let parts: Vec<Part<'_>> = machines.iter().filter_map(|part| Part::of(part, target)).collect();
    ensure(!parts.is_empty(), MISSING)?;
    let most = parts.iter().map(|part| part.rows.len()).max().unwrap_or(0);
    let by_rank = most > MIXES && schemes.len() <= RANKED;
    let looks = input.scheme_looks(schemes);
    let mut layout = input.layout("Quality of service and throughput");
    for part in &parts {
        part.panel.head(&mut layout);
        layout.legend(&entries(schemes, &looks, &part.rows, target, by_rank));
        if by_rank {
            draw_ranks(&mut layout, &part.rows, &looks, target);
        } else {
            draw_bars(&mut layout, part, &looks, target);
        }
    }
    notes(&mut layout, &parts, &targets, by_rank);
    Ok(layout.finish(&input.footer()).with_csv(table(schemes, &parts)))
}

/// The mixes of one machine.
struct Part<'a> {
    panel: &'a MachinePanel,
    rows: Vec<Row<'a>>,
    /// The geometric mean of the STP by scheme.
    means: Vec<Option<f64>>,
}

impl<'a> Part<'a> {
    /// `None` where no mix records the promise; `target` is that of schemes
    /// without one.
    fn of(mixes: &'a MixesByScheme<'a>, target: f64) -> Option<Self> {
        let rows: Vec<Row<'_>> = mixes.mixes.iter().filter_map(|mix| row(mix, target)).collect();
        let stp = |at: usize| rows.iter().filter_map(move |row| Some(row.points[at]?.stp));
        let means = means(mixes.schemes.len(), stp);
        (!rows.is_empty()).then_some(Self { panel: &mixes.panel, rows, means })
    }
}

/// Both panels as bars, mix by mix.
fn draw_bars(layout: &mut Layout, part: &Part<'_>, looks: &[usize], target: f64) {
    layout.skip(4.0);
    layout.note("Normalised progress of the application with the high priority:");
    let progress = clusters(&part.rows, |point| point.progress);
    Bars::new(&progress, "progress").reference(target).looks(looks).draw(layout);
    layout.skip(4.0);
    layout.note("Throughput of all (STP):");
    let mut stp = clusters(&part.rows, |point| point.stp);
    if part.rows.len() > 1 && part.panel.alike {
        stp.push(Cluster::mean("GMEAN", part.means.clone()));
    }
    Bars::new(&stp, "STP").looks(looks).draw(layout);
}

/// Both panels as lines, the values of each scheme sorted.
fn draw_ranks(layout: &mut Layout, rows: &[Row<'_>], looks: &[usize], target: f64) {
    let names = ["progress, high priority", "STP of all"].map(String::from);
    let columns: [fn(Point<'_>) -> f64; 2] = [|point| point.progress, |point| point.stp];
    let schemes = rows.first().map_or(0, |row| row.points.len());
    let references = [Some(target), None];
    let plots = panels(layout, &names, HEIGHT);
    for ((panel, of), reference) in plots.iter().zip(columns).zip(references) {
        let values = |place: usize| {
            let points = rows.iter().filter_map(|row| row.points[place]);
            let mut values: Vec<f64> = points.map(of).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let series: Vec<Vec<f64>> = (0..schemes).map(values).collect();
        Ranks { series: &series, looks, reference }.draw(layout, panel, "mixes by rank");
    }
}

/// The place of the application with the high priority where a scheme promises nothing: the
/// one that another was to keep a promise to, else the one that a scheme put first, else the
/// fastest alone.
fn high(mix: &Mix<'_>) -> Option<usize> {
    let runs = || mix.runs.iter().flatten();
    let fastest = |run: &&CoRun| {
        let ipc = |(_, app): &(usize, &crate::results::CoRunApp)| app.solo_ipc;
        // The first of equal ones.
        let all = run.apps.iter().enumerate().rev();
        all.max_by(|one, other| ipc(one).total_cmp(&ipc(other))).map(|(place, _)| place)
    };
    let qos_target = || runs().find_map(|run| run.priority_app());
    let first = || runs().find_map(|run| run.chosen_priority_app());
    qos_target().or_else(first).or_else(|| runs().find_map(fastest))
}

/// `None` where no run of the mix says.
fn row<'a>(mix: &'a Mix<'a>, usual: f64) -> Option<Row<'a>> {
    let high = high(mix)?;
    let point = |run: &&'a CoRun| {
        let app = run.apps.get(run.priority_app().unwrap_or(high))?;
        let progress = app.normalized_progress;
        let known = progress.is_finite() && progress >= 0.0 && run.stp.is_finite() && run.stp > 0.0;
        let target = run.qos_target().unwrap_or(usual);
        known.then_some(Point { high: &app.app, progress, target, stp: run.stp })
    };
    let points: Vec<Option<Point<'_>>> =
        mix.runs.iter().map(|run| run.as_ref().and_then(point)).collect();
    let known = points.iter().any(Option::is_some);
    known.then_some(Row { mix: &mix.name, label: &mix.label, points })
}

/// The schemes with how often they broke the promise, and the line.
fn entries(
    schemes: &[String],
    looks: &[usize],
    rows: &[Row<'_>],
    target: f64,
    by_rank: bool,
) -> Vec<Entry> {
    let entry = |(place, scheme): (usize, &String)| {
        let points = || rows.iter().filter_map(|row| row.points[place]);
        let below = points().filter(|point| point.progress < point.target).count();
        let tail = format!(" ({below} of {} below)", points().count());
        let look = looks[place];
        let swatch = if by_rank { Swatch::Mark(look) } else { Swatch::look(look) };
        Entry::new(swatch, scheme).with(tail)
    };
    let mut entries: Vec<Entry> = schemes.iter().enumerate().map(entry).collect();
    entries.push(Entry::new(Swatch::Dashes(INK), format!("target {}", short(target))));
    entries
}

fn clusters(rows: &[Row<'_>], of: fn(Point<'_>) -> f64) -> Vec<Cluster> {
    let bars: usize = rows.iter().map(|row| row.points.len()).sum();
    let cluster = |row: &Row<'_>| {
        let values = row.points.iter().map(|point| point.map(of)).collect();
        Cluster::new(row.label, values, bars <= LABELLED)
    };
    rows.iter().map(cluster).collect()
}

fn notes(layout: &mut Layout, parts: &[Part<'_>], targets: &[f64], by_rank: bool) {
    layout.note(
        "High priority: the application with a scheme's promise; under other schemes, the same one.",
    );
    if targets.len() > 1 {
        let all: Vec<String> = targets.iter().map(|target| short(*target)).collect();
        layout.note(&format!(
            "Targets differ ({}): the line is the first, each scheme counts by its own.",
            all.join(", ")
        ));
    }
    if by_rank {
        layout.note("Each line has its own order of mixes in each panel; axes do not begin at 0.");
    }
    let rows = || parts.iter().flat_map(|part| &part.rows);
    let lacking = rows().filter(|row| row.points.iter().any(Option::is_none)).count();
    partial(layout, lacking, rows().count(), "a scheme: counts and means");
}

fn table(schemes: &[String], parts: &[Part<'_>]) -> String {
    let mut lines = Vec::new();
    for row in parts.iter().flat_map(|part| &part.rows) {
        lines.extend(schemes.iter().zip(&row.points).filter_map(|(scheme, point)| {
            let point = (*point)?;
            let Point { high, progress, target, stp } = point;
            Some(row![row.mix, scheme, high, progress, target, progress >= target, stp])
        }));
    }
    for part in parts.iter().filter(|part| part.panel.alike) {
        let (name, means) = (part.panel.mean_name("GMEAN"), schemes.iter().zip(&part.means));
        lines.extend(means.map(|(scheme, mean)| row![name, scheme, "", "", "", "", mean]));
    }
    csv("mix,scheme,high,progress,target,met,stp", lines)
}
