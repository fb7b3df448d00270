//! Time of each application alone against its CTAs per SM: one small plot each, with
//! the points that pay for nothing as rings (ARCS 2018, Fig. 9).

use super::prelude::*;

/// Applications that are drawn, and in one column, of which a page holds less.
const APPS: usize = 24;
const FEW: usize = 18;
/// Height of a small plot, and of one alone.
const HEIGHT: f64 = 84.0;
const ALONE: f64 = 200.0;
const DOT: f64 = 3.2;

/// What is missing where no application ran with several counts.
const MISSING: &str = "no application ran alone with several numbers of CTAs per SM; run `gpumodel analyze APP --scheme pt:ctas=1,pt:ctas=2,… --json FILE`";

/// One application with its lines.
struct Plot<'a> {
    label: String,
    lines: Vec<Line<'a>>,
}

/// Points under one scheme.
struct Line<'a> {
    scheme: String,
    points: Vec<Point<'a>>,
    /// Runs that held as many CTAs as one of the points.
    repeats: usize,
}

/// One run: its CTAs per SM, its time over the shortest of the plot, and whether fewer
/// CTAs are as fast.
struct Point<'a> {
    ctas: u32,
    run: SoloRun<'a>,
    time: f64,
    dropped: bool,
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let plots = plots(input);
    ensure(!plots.is_empty(), MISSING)?;
    let lines = || plots.iter().flat_map(|plot| &plot.lines);
    let schemes = distinct(lines().map(|line| line.scheme.as_str()));
    let mut layout = input.layout("Time against CTAs per SM");
    let looks = input.scheme_looks(&schemes);
    layout.legend(&entries(&schemes, &looks));
    let most = if layout.narrow() { FEW } else { APPS };
    let drawn = &plots[..plots.len().min(most)];
    let names: Vec<String> = drawn.iter().map(|plot| plot.label.clone()).collect();
    let points = drawn.iter().flat_map(|plot| &plot.lines).flat_map(|line| &line.points);
    let slowest = points.map(|point| point.time).fold(1.0, f64::max);
    let height = if names.len() == 1 { ALONE } else { HEIGHT };
    for (panel, plot) in panels(&mut layout, &names, height).iter().zip(drawn) {
        plot.draw(&mut layout, panel, (&schemes, &looks), slowest);
    }
    layout.note("Time of each application alone over its shortest.");
    repeated(&mut layout, lines().map(|line| line.repeats).sum());
    layout.left_out(plots.len() - drawn.len(), "applications are not drawn");
    Ok(layout.finish(&input.footer()).with_csv(table(&plots)))
}

fn plots<'a>(input: &FigureInput<'a>) -> Vec<Plot<'a>> {
    let plot = |subject: Subject<'a>| {
        let sweeps = sweeps(&subject.runs, "ctas", SoloRun::held_ctas);
        let runs = sweeps.iter().flat_map(|sweep| &sweep.points);
        let best = runs.map(|(_, run)| run.app.cycles).min()?;
        let lines = sweeps.into_iter().map(|sweep| line(sweep, best)).collect();
        Some(Plot { label: subject.label, lines })
    };
    subjects(&input.whole_solo_runs()).into_iter().filter_map(plot).collect()
}

fn line(sweep: Sweep<'_>, best: u64) -> Line<'_> {
    let mut fewer: Option<u64> = None;
    let point = |(ctas, run): (u32, _)| {
        let run: SoloRun<'_> = run;
        let cycles = run.app.cycles;
        let dropped = fewer.is_some_and(|fewer| fewer <= cycles);
        fewer = Some(fewer.map_or(cycles, |fewer| fewer.min(cycles)));
        Point { ctas, run, time: float(cycles) / float(best), dropped }
    };
    let points = sweep.points.into_iter().map(point).collect();
    Line { scheme: sweep.scheme, points, repeats: sweep.repeats }
}

fn entries(schemes: &[&str], looks: &[usize]) -> Vec<Entry> {
    let mut entries = Entry::looks(schemes, looks, Swatch::Mark);
    entries.push(Entry::new(Swatch::Ring(INK), "open: pruned, fewer CTAs are as fast"));
    entries
}

impl Plot<'_> {
    /// Draws it on a scale that reaches `slowest`, as that of all panels does.
    fn draw(
        &self,
        layout: &mut Layout,
        panel: &Panel,
        (schemes, looks): (&[&str], &[usize]),
        slowest: f64,
    ) {
        let area = &panel.area;
        let points = self.lines.iter().flat_map(|line| &line.points);
        let most = points.map(|point| point.ctas).max().unwrap_or(1);
        let edge = area.right() - 5.0;
        let x = Scale::linear(0.0, f64::from(most), area.x, edge);
        // Marks stay below the name.
        let y = Scale::from_zero(slowest * 1.05, area.bottom(), area.y);
        let (across, up) = (
            if panel.last { "CTAs per SM" } else { "" },
            if panel.first { "relative time" } else { "" },
        );
        counts(&mut layout.canvas, area, &x, most, across);
        down(&mut layout.canvas, area, &y, up, 12.0);
        for line in &self.lines {
            let own = schemes.iter().position(|scheme| *scheme == line.scheme).unwrap_or(0);
            let place = looks[own];
            let at = |point: &Point<'_>| (x.at(f64::from(point.ctas)), y.at(point.time));
            layout.canvas.stroke(&line.points.iter().map(at).collect::<Vec<_>>(), place, 1.6);
            for point in &line.points {
                let ring = if point.dropped { DOT + 1.6 } else { DOT };
                layout.canvas.marker(at(point), place, ring, !point.dropped);
            }
        }
        outline(&mut layout.canvas, area);
    }
}

fn table(plots: &[Plot<'_>]) -> String {
    let mut lines = Vec::new();
    for plot in plots {
        for line in &plot.lines {
            lines.extend(line.points.iter().map(|point| {
                let (cycles, pruned) = (point.run.app.cycles, point.dropped);
                row![plot.label, line.scheme, point.ctas, cycles, point.time, pruned]
            }));
        }
    }
    csv("app,scheme,ctas_per_sm,cycles,normalized,pruned", lines)
}
