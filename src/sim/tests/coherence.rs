//! What is flushed when memory channels change hands. The page table of the tests' own
//! (`translation::shadow`) watches every answer and write here as everywhere.

use crate::config::Resolved;
use gpumodel_core::contract::{Migration, WakeOn};

use crate::Outcome;
use crate::testkit::multi_app_fixture::MultiAppFixture;
use crate::testkit::scripted::{Line, Script, line, memory};
use crate::tests::reallocation::{split, together, ugpu};

/// Lines of 128 bytes of `pages` pages of 4 KB, one of each CTA and turn, over and over.
fn over(pages: u64) -> impl Fn(u64, u64, u64) -> (u64, i64) {
    move |cta, warp, turn| {
        let place = (cta * 7 + warp * 3 + turn * 37) % (pages * 32);
        (0x4000_0000 + place * 128, 4)
    }
}

fn reads(pages: u64) -> Vec<Line> {
    vec![memory("LDG.E", Some(2), None, over(pages)), line("FFMA", Some(3), Some(2))]
}

fn writes(pages: u64) -> Vec<Line> {
    vec![memory("STG.E", None, Some(3), over(pages)), line("FFMA", Some(3), Some(2))]
}

/// Two with the same lines on a machine; the second gets two groups of the first where
/// `at` says when.
fn pair(resolved: &Resolved, lines: &[Line], at: Option<u64>) -> Outcome {
    let work = || Script::new(resolved, lines, 1600, 64, 128);
    let changes: Vec<(u64, usize)> = at.map(|at| (at, 2)).into_iter().collect();
    together(resolved, vec![work(), work()], Migration::PageMove, &changes)
}

/// The second number over the first.
fn ratio([before, after]: [u64; 2]) -> f64 {
    after as f64 / before as f64
}

#[test]
fn what_l1s_and_l2_hold_is_read_again_behind_a_change() {
    let resolved = ugpu(&[]);
    // Two pages, which all L1s keep and which stay where they are.
    let runs = [None, Some(20_000)].map(|at| pair(&resolved, &reads(2), at));
    let l1 = runs.clone().map(|run| run.kernels[0].l1.misses());
    assert!((1.8..2.2).contains(&ratio(l1)), "L1: {l1:?}");
    let dram = runs.map(|run| run.kernels[0].dram_reads);
    assert!(ratio(dram) > 1.5, "{dram:?}");
    // What the L2 keeps and L1s do not.
    let runs = [None, Some(60_000)].map(|at| pair(&resolved, &reads(120), at));
    let dram = runs.map(|run| run.kernels[0].dram_reads);
    assert!((1.8..2.2).contains(&ratio(dram)), "{dram:?}");
}

#[test]
fn what_is_dirty_is_in_memory_before_anybody_goes_on() {
    let resolved = ugpu(&[]);
    let [alone, changed] = [None, Some(20_000)].map(|at| pair(&resolved, &writes(120), at));
    assert_eq!(alone.kernels[0].dram_writes, 0, "the L2 keeps all");
    // Two applications with 120 pages of 128 sectors, some of them not yet written.
    let written: u64 = changed.kernels.iter().map(|counts| counts.dram_writes).sum();
    assert!((2 * 120 * 100..=2 * 120 * 128).contains(&written), "{written}");
    let [clean, dirty] = [reads(120), writes(120)]
        .map(|lines| pair(&resolved, &lines, Some(20_000)).apps[0].resting_cycles);
    // Pages that set out at once find their data in memory: the tests' page table looks.
    let soon = ugpu(&[("translation.migration_driver_cycles", "1")]);
    let moved = pair(&soon, &writes(2000), Some(20_000)).apps[0].memory.pages_moved;
    assert!(moved > 500, "{moved}");
    // 7680 lines over 32 channels, two accesses of a clock of 440 MHz each: 1500 cycles.
    assert!(dirty > clean + 1000, "{clean}, {dirty}");
}

#[test]
fn who_comes_meanwhile_and_writes_without_pause_keeps_nobody_at_rest() {
    let resolved = ugpu(&[]);
    let rest = |turns: u32| {
        let first = Script::new(&resolved, &writes(120), 1600, 64, 128);
        let other = Script::new(&resolved, &writes(20_000), turns, 64, 128);
        let fixture =
            MultiAppFixture::new(vec![first, other]).with(1, |load| load.arrival = 20_050);
        let plan = |groups: usize, at: &[u64]| {
            let wake = at.iter().map(|&at| WakeOn::At(at)).collect();
            split(&resolved, groups, Migration::PageMove, wake)
        };
        let outcome = fixture.run(&resolved, &plan(4, &[20_000]), |_| plan(2, &[]));
        assert!(outcome.apps[0].memory.pages_moved > 0);
        outcome.apps[0].resting_cycles
    };
    let [beside_little, beside_much] = [1, 3000].map(rest);
    assert!(beside_much < beside_little + 2000, "{beside_little}, {beside_much}");
}
