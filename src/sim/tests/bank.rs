//! Facts of an L1 whose banks work in order, and of its port to the registers.

use crate::testkit::scripted::{Line, Script, kernel_cycles, memory, named, scattered};

/// Cycles that each of 16 further turns of `lines` takes, 16 warps together.
fn cycles_per_turn(lines: &[Line], set: &[(&str, &str)]) -> f64 {
    let resolved = named("accelsim-qv100", set);
    let run = |turns| kernel_cycles(&Script::new(&resolved, lines, turns, 1, 512).run(&resolved));
    (run(32) - run(16)) as f64 / 16.0
}

fn assert_near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.05, "{found} is not {expected}");
}

#[test]
fn sectors_of_one_bank_take_turns_and_others_go_together() {
    // A sector of each of 16 lines, in the L1 after the first turn.
    let column = |sector: fn(u64) -> u64| {
        scattered("LDG.E", Some(2), None, move |_, _, _, lane| {
            let line = lane / 2;
            line * 128 + sector(line) * 32
        })
    };
    let (same, spread) = (column(|_| 1), column(|line| line % 4));
    assert_near(cycles_per_turn(&[same], &[]), 16.0 * 16.0);
    assert_near(cycles_per_turn(&[spread], &[]), 16.0 * 4.0);
    assert_near(cycles_per_turn(&[same], &[("l1.bank_bytes", "0")]), 16.0 * 4.0);
}

#[test]
fn what_comes_from_below_is_handed_over_one_sector_per_cycle() {
    // Six warps load the same new line: four sectors arrive and are asked for 24
    // times. The first warps ask for the next line before the last have theirs.
    let load = memory("LDG.E", Some(2), Some(2), |_, _, turn| (turn * 128, 4));
    let run = |returns| {
        let resolved = named("accelsim-qv100", &[("l1.returns_per_cycle", returns)]);
        kernel_cycles(&Script::new(&resolved, &[load], 8, 1, 192).run(&resolved))
    };
    let each = (run("1") - run("0")) as f64 / 8.0;
    assert!((7.0..=24.0).contains(&each), "{each} of 24 cycles");
}

#[test]
fn a_sector_that_must_wait_holds_up_its_own_bank_only() {
    // More warps than a miss takes ask for one sector; another bank's are hits.
    let lines = [
        memory("LDG.E", Some(2), None, |_, _, turn| (turn * 4096, 0)),
        memory("LDG.E", Some(3), None, |_, _, _| (1 << 20 | 32, 0)),
    ];
    let run = |set: &[(&str, &str)]| {
        let resolved = named("accelsim-qv100", set);
        let outcome = Script::new(&resolved, &lines, 16, 1, 512).run(&resolved);
        (kernel_cycles(&outcome), outcome.kernels[0].l1.reads())
    };
    let (banked, reads) = run(&[]);
    let (whole, same) = run(&[("l1.bank_bytes", "0")]);
    assert_eq!((reads, same), (2 * 16 * 16, 2 * 16 * 16), "none is lost");
    assert!(banked < whole, "{banked} is not below {whole}");
}
