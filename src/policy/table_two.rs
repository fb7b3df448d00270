//! Kernels to test schemes with: the facts of Warped-Slicer's Tables I and II.

use gpumodel_core::contract::{AppFacts, AppView, Facts, KernelFacts, View, Wake};
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
        apps: names.iter().enumerate().map(app).collect(),
    }
}

/// Everybody runs their first launch and has done nothing since the last decision.
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
