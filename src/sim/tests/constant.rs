//! Facts of constant caches, one test each, on hand-made instructions.

use crate::config::Resolved;
use crate::testkit::{Line, Script, kernel_cycles, line, memory, named, scattered};
use crate::{ConstantCounts, Outcome};

/// Cycles of a hit.
const LATENCY: u64 = 27;

/// Cycles from a miss of the inner cache until the outer one has delivered.
const OUTER_LATENCY: u64 = 50;

/// An inner constant cache of 8 lines of 64 bytes and a shared outer one of 64
/// lines of 128 bytes, both fully associative; then `set`.
fn caches(set: &[(&str, &str)]) -> Resolved {
    let mut keys = vec![
        ("constant.bytes", "512"),
        ("constant.ways", "8"),
        ("constant.line_bytes", "64"),
        ("constant.latency_cycles", "27"),
        ("constant.word_cycles", "1"),
        ("constant.outstanding", "16"),
        ("constant.shares_outer", "true"),
        ("fetch.outer_bytes", "8192"),
        ("fetch.outer_ways", "64"),
        ("fetch.outer_latency_cycles", "50"),
        ("fetch.outer_interval_cycles", "1"),
    ];
    keys.extend_from_slice(set);
    named("v100", &keys)
}

/// A chain of loads, each of which needs the one before: lane addresses by turn.
fn chain(at: impl Fn(u64, u64) -> u64 + 'static) -> [Line; 1] {
    [scattered("LDC", Some(2), Some(2), move |_, _, turn, lane| 0x10_0000 + at(turn, lane))]
}

fn run(machine: &Resolved, lines: &[Line], repeat: u32, threads: u32) -> Outcome {
    Script::new(machine, lines, repeat, 1, threads).run(machine)
}

fn counts(outcome: &Outcome) -> ConstantCounts {
    outcome.kernels[0].constant
}

/// Cycles of one more turn, behind the first `warm` ones.
fn turn(machine: &Resolved, lines: &[Line], warm: u32) -> u64 {
    let long = kernel_cycles(&run(machine, lines, warm + 40, 32));
    (long - kernel_cycles(&run(machine, lines, warm, 32))) / 40
}

#[test]
fn distinct_words_of_a_warp_take_a_cycle_each() {
    let machine = caches(&[]);
    let one = turn(&machine, &chain(|_, _| 0), 10);
    for words in [1, 2, 5, 16, 32] {
        let lines = chain(move |_, lane| 4 * (lane % words));
        assert_eq!(turn(&machine, &lines, 10), one + words - 1, "{words} words");
        let outcome = run(&machine, &lines, 1, 32);
        assert_eq!((counts(&outcome).accesses, counts(&outcome).passes), (1, words));
    }
}

#[test]
fn a_hit_takes_the_latency_of_the_cache() {
    let hit =
        |cycles: &str| turn(&caches(&[("constant.latency_cycles", cycles)]), &chain(|_, _| 0), 10);
    assert_eq!(hit("127"), hit("27") + 100);
    let issue = hit("27") - LATENCY;
    assert!(issue <= 4, "{issue} cycles from one load to the next without the latency");
}

#[test]
fn words_of_wide_loads_count_each() {
    let lines = [chain(|_, lane| 8 * (lane % 4))[0].bytes(8)];
    assert_eq!(counts(&run(&caches(&[]), &lines, 1, 32)).passes, 8);
}

#[test]
fn a_second_warp_finds_what_the_first_has_fetched() {
    let lines = chain(|_, _| 0);
    let outcome = run(&caches(&[]), &lines, 4, 64);
    let counts = counts(&outcome);
    assert_eq!((counts.accesses, counts.misses, counts.outer_misses), (8, 1, 1));
    let of_code = outcome.kernels[0].fetch.l2.read_misses;
    assert_eq!((counts.l2.reads(), outcome.kernels[0].dram_reads - of_code), (4, 4));
    assert_eq!(outcome.kernels[0].l1.accesses() + outcome.kernels[0].l2.accesses(), 0);
}

#[test]
fn a_set_larger_than_the_inner_cache_pays_the_outer_latency() {
    let machine = caches(&[]);
    let held = turn(&machine, &chain(|turn, _| 64 * (turn % 8)), 40);
    assert_eq!(held, turn(&machine, &chain(|_, _| 0), 40));
    let over = turn(&machine, &chain(|turn, _| 64 * (turn % 10)), 40);
    assert_eq!(over, held + OUTER_LATENCY);
}

/// Cycles to a slice and back: one for the port and the network each way, the look-up, and one
/// to leave the slice.
fn l2_latency(machine: &Resolved) -> u64 {
    let machine = &machine.machine;
    let network = 1 + u64::from(machine.interconnect.latency_cycles);
    2 * network + u64::from(machine.l2.latency_cycles) + 1
}

#[test]
fn a_set_larger_than_both_pays_the_l2_latency() {
    let machine = caches(&[("fetch.outer_bytes", "1024"), ("fetch.outer_ways", "8")]);
    let hit = turn(&machine, &chain(|_, _| 0), 40);
    // The other three sectors of an outer line arrive one per cycle after the first.
    let over = turn(&machine, &chain(|turn, _| 128 * (turn % 20)), 60);
    assert_eq!(over, hit + OUTER_LATENCY + l2_latency(&machine) + 3);
}

#[test]
fn without_a_shared_outer_cache_a_miss_reads_its_line_from_the_l2() {
    let machine = caches(&[("constant.shares_outer", "false")]);
    let hit = turn(&machine, &chain(|_, _| 0), 40);
    // A miss leaves a cycle after its look-up; its second sector follows.
    let lines = chain(|turn, _| 64 * (turn % 20));
    assert_eq!(turn(&machine, &lines, 60), hit + 1 + l2_latency(&machine) + 1);
    let counts = counts(&run(&machine, &lines, 40, 32));
    assert_eq!((counts.misses, counts.outer_misses, counts.l2.reads()), (40, 0, 80));
}

#[test]
fn more_lines_than_may_be_outstanding_arrive_in_the_end_and_once() {
    for shares in ["true", "false"] {
        let machine = caches(&[("constant.outstanding", "2"), ("constant.shares_outer", shares)]);
        let lines = chain(|_, lane| 64 * (lane % 8));
        let outcome = run(&machine, &lines, 2, 512);
        let counts = counts(&outcome);
        assert_eq!((counts.accesses, counts.passes, counts.misses), (32, 256, 8), "{shares}");
        assert_eq!(counts.l2.reads(), 16);
        let wide = caches(&[("constant.shares_outer", shares)]);
        assert!(kernel_cycles(&outcome) > kernel_cycles(&run(&wide, &lines, 2, 512)));
    }
}

#[test]
fn a_load_without_addresses_takes_its_fixed_latency_and_is_counted() {
    let with = caches(&[]);
    let mut without = with.clone();
    without.machine.constant = None;
    let lines = [line("LDC", Some(2), Some(2)), line("IADD3", Some(2), Some(2))];
    let (a, b) = (run(&with, &lines, 50, 64), run(&without, &lines, 50, 64));
    assert_eq!(a, b);
    let expected = ConstantCounts { without_address: 100, ..ConstantCounts::default() };
    assert_eq!(counts(&a), expected);
}

#[test]
fn without_the_section_constant_loads_go_through_the_l1() {
    let mut machine = caches(&[]);
    machine.machine.constant = None;
    let load = |opcode| memory(opcode, Some(2), Some(2), |_, _, turn| (128 * (turn % 9), 4));
    let constant = run(&machine, &[load("LDC")], 40, 64);
    let global = run(&machine, &[load("LDG.E")], 40, 64);
    assert_eq!(counts(&constant), ConstantCounts::default());
    assert_eq!(constant.kernels[0].l1, global.kernels[0].l1);
    assert_eq!(constant.kernels[0].l1.reads(), 80 * 4);
}

#[test]
fn two_applications_share_the_cache_but_no_constants() {
    let machine = caches(&[]);
    let outcome = Script::new(&machine, &chain(|_, _| 0), 1, 1, 32).run_side_by_side(&machine, 2);
    assert!(outcome.kernels.iter().all(|kernel| kernel.constant.misses == 1));
}

#[test]
fn each_distinct_word_takes_the_cycles_of_a_word() {
    let warps = |cycles: &str, words: u64| {
        let machine = caches(&[("constant.word_cycles", cycles)]);
        let lines =
            [scattered("LDC", Some(2), None, move |_, _, _, lane| 0x10_0000 + 4 * (lane % words))];
        let cycles = |repeat| kernel_cycles(&run(&machine, &lines, repeat, 1024));
        (cycles(60) - cycles(20)) / 40
    };
    // 32 warps: the cache is full.
    assert_eq!([warps("1", 6), warps("2", 6), warps("2", 1)], [192, 384, 64]);
}
