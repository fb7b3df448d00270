//! When each application ran under each sharing scheme: a band per co-run, a
//! lane per application, a bar per launch.

use super::prelude::*;

/// Room left of the bands, at least and at most: names take what they need.
const LEFT: f64 = 48.0;
const WIDEST: f64 = 200.0;
const RIGHT: f64 = 46.0;
const LANE: f64 = 18.0;
const BAR: f64 = 14.0;
/// Slowdowns from here on have no decimals.
const MANY: f64 = 99.5;

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let (names, runs): (Vec<String>, Vec<&CoRun>) = input.coruns().into_iter().unzip();
    let end = runs.iter().map(|run| span(run)).max().unwrap_or(0);
    if end == 0 {
        return Err(NO_CORUN.into());
    }
    let mut layout = input.layout("Applications over time, by sharing scheme");
    let apps: Vec<Vec<&CoRunApp>> = runs.iter().map(|run| input.in_order(run)).collect();
    layout.legend(&entries(&apps));
    let last = runs.len() - 1;
    let left = layout.left_of(&names, LABEL, (LEFT, WIDEST), 14.0);
    let slowdowns = runs.iter().flat_map(|run| &run.apps).map(|app| app.slowdown);
    let most = slowdowns.filter(|slowdown| slowdown.is_finite()).fold(0.0, f64::max);
    let places = if most < MANY { 2 } else { 0 };
    for (index, (run, name)) in runs.iter().zip(&names).enumerate() {
        let area = layout.plot(left, RIGHT, LANE * float(run.apps.len()) + 8.0);
        let time = Scale::linear(0.0, float(end), area.x, area.right());
        across(&mut layout.canvas, &area, &time, if index == last { "cycle" } else { "" });
        band(&mut layout, (run, &apps[index], name, places), &area, &time);
        layout.skip(if index == last { 36.0 } else { 4.0 + AXIS_HEIGHT });
    }
    layout.note("Ticks above a band: decisions of the scheme. ×: slowdown against running alone.");
    Ok(layout.finish(&input.footer()))
}

fn span(run: &CoRun) -> u64 {
    let ends = run.apps.iter().flat_map(|app| app.kernels.iter().map(|k| k.end_cycle));
    ends.fold(run.cycles.max(run.makespan_cycles), u64::max)
}

/// One entry per lane number: the application's name where all runs agree on it.
fn entries(runs: &[Vec<&CoRunApp>]) -> Vec<Entry> {
    let most = runs.iter().map(Vec::len).max().unwrap_or(0);
    let name = |place: usize| {
        let apps = runs.iter().filter_map(|apps| apps.get(place));
        match distinct(apps.map(|app| app.app.as_str()))[..] {
            [name] => name.to_string(),
            _ => format!("application {}", place + 1),
        }
    };
    Entry::fills(&(0..most).map(name).collect::<Vec<_>>())
}

/// A run with its applications in order and its name, and the decimals of its slowdowns.
fn band(
    layout: &mut Layout,
    (run, apps, name, places): (&CoRun, &[&CoRunApp], &str, usize),
    area: &Area,
    time: &Scale,
) {
    outline(&mut layout.canvas, area);
    let at = (area.x - 6.0, area.y + area.height / 2.0);
    left_of(&mut layout.canvas, name, at, (area.x - 14.0, area.height));
    decision_ticks(layout, run, time, (area.y, area.y + 4.0));
    for (bar_row, app) in apps.iter().enumerate() {
        let top = area.y + 6.0 + LANE * float(bar_row);
        let end = bars(layout, app, top, time, Fill::of(bar_row));
        if let (Some(end), true) = (end, app.slowdown > 0.0) {
            let text = match app.slowdown {
                slowdown if slowdown.is_infinite() => "∞".into(),
                slowdown => format!("{slowdown:.places$}×"),
            };
            let at = (end + 4.0, top + BAR / 2.0 - 1.0);
            layout.canvas.write(text, at, NOTE, Anchor::Left);
        }
    }
}

/// Draws the launches of an application; returns where the last one ends.
fn bars(layout: &mut Layout, app: &CoRunApp, top: f64, time: &Scale, fill: Fill) -> Option<f64> {
    let mut bar_row = BarRow::default();
    for kernel in &app.kernels {
        let ends = (time.at(float(kernel.start_cycle)), time.at(float(kernel.end_cycle)));
        let Some((from, to)) = bar_row.add(ends.0, ends.1) else { continue };
        let bar = Area::new(from, top, to - from, BAR - 2.0);
        layout.canvas.bar(bar, fill);
    }
    bar_row.end()
}
