//! Facts of clusters: CTAs start together, meet at one barrier, and reach each other's shared
//! memory.

use crate::config::Resolved;
use crate::testkit::{
    Line, Script, Scripts, facts, kernel_cycles, line, memory, named, plan, scattered,
};
use crate::{MachineError, Outcome};
use gpumodel_core::contract::{Plan, PlanDraft, Share, Vacate, WakeOn};

/// Start of the windows of shared memory; the rank of a CTA has the bits from 24 on.
const WINDOW: u64 = 0x7f00_0000_0000;

fn h100() -> Resolved {
    named("h100", &[])
}

fn chain(length: usize) -> Vec<Line> {
    vec![line("FADD", Some(1), Some(1)); length]
}

fn arrive() -> Line {
    line("UCGABAR_ARV", None, None)
}

fn wait() -> Line {
    line("UCGABAR_WAIT", None, None)
}

/// CTAs of one warp in clusters of so many, with these bodies in turn.
fn script(resolved: &Resolved, bodies: &[Vec<Line>], ctas: u32, cluster: u32) -> Script {
    let bodies: Vec<&[Line]> = bodies.iter().map(Vec::as_slice).collect();
    Script::of_ctas(resolved, &bodies, ctas).with_windows(WINDOW, 0).in_clusters(cluster)
}

/// When each CTA came and ended, and its SM, by its number.
fn spans(script: &Script, resolved: &Resolved) -> Vec<(u64, u64, u16)> {
    let outcome = script.run_with_spans(resolved);
    let mut spans: Vec<_> =
        outcome.spans.iter().map(|span| (span.ordinal, span.start, span.end, span.sm)).collect();
    spans.sort_unstable();
    spans.into_iter().map(|(_, start, end, sm)| (start, end, sm)).collect()
}

#[test]
fn the_ctas_of_a_cluster_start_together_on_one_gpc() {
    let resolved = h100();
    let spec = resolved.machine.cluster.clone().unwrap();
    let spans = spans(&script(&resolved, &[chain(500)], 64, 16), &resolved);
    for cluster in spans.chunks(16) {
        let gpcs: Vec<u16> = cluster.iter().map(|&(.., sm)| spec.gpc_of(sm, 132)).collect();
        assert!(gpcs.iter().all(|&gpc| gpc == gpcs[0]), "{gpcs:?}");
        assert!(cluster.iter().all(|&(start, ..)| start == cluster[0].0), "{cluster:?}");
        let mut sms: Vec<u16> = cluster.iter().map(|&(.., sm)| sm).collect();
        sms.sort_unstable();
        sms.dedup();
        assert_eq!(sms.len(), 16, "one CTA per SM where there is room");
    }
}

#[test]
fn a_cluster_waits_until_its_gpc_has_room_for_all_of_it() {
    // A GPC of 16 or 18 SMs holds two clusters of 16 where an SM takes two CTAs.
    let resolved = h100();
    let large = script(&resolved, &[chain(400)], 16 * 17, 16).needing(16, 100 << 10);
    let spans = spans(&large, &resolved);
    let first = spans.iter().map(|&(start, ..)| start).min().unwrap();
    let ended = spans.iter().map(|&(_, end, _)| end).min().unwrap();
    let late: Vec<_> = spans.iter().filter(|&&(start, ..)| start >= ended).collect();
    // SMs of the two GPCs of 18 take four CTAs more than two clusters: these do not start alone.
    assert_eq!(late.len(), 16, "{first} {ended} {late:?}");
}

#[test]
fn the_barrier_of_a_cluster_opens_when_its_last_warp_has_come() {
    let resolved = h100();
    let late = [chain(300), vec![arrive(), wait()]].concat();
    let early = vec![arrive(), wait()];
    let all = spans(&script(&resolved, &[late, early.clone()], 4, 2), &resolved);
    for pair in all.chunks(2) {
        let difference = pair[0].1.abs_diff(pair[1].1);
        assert!(difference < 10, "both leave the barrier at once: {pair:?}");
        assert!(pair[1].1 - pair[1].0 > 1200, "after 300 additions of 4 cycles: {pair:?}");
    }
    // Each meeting costs the way there and back, and 22 cycles as any barrier.
    let of = |meetings: usize| {
        let body = early.repeat(meetings);
        kernel_cycles(&script(&resolved, &[body], 2, 2).run(&resolved))
    };
    let each = (of(40) - of(20)) / 20;
    let shared = u64::from(resolved.machine.shared.latency_cycles);
    let way = 200 - shared + 22;
    assert!((way..way + 12).contains(&each), "{each} for {way}");
}

#[test]
fn a_warp_that_has_arrived_goes_on_until_it_waits() {
    let resolved = h100();
    let body = [vec![arrive()], chain(200), vec![wait()]].concat();
    let split = kernel_cycles(&script(&resolved, &[body], 2, 2).run(&resolved));
    let alone = kernel_cycles(&script(&resolved, &[chain(200)], 2, 2).run(&resolved));
    assert!(split - alone < 20, "the barrier is over meanwhile: {split} for {alone}");
}

/// Cycles of one of 40 dependent loads of the CTA of a rank from the shared memory of rank 0.
fn load_cycles(resolved: &Resolved, rank: u64) -> u64 {
    let of = |loads: usize| {
        let load = memory("LD.E", Some(1), Some(1), |_, _, _| (WINDOW, 4)).masked(1);
        let mut bodies = vec![Vec::new(), Vec::new()];
        bodies[usize::try_from(rank).unwrap()] = vec![load; loads];
        bodies.iter_mut().for_each(|body| body.push(line("FADD", Some(2), None)));
        kernel_cycles(&script(resolved, &bodies, 2, 2).run(resolved))
    };
    (of(60) - of(20)) / 40
}

#[test]
fn the_shared_memory_of_another_cta_is_farther_than_the_own_one() {
    let resolved = h100();
    let (own, other) = (load_cycles(&resolved, 0), load_cycles(&resolved, 1));
    let beyond = 200 - u64::from(resolved.machine.shared.latency_cycles);
    assert_eq!(other - own, beyond, "{other} for {own}");
    // HPMLL/NVIDIA-Hopper-Benchmark, H800: 181 to 207 cycles.
    assert!((181..=207).contains(&other), "{other}");
}

#[test]
fn bytes_to_other_shared_memories_take_their_time() {
    // 128 bytes of a warp pass in 8 cycles, 16 in each; to the CTA's own shared memory stores go as
    // fast as one warp issues them.
    let resolved = h100();
    let of = |rank: u64, stores: usize| {
        let at = move |_, _, _, lane: u64| WINDOW + (rank << 24) + 4 * lane;
        let body = vec![scattered("ST.E", None, Some(1), at); stores];
        let idle = vec![line("FADD", Some(2), None)];
        kernel_cycles(&script(&resolved, &[body, idle], 2, 2).run(&resolved))
    };
    let each = |rank| (of(rank, 120) - of(rank, 40)) / 80;
    assert_eq!(each(1), 8);
    assert_eq!(each(0), 4);
}

#[test]
fn a_plan_without_room_for_a_cluster_starts_its_ctas_one_by_one() {
    let resolved = h100();
    let meets = vec![arrive(), wait()];
    let fixture = Scripts::new(vec![
        script(&resolved, std::slice::from_ref(&meets), 16, 16).needing(16, 200 << 10),
    ]);
    let two = Share::Quota((0..132).map(|sm| u32::from(sm < 2)).collect());
    let draft = PlanDraft { shares: vec![two], ..PlanDraft::default() };
    let plan = Plan::new(&facts(&resolved, 1), draft).unwrap();
    let outcome = fixture.run(&resolved, &plan, |_| unreachable!("no wake"));
    assert_eq!(outcome.kernels[0].ctas_retired, 16);
}

#[test]
fn a_machine_of_few_sms_runs_clusters_where_they_fit() {
    for (sms, cluster) in [("4", 2), ("4", 16), ("2", 4)] {
        let resolved = named("h100", &[("dispatch.sms", sms)]);
        let counts = &script(&resolved, &[vec![arrive(), wait()]], 16, cluster).run(&resolved);
        assert_eq!(counts.kernels[0].ctas_retired, 16, "{sms} SMs, clusters of {cluster}");
    }
}

#[test]
fn a_cluster_of_which_a_cta_leaves_goes_on() {
    let resolved = named("h100", &[("dispatch.kernel_launch_cycles", "0")]);
    let body = [chain(500), vec![arrive(), wait()], chain(500)].concat();
    for vacate in [Vacate::Switch, Vacate::Flush] {
        let clustered = script(&resolved, std::slice::from_ref(&body), 32, 8);
        let other = Script::of_ctas(&resolved, &[&chain(3000)], 8);
        let fixture = Scripts::new(vec![clustered, other]);
        let draft = |wake| PlanDraft { vacate, wake, ..PlanDraft::default() };
        let all = plan(&resolved, &[4, 4], draft(vec![WakeOn::At(1000)]));
        let none = plan(&resolved, &[0, 4], draft(vec![WakeOn::At(4000)]));
        let again = plan(&resolved, &[4, 4], draft(Vec::new()));
        let outcome: Outcome = fixture.run(&resolved, &all, |view| {
            if view.now < 4000 { none.clone() } else { again.clone() }
        });
        assert_eq!(outcome.kernels[0].ctas_retired, 32, "{vacate:?}");
    }
}

#[test]
fn a_barrier_of_a_cluster_that_can_never_open_is_an_error() {
    let resolved = h100();
    let waits = vec![arrive(), wait()];
    let elsewhere = vec![line("BAR.SYNC", None, None).immediates(&[1, 64])];
    let script = script(&resolved, &[waits, elsewhere], 2, 2);
    let error = script.try_run(&resolved).unwrap_err();
    let MachineError::LostArrival(found) = &error else { panic!("{error}") };
    assert!(found.barriers.iter().any(|barrier| barrier.cluster), "{error}");
    assert!(error.to_string().contains("the barrier of the cluster with 1 of 2"), "{error}");
}
