//! Facts of Warped-Slicer's decisions, on hand-made views.

use super::super::fixture::{facts, kernel, view};
use super::super::{Choice, Scheme};
use gpumodel_core::contract::{
    DispatchOrder, Facts, Plan, ProbeApp, ProbeResult, Share, View, Wake, WakeOn,
};
use gpumodel_core::units::{AppId, Cycle};

/// Instructions per cycle of an application with so many CTAs on an SM, and the
/// share of slots that memory stalls.
type Speed = fn(usize, u32) -> (f64, f64);

const ONE: AppId = AppId(0);
const TWO: AppId = AppId(1);
const THREE: AppId = AppId(2);

/// The first rises with every CTA, the second has all its speed with two.
fn line_and_flat(app: usize, ctas: u32) -> (f64, f64) {
    let ctas = f64::from(ctas);
    (if app == 1 { ctas.min(2.0) } else { ctas }, 0.0)
}

fn make(text: &str) -> Box<dyn Scheme> {
    Choice::parse(text).unwrap().make()
}

/// The cycle of the next decision that the plan names.
fn at(plan: &Plan) -> Option<Cycle> {
    plan.wake().iter().find_map(|wake| match wake {
        WakeOn::At(cycle) => Some(*cycle),
        _ => None,
    })
}

/// What a view shows after `cycles` under a plan: every SM holds its quotas.
fn shown(facts: &Facts, plan: &Plan, wake: Wake, now: Cycle, cycles: Cycle, speed: Speed) -> View {
    let mut view = view(facts, now, wake);
    let cycles = cycles as f64;
    for (index, app) in view.apps.iter_mut().enumerate() {
        for sm in 0..usize::from(facts.sms) {
            let ctas = plan.quota(facts.apps[index].app, sm);
            let (ipc, stalled) = if ctas > 0 { speed(index, ctas) } else { (0.0, 0.0) };
            app.ctas_by_sm[sm] = ctas;
            app.warp_instructions_by_sm[sm] = ipc * cycles;
            app.memory_stall_slots_by_sm[sm] = stalled * cycles * 2.0;
        }
    }
    view
}

/// Decides at every cycle that the plans name until one names none.
fn settle(
    scheme: &mut dyn Scheme,
    facts: &Facts,
    mut plan: Plan,
    mut now: Cycle,
    speed: Speed,
) -> (Plan, Cycle) {
    while let Some(next) = at(&plan) {
        let seen = shown(facts, &plan, Wake::At(next), next, next - now, speed);
        plan = scheme.decide(facts, &seen).unwrap();
        now = next;
    }
    (plan, now)
}

fn settled(text: &str, names: &[&str], speed: Speed) -> (Box<dyn Scheme>, Facts, Plan, Cycle) {
    let (facts, mut scheme) = (facts(names), make(text));
    let plan = scheme.start(&facts, &[]).unwrap();
    let (plan, now) = settle(scheme.as_mut(), &facts, plan, 0, speed);
    (scheme, facts, plan, now)
}

fn quotas(plan: &Plan, app: AppId) -> Vec<u32> {
    (0..16).map(|sm| plan.quota(app, sm)).collect()
}

#[test]
fn two_kernels_are_sampled_with_1_to_8_ctas_on_eight_sms_each() {
    let facts = facts(&["IMG", "NN"]);
    let mut scheme = make("warped-slicer");
    let plan = scheme.start(&facts, &[]).unwrap();
    let rising = [1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!(quotas(&plan, ONE), [rising, [0; 8]].concat());
    assert_eq!(quotas(&plan, TWO), [[0; 8], rising].concat());
    assert_eq!(at(&plan), Some(20_000), "it warms up for 20 K cycles");
    let warm = shown(&facts, &plan, Wake::At(20_000), 20_000, 20_000, line_and_flat);
    let sampling = scheme.decide(&facts, &warm).unwrap();
    assert_eq!(at(&sampling), Some(25_000), "it samples for 5 K cycles");
    assert_eq!(sampling.shares(), plan.shares());
}

#[test]
fn the_split_is_algorithm_1_of_the_samples() {
    // Line: 1/8 per CTA. Flat: 1/2, 1. Registers: 5.4 % and 11.75 % per CTA.
    let (_, _, plan, now) = settled("warped-slicer", &["IMG", "NN"], line_and_flat);
    assert_eq!(now, 25_000);
    assert_eq!((quotas(&plan, ONE), quotas(&plan, TWO)), (vec![6; 16], vec![2; 16]));
    assert_eq!(plan.order(), &DispatchOrder::RoundRobin);
    assert!(plan.reason().contains("6 of IMG, 2 of NN"), "{}", plan.reason());
    assert!(plan.reason().contains("75 %"), "{}", plan.reason());
    let curve = &plan.curves()[1];
    assert_eq!((curve.app, curve.chosen), (TWO, 2));
    assert_eq!(curve.ipc[..3], [Some(1.0), Some(2.0), Some(2.0)]);
    assert_eq!(curve.normalized[0], Some(0.5));
    let [one, two] = plan.regions() else { panic!("a region each") };
    assert_eq!((one.ctas, two.ctas), (6, 2));
    assert_eq!(two.first_register, one.registers, "side by side");
    assert_eq!(one.registers, 6 * kernel("IMG").registers_per_cta);
    assert!(!plan.wake().is_empty());
}

#[test]
fn samples_are_scaled_by_memory_stalls() {
    // Speed does not depend on CTAs, but all of it is memory: eq. 3 and 4 say that
    // with CTA_avg = 4.5 each CTA is worth 1/4.5, so that all CTAs are useful.
    let flat: Speed = |_, _| (1.0, 1.0);
    let (_, _, scaled, _) =
        settled("warped-slicer:factor=0:scaling=printed", &["DXT", "IMG"], flat);
    assert_eq!((scaled.quota(ONE, 0), scaled.quota(TWO, 0)), (4, 4));
    let first = scaled.curves()[0].normalized[0].unwrap();
    assert!((first - 0.125).abs() < 1e-9, "{first}");
    let (_, _, plain, _) = settled("warped-slicer:scaling=off", &["DXT", "IMG"], flat);
    assert_eq!((plain.quota(ONE, 0), plain.quota(TWO, 0)), (1, 1), "one CTA is as good");
    // The inverse: one CTA next to 4.5 had a share of the bandwidth below its own.
    let (_, _, inverse, _) = settled("warped-slicer:factor=0", &["DXT", "IMG"], flat);
    assert_eq!((inverse.quota(ONE, 0), inverse.quota(TWO, 0)), (1, 1));
    assert!((inverse.curves()[0].normalized[7].unwrap() - 0.125).abs() < 1e-9);
}

#[test]
fn an_application_that_would_lose_too_much_gets_own_sms() {
    // BFS 1/3 and HOT 1/3 or 2/3: (2, 1) and (1, 2) fit. The slowest keeps a third.
    let line: Speed = |_, ctas| (f64::from(ctas), 0.0);
    let (_, _, plan, _) = settled("warped-slicer", &["HOT", "BFS"], line);
    assert_eq!(quotas(&plan, ONE), [[8; 8], [0; 8]].concat());
    assert_eq!(quotas(&plan, TWO), [[0; 8], [8; 8]].concat());
    assert!(plan.reason().contains("33 % of its best, less than 60 %"), "{}", plan.reason());
    assert_eq!(plan.curves()[0].chosen, 0);
    let (_, _, loss, _) = settled("warped-slicer:threshold_on=loss", &["HOT", "BFS"], line);
    assert!(loss.reason().contains("less than 40 %"), "{}", loss.reason());
    let (_, _, shared, _) = settled("warped-slicer:factor=0.6", &["HOT", "BFS"], line);
    assert_eq!((shared.quota(ONE, 3), shared.quota(TWO, 3)), (2, 1));
}

#[test]
fn counts_that_have_no_sm_are_sampled_in_rounds_that_only_rise() {
    let facts = facts(&["IMG", "NN", "KNN"]);
    let mut scheme = make("warped-slicer:factor=0");
    let first = scheme.start(&facts, &[]).unwrap();
    assert_eq!(quotas(&first, ONE)[..6], [1, 2, 3, 4, 5, 6], "six SMs");
    assert_eq!(quotas(&first, THREE)[11..], [1, 2, 3, 4, 5], "five SMs");
    let line: Speed = |_, ctas| (f64::from(ctas), 0.0);
    let mut plan = first.clone();
    for (now, next) in [(0, 20_000), (20_000, 25_000)] {
        assert_eq!(at(&plan), Some(next));
        let seen = shown(&facts, &plan, Wake::At(next), next, next - now, line);
        plan = scheme.decide(&facts, &seen).unwrap();
    }
    assert_eq!(quotas(&plan, ONE)[..6], [7, 8, 8, 8, 8, 8]);
    assert_eq!(quotas(&plan, THREE)[11..], [6; 5], "an SM holds six of it");
    let (last, now) = settle(scheme.as_mut(), &facts, plan, 25_000, line);
    assert_eq!(now, 35_000, "5 K cycles to settle and 5 K to sample");
    let all: Vec<usize> = last.curves().iter().map(|curve| curve.ipc.len()).collect();
    assert_eq!(all, [8, 8, 6]);
    assert!(last.curves().iter().all(|curve| curve.ipc.iter().all(Option::is_some)));
    assert_eq!([ONE, TWO, THREE].map(|app| last.quota(app, 0)), [3, 3, 2]);
}

#[test]
fn counts_repeat_where_there_are_more_sms_than_counts() {
    let facts = facts(&["HOT", "BFS"]);
    let plan = make("warped-slicer").start(&facts, &[]).unwrap();
    assert_eq!(quotas(&plan, ONE)[..8], [1, 2, 3, 1, 2, 3, 1, 2]);
}

#[test]
fn an_arriving_application_is_sampled_first_while_the_others_keep_their_quotas() {
    let mut facts = facts(&["IMG", "NN", "KNN"]);
    facts.apps[2].arrival = 100_000;
    let mut scheme = make("warped-slicer:factor=0");
    let start = scheme.start(&facts, &[]).unwrap();
    assert_eq!(start.shares()[2], Share::Waiting);
    let mut seen = shown(&facts, &start, Wake::At(20_000), 20_000, 20_000, line_and_flat);
    seen.apps[2].active = false;
    let sampling = scheme.decide(&facts, &seen).unwrap();
    (seen.now, seen.wake) = (25_000, Wake::At(25_000));
    let pair = scheme.decide(&facts, &seen).unwrap();
    assert_eq!((at(&sampling), at(&pair)), (Some(25_000), None));
    let arrival = shown(&facts, &pair, Wake::Arrival(THREE), 100_000, 75_000, line_and_flat);
    let plan = scheme.decide(&facts, &arrival).unwrap();
    assert_eq!(plan.order(), &DispatchOrder::Priority(vec![THREE, ONE, TWO]));
    assert_eq!(quotas(&plan, THREE), [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4]);
    assert_eq!(quotas(&plan, ONE), quotas(&pair, ONE));
    let (after, now) = settle(scheme.as_mut(), &facts, plan, 100_000, line_and_flat);
    assert_eq!(now, 125_000);
    assert!([ONE, TWO, THREE].iter().all(|&app| after.quota(app, 0) > 0), "{}", after.reason());
}

#[test]
fn the_last_application_has_everything() {
    let (mut scheme, facts, plan, _) = settled("warped-slicer", &["IMG", "NN"], line_and_flat);
    let mut end = shown(&facts, &plan, Wake::AppEnd(ONE), 30_000, 5000, line_and_flat);
    (end.apps[0].active, end.apps[0].finished) = (false, true);
    let alone = scheme.decide(&facts, &end).unwrap();
    assert_eq!((alone.shares()[0].clone(), quotas(&alone, TWO)), (Share::Waiting, vec![8; 16]));
    assert!(alone.regions().is_empty());
}

#[test]
fn a_sustained_change_of_ipc_is_sampled_when_it_has_rested() {
    let (mut scheme, facts, plan, _) = settled("warped-slicer", &["IMG", "NN"], line_and_flat);
    let asks = WakeOn::IpcShift { fraction: 0.5, sustained: 5000 };
    assert!(plan.wake().contains(&asks));
    let shift = |now| shown(&facts, &plan, Wake::IpcShift(TWO), now, 1000, line_and_flat);
    let early = scheme.decide(&facts, &shift(124_999)).unwrap();
    assert_eq!((early.shares(), at(&early)), (plan.shares(), None), "rests 100 K cycles");
    let mut tail = shift(125_000);
    tail.apps[1].ctas_left = 0;
    assert_eq!(at(&scheme.decide(&facts, &tail).unwrap()), None, "no CTAs are left to sample");
    let again = scheme.decide(&facts, &shift(125_000)).unwrap();
    assert_eq!(at(&again), Some(145_000));
    assert_eq!(again.order(), &DispatchOrder::Priority(vec![TWO, ONE]));
    let never = settled("warped-slicer:ipc_shift=0", &["IMG", "NN"], line_and_flat).2;
    assert_eq!(never.wake(), [WakeOn::KernelBegin, WakeOn::KernelEnd]);
}

#[test]
fn a_new_kernel_is_sampled_and_a_sampled_one_is_not() {
    let mut facts = facts(&["IMG", "NN"]);
    facts.apps[0].kernels = vec![kernel("IMG"), kernel("IMG"), kernel("DXT")];
    let mut scheme = make("warped-slicer");
    let start = scheme.start(&facts, &[]).unwrap();
    let (plan, now) = settle(scheme.as_mut(), &facts, start, 0, line_and_flat);
    let begin = |launch: usize, now| {
        let mut seen = shown(&facts, &plan, Wake::KernelBegin(ONE), now, 1000, line_and_flat);
        seen.apps[0].running = vec![launch];
        seen
    };
    let same = scheme.decide(&facts, &begin(1, now + 1000)).unwrap();
    assert_eq!((same.shares(), at(&same)), (plan.shares(), None));
    let other = scheme.decide(&facts, &begin(2, now + 2000)).unwrap();
    assert_eq!(at(&other), Some(now + 22_000));
    assert_eq!(other.order(), &DispatchOrder::Priority(vec![ONE, TWO]));
}

#[test]
fn the_algorithm_takes_its_time_when_it_changes_something() {
    let (mut scheme, facts, plan, now) =
        settled("warped-slicer:delay=1000", &["IMG", "NN"], line_and_flat);
    assert_eq!(plan.delay(), 1000);
    let seen = shown(&facts, &plan, Wake::KernelEnd(ONE), now + 500, 500, line_and_flat);
    let same = scheme.decide(&facts, &seen).unwrap();
    assert_eq!((same.delay(), same.shares()), (500, plan.shares()), "no sooner for a wake");
    let seen = shown(&facts, &plan, Wake::KernelEnd(ONE), now + 1500, 500, line_and_flat);
    let same = scheme.decide(&facts, &seen).unwrap();
    assert_eq!((same.delay(), same.shares()), (0, plan.shares()), "it is in force");
}

#[test]
fn an_application_without_samples_leaves_sms_to_the_other() {
    let idle: Speed = |app, ctas| if app == 0 { (f64::from(ctas), 0.0) } else { (0.0, 0.0) };
    let (_, _, plan, _) = settled("warped-slicer", &["IMG", "NN"], idle);
    assert!(plan.reason().starts_with("on shared SMs the slowest would keep 0 %"));
    assert_eq!(quotas(&plan, ONE), [[8; 8], [0; 8]].concat());
}

#[test]
fn sampling_waits_for_launches_to_begin() {
    let facts = facts(&["IMG", "NN"]);
    let mut scheme = make("warped-slicer");
    let plan = scheme.start(&facts, &[]).unwrap();
    let mut seen = shown(&facts, &plan, Wake::At(20_000), 20_000, 20_000, line_and_flat);
    seen.apps[1].running.clear();
    let waits = scheme.decide(&facts, &seen).unwrap();
    assert_eq!((at(&waits), waits.shares()), (Some(40_000), plan.shares()));
    let (_, now) = settle(scheme.as_mut(), &facts, waits, 20_000, line_and_flat);
    assert_eq!(now, 45_000);
}

#[test]
fn a_wake_inside_the_window_loses_no_counters() {
    let facts = facts(&["IMG", "NN"]);
    let mut scheme = make("warped-slicer");
    let mut plan = scheme.start(&facts, &[]).unwrap();
    for (now, cycles, wake) in [
        (20_000, 20_000, Wake::At(20_000)),
        (22_000, 2000, Wake::KernelEnd(ONE)),
        (25_000, 3000, Wake::At(25_000)),
    ] {
        let seen = shown(&facts, &plan, wake, now, cycles, line_and_flat);
        plan = scheme.decide(&facts, &seen).unwrap();
    }
    assert_eq!(plan.curves()[0].ipc[7], Some(8.0));
}

#[test]
fn offline_profiles_are_runs_of_each_alone() {
    let facts = facts(&["IMG", "NN"]);
    let mut scheme = make("warped-slicer:profile=offline");
    let probes = scheme.probes(&facts).unwrap();
    assert_eq!(probes.len(), 16);
    assert_eq!((probes[2].apps.clone(), probes[2].plan.quota(ONE, 5)), (vec![ONE], 3));
    let result = |probe: &gpumodel_core::contract::Probe| {
        let app = probe.apps[0];
        let ctas = probe.plan.quota(app, 0);
        let ipc = if app == ONE { ctas } else { ctas.min(2) };
        let warp_instructions = u64::from(ipc) * 16 * 1000;
        let row = ProbeApp { app, warp_instructions, ..ProbeApp::default() };
        ProbeResult { cycles: 1000, apps: vec![row] }
    };
    let results: Vec<ProbeResult> = probes.iter().map(result).collect();
    let plan = scheme.start(&facts, &results).unwrap();
    assert_eq!((plan.quota(ONE, 0), plan.quota(TWO, 0)), (6, 2), "as sampled while running");
    assert_eq!(plan.wake(), [WakeOn::KernelBegin, WakeOn::KernelEnd]);
}

#[test]
fn both_solvers_give_the_same_minimum() {
    let by = |solver: &str| {
        let text = format!("warped-slicer:factor=0:solver={solver}");
        settled(&text, &["IMG", "NN", "KNN"], line_and_flat).2
    };
    let minimum = |plan: &Plan| {
        let of = |curve: &gpumodel_core::contract::Curve| {
            curve.normalized[curve.chosen as usize - 1].unwrap()
        };
        plan.curves().iter().map(of).fold(1.0, f64::min)
    };
    assert_eq!(minimum(&by("exact")), minimum(&by("water-filling")));
}
