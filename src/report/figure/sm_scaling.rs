//! Bandwidth and speed of each application alone against the number of its SMs, and
//! where it saturates (Slate, Fig. 1).

use super::prelude::*;
use crate::solo_run::gb_per_s;

/// Part of the peak at which an application has saturated.
const ENOUGH: f64 = 0.95;

/// What is missing where no application ran on several numbers of SMs.
const MISSING: &str = "no application ran alone on several numbers of SMs; run `gpumodel analyze APP --scheme solo:sms=1,solo:sms=2,…,solo --json FILE`";

/// One application: its points by number of SMs.
struct Curve {
    label: String,
    points: Vec<Point>,
    /// Runs that held as many SMs as one of the points.
    repeats: usize,
}

/// One run on `sms` SMs.
struct Point {
    sms: u32,
    cycles: u64,
    /// Loads and stores of the SMs, and what crossed the DRAM's pins.
    requested: Option<f64>,
    dram: Option<f64>,
    /// Over the fastest.
    speed: f64,
}

impl Curve {
    /// The fewest SMs that are fast enough.
    fn saturates(&self) -> u32 {
        let enough = |point: &&Point| point.speed >= ENOUGH;
        self.points.iter().find(enough).map_or(0, |point| point.sms)
    }
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let curves = curves(input);
    ensure(!curves.is_empty(), MISSING)?;
    let drawn = &curves[..curves.len().min(LINES)];
    let mut layout = input.layout("Bandwidth and speed against SMs");
    let entry = |(index, curve): (usize, &Curve)| {
        let tail = format!(" (saturates at {})", curve.saturates());
        Entry::new(Swatch::Mark(index), &curve.label).with(tail)
    };
    layout.legend(&drawn.iter().enumerate().map(entry).collect::<Vec<_>>());
    if drawn.iter().flat_map(|curve| &curve.points).any(|point| point.requested.is_some()) {
        bandwidth(&mut layout, drawn);
    }
    speed(&mut layout, drawn);
    layout.note("Loads and stores: sectors asked of the L1, or of the L2 where they pass the L1 by. Dropped line: the fewest SMs with 95 % of the largest speed.");
    repeated(&mut layout, curves.iter().map(|curve| curve.repeats).sum());
    layout.left_out(curves.len() - drawn.len(), MORE_APPS);
    Ok(layout.finish(&input.footer()).with_csv(table(&curves)))
}

fn curves(input: &FigureInput<'_>) -> Vec<Curve> {
    let of = |subject: Subject<'_>| {
        let sweeps = sweeps(&subject.runs, "sms", SoloRun::held_sms);
        let several = sweeps.len() > 1;
        let label = subject.label;
        let curve = move |sweep: Sweep<'_>| {
            let fastest = sweep.points.iter().map(|(_, run)| run.app.cycles).min().unwrap_or(1);
            let points = sweep.points.iter().map(|(sms, run)| point(*sms, run, fastest)).collect();
            let label = if several { format!("{label}, {}", sweep.scheme) } else { label.clone() };
            Curve { label, points, repeats: sweep.repeats }
        };
        sweeps.into_iter().map(curve).collect::<Vec<_>>()
    };
    subjects(&input.whole_solo_runs()).into_iter().flat_map(of).collect()
}

fn point(sms: u32, run: &SoloRun<'_>, fastest: u64) -> Point {
    let app = run.app;
    let l1 = app.l1.accesses;
    let requested = if l1 > 0 { l1 } else { app.l2.accesses };
    Point {
        sms,
        cycles: app.cycles,
        requested: gb_per_s(run, requested),
        dram: gb_per_s(run, app.dram.read_sectors.saturating_add(app.dram.write_sectors)),
        speed: float(fastest) / float(app.cycles),
    }
}

fn bandwidth(layout: &mut Layout, curves: &[Curve]) {
    layout.legend(&[
        Entry::new(Swatch::Dot(INK), "full marks: loads and stores"),
        Entry::new(Swatch::Ring(INK), "open marks: DRAM"),
    ]);
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let values = points().flat_map(|point| [point.requested, point.dram]).flatten();
    let highest = values.fold(0.0, f64::max);
    let y = |area: &Area| Scale::from_zero(highest, area.bottom(), area.y);
    let plot = CountPlot::new(layout, most_sms(curves), "", y, "GB/s");
    for (index, curve) in curves.iter().enumerate() {
        let line = |of: fn(&Point) -> Option<f64>| -> Vec<(f64, f64)> {
            let at = |point: &Point| Some(plot.at(point.sms, of(point)?));
            curve.points.iter().filter_map(at).collect()
        };
        layout.canvas.thin_curve(&line(|point| point.dram), index);
        layout.canvas.curve(&line(|point| point.requested), index);
    }
    plot.finish(layout, 28.0);
}

fn speed(layout: &mut Layout, curves: &[Curve]) {
    let y = |area: &Area| Scale::linear(0.0, 1.05, area.bottom(), area.y);
    let plot = CountPlot::new(layout, most_sms(curves), "SMs", y, "speed over the largest");
    for (index, curve) in curves.iter().enumerate() {
        let at = |point: &Point| plot.at(point.sms, point.speed);
        layout.canvas.curve(&curve.points.iter().map(at).collect::<Vec<_>>(), index);
        if let Some(point) = curve.points.iter().find(|point| point.sms == curve.saturates()) {
            let (x, top) = at(point);
            let colour = Fill::of(index).colour;
            layout.canvas.dashes((x, plot.area.bottom()), (x, top), colour, 1.2);
        }
    }
    plot.finish(layout, 36.0);
}

fn most_sms(curves: &[Curve]) -> Option<u32> {
    curves.iter().flat_map(|curve| &curve.points).map(|point| point.sms).max()
}

fn table(curves: &[Curve]) -> String {
    let mut lines = Vec::new();
    for curve in curves {
        lines.extend(curve.points.iter().map(|point| {
            let saturates = point.sms == curve.saturates();
            let Point { sms, cycles, requested, dram, speed } = point;
            row![curve.label, sms, cycles, requested, dram, speed, saturates]
        }));
    }
    csv("app,sms,cycles,gb_per_s,dram_gb_per_s,speed,saturates", lines)
}
