//! Facts of barriers, one test each, on hand-made instructions.

use crate::testkit::{Line, Script, kernel_cycles, line, machine, named};
use crate::{Cause, KernelCounts, LostBarrier, MachineError};
use gpumodel_core::units::Dim3;

/// Arithmetic that takes this many cycles or more.
const LONG: usize = 100;

fn chain() -> Vec<Line> {
    vec![line("FADD", Some(1), Some(1)); LONG]
}

/// Runs one CTA whose warps run `bodies` in turn on a V100.
fn run(bodies: &[Vec<Line>], warps: u32) -> KernelCounts {
    try_run(bodies, warps).unwrap()
}

fn try_run(bodies: &[Vec<Line>], warps: u32) -> Result<KernelCounts, MachineError> {
    let resolved = named("v100", &[]);
    let bodies: Vec<&[Line]> = bodies.iter().map(Vec::as_slice).collect();
    let script = Script::of_bodies(&resolved, &bodies, 1, 1, 32 * warps);
    Ok(script.try_run(&resolved)?.kernels[0].clone())
}

fn cycles(counts: &KernelCounts) -> u64 {
    counts.end - counts.first_cta
}

fn sync(immediates: &'static [i64]) -> Line {
    line("BAR.SYNC", None, None).immediates(immediates)
}

fn arrive(immediates: &'static [i64]) -> Line {
    line("BAR.ARV", None, None).immediates(immediates)
}

#[test]
fn numbered_barriers_do_not_wait_for_each_other() {
    // Two warps meet at barrier 1, two at barrier 2, which come late: with one
    // barrier for all, the first two would wait for the others each time.
    let early = |id: &'static [i64]| [vec![sync(id)], chain(), vec![sync(id)]].concat();
    let apart = run(&[early(&[1, 64]), early(&[2, 64])], 4);
    let alone = run(&[early(&[1, 64])], 2);
    // Arrivals take turns, two cycles each.
    let later = cycles(&apart) - cycles(&alone);
    assert!(later <= 8, "{later} cycles");
    assert_eq!(apart.assumed_barriers, 0);
}

#[test]
fn a_counted_barrier_opens_by_its_count_of_warps() {
    // Warps 0 and 1 meet and end; 2 and 3 never come to that barrier.
    let pair = vec![sync(&[1, 64])];
    let other = vec![line("FADD", Some(1), None)];
    let counts = run(&[pair.clone(), pair, other.clone(), other], 4);
    assert_eq!(counts.warp_instructions, 4);
}

#[test]
fn arriving_warps_go_on_and_syncing_ones_wait_for_them() {
    let late = [chain(), vec![arrive(&[3, 64])]].concat();
    let waiting = vec![sync(&[3, 64])];
    let waits = run(&[late.clone(), waiting.clone()], 2);
    assert!(cycles(&waits) > cycles(&run(&[chain()], 1)), "the second warp waits for the first");
    let early = [vec![arrive(&[3, 64])], chain()].concat();
    let late = [chain(), vec![sync(&[3, 64])]].concat();
    let stalls = run(&[early, late], 2).stalls;
    let waited = stalls[Cause::Barrier as usize];
    assert!(waited < 30.0, "no warp waits for longer than a barrier takes: {stalls:?}");
}

#[test]
fn a_barrier_takes_its_latency_and_arrivals_take_turns() {
    let of = |barriers: usize, warps: u32| cycles(&run(&[vec![sync(&[0, 0]); barriers]], warps));
    let each = |warps: u32| (of(40, warps) - of(20, warps)) / 20;
    // 22 cycles from the last arrival on, 2 for each arrival, and the issue of each.
    assert!((22..=24).contains(&each(1)), "{}", each(1));
    assert!((84..=94).contains(&each(32)), "{}", each(32));
}

#[test]
fn a_barrier_that_can_never_open_is_an_error_and_names_the_warps() {
    let error = try_run(&[vec![sync(&[1, 96])]], 2).unwrap_err();
    let lost = LostBarrier {
        number: Some(1),
        cluster: false,
        registers: false,
        object: None,
        arrived: 2,
        expected: 3,
        waiting: vec![(0, 0), (1, 0)],
    };
    let MachineError::LostArrival(found) = &error else { panic!("{error}") };
    assert_eq!((&found.barriers[..], found.cta), (&[lost][..], Some(Dim3::new(0, 0, 0))));
    let words = "at barrier 1 with 2 of 3 arrivals: warp 0 at PC 0x0000, warp 1 at PC 0x0000; no";
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn a_lost_arrival_names_the_warps_that_wait_and_where() {
    let first = [chain(), vec![sync(&[1, 64])]].concat();
    let second = vec![line("FADD", Some(1), None)];
    let error = try_run(&[first, second], 2).unwrap_err();
    let MachineError::LostArrival(found) = &error else { panic!("{error}") };
    let [barrier] = &found.barriers[..] else { panic!("{found:?}") };
    assert_eq!((barrier.arrived, barrier.expected), (1, 2));
    let [(0, pc)] = barrier.waiting[..] else { panic!("{found:?}") };
    assert_eq!(pc, 16 * LONG as u64, "behind the chain");
}

#[test]
fn warps_that_have_ended_count_at_a_whole_barrier_only() {
    let short = vec![line("FADD", Some(1), None)];
    let whole = [chain(), vec![sync(&[0, 0])]].concat();
    run(&[short.clone(), whole], 2);
    let counted = [chain(), vec![sync(&[0, 64])]].concat();
    assert!(matches!(try_run(&[short, counted], 2), Err(MachineError::LostArrival(_))));
}

#[test]
fn a_warp_that_arrived_and_ended_counts_once() {
    // Warp 0 arrives and ends; 1 and 2 must still wait for each other.
    let first = vec![arrive(&[0])];
    let second = [vec![sync(&[0])], vec![line("FADD", Some(1), None)]].concat();
    let third = [chain(), vec![sync(&[0])]].concat();
    let counts = run(&[first, second, third], 3);
    assert!(counts.stalls[Cause::Barrier as usize] > 100.0, "{:?}", counts.stalls);
}

#[test]
fn a_barrier_without_immediates_is_for_the_whole_cta_and_counted() {
    let counts = run(&[[vec![sync(&[])], chain()].concat()], 4);
    assert_eq!(counts.assumed_barriers, 4);
}

#[test]
fn the_imported_machines_have_one_barrier() {
    let resolved = machine(&[]);
    let pair = [sync(&[1, 64])];
    let other = [sync(&[2, 64])];
    let script = Script::of_bodies(&resolved, &[&pair, &other], 1, 1, 128);
    let outcome = script.run(&resolved);
    assert_eq!((outcome.kernels[0].assumed_barriers, outcome.kernels[0].ctas_retired), (0, 1));
    assert!(kernel_cycles(&outcome) < 100);
}

fn set_registers(immediates: &'static [i64]) -> Line {
    line("USETMAXREG.TRY_ALLOC.CTAPOOL", None, None).immediates(immediates)
}

/// A CTA of two warps, launched with 64 registers per thread, on an H100.
fn share_registers(bodies: &[Vec<Line>]) -> Result<u64, MachineError> {
    let resolved = named("h100", &[]);
    let bodies: Vec<&[Line]> = bodies.iter().map(Vec::as_slice).collect();
    let script = Script::of_bodies(&resolved, &bodies, 1, 1, 64).needing(64, 0);
    Ok(cycles(&script.try_run(&resolved)?.kernels[0]))
}

#[test]
fn registers_are_waited_for_until_another_warp_gives_them_back() {
    let gives = [chain(), vec![set_registers(&[24])]].concat();
    let takes = [vec![set_registers(&[104])], chain()].concat();
    let alone = share_registers(&[chain(), chain()]).unwrap();
    let shared = share_registers(&[gives, takes]).unwrap();
    // A chain takes four cycles an instruction.
    assert!(shared.abs_diff(alone + 4 * LONG as u64) < 20, "in turn: {shared}, {alone}");
    let less = [vec![set_registers(&[40])], chain()].concat();
    let apart = share_registers(&[less.clone(), less]).unwrap();
    assert!(apart.abs_diff(alone) < 20, "fewer are there at once: {apart}, {alone}");
}

#[test]
fn registers_that_never_come_are_an_error() {
    let bodies = [vec![set_registers(&[32])], vec![set_registers(&[104])]];
    let error = share_registers(&bodies).unwrap_err().to_string();
    let words = "at USETMAXREG with 32 of 40 registers per thread free: warp 1 at PC 0x0010";
    assert!(error.contains(words), "{error}");
}
