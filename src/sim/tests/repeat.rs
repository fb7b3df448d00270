//! Facts of loops whose repetitions are taken together.

use crate::Outcome;
use crate::testkit::scripted::{Line, Script, kernel_cycles, line, memory, named};

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

/// The same loop taken together and one repetition after the other.
fn both(name: &str, lines: &[Line], repeat: u32, threads: u32) -> [Outcome; 2] {
    let kept = [("fetch.prefetch_lines", "0")];
    let machine = named(name, if name == "v100" { &kept } else { &[] });
    let script = || Script::new(&machine, lines, repeat, 3, threads);
    [script().run(&machine), script().one_by_one().run(&machine)]
}

#[test]
fn repetitions_taken_together_count_and_last_what_they_do_alone() {
    for name in ["accelsim-qv100", "v100", "warped-slicer"] {
        for (repeat, threads) in [(1, 32), (3, 64), (40, 256), (2_000, 96), (20_000, 512)] {
            let [together, alone] = both(name, &body(), repeat, threads);
            let (t, a) = (&together.kernels[0], &alone.kernels[0]);
            let counts = |k: &crate::KernelCounts| {
                (k.warp_instructions, k.thread_instructions, k.by_unit, k.fetch)
            };
            assert_eq!(counts(t), counts(a), "{name} {repeat} x {threads}");
            let (fast, slow) = (kernel_cycles(&together), kernel_cycles(&alone));
            // Intervals end at other cycles: a rounding each.
            assert!(fast.abs_diff(slow) <= 2 + slow / 1000, "{name} {repeat}: {fast} {slow}");
        }
    }
}

#[test]
fn a_loop_with_an_access_is_not_taken_together() {
    let load = memory("LDG.E.SYS", Some(2), None, |_, _, turn| (turn * 4096, 4));
    let lines = [load, line("FADD", Some(3), Some(2)), line("BRA", None, None)];
    let [together, alone] = both("accelsim-qv100", &lines, 50, 64);
    assert_eq!(together, alone);
}

#[test]
fn what_a_loop_asks_of_its_source_grows_with_the_logarithm_of_its_length() {
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
