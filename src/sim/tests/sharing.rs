//! Facts of GPUs that applications share.

use crate::config::Resolved;
use gpumodel_core::contract::{
    DispatchOrder, Freed, PlanDraft, Region, TimeSlice, Vacate, Wake, WakeOn,
};
use gpumodel_core::units::AppId;

use crate::testkit::{Line, Script, Scripts, facts, line, machine, memory, plan};
use crate::{End, Outcome};

/// A small GPU with room for 8 CTAs and 16 warps on each of 4 SMs.
fn small() -> Resolved {
    machine(&[
        ("dispatch.sms", "4"),
        ("sm.max_ctas", "8"),
        ("sm.max_warps", "16"),
        ("sm.registers", "16384"),
        ("dispatch.kernel_launch_cycles", "0"),
    ])
}

fn chain(length: usize) -> Vec<Line> {
    (0..length).map(|_| line("FFMA", Some(1), Some(1))).collect()
}

fn round_robin() -> PlanDraft {
    PlanDraft { order: DispatchOrder::RoundRobin, ..PlanDraft::default() }
}

fn script(resolved: &Resolved, length: usize, ctas: u32, threads: u32) -> Script {
    Script::new(resolved, &chain(length), 1, ctas, threads)
}

fn ratio(one: u64, other: u64) -> f64 {
    f64::from(u32::try_from(one).unwrap()) / f64::from(u32::try_from(other).unwrap())
}

#[test]
fn two_kernels_of_one_small_cta_per_sm_run_as_fast_together_as_alone() {
    let resolved = small();
    let alone = script(&resolved, 4000, 4, 32).run(&resolved).cycles;
    let fixture =
        Scripts::new(vec![script(&resolved, 4000, 4, 32), script(&resolved, 4000, 4, 32)]);
    let together = fixture.under(&resolved, &plan(&resolved, &[8, 8], round_robin())).cycles;
    assert!(ratio(together, alone) < 1.02, "{together} together, {alone} alone");
}

#[test]
fn kernels_that_fill_the_warp_slots_gain_nothing() {
    let resolved = small();
    // Two CTAs of 8 warps fill an SM; two waves of them.
    let full = || script(&resolved, 4000, 16, 256);
    let alone = full().run(&resolved).cycles;
    let fixture = Scripts::new(vec![full(), full()]);
    let together = fixture.under(&resolved, &plan(&resolved, &[8, 8], round_robin())).cycles;
    let gain = 2.0 * ratio(alone, together);
    assert!((0.97..1.03).contains(&gain), "{together} together, {alone} alone");
}

#[test]
fn pairs_that_are_bound_by_issue_saturate_at_the_issue_width() {
    let resolved = small();
    let independent: Vec<Line> = (0..2048).map(|n| line("FADD", Some(n % 64), None)).collect();
    let busy = || Script::new(&resolved, &independent, 1, 16, 128);
    let fixture = Scripts::new(vec![busy(), busy()]);
    let outcome = fixture.under(&resolved, &plan(&resolved, &[2, 2], round_robin()));
    let issued: u64 = outcome.kernels.iter().map(|k| k.warp_instructions).sum();
    let machine = &resolved.machine;
    let width = u64::from(4 * machine.sm.schedulers * machine.sm.issue_width);
    let ipc = ratio(issued, outcome.cycles);
    let peak = ratio(width, 1);
    assert!(ipc <= peak && ipc > 0.45 * peak, "{ipc} of {peak}");
}

#[test]
fn identical_applications_get_identical_results() {
    let resolved = small();
    let load =
        memory("LDG.E", Some(2), None, |cta, warp, turn| (cta << 20 | warp << 14 | turn << 9, 4));
    let reads = || Script::new(&resolved, &[load, line("FADD", Some(3), Some(2))], 40, 16, 64);
    let fixture = Scripts::new(vec![reads(), reads()]);
    let outcome = fixture.under(&resolved, &plan(&resolved, &[4, 4], round_robin()));
    let ends: Vec<u64> = outcome.apps.iter().map(|app| app.end).collect();
    assert!((ratio(ends[0], ends[1]) - 1.0).abs() < 0.02, "{ends:?}");
}

#[test]
fn in_order_dispatch_blocks_others_while_the_first_launch_has_ctas_left() {
    let resolved = small();
    // The first one's CTAs take 10 of 16 warps: 6 stay free that the others could use.
    let kernels = || vec![script(&resolved, 3000, 12, 320), script(&resolved, 300, 4, 64)];
    let start = |outcome: &Outcome| outcome.apps[1].end;
    let strict =
        Scripts::new(kernels()).under(&resolved, &plan(&resolved, &[8, 8], PlanDraft::default()));
    let free = Scripts::new(kernels()).under(&resolved, &plan(&resolved, &[8, 8], round_robin()));
    assert!(start(&strict) > 2 * start(&free), "{} {}", start(&strict), start(&free));
    let list = DispatchOrder::Priority(vec![AppId(1), AppId(0)]);
    let first = PlanDraft { order: list, ..PlanDraft::default() };
    let preferred = Scripts::new(kernels()).under(&resolved, &plan(&resolved, &[8, 8], first));
    assert!(start(&preferred) <= start(&free));
}

#[test]
fn storage_in_pieces_holds_no_large_cta_unless_it_is_pooled() {
    // Four small CTAs and a large one's half each: where small ones of unequal length
    // end, the free pieces are too small for a large one.
    let cycles = |pooled: &str| {
        let keys = [
            ("dispatch.sms", "1"),
            ("dispatch.kernel_launch_cycles", "0"),
            ("sm.registers", "8192"),
            ("quirks.pools_storage", pooled),
        ];
        let resolved = machine(&keys);
        let mut bodies: Vec<Vec<Line>> = vec![chain(6000), chain(200)];
        bodies.rotate_left(1);
        let lines: Vec<&[Line]> = bodies.iter().map(Vec::as_slice).collect();
        // One warp of 64 registers: 2048 of 8192.
        let small = Script::of_ctas(&resolved, &lines, 4).needing(64, 0);
        // 4096 registers.
        let large = script(&resolved, 200, 1, 64).needing(64, 0);
        let fixture = Scripts::new(vec![small, large]);
        let outcome = fixture.under(&resolved, &plan(&resolved, &[8, 8], PlanDraft::default()));
        outcome.apps[1].end
    };
    let (pieces, pooled) = (cycles("false"), cycles("true"));
    assert!(pieces > 5 * pooled, "{pieces} in pieces, {pooled} pooled");
}

#[test]
fn regions_separate_applications() {
    let resolved = small();
    let half = Region { registers: 8192, warps: 8, ctas: 4, ..Region::default() };
    let other = Region { first_register: 8192, ..half };
    let draft = PlanDraft { regions: vec![half, other], ..round_robin() };
    // CTAs of 8 warps: one in each half.
    let fixture =
        Scripts::new(vec![script(&resolved, 1000, 8, 256), script(&resolved, 1000, 8, 256)]);
    let outcome = fixture.under(&resolved, &plan(&resolved, &[8, 8], draft));
    let residency = outcome.residency.unwrap();
    for app in &residency.cta_cycles {
        for sm in app {
            assert!(sm.iter().all(|&cycles| cycles <= residency.span), "one CTA at a time: {sm:?}");
            assert!(sm.iter().any(|&cycles| cycles > 0));
        }
    }
}

#[test]
fn an_application_starts_when_it_arrives_and_wakes_the_scheme() {
    let resolved = small();
    let fixture = Scripts::new(vec![script(&resolved, 4000, 8, 64), script(&resolved, 500, 8, 64)]);
    let fixture = fixture.with(1, |load| load.arrival = 5000);
    let everything = plan(&resolved, &[8, 8], round_robin());
    let mut wakes = Vec::new();
    let outcome = fixture.run(&resolved, &everything, |view| {
        wakes.push((view.now, view.wake));
        everything.clone()
    });
    assert_eq!(wakes[0], (5000, Wake::Arrival(AppId(1))));
    assert!(matches!(wakes[1].1, Wake::AppEnd(_)) && wakes.len() == 2, "{wakes:?}");
    assert!(outcome.kernels[1].start == 5000 && outcome.apps[1].end > 5000);
}

#[test]
fn a_target_stops_an_application_and_the_last_one_gets_everything() {
    let resolved = small();
    let long = || script(&resolved, 20_000, 8, 64);
    let alone = long().run(&resolved);
    let whole = alone.kernels[0].warp_instructions;
    let fixture = Scripts::new(vec![long(), long()]).with(0, |load| load.target = Some(8000.0));
    let draft = PlanDraft { freed: Freed::ToLast, ..round_robin() };
    let outcome = fixture.under(&resolved, &plan(&resolved, &[1, 1], draft));
    let first = outcome.apps[0];
    assert!(first.finished && first.runs == 0);
    // Looked at every 64 cycles at least: 4 schedulers of 4 SMs issue 16 of them each.
    assert!((8000.0..8000.0 + 64.0 * 16.0).contains(&first.progress), "{}", first.progress);
    assert!(outcome.kernels[0].ctas_killed > 0 && outcome.kernels[0].ctas_retired == 0);
    assert_eq!(outcome.kernels[1].warp_instructions, whole);
    let quota_kept =
        Scripts::new(vec![long()]).under(&resolved, &plan(&resolved, &[1], round_robin()));
    assert!(outcome.apps[1].end < quota_kept.cycles, "two CTAs per SM once it is alone");
}

#[test]
fn early_finishers_run_again_and_their_first_run_is_reported() {
    let resolved = small();
    let fixture =
        Scripts::new(vec![script(&resolved, 500, 4, 64), script(&resolved, 20_000, 4, 64)]);
    let fixture =
        fixture.with(0, |load| load.relaunches = true).with(1, |load| load.relaunches = true);
    let everything = plan(&resolved, &[8, 8], round_robin());
    let outcome = fixture.under(&resolved, &everything);
    let first = outcome.apps[0];
    assert!(first.runs > 10 && outcome.apps[1].runs == 1, "{}", first.runs);
    assert_eq!(outcome.kernels[0].warp_instructions, 4 * 2 * 500);
    assert_eq!(outcome.kernels[0].end, first.end);
    assert!(outcome.totals[0].warp_instructions >= first.runs * 4 * 2 * 500);
    assert!(outcome.cycles > first.end * 10);
}

#[test]
fn the_clock_ends_a_run_and_the_first_to_finish_may() {
    let resolved = small();
    let kernels = || vec![script(&resolved, 500, 4, 64), script(&resolved, 20_000, 4, 64)];
    let everything = plan(&resolved, &[8, 8], round_robin());
    let clock = End { first: false, at: Some(9000) };
    let cut = Scripts::new(kernels()).until(clock).under(&resolved, &everything);
    assert!(cut.apps[0].finished && !cut.apps[1].finished);
    assert_eq!((cut.cycles, cut.apps[1].end), (9000, 9000));
    assert!(cut.apps[1].progress > 1000.0);
    assert_eq!(cut.apps[1].cycles(), 9000);
    let late = Scripts::new(kernels()).with(1, |load| load.arrival = 9500).until(clock);
    let never = late.under(&resolved, &everything).apps[1];
    assert_eq!((never.cycles(), never.progress.to_bits()), (0, 0));
    let first = End { first: true, at: None };
    let short = Scripts::new(kernels()).until(first).under(&resolved, &everything);
    assert_eq!(short.cycles, short.apps[0].end);
}

#[test]
fn the_old_plan_runs_on_until_the_new_one_takes_effect() {
    let resolved = small();
    let fixture =
        || Scripts::new(vec![script(&resolved, 2000, 64, 64), script(&resolved, 2000, 8, 64)]);
    let begin = |delay| {
        let wake = vec![WakeOn::At(1000)];
        let first = plan(&resolved, &[2, 0], PlanDraft { wake, ..round_robin() });
        let later = plan(&resolved, &[2, 2], PlanDraft { delay, ..round_robin() });
        let outcome = fixture().run(&resolved, &first, |_| later.clone());
        let residency = outcome.residency.unwrap();
        let cycles = &residency.cta_cycles[1][0];
        cycles.iter().position(|&cycles| cycles > 0).unwrap() as u64 * residency.span
    };
    assert!(begin(0) <= 1000);
    assert!((5000..=6000).contains(&begin(5000)), "{}", begin(5000));
}

#[test]
fn applications_take_turns_under_time_slices() {
    let resolved = small();
    let fixture =
        Scripts::new(vec![script(&resolved, 9000, 8, 64), script(&resolved, 9000, 8, 64)]);
    let slice = |switch_cycles| {
        let time_slice = Some(TimeSlice { cycles: 2000, switch_cycles });
        let draft = PlanDraft { time_slice, vacate: Vacate::Switch, ..round_robin() };
        fixture.under(&resolved, &plan(&resolved, &[8, 8], draft))
    };
    let free = slice(0);
    let alone = script(&resolved, 9000, 8, 64).run(&resolved).cycles;
    assert!(ratio(free.cycles, alone) > 1.9, "{} for two, {alone} for one", free.cycles);
    let dear = slice(500);
    assert!(dear.cycles > free.cycles + 10 * 400, "{} {}", dear.cycles, free.cycles);
    let finished: Vec<bool> = free.apps.iter().map(|app| app.finished).collect();
    assert_eq!(finished, [true, true]);
}

#[test]
fn no_other_application_runs_in_the_first_time_slice() {
    let resolved = small();
    let end = End { first: false, at: Some(1500) };
    let fixture =
        Scripts::new(vec![script(&resolved, 9000, 8, 64), script(&resolved, 9000, 8, 64)]);
    let time_slice = Some(TimeSlice { cycles: 2000, switch_cycles: 0 });
    let draft = PlanDraft { time_slice, ..round_robin() };
    let outcome = fixture.until(end).under(&resolved, &plan(&resolved, &[8, 8], draft));
    assert!(outcome.apps[0].progress > 100.0);
    assert_eq!(outcome.kernels[1].ctas_started, 0);
}

#[test]
fn no_cta_starts_during_the_switch_of_time_slices() {
    let resolved = machine(&[("dispatch.sms", "16"), ("dispatch.kernel_launch_cycles", "0")]);
    // CTAs of several lengths end and start all the time: the dispatcher is never idle.
    let bodies: Vec<Vec<Line>> = (1..12).map(|length| chain(length * 3)).collect();
    let lines: Vec<&[Line]> = bodies.iter().map(Vec::as_slice).collect();
    let busy = || Script::of_ctas(&resolved, &lines, 100_000);
    let work = |switch_cycles| {
        let fixture =
            Scripts::new(vec![busy(), busy()]).until(End { first: false, at: Some(50_000) });
        let time_slice = Some(TimeSlice { cycles: 2000, switch_cycles });
        let draft = PlanDraft { time_slice, ..round_robin() };
        let outcome = fixture.under(&resolved, &plan(&resolved, &[8, 8], draft));
        outcome.apps.iter().map(|app| app.progress).sum::<f64>()
    };
    let left = work(1000) / work(0);
    assert!((0.6..0.75).contains(&left), "a third of the time is lost, {left} is left");
}

#[test]
fn turns_go_on_until_the_next_plan_takes_effect() {
    let resolved = small();
    let fixture =
        Scripts::new(vec![script(&resolved, 9000, 8, 64), script(&resolved, 9000, 8, 64)]);
    let fixture = fixture.until(End { first: false, at: Some(12_000) });
    let time_slice = Some(TimeSlice { cycles: 2000, switch_cycles: 0 });
    let (wake, vacate) = (vec![WakeOn::At(1000)], Vacate::Switch);
    let turns = PlanDraft { time_slice, wake, vacate, ..round_robin() };
    let later = plan(&resolved, &[8, 8], PlanDraft { delay: 20_000, ..round_robin() });
    let outcome = fixture.run(&resolved, &plan(&resolved, &[8, 8], turns), |_| later.clone());
    let part = outcome.apps[1].progress / outcome.apps[0].progress;
    assert!((0.5..1.5).contains(&part), "{part}");
}

#[test]
fn draining_after_a_target_is_no_complete_run() {
    let resolved = small();
    let mut lines = chain(200);
    lines.push(memory("STG.E", None, None, |cta, warp, _| (cta << 20 | warp << 14, 128)));
    let stores = Script::new(&resolved, &lines, 1, 4, 64);
    // Reached when the stores have issued; they are not done yet.
    let fixture = Scripts::new(vec![stores, script(&resolved, 4000, 4, 64)]);
    let fixture = fixture.with(0, |load| load.target = Some(4.0 * 2.0 * 201.0 - 0.01));
    let everything = plan(&resolved, &[8, 8], round_robin());
    let mut wakes = Vec::new();
    let outcome = fixture.run(&resolved, &everything, |view| {
        wakes.push(view.wake);
        everything.clone()
    });
    assert_eq!((outcome.apps[0].runs, outcome.apps[0].finished), (0, true));
    assert_eq!(wakes, [Wake::AppEnd(AppId(0))]);
}

#[test]
fn a_sustained_shift_of_ipc_wakes_the_scheme() {
    let resolved = small();
    // Independent instructions first, then a chain at a fraction of the pace.
    let mut lines: Vec<Line> = (0..6000).map(|n| line("FADD", Some(n % 64), None)).collect();
    lines.extend(chain(6000));
    let fixture = Scripts::new(vec![Script::new(&resolved, &lines, 1, 4, 32)]);
    let shift = WakeOn::IpcShift { fraction: 0.3, sustained: 2000 };
    let watched = plan(&resolved, &[8], PlanDraft { wake: vec![shift], ..round_robin() });
    let quiet = plan(&resolved, &[8], round_robin());
    let mut wakes = Vec::new();
    fixture.run(&resolved, &watched, |view| {
        wakes.push(view.wake);
        quiet.clone()
    });
    assert_eq!(wakes, [Wake::IpcShift(AppId(0))]);
    let steady = Scripts::new(vec![script(&resolved, 30_000, 4, 32)]);
    steady.run(&resolved, &watched, |view| panic!("steady, yet woken at {}", view.now));
}

#[test]
fn a_view_counts_issued_instructions_only() {
    let resolved = small();
    let fixture =
        Scripts::new(vec![script(&resolved, 3000, 8, 128), script(&resolved, 3000, 8, 128)]);
    let draft = |now| PlanDraft { wake: vec![WakeOn::At(now + 40)], ..round_robin() };
    let peak = facts(&resolved, 2).peak_ipc_per_sm * f64::from(resolved.machine.dispatch.sms);
    let mut seen = [0_u64; 2];
    let outcome = fixture.run(&resolved, &plan(&resolved, &[2, 2], draft(0)), |view| {
        let all: u64 = view.apps.iter().map(|app| app.thread_instructions).sum();
        let cycles = f64::from(u32::try_from(view.now - view.since).unwrap());
        let found = f64::from(u32::try_from(all).unwrap());
        assert!(found <= peak * cycles + 64.0, "{found} in {cycles} cycles of {peak}");
        seen.iter_mut().zip(&view.apps).for_each(|(sum, app)| *sum += app.thread_instructions);
        plan(&resolved, &[2, 2], draft(view.now))
    });
    for (seen, counts) in seen.iter().zip(&outcome.kernels) {
        let whole = counts.thread_instructions;
        assert!(*seen <= whole + 64 && 10 * seen >= 9 * whole, "{seen} of {whole}");
    }
}
