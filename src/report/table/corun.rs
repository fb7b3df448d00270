//! Applications together: one line per scheme, then one per application.

use std::fmt::Write as _;

use super::{brief, decimal, plain, words};
use crate::format::{energy, held, percent};
use crate::mix::scheme_names;
use crate::notes::notes;
use crate::results::{Analysis, CoRun, CoRunApp};

/// Letters of a scheme's name in one line, if its settings can be parted.
const LINE: usize = 36;
/// Letters of the longest name that is shown whole.
const WHOLE: usize = 400;

/// The co-runs of `analysis` as text: a line per scheme with throughput,
/// turnaround, fairness, makespan and energy, then a line per scheme and
/// application, what moved where channels were owned, with what each scheme began,
/// and what the figures lean on. Empty without co-runs.
#[must_use]
pub fn corun(analysis: &Analysis) -> String {
    if analysis.coruns.is_empty() {
        return String::new();
    }
    let names = scheme_names(&analysis.coruns);
    let named = || names.iter().zip(&analysis.coruns);
    let schemes = named().map(|(name, run)| scheme(name, run)).collect();
    let apps = named().flat_map(|(name, run)| run.apps.iter().map(move |a| app(name, a))).collect();
    let mut text = plain(SCHEMES, schemes) + "\n" + &shares(apps, divided(&analysis.coruns));
    let moved: Vec<_> = named().flat_map(|(name, run)| moved(name, run)).collect();
    if !moved.is_empty() {
        text += &format!("\n{}", words(MOVED.map(String::from).into(), moved, |at| at == 0));
    }
    for (name, run) in named() {
        if let Some(first) = run.decisions.first() {
            let _ =
                writeln!(text, "begins: {}: {}", brief(name, WHOLE), brief(&first.reason, WHOLE));
        }
    }
    let briefly: Vec<String> = names.iter().map(|name| brief(name, WHOLE)).collect();
    for (note, schemes) in notes(&briefly, &analysis.coruns) {
        let _ = writeln!(text, "note: {}: {}", schemes, brief(&note, 400));
    }
    text
}

/// `name` whole, in lines that begin at a setting.
fn lines(name: &str) -> String {
    let mut text = String::new();
    let mut length = 0;
    for (place, part) in brief(name, WHOLE).split(':').enumerate() {
        let more = part.chars().count() + 1;
        if place > 0 && length + more > LINE {
            text.push('\n');
            length = 0;
        }
        if place > 0 {
            text.push(':');
        }
        text.push_str(part);
        length += more;
    }
    text
}

/// Whether applications have had channels of their own.
fn divided(runs: &[CoRun]) -> bool {
    let apps = || runs.iter().flat_map(|run| &run.apps).filter(|app| app.channels > 0);
    let most = apps().map(|app| app.channels).max();
    apps().any(|app| app.migration.is_some() || Some(app.channels) < most)
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
        lines(name),
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

const APPS: [&str; 10] = [
    "scheme",
    "application",
    "cycles",
    "IPC",
    "slowdown",
    "progress",
    "mean SMs",
    "mean channels",
    "MPKI (warp)",
    "DRAM share",
];

/// Where channels are, which only those who own some are told.
const CHANNELS: usize = 7;

/// The table of applications; without channels where they are not `divided`.
fn shares(rows: Vec<[String; APPS.len()]>, divided: bool) -> String {
    let reported = |row: [String; APPS.len()]| -> Vec<String> {
        let cells = row.into_iter().enumerate();
        cells.filter(|(column, _)| divided || *column != CHANNELS).map(|(_, cell)| cell).collect()
    };
    let rows = rows.into_iter().map(reported).collect();
    words(reported(APPS.map(String::from)), rows, |column| column == 0)
}

fn app(scheme: &str, app: &CoRunApp) -> [String; APPS.len()] {
    let times = !app.memory_only;
    [
        lines(scheme),
        brief(&app.app, 22),
        app.cycles.to_string(),
        decimal(times.then_some(app.ipc), 2),
        decimal(times.then_some(app.slowdown), 3),
        decimal(times.then_some(app.normalized_progress), 3),
        held(app.mean_sms, app.sms),
        held(app.mean_channels, app.channels),
        format!("{:.2}", app.mpki_warp),
        percent(Some(app.dram_share)),
    ]
}

const MOVED: [&str; 7] = [
    "scheme",
    "application",
    "pages",
    "pages moved",
    "cycles moving",
    "cycles resting",
    "cycles vacating",
];

/// What it cost each application that SMs and channels changed hands; nothing where
/// none did.
fn moved(scheme: &str, run: &CoRun) -> Vec<Vec<String>> {
    let line = |app: &CoRunApp| {
        let moved = app.migration?;
        let counts = [
            moved.pages,
            moved.pages_moved,
            moved.moving_cycles,
            moved.resting_cycles,
            moved.vacating_cycles,
        ];
        let names = [lines(scheme), brief(&app.app, 22)];
        Some(names.into_iter().chain(counts.map(|count| count.to_string())).collect())
    };
    let apps = run.apps.iter().filter(|_| run.moved_anything());
    apps.filter_map(line).collect()
}
