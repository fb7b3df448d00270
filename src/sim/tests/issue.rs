//! Facts of warp scheduling, of an SM's partitions and shared units, of branches, of the
//! L2's bound on dirty lines, and of what control bits of the compiler do to issue and operand
//! reads.

use proptest::prelude::*;

use crate::config::Resolved;
use crate::testkit::{Line, Script, kernel_cycles, line, machine, memory, named};
use crate::{Cause, Outcome};
use gpumodel_core::isa::ControlBits;

/// An SM with one scheduler, alone on its GPU, under a policy.
fn lone(policy: &str, active_warps: &str) -> Resolved {
    let keys = [
        ("dispatch.sms", "1"),
        ("sm.schedulers", "1"),
        ("sm.policy", policy),
        ("sm.active_warps", active_warps),
        ("fetch.inner_caches", "1"),
        ("sm.contention", "false"),
        ("dispatch.cta_launch_cycles", "1"),
    ];
    let mut resolved = named("v100", &keys);
    resolved.machine.fetch = None;
    resolved
}

/// One CTA of `warps` warps that run `lines` once.
fn run(resolved: &Resolved, lines: &[Line], warps: u32) -> Outcome {
    Script::new(resolved, lines, 1, 1, 32 * warps).run(resolved)
}

fn cycles(resolved: &Resolved, lines: &[Line], warps: u32) -> u64 {
    kernel_cycles(&run(resolved, lines, warps))
}

fn chain(length: usize) -> Vec<Line> {
    vec![line("FADD", Some(1), Some(1)); length]
}

/// A load whose value is used at once, each warp its own line.
fn load_and_use(opcode: &'static str) -> Vec<Line> {
    let load = memory(opcode, Some(2), None, |_, warp, _| (warp << 12, 4));
    vec![load, line("FADD", Some(1), Some(2))]
}

#[test]
fn a_two_level_scheduler_issues_from_its_active_warps_only() {
    let [one, two, all] = ["1", "2", "8"].map(|n| cycles(&lone("two-level", n), &chain(500), 8));
    let alone = cycles(&lone("two-level", "1"), &chain(500), 1);
    assert!(one.abs_diff(8 * alone) < one / 50, "{one} for eight warps of {alone} cycles");
    assert!(two.abs_diff(4 * alone) < two / 50, "{two} for eight warps of {alone} cycles");
    assert_eq!(all, cycles(&lone("lrr", "0"), &chain(500), 8), "all in the set: round robin");
}

#[test]
fn a_warp_that_waits_for_memory_leaves_the_active_set() {
    let resolved = lone("two-level", "1");
    let of = |opcode, warps| cycles(&resolved, &load_and_use(opcode), warps);
    let (one, eight) = (of("LDG.E", 1), of("LDG.E", 8));
    assert!(eight < one + 200, "eight loads take {eight} cycles, one {one}");
    let (one, eight) = (of("LDS", 1), of("LDS", 8));
    let latency = u64::from(resolved.machine.shared.latency_cycles);
    assert!(eight > one + 6 * latency, "shared memory is no reason: {eight} against {one}");
}

#[test]
fn ready_warps_outside_the_active_set_wait_for_a_resource() {
    let outcome = run(&lone("two-level", "1"), &chain(500), 8);
    let stalls = outcome.kernels[0].stalls;
    let lrr = run(&lone("lrr", "0"), &chain(500), 8).kernels[0].stalls;
    let resource = Cause::ExecutionResource as usize;
    assert!(stalls[resource] > lrr[resource] + 1_000.0, "{stalls:?} against {lrr:?}");
}

/// Independent instructions: each has registers of its own.
fn independent(opcode: &'static str, count: u16) -> Vec<Line> {
    (0..count).map(|n| line(opcode, Some(2 * n), None)).collect()
}

#[test]
fn a_scheduler_alone_has_the_full_rate_of_a_shared_unit() {
    // Turing has one FP64 unit for four schedulers.
    let resolved = named("rtx-2060", &[("dispatch.cta_launch_cycles", "0")]);
    let unit = &resolved.machine.units["fp64"];
    assert!(unit.count < resolved.machine.sm.schedulers);
    let work = independent("DADD", 64);
    let alone = cycles(&resolved, &work, 1);
    let port = 64 * u64::from(unit.initiation_cycles);
    assert!(alone.abs_diff(port) < 64, "{alone} cycles for {port} of the unit");
}

#[test]
fn schedulers_divide_a_shared_unit() {
    let resolved = named("rtx-2060", &[("dispatch.cta_launch_cycles", "0")]);
    let unit = u64::from(resolved.machine.units["fp64"].initiation_cycles);
    let (many, few) = (independent("DADD", 96), independent("DADD", 24));
    let none = independent("FADD", 24);
    let together = |bodies: &[&[Line]]| {
        kernel_cycles(&Script::of_bodies(&resolved, bodies, 1, 1, 128).run(&resolved))
    };
    for (bodies, operations) in [
        ([&many, &many, &many, &many], 4 * 96),
        ([&many, &few, &few, &few], 96 + 3 * 24),
        ([&many, &none, &few, &none], 96 + 24),
    ] {
        let found = together(&bodies.map(Vec::as_slice));
        let port = operations * unit;
        assert!(found.abs_diff(port) < port / 20, "{found} cycles for {port} of the unit");
    }
}

#[test]
fn an_empty_kernel_takes_the_pipeline_of_the_cycle_simulator() {
    let resolved = machine(&[]);
    assert_eq!(cycles(&resolved, &[line("EXIT", None, None)], 1), 8);
}

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
    let branch = 1 + u64::from(resolved.machine.sm.branch_cycles);
    let compare = resolved.isa.opcode(&resolved.machine, "ISETP.GE.AND");
    assert!(compare.writes_predicate && compare.latency_cycles > 10);
    let waits = u64::from(compare.latency_cycles);
    assert_eq!(turn("v100", &["ISETP.GE.AND", "BRA"]), waits + branch);
    assert_eq!(turn("v100", &["IADD3", "BRA"]), 1 + branch, "nothing to wait for");
}

#[test]
fn an_untaken_branch_delays_its_warp() {
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
    let [met, spread, two] = ["slots", "rotating", "alternating"].map(uneven);
    assert!(met > 3 * spread, "{met} cycles where they meet, {spread} where they do not");
    assert!(two.abs_diff(2 * spread) < spread / 4, "{two} on two schedulers, {spread} on four");
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

/// Lines without addresses, a shared load and a global one.
fn any_line() -> impl Strategy<Value = Line> {
    prop_oneof![
        Just(line("FADD", Some(1), Some(1))),
        Just(line("FADD", Some(3), None)),
        Just(line("DADD", Some(4), Some(2))),
        Just(line("MUFU.RCP", Some(3), Some(3))),
        Just(line("BAR.SYNC", None, None)),
        Just(memory("LDG.E", Some(2), None, |cta, warp, turn| ((cta + warp + turn) << 9, 4))),
        Just(memory("LDS", Some(5), Some(1), |_, warp, _| (warp * 128, 4))),
        Just(memory("STG.E", None, Some(1), |cta, warp, _| ((cta * 64 + warp) << 10, 4))),
        Just(line("FADD", Some(1), Some(5))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_stall_stack_sums_to_slots_times_cycles(
        lines in proptest::collection::vec(any_line(), 1..40),
        warps in 1_u32..12,
        turns in 1_u32..4,
    ) {
        for (policy, active) in [("lrr", "0"), ("gto", "0"), ("oldest", "0"), ("two-level", "2")] {
            let mut resolved = lone(policy, active);
            // The launch lasts as long as its warps.
            resolved.machine.sm.posted_stores = false;
            let outcome = Script::new(&resolved, &lines, turns, 1, 32 * warps).run(&resolved);
            let counts = &outcome.kernels[0];
            let begin = counts.first_cta + resolved.machine.dispatch.cta_launch_cycles;
            let slots = (counts.end - begin) as f64;
            let counted: f64 = counts.stalls.iter().sum();
            prop_assert!((counted - slots).abs() < 1e-3 * slots, "{policy}: {counted} of {slots}");
            let issued = counts.stalls[Cause::Issued as usize];
            let instructions = counts.warp_instructions as f64;
            prop_assert!((issued - instructions).abs() < 1e-2 * instructions, "{policy}: {issued}");
        }
    }
}

/// Repetitions of a body.
const TIMES: u32 = 1000;

/// A stall count, a write barrier or 7 for none, and which sources are marked `.reuse`.
fn control_bits(stall: u32, write_barrier: u32, marks: u32) -> ControlBits {
    ControlBits::unpacked(stall | 1 << 4 | write_barrier << 5 | 7 << 8 | marks << 21)
}

/// Cycles of one warp that repeats `lines` on a V100 with these keys.
fn repeated(keys: &[(&str, &str)], lines: &[Line]) -> u64 {
    let machine = named("v100", keys);
    kernel_cycles(&Script::new(&machine, lines, TIMES, 1, 32).run(&machine))
}

/// The same with so much of the control bits in use, and results that have a port of their own.
fn controlled_cycles(used: &str, lines: &[Line]) -> u64 {
    repeated(&[("sm.control_bits", used), ("sm.operand_reads", "reuse")], lines)
}

/// Ten multiply-adds, each of the result of the one before it.
fn multiply_adds(control: Option<ControlBits>) -> Vec<Line> {
    let one = line("FFMA", Some(1), Some(1));
    vec![control.map_or(one, |control| one.controlled(control)); 10]
}

#[test]
fn results_take_turns_with_operands_at_one_port() {
    let fma = |n: u16| line("FFMA", Some(20 + 2 * n), Some(2)).reading(&[5, 7]);
    let add = |n: u16| line("IADD3", Some(51 + 2 * n), Some(4));
    let cycles = |reads: &str, lines: &[Line]| {
        repeated(&[("sm.operand_reads", reads)], lines) / u64::from(10 * TIMES)
    };
    let both = |lines: &[Line]| ["reuse", "reuse-one-port"].map(|reads| cycles(reads, lines));
    let alone: Vec<Line> = (0..10).map(fma).collect();
    assert_eq!(both(&alone), [2, 2], "two operands, or one and the result, in each bank");
    let pairs: Vec<Line> = (0..10).flat_map(|n| [fma(n), add(n)]).collect();
    assert_eq!(both(&pairs), [2, 3], "two operands in each bank, and a result");
}

#[test]
fn a_stall_count_takes_the_place_of_the_wait_for_a_result() {
    let instructions = u64::from(TIMES) * 10;
    let plain = controlled_cycles("all", &multiply_adds(None));
    let stalled = |stall| controlled_cycles("all", &multiply_adds(Some(control_bits(stall, 7, 0))));
    // The latency of FFMA is 4 cycles; its unit takes one every 2.
    assert_eq!(stalled(4), plain);
    assert_eq!(stalled(9), plain + 5 * instructions - 5);
    assert!(stalled(1).abs_diff(plain - 2 * instructions) < 10, "{} {plain}", stalled(1));
}

#[test]
fn an_instruction_that_yields_leaves_the_next_cycle_to_other_warps() {
    // Two units in turn, so that one instruction per cycle can issue.
    let body = |stall: u32, yields: bool| -> Vec<Line> {
        let bits = control_bits(stall, 7, 0).packed() & !(u32::from(yields) << 4);
        let pair = [line("FFMA", Some(20), Some(2)), line("IADD3", Some(21), Some(3))];
        pair.map(|one| one.controlled(ControlBits::unpacked(bits))).repeat(5)
    };
    let cycles = |stall, yields| controlled_cycles("all", &body(stall, yields));
    let instructions = u64::from(TIMES) * 10;
    assert!(cycles(1, true).abs_diff(cycles(1, false) + instructions) < 10);
    assert_eq!(cycles(2, true), cycles(2, false), "its stall count covers it");
}

#[test]
fn results_come_later_to_other_units_and_to_memory() {
    let keyed = |name: &str, keys: &[(&str, &str)], reader: &Line| {
        let machine = named(name, keys);
        let lines = [line("IADD3", Some(1), Some(2)), *reader];
        kernel_cycles(&Script::new(&machine, &lines, TIMES, 1, 32).run(&machine)) / u64::from(TIMES)
    };
    let cycles = |name: &str, reader: &Line| keyed(name, &[], reader);
    let own = line("IADD3", Some(2), Some(1));
    let store = memory("STS", None, Some(1), |_, _, _| (0, 4));
    let (fp32, special) = (line("FFMA", Some(2), Some(1)), line("MUFU.RCP", Some(2), Some(1)));
    assert_eq!([cycles("v100", &own), cycles("v100", &fp32)], [8, 10], "5 each way");
    let at_once = keyed("v100", &[("sm.sfu_operand_cycles", "0")], &special);
    assert_eq!(cycles("v100", &special), at_once + 2);
    let [volta, ampere] = ["v100", "a100"].map(|name| cycles(name, &store));
    assert_eq!((volta, ampere), (9, 6), "8 and 5 cycles to the data, and one to the next turn");
}

#[test]
fn a_result_behind_a_write_barrier_is_waited_for_by_register() {
    let plain = controlled_cycles("all", &multiply_adds(None));
    assert_eq!(controlled_cycles("all", &multiply_adds(Some(control_bits(1, 0, 0)))), plain);
}

#[test]
fn bits_that_are_not_used_change_nothing() {
    let plain = controlled_cycles("ignored", &multiply_adds(None));
    for used in ["ignored", "reuse"] {
        assert_eq!(
            controlled_cycles(used, &multiply_adds(Some(control_bits(9, 7, 0)))),
            plain,
            "{used}"
        );
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
    let rule = controlled_cycles("reuse", &body(None));
    let marked = controlled_cycles("reuse", &body(Some(control_bits(1, 7, 0b11))));
    let unmarked = controlled_cycles("reuse", &body(Some(control_bits(1, 7, 0))));
    assert!(marked.abs_diff(rule) < 10, "{marked} {rule}");
    assert!(unmarked.abs_diff(rule + instructions) < u64::from(TIMES) * 2, "{unmarked} {rule}");
}
