//! Does adaptive simultaneous multi-tenancy decide as its paper says (ARCS 2018)?

use proptest::prelude::*;

use gpumodel::core::contract::{AppFacts, AppView, Facts, KernelFacts, Persistent, Plan, Share};
use gpumodel::core::contract::{ProbeApp, ProbeResult, View, Wake, WakeOn};
use gpumodel::core::units::AppId;
use gpumodel::policy::solve::{Amount, Candidate, greedy};
use gpumodel::policy::{Choice, Scheme};

/// A kernel of the paper's table 3, as it was before the transformation.
fn kernel(name: &str, ctas: u64, threads: u32, registers: u32, shared: u32) -> KernelFacts {
    let warps = threads.div_ceil(32);
    let facts = machine(Vec::new());
    let as_written = Persistent::bare();
    let kernel = KernelFacts {
        name: name.to_owned(),
        ctas,
        threads_per_cta: threads,
        warps_per_cta: warps,
        registers_per_thread: registers,
        shared_bytes: shared,
        registers_per_cta: 0,
        shared_bytes_per_cta: 0,
        ctas_per_sm: 0,
        warp_instructions: 1_000_000,
    };
    as_written.of(&kernel, &facts)
}

/// A Tesla K40c (table 2) with applications of one launch each, all there at once.
fn machine(kernels: Vec<KernelFacts>) -> Facts {
    let app = |(id, kernel): (u16, KernelFacts)| AppFacts {
        app: AppId(id),
        name: kernel.name.clone(),
        arrival: 0,
        kernels: vec![kernel],
    };
    Facts {
        sms: 15,
        max_ctas_per_sm: 16,
        max_warps_per_sm: 64,
        registers_per_sm: 65_536,
        shared_bytes_per_sm: 49_152,
        register_unit: 256,
        shared_unit_bytes: 256,
        shared_reserved_bytes: 0,
        channels: 6,
        channel_groups: vec![],
        channel_bytes: 1 << 29,
        page_bytes: 0,
        pages_follow: false,
        core_mhz: 745.0,
        peak_dram_gb_per_s: 288.0,
        peak_l2_gb_per_s: 500.0,
        peak_sm_port_gb_per_s: 23.8,
        peak_ipc_per_sm: 256.0,
        schedulers_per_sm: 4,
        mig: None,
        apps: (0..).zip(kernels).map(app).collect(),
    }
}

/// The scheme's probes: an application alone with `ctas` workers on
/// every SM takes `time(app, ctas)` cycles.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cycles of a test")]
fn reported(
    scheme: &dyn Scheme,
    facts: &Facts,
    time: impl Fn(u16, u32) -> f64,
) -> Vec<ProbeResult> {
    let row = |probe: gpumodel::core::contract::Probe| {
        let app = probe.apps[0];
        let cycles = time(app.0, probe.plan.quota(app, 0)) as u64;
        let warp_instructions = facts.apps[app.index()].kernels[0].warp_instructions;
        let app = ProbeApp { app, cycles, warp_instructions, ..ProbeApp::default() };
        ProbeResult { cycles, apps: vec![app] }
    };
    scheme.probes(facts).unwrap().into_iter().map(row).collect()
}

/// CTAs per SM of each application; `None`: it waits.
fn quotas(plan: &Plan) -> Vec<Option<u32>> {
    let quota = |share: &Share| match share {
        Share::Waiting => None,
        Share::Quota(by_sm) => {
            assert!(by_sm.iter().all(|quota| quota == &by_sm[0]), "the same on every SM");
            Some(by_sm[0])
        }
    };
    plan.shares().iter().map(quota).collect()
}

fn view(now: u64, wake: Wake, apps: Vec<(bool, Option<u64>)>) -> View {
    let app = |(active, left): (bool, Option<u64>)| AppView {
        active,
        finished: false,
        running: left.map(|_| 0).into_iter().collect(),
        ctas_left: left.unwrap_or(0),
        ..AppView::default()
    };
    let apps = apps.into_iter().map(app).collect();
    View { now, wake, since: 0, apps, queue: Vec::new(), channel_owner: Vec::new() }
}

/// Fig. 6: A runs with five CTAs, B comes and both have three, B takes its last block
/// and A grows.
#[test]
fn a_shrinks_when_b_arrives_and_grows_when_b_takes_its_last_block() {
    let mut facts = machine(vec![kernel("A", 3000, 384, 24, 0), kernel("B", 3000, 288, 16, 0)]);
    facts.apps[1].arrival = 100_000;
    let mut scheme = Choice::parse("sim:latency_us=10:window=0").unwrap().make();
    let probes = reported(scheme.as_ref(), &facts, |_, ctas| 3e6 / f64::from(ctas));
    // Application 1 asks; ten microseconds are 7450 cycles.
    let plan = scheme.start(&facts, &probes).unwrap();
    assert_eq!(quotas(&plan), [None, None]);
    assert!(plan.wake().contains(&WakeOn::At(7450)), "{:?}", plan.wake());
    let seen = view(7450, Wake::At(7450), vec![(true, None), (false, None)]);
    let plan = scheme.decide(&facts, &seen).unwrap();
    assert_eq!((quotas(&plan), plan.delay()), (vec![Some(5), None], 7450), "64 warps are 5 CTAs");
    // Application 2 asks; the service hears of it later, and both hear of it later still.
    let seen = view(100_000, Wake::Arrival(AppId(1)), vec![(true, Some(2900)), (true, None)]);
    let plan = scheme.decide(&facts, &seen).unwrap();
    assert_eq!((quotas(&plan), plan.delay()), (vec![Some(5), None], 0), "nothing changes yet");
    let seen = view(107_450, Wake::At(107_450), vec![(true, Some(2890)), (true, None)]);
    let plan = scheme.decide(&facts, &seen).unwrap();
    assert_eq!((quotas(&plan), plan.delay()), (vec![Some(3), Some(3)], 7450));
    assert!(plan.reason().contains("3 of A"), "{}", plan.reason());
    // B takes its last block.
    let last = Wake::LastTaskStarted(AppId(1));
    let seen = view(900_000, last, vec![(true, Some(1000)), (true, Some(0))]);
    let plan = scheme.decide(&facts, &seen).unwrap();
    assert_eq!(quotas(&plan), [Some(3), None], "what runs of B runs on, nothing new begins");
    let seen = view(907_450, Wake::At(907_450), vec![(true, Some(990)), (true, Some(0))]);
    let plan = scheme.decide(&facts, &seen).unwrap();
    assert_eq!(quotas(&plan), [Some(5), None]);
    // A takes its last block, and no application is left to notify.
    let last = Wake::LastTaskStarted(AppId(0));
    let seen = view(2_000_000, last, vec![(true, Some(0)), (false, None)]);
    assert_eq!(quotas(&scheme.decide(&facts, &seen).unwrap()), [None, None]);
}

#[test]
fn messages_that_come_together_are_answered_together() {
    let facts = machine(vec![kernel("A", 3000, 384, 24, 0), kernel("B", 3000, 256, 16, 0)]);
    let mut scheme = Choice::parse("sim:latency_us=10").unwrap().make();
    let probes = reported(scheme.as_ref(), &facts, |_, ctas| 3e6 / f64::from(ctas));
    scheme.start(&facts, &probes).unwrap();
    let seen = view(7450, Wake::At(7450), vec![(true, None), (true, None)]);
    let plan = scheme.decide(&facts, &seen).unwrap();
    assert_eq!(quotas(&plan), [Some(3), Some(3)], "both arrived at once: one decision");
    // Two more while the answers are on their way: one decision when they have arrived.
    for (now, app) in [(8000, 0), (9000, 1)] {
        let last = Wake::LastTaskStarted(AppId(app));
        let seen = view(now, last, vec![(true, Some(0)), (true, Some(0))]);
        let plan = scheme.decide(&facts, &seen).unwrap();
        assert_eq!(plan.delay(), 14_900 - now, "the answers are not held up");
        assert!(plan.wake().contains(&WakeOn::At(15_450)), "{:?}", plan.wake());
    }
}

#[test]
fn where_one_cta_each_does_not_fit_each_has_a_quota_of_one_and_waits() {
    let facts = machine(vec![kernel("A", 100, 256, 40, 30_000), kernel("B", 100, 256, 40, 30_000)]);
    let mut scheme = Choice::parse("sim:latency_us=0").unwrap().make();
    let probes = reported(scheme.as_ref(), &facts, |_, ctas| 1e6 / f64::from(ctas));
    let plan = scheme.start(&facts, &probes).unwrap();
    assert_eq!(quotas(&plan), [Some(1), Some(1)]);
    assert!(plan.reason().contains("does not fit"), "{}", plan.reason());
}

fn any_kernel() -> impl Strategy<Value = KernelFacts> {
    (1_u32..=32, 10_u32..=60, 0_u32..=24_000, 1_u64..5000)
        .prop_map(|(warps, registers, shared, ctas)| {
            kernel("K", ctas, warps * 32, registers, shared)
        })
        .prop_filter("it fits with a quarter more registers", |kernel| {
            let form =
                Persistent { register_factor: 1.23, more_shared_bytes: 8, ..Persistent::bare() };
            form.of(kernel, &machine(Vec::new())).ctas_per_sm > 0
        })
}

/// The resources of an SM that a plan's workers take, and those of one of each.
fn taken(facts: &Facts, reported: &[Option<u32>]) -> (Vec<[u32; 4]>, [u32; 4]) {
    let form = Persistent { register_factor: 1.23, more_shared_bytes: 8, ..Persistent::bare() };
    let need = |app: &AppFacts| {
        let kernel = form.of(&app.kernels[0], facts);
        [kernel.registers_per_cta, kernel.shared_bytes_per_cta, kernel.warps_per_cta, 1]
    };
    let needs: Vec<[u32; 4]> = facts.apps.iter().map(need).collect();
    let mut sum = [0; 4];
    for (need, reported) in needs.iter().zip(reported) {
        for (sum, need) in sum.iter_mut().zip(need) {
            *sum += reported.unwrap_or(0) * need;
        }
    }
    (needs, sum)
}

proptest! {
    #[test]
    fn no_plan_exceeds_the_machine(
        kernels in proptest::collection::vec(any_kernel(), 2..5),
        speeds in proptest::collection::vec(0.1_f64..10.0, 5),
        bends in proptest::collection::vec(0.0_f64..1.2, 5),
    ) {
        let facts = machine(kernels);
        let mut scheme = Choice::parse("sim:latency_us=0").unwrap().make();
        let time = |app: u16, ctas: u32| {
            let app = usize::from(app);
            1e6 * speeds[app] / f64::from(ctas).powf(bends[app])
        };
        let probes = reported(scheme.as_ref(), &facts, time);
        let plan = scheme.start(&facts, &probes).unwrap();
        let reported = quotas(&plan);
        let limits = [65_536, 49_152, 64, 16];
        let (needs, sum) = taken(&facts, &reported);
        let ones: [u32; 4] = std::array::from_fn(|part| needs.iter().map(|need| need[part]).sum());
        if ones.iter().zip(limits).all(|(one, limit)| *one <= limit) {
            prop_assert!(sum.iter().zip(limits).all(|(sum, limit)| *sum <= limit), "{:?} {:?}", reported, sum);
            prop_assert!(reported.iter().all(|quota| quota.is_some_and(|quota| quota > 0)));
        } else {
            prop_assert!(reported.iter().all(|&quota| quota == Some(1)), "{:?}", reported);
        }
    }
}

/// The least time of the slowest over all that fits.
fn exhaustive(whole: Amount, candidates: &[Candidate]) -> f64 {
    fn tried(left: Amount, candidates: &[Candidate], so_far: f64, best: &mut f64) {
        let Some((first, rest)) = candidates.split_first() else {
            *best = best.min(so_far);
            return;
        };
        for &(ctas, time) in &first.configurations {
            if let Some(left) = left.minus(first.need.times(ctas)) {
                tried(left, rest, so_far.max(time), best);
            }
        }
    }
    let mut best = f64::INFINITY;
    tried(whole, candidates, 0.0, &mut best);
    best
}

/// Algorithm 1 against exhaustive search, on 4000 random sets of two to four kernels: no
/// gap. Only the kernel with most time left gets more, so none has more than the longest
/// time requires; when that kernel cannot have more, no split is shorter.
#[test]
fn the_greedy_choice_is_the_best_of_all() {
    let whole =
        Amount { registers: 65_536, shared_bytes: 49_152, threads: 2048, warps: 64, cta_slots: 16 };
    let mut state = 7_u64;
    let mut draw = |most: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let (mut sets, mut worst) = (0, 1.0_f64);
    while sets < 4000 {
        let candidate = |draw: &mut dyn FnMut(u64) -> u64| {
            let warps = 1 + draw(16);
            let need = Amount {
                registers: warps * 32 * (10 + draw(50)),
                shared_bytes: draw(12_000),
                threads: warps * 32,
                warps,
                cta_slots: 1,
            };
            let (scale, limit) = (1.0 + draw(100) as f64, 1 + draw(16));
            let time = |ctas: u64| scale / (ctas.min(limit) as f64) * (1.0 + 0.1 * draw(3) as f64);
            Candidate::pruned(need, &(1..=16).map(time).collect::<Vec<_>>())
        };
        let candidates: Vec<Candidate> = (0..2 + draw(3)).map(|_| candidate(&mut draw)).collect();
        let Some(chosen) = greedy(whole, &candidates) else { continue };
        let time = |(one, &place): (&Candidate, &usize)| one.configurations[place].1;
        let found = candidates.iter().zip(&chosen).map(time).fold(0.0, f64::max);
        let gap = found / exhaustive(whole, &candidates);
        assert!(gap > 1.0 - 1e-12, "nothing is better than the best: {gap}");
        sets += 1;
        worst = worst.max(gap);
    }
    println!("greedy: at most {worst:.6} times the best of all, on {sets} sets");
    assert!(worst < 1.0 + 1e-12, "{worst}");
}
