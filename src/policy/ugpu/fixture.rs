//! The machine and the benchmarks of UGPU's Tables 1 and 2, to test schemes with.

use gpumodel_core::contract::{Facts, Plan, ProbeApp, ProbeResult, View, Wake};
use gpumodel_core::units::{AppId, Cycle, to_u16};

use super::super::table_two;
use super::demand::Traffic;

/// Name and L2 misses per kilo thread instructions (UGPU, Table 2; that they are thread
/// instructions follows from eq. 1); the first ten count as memory-bound.
pub(super) const BENCHMARKS: [(&str, f64); 15] = [
    ("PVC", 4.79),
    ("LBM", 6.09),
    ("BH", 1.54),
    ("DWT2D", 2.72),
    ("EULER3D", 4.39),
    ("FWT", 2.23),
    ("LAVAMD", 10.45),
    ("SC", 3.42),
    ("CONVS", 1.14),
    ("SRAD", 1.09),
    ("DXTC", 0.0004),
    ("HOTSPOT", 0.08),
    ("PF", 0.06),
    ("CP", 0.02),
    ("MRI-Q", 0.01),
];

/// Table 1 with one application per name, each of one launch; all arrive at 0. Groups
/// hold one channel of each stack.
pub(super) fn facts(names: &[&str]) -> Facts {
    let mut facts = table_two::facts(&vec!["IMG"; names.len()]);
    for (app, name) in facts.apps.iter_mut().zip(names) {
        (*name).clone_into(&mut app.name);
    }
    Facts {
        sms: 80,
        max_ctas_per_sm: 32,
        max_warps_per_sm: 64,
        registers_per_sm: 65_536,
        shared_bytes_per_sm: 98_304,
        channels: 32,
        channel_groups: (0..8).map(|die| (0..4).map(|stack| 8 * stack + die).collect()).collect(),
        channel_bytes: 1 << 29,
        page_bytes: 4096,
        pages_follow: true,
        core_mhz: 1400.0,
        peak_dram_gb_per_s: 901.12,
        peak_l2_gb_per_s: 2867.2,
        peak_sm_port_gb_per_s: 44.8,
        peak_ipc_per_sm: 64.0,
        ..facts
    }
}

/// Counters with so many misses of 128 bytes per kilo thread instructions, of which a
/// part would have been hits.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "some hundreds of millions at most"
)]
pub(super) fn traffic(mpki: f64, hit_rate: f64) -> Traffic {
    let misses = mpki * 4e4;
    Traffic {
        thread_instructions: 10_000_000,
        requests: (misses / (1.0 - hit_rate)).round() as u64,
        misses: misses.round() as u64,
    }
}

/// A look at cycle `now`, `span` cycles behind the one before; each application has
/// executed so many thread instructions per cycle, with the misses of its benchmark.
pub(super) fn look(facts: &Facts, now: Cycle, span: Cycle, ipc: &[u64]) -> View {
    let mut seen = table_two::view(facts, now, Wake::At(now));
    seen.since = now - span;
    for ((app, known), ipc) in seen.apps.iter_mut().zip(&facts.apps).zip(ipc) {
        let mpki = BENCHMARKS.iter().find(|row| row.0 == known.name).unwrap().1;
        let traffic = traffic(mpki, 0.0);
        let times = ipc * span;
        let of = |count: u64| count * times / traffic.thread_instructions;
        app.thread_instructions = times;
        app.l2 = (of(traffic.requests), of(traffic.misses));
    }
    seen
}

/// Runs of each application alone: a million cycles at so many thread instructions per
/// cycle, with the misses of its benchmark.
pub(super) fn alone(facts: &Facts, ipc: &[u64]) -> Vec<ProbeResult> {
    let cycles = 1_000_000;
    let seen = look(facts, cycles, cycles, ipc);
    let row = |(place, seen): (usize, &gpumodel_core::contract::AppView)| ProbeApp {
        app: AppId(to_u16(place)),
        cycles,
        thread_instructions: seen.thread_instructions,
        l2_accesses: seen.l2.0,
        l2_hits: seen.l2.0 - seen.l2.1,
        ..ProbeApp::default()
    };
    let rows = seen.apps.iter().enumerate().map(row);
    rows.map(|row| ProbeResult { cycles, apps: vec![row] }).collect()
}

/// SMs and channels of each application.
pub(super) fn parts(facts: &Facts, plan: &Plan) -> Vec<(usize, usize)> {
    let sms =
        |app: AppId| (0..usize::from(facts.sms)).filter(|&sm| plan.quota(app, sm) > 0).count();
    let channels = |place: usize| plan.channels().get(place).map_or(0, Vec::len);
    let apps = 0..facts.apps.len();
    apps.map(|place| (sms(AppId(to_u16(place))), channels(place))).collect()
}
