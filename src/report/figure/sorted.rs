//! Throughput and turnaround of many mixes: for each scheme the values of all, sorted
//! (UGPU, Fig. 10, and 13 to 15).

use super::prelude::*;

const HEIGHT: f64 = 176.0;

/// What is missing where no mix has a throughput.
const MISSING: &str = "no run of several applications has a throughput; run `gpumodel analyze A B --scheme bp,ugpu,… --json FILE`";

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
    let found = input.mixes_by_scheme()?;
    let lines = lines(&found);
    ensure(!lines.is_empty(), MISSING)?;
    let drawn = &lines[..lines.len().min(RANKED)];
    let mut layout = input.layout("Mixes by rank under each scheme");
    let entry = |(index, line): (usize, &Line<'_>)| {
        let mean = |metric| line.mean(metric).map_or("–".into(), short);
        let tail = format!(": {}, {}", mean(0), mean(1));
        Entry::new(Swatch::Mark(index), line.scheme).with(tail)
    };
    layout.legend(&drawn.iter().enumerate().map(entry).collect::<Vec<_>>());
    let shown = chosen(&["stp", "antt"], input.metrics)?;
    let titles: Vec<String> = shown.iter().map(|&one| METRICS[one].title.to_string()).collect();
    for (panel, &metric) in panels(&mut layout, &titles, HEIGHT).iter().zip(&shown) {
        let series: Vec<Vec<f64>> = drawn.iter().map(|line| line.values(metric)).collect();
        Ranks { series: &series, reference: None }.draw(&mut layout, panel, "mixes by rank");
    }
    notes(&mut layout, found.mixes.len(), &lines);
    Ok(layout.finish(&input.footer()).with_csv(table(&lines)))
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
    layout.note("Beside the names: geometric means of STP and of ANTT over mixes.");
    layout.note("Each line has its own order of mixes for each metric; axes do not begin at 0.");
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

fn table(lines: &[Line<'_>]) -> String {
    let mut rows = Vec::new();
    for line in lines {
        for (place, metric) in METRICS.iter().enumerate() {
            let row = |rank: Option<u32>, mix: &str, value: Option<f64>| {
                row![line.scheme, metric.name, rank, mix, value]
            };
            let ranks = (1_u32..).zip(&line.ranks[place]);
            rows.extend(ranks.map(|(at, r)| row(Some(at), r.mix, Some(r.value))));
            rows.push(row(None, "GMEAN", line.mean(place)));
        }
    }
    csv("scheme,metric,rank,mix,value", rows)
}
