//! Facts of an L2 in two halves.

use crate::config::Resolved;
use crate::counters::KernelCounts;
use crate::testkit::scripted::{Script, kernel_cycles, memory, memory_of, named, scattered};

const HOP: u64 = 132;

fn machine(hop: &str) -> Resolved {
    named("a100", &[("l2.far_half_cycles", hop), ("quirks.no_refresh", "true")])
}

/// The first line whose slice lies in this half.
fn line_of_half(resolved: &Resolved, half: u32) -> u64 {
    let (_, map) = memory_of(resolved);
    let channels = resolved.machine.dram.channels / 2;
    let mut lines = (1..10_000).map(|k| k * 128);
    lines.find(|&at| map.locate(at).channel / channels == half).unwrap()
}

/// Cycles of one access of one lane, the last of `turns` + 1 to one word.
fn last(resolved: &Resolved, opcode: &'static str, half: u32, turns: u32) -> u64 {
    let at = line_of_half(resolved, half);
    let access = [memory(opcode, Some(2), Some(2), move |_, _, _| (at, 0))];
    let run = |turns| {
        kernel_cycles(&Script::new(resolved, &access, turns, 1, 32).with_mask(1).run(resolved))
    };
    run(turns + 1) - run(turns)
}

#[test]
fn a_copy_is_as_near_as_the_home() {
    let halves = machine(&HOP.to_string());
    let [near, far] = [0, 1].map(|half| last(&halves, "LDG.E.STRONG.GPU", half, 8));
    assert_eq!(near, far);
    assert_eq!(near, last(&machine("0"), "LDG.E.STRONG.GPU", 0, 8));
}

#[test]
fn an_atomic_goes_to_the_home() {
    let halves = machine(&HOP.to_string());
    let [near, far] = [0, 1].map(|half| last(&halves, "ATOMG.E.ADD.STRONG.GPU", half, 8));
    // The look-up on the way is a cycle, and so is that at the home.
    assert!((HOP..HOP + 3).contains(&(far - near)), "{near} cycles near, {far} far");
}

#[test]
fn the_first_load_of_the_far_half_crosses() {
    let first = |resolved: &Resolved, half| last(resolved, "LDG.E.STRONG.GPU", half, 0);
    let (whole, halves) = (machine("0"), machine(&HOP.to_string()));
    let more = |half| first(&halves, half) - first(&whole, half);
    assert_eq!(more(0), 0);
    assert!((HOP..HOP + 3).contains(&more(1)), "{} cycles more", more(1));
}

#[test]
fn a_copy_ends_when_its_home_is_evicted() {
    // With one line per slice, an atomic at the home of the first line evicts it there alone.
    let reads = |ways| {
        let sizes = [("l2.cache.sets", "1"), ("l2.cache.ways", ways)];
        let resolved = named("a100", &[&sizes[..], &[("l2.far_half_cycles", "132")]].concat());
        let (_, map) = memory_of(&resolved);
        let first = line_of_half(&resolved, 1);
        let home = map.locate(first);
        let same = |at: &u64| (map.locate(*at).channel, map.locate(*at).slice);
        let mut lines = (1..100_000).map(|k| first + k * 128);
        let second = lines.find(|at| same(at) == (home.channel, home.slice)).unwrap();
        let access = |opcode, register, at| {
            memory(opcode, Some(register + 1), Some(register), move |_, _, _| (at, 0))
        };
        let body = [
            access("LDG.E.STRONG.GPU", 1, first),
            access("ATOMG.E.ADD.STRONG.GPU", 2, second),
            access("LDG.E.STRONG.GPU", 3, first),
        ];
        let run = Script::new(&resolved, &body, 1, 1, 32).with_mask(1).run(&resolved);
        run.kernels[0].dram_reads
    };
    assert_eq!(reads("1") * 2, reads("4") * 3);
}

/// Counters of loads, stores and atomics of all SMs to lines that several of them use.
fn counts(resolved: &Resolved) -> KernelCounts {
    let word = |cta: u64, warp: u64, turn: u64, lane: u64| {
        let number = ((cta % 16 * 8 + warp) * 8 + turn) * 32 + lane;
        (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) * 4
    };
    let own = |cta: u64, warp: u64, turn: u64| ((1 << 30) + ((cta * 8 + warp) * 8 + turn) * 128, 4);
    let body = [
        scattered("LDG.E.STRONG.GPU", Some(4), Some(1), word),
        memory("STG.E", Some(6), Some(4), own),
        scattered("RED.E.ADD", None, Some(4), word),
        scattered("STG.E", None, Some(4), word),
    ];
    Script::new(resolved, &body, 8, 216, 256).run(resolved).kernels[0].clone()
}

#[test]
fn every_request_is_counted_once() {
    let [whole, halves] = ["0", "132"].map(|hop| counts(&machine(hop)));
    assert_eq!(halves.l2.accesses(), whole.l2.accesses());
    assert_eq!(halves.l2.reads(), whole.l2.reads());
    // What several SMs miss at once differs by a little.
    assert_eq!(halves.dram_reads, whole.dram_reads);
    assert!(halves.end - halves.first_cta > whole.end - whole.first_cta);
}
