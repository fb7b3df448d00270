//! Applications together: one line per scheme, then one per application.

use std::fmt::Write as _;

use super::{brief, decimal, plain};
use crate::record::{Analysis, CoRun, CoRunApp};
use crate::report::mix::scheme_names;
use crate::report::number::{energy, percent};

/// The co-runs of `analysis` as text: a line per scheme with throughput,
/// turnaround, fairness, makespan and energy, then a line per scheme and
/// application, then what the figures lean on. Empty without co-runs.
#[must_use]
pub fn corun(analysis: &Analysis) -> String {
    if analysis.coruns.is_empty() {
        return String::new();
    }
    let names = scheme_names(&analysis.coruns);
    let named = || names.iter().zip(&analysis.coruns);
    let schemes = named().map(|(name, run)| scheme(name, run)).collect();
    let apps = named().flat_map(|(name, run)| run.apps.iter().map(move |a| app(name, a))).collect();
    let mut text = plain(SCHEMES, schemes) + "\n" + &plain(APPS, apps);
    for (name, run) in named() {
        for note in &run.notes {
            let _ = writeln!(text, "note: {}: {}", brief(name, 40), brief(note, 400));
        }
    }
    text
}

const SCHEMES: [&str; 10] = [
    "scheme",
    "STP",
    "ANTT",
    "harmonic",
    "fairness",
    "IPC",
    "makespan",
    "speedup",
    "energy",
    "decisions",
];

fn scheme(name: &str, run: &CoRun) -> [String; SCHEMES.len()] {
    let makespan = (run.makespan_cycles > 0).then_some(run.makespan_cycles);
    [
        brief(name, 20),
        format!("{:.3}", run.stp),
        format!("{:.3}", run.antt),
        format!("{:.3}", run.harmonic_speedup),
        format!("{:.3}", run.fairness_min_speedup),
        format!("{:.2}", run.ipc_throughput),
        makespan.map_or_else(|| "–".into(), |cycles| cycles.to_string()),
        decimal(makespan.map(|_| run.makespan_speedup), 3),
        energy(run.energy_joules),
        run.decisions.len().to_string(),
    ]
}

const APPS: [&str; 9] = [
    "scheme",
    "application",
    "cycles",
    "IPC",
    "slowdown",
    "progress",
    "SMs",
    "MPKI (warp)",
    "DRAM share",
];

fn app(scheme: &str, app: &CoRunApp) -> [String; APPS.len()] {
    let times = !app.memory_only;
    [
        brief(scheme, 20),
        brief(&app.app, 22),
        app.cycles.to_string(),
        decimal(times.then_some(app.ipc), 2),
        decimal(times.then_some(app.slowdown), 3),
        decimal(times.then_some(app.normalized_progress), 3),
        app.sms.to_string(),
        format!("{:.2}", app.mpki_warp),
        percent(Some(app.dram_share)),
    ]
}
