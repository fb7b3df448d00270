//! What sharing cost and gained: the figures of merit of a co-run, from what its
//! applications did together and alone.
//!
//! | figure | meaning | source |
//! |---|---|---|
//! | normalised progress | shared IPC over solo IPC | UGPU eq. 3 |
//! | slowdown | solo IPC over shared IPC | UGPU eq. 4 |
//! | STP | sum of normalised progress | UGPU eq. 3 |
//! | ANTT | mean of slowdowns | UGPU eq. 4 |
//! | harmonic speedup | harmonic mean of normalised progress | Luo et al., ISPASS 2001 |
//! | fairness | least normalised progress | Warped-Slicer, section V |
//! | throughput | thread instructions of all per cycle | Warped-Slicer, section V |
//! | makespan speedup | solo makespans in sequence over the shared one | Slate, as its throughput |

use gpumodel_core::units::Cycle;
use serde::{Deserialize, Serialize};

use super::{AppRecord, CoRun, CoRunApp, statistics};
use crate::format::{float, ratio};

/// An application alone on the machine, over the work of its reported run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Alone {
    /// Cycles of that work, launch latencies included.
    pub cycles: Cycle,
    /// Thread instructions per cycle.
    pub ipc: f64,
}

impl From<&AppRecord> for Alone {
    /// The whole solo run.
    fn from(app: &AppRecord) -> Self {
        Self { cycles: app.cycles, ipc: app.ipc }
    }
}

impl CoRun {
    /// Fills everything that follows from cycles and counters of the co-run and from
    /// the solo runs `alone`, one for each application in order: IPC, progress and
    /// slowdown, misses per thousand instructions and DRAM shares of the applications,
    /// and the figures of merit of the run.
    ///
    /// An application that did not finish is judged by its IPC until the end of the
    /// run; then there is no makespan. Without progress a slowdown is infinite. Where
    /// an application is memory-only, no times are modelled: progress and throughput
    /// of the run are 0, and a note says so.
    ///
    /// # Panics
    /// When `alone` has another length than [`CoRun::apps`]: the caller made both.
    pub fn judge(&mut self, alone: &[Alone]) {
        assert_eq!(self.apps.len(), alone.len(), "one solo run for each application");
        let moved: u64 = self.apps.iter().map(|app| app.dram.bytes()).fold(0, u64::saturating_add);
        for (app, alone) in self.apps.iter_mut().zip(alone) {
            app.count(moved);
            app.judge(alone);
        }
        self.spread();
        let times = !self.apps.iter().any(|app| app.memory_only);
        let work = self.work().unwrap_or(0);
        self.ipc_throughput = if times { rate(work, self.cycles) } else { 0.0 };
        let finished = self.apps.iter().all(|app| app.finished);
        let end = self.apps.iter().map(|app| app.end_cycle).max().unwrap_or(0);
        self.makespan_cycles = if finished { end } else { 0 };
        let sequence = alone.iter().map(|app| app.cycles).fold(0, u64::saturating_add);
        self.makespan_speedup = if times { rate(sequence, self.makespan_cycles) } else { 0.0 };
        self.confess();
    }

    /// The figures over all applications that follow from their progress.
    fn spread(&mut self) {
        let times = !self.apps.iter().any(|app| app.memory_only);
        let progress: Vec<f64> = self.apps.iter().map(|app| app.normalized_progress).collect();
        let slowdowns: Vec<f64> = self.apps.iter().map(|app| app.slowdown).collect();
        let least = progress.iter().copied().reduce(f64::min).unwrap_or(0.0);
        self.stp = if times { progress.iter().sum() } else { 0.0 };
        self.antt = statistics::mean(&slowdowns).filter(|_| times).unwrap_or(f64::INFINITY);
        self.harmonic_speedup =
            statistics::harmonic_mean(&progress).filter(|_| times).unwrap_or(0.0);
        self.fairness_min_speedup = if times { least } else { 0.0 };
    }

    /// Says what the figures cannot.
    fn confess(&mut self) {
        let names = |of: fn(&CoRunApp) -> bool| {
            let chosen = self.apps.iter().filter(|app| of(app)).map(|app| app.app.as_str());
            chosen.collect::<Vec<_>>().join(", ")
        };
        let blind = names(|app| app.memory_only);
        let starved = names(|app| !app.memory_only && app.normalized_progress <= 0.0);
        let cut = names(|app| !app.memory_only && !app.finished && app.normalized_progress > 0.0);
        let sentences = [
            (blind, "known by accesses alone, without times: the run is not judged"),
            (starved, "made no progress: its slowdown has no bound"),
            (cut, "did not finish: judged by IPC until the end; there is no makespan"),
        ];
        for (names, sentence) in sentences.into_iter().filter(|(names, _)| !names.is_empty()) {
            let note = format!("{names}: {sentence}");
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }
}

impl CoRunApp {
    /// What follows from its counters, where all applications together moved `moved`
    /// bytes over the DRAM pins.
    fn count(&mut self, moved: u64) {
        self.all_thread_instructions = self.all_thread_instructions.max(self.thread_instructions);
        let misses = self.l2.misses();
        self.mpki_warp = 1000.0 * rate(misses, self.warp_instructions);
        self.mpki_thread = 1000.0 * rate(misses, self.thread_instructions);
        self.dram_share = rate(self.dram.bytes(), moved);
    }

    fn judge(&mut self, alone: &Alone) {
        self.solo_ipc = alone.ipc;
        self.ipc = rate(self.thread_instructions, self.cycles);
        self.normalized_progress = match () {
            () if self.memory_only => 0.0,
            () if alone.ipc > 0.0 => self.ipc / alone.ipc,
            // Empty kernels take time, too.
            () if self.finished => rate(alone.cycles, self.cycles),
            () => 0.0,
        };
        let progress = self.normalized_progress;
        self.slowdown = if progress > 0.0 { progress.recip() } else { f64::INFINITY };
    }
}

/// `count` per one of `whole`; 0 where there is none.
fn rate(count: u64, whole: u64) -> f64 {
    ratio(float(count), float(whole)).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::Alone;
    use crate::results::{CacheCounters, CoRun, CoRunApp, DramCounters};

    /// An application that did `work` thread instructions until cycle `end`.
    fn app(name: &str, work: u64, end: u64) -> CoRunApp {
        CoRunApp {
            app: name.into(),
            cycles: end,
            end_cycle: end,
            finished: true,
            runs: 1,
            warp_instructions: work / 32,
            thread_instructions: work,
            ..CoRunApp::default()
        }
    }

    fn judged(apps: Vec<CoRunApp>, cycles: u64, alone: &[(u64, f64)]) -> CoRun {
        let mut run = CoRun { apps, cycles, ..CoRun::default() };
        let alone: Vec<Alone> = alone.iter().map(|&(cycles, ipc)| Alone { cycles, ipc }).collect();
        run.judge(&alone);
        run
    }

    fn figures(run: &CoRun) -> [f64; 6] {
        [
            run.stp,
            run.antt,
            run.harmonic_speedup,
            run.fairness_min_speedup,
            run.ipc_throughput,
            run.makespan_speedup,
        ]
    }

    #[test]
    fn two_halves_of_a_machine_gain_nothing() {
        // Each takes 1000 cycles alone and 2000 together: as long as in sequence.
        let apps = vec![app("a", 64_000, 2000), app("b", 32_000, 2000)];
        let run = judged(apps, 2000, &[(1000, 64.0), (1000, 32.0)]);
        assert_eq!(figures(&run), [1.0, 2.0, 0.5, 0.5, 48.0, 1.0]);
        assert_eq!((run.makespan_cycles, run.notes.len()), (2000, 0));
        assert_eq!((run.apps[0].ipc, run.apps[0].slowdown), (32.0, 2.0));
    }

    #[test]
    fn undisturbed_applications_double_the_throughput() {
        let apps = vec![app("a", 64_000, 1000), app("b", 64_000, 1000)];
        let run = judged(apps, 1000, &[(1000, 64.0), (1000, 64.0)]);
        assert_eq!(figures(&run), [2.0, 1.0, 1.0, 1.0, 128.0, 2.0]);
    }

    #[test]
    fn unequal_slowdowns_are_told_apart_by_each_mean() {
        // Progress 0.8 and 0.2: slowdowns 1.25 and 5.
        let apps = vec![app("a", 8000, 1000), app("b", 2000, 1000)];
        let run = judged(apps, 1000, &[(800, 10.0), (200, 10.0)]);
        let expected = [1.0, 3.125, 0.32, 0.2, 10.0, 1.0];
        for (value, expected) in figures(&run).into_iter().zip(expected) {
            assert!((value - expected).abs() < 1e-12, "{value} instead of {expected}");
        }
    }

    #[test]
    fn a_starving_application_has_no_bound_and_no_makespan() {
        let starved = CoRunApp { finished: false, ..app("b", 0, 500) };
        let run = judged(vec![app("a", 5000, 500), starved], 500, &[(500, 10.0), (100, 3.0)]);
        assert_eq!(figures(&run), [1.0, f64::INFINITY, 0.0, 0.0, 10.0, 0.0]);
        assert_eq!((run.makespan_cycles, run.apps[1].slowdown), (0, f64::INFINITY));
        assert_eq!(run.notes, ["b: made no progress: its slowdown has no bound"]);
    }

    #[test]
    fn who_did_not_finish_is_judged_by_its_rate() {
        let cut = CoRunApp { finished: false, ..app("b", 1000, 500) };
        let run = judged(vec![app("a", 5000, 500), cut], 500, &[(500, 10.0), (1000, 4.0)]);
        assert_eq!(figures(&run), [1.5, 1.5, 2.0 / 3.0, 0.5, 12.0, 0.0]);
        assert!(run.notes[0].starts_with("b: did not finish"), "{:?}", run.notes);
    }

    #[test]
    fn later_runs_count_for_throughput_alone() {
        let early = CoRunApp { runs: 2, all_thread_instructions: 9000, ..app("a", 5000, 500) };
        let run = judged(vec![early, app("b", 5000, 1000)], 1000, &[(500, 10.0), (1000, 5.0)]);
        assert_eq!(figures(&run), [2.0, 1.0, 1.0, 1.0, 14.0, 1.5]);
    }

    #[test]
    fn nothing_is_judged_without_times() {
        let log = CoRunApp { memory_only: true, ..app("log", 5000, 500) };
        let run = judged(vec![app("a", 5000, 500), log], 500, &[(500, 10.0), (500, 10.0)]);
        assert_eq!(figures(&run), [0.0, f64::INFINITY, 0.0, 0.0, 0.0, 0.0]);
        assert!(run.notes[0].starts_with("log: known by accesses alone"), "{:?}", run.notes);
        let none = judged(Vec::new(), 0, &[]);
        assert_eq!(figures(&none), [0.0, f64::INFINITY, 0.0, 0.0, 0.0, 0.0]);
        let empty = judged(vec![app("e", 0, 0), app("f", 0, 10)], 10, &[(0, 0.0), (5, 0.0)]);
        assert_eq!((empty.apps[0].slowdown, empty.apps[1].slowdown), (f64::INFINITY, 2.0));
    }

    #[test]
    fn shares_and_misses_follow_from_the_counters() {
        let with = |name, misses: u64, sectors| CoRunApp {
            l2: CacheCounters { accesses: misses + 7, hits: 7, ..CacheCounters::default() },
            dram: DramCounters { read_sectors: sectors, ..DramCounters::default() },
            ..app(name, 32_000, 100)
        };
        let run = judged(vec![with("a", 50, 30), with("b", 0, 10)], 100, &[(100, 320.0); 2]);
        assert_eq!((run.apps[0].mpki_warp, run.apps[0].mpki_thread), (50.0, 1.5625));
        assert_eq!((run.apps[0].dram_share, run.apps[1].dram_share), (0.75, 0.25));
    }
}
