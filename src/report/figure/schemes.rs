//! The sharing schemes side by side: throughput, turnaround, fairness, makespan,
//! IPC and energy, one row per scheme and one panel per metric.

use super::prelude::*;

/// Room left of the panels, at least and at most: names take what they need.
const LEFT: f64 = 112.0;
const WIDEST: f64 = 144.0;
const ROW: f64 = 15.0;
const BAR: f64 = 10.0;
const GAP: f64 = 12.0;

/// Panels side by side, and where there is little room.
const ACROSS: usize = 4;
const FEW: usize = 2;

/// Rows of all panels that lie above each other: more are taller than a page.
const ROWS: usize = 40;

/// A metric: its name, whether more of it is better, and its value; 0 is none.
struct Panel {
    name: &'static str,
    more: bool,
    of: fn(&CoRun) -> f64,
}

const PANELS: [Panel; 8] = [
    Panel { name: "STP", more: true, of: |run| run.stp },
    Panel { name: "ANTT", more: false, of: |run| run.antt },
    Panel { name: "fairness", more: true, of: |run| run.fairness_min_speedup },
    Panel { name: "speedup", more: true, of: |run| run.makespan_speedup },
    Panel { name: "IPC", more: true, of: |run| run.ipc_throughput },
    Panel { name: "harmonic", more: true, of: |run| run.harmonic_speedup },
    Panel { name: "ALU", more: true, of: |run| run.utilization.map_or(0.0, |busy| busy.alu) },
    Panel { name: "nJ/instr", more: false, of: per_instruction },
];

/// What the metrics are called on the command line.
const METRICS: [&str; 8] =
    ["stp", "antt", "fairness", "makespan", "ipc", "harmonic", "alu", "energy"];

/// What the metrics are.
const WORDS: &str = "STP: sum of normalised progress; ANTT: mean slowdown; fairness: least normalised progress; harmonic: its harmonic mean; speedup: makespans in sequence over the shared makespan; IPC: thread instructions of all per cycle; ALU: share of the pipes' time; nJ/instr: energy per thread instruction.";

/// Every co-run, named by its scheme, and by its mix where there are several.
fn named<'a>(input: &FigureInput<'a>) -> Result<Vec<(String, &'a CoRun)>, Missing> {
    let records = input.mixes()?;
    if records.len() < 2 {
        return Ok(input.coruns());
    }
    let of = |(mix, record): (String, &&'a Analysis)| {
        let schemes = scheme_names(&record.coruns).into_iter().zip(&record.coruns);
        schemes.map(|(scheme, run)| (format!("{mix}: {scheme}"), run)).collect::<Vec<_>>()
    };
    Ok(mix_names(&records).into_iter().zip(&records).flat_map(of).collect())
}

/// Energy over the thread instructions that it was spent on: runs that did less are not
/// better by that.
fn per_instruction(run: &CoRun) -> f64 {
    run.work().map_or(0.0, |work| 1e9 * run.energy_joules / float(work))
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let (names, runs): (Vec<String>, Vec<&CoRun>) = named(input)?.into_iter().unzip();
    let schemes: Vec<String> = names.iter().map(|name| scheme_of(name).into()).collect();
    let known = distinct(schemes.iter().cloned());
    let looks = input.scheme_looks(&known);
    let look = |scheme| known.iter().position(|own| own == scheme).map_or(0, |at| looks[at]);
    let fills: Vec<Fill> = schemes.iter().map(|scheme| Fill::of(look(scheme))).collect();
    let mut layout = input.layout("Sharing schemes side by side");
    let of_one = mix(&runs);
    let bold = if of_one.is_some() { "Bold: the best. " } else { "" };
    layout.note(of_one.as_deref().unwrap_or("Several mixes: none is marked as the best."));
    let reported = |panel: &&Panel| runs.iter().any(|run| (panel.of)(run) > 0.0);
    let shown = chosen(&METRICS, input.metrics)?.into_iter().map(|metric| &PANELS[metric]);
    let panels: Vec<&Panel> = shown.filter(reported).collect();
    ensure(!panels.is_empty(), "no run has a value of these metrics; leave --metrics out")?;
    let across = if layout.narrow() { FEW } else { ACROSS };
    let drawn = names.len().min(ROWS / panels.len().div_ceil(across).max(1)).max(1);
    let rows = Rows {
        names: &names[..drawn],
        runs: &runs[..drawn],
        fills: &fills,
        of_one: of_one.is_some(),
    };
    for row in panels.chunks(across) {
        layout.skip(4.0);
        draw_row(&mut layout, row, &rows);
    }
    layout.left_out(names.len() - drawn, "runs are not drawn");
    layout.note(&format!("{bold}{WORDS}"));
    let csv = table(&names, &runs);
    Ok(layout.finish(&input.footer()).with_csv(csv))
}

/// The scheme in the name of a run, which may begin with its mix.
fn scheme_of(name: &str) -> &str {
    name.rsplit_once(": ").map_or(name, |(_, scheme)| scheme)
}

/// The rows of all panels.
struct Rows<'a> {
    names: &'a [String],
    runs: &'a [&'a CoRun],
    fills: &'a [Fill],
    /// All are of one mix, so that one may be the best.
    of_one: bool,
}

/// Panels side by side, and the schemes' names.
fn draw_row(layout: &mut Layout, panels: &[&Panel], rows: &Rows<'_>) {
    let top = layout.top() + 30.0;
    let height = float(rows.runs.len()) * ROW + 6.0;
    let left = layout.left_of(rows.names, LABEL, (LEFT, WIDEST), 14.0);
    let across = float(if layout.narrow() { FEW } else { ACROSS });
    let width = (layout.width() - left - 8.0 - (across - 1.0) * GAP) / across;
    let mut x = left;
    for panel in panels {
        let area = Area::new(x, top, width, height);
        layout.mark_plot(area);
        draw_panel(layout, panel, &area, rows);
        x += width + GAP;
    }
    let mut y = top + 3.0 + ROW / 2.0;
    for name in rows.names {
        let name = fit(name, NOTE, left - 14.0);
        layout.canvas.write(name, (left - 6.0, y), NOTE, Anchor::Right);
        y += ROW;
    }
    layout.skip(30.0 + height + 22.0);
}

fn table(names: &[String], runs: &[&CoRun]) -> String {
    let line = |(name, run): (&String, &&CoRun)| {
        let [stp, antt, fairness, speedup, ipc, harmonic, alu, energy] =
            PANELS.map(|panel| (panel.of)(run));
        row![name, stp, antt, fairness, speedup, ipc, harmonic, alu, energy]
    };
    csv(
        "scheme,stp,antt,fairness_min_speedup,makespan_speedup,ipc_throughput,harmonic_speedup,alu_utilization,energy_nanojoules_per_thread_instruction",
        names.iter().zip(runs).map(line),
    )
}

/// The applications of the co-runs, where all have the same.
fn mix(runs: &[&CoRun]) -> Option<String> {
    let names = |run: &CoRun| run.apps.iter().map(|app| app.app.clone()).collect::<Vec<_>>();
    let first = names(runs.first()?);
    runs.iter().all(|run| names(run) == first).then(|| first.join(" + "))
}

fn draw_panel(layout: &mut Layout, panel: &Panel, area: &Area, rows: &Rows<'_>) {
    let centre = area.x + area.width / 2.0;
    let title = Label::new(panel.name, (centre, area.y - 22.0), LABEL, Anchor::Centre);
    layout.canvas.text(title.bold());
    let better = if panel.more { "more is better" } else { "less is better" };
    let better = Label::new(better, (centre, area.y - 8.0), NOTE, Anchor::Centre);
    layout.canvas.text(better.coloured(SOFT_INK));
    let values: Vec<f64> = rows.runs.iter().map(|run| (panel.of)(run)).collect();
    let reported = || values.iter().copied().filter(|value| value.is_finite() && *value > 0.0);
    let scale = Scale::linear(0.0, reported().fold(0.0, f64::max), area.x, area.right() - 36.0);
    across(&mut layout.canvas, area, &scale, "");
    // What is the best of different mixes says nothing.
    let better: fn(f64, f64) -> f64 = if panel.more { f64::max } else { f64::min };
    let best = reported().reduce(better).filter(|_| rows.of_one);
    let places = decimals(reported().fold(0.0, f64::max));
    let mut y = area.y + 3.0 + ROW / 2.0;
    for (&value, &fill) in values.iter().zip(rows.fills) {
        let drawn = value.is_finite() && value > 0.0;
        let right = if drawn { scale.at(value) } else { area.x };
        if drawn {
            layout.canvas.bar(Area::new(area.x, y - BAR / 2.0, right - area.x, BAR), fill);
        }
        let words = match value {
            v if v.is_infinite() => "∞".into(),
            v if v >= 99_999.5 => short(v),
            v if v > 0.0 => format!("{v:.places$}"),
            _ => "–".into(),
        };
        let label = Label::new(words, (right + 3.0, y), NOTE, Anchor::Left);
        layout.canvas.text(if best == Some(value) { label.bold() } else { label });
        y += ROW;
    }
    outline(&mut layout.canvas, area);
}
