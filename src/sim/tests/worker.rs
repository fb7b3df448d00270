//! Facts of workers that take tasks from a queue.

use proptest::prelude::*;

use crate::config::Resolved;
use gpumodel_core::contract::{Plan, PlanDraft, Resize, Wake, WakeOn};
use gpumodel_core::units::AppId;

use crate::testkit::{Line, Script, Scripts, line, machine, memory, plan};

const RELAUNCH: Resize = Resize::Relaunch { cycles: 300 };

/// A small GPU with room for 8 CTAs and 16 warps on each of 4 SMs.
fn small(launch: &str) -> Resolved {
    machine(&[
        ("dispatch.sms", "4"),
        ("sm.max_ctas", "8"),
        ("sm.max_warps", "16"),
        ("sm.registers", "16384"),
        ("dispatch.kernel_launch_cycles", launch),
    ])
}

fn chain(length: usize) -> Vec<Line> {
    (0..length).map(|_| line("FFMA", Some(1), Some(1))).collect()
}

/// A stream: every lane its own word, and some arithmetic.
fn stream() -> Vec<Line> {
    let load =
        memory("LDG.E", Some(2), None, |cta, warp, turn| (4096 * cta + 512 * warp + 128 * turn, 4));
    [vec![load], (0..12).map(|_| line("FFMA", Some(2), Some(2))).collect()].concat()
}

fn ratio(one: u64, other: u64) -> f64 {
    f64::from(u32::try_from(one).unwrap()) / f64::from(u32::try_from(other).unwrap())
}

fn waking(resolved: &Resolved, quotas: &[u32], wake: Vec<WakeOn>) -> Plan {
    plan(resolved, quotas, PlanDraft { wake, ..PlanDraft::default() })
}

#[test]
fn tasks_of_one_block_that_cost_nothing_take_as_long_as_the_plain_kernel() {
    let resolved = small("0");
    let shapes: [(Vec<Line>, u32, u32); 3] =
        [(chain(2000), 1, 64), (stream(), 40, 64), (stream(), 40, 256)];
    for (body, repeat, threads) in shapes {
        for ctas in [1, 2, 8] {
            let script = || Script::new(&resolved, &body, repeat, 96, threads);
            let plain =
                Scripts::new(vec![script()]).under(&resolved, &waking(&resolved, &[ctas], vec![]));
            let workers = script().working(&resolved, 1, false, Resize::InPlace);
            let workers =
                Scripts::new(vec![workers]).under(&resolved, &waking(&resolved, &[ctas], vec![]));
            let ratio = ratio(workers.cycles, plain.cycles);
            assert!((0.98..1.02).contains(&ratio), "{threads} threads, {ctas} CTAs: {ratio}");
            let counts = &workers.kernels[0];
            assert_eq!((counts.ctas_started, counts.ctas_retired, counts.tasks), (96, 96, 96));
            let own = counts.warp_instructions - counts.added_instructions;
            assert_eq!(own, plain.kernels[0].warp_instructions);
        }
    }
}

#[test]
fn the_queue_is_real_traffic_and_larger_tasks_have_less_of_it() {
    let resolved = small("0");
    let run = |task| {
        let script = Script::new(&resolved, &chain(50), 1, 6400, 64);
        let workers = script.working(&resolved, task, true, Resize::InPlace);
        Scripts::new(vec![workers]).under(&resolved, &waking(&resolved, &[8], vec![]))
    };
    let (one, ten) = (run(1), run(10));
    let accesses = |run: &crate::Outcome| run.kernels[0].l2.accesses();
    // Each worker makes one request more than it gets tasks.
    assert_eq!(accesses(&one), one.kernels[0].tasks + one.kernels[0].workers);
    assert_eq!((one.kernels[0].tasks, ten.kernels[0].tasks), (6400, 640));
    assert_eq!(accesses(&ten), 640 + ten.kernels[0].workers);
    assert!(one.cycles > ten.cycles, "{} and {}", one.cycles, ten.cycles);
}

#[test]
fn a_smaller_quota_takes_effect_when_tasks_end() {
    let resolved = small("0");
    let script = || Script::new(&resolved, &chain(3000), 1, 64, 32);
    let fixture = Scripts::new(vec![script().working(&resolved, 1, false, Resize::InPlace)]);
    let first = waking(&resolved, &[4], vec![WakeOn::At(1000)]);
    let mut seen = Vec::new();
    fixture.run(&resolved, &first, |view| {
        seen.push((view.wake, view.now, view.apps[0].ctas_by_sm.clone()));
        let wake = match view.wake {
            Wake::At(1000) => vec![WakeOn::At(1001), WakeOn::CtaDrained],
            _ => vec![WakeOn::CtaDrained],
        };
        waking(&resolved, &[1], wake)
    });
    assert_eq!(seen[0].2, [4; 4]);
    assert_eq!(seen[1].2, [4; 4], "no task has ended yet");
    let (wake, now, held) = &seen[2];
    assert_eq!((wake, held), (&Wake::CtaDrained(AppId(0)), &vec![1; 4]));
    // One task of 3000 dependent multiply-adds.
    assert!((10_000..30_000).contains(now), "{now}");
    assert_eq!(fixture.opened(0), [1; 64]);
}

#[test]
fn a_larger_quota_is_another_instance_and_comes_as_late_as_any_launch() {
    let resolved = small("700");
    let script = Script::new(&resolved, &chain(500), 1, 400, 32);
    let fixture = Scripts::new(vec![script.working(&resolved, 1, false, Resize::InPlace)]);
    let first = waking(&resolved, &[1], vec![WakeOn::At(2000)]);
    let mut seen = Vec::new();
    let outcome = fixture.run(&resolved, &first, |view| {
        seen.push((view.now, view.apps[0].ctas_by_sm.clone()));
        let wake = match view.now {
            2000 => vec![WakeOn::At(2690)],
            2690 => vec![WakeOn::At(2800)],
            _ => vec![],
        };
        waking(&resolved, &[3], wake)
    });
    assert_eq!(seen[..3], [(2000, vec![1; 4]), (2690, vec![1; 4]), (2800, vec![3; 4])]);
    assert_eq!(outcome.kernels[0].workers, 12);
    assert_eq!(fixture.opened(0), [1; 400]);
}

#[test]
fn a_launch_on_other_sms_goes_on_at_the_saved_task_and_others_quit() {
    let resolved = small("0");
    let script = Script::new(&resolved, &chain(500), 1, 800, 64);
    let fixture = Scripts::new(vec![script.working(&resolved, 10, false, RELAUNCH)]);
    let on = |sms: std::ops::Range<usize>, wake: Vec<WakeOn>| {
        let quota = (0..4).map(|sm| if sms.contains(&sm) { 8 } else { 0 }).collect();
        let shares = vec![gpumodel_core::contract::Share::Quota(quota)];
        let draft = PlanDraft { shares, wake, ..PlanDraft::default() };
        Plan::new(&crate::testkit::facts(&resolved, 1), draft).unwrap()
    };
    let first = on(0..4, vec![WakeOn::At(20_000)]);
    let mut seen = Vec::new();
    let outcome = fixture.run(&resolved, &first, |view| {
        seen.push((view.now, view.apps[0].ctas_by_sm.clone(), view.apps[0].ctas_left));
        on(2..4, if view.now == 20_000 { vec![WakeOn::At(60_000)] } else { vec![] })
    });
    let (_, before, left) = &seen[0];
    assert_eq!(before, &[8; 4]);
    let (_, after, later) = &seen[1];
    assert_eq!(after, &[0, 0, 8, 8], "all are on the SMs of the plan");
    assert!(0 < *later && later < left, "{later} of {left}");
    assert_eq!(fixture.opened(0), [1; 800]);
    // 32 at first; then 16 where they belong and 16 that start and quit.
    assert_eq!(outcome.kernels[0].workers, 64);
    assert_eq!(outcome.kernels[0].ctas_retired, 800);
}

#[test]
fn the_last_task_wakes_the_scheme_once_when_it_starts() {
    let resolved = small("0");
    let script = Script::new(&resolved, &chain(800), 1, 33, 32);
    let fixture = Scripts::new(vec![script.working(&resolved, 4, false, Resize::InPlace)]);
    let first = waking(&resolved, &[2], vec![WakeOn::LastTaskStarted]);
    let mut wakes = Vec::new();
    fixture.run(&resolved, &first, |view| {
        wakes.push((view.wake, view.apps[0].ctas_left, view.apps[0].active));
        waking(&resolved, &[2], vec![WakeOn::LastTaskStarted])
    });
    assert_eq!(wakes, [(Wake::LastTaskStarted(AppId(0)), 0, true)]);
}

#[test]
fn warps_that_leave_a_block_early_wait_for_the_others_at_its_end() {
    let resolved = small("0");
    let meets = [line("FFMA", Some(1), Some(1)), line("BAR.SYNC", None, None)];
    let early = [line("FFMA", Some(1), Some(1))];
    let script = Script::of_bodies(&resolved, &[&meets, &early], 3, 20, 64);
    let fixture = Scripts::new(vec![script.working(&resolved, 1, false, Resize::InPlace)]);
    let outcome = fixture.under(&resolved, &waking(&resolved, &[1], vec![]));
    assert_eq!(outcome.kernels[0].ctas_retired, 20);
}

#[test]
fn a_quota_that_falls_and_rises_again_leaves_as_many_as_it_says() {
    let resolved = small("400");
    // 5 CTAs shrink to 1 and are to be 3 again while those that have to leave still run.
    for (low, high) in [(1, 3), (0, 1), (2, 3), (2, 4)] {
        let script = Script::new(&resolved, &chain(800), 1, 4000, 32);
        let fixture = Scripts::new(vec![script.working(&resolved, 1, false, Resize::InPlace)]);
        let first = waking(&resolved, &[5], vec![WakeOn::At(6000)]);
        let mut held = Vec::new();
        let outcome = fixture.run(&resolved, &first, |view| match view.now {
            6000 => waking(&resolved, &[low], vec![WakeOn::At(8500)]),
            8500 => waking(&resolved, &[high], vec![WakeOn::At(40_000)]),
            _ => {
                held.push(view.apps[0].ctas_by_sm.clone());
                waking(&resolved, &[high], vec![])
            }
        });
        assert_eq!(held[0], [high; 4], "{low} and {high}");
        assert_eq!(outcome.kernels[0].ctas_retired, 4000);
    }
}

/// Quotas of two applications on all SMs, or nothing for one of them, and when the next
/// plan comes.
fn any_plans() -> impl Strategy<Value = Vec<(u32, u32, u64)>> {
    let quotas = (0_u32..=8, 0_u32..=8).prop_filter("an application runs", |(a, b)| a + b > 0);
    proptest::collection::vec((quotas, 1_u64..6000), 1..12)
        .prop_map(|plans| plans.into_iter().map(|((a, b), cycles)| (a, b, cycles)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn every_block_runs_once_whatever_the_plans(
        plans in any_plans(),
        tasks in (1_u32..7, 1_u32..7),
        relaunch in (any::<bool>(), any::<bool>()),
        threads in (1_u32..5, 1_u32..9),
        launch in prop_oneof![Just("0"), Just("900")],
    ) {
        let resolved = small(launch);
        let script = |task, relaunch: bool, warps: u32, body: &[Line]| {
            let resize = if relaunch { RELAUNCH } else { Resize::InPlace };
            Script::new(&resolved, body, 2, 90, 32 * warps).working(&resolved, task, true, resize)
        };
        let fixture = Scripts::new(vec![
            script(tasks.0, relaunch.0, threads.0, &chain(150)),
            script(tasks.1, relaunch.1, threads.1, &stream()),
        ]);
        let mut now = 0;
        let mut next = plans.iter().map(|&(a, b, cycles)| {
            now += cycles;
            waking(&resolved, &[a, b], vec![WakeOn::At(now)])
        });
        let first = next.next().unwrap();
        let last = waking(&resolved, &[2, 1], vec![]);
        let outcome = fixture.run(&resolved, &first, |view| match view.wake {
            Wake::At(_) => next.next().unwrap_or_else(|| last.clone()),
            _ => last.clone(),
        });
        for (app, counts) in outcome.kernels.iter().enumerate() {
            prop_assert_eq!(fixture.opened(app), vec![1; 90]);
            prop_assert_eq!((counts.ctas_started, counts.ctas_retired), (90, 90));
        }
    }
}
