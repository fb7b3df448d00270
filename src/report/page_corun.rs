//! The part of a report's page that is about applications together.

use std::fmt::Write as _;

use super::corun_notes::notes;
use super::escape;
use super::mix::scheme_names;
use super::number::{energy, grouped, held, percent};
use super::page::table;
use crate::results::{CoRun, CoRunApp, DecisionRecord};

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
