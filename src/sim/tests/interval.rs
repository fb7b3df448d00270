//! Facts of intervals: loops whose repetitions are computed at once, and profiles of an earlier
//! run.

use crate::testkit::{Line, Script, kernel_cycles, line, machine, memory, named};
use crate::{Outcome, ProfileImage};

/// Dependent and independent arithmetic, two units, a special function.
fn body() -> Vec<Line> {
    vec![
        line("FFMA", Some(1), Some(1)),
        line("FFMA", Some(2), Some(2)),
        line("IMAD", Some(3), Some(1)),
        line("MUFU.RCP", Some(4), Some(3)).masked(0xffff),
        line("FFMA", Some(1), Some(4)),
        line("ISETP.NE.AND", None, Some(3)),
        line("BRA", None, None),
    ]
}

/// A loop with repetitions computed at once, and one by one.
fn both(name: &str, lines: &[Line], repeat: u32, threads: u32) -> [Outcome; 2] {
    let kept = [("fetch.prefetch_lines", "0")];
    let machine = named(name, if name == "v100" { &kept } else { &[] });
    let script = || Script::new(&machine, lines, repeat, 3, threads);
    [script().run(&machine), script().one_by_one().run(&machine)]
}

#[test]
fn repetitions_at_once_have_the_counts_and_cycles_of_single_ones() {
    for name in ["accelsim-qv100", "v100", "warped-slicer"] {
        for (repeat, threads) in [(1, 32), (3, 64), (40, 256), (2_000, 96), (20_000, 512)] {
            let [together, alone] = both(name, &body(), repeat, threads);
            let (t, a) = (&together.kernels[0], &alone.kernels[0]);
            let counts = |k: &crate::KernelCounts| {
                (k.warp_instructions, k.thread_instructions, k.by_unit, k.fetch)
            };
            assert_eq!(counts(t), counts(a), "{name} {repeat} x {threads}");
            let (fast, slow) = (kernel_cycles(&together), kernel_cycles(&alone));
            // Intervals end at other cycles: each rounds once.
            assert!(fast.abs_diff(slow) <= 2 + slow / 1000, "{name} {repeat}: {fast} {slow}");
        }
    }
}

#[test]
fn a_loop_with_an_access_is_not_computed_at_once() {
    let load = memory("LDG.E.SYS", Some(2), None, |_, _, turn| (turn * 4096, 4));
    let lines = [load, line("FADD", Some(3), Some(2)), line("BRA", None, None)];
    let [together, alone] = both("accelsim-qv100", &lines, 50, 64);
    assert_eq!(together, alone);
}

#[test]
fn the_segments_that_a_loop_enters_grow_with_the_logarithm_of_its_length() {
    let machine = named("accelsim-qv100", &[]);
    let entered = |repeat: u32| {
        let script = Script::new(&machine, &body(), repeat, 1, 32);
        script.run(&machine);
        script.entered()
    };
    let counts = [1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16].map(entered);
    for pair in counts.windows(2) {
        // Three repetitions, then the rest of an interval; a sixteenth more each time:
        // about eleven intervals per doubling.
        assert!(pair[1] - pair[0] < 60, "{counts:?}");
    }
    assert!(counts[0] > 2, "{counts:?}");
}

/// A load, its use, a barrier, arithmetic.
fn kernel() -> Vec<Line> {
    vec![
        memory("LDG.E.SYS", Some(2), Some(8), |cta, _, turn| (cta * 65536 + turn * 128, 4)),
        line("MUFU.RCP", Some(4), Some(2)),
        line("BAR.SYNC", None, None),
        line("FADD", Some(5), Some(4)),
    ]
}

/// An outcome without its profiles.
fn bare(outcome: &Outcome) -> Outcome {
    Outcome { profiles: vec![], ..outcome.clone() }
}

#[test]
fn a_profile_of_an_earlier_run_changes_nothing_and_is_complete() {
    let machine = machine(&[]);
    let script = Script::new(&machine, &kernel(), 12, 4, 96);
    let first = script.run(&machine);
    assert_eq!(first.profiles.len(), 1);
    let again = script.run_knowing(&machine, &first.profiles);
    assert!(again.profiles.is_empty());
    assert_eq!(again, bare(&first));
}

#[test]
fn a_part_of_a_profile_or_that_of_longer_code_is_not_loaded() {
    let machine = machine(&[]);
    let script = Script::new(&machine, &kernel(), 5, 1, 64);
    let first = script.run(&machine);
    let words = first.profiles[0].words();
    let refused = |words: Vec<u32>| {
        let outcome = script.run_knowing(&machine, &[ProfileImage::new(words)]);
        assert_eq!(outcome, first);
    };
    (0..words.len()).for_each(|length| refused(words[..length].to_vec()));
    refused([words, &[0]].concat());
    let long = [kernel(), kernel()].concat();
    let other = Script::new(&machine, &long, 5, 1, 64).run(&machine);
    refused(other.profiles[0].words().to_vec());
}
