//! Throughput and turnaround of many mixes: for each scheme the values of all, sorted
//! (UGPU, Fig. 10, and 13 to 15); one row of panels per machine, as no mean spans two.

use super::prelude::*;

const HEIGHT: f64 = 176.0;

/// What is missing where no mix has a throughput.
const MISSING: &str = "no run of several applications has a throughput; run `gpumodel analyze A B --scheme bp,ugpu,… --json FILE`";

/// Why a single mix is not drawn.
const SINGLE: &str = "one mix has no order: a curve of one point says nothing; `--figure schemes` shows it, and more mixes, as `gpumodel sweep` runs them, make curves";

/// Something by which mixes are sorted.
struct Metric {
    name: &'static str,
    title: &'static str,
    of: fn(&CoRun) -> f64,
}

const METRICS: [Metric; 2] = [
    Metric { name: "STP", title: "STP (more is better)", of: |run| run.stp },
    Metric { name: "ANTT", title: "ANTT (less is better)", of: |run| run.antt },
];

/// One scheme by both metrics.
struct Line<'a> {
    scheme: &'a str,
    ranks: [Vec<Rank<'a>>; 2],
}

/// One mix in its place; the value is above 0 and may have no bound.
struct Rank<'a> {
    mix: &'a str,
    value: f64,
}

impl Line<'_> {
    /// The geometric mean over mixes; `None` where one has no bound.
    fn mean(&self, metric: usize) -> Option<f64> {
        geometric_mean(&self.values(metric))
    }

    /// The values of a metric by rank.
    fn values(&self, metric: usize) -> Vec<f64> {
        self.ranks[metric].iter().map(|rank| rank.value).collect()
    }
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let found = input.mixes_by_machine()?;
    let parts: Vec<(&MixesByScheme<'_>, Vec<Line<'_>>)> = found
        .iter()
        .map(|part| (part, lines(part)))
        .filter(|(_, lines)| !lines.is_empty())
        .collect();
    ensure(!parts.is_empty(), MISSING)?;
    let (parts, single): (Vec<_>, Vec<_>) =
        parts.into_iter().partition(|(part, _)| part.mixes.len() > 1);
    ensure(!parts.is_empty(), SINGLE)?;
    let mut layout = input.layout("Mixes by rank under each scheme");
    let shown = chosen(&["stp", "antt"], input.metrics)?;
    for (part, lines) in &parts {
        part.panel.head(&mut layout);
        draw_lines(input, &mut layout, part, &lines[..lines.len().min(RANKED)], &shown);
    }
    layout.note("Behind the names: geometric means of STP and of ANTT over mixes.");
    layout.note("Each line has its own order of mixes for each metric; axes do not begin at 0.");
    parts.iter().for_each(|(part, lines)| notes(&mut layout, part.mixes.len(), lines));
    for (part, _) in single {
        layout.note(&format!("Not drawn: one mix on {}.", part.panel.title));
    }
    Ok(layout.finish(&input.footer()).with_csv(table(&parts)))
}

/// The legend of one machine with its means, and its panels.
fn draw_lines(
    input: &FigureInput<'_>,
    layout: &mut Layout,
    part: &MixesByScheme<'_>,
    drawn: &[Line<'_>],
    shown: &[usize],
) {
    let looks = input.scheme_looks(&drawn.iter().map(|line| line.scheme).collect::<Vec<_>>());
    let entry = |(look, line): (&usize, &Line<'_>)| {
        let mean = |metric| line.mean(metric).map_or("–".into(), |mean| format!("{mean:.2}"));
        let tail = format!(": {}, {}", mean(0), mean(1));
        let entry = Entry::new(Swatch::Mark(*look), line.scheme);
        if part.panel.alike { entry.with(tail) } else { entry }
    };
    layout.legend(&looks.iter().zip(drawn).map(entry).collect::<Vec<_>>());
    let titles: Vec<String> = shown.iter().map(|&one| METRICS[one].title.to_string()).collect();
    for (panel, &metric) in panels(layout, &titles, HEIGHT).iter().zip(shown) {
        let series: Vec<Vec<f64>> = drawn.iter().map(|line| line.values(metric)).collect();
        let ranks = Ranks { series: &series, looks: &looks, reference: None };
        ranks.draw(layout, panel, "mixes by rank");
    }
}

/// The schemes that have values, with their mixes from the least value to the most.
fn lines<'a>(found: &'a MixesByScheme<'a>) -> Vec<Line<'a>> {
    let line = |(place, scheme): (usize, &'a String)| {
        let ranks = METRICS.map(|metric| {
            let value = |run: &CoRun| Some((metric.of)(run)).filter(|value| *value > 0.0);
            let rank =
                |mix: &'a Mix<'a>| Some(Rank { mix: &mix.name, value: value(mix.runs[place]?)? });
            let mut ranks: Vec<Rank<'a>> = found.mixes.iter().filter_map(rank).collect();
            ranks.sort_by(|one, other| one.value.total_cmp(&other.value));
            ranks
        });
        Line { scheme, ranks }
    };
    let all = found.schemes.iter().enumerate().map(line);
    let reported = |line: &Line<'_>| line.ranks.iter().flatten().any(|rank| rank.value.is_finite());
    all.filter(reported).collect()
}

fn notes(layout: &mut Layout, mixes: usize, lines: &[Line<'_>]) {
    layout.left_out(lines.len().saturating_sub(RANKED), "schemes are not drawn");
    let lacking = |line: &&Line<'_>| line.ranks.iter().any(|ranks| ranks.len() < mixes);
    let partial: Vec<&str> = lines.iter().filter(lacking).map(|line| line.scheme).collect();
    if !partial.is_empty() {
        let partial = partial.join(", ");
        layout.note(&format!("Not all of {mixes} mixes have values under: {partial}."));
    }
    let ranks = lines.iter().flat_map(|line| &line.ranks).flatten();
    let endless = ranks.filter(|rank| rank.value.is_infinite()).count();
    if endless > 0 {
        layout.note(&format!(
            "{endless} values have no bound, as an application made no progress: not drawn."
        ));
    }
}

fn table(parts: &[(&MixesByScheme<'_>, Vec<Line<'_>>)]) -> String {
    let mut rows = Vec::new();
    for (part, line) in parts.iter().flat_map(|(part, lines)| lines.iter().map(move |l| (part, l)))
    {
        for (place, metric) in METRICS.iter().enumerate() {
            let row = |rank: Option<u32>, mix: &str, value: Option<f64>| {
                row![line.scheme, metric.name, rank, mix, value]
            };
            let ranks = (1_u32..).zip(&line.ranks[place]);
            rows.extend(ranks.map(|(at, r)| row(Some(at), r.mix, Some(r.value))));
            if part.panel.alike {
                rows.push(row(None, &part.panel.mean_name("GMEAN"), line.mean(place)));
            }
        }
    }
    csv("scheme,metric,rank,mix,value", rows)
}
