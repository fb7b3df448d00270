//! Facts of a hardware SM's partitions: which warps meet where, what a branch
//! waits for, and what of the L2 may be dirty.

use crate::testkit::scripted::{Script, kernel_cycles, line, memory, named};

/// Cycles of one more turn of a lone warp's `lines` on `machine`.
fn turn(machine: &str, opcodes: &[&'static str]) -> u64 {
    let resolved = named(machine, &[]);
    let lines: Vec<_> = opcodes.iter().map(|opcode| line(opcode, None, Some(2))).collect();
    let cycles =
        |turns| kernel_cycles(&Script::new(&resolved, &lines, turns, 1, 32).run(&resolved));
    (cycles(40) - cycles(20)) / 20
}

#[test]
fn a_branch_waits_for_the_comparison_before_it() {
    let resolved = named("v100", &[]);
    let taken = 1 + u64::from(resolved.machine.sm.branch_cycles);
    let compare = resolved.isa.opcode(&resolved.machine, "ISETP.GE.AND");
    assert!(compare.writes_predicate && compare.latency_cycles > 10);
    let waits = u64::from(compare.latency_cycles);
    assert_eq!(turn("v100", &["ISETP.GE.AND", "BRA"]), waits + taken);
    assert_eq!(turn("v100", &["IADD3", "BRA"]), 1 + taken, "nothing to wait for");
}

#[test]
fn a_branch_that_goes_on_holds_its_warp_up() {
    let resolved = named("v100", &[]);
    let hold = u64::from(resolved.isa.opcode(&resolved.machine, "BRA").hold_cycles);
    let with = turn("v100", &["IADD3", "BRA", "IADD3", "NOP"]);
    let without = turn("v100", &["IADD3", "NOP", "IADD3", "NOP"]);
    assert_eq!(with - without, hold - 1);
    let (plain, branch) = (["IADD3", "NOP", "FADD"], ["ISETP.GE.AND", "NOP", "FADD"]);
    assert_eq!(turn("accelsim-qv100", &plain), turn("accelsim-qv100", &branch));
}

/// Cycles of 16 CTAs of four warps on one SM, where the first warp of each
/// does all the work.
fn uneven(placement: &str) -> u64 {
    let set = [("dispatch.sms", "1"), ("sm.warp_placement", placement)];
    let resolved = named("v100", &set);
    let work = [line("FFMA", Some(1), Some(2)); 400];
    let idle = [line("FFMA", Some(1), Some(2))];
    let bodies: [&[_]; 4] = [&work, &idle, &idle, &idle];
    kernel_cycles(&Script::of_bodies(&resolved, &bodies, 1, 16, 128).run(&resolved))
}

#[test]
fn ctas_that_begin_at_other_schedulers_spread_their_first_warps() {
    let (met, spread) = (uneven("slots"), uneven("rotating"));
    assert!(met > 3 * spread, "{met} cycles where they meet, {spread} where they do not");
}

#[test]
fn half_of_the_ways_may_be_dirty_and_the_rest_is_written_back() {
    let resolved = named("v100", &[("dispatch.sms", "1")]);
    let l2 = &resolved.machine.l2;
    let lines = u64::from(l2.slices * l2.cache.sets * l2.cache.ways);
    let share = u64::from(l2.cache.dirty_ways_percent.unwrap());
    let store = [memory("STG.E", None, Some(3), |_, _, turn| (turn * 128, 4))];
    let turns = u32::try_from(lines).unwrap();
    let counts = Script::new(&resolved, &store, turns, 1, 32).run(&resolved).kernels[0].clone();
    let kept = 4 * lines * share / 100;
    let written = counts.dram_writes;
    assert!(written.abs_diff(4 * lines - kept) < kept / 50, "{written} of {}", 4 * lines);
    assert_eq!(counts.l2.write_misses, 0, "writes that fetch nothing hit");
}
