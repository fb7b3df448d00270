//! Facts of fast-forwarded runs.

use crate::config::Resolved;
use gpumodel_core::contract::{PlanDraft, WakeOn};

use crate::testkit::{Line, Script, Scripts, line, machine, memory, on_threads, plan};
use crate::{Outcome, Passed};

/// A GPU of 8 SMs with 4 CTAs each.
fn small() -> Resolved {
    machine(&[("dispatch.sms", "8"), ("sm.max_ctas", "4")])
}

/// Reads four lines per warp, multiplies, and writes one.
fn lines(words: u64) -> Vec<Line> {
    let read = |k: u64| {
        let at = move |cta, warp, _| (((cta * 4 + warp) * 4 + k) % words * 128, 4);
        memory("LDG.E", Some(u16::try_from(2 + k).unwrap()), Some(1), at)
    };
    let mut lines: Vec<Line> = (0..4).map(read).collect();
    lines.extend((0..40).map(|_| line("FFMA", Some(2), Some(2))));
    let at = move |cta, warp, _| ((1 << 30) + (cta * 4 + warp) * 128, 4);
    lines.push(memory("STG.E", None, Some(2), at));
    lines
}

fn script(resolved: &Resolved, ctas: u32) -> Script {
    Script::new(resolved, &lines(1 << 40), 1, ctas, 128)
}

/// What was passed over of application `app`; its cycles are within the interval of `whole`'s.
fn passed(outcome: &Outcome, whole: &Outcome, app: usize) -> Passed {
    let passed = outcome.apps[app].passed.unwrap();
    let cycles = |outcome: &Outcome| f64::from(u32::try_from(outcome.apps[app].end).unwrap());
    let (found, expected) = (cycles(outcome), cycles(whole));
    let inside = (found - expected).abs() <= passed.interval;
    assert!(inside, "{found} cycles, whole {expected}, {passed:?}");
    passed
}

#[test]
fn a_steady_run_is_mostly_passed_over() {
    let resolved = small();
    let run = script(&resolved, 12_000);
    let whole = run.run(&resolved);
    let outcome = run.run_forwarded(&resolved);
    let passed = passed(&outcome, &whole, 0);
    assert!(2 * passed.cycles > outcome.cycles, "{passed:?} of {}", outcome.cycles);
    let (counts, expected) = (&outcome.kernels[0], &whole.kernels[0]);
    assert_eq!(counts.warp_instructions, expected.warp_instructions);
    assert_eq!(counts.thread_instructions, expected.thread_instructions);
    assert_eq!(counts.by_unit.iter().sum::<u64>(), expected.warp_instructions);
    assert_eq!(counts.ctas_retired, 12_000);
    let sectors = |outcome: &Outcome| {
        let bytes: u64 = outcome.channels.iter().map(|channel| channel.reads).sum();
        f64::from(u32::try_from(bytes).unwrap())
    };
    let part = sectors(&outcome) / sectors(&whole);
    assert!((0.97..1.03).contains(&part), "{part} of the reads");
    let again = run.run_forwarded(&resolved);
    assert_eq!(outcome, again, "the same input gives the same result");
}

#[test]
fn a_stretch_is_the_same_on_any_number_of_threads() {
    let resolved = small();
    let run = || Scripts::new(vec![script(&resolved, 8000)]).forwarded();
    let first = plan(&resolved, &[4], PlanDraft::default());
    let outcome = |fixture: Scripts| fixture.run(&resolved, &first, |_| unreachable!("no wake"));
    let known = outcome(run());
    assert!(known.apps[0].passed.unwrap().stretches > 0);
    assert!(on_threads(2, || outcome(run().on_all_threads())) == known);
}

#[test]
fn each_cta_runs_once() {
    let resolved = small();
    let scripts = Scripts::new(vec![script(&resolved, 8000)]).forwarded();
    let first = plan(&resolved, &[4], PlanDraft::default());
    let outcome = scripts.run(&resolved, &first, |_| unreachable!("no wake"));
    assert!(outcome.apps[0].passed.unwrap().stretches > 0);
    assert!(scripts.opened(0).iter().all(|&count| count == 1));
}

#[test]
fn a_short_launch_is_simulated_in_full() {
    let resolved = small();
    let run = script(&resolved, 60);
    let (whole, outcome) = (run.run(&resolved), run.run_forwarded(&resolved));
    assert_eq!(outcome.apps[0].passed, Some(Passed::default()));
    assert!((outcome.cycles, &outcome.channels) == (whole.cycles, &whole.channels));
    assert!((outcome.kernels[0].l1, &outcome.slices) == (whole.kernels[0].l1, &whole.slices));
}

#[test]
fn data_that_is_used_again_stays_in_the_l2() {
    let resolved = small();
    let run = Script::new(&resolved, &lines(4096), 1, 12_000, 128);
    let (whole, outcome) = (run.run(&resolved), run.run_forwarded(&resolved));
    let passed = passed(&outcome, &whole, 0);
    assert!(passed.stretches > 0);
    let misses = |outcome: &Outcome| outcome.kernels[0].l2.read_misses;
    assert!(misses(&outcome) <= misses(&whole) + misses(&whole) / 20);
}

#[test]
fn a_scheme_is_woken_at_the_cycle_that_it_asked_for() {
    let resolved = small();
    let fixture = || Scripts::new(vec![script(&resolved, 9000), script(&resolved, 9000)]);
    let under = |fixture: Scripts| {
        let mut views = Vec::new();
        let wake = vec![WakeOn::At(150_000)];
        let first = plan(&resolved, &[2, 2], PlanDraft { wake, ..PlanDraft::default() });
        let outcome = fixture.run(&resolved, &first, |view| {
            if views.is_empty() {
                views.push(view.clone());
            }
            plan(&resolved, &[1, 3], PlanDraft::default())
        });
        (outcome, views.remove(0))
    };
    let (whole, expected) = under(fixture());
    let (outcome, view) = under(fixture().forwarded());
    assert_eq!((view.now, expected.now), (150_000, 150_000));
    for app in 0..2 {
        assert!(passed(&outcome, &whole, app).stretches > 0);
        let count = |view: &gpumodel_core::contract::View| {
            f64::from(u32::try_from(view.apps[app].thread_instructions).unwrap())
        };
        let part = count(&view) / count(&expected);
        assert!((0.98..1.02).contains(&part), "{part} of the instructions up to the decision");
    }
}

#[test]
fn a_target_is_reached_as_in_a_whole_run() {
    let resolved = small();
    let target = 4_500_000.0;
    let fixture = || {
        let scripts = Scripts::new(vec![script(&resolved, 30_000), script(&resolved, 30_000)]);
        scripts.with(0, |load| load.target = Some(target))
    };
    let first = plan(&resolved, &[2, 2], PlanDraft::default());
    let again = || plan(&resolved, &[2, 2], PlanDraft::default());
    let whole = fixture().run(&resolved, &first, |_| again());
    let outcome = fixture().forwarded().run(&resolved, &first, |_| again());
    assert!(passed(&outcome, &whole, 0).stretches > 1);
    let over = outcome.apps[0].progress - target;
    assert!((0.0..20_000.0).contains(&over), "{over} instructions beyond the target");
}
