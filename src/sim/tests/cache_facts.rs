//! Facts of the caches in the whole machine, of the L1's banks and of its port to the registers,
//! and of an L2 in two halves.

use crate::config::Resolved;
use crate::testkit::{
    Line, Script, kernel_cycles, line, machine, memory, memory_of, named, scattered,
};
use crate::{CacheCounts, KernelCounts};

/// An L1 of one set with four ways.
const SMALL: [(&str, &str); 5] = [
    ("l1.unified_bytes", "0"),
    ("l1.carve_outs_bytes", "[]"),
    ("l1.cache.sets", "1"),
    ("l1.cache.ways", "4"),
    ("l1.dirty_percent", "0"),
];

/// Address of lane 0 and step between lanes: by CTA, warp and turn.
type Where = fn(u64, u64, u64) -> (u64, i64);

fn run(set: &[(&str, &str)], lines: &[Line], repeat: u32, threads: u32) -> KernelCounts {
    let machine = machine(&[&SMALL[..], set].concat());
    // Arithmetic that takes longer than any access.
    let long = [line("FADD", Some(1), Some(1)); 300];
    let lines = [lines, &long[..]].concat();
    Script::new(&machine, &lines, repeat, 1, threads).run(&machine).kernels[0].clone()
}

fn writes(counts: &CacheCounts) -> u64 {
    counts.accesses() - counts.reads()
}

fn load(at: Where) -> Line {
    memory("LDG.E", Some(2), None, at)
}

fn store(at: Where) -> Line {
    memory("STG.E", None, Some(3), at)
}

#[test]
fn each_sector_that_misses_is_fetched_alone() {
    let machine = machine(&[]);
    let lines = [load(|_, _, _| (0x1000, 32)), line("FADD", Some(4), Some(2))];
    for sectors in 1..=4 {
        let script = Script::new(&machine, &lines, 1, 1, 32).with_mask((1 << sectors) - 1);
        let counts = script.run(&machine).kernels[0].clone();
        let fetched = (counts.l1.read_misses, counts.l2.reads(), counts.dram_reads);
        assert_eq!(fetched, (sectors, sectors, sectors));
    }
}

#[test]
fn a_merged_miss_asks_the_slice_once() {
    let at: Where = |_, _, _| (0x1000, 4);
    let counts = run(&[], &[load(at), memory("LDG.E", Some(5), None, at)], 1, 256);
    assert_eq!(counts.l1.reads(), 2 * 8 * 4);
    assert_eq!(counts.l2.reads(), 4, "four sectors for eight warps, twice");
}

#[test]
fn a_set_is_thrashed_by_one_line_too_many() {
    let four: Where = |_, _, turn| (0x1000 + turn % 4 * 128, 4);
    let five: Where = |_, _, turn| (0x1000 + turn % 5 * 128, 4);
    let hits = |replacement, at| {
        let lines = [load(at), line("FADD", Some(4), Some(2))];
        run(&[("l1.cache.replacement", replacement)], &lines, 60, 32).l1.read_hits
    };
    for replacement in ["lru", "fifo", "tree-lru", "random"] {
        assert_eq!(hits(replacement, four), 56 * 4, "{replacement}: all but the first turns");
    }
    assert_eq!((hits("lru", five), hits("fifo", five)), (0, 0));
    assert!(hits("random", five) > 30 * 4, "most lines are still present at their next use");
}

#[test]
fn a_dirty_sector_crosses_to_its_slice_once() {
    // Each of eight lines is written three times; four stay.
    let lines = [store(|_, _, turn| (0x1000 + turn / 3 * 128, 4))];
    let policy = |write, miss| {
        let set = [("l1.cache.write", write), ("l1.cache.write_miss", miss)];
        run(&set, &lines, 24, 32)
    };
    let back = policy("write-back", "lazy");
    assert_eq!((back.l1.write_misses, back.l1.write_hits), (8 * 4, 16 * 4));
    assert_eq!((writes(&back.l2), back.l2.reads()), (4 * 4, 0));
    let through = policy("write-through", "lazy");
    assert_eq!(writes(&through.l2), 24 * 4);
    let around = policy("write-back", "around");
    assert_eq!((writes(&around.l2), around.l1.write_hits), (24 * 4, 0));
}

#[test]
fn a_sector_written_in_part_is_fetched_at_once_or_when_it_is_read() {
    let store = store(|_, _, turn| (0x1000 + turn * 128, 32));
    let load = load(|_, _, turn| (0x1000 + turn * 128, 32));
    let reads = |miss: &str, lines: &[Line]| {
        let set = [("l1.cache.write", "write-back"), ("l1.cache.write_miss", miss)];
        run(&set, lines, 3, 32).l2.reads()
    };
    // 32 lanes with a word in each of 32 sectors, eight lines: the ways turn over.
    assert_eq!(reads("lazy", &[store]), 0);
    assert!(reads("fetch", &[store]) > 0);
    assert!(reads("lazy", &[store, load]) > 0);
}

#[test]
fn lines_that_a_fill_evicts_are_written_back_through_a_narrow_port() {
    let at: Where = |_, warp, turn| (0x1000 + (turn * 8 + warp) * 128, 4);
    let lines = [load(at), line("FADD", Some(3), Some(2)), store(at)];
    let set = [
        ("l1.cache.write", "write-back"),
        ("l1.cache.write_miss", "around"),
        ("l1.cache.allocate", "on-fill"),
        ("interconnect.input_queue", "1"),
        ("interconnect.output_queue", "1"),
        ("l2.input_queue", "1"),
    ];
    let alone = run(&set, &lines, 32, 32);
    assert_eq!(alone.l1.write_hits, 32 * 4, "each line is written while it is present");
    assert_eq!(writes(&alone.l2), 28 * 4, "all but the last four lines are evicted");
    let crowd = run(&set, &lines, 32, 256);
    let all = writes(&crowd.l1);
    assert!(writes(&crowd.l2) <= all && writes(&crowd.l2) + 4 * 4 >= all);
}

#[test]
fn local_memory_stays_where_global_writes_go_down() {
    let at: Where = |_, _, _| (0, 0);
    let local = [memory("STL", None, Some(3), at), memory("LDL", Some(2), None, at)];
    let set = [("l1.cache.write", "local-write-back"), ("l1.cache.write_miss", "lazy")];
    let counts = run(&set, &local, 10, 32);
    assert_eq!((counts.l1.read_hits, counts.l2.accesses()), (10 * 4, 0));
    let counts = run(&set, &[store(|_, _, _| (0x1000, 4))], 10, 32);
    assert_eq!((counts.l1.write_misses, writes(&counts.l2)), (10 * 4, 10 * 4));
}

#[test]
fn writes_of_a_write_through_l2_reach_memory_at_once() {
    let lines = [store(|_, _, turn| (0x1000 + turn % 2 * 128, 4))];
    let dram_writes = |write, miss| {
        let set = [("l2.cache.write", write), ("l2.cache.write_miss", miss)];
        run(&set, &lines, 10, 32).dram_writes
    };
    assert_eq!(dram_writes("write-back", "lazy"), 0);
    assert_eq!(dram_writes("write-through", "lazy"), 10 * 4);
    assert_eq!(dram_writes("write-evict", "around"), 10 * 4);
}

#[test]
fn a_store_that_misses_may_go_to_memory_and_fetch_its_line() {
    let counts = |miss, lines: &[Line]| {
        let set = [("l2.cache.write", "write-back"), ("l2.cache.write_miss", miss)];
        let counts = run(&set, lines, 10, 32);
        (counts.dram_reads, counts.dram_writes, counts.l2.write_hits)
    };
    // The first of ten whole lines misses, the others find it, dirty from then on.
    let store = [store(|_, _, _| (0x1000, 4))];
    assert_eq!(counts("fetch", &store), (0, 0, 9 * 4));
    let (fetched, written, hits) = counts("through-and-fetch", &store);
    assert_eq!(fetched, 4);
    assert_eq!(written % 4, 0);
    assert_eq!(written + hits, 10 * 4, "what finds its line on the way goes on as well");
    assert!(written >= 4);
}

#[test]
fn an_atomic_writes_through_when_its_sector_has_arrived() {
    let lines = [memory("RED.E.ADD", None, Some(3), |_, _, _| (0x1000, 0))];
    for (write, miss) in [("write-through", "around"), ("write-evict", "around")] {
        let set = [("l2.cache.write", write), ("l2.cache.write_miss", miss)];
        let counts = run(&set, &lines, 3, 32);
        let fetched = if write == "write-evict" { 3 } else { 1 };
        assert_eq!((counts.dram_reads, counts.dram_writes), (fetched, 3), "{write}");
    }
}

#[test]
fn accesses_that_bypass_the_l1_do_not_change_it() {
    let at: Where = |_, _, _| (0x1000, 4);
    for opcode in ["LDG.E.STRONG.GPU", "ATOMG.E.ADD", "RED.E.ADD"] {
        let lines = [load(at), memory(opcode, Some(5), None, at)];
        let both = run(&[], &lines, 5, 32);
        let alone = run(&[], &lines[..1], 5, 32);
        assert_eq!(both.l1, alone.l1, "{opcode}");
        assert_eq!(both.l2.accesses(), alone.l2.accesses() + 5 * 4, "{opcode}");
    }
}

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
fn sectors_of_one_bank_are_served_one_by_one_and_others_in_parallel() {
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
fn answers_of_the_l2_reach_the_registers_one_sector_per_cycle() {
    // Six warps load the same new line: four sectors arrive for 24 requests. The first warps
    // request the next line before the last have theirs.
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
    // More warps than one miss merges request one sector; another bank's are hits.
    let lines = [
        memory("LDG.E", Some(2), None, |_, _, turn| ((1 << 21) + turn * 4096, 0)),
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

const HOP: u64 = 132;

fn in_halves(hop: &str) -> Resolved {
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
    let halves = in_halves(&HOP.to_string());
    let [near, far] = [0, 1].map(|half| last(&halves, "LDG.E.STRONG.GPU", half, 8));
    assert_eq!(near, far);
    assert_eq!(near, last(&in_halves("0"), "LDG.E.STRONG.GPU", 0, 8));
}

#[test]
fn an_atomic_goes_to_the_home() {
    let halves = in_halves(&HOP.to_string());
    let [near, far] = [0, 1].map(|half| last(&halves, "ATOMG.E.ADD.STRONG.GPU", half, 8));
    // The look-up on the way is a cycle, and so is that at the home.
    assert!((HOP..HOP + 3).contains(&(far - near)), "{near} cycles near, {far} far");
}

#[test]
fn the_first_load_of_the_far_half_crosses() {
    let first = |resolved: &Resolved, half| last(resolved, "LDG.E.STRONG.GPU", half, 0);
    let (whole, halves) = (in_halves("0"), in_halves(&HOP.to_string()));
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
    let [whole, halves] = ["0", "132"].map(|hop| counts(&in_halves(hop)));
    assert_eq!(halves.l2.accesses(), whole.l2.accesses());
    assert_eq!(halves.l2.reads(), whole.l2.reads());
    // What several SMs miss at once differs by a little.
    assert_eq!(halves.dram_reads, whole.dram_reads);
    assert!(halves.end - halves.first_cta > whole.end - whole.first_cta);
}

#[test]
fn what_misses_waits_in_its_bank_for_a_place_in_the_miss_queue() {
    // Sixteen new sectors per warp, in all banks or in one, and one that is there.
    for bank in [None, Some(1)] {
        let new = move |cta: u64, warp: u64, turn: u64, lane: u64| {
            let line = ((turn * 16 + warp) * 16) + lane / 2;
            (1 << 22) + cta + line * 128 + bank.unwrap_or(line % 4) * 32
        };
        let lines = [
            scattered("LDG.E", Some(2), None, new),
            memory("LDG.E", Some(3), None, |_, _, _| (1 << 20, 0)),
        ];
        let run = |places| {
            let set = [("quirks.miss_queue", places)];
            let resolved = named("accelsim-qv100", &set);
            let outcome = Script::new(&resolved, &lines, 16, 1, 512).run(&resolved);
            (kernel_cycles(&outcome), outcome.kernels[0].clone())
        };
        let [(none, counts), queued, short] = ["0", "16", "2"].map(run);
        assert_eq!(counts.l1.reads(), 16 * 16 * 17);
        assert_eq!(counts.l2.reads(), 16 * 16 * 16 + 1);
        for (_, other) in [&queued, &short] {
            assert_eq!((other.l1, other.l2), (counts.l1, counts.l2), "none is lost");
        }
        match bank {
            // Four banks find more misses per cycle than leave.
            None => assert!(none < queued.0 && queued.0 < short.0, "{none} {queued:?} {short:?}"),
            Some(_) => assert!(none.abs_diff(short.0) < 16, "one bank finds one per cycle"),
        }
    }
}

#[test]
fn sectors_that_a_fill_lets_go_on_leave_with_nothing_else_to_do() {
    // A ninth request waits for the fill of a sector; stores to all banks wait behind it for the
    // miss queue, and nothing follows.
    let same = [memory("LDG.E", Some(2), Some(1), |_, _, _| (1 << 20, 4))];
    let chain = |length| vec![line("FFMA", Some(1), Some(1)); length];
    let late = [chain(15), same.to_vec()].concat();
    let stores = scattered("STG.E", None, Some(1), |_, warp, _, lane| {
        (1 << 22) + (warp * 32 + lane) * 128 + lane % 4 * 32
    });
    let last = [chain(30), vec![stores]].concat();
    let bodies: Vec<&[Line]> =
        (0..8).map(|_| &same[..]).chain([&late[..], &last[..], &last[..]]).collect();
    for (latency, places) in [("28", "16"), ("28", "2"), ("1", "16"), ("0", "16"), ("0", "1")] {
        let set = [("l1.latency_cycles", latency), ("quirks.miss_queue", places)];
        let resolved = named("accelsim-qv100", &set);
        let outcome = Script::of_bodies(&resolved, &bodies, 1, 1, 11 * 32).run(&resolved);
        assert_eq!(outcome.kernels[0].l2.write_misses, 64, "{latency} {places}");
    }
}
