//! Facts of the whole machine, one test each, on hand-made instructions.

use crate::testkit::{Line, Script, kernel_cycles, line, machine, memory};
use crate::{Cause, Outcome};

const EXIT: &str = "EXIT";

fn run(lines: &[Line], repeat: u32, ctas: u32, threads: u32) -> Outcome {
    let machine = machine(&[]);
    Script::new(&machine, lines, repeat, ctas, threads).run(&machine)
}

#[test]
fn a_dependent_chain_costs_latency_plus_pipeline_per_instruction() {
    let chain = [line("FADD", Some(1), Some(1)); 8];
    let short = kernel_cycles(&run(&chain, 10, 1, 32));
    let long = kernel_cycles(&run(&chain, 110, 1, 32));
    // QV100 in the cycle simulator: FADD issues every 2 + 5 cycles.
    assert_eq!(long - short, 100 * 8 * 7);
}

#[test]
fn a_long_run_of_instructions_is_counted_to_the_last() {
    let outcome = run(&vec![line("MUFU.RCP", Some(1), Some(1)); 70_000], 1, 1, 32);
    let counts = &outcome.kernels[0];
    assert_eq!(counts.by_unit[gpumodel_core::isa::Unit::Sfu.index()], 70_000);
    let each = machine(&[]).machine.units["sfu"].initiation_cycles;
    assert_eq!(counts.unit_cycles[gpumodel_core::isa::Unit::Sfu.index()], 70_000 * u64::from(each));
    let early = outcome.timeline[0].warp_instructions;
    assert!(early <= 2_048, "{early} instructions in the first interval");
}

#[test]
fn a_busy_unit_limits_many_independent_warps() {
    let chain = [line("FADD", Some(1), Some(1)); 8];
    let cycles = kernel_cycles(&run(&chain, 100, 1, 1024));
    // 8 warps per scheduler, one instruction every 2 cycles: 8 * 800 * 2.
    assert!((12_800..12_900).contains(&cycles), "{cycles}");
}

#[test]
fn a_second_read_of_a_sector_hits_and_an_overlapping_one_merges() {
    let same = |_, _, _| (0x1000, 4);
    let lines = [
        memory("LDG.E", Some(2), None, same),
        memory("LDG.E", Some(3), None, same),
        line("FADD", Some(4), Some(2)),
        memory("LDG.E", Some(5), None, same),
    ];
    let outcome = run(&lines, 1, 1, 32);
    let l1 = outcome.kernels[0].l1;
    assert_eq!((l1.read_misses, l1.read_merges, l1.read_hits), (4, 4, 4));
}

#[test]
fn every_slot_cycle_has_one_cause() {
    let lines = [
        memory("LDG.E", Some(2), None, |cta, warp, turn| {
            (0x10_0000 + cta * 65_536 + warp * 4_096 + turn * 128, 4)
        }),
        line("FADD", Some(3), Some(2)),
        line("BAR.SYNC", None, None),
        line("MUFU.RCP", Some(3), Some(3)),
    ];
    let outcome = run(&lines, 20, 200, 256);
    let counts = &outcome.kernels[0];
    let counted: f64 = counts.stalls.iter().sum();
    assert!(counted > 0.0 && counted <= counts.slot_cycles * (1.0 + 1e-9));
    let issued = counts.stalls[Cause::Issued as usize];
    let instructions = counts.warp_instructions as f64;
    assert!((issued / instructions - 1.0).abs() < 1e-3, "{issued} for {instructions}");
    assert_eq!((counts.ctas_started, counts.ctas_retired), (200, 200));
}

#[test]
fn a_wait_for_copies_lasts_until_they_have_arrived() {
    let resolved = crate::config::Models::builtin().machine("a100", &[]).unwrap();
    let lines = [
        memory("LDGSTS.E", None, Some(2), |_, _, _| (0x1000, 4)),
        line("LDGDEPBAR", None, None),
        line("DEPBAR.LE", None, None),
    ];
    let cycles =
        |repeat| kernel_cycles(&Script::new(&resolved, &lines, repeat, 1, 32).run(&resolved));
    let per_hit = (cycles(110) - cycles(10)) / 100;
    let latency = u64::from(resolved.machine.l1.latency_cycles);
    assert!(per_hit >= latency, "{per_hit} cycles for a hit of {latency}");
}

#[test]
fn writes_end_a_warp_only_when_they_are_done() {
    let store = [memory("STG.E", None, Some(2), |_, _, _| (0x1000, 4))];
    let outcome = run(&store, 1, 1, 32);
    assert!(kernel_cycles(&outcome) > 160, "the L2 alone takes 160 cycles");
    assert_eq!(outcome.kernels[0].l2.write_misses, 4);
}

#[test]
fn posted_stores_hold_the_launch_and_not_their_ctas() {
    let store = [memory("STG.E", None, Some(2), |cta, _, _| (0x1000 + cta * 128, 4))];
    let fence = [store[0], line("MEMBAR.SC.GPU", None, None)];
    let cycles = |lines: &[Line], posted: &str, ctas| {
        let resolved = machine(&[("sm.posted_stores", posted), ("sm.max_ctas", "1")]);
        let outcome = Script::new(&resolved, lines, 1, ctas, 32).run(&resolved);
        assert_eq!(outcome.kernels[0].ctas_retired, u64::from(ctas));
        assert_eq!(outcome.kernels[0].l2.write_misses, u64::from(ctas) * 4, "none is lost");
        kernel_cycles(&outcome)
    };
    // Eight CTAs on each of 80 SMs, one after the other.
    let (one, eight) = (cycles(&store, "true", 80), cycles(&store, "true", 640));
    assert!(one > 160, "the launch waits for the L2: {one}");
    assert!(eight < 2 * one, "{eight} of {one}");
    assert!(cycles(&store, "false", 640) > 6 * 160);
    assert!(cycles(&fence, "true", 640) > 6 * 160, "a fence waits");
}

#[test]
fn ctas_without_instructions_start_and_retire() {
    let outcome = run(&[line(EXIT, None, None)], 0, 300, 64);
    let counts = &outcome.kernels[0];
    assert_eq!((counts.ctas_retired, counts.warp_instructions), (300, 0));
    assert_eq!(outcome.apps[0].end, counts.end);
}

#[test]
fn the_same_run_gives_the_same_counts() {
    let lines = [
        memory("LDG.E", Some(2), None, |cta, warp, turn| {
            ((cta * 7919 + warp * 104_729 + turn * 1_299_709) % (1 << 26), 36)
        }),
        line("FFMA", Some(3), Some(2)),
        memory("STG.E", None, Some(3), |cta, warp, turn| ((cta * 31 + warp * 17 + turn) * 4096, 4)),
    ];
    assert_eq!(run(&lines, 10, 320, 128), run(&lines, 10, 320, 128));
}

#[test]
fn traffic_is_conserved_between_levels() {
    let lines = [memory("LDG.E", Some(2), None, |cta, warp, turn| {
        (cta * 1_048_576 + warp * 65_536 + turn * 128, 4)
    })];
    let outcome = run(&lines, 16, 160, 256);
    let counts = &outcome.kernels[0];
    assert_eq!(counts.l1.read_misses, counts.l2.reads());
    assert_eq!(counts.l2.read_misses, counts.dram_reads);
    assert_eq!(counts.l1.reads(), 160 * 8 * 16 * 4);
}

#[test]
fn an_sm_sets_up_its_ctas_one_after_the_other() {
    let cycles = |interval: &str, ctas: u32| {
        let set = [("dispatch.sms", "1"), ("dispatch.cta_interval_cycles", interval)];
        let machine = machine(&set);
        let body = [line("FADD", Some(1), None); 4];
        kernel_cycles(&Script::new(&machine, &body, 1, ctas, 64).run(&machine))
    };
    // All ten have a place at once; a hundred take four rounds of the 32 places.
    let more = |ctas| cycles("500", ctas) - cycles("0", ctas);
    assert!(more(1) == 0, "{}", more(1));
    assert!((9 * 490..=9 * 500).contains(&more(10)), "{}", more(10));
    assert!((99 * 490..=99 * 500).contains(&more(100)), "{}", more(100));
}
