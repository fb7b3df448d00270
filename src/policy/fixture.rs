//! Facts and views to test schemes with: the machines, kernels and benchmarks of
//! Warped-Slicer's Tables I and II and of UGPU's Tables 1 and 2.

use gpumodel_core::contract::{
    AppFacts, AppView, Facts, KernelFacts, Plan, ProbeApp, ProbeResult, View, Wake,
};
use gpumodel_core::units::{AppId, Cycle, to_u16};

/// Name, threads of a CTA, CTAs of an SM, registers and shared memory of an SM in
/// use in percent (table II; CTAs of an SM are the most that its percentages and
/// table III's splits allow), and CTAs under even splitting of two (table III).
pub(super) const KERNELS: [(&str, u32, u32, u32, u32, u32); 10] = [
    ("BLK", 128, 8, 95, 0, 4),
    ("BFS", 512, 3, 71, 0, 1),
    ("DXT", 64, 8, 56, 33, 4),
    ("HOT", 256, 3, 84, 19, 1),
    ("IMG", 64, 8, 43, 0, 4),
    ("KNN", 256, 6, 37, 0, 3),
    ("LBM", 120, 7, 98, 0, 3),
    ("MM", 128, 5, 86, 5, 2),
    ("MVP", 192, 8, 74, 0, 4),
    ("NN", 169, 8, 94, 0, 4),
];

/// One launch of a kernel of the table.
pub(super) fn kernel(name: &str) -> KernelFacts {
    let row = KERNELS.iter().find(|row| row.0 == name).unwrap();
    let &(_, threads, ctas, registers, shared, _) = row;
    KernelFacts {
        name: name.to_owned(),
        ctas: 10_000,
        threads_per_cta: threads,
        warps_per_cta: threads.div_ceil(32),
        registers_per_thread: 32_768 * registers / 100 / ctas / threads,
        shared_bytes: 49_152 * shared / 100 / ctas,
        registers_per_cta: 32_768 * registers / 100 / ctas,
        shared_bytes_per_cta: 49_152 * shared / 100 / ctas,
        ctas_per_sm: ctas,
        warp_instructions: 1_000_000,
    }
}

/// Table I with one application of one launch per name; all arrive at 0.
pub(super) fn facts(names: &[&str]) -> Facts {
    let app = |(index, name): (usize, &&str)| AppFacts {
        app: AppId(to_u16(index)),
        name: (*name).to_owned(),
        arrival: 0,
        kernels: vec![kernel(name)],
    };
    Facts {
        sms: 16,
        max_ctas_per_sm: 8,
        max_warps_per_sm: 48,
        registers_per_sm: 32_768,
        shared_bytes_per_sm: 49_152,
        register_unit: 1,
        shared_unit_bytes: 1,
        shared_reserved_bytes: 0,
        channels: 6,
        channel_groups: vec![],
        channel_bytes: 1 << 29,
        page_bytes: 0,
        pages_follow: false,
        core_mhz: 1400.0,
        peak_dram_gb_per_s: 177.4,
        peak_l2_gb_per_s: 300.0,
        peak_sm_port_gb_per_s: 44.8,
        peak_ipc_per_sm: 64.0,
        schedulers_per_sm: 2,
        mig: None,
        apps: names.iter().enumerate().map(app).collect(),
    }
}

/// Every application runs its first launch and has done nothing since the last decision.
pub(super) fn view(facts: &Facts, now: Cycle, wake: Wake) -> View {
    let app = AppView {
        active: true,
        running: vec![0],
        ctas_by_sm: vec![0; usize::from(facts.sms)],
        ctas_left: 1000,
        warp_instructions_by_sm: vec![0.0; usize::from(facts.sms)],
        memory_stall_slots_by_sm: vec![0.0; usize::from(facts.sms)],
        ..AppView::default()
    };
    View {
        now,
        wake,
        since: 0,
        apps: vec![app; facts.apps.len()],
        queue: Vec::new(),
        channel_owner: vec![None; 6],
    }
}

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
pub(super) fn ugpu_facts(names: &[&str]) -> Facts {
    let mut facts = facts(&vec!["IMG"; names.len()]);
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

/// Thread instructions, requests and misses of 128 bytes: so many misses per kilo thread
/// instructions, of requests that hit at this rate.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "some hundreds of millions at most"
)]
pub(super) fn traffic(mpki: f64, hit_rate: f64) -> [u64; 3] {
    let misses = mpki * 4e4;
    [10_000_000, (misses / (1.0 - hit_rate)).round() as u64, misses.round() as u64]
}

/// What a scheme sees at cycle `now`, `span` cycles after the last decision: each application
/// has executed so many thread instructions per cycle, with the misses of its benchmark.
pub(super) fn epoch_view(facts: &Facts, now: Cycle, span: Cycle, ipc: &[u64]) -> View {
    let mut seen = view(facts, now, Wake::At(now));
    seen.since = now - span;
    for ((app, known), ipc) in seen.apps.iter_mut().zip(&facts.apps).zip(ipc) {
        let mpki = BENCHMARKS.iter().find(|row| row.0 == known.name).unwrap().1;
        let [instructions, requests, misses] = traffic(mpki, 0.0);
        let executed = ipc * span;
        let of = |count: u64| count * executed / instructions;
        app.thread_instructions = executed;
        app.l2 = (of(requests), of(misses));
    }
    seen
}

/// Runs of each application alone: a million cycles at so many thread instructions per
/// cycle, with the misses of its benchmark.
pub(super) fn solo_probes(facts: &Facts, ipc: &[u64]) -> Vec<ProbeResult> {
    let cycles = 1_000_000;
    let seen = epoch_view(facts, cycles, cycles, ipc);
    let row = |(place, seen): (usize, &AppView)| ProbeApp {
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
