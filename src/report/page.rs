//! The page of a report: numbers, figures and where they come from, in one
//! self-contained HTML file.

use std::fmt::Write as _;

use super::figure::Drawing;
use super::format::{brief, energy, grouped, held, percent, rate, sectors};
use super::kernels::{Group, groups, top_cause};
use super::mix::scheme_names;
use super::notes::{effort, leaning, notes, sentence};
use super::queue_rows::{Section, sections};
use super::{ReportError, escape};
use crate::results::{Analysis, AppRecord, CoRun, CoRunApp, DecisionRecord};

/// Kernels with their own line; the rest are one.
const KERNELS: usize = 60;

/// Launches up to which every launch has its own line.
const LAUNCHES: usize = 500;

/// Applications of queues up to which the title names them.
const TITLED: usize = 6;

/// Characters of a kernel's name; the whole one is shown when pointed at.
const CELL: usize = 44;

/// One figure of a report.
#[derive(Debug)]
pub struct PageFigure {
    /// File name without extension.
    pub file: String,
    /// What it shows.
    pub about: &'static str,
    /// What of the record it is about.
    pub of: Of,
    /// The figure, or why there is none.
    pub drawing: Result<Drawing, ReportError>,
}

/// A part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The solo run at this position.
    App(usize),
    /// The co-runs.
    CoRuns,
    /// The queues.
    Queues,
}

/// The page of `analysis` with `page_figures`: same input, same bytes. Everything
/// from the record is escaped.
#[must_use]
pub fn page(analysis: &Analysis, page_figures: &[PageFigure]) -> String {
    let apps: Vec<&str> = analysis.solo.iter().map(|app| app.app.as_str()).collect();
    let named = match apps.len() {
        0 if !analysis.queues.is_empty() => "Queues".into(),
        many if many > TITLED && !analysis.queues.is_empty() => format!("{many} applications"),
        _ => apps.join(", "),
    };
    let title = escape(&format!("{named} on {}", analysis.machine.name));
    let mut text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
    );
    provenance(&mut text, analysis);
    if !analysis.coruns.is_empty() {
        text += "<h2>Together</h2>\n";
        together(&mut text, &analysis.coruns);
        figures(&mut text, page_figures.iter().filter(|page_figure| page_figure.of == Of::CoRuns));
    }
    if !analysis.queues.is_empty() {
        text += "<h2>Queues</h2>\n";
        queues(&mut text, analysis);
        figures(&mut text, page_figures.iter().filter(|page_figure| page_figure.of == Of::Queues));
    }
    for (index, app) in analysis.solo.iter().enumerate() {
        let _ = writeln!(text, "<h2>{} alone</h2>", escape(&app.app));
        totals(&mut text, app);
        for said in [effort(app), sentence(app), leaning(app)].into_iter().flatten() {
            let _ = writeln!(text, "<p>{}.</p>", escape(&said));
        }
        kernels(&mut text, analysis, app);
        figures(&mut text, page_figures.iter().filter(|p| p.of == Of::App(index)));
        launches(&mut text, app, analysis.machine.core_mhz);
    }
    text += "</main>\n</body>\n</html>\n";
    crate::dump::dump("page", &text);
    text
}

fn provenance(text: &mut String, analysis: &Analysis) {
    let machine = &analysis.machine;
    let mut facts = vec![
        ("Machine", format!("{} (hash {})", machine.name, machine.hash)),
        ("Program", format!("{}, seed {}", analysis.program, analysis.seed)),
    ];
    if !analysis.overrides.is_empty() {
        let set: Vec<String> =
            analysis.overrides.iter().map(|(k, v)| format!("{k} = {v}")).collect();
        facts.push(("Overrides", set.join(", ")));
    }
    facts.extend(
        analysis.solo.iter().map(|a| ("Trace", format!("{} (hash {})", a.app, a.store_hash))),
    );
    *text += "<dl>\n";
    for (name, value) in facts {
        let _ = writeln!(text, "<dt>{name}</dt><dd>{}</dd>", escape(&value));
    }
    *text += "</dl>\n<p>The numbers: <a href=\"record.json\">record.json</a>, <a href=\"kernels.csv\">kernels.csv</a>. Other figures from them: <code>gpumodel plot record.json --figure NAME -o FILE.svg</code>; <code>gpumodel plot --list</code> names them.</p>\n";
    if !analysis.notes.is_empty() {
        *text += "<h2>What the numbers lean on</h2>\n<ul>\n";
        for note in &analysis.notes {
            let _ = writeln!(text, "<li>{}</li>", escape(note));
        }
        *text += "</ul>\n";
    }
}

fn totals(text: &mut String, app: &AppRecord) {
    let _ = writeln!(
        text,
        "<p>{} cycles, {} of them launch latency; {}; {} warp instructions; {}; L1 hits {}, L2 hits {}; DRAM {} read, {} written.</p>",
        grouped(app.cycles),
        grouped(app.launch_cycles),
        match app.kernels.len() {
            1 => "1 launch".to_owned(),
            many => format!("{} launches", grouped(gpumodel_core::units::to_u64(many))),
        },
        grouped(app.warp_instructions),
        rate(app),
        percent(app.l1.hit_rate()),
        percent(app.l2.hit_rate()),
        sectors(app.dram.read_sectors),
        sectors(app.dram.write_sectors),
    );
}

/// One line per kernel name.
fn kernels(text: &mut String, analysis: &Analysis, app: &AppRecord) {
    let header = [
        "Kernel",
        "Launches",
        "Cycles",
        "thread IPC",
        "Occupancy",
        "L1 hits",
        "L2 hits",
        "DRAM GB/s",
        "Top stall",
    ];
    let rows = groups(&[(analysis, app)], KERNELS).into_iter().map(|group| {
        let mut row = vec![kernel_cell(&group), group.launches.to_string()];
        row.extend(measures(&group, analysis.machine.core_mhz));
        row
    });
    table(text, &header, rows);
}

/// Every launch, folded; nothing where there is one or are too many.
fn launches(text: &mut String, app: &AppRecord, core_mhz: f64) {
    if !(2..=LAUNCHES).contains(&app.kernels.len()) {
        return;
    }
    let header = [
        "Kernel",
        "Id",
        "Stream",
        "Grid",
        "Block",
        "Start",
        "Cycles",
        "thread IPC",
        "Occupancy",
        "L1 hits",
        "L2 hits",
        "DRAM GB/s",
        "Top stall",
    ];
    let rows = app.kernels.iter().zip(Group::each(app)).map(|(kernel, group)| {
        let mut row = vec![
            kernel_cell(&group),
            kernel.id.to_string(),
            kernel.stream.to_string(),
            kernel.grid.to_string(),
            kernel.block.to_string(),
            grouped(kernel.start_cycle),
        ];
        row.extend(measures(&group, core_mhz));
        row
    });
    *text += "<details>\n<summary>Every launch</summary>\n";
    table(text, &header, rows);
    *text += "</details>\n";
}

/// The kernel's plain name, with the traced one to point at.
fn kernel_cell(group: &Group) -> String {
    let short = escape(&brief(&group.label, CELL));
    if group.name.is_empty() || group.name == group.label {
        return short;
    }
    format!("<span title=\"{}\">{short}</span>", escape(&group.name))
}

/// Cycles, IPC, occupancy, hit rates, DRAM bandwidth and the largest stall of `group`.
fn measures(group: &Group, core_mhz: f64) -> [String; 7] {
    let number = |value: Option<f64>| value.map_or_else(|| "–".into(), |v| format!("{v:.2}"));
    [
        grouped(group.cycles),
        number(group.ipc()),
        percent(Some(group.occupancy)),
        percent(group.l1.hit_rate()),
        percent(group.l2.hit_rate()),
        number(group.dram_gb_per_s(core_mhz)),
        top_cause(&group.stalls).map_or_else(
            || "–".into(),
            |(cause, share)| {
                format!("{} {}", escape(&cause.replace('_', " ")), percent(Some(share)))
            },
        ),
    ]
}

/// Rows of cells that are HTML already.
pub(super) fn table(text: &mut String, header: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    *text += "<div class=\"scroll\"><table>\n<thead><tr>";
    for name in header {
        let _ = write!(text, "<th scope=\"col\">{}</th>", escape(name));
    }
    *text += "</tr></thead>\n<tbody>\n";
    for row in rows {
        *text += "<tr>";
        for cell in row {
            let _ = write!(text, "<td>{cell}</td>");
        }
        *text += "</tr>\n";
    }
    *text += "</tbody>\n</table></div>\n";
}

fn figures<'p>(text: &mut String, page_figures: impl Iterator<Item = &'p PageFigure>) {
    for page_figure in page_figures {
        match &page_figure.drawing {
            Ok(drawing) => {
                let file = escape(&page_figure.file);
                let _ = writeln!(
                    text,
                    "<figure id=\"{file}\">\n{}<figcaption>{} (<a href=\"{file}.svg\">{file}.svg</a>)</figcaption>\n</figure>",
                    drawing.svg,
                    escape(page_figure.about)
                );
            }
            Err(error) => {
                let _ = writeln!(
                    text,
                    "<p class=\"soft\">Not drawn: {}</p>",
                    escape(&error.to_string())
                );
            }
        }
    }
}

pub(super) const STYLE: &str = "
:root { color-scheme: light dark; --ink: #202020; --soft: #555; --paper: #fff; --line: #ccc; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --soft: #aaa; --paper: #161616; --line: #444; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; } h2 { font-size: 1.2rem; margin-top: 2rem; overflow-wrap: anywhere; }
a { color: inherit; } .soft, figcaption, dt { color: var(--soft); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; } dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .875rem; margin: .5rem 0; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 10rem; }
td:last-child, th:last-child { text-align: left; }
figure { display: inline-block; vertical-align: top; margin: .8rem .8rem .8rem 0; max-width: 30rem; width: 100%; }
figure svg { width: 100%; height: auto; background: #fff; border: 1px solid var(--line); border-radius: 4px; }
figcaption { font-size: .85rem; } figcaption::first-letter { text-transform: uppercase; }
summary { cursor: pointer; }
@media print {
:root { --ink: #000; --soft: #444; --paper: #fff; --line: #bbb; }
body { font-size: 9pt; } main { max-width: none; padding: 0; } h2 { break-after: avoid; } figure, tr { break-inside: avoid; }
.scroll { overflow: visible; } table { font-size: 7.5pt; } th, td { padding: .1rem .25rem; } th { white-space: normal; } th:first-child, td:first-child { min-width: 6rem; } figure { width: 8.5cm; }
}
";

/// Rows up to which a table is open at once.
const OPEN: usize = 40;

/// The tables of the queues of `analysis`; long ones are folded.
pub(super) fn queues(text: &mut String, analysis: &Analysis) {
    for section in sections(analysis) {
        let folded = section.rows.len() > OPEN || section.title.starts_with("Schedule");
        if folded {
            let _ = writeln!(text, "<details>\n<summary>{}</summary>", escape(&section.title));
        } else {
            let _ = writeln!(text, "<h3>{}</h3>", escape(&section.title));
        }
        body(text, section);
        if folded {
            *text += "</details>\n";
        }
    }
}

fn body(text: &mut String, section: Section) {
    if !section.rows.is_empty() {
        let names: Vec<&str> = section.header.iter().map(String::as_str).collect();
        let cells = |row: Vec<String>| row.iter().map(|cell| escape(cell)).collect();
        table(text, &names, section.rows.into_iter().map(cells));
    }
    for note in section.notes {
        let _ = writeln!(text, "<p class=\"soft\">{}.</p>", escape(note.trim_end_matches('.')));
    }
}

/// Decisions of a scheme up to which each has its own line.
const DECISIONS: usize = 200;

/// The tables of `runs`: schemes, what their machines did, applications, decisions,
/// and what the figures lean on.
pub(super) fn together(text: &mut String, runs: &[CoRun]) {
    let names: Vec<String> = scheme_names(runs).iter().map(|name| escape(name)).collect();
    let named: Vec<(&String, &CoRun)> = names.iter().zip(runs).collect();
    schemes(text, &named);
    machines(text, &named);
    shares(text, &named);
    moved(text, &named);
    begins(text, &named);
    for (note, schemes) in notes(&names, runs) {
        let _ = writeln!(text, "<p>{schemes}: {}.</p>", escape(note.trim_end_matches('.')));
    }
    for (name, run) in named {
        decisions(text, name, run);
    }
}

fn schemes(text: &mut String, runs: &[(&String, &CoRun)]) {
    let header = [
        "Scheme",
        "STP",
        "ANTT",
        "Harmonic",
        "Fairness",
        "thread IPC",
        "Makespan",
        "Speedup",
        "Energy",
        "Decisions",
    ];
    let rows = runs.iter().map(|(name, run)| {
        let makespan = run.makespan_cycles > 0;
        let reported = |yes: bool, words: String| if yes { words } else { "–".into() };
        vec![
            (*name).clone(),
            format!("{:.3}", run.stp),
            figure(run.antt),
            format!("{:.3}", run.harmonic_speedup),
            format!("{:.3}", run.fairness_min_speedup),
            format!("{:.2}", run.ipc_throughput),
            reported(makespan, grouped(run.makespan_cycles)),
            reported(makespan, format!("{:.3}", run.makespan_speedup)),
            energy(run.energy_joules),
            run.decisions.len().to_string(),
        ]
    });
    table(text, &header, rows);
}

/// What the machine did as a whole; nothing where no run says.
fn machines(text: &mut String, runs: &[(&String, &CoRun)]) {
    if runs.iter().all(|(_, run)| run.utilization.is_none()) {
        return;
    }
    let header = [
        "Scheme",
        "ALU",
        "SFU",
        "LD/ST",
        "Registers",
        "Shared memory",
        "L1 hits",
        "L2 hits",
        "DRAM bandwidth",
        "CTAs killed",
    ];
    let rows = runs.iter().map(|(name, run)| {
        let busy = run.utilization;
        vec![
            (*name).clone(),
            percent(busy.map(|busy| busy.alu)),
            percent(busy.map(|busy| busy.sfu)),
            percent(busy.map(|busy| busy.load_store)),
            percent(busy.map(|busy| busy.registers)),
            percent(busy.map(|busy| busy.shared)),
            percent(run.l1.hit_rate()),
            percent(run.l2.hit_rate()),
            percent(Some(run.dram.bandwidth_utilization)),
            grouped(run.killed_ctas),
        ]
    });
    table(text, &header, rows);
}

fn shares(text: &mut String, runs: &[(&String, &CoRun)]) {
    let header = [
        "Scheme",
        "Application",
        "Cycles",
        "thread IPC",
        "Slowdown",
        "Progress",
        "Mean SMs",
        "CTAs/SM at the end",
        "Mean channels",
        "L1 hits",
        "MPKI (warp)",
        "DRAM share",
    ];
    let row = |name: &String, app: &CoRunApp| {
        vec![
            name.clone(),
            escape(&app.app),
            grouped(app.cycles),
            format!("{:.2}", app.ipc),
            figure(app.slowdown),
            format!("{:.3}", app.normalized_progress),
            held(app.mean_sms, app.sms),
            app.ctas_per_sm.to_string(),
            held(app.mean_channels, app.channels),
            percent(app.l1.hit_rate()),
            format!("{:.2}", app.mpki_warp),
            percent(Some(app.dram_share)),
        ]
    };
    let rows = runs.iter().flat_map(|(name, run)| run.apps.iter().map(move |app| row(name, app)));
    table(text, &header, rows);
}

/// What it cost applications that SMs and channels changed hands; nothing where none did.
fn moved(text: &mut String, runs: &[(&String, &CoRun)]) {
    let header = [
        "Scheme",
        "Application",
        "Pages",
        "Pages moved",
        "Cycles in which pages move",
        "in which its SMs rest",
        "in which SMs are vacated",
    ];
    let row = |name: &String, app: &CoRunApp| {
        let moved = app.migration?;
        Some(vec![
            name.clone(),
            escape(&app.app),
            grouped(moved.pages),
            grouped(moved.pages_moved),
            grouped(moved.moving_cycles),
            grouped(moved.resting_cycles),
            grouped(moved.vacating_cycles),
        ])
    };
    let reported = runs.iter().filter(|(_, run)| run.moved_anything());
    let rows: Vec<Vec<String>> =
        reported.flat_map(|(name, run)| run.apps.iter().filter_map(|app| row(name, app))).collect();
    if !rows.is_empty() {
        table(text, &header, rows.into_iter());
        *text += "<p>A page counts each time that it moves; SMs rest while channels change hands, \
                  and are vacated while they hold more CTAs than their share.</p>\n";
    }
}

/// The first decision of each scheme.
fn begins(text: &mut String, runs: &[(&String, &CoRun)]) {
    *text += "<dl>\n";
    for (name, first) in runs.iter().filter_map(|(name, run)| Some((name, run.decisions.first()?)))
    {
        let reason = escape(&first.reason);
        let _ = writeln!(text, "<dt>{name} begins with</dt><dd>{reason}</dd>");
    }
    *text += "</dl>\n";
}

/// Every decision of a scheme, folded; nothing where there is one or are too many.
fn decisions(text: &mut String, name: &str, run: &CoRun) {
    if !(2..=DECISIONS).contains(&run.decisions.len()) {
        return;
    }
    let row = |decision: &DecisionRecord| {
        let time = String::from("the time that it named");
        let wake = if decision.is_timed() { time } else { escape(&decision.wake) };
        vec![grouped(decision.cycle), wake, escape(&decision.reason)]
    };
    let _ = writeln!(text, "<details>\n<summary>Decisions of {name}</summary>");
    table(text, &["Cycle", "Asked because", "Reason"], run.decisions.iter().map(row));
    *text += "</details>\n";
}

/// A figure of merit, which may have no bound.
fn figure(value: f64) -> String {
    if value.is_finite() { format!("{value:.3}") } else { "∞".into() }
}
