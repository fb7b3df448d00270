//! The sharing schemes side by side: throughput (STP), turnaround (ANTT),
//! fairness and makespan, one row per scheme and one panel per metric.

use super::{Drawing, NO_CORUN, ReportError, Scene, empty};
use crate::record::CoRun;
use crate::report::chart::{
    Anchor, Area, Fill, LABEL, Label, NOTE, SOFT_INK, Scale, Sheet, WIDTH, across, fit, outline,
};
use crate::report::number::{float, short};
use crate::units::to_u64;

const LEFT: f64 = 112.0;
const ROW: f64 = 24.0;
const BAR: f64 = 14.0;
const GAP: f64 = 12.0;

/// A metric: its name, whether more of it is better, and its value.
struct Panel {
    name: &'static str,
    more: bool,
    of: fn(&CoRun) -> f64,
}

const PANELS: [Panel; 4] = [
    Panel { name: "STP", more: true, of: |run| run.stp },
    Panel { name: "ANTT", more: false, of: |run| run.antt },
    Panel { name: "fairness", more: true, of: |run| run.fairness_min_speedup },
    Panel { name: "speedup", more: true, of: |run| run.makespan_speedup },
];

pub(super) fn draw(scene: &Scene<'_>) -> Result<Drawing, ReportError> {
    let (names, runs): (Vec<String>, Vec<&CoRun>) = scene.coruns().into_iter().unzip();
    if runs.is_empty() {
        return Err(empty("schemes", NO_CORUN));
    }
    let mut sheet = Sheet::new("Sharing schemes side by side");
    sheet.note(&mix(&runs));
    sheet.skip(4.0);
    let top = sheet.top() + 30.0;
    let rows = float(to_u64(runs.len()));
    let width = (WIDTH - LEFT - 8.0 - 3.0 * GAP) / 4.0;
    let mut x = LEFT;
    for (index, panel) in PANELS.iter().enumerate() {
        let area = Area::new(x, top, width, rows * ROW + 6.0);
        sheet.mark_plot(area);
        draw_panel(&mut sheet, panel, &area, &runs, Fill::plain(Fill::of(index).colour));
        x += width + GAP;
    }
    let mut y = top + 3.0 + ROW / 2.0;
    for name in &names {
        let name = fit(name, LABEL, LEFT - 14.0);
        sheet.canvas.text(Label::new(name, (LEFT - 6.0, y), LABEL, Anchor::Right));
        y += ROW;
    }
    sheet.skip(30.0 + rows * ROW + 6.0 + 24.0);
    sheet.note("Bold: the best. STP: sum of normalised progress; ANTT: mean slowdown; fairness: least normalised progress; speedup: makespans in sequence over the shared makespan.");
    Ok(sheet.finish(&scene.footer()))
}

/// The applications of the co-runs, where all have the same.
fn mix(runs: &[&CoRun]) -> String {
    let names = |run: &CoRun| run.apps.iter().map(|app| app.app.clone()).collect::<Vec<_>>();
    let first = names(runs[0]);
    if runs.iter().all(|run| names(run) == first) {
        first.join(" + ")
    } else {
        "Several mixes: rows in record order.".into()
    }
}

fn draw_panel(sheet: &mut Sheet, panel: &Panel, area: &Area, runs: &[&CoRun], fill: Fill) {
    let centre = area.x + area.width / 2.0;
    let title = Label::new(panel.name, (centre, area.y - 22.0), LABEL, Anchor::Centre);
    sheet.canvas.text(title.bold());
    let better = if panel.more { "more is better" } else { "less is better" };
    let better = Label::new(better, (centre, area.y - 8.0), NOTE, Anchor::Centre);
    sheet.canvas.text(better.coloured(SOFT_INK));
    let values: Vec<f64> = runs.iter().map(|run| (panel.of)(run)).collect();
    let most = values.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    let scale = Scale::linear(0.0, most, area.x, area.right() - 36.0);
    across(&mut sheet.canvas, area, &scale, "");
    let best = values.iter().copied().reduce(if panel.more { f64::max } else { f64::min });
    let mut y = area.y + 3.0 + ROW / 2.0;
    for value in values {
        let right = scale.at(value);
        let bar = Area::new(area.x, y - BAR / 2.0, right - area.x, BAR);
        sheet.canvas.bar(bar, fill);
        let label = Label::new(short(value), (right + 3.0, y), NOTE, Anchor::Left);
        sheet.canvas.text(if best == Some(value) { label.bold() } else { label });
        y += ROW;
    }
    outline(&mut sheet.canvas, area);
}
