//! Facts of instruction caches, one test each, on hand-made instructions.

use crate::testkit::{Line, Script, kernel_cycles as cycles, line, machine, memory};
use crate::{FetchCounts, Outcome};

/// Instructions of 16 bytes in a line.
const PER_LINE: usize = 8;

/// Cycles from a miss of an inner cache until the outer one has delivered.
const OUTER_LATENCY: u64 = 50;

/// Four inner caches of 8 lines and an outer one of 64, both fully associative,
/// nothing fetched ahead; then `set`.
fn caches<'a>(set: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut keys = vec![
        ("quirks.instruction_buffer", "0"),
        ("fetch.line_bytes", "128"),
        ("fetch.inner_caches", "4"),
        ("fetch.inner_bytes", "1024"),
        ("fetch.inner_ways", "8"),
        ("fetch.outer_bytes", "8192"),
        ("fetch.outer_ways", "64"),
        ("fetch.outer_latency_cycles", "50"),
        ("fetch.outer_interval_cycles", "1"),
        ("fetch.outer_outstanding", "16"),
        ("fetch.prefetch_lines", "0"),
    ];
    keys.extend_from_slice(set);
    keys
}

/// `lines` lines of code of independent instructions.
fn code(lines: usize) -> Vec<Line> {
    vec![line("FADD", None, None); lines * PER_LINE]
}

fn run(set: &[(&str, &str)], lines: &[Line], repeat: u32, threads: u32) -> Outcome {
    let machine = machine(set);
    Script::new(&machine, lines, repeat, 1, threads).run(&machine)
}

/// Cycles of one more turn of a loop of `lines` lines, for one warp.
fn turn(set: &[(&str, &str)], lines: usize) -> u64 {
    let lines = code(lines);
    (cycles(&run(set, &lines, 30, 32)) - cycles(&run(set, &lines, 10, 32))) / 20
}

#[test]
fn a_small_kernel_is_fetched_once_per_scheduler_and_once_per_sm() {
    let outcome = run(&caches(&[]), &code(8), 20, 512);
    let counts = &outcome.kernels[0];
    assert_eq!((counts.fetch.outer_lines, counts.fetch.outer_misses), (4 * 8, 8));
    assert_eq!((counts.fetch.l2.reads(), counts.dram_reads), (8 * 4, 8 * 4));
    assert_eq!(counts.l2.accesses() + counts.l1.accesses(), 0);
}

#[test]
fn code_of_an_earlier_run_is_in_the_outer_cache_until_others_take_its_place() {
    let warm = caches(&[("fetch.starts_warm", "true")]);
    let small = run(&warm, &code(8), 20, 512).kernels[0].fetch;
    assert_eq!((small.outer_lines, small.outer_misses, small.l2.reads()), (4 * 8, 0, 0));
    // 80 lines in a cache of 64: each turn but the first misses all.
    let large = |set| run(set, &code(80), 3, 32).kernels[0].fetch.outer_misses;
    assert_eq!([large(&caches(&[])), large(&warm)], [240, 160]);
}

#[test]
fn a_loop_in_the_inner_cache_costs_nothing_after_its_first_turn() {
    let without = [("quirks.instruction_buffer", "0")];
    assert_eq!(turn(&caches(&[]), 8), turn(&without, 8));
}

#[test]
fn a_loop_larger_than_the_inner_cache_pays_the_outer_latency_per_line() {
    let without = turn(&[("quirks.instruction_buffer", "0")], 16);
    assert_eq!(turn(&caches(&[]), 16), without + 16 * OUTER_LATENCY);
}

#[test]
fn a_loop_larger_than_all_caches_pays_the_l2_latency_per_line() {
    let machine = machine(&caches(&[])).machine;
    let without = turn(&[("quirks.instruction_buffer", "0")], 80);
    let per_line = (turn(&caches(&[]), 80) - without) / 80;
    // A port for one cycle and the network, there and back; one cycle to leave
    // the slice; the other sectors arrive one per cycle after the first.
    let network = 1 + u64::from(machine.interconnect.latency_cycles);
    let way = 2 * network + u64::from(machine.l2.latency_cycles) + 1;
    assert_eq!(per_line, OUTER_LATENCY + way + 3);
}

#[test]
fn a_second_warp_finds_what_the_first_has_fetched() {
    let one = run(&caches(&[]), &code(8), 1, 128).kernels[0].fetch;
    let two = run(&caches(&[]), &code(8), 1, 256).kernels[0].fetch;
    assert_eq!((one.outer_lines, two.outer_lines), (32, 32));
    assert_eq!((one.inner_lines, two.inner_lines), (32, 64));
}

#[test]
fn lines_fetched_ahead_spare_waits_and_are_fetched_once() {
    let ahead = caches(&[("fetch.prefetch_lines", "4")]);
    let lines = code(32);
    let (without, with) = (run(&caches(&[]), &lines, 1, 32), run(&ahead, &lines, 1, 32));
    let (a, b) = (without.kernels[0].fetch, with.kernels[0].fetch);
    assert_eq!((a.outer_lines, b.outer_lines), (32, 32));
    assert!(a.inner_misses == 32 && b.inner_misses < 32);
    assert!(cycles(&with) < cycles(&without));
}

#[test]
fn a_stream_that_keeps_ahead_waits_only_where_it_begins() {
    let ahead = caches(&[("fetch.prefetch_lines", "4")]);
    let without = turn(&[("quirks.instruction_buffer", "0")], 32);
    // A line takes 16 cycles to issue: four of them outlast the outer latency.
    assert_eq!(turn(&ahead, 32), without + OUTER_LATENCY);
}

#[test]
fn instructions_are_counted_alike_with_and_without_caches() {
    let lines: Vec<Line> = (0..300)
        .map(|place| match place % 7 {
            3 => memory("LDG.E", Some(2), None, |_, _, turn| (0x1000 + 128 * turn, 4)),
            5 => line("FADD", Some(3), Some(2)),
            6 => line("MUFU.RCP", Some(4), Some(3)),
            _ => line("IADD3", Some(5), Some(5)),
        })
        .collect();
    let with = run(&caches(&[]), &lines, 3, 256);
    let without = run(&[("quirks.instruction_buffer", "0")], &lines, 3, 256);
    let (a, b) = (&with.kernels[0], &without.kernels[0]);
    assert_eq!(a.warp_instructions, b.warp_instructions);
    assert_eq!(a.thread_instructions, b.thread_instructions);
    assert_eq!((a.by_unit, a.l1.accesses()), (b.by_unit, b.l1.accesses()));
    assert_eq!(b.fetch, FetchCounts::default());
    assert!(cycles(&with) > cycles(&without));
}

#[test]
fn a_wait_for_instructions_is_counted_as_such() {
    use crate::Cause;
    let outcome = run(&caches(&[]), &code(16), 20, 32);
    let counts = &outcome.kernels[0];
    let waited = counts.stalls[Cause::InstructionBufferEmpty as usize];
    let span = u32::try_from(cycles(&outcome)).unwrap();
    assert!(waited > 0.5 * f64::from(span), "{waited} of {span} cycles");
    let counted: f64 = counts.stalls.iter().sum();
    assert!(counted <= counts.slot_cycles * (1.0 + 1e-9));
}
