//! Applications together: one line per scheme, then one per application.

use super::{brief, plain};
use crate::record::{Analysis, CoRun, CoRunApp};

/// The co-runs of `analysis` as text: a line per scheme with throughput,
/// turnaround, fairness and makespan, then a line per scheme and application.
/// Empty without co-runs.
#[must_use]
pub fn corun(analysis: &Analysis) -> String {
    if analysis.coruns.is_empty() {
        return String::new();
    }
    let schemes = analysis.coruns.iter().map(scheme).collect();
    let apps = analysis.coruns.iter().flat_map(|run| run.apps.iter().map(move |a| app(run, a)));
    let apps: Vec<_> = apps.collect();
    plain(SCHEMES, schemes) + "\n" + &plain(APPS, apps)
}

const SCHEMES: [&str; 8] =
    ["scheme", "STP", "ANTT", "fairness", "IPC", "makespan", "speedup", "decisions"];

fn scheme(run: &CoRun) -> [String; SCHEMES.len()] {
    [
        brief(&run.scheme, 24),
        format!("{:.3}", run.stp),
        format!("{:.3}", run.antt),
        format!("{:.3}", run.fairness_min_speedup),
        format!("{:.2}", run.ipc_throughput),
        run.makespan_cycles.to_string(),
        format!("{:.3}", run.makespan_speedup),
        run.decisions.len().to_string(),
    ]
}

const APPS: [&str; 8] =
    ["scheme", "application", "cycles", "IPC", "slowdown", "progress", "SMs", "MPKI (warp)"];

fn app(run: &CoRun, app: &CoRunApp) -> [String; APPS.len()] {
    [
        brief(&run.scheme, 24),
        brief(&app.app, 28),
        app.cycles.to_string(),
        format!("{:.2}", app.ipc),
        format!("{:.3}", app.slowdown),
        format!("{:.3}", app.normalized_progress),
        app.sms.to_string(),
        format!("{:.2}", app.mpki_warp),
    ]
}
