//! What control bits of the compiler do to issue and operand reads.

use crate::testkit::scripted::{Line, Script, kernel_cycles, line, named};
use gpumodel_core::isa::ControlBits;

/// Repetitions of a body.
const TIMES: u32 = 1000;

/// A stall count, a write barrier or 7 for none, and which sources are marked `.reuse`.
fn bits(stall: u32, write_barrier: u32, marks: u32) -> ControlBits {
    ControlBits::unpacked(stall | 1 << 4 | write_barrier << 5 | 7 << 8 | marks << 21)
}

/// Cycles of one warp that repeats `lines`, with so much of the control bits in use.
fn cycles(used: &str, lines: &[Line]) -> u64 {
    let machine = named("v100", &[("sm.control_bits", used)]);
    kernel_cycles(&Script::new(&machine, lines, TIMES, 1, 32).run(&machine))
}

/// Ten multiply-adds, each of the result of the one before it.
fn chain(control: Option<ControlBits>) -> Vec<Line> {
    let one = line("FFMA", Some(1), Some(1));
    vec![control.map_or(one, |control| one.controlled(control)); 10]
}

#[test]
fn a_stall_count_takes_the_place_of_the_wait_for_a_result() {
    let instructions = u64::from(TIMES) * 10;
    let plain = cycles("all", &chain(None));
    let stalled = |stall| cycles("all", &chain(Some(bits(stall, 7, 0))));
    // The latency of FFMA is 4 cycles; its unit takes one every 2.
    assert_eq!(stalled(4), plain);
    assert_eq!(stalled(9), plain + 5 * instructions - 5);
    assert!(stalled(1).abs_diff(plain - 2 * instructions) < 10, "{} {plain}", stalled(1));
}

#[test]
fn a_result_behind_a_write_barrier_is_waited_for_by_register() {
    let plain = cycles("all", &chain(None));
    assert_eq!(cycles("all", &chain(Some(bits(1, 0, 0)))), plain);
}

#[test]
fn bits_that_are_not_used_change_nothing() {
    let plain = cycles("ignored", &chain(None));
    for used in ["ignored", "reuse"] {
        assert_eq!(cycles(used, &chain(Some(bits(9, 7, 0)))), plain, "{used}");
    }
}

#[test]
fn an_operand_is_read_again_unless_it_is_marked() {
    // Three operands of one bank, which delivers one per cycle; the unit takes 2 cycles.
    let body = |control: Option<ControlBits>| -> Vec<Line> {
        let all = (0..10).map(|n| line("FFMA", Some(20 + n), Some(2)).reading(&[4, 6]));
        all.map(|one| control.map_or(one, |control| one.controlled(control))).collect()
    };
    let instructions = u64::from(TIMES) * 10;
    let rule = cycles("reuse", &body(None));
    let marked = cycles("reuse", &body(Some(bits(1, 7, 0b11))));
    let unmarked = cycles("reuse", &body(Some(bits(1, 7, 0))));
    assert!(marked.abs_diff(rule) < 10, "{marked} {rule}");
    assert!(unmarked.abs_diff(rule + instructions) < u64::from(TIMES) * 2, "{unmarked} {rule}");
}
