//! CTAs that leave before their end and come back.

use crate::config::Resolved;
use gpumodel_core::contract::{DispatchOrder, Plan, PlanDraft, TimeSlice, Vacate, Wake, WakeOn};
use gpumodel_core::units::AppId;

use crate::testkit::{Line, Script, Scripts, line, machine, memory, plan, translating};
use crate::{End, Need, Outcome};

fn small(set: &[(&str, &str)]) -> Resolved {
    let mut keys = vec![("dispatch.sms", "2"), ("dispatch.kernel_launch_cycles", "0")];
    keys.extend(set);
    machine(&keys)
}

/// Loads, stores, shared memory, atomics, barriers, fences and arithmetic.
fn everything() -> Vec<Line> {
    let global = |opcode, register| {
        memory(opcode, register, None, |cta, warp, turn| {
            (0x10_0000 + (cta << 16 | warp << 12 | turn << 7), 4)
        })
    };
    let shared = |opcode, register| memory(opcode, register, None, |_, warp, _| (warp << 7, 4));
    vec![
        global("LDG.E", Some(2)),
        line("FFMA", Some(3), Some(2)),
        shared("STS", None),
        line("BAR.SYNC", None, None),
        shared("LDS", Some(4)),
        line("FADD", Some(5), Some(4)),
        global("RED.E.ADD", None),
        line("MEMBAR.SC.GPU", None, None),
        global("STG.E", None),
        line("BAR.SYNC", None, None),
        line("MUFU.RCP", Some(6), Some(5)),
    ]
}

fn worker(resolved: &Resolved) -> Script {
    Script::new(resolved, &everything(), 25, 9, 96).needing(32, 1024)
}

fn draft(vacate: Vacate, wake: Vec<WakeOn>) -> PlanDraft {
    PlanDraft { vacate, wake, order: DispatchOrder::RoundRobin, ..PlanDraft::default() }
}

/// Two workers of which the first must leave at cycle 3000 and may come back at 30000.
fn leave_and_return(resolved: &Resolved, vacate: Vacate) -> (Outcome, Vec<(u64, Wake)>) {
    let fixture = Scripts::new(vec![worker(resolved), worker(resolved)]);
    let first = plan(resolved, &[2, 2], draft(vacate, vec![WakeOn::At(3000)]));
    let wake = vec![WakeOn::At(30_000), WakeOn::CtaDrained];
    let without = plan(resolved, &[0, 2], draft(vacate, wake.clone()));
    let again = plan(resolved, &[2, 2], draft(vacate, Vec::new()));
    let mut wakes = Vec::new();
    let outcome = fixture.run(resolved, &first, |view| {
        wakes.push((view.now, view.wake));
        let plan: &Plan = if view.now < 30_000 { &without } else { &again };
        plan.clone()
    });
    (outcome, wakes)
}

fn check_work(outcome: &Outcome, resolved: &Resolved) {
    let alone = &worker(resolved).run(resolved).kernels[0];
    for counts in &outcome.kernels {
        assert_eq!(counts.ctas_retired, 9);
        assert_eq!(counts.ctas_started, 9 + counts.ctas_killed);
        assert_eq!(counts.warp_instructions - counts.lost_instructions, alone.warp_instructions);
    }
}

#[test]
fn draining_waits_for_the_end_and_wakes_the_scheme() {
    let resolved = small(&[]);
    let (outcome, wakes) = leave_and_return(&resolved, Vacate::Drain);
    check_work(&outcome, &resolved);
    let drained = wakes.iter().find(|(_, wake)| *wake == Wake::CtaDrained(AppId(0)));
    assert!(drained.is_some_and(|&(cycle, _)| cycle > 3000), "{wakes:?}");
    assert_eq!(outcome.kernels[0].ctas_killed, 0);
}

#[test]
fn flushed_ctas_start_again_and_their_work_is_lost() {
    let resolved = small(&[]);
    let (outcome, _) = leave_and_return(&resolved, Vacate::Flush);
    check_work(&outcome, &resolved);
    let counts = &outcome.kernels[0];
    assert!(counts.ctas_killed > 0 && counts.lost_instructions > 0, "{counts:?}");
    assert_eq!(outcome.kernels[1].ctas_killed, 0);
}

#[test]
fn switched_ctas_go_on_where_they_were_and_their_state_is_traffic() {
    let resolved = small(&[]);
    let (outcome, wakes) = leave_and_return(&resolved, Vacate::Switch);
    check_work(&outcome, &resolved);
    assert!(wakes.iter().any(|(_, wake)| *wake == Wake::CtaDrained(AppId(0))), "{wakes:?}");
    let alone = &worker(&resolved).run(&resolved).kernels[0];
    let accesses = |counts: &crate::KernelCounts| counts.l2.accesses();
    let moved = accesses(&outcome.kernels[0]) - accesses(alone);
    let launch = worker(&resolved).launch();
    let need = Need::of(&launch, &resolved.machine);
    let state = u64::from(need.registers) * 4 + u64::from(need.shared_bytes);
    let (sectors, rest) = (state.div_ceil(128) * 4, moved % 8);
    // Each switched CTA writes its state once and reads it once; warps that have
    // ended leave theirs out.
    assert!(moved > sectors && moved <= 2 * 4 * sectors && rest == 0, "{moved} of {sectors} each");
    assert_eq!(outcome.kernels[0].ctas_killed, 0);
}

#[test]
fn a_view_does_not_count_saved_state_as_traffic_of_the_program() {
    for name in ["accelsim-qv100", "ugpu"] {
        let sms = [("dispatch.sms", "2"), ("dispatch.kernel_launch_cycles", "0")];
        let resolved = translating(name, &sms);
        let chain = vec![line("FFMA", Some(1), Some(1)); 4000];
        let fixture =
            Scripts::new(vec![Script::new(&resolved, &chain, 1, 4, 128).needing(64, 1024)]);
        let first = plan(&resolved, &[4], draft(Vacate::Switch, vec![WakeOn::At(1000)]));
        let none = plan(&resolved, &[0], draft(Vacate::Switch, vec![WakeOn::CtaDrained]));
        let end = draft(Vacate::Switch, vec![WakeOn::KernelEnd]);
        let again = plan(&resolved, &[4], end);
        let mut wakes = Vec::new();
        let outcome = fixture.run(&resolved, &first, |view| {
            wakes.push((view.apps[0].l2, view.apps[0].l2_merged));
            if wakes.len() == 1 { none.clone() } else { again.clone() }
        });
        assert!(wakes.len() > 1 && wakes.iter().all(|seen| *seen == ((0, 0), 0)), "{wakes:?}");
        let counts = &outcome.kernels[0];
        assert!(counts.l2.accesses() > 0 && counts.state == counts.l2, "{counts:?}");
    }
}

#[test]
fn turns_of_any_length_lose_no_work() {
    for (name, set) in [
        ("plain", &[][..]),
        ("gto", &[("sm.policy", "gto")]),
        ("two-level", &[("sm.policy", "two-level"), ("sm.active_warps", "2")]),
    ] {
        let resolved = small(set);
        for cycles in [97, 500, 1733, 4096] {
            for vacate in [Vacate::Switch, Vacate::Drain, Vacate::Hybrid] {
                let time_slice = Some(TimeSlice { cycles, switch_cycles: 10 });
                let draft = PlanDraft { time_slice, ..draft(vacate, Vec::new()) };
                let fixture = Scripts::new(vec![worker(&resolved), worker(&resolved)]);
                let outcome = fixture.under(&resolved, &plan(&resolved, &[4, 4], draft));
                check_work(&outcome, &resolved);
                assert!(outcome.apps.iter().all(|app| app.finished), "{name} {cycles}");
            }
        }
    }
}

#[test]
fn machines_with_tlbs_and_instruction_caches_lose_no_work_either() {
    for name in ["ugpu", "v100", "warped-slicer"] {
        let sms = [("dispatch.sms", "2"), ("dispatch.kernel_launch_cycles", "0")];
        let resolved = translating(name, &sms);
        for cycles in [700, 2900] {
            let time_slice = Some(TimeSlice { cycles, switch_cycles: 0 });
            let draft = PlanDraft { time_slice, ..draft(Vacate::Switch, Vec::new()) };
            let fixture = Scripts::new(vec![worker(&resolved), worker(&resolved)]);
            let outcome = fixture.under(&resolved, &plan(&resolved, &[4, 4], draft));
            check_work(&outcome, &resolved);
        }
    }
}

#[test]
fn ctas_that_would_end_before_the_next_decision_are_drained() {
    let resolved = small(&[]);
    let count = |alarm| {
        let fixture = Scripts::new(vec![worker(&resolved), worker(&resolved)]);
        let first = plan(&resolved, &[2, 2], draft(Vacate::Hybrid, vec![WakeOn::At(20_000)]));
        let without = plan(&resolved, &[0, 2], draft(Vacate::Hybrid, vec![WakeOn::At(alarm)]));
        let again = plan(&resolved, &[2, 2], draft(Vacate::Hybrid, Vec::new()));
        let outcome = fixture.run(&resolved, &first, |view| {
            if view.now < 20_001 { without.clone() } else { again.clone() }
        });
        check_work(&outcome, &resolved);
        outcome.kernels[0].l2.accesses()
    };
    assert!(count(20_010) > count(90_000), "those with time are not saved");
}

#[test]
fn ctas_that_can_leave_at_once_have_left_when_the_plan_is_in_force() {
    let resolved = small(&[]);
    let chain = vec![line("FFMA", Some(1), Some(1)); 4000];
    let fixture = Scripts::new(vec![Script::new(&resolved, &chain, 1, 4, 64)]);
    let first = plan(&resolved, &[4], draft(Vacate::Flush, vec![WakeOn::At(1000)]));
    let none = plan(&resolved, &[0], draft(Vacate::Flush, vec![WakeOn::CtaDrained]));
    let mut wakes = Vec::new();
    fixture.run(&resolved, &first, |view| {
        wakes.push((view.now, view.wake));
        if wakes.len() == 1 { none.clone() } else { plan(&resolved, &[4], PlanDraft::default()) }
    });
    assert_eq!(wakes, [(1000, Wake::At(1000)), (1000, Wake::CtaDrained(AppId(0)))]);
}

#[test]
fn ctas_that_are_leaving_do_not_count_among_those_that_have_to() {
    let resolved = small(&[("dispatch.sms", "1")]);
    let chain = |length| vec![line("FFMA", Some(1), Some(1)); length];
    let (short, long) = (chain(500), chain(9000));
    // Two that end before 5000 and make room for the last two, which are late for an
    // alarm soon after that.
    let bodies: [&[Line]; 6] = [&short, &short, &long, &long, &long, &long];
    let script = Script::of_ctas(&resolved, &bodies, 6).needing(64, 16 << 10);
    let need = Need::of(&script.launch(), &resolved.machine);
    let fixture = Scripts::new(vec![script]);
    let at =
        |quota, cycle| plan(&resolved, &[quota], draft(Vacate::Hybrid, vec![WakeOn::At(cycle)]));
    let plans = [at(3, 5050), at(2, 5060), plan(&resolved, &[4], draft(Vacate::Drain, vec![]))];
    let mut next = plans.iter();
    let outcome = fixture.run(&resolved, &at(4, 5000), |_| next.next().unwrap().clone());
    let lines = (u64::from(need.registers) * 4 + u64::from(need.shared_bytes)).div_ceil(128);
    assert_eq!(outcome.kernels[0].l2.accesses(), 2 * 2 * lines * 4, "two saved and restored");
}

#[test]
fn time_switched_out_does_not_count_as_lifetime() {
    let resolved = small(&[("dispatch.sms", "1")]);
    let chain = vec![line("FFMA", Some(1), Some(1)); 4000];
    let script = Script::new(&resolved, &chain, 1, 1, 64).needing(64, 16 << 10);
    let need = Need::of(&script.launch(), &resolved.machine);
    let fixture = Scripts::new(vec![script]);
    let at =
        |quota, vacate, cycle| plan(&resolved, &[quota], draft(vacate, vec![WakeOn::At(cycle)]));
    // It has lived for 4000 cycles when it has to leave within 8000, and not for 102 000.
    let plans = [
        at(0, Vacate::Switch, 100_000),
        at(4, Vacate::Drain, 102_000),
        at(0, Vacate::Hybrid, 110_000),
        plan(&resolved, &[4], draft(Vacate::Drain, vec![])),
    ];
    let mut next = plans.iter();
    let outcome =
        fixture.run(&resolved, &at(4, Vacate::Drain, 2000), |_| next.next().unwrap().clone());
    let lines = (u64::from(need.registers) * 4 + u64::from(need.shared_bytes)).div_ceil(128);
    assert_eq!(outcome.kernels[0].l2.accesses(), 2 * lines * 4, "saved and restored once");
}

#[test]
fn slot_cycles_of_a_switch_are_counted() {
    let resolved = small(&[]);
    let chain = vec![line("FFMA", Some(1), Some(1)); 4000];
    let fixture =
        || Scripts::new(vec![Script::new(&resolved, &chain, 1, 2, 128).needing(64, 1024)]);
    let first = plan(&resolved, &[4], draft(Vacate::Switch, vec![WakeOn::At(1000)]));
    let wake = vec![WakeOn::CtaDrained];
    let none = plan(&resolved, &[0], draft(Vacate::Switch, wake));
    let mut wakes = Vec::new();
    let outcome = fixture().run(&resolved, &first, |view| {
        wakes.push(view.now);
        if wakes.len() == 1 { none.clone() } else { plan(&resolved, &[4], PlanDraft::default()) }
    });
    // Every scheduler has a warp of the only CTA as long as that is on its SM.
    let counted: f64 = outcome.kernels[0].stalls.iter().sum();
    #[allow(clippy::cast_precision_loss, reason = "a few thousand cycles")]
    let held = outcome.cta_cycles[0] as f64 * f64::from(resolved.machine.sm.schedulers);
    assert!(wakes[1] > 1010 && (counted / held - 1.0).abs() < 0.005, "{counted} of {held}");
}

#[test]
fn the_work_of_a_flushed_cta_is_no_progress() {
    let resolved = small(&[]);
    let chain = vec![line("FFMA", Some(1), Some(1)); 4000];
    let fixture = Scripts::new(vec![Script::new(&resolved, &chain, 1, 4, 64)]);
    let fixture = fixture.until(End { first: false, at: Some(15_000) });
    let wake = || vec![WakeOn::At(2000)];
    let [none, all] = [0, 4].map(|quota| plan(&resolved, &[quota], draft(Vacate::Flush, wake())));
    let last = plan(&resolved, &[4], PlanDraft::default());
    // None at first; or all, dropped as they come back.
    let late = fixture.run(&resolved, &none, |_| last.clone());
    let mut plans = [&none, &last].into_iter();
    let flushed = fixture.run(&resolved, &all, |_| plans.next().unwrap().clone());
    assert!(flushed.kernels[0].ctas_killed == 4 && flushed.kernels[0].lost_instructions > 0);
    let (late, flushed) = (late.apps[0].progress, flushed.apps[0].progress);
    assert!((flushed / late - 1.0).abs() < 0.01, "{flushed} after a flush, {late} without");
}
