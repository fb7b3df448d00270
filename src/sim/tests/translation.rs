//! Facts of address translation on a whole machine, one test each.

use crate::Outcome;
use crate::testkit::{self, Line, Script, kernel_cycles as cycles, line, translating};

/// Address of lane 0 and step between lanes: by CTA, warp and turn.
type Where = fn(u64, u64, u64) -> (u64, i64);

use crate::config::Resolved;
use gpumodel_core::units::to_u32;

/// Bytes from one page to the next, so that lines fall into different sets.
const STEP: u64 = 4096 + 128;

/// Where all addresses begin: at the start of a table of the first level, and not at null.
const FIRST: u64 = 1 << 45;

/// A load or store of 4 bytes per lane, [`FIRST`] added to its addresses.
fn memory(
    opcode: &'static str,
    destination: Option<u16>,
    source: Option<u16>,
    at: impl Fn(u64, u64, u64) -> (u64, i64) + 'static,
) -> Line {
    testkit::memory(opcode, destination, source, move |cta, warp, turn| {
        let (address, step) = at(cta, warp, turn);
        (FIRST + address, step)
    })
}

/// `ugpu` without refresh, with some keys set.
fn ugpu(set: &[(&str, &str)]) -> Resolved {
    let mut keys = vec![("quirks.no_refresh", "true")];
    keys.extend_from_slice(set);
    translating("ugpu", &keys)
}

/// The same with physical addresses.
fn untranslated() -> Resolved {
    let mut resolved = ugpu(&[]);
    resolved.machine.translation = None;
    resolved
}

/// One lane that loads, each load waiting for the one before.
fn chase(resolved: &Resolved, at: Where, loads: u32) -> Outcome {
    let lines = [memory("LDG.E", Some(2), Some(2), at)];
    Script::new(resolved, &lines, loads, 1, 32).with_mask(1).run(resolved)
}

/// Cycles of the loads from number `short` up to `long`.
fn between(resolved: &Resolved, at: Where, short: u32, long: u32) -> u64 {
    cycles(&chase(resolved, at, long)) - cycles(&chase(resolved, at, short))
}

/// Cycles of one read of a table that is in the L2: a flit to the slice, its
/// look-up and a cycle to answer, the answer's flits out and, from the first one
/// on, in again, and the crossbar's latency each way.
fn table_read(resolved: &Resolved) -> u64 {
    let (network, l2) = (&resolved.machine.interconnect, &resolved.machine.l2);
    let flits = (network.header_bytes + 32).div_ceil(network.flit_bytes);
    u64::from(1 + l2.latency_cycles + 1 + flits + (flits - 1) + 2 * network.latency_cycles)
}

#[test]
fn a_hit_adds_the_configured_latency_exactly() {
    for before_l1 in ["true", "false"] {
        let at: Where = |_, _, _| (0x1000, 0);
        let slow =
            ugpu(&[("translation.l1_latency_cycles", "7"), ("translation.before_l1", before_l1)]);
        let added = between(&slow, at, 10, 110) - between(&untranslated(), at, 10, 110);
        // With virtual tags a hit in the L1 is not translated at all.
        assert_eq!(added, if before_l1 == "true" { 700 } else { 0 });
    }
}

#[test]
fn virtual_tags_add_the_latency_to_what_leaves_the_l1() {
    let at: Where = |_, _, turn| (turn % 2 * 128, 0);
    let loads = |latency: &str, before_l1: &str| {
        let set = [
            ("translation.l1_latency_cycles", latency),
            ("translation.before_l1", before_l1),
            ("l1.caches_global", "false"),
        ];
        between(&ugpu(&set), at, 10, 110)
    };
    assert_eq!(loads("7", "false") - loads("0", "false"), 700);
    assert_eq!(loads("7", "true"), loads("7", "false"));
}

#[test]
fn a_miss_takes_the_latency_of_the_l2_tlb() {
    // 65 pages in turn on 64 entries: every look-up misses, the L2 TLB has them.
    let at: Where = |_, _, turn| (turn % 65 * STEP, 0);
    let (short, long) = (130, 130 + 650);
    let added = between(&ugpu(&[]), at, short, long) - between(&untranslated(), at, short, long);
    assert_eq!(added, 650 * 20);
    let counts = chase(&ugpu(&[]), at, long).kernels[0].translation;
    assert_eq!((counts.l1.hits, counts.l1.misses), (0, 780));
    assert_eq!((counts.l2.hits, counts.l2.misses), (780 - 65, 65));
}

#[test]
fn a_walk_takes_a_read_of_the_l2_per_level() {
    // 130 pages in turn on 64 and 128 entries: every load walks.
    let at: Where = |_, _, turn| (turn % 130 * STEP, 0);
    let (short, long) = (260, 260 + 130);
    let plain = between(&untranslated(), at, short, long);
    for (cached, reads) in [("0", 4), ("64", 1)] {
        let resolved = ugpu(&[
            ("translation.l2_entries", "128"),
            ("translation.l2_ways", "128"),
            ("translation.walk_cache_entries", cached),
            ("translation.walk_cache_lines", "0"),
        ]);
        let added = between(&resolved, at, short, long) - plain;
        assert_eq!(added, 130 * (20 + reads * table_read(&resolved)));
    }
}

#[test]
fn a_walk_reads_each_level_and_one_of_the_next_page_only_the_last() {
    let at: Where = |_, _, turn| (turn * 4096, 0);
    let reads = |cached: &str, lines: &str, loads: u32| {
        let resolved = ugpu(&[
            ("translation.walk_cache_entries", cached),
            ("translation.walk_cache_lines", lines),
        ]);
        let counts = chase(&resolved, at, loads).kernels[0].translation;
        assert_eq!(counts.l2.misses, u64::from(loads));
        counts.reads.reads()
    };
    assert_eq!((reads("16", "0", 1), reads("16", "0", 2)), (4, 5));
    assert_eq!((reads("0", "0", 1), reads("0", "0", 2)), (4, 8));
    // A line of the last level serves eight pages.
    assert_eq!((reads("16", "1", 8), reads("16", "1", 9), reads("16", "1", 16)), (4, 5, 5));
}

#[test]
fn warps_that_miss_on_one_page_make_one_walk() {
    let load = [memory("LDG.E", Some(2), None, |_, warp, _| (warp * 128, 4))];
    let resolved = ugpu(&[]);
    let counts = |ctas: u32| {
        Script::new(&resolved, &load, 1, ctas, 64).run(&resolved).kernels[0].translation
    };
    let one = counts(1);
    assert_eq!((one.l1.misses, one.l1.merges, one.l2.misses), (1, 1, 1));
    // Two SMs: each requests the page once, the second joins the walk.
    let two = counts(2);
    assert_eq!((two.l1.misses, two.l1.merges), (2, 2));
    assert_eq!((two.l2.misses, two.l2.merges, two.reads.reads()), (1, 1, 4));
}

#[test]
fn a_walk_waits_for_a_walker() {
    // Two SMs walk to pages of two applications' worth of distance: nothing shared.
    let load = [memory("LDG.E", Some(2), None, |cta, _, _| (cta << 40, 0))];
    let run = |walkers: &str| {
        let resolved = ugpu(&[("translation.walkers", walkers)]);
        Script::new(&resolved, &load, 1, 2, 32).with_mask(1).run(&resolved)
    };
    let (one, two, many) = (run("1"), run("2"), run("64"));
    assert!(cycles(&one) > cycles(&two) + 3 * table_read(&ugpu(&[])), "{}", cycles(&one));
    assert_eq!(cycles(&two), cycles(&many));
}

#[test]
fn a_fault_costs_its_cycles_once() {
    let at: Where = |_, _, turn| (turn % 2 * 64, 0);
    let demand = ugpu(&[("translation.demand_paging", "true")]);
    let (absent, present) = (chase(&demand, at, 10), chase(&ugpu(&[]), at, 10));
    assert_eq!(cycles(&absent) - cycles(&present), 28_000);
    let faults = |outcome: &Outcome| outcome.kernels[0].translation.faults;
    assert_eq!((faults(&absent), faults(&present)), (1, 0));
    // Local memory is present from the start.
    let spill = [memory("STL", None, Some(2), |_, _, _| (0x100, 0))];
    let outcome = Script::new(&demand, &spill, 1, 1, 32).run(&demand);
    assert_eq!((faults(&outcome), outcome.kernels[0].translation.l1.misses), (0, 1));
}

#[test]
fn many_faults_overlap() {
    // Each fault releases its walker: 200 of them on one walker take little
    // longer than one.
    let load = [memory("LDG.E", Some(2), None, |cta, _, _| (cta * 4096, 0))];
    let demand = ugpu(&[("translation.demand_paging", "true"), ("translation.walkers", "1")]);
    let outcome = Script::new(&demand, &load, 1, 200, 32).with_mask(1).run(&demand);
    assert_eq!(outcome.kernels[0].translation.faults, 200);
    assert!(cycles(&outcome) < 5 * 28_000, "{}", cycles(&outcome));
}

#[test]
fn a_page_of_2_mb_covers_512_of_4_kb() {
    let at: Where = |_, _, turn| (turn * 4096, 0);
    let walks = |bytes: &str| {
        let resolved = ugpu(&[("translation.page_bytes", bytes)]);
        chase(&resolved, at, 1024).kernels[0].translation.l2.misses
    };
    assert_eq!((walks("4096"), walks("65536"), walks("2097152")), (1024, 64, 2));
}

#[test]
fn larger_pages_walk_less() {
    // Random addresses in 64 MB.
    let at: Where = |_, _, turn| (turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 38, 0);
    let walks = |bytes: u32| {
        let resolved = ugpu(&[("translation.page_bytes", &bytes.to_string())]);
        chase(&resolved, at, 3_000).kernels[0].translation.l2.misses
    };
    let by_size: Vec<u64> = (12..=21).map(|bits| walks(1 << bits)).collect();
    assert!(by_size.is_sorted_by(|small, large| small >= large), "{by_size:?}");
    assert_eq!(by_size[9], 32, "each page of 2 MB once");
}

/// Sectors of a line, which the caches of UGPU have whole.
const SECTORS: u64 = 4;

/// A load of a page per lane.
fn scattered() -> [Line; 2] {
    let at: Where = |cta, warp, turn| (cta * 1024 + warp * 77_824 + turn * 555_520, 4096 + 32);
    [memory("LDG.E", Some(2), None, at), line("FADD", Some(3), Some(2))]
}

#[test]
fn each_page_of_an_instruction_is_looked_up_once_however_few_may_wait() {
    let accesses = |entries: &str, merge: &str| {
        let resolved =
            ugpu(&[("translation.l1_mshr_entries", entries), ("translation.l1_mshr_merge", merge)]);
        let outcome = Script::new(&resolved, &scattered(), 4, 8, 128).run(&resolved);
        let counts = &outcome.kernels[0];
        assert_eq!(counts.l1.reads(), 4 * 8 * 4 * 32 * SECTORS);
        assert_eq!(counts.translation.l1.misses, counts.translation.l2.accesses());
        assert_eq!(outcome.tlbs.iter().map(|tlb| tlb.accesses()).sum::<u64>(), 4 * 8 * 4 * 32);
        counts.translation.l1.accesses()
    };
    for (entries, merge) in [("1", "1"), ("3", "2"), ("32", "64")] {
        assert_eq!(accesses(entries, merge), 4 * 8 * 4 * 32);
    }
}

#[test]
fn traffic_is_conserved_under_walks() {
    let resolved = ugpu(&[]);
    let outcome = Script::new(&resolved, &scattered(), 8, 160, 256).run(&resolved);
    let counts = &outcome.kernels[0];
    assert_eq!(counts.l1.read_misses, counts.l2.reads());
    let walks = counts.translation.reads;
    assert!(walks.read_misses > 0);
    // An entry of a table brings its line.
    assert_eq!(counts.l2.read_misses + walks.read_misses * SECTORS, counts.dram_reads);
}

#[test]
fn younger_instructions_pass_one_that_waits_for_its_page() {
    // The second load hits in TLB and L1 while the first walks.
    let known: Where = |_, _, _| (0x1000, 0);
    let new: Where = |_, _, turn| ((turn + 2) << 30, 0);
    let lines = [
        memory("LDG.E", Some(2), None, new),
        memory("LDG.E", Some(3), None, known),
        line("FADD", Some(4), Some(3)),
        memory("LDG.E", Some(5), None, new),
    ];
    let run = |merge: &str| {
        let resolved = ugpu(&[("translation.l1_mshr_entries", merge)]);
        cycles(&Script::new(&resolved, &lines, 1, 1, 32).with_mask(1).run(&resolved))
    };
    // With one page at a time the second load waits for the first one's walk.
    assert!(run("1") > run("2") + table_read(&ugpu(&[])));
}

#[test]
fn applications_do_not_hit_each_others_lines() {
    let load = [memory("LDG.E", Some(2), None, |_, warp, turn| (warp * 512 + turn * 4096, 4))];
    for name in ["ugpu", "accelsim-qv100"] {
        let resolved = translating(name, &[]);
        let script = Script::new(&resolved, &load, 16, 4, 128);
        let alone = script.run(&resolved);
        let both = script.run_side_by_side(&resolved, 2);
        for kernel in &both.kernels {
            assert_eq!(kernel.l2.read_misses, alone.kernels[0].l2.read_misses, "{name}");
            assert_eq!(kernel.dram_reads, alone.kernels[0].dram_reads, "{name}");
            assert_eq!(
                kernel.translation.l2.misses, alone.kernels[0].translation.l2.misses,
                "{name}"
            );
        }
        assert_eq!(both.kernels.len(), 2);
        assert_eq!(to_u32(both.apps.len()), 2);
    }
}

#[test]
fn machines_without_translation_count_none() {
    let outcome = chase(&untranslated(), |_, _, turn| (turn * 4096, 0), 100);
    assert_eq!(outcome.kernels[0].translation, crate::TranslationCounts::default());
    assert!(outcome.tlbs.is_empty());
}
