//! Hot spots: are stalls, misses and conflicts charged to the instructions that cause them, and
//! does counting them move nothing?

use crate::config::Resolved;
use crate::testkit::{Line, Script, line, memory, scattered, translating};
use crate::{Cause, InstructionCounts, Outcome};

/// A load and its use, a chain of arithmetic, a shared load with 32 words in one bank, a barrier.
fn body() -> [Line; 6] {
    [
        memory("LDG.E", Some(4), Some(2), |cta, warp, _| ((cta * 64 + warp + 1) << 12, 32)),
        line("FADD", Some(5), Some(4)),
        line("FADD", Some(6), Some(5)),
        scattered("LDS", Some(7), Some(2), |_, _, _, lane| lane * 128),
        line("BAR.SYNC", None, None),
        line("EXIT", None, None),
    ]
}

/// The outcome without and with counts by instruction.
fn runs(resolved: &Resolved, script: &Script) -> (Outcome, Outcome) {
    (script.run(resolved), script.run_hot(resolved))
}

fn lost(row: &InstructionCounts) -> f64 {
    row.stalls.iter().sum()
}

/// The stalls of a launch by cause: its stack without issue slots and idle ones.
fn stalls(outcome: &Outcome) -> Vec<f64> {
    let stack = outcome.kernels[0].stalls;
    let stalls = |cause: &Cause| !matches!(cause, Cause::Issued | Cause::Idle);
    Cause::ALL.into_iter().filter(stalls).map(|cause| stack[cause as usize]).collect()
}

#[test]
fn stalls_add_up_to_those_of_the_launch_and_nothing_moves() {
    for name in ["v100", "rtx-3070", "accelsim-qv100"] {
        let resolved = translating(name, &[]);
        for (ctas, warps) in [(1, 1), (3, 7), (200, 8)] {
            let script = Script::new(&resolved, &body(), 3, ctas, 32 * warps);
            let (plain, hot) = runs(&resolved, &script);
            for (place, whole) in stalls(&plain).into_iter().enumerate() {
                let sum: f64 = hot.hot[0].iter().map(|row| row.stalls[place + 1]).sum();
                let near = (sum - whole).abs() <= 1e-6 * whole.abs().max(1.0);
                assert!(near, "{name} {ctas} {warps}: {sum} is not {whole}");
            }
            assert!(plain.hot.is_empty());
            assert_eq!(Outcome { hot: Vec::new(), ..hot }, plain, "{name} {ctas} {warps}");
        }
    }
}

#[test]
fn a_wait_for_memory_is_charged_to_the_load_and_a_barrier_to_itself() {
    let resolved = translating("v100", &[]);
    let script = Script::new(&resolved, &body(), 1, 1, 128);
    let (plain, hot) = runs(&resolved, &script);
    let rows = &hot.hot[0];
    let memory = |row: &InstructionCounts| row.stalls[Cause::LongMemoryLatency as usize];
    assert!(memory(&rows[0]) > 0.8 * rows.iter().map(memory).sum::<f64>(), "{rows:?}");
    assert!(lost(&rows[0]) > rows[1..].iter().map(lost).fold(0.0, f64::max), "{rows:?}");
    let barrier = |row: &InstructionCounts| row.stalls[Cause::Barrier as usize];
    assert!(barrier(&rows[4]) > 0.0 && rows.iter().map(barrier).sum::<f64>() <= barrier(&rows[4]));
    let chain = |row: &InstructionCounts| row.stalls[Cause::ShortRaw as usize];
    assert!(chain(&rows[2]) > chain(&rows[0]), "the second of a chain waits for the first");
    let l1: u64 = rows.iter().map(|row| row.l1.misses()).sum();
    assert_eq!((l1, rows[0].l1.misses()), (plain.kernels[0].l1.misses(), l1));
    // 32 lanes 32 bytes apart.
    assert_eq!((rows[0].requests, rows[0].sectors), (4, 4 * 32));
    assert_eq!((rows[3].requests, rows[3].sectors), (4, 0));
    // 32 words of one bank need 32 passes, spread evenly 1.
    assert_eq!(rows[3].bank_conflict_cycles, 4 * 31);
    assert_eq!(rows[0].bank_conflict_cycles, 0);
}

#[test]
fn a_wait_for_shared_memory_is_a_short_one_and_for_other_memory_a_long_one() {
    let resolved = translating("v100", &[]);
    let waits = |load: Line| {
        let body = [load, line("FADD", Some(2), Some(4))];
        let stalls = Script::new(&resolved, &body, 50, 1, 32).run(&resolved).kernels[0].stalls;
        [Cause::ShortRaw, Cause::LongMemoryLatency].map(|cause| stalls[cause as usize])
    };
    let [short, long] = waits(memory("LDS", Some(4), Some(8), |_, _, _| (0, 4)));
    assert!(short > 10.0 * long, "shared memory: {short} short, {long} long");
    let [short, long] = waits(memory("LDG.E", Some(4), Some(8), |_, _, _| (0x1000, 4)));
    assert!(long > 10.0 * short, "global memory: {short} short, {long} long");
}

#[test]
fn a_loop_that_is_taken_together_charges_its_own_instructions() {
    let body = [line("FADD", Some(5), Some(5)), line("FADD", Some(5), Some(5))];
    let resolved = translating("v100", &[]);
    let script = Script::new(&resolved, &body, 5_000, 1, 32);
    let (plain, hot) = runs(&resolved, &script);
    let rows = &hot.hot[0];
    let whole: f64 = stalls(&plain).iter().sum();
    assert!((rows.iter().map(lost).sum::<f64>() - whole).abs() < 1e-6 * whole, "{rows:?}");
    let raw = |row: &InstructionCounts| row.stalls[Cause::ShortRaw as usize];
    assert!(raw(&rows[0]) > 10_000.0 && (raw(&rows[0]) / raw(&rows[1]) - 1.0).abs() < 0.01);
}
