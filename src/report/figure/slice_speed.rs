//! Speed of each application alone against its memory channels and against its SMs
//! (UGPU, Fig. 2 and 3).

use super::{Drawing, ReportError, Scene, empty};
use crate::report::alone::{Alone, Subject, Sweep, repeated, subjects, sweeps};
use crate::report::chart::{Entry, LINES, Scale, Sheet, Swatch, counts, down, outline};
use crate::report::values::{cell, csv};

const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const HEIGHT: f64 = 150.0;

/// What is missing where no application ran on slices of several sizes.
const MISSING: &str = "no application ran alone on slices of several sizes; run `gpumodel analyze APP --machine ugpu --scheme bp:sms=40:channels=4,bp:sms=40:channels=8,… --until cycles=N --json FILE`";

/// What a slice has more or less of.
#[derive(Clone, Copy)]
struct Resource {
    key: &'static str,
    axis: &'static str,
    held: fn(&Alone<'_>) -> u64,
}

const RESOURCES: [Resource; 2] = [
    Resource { key: "channels", axis: "memory channels", held: |run| run.app.channels },
    Resource { key: "sms", axis: "SMs", held: |run| run.app.sms },
];

/// One application with all but one resource fixed: its speed by that one.
struct Curve {
    app: String,
    label: String,
    /// How many, and thread instructions per cycle.
    points: Vec<(u32, f64)>,
    /// Runs that held as many as one of the points.
    repeats: usize,
}

impl Curve {
    fn most(&self) -> f64 {
        self.points.iter().map(|point| point.1).fold(0.0, f64::max)
    }
}

pub(super) fn draw(scene: &Scene<'_>) -> Result<Drawing, ReportError> {
    let panels: Vec<(Resource, Vec<Curve>)> = RESOURCES
        .map(|resource| (resource, curves(scene, resource)))
        .into_iter()
        .filter(|(_, curves)| !curves.is_empty())
        .collect();
    if panels.is_empty() {
        return Err(empty("slice-speed", MISSING));
    }
    let mut sheet = Sheet::new("Speed alone against the size of a slice");
    for (resource, curves) in &panels {
        panel(&mut sheet, *resource, &curves[..curves.len().min(LINES)]);
    }
    sheet.note("Speed: instructions per cycle over the most of the line. Behind names: what the slice keeps.");
    let lines = panels.iter().flat_map(|(_, curves)| curves);
    if let Some(note) = repeated(lines.map(|curve| curve.repeats).sum()) {
        sheet.note(&note);
    }
    let left: usize = panels.iter().map(|(_, curves)| curves.len().saturating_sub(LINES)).sum();
    if left > 0 {
        sheet.note(&format!("{left} more lines are not drawn; choose with --app NAME."));
    }
    Ok(sheet.finish(&scene.footer()).with_csv(table(&panels)))
}

fn curves(scene: &Scene<'_>, resource: Resource) -> Vec<Curve> {
    let sized = |run: &Alone<'_>| {
        let set = RESOURCES.iter().all(|r| run.setting(r.key).is_some());
        set && run.app.channels > 0 && run.app.ipc.is_finite()
    };
    let runs: Vec<Alone<'_>> = scene.alone_or_cut().into_iter().filter(sized).collect();
    let held = |run: &Alone<'_>| u32::try_from((resource.held)(run)).ok().filter(|&n| n > 0);
    let of = |subject: Subject<'_>| {
        let curve = |sweep: Sweep<'_>| {
            let points: Vec<(u32, f64)> =
                sweep.points.iter().map(|(count, run)| (*count, run.app.ipc)).collect();
            let app = subject.label.clone();
            let label = format!("{app} ({})", kept(&sweep, resource));
            Curve { app, label, points, repeats: sweep.repeats }
        };
        let sweeps = sweeps(&subject.runs, resource.key, held).into_iter();
        sweeps.map(curve).filter(|curve| curve.most() > 0.0).collect::<Vec<_>>()
    };
    subjects(&runs).into_iter().flat_map(of).collect()
}

/// What does not change over a sweep, in words.
fn kept(sweep: &Sweep<'_>, changing: Resource) -> String {
    let others = RESOURCES.iter().filter(|resource| resource.key != changing.key);
    let first = sweep.points.first().map(|point| point.1);
    let word = |resource: &Resource| {
        let count = first.as_ref().map_or(0, |run| (resource.held)(run));
        format!("{count} {}", resource.key.replace("sms", "SMs"))
    };
    others.map(word).collect::<Vec<_>>().join(", ")
}

fn panel(sheet: &mut Sheet, resource: Resource, curves: &[Curve]) {
    let entry = |(index, curve): (usize, &Curve)| Entry::new(Swatch::mark(index), &curve.label);
    sheet.legend(&curves.iter().enumerate().map(entry).collect::<Vec<_>>());
    let area = sheet.plot(LEFT, RIGHT, HEIGHT);
    let most = curves.iter().flat_map(|curve| &curve.points).map(|point| point.0).max();
    let most = most.unwrap_or(1);
    let x = Scale::linear(0.0, f64::from(most), area.x, area.right() - 5.0);
    let y = Scale::linear(0.0, 1.05, area.bottom(), area.y);
    counts(&mut sheet.canvas, &area, &x, most, resource.axis);
    down(&mut sheet.canvas, &area, &y, "speed over the largest", 12.0);
    for (index, curve) in curves.iter().enumerate() {
        let at = |(count, ipc): &(u32, f64)| (x.at(f64::from(*count)), y.at(ipc / curve.most()));
        let points: Vec<(f64, f64)> = curve.points.iter().map(at).collect();
        sheet.canvas.curve(&points, index);
    }
    outline(&mut sheet.canvas, &area);
    sheet.skip(40.0);
}

fn table(panels: &[(Resource, Vec<Curve>)]) -> String {
    let mut lines = Vec::new();
    for (resource, curves) in panels {
        for curve in curves {
            lines.extend(curve.points.iter().map(|(count, ipc)| {
                let speed = cell(Some(ipc / curve.most()));
                let (app, line) = (curve.app.clone(), curve.label.clone());
                let ipc = cell(Some(*ipc));
                [app, line, resource.key.into(), count.to_string(), ipc, speed]
            }));
        }
    }
    csv(["app", "line", "resource", "count", "ipc", "speed"], lines)
}
