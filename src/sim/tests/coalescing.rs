//! Sectors per request and passes per access, counted on the whole machine.

use crate::config::Resolved;
use crate::testkit::{Line, Script, kernel_cycles, line, memory, named, scattered};
use crate::{Cause, KernelCounts};

/// What one warp's single run of `lines` counts.
fn counts(resolved: &Resolved, lines: &[Line]) -> KernelCounts {
    Script::new(resolved, lines, 1, 1, 32).run(resolved).kernels[0].clone()
}

/// Read sectors of one access on a machine with an L1.
fn sectors(access: Line) -> u64 {
    counts(&named("v100", &[]), &[access]).l1.reads()
}

fn load(at: impl Fn(u64) -> u64 + 'static) -> Line {
    scattered("LDG.E", Some(2), None, move |_, _, _, lane| at(lane))
}

#[test]
fn a_warps_sectors_are_its_bytes_over_32() {
    // 32 lanes of w bytes in a row, aligned to a sector: 32 w / 32 sectors.
    for width in [1_u8, 2, 4, 8, 16] {
        let step = u64::from(width);
        assert_eq!(sectors(load(move |lane| 0x1000 + lane * step).bytes(width)), step, "{width}");
    }
}

#[test]
fn a_misaligned_row_touches_one_sector_more() {
    for width in [1_u8, 2, 4, 8, 16] {
        let step = u64::from(width);
        let shifted = load(move |lane| 0x1000 + step + lane * step).bytes(width);
        assert_eq!(sectors(shifted), step + 1, "{width}");
    }
}

#[test]
fn a_stride_touches_as_many_sectors_as_its_span_or_its_lanes() {
    // Lanes s bytes apart: a sector each from 32 bytes on, else the span over 32.
    for stride in [4_u64, 8, 12, 16, 32, 36, 128, 4096] {
        let expected = ((31 * stride + 4).div_ceil(32)).min(32);
        assert_eq!(sectors(load(move |lane| 0x10_0000 + lane * stride)), expected, "{stride}");
    }
}

#[test]
fn an_atomic_sends_a_request_per_sector_however_many_lanes_share_a_word() {
    // Lanes by words apart, and the sectors that they touch.
    let cases = [(0_u64, 1_u64), (1, 4), (2, 8), (8, 32), (1024, 32)];
    for (opcode, result) in [("ATOMG.E.ADD.STRONG.GPU", Some(2)), ("RED.E.ADD.STRONG.GPU", None)] {
        for (words, expected) in cases {
            let at = move |_, _, _, lane| 0x1000 + 4 * words * lane;
            let found = counts(&named("v100", &[]), &[scattered(opcode, result, Some(1), at)]);
            assert_eq!((found.l1.accesses(), found.l2.accesses()), (0, expected), "{words}");
            assert_eq!(found.l2.reads(), 0, "they count as writes");
        }
    }
}

#[test]
fn lanes_that_change_one_word_take_turns_in_its_slice() {
    // Lanes at once, of a GV100 and of Turing and Ampere cards for games; all on others.
    for (machine, together) in [("v100", 16), ("rtx-2060", 1), ("rtx-3070", 1), ("gtx-1080", 32)] {
        let resolved = named(machine, &[]);
        let run = |lanes: u32, turns| {
            let mask = u32::MAX >> (32 - lanes);
            let change = memory("ATOMG.E.ADD.STRONG.GPU", Some(2), Some(2), |_, _, _| (0x1000, 0));
            let script = Script::new(&resolved, &[change.masked(mask)], turns, 1, 32);
            kernel_cycles(&script.run(&resolved))
        };
        // The first waits for its sector.
        let each = |lanes| run(lanes, 12) - run(lanes, 4);
        for lanes in [1_u32, 7, 16, 17, 32] {
            let more = u64::from(lanes.div_ceil(together) - 1);
            assert_eq!(each(lanes) - each(1), 8 * more, "{machine}: {lanes} lanes");
        }
    }
}

#[test]
fn a_word_takes_as_many_additions_per_cycle_as_lanes_at_once() {
    for (machine, rate) in [("v100", 16.0), ("rtx-2060", 1.0)] {
        let resolved = named(machine, &[]);
        let run = |turns| {
            let change = [memory("RED.E.ADD.STRONG.GPU", None, Some(1), |_, _, _| (0x1000, 0))];
            kernel_cycles(&Script::new(&resolved, &change, turns, 16, 128).run(&resolved))
        };
        let additions = f64::from(16 * 16 * 128);
        #[allow(clippy::cast_precision_loss, reason = "a few thousand cycles")]
        let found = additions / (run(32) - run(16)) as f64;
        assert!((found / rate - 1.0).abs() < 0.02, "{machine}: {found} per cycle");
    }
}

#[test]
fn the_order_of_lanes_does_not_matter() {
    for permuted in [|lane: u64| 31 - lane, |lane| lane ^ 5, |lane| lane * 7 % 32] {
        assert_eq!(sectors(load(move |lane| 0x1000 + 4 * permuted(lane))), 4);
    }
}

#[test]
fn inactive_lanes_touch_nothing() {
    for (mask, expected) in [(0, 0), (1, 1), (0xff, 1), (0x1ff, 2), (0x8000_0001, 2)] {
        let access = load(|lane| 0x1000 + 4 * lane).masked(mask);
        assert_eq!(sectors(access), expected, "{mask:x}");
    }
}

#[test]
fn a_generic_address_goes_where_the_windows_say() {
    let resolved = named("v100", &[]);
    let (shared, local) = (0x7f00_0000_0000, 0x7e00_0000_0000);
    let run = |base: u64| {
        let access = [memory("LD.E", Some(2), None, move |_, _, _| (base, 0))];
        let script = Script::new(&resolved, &access, 1, 1, 32).with_windows(shared, local);
        script.run(&resolved).kernels[0].clone()
    };
    let sectors = |base| (run(base).l1.reads(), run(base).generic_accesses);
    assert_eq!(sectors(shared + 64), (0, 1), "shared memory is no cache access");
    // One word of each lane: 32 words side by side.
    assert_eq!(sectors(local + 64), (4, 1));
    assert_eq!(sectors(0x1000), (1, 1));
}

#[test]
fn equal_local_offsets_of_a_warp_are_one_line() {
    // Words are interleaved by lane: w bytes per lane are w / 4 lines of 128 bytes.
    for width in [4_u8, 8, 16] {
        let access = memory("LDL", Some(2), None, |_, _, _| (0xff_fbd0, 0)).bytes(width);
        let found = counts(&named("v100", &[]), &[access]).l1.reads();
        assert_eq!(found, u64::from(width), "{width} bytes: that many sectors of 32");
    }
}

#[test]
fn warps_do_not_share_local_memory() {
    let resolved = named("v100", &[]);
    let store = [memory("LDL", Some(2), None, |_, _, _| (0xff_fbd0, 0))];
    let found = Script::new(&resolved, &store, 1, 2, 64).run(&resolved).kernels[0].l1;
    assert_eq!((found.read_misses, found.read_hits + found.read_merges), (4 * 4, 0));
}

/// Cycles that one more of `access` costs a lone warp that waits for none.
fn passes(resolved: &Resolved, access: Line) -> u64 {
    let run = |n: usize| {
        let lines = vec![access; n];
        kernel_cycles(&Script::new(resolved, &lines, 1, 1, 32).run(resolved))
    };
    // The unit takes one access after the other: 64 more, each as long.
    let (few, many) = (run(64), run(128));
    assert_eq!((many - few) % 64, 0);
    (many - few) / 64
}

#[test]
fn an_n_way_bank_conflict_takes_n_passes() {
    let resolved = named("v100", &[]);
    let port = u64::from(resolved.machine.units["memory"].initiation_cycles);
    let banks = u64::from(resolved.machine.shared.banks);
    for n in [1_u64, 2, 4, 8, 16, 32] {
        // Lanes n words apart: n lanes in each bank that is used at all.
        let access = memory("STS", None, Some(1), move |_, _, _| (0, (4 * n).cast_signed()));
        let expected = n.min(banks).max(port);
        assert_eq!(passes(&resolved, access), expected, "{n}-way");
    }
}

#[test]
fn a_word_that_all_lanes_access_takes_one_pass() {
    let resolved = named("v100", &[("units.memory.initiation_cycles", "1")]);
    assert_eq!(passes(&resolved, memory("STS", None, Some(1), |_, _, _| (64, 0))), 1);
}

#[test]
fn a_matrix_load_takes_a_pass_per_matrix() {
    // Each of 32 addresses names a row of 16 bytes: 128 words over 32 banks are four
    // passes, and eight rows per matrix make one matrix per pass.
    let resolved = named("a100", &[("units.memory.initiation_cycles", "1")]);
    let access = memory("LDSM.16.M88.4", None, Some(1), |_, _, _| (0, 16)).bytes(2);
    assert_eq!(passes(&resolved, access), 32 * 16 / 4 / u64::from(resolved.machine.shared.banks));
}

#[test]
fn an_asynchronous_copy_reads_through_the_l1_or_past_it() {
    let resolved = named("a100", &[]);
    let run = |opcode| counts(&resolved, &[memory(opcode, None, Some(2), |_, _, _| (0x1000, 4))]);
    let (through, past) = (run("LDGSTS.E"), run("LDGSTS.E.BYPASS.128"));
    assert_eq!((through.l1.reads(), through.l2.reads()), (4, 4));
    assert_eq!((past.l1.reads(), past.l2.reads()), (0, 4));
}

#[test]
fn a_wait_for_groups_does_not_wait_for_the_allowed_ones() {
    let resolved = named("a100", &[]);
    let copy = |k: u64| memory("LDGSTS.E", None, Some(2), move |_, _, _| (0x1000 + k * 4096, 4));
    let end = line("LDGDEPBAR", None, None);
    let run = |allowed| {
        let wait = line("DEPBAR.LE", None, None).immediate(allowed);
        let lines = [copy(0), end, copy(1), end, wait, line("BAR.SYNC", None, None)];
        let stalls = counts(&resolved, &lines).stalls;
        stalls[Cause::LongMemoryLatency as usize]
    };
    // Two groups that end together: waiting for both is waiting for memory twice as
    // long as the drain alone would, and allowing both waits only in the drain.
    assert!(run(0) >= run(2), "{} {}", run(0), run(2));
}

#[test]
fn full_mshrs_stall_the_unit_and_count_as_such() {
    // 32 sectors per access, independent: with room for 16 misses the unit stands
    // still until answers come; its queue fills, and warps find no place in it.
    let scatter = |k: u64| {
        scattered("LDG.E", Some(u16::try_from(2 + k).unwrap()), None, move |_, warp, _, lane| {
            (k * 8 + warp) * 65_536 + lane * 128
        })
    };
    let lines: Vec<Line> = (0..8).map(scatter).collect();
    let run = |entries: &str| {
        let resolved = named("v100", &[("l1.cache.mshr_entries", entries), ("l1.queue", "2")]);
        Script::new(&resolved, &lines, 1, 1, 256).run(&resolved)
    };
    let (narrow, wide) = (run("16"), run("4096"));
    assert_eq!(narrow.kernels[0].l1, wide.kernels[0].l1, "a refused look-up is not counted");
    assert!(kernel_cycles(&narrow) > 2 * kernel_cycles(&wide));
    let unit = |outcome: &crate::Outcome| {
        let stalls = outcome.kernels[0].stalls;
        stalls[Cause::ExecutionResource as usize] / stalls.iter().sum::<f64>()
    };
    assert!(unit(&narrow) > 0.5, "{}", unit(&narrow));
    assert!(unit(&narrow) > unit(&wide));
}

#[test]
fn active_lanes_at_null_access_nothing_and_are_counted() {
    let resolved = named("v100", &[]);
    // All lanes, then every other one, then none: 32 and 16 lanes are at address 0.
    let all = load(|_| 0);
    let half = load(|lane| if lane % 2 == 0 { 0 } else { 0x1000 + 32 * lane });
    let found = counts(&resolved, &[all, half, load(|lane| 0x1000 + 32 * lane)]);
    assert_eq!((found.null_accesses, found.null_lanes), (2, 48));
    assert_eq!(found.l1.accesses(), 16 + 32);
    // Who needs the result of such a load goes on.
    let user = line("FADD", Some(3), Some(2));
    let lines = [load(|_| 0), user];
    assert_eq!(counts(&resolved, &lines).warp_instructions, 2);
    // Shared memory has an address 0.
    let shared = scattered("LDS", Some(2), None, |_, _, _, lane| 4 * lane);
    assert_eq!(counts(&resolved, &[shared]).null_accesses, 0);
}
