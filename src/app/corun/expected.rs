//! About how many warp instructions runs together will issue: the total of their progress.

use gpumodel_core::contract::Probe;
use gpumodel_core::units::Cycle;
use gpumodel_report::results::AppRecord;
use gpumodel_trace::Progress;

use crate::{EndWhen, Ending};

/// What the solo runs of some applications say about runs together.
#[derive(Debug)]
pub(crate) struct Expected {
    /// By application: warp instructions and cycles alone.
    alone: Vec<(f64, f64)>,
    until: Ending,
    /// By application: warp instructions after which it stops.
    targets: Vec<Option<f64>>,
}

impl Expected {
    /// From the solo runs of applications that run until `until`, or reach `targets`.
    pub(super) fn new(solo: &[AppRecord], until: Ending, targets: Vec<Option<f64>>) -> Self {
        let alone = |row: &AppRecord| (row.warp_instructions as f64, row.cycles.max(1) as f64);
        Self { alone: solo.iter().map(alone).collect(), until, targets }
    }

    /// Warp instructions of all applications under a scheme.
    pub(super) fn run(&self) -> u64 {
        self.of(0..self.alone.len(), self.until.cycles)
    }

    /// Warp instructions of a probe.
    pub(super) fn probe(&self, probe: &Probe) -> u64 {
        let limits = [probe.window, self.until.cycles.filter(|_| probe.window.is_none())];
        self.of(probe.apps.iter().map(|app| app.index()), limits.into_iter().flatten().min())
    }

    /// Warp instructions of the first `window` cycles of each application alone.
    pub(super) fn windows(&self, window: Cycle) -> u64 {
        let all = self.alone.iter();
        count(all.map(|(whole, cycles)| whole * (window as f64 / cycles).min(1.0)).sum())
    }

    /// Warp instructions of some applications, at their rates alone, in `limit` cycles at most.
    fn of(&self, apps: impl Iterator<Item = usize> + Clone, limit: Option<Cycle>) -> u64 {
        let cycles = apps.clone().map(|app| self.alone[app].1);
        let end = match self.until.when {
            EndWhen::First => cycles.fold(f64::INFINITY, f64::min),
            // Early finishers relaunch.
            EndWhen::FirstRun => cycles.fold(0.0, f64::max),
            EndWhen::All | EndWhen::Targets | EndWhen::Clock => f64::INFINITY,
        };
        let end = limit.map_or(end, |limit| end.min(limit as f64));
        let relaunches = self.until.when == EndWhen::FirstRun;
        let issued = |app: usize| {
            let (whole, cycles) = self.alone[app];
            let most = if relaunches { f64::INFINITY } else { self.targets[app].unwrap_or(whole) };
            (whole * end / cycles).min(most)
        };
        count(apps.map(issued).sum())
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and a float-to-integer cast saturates"
)]
fn count(instructions: f64) -> u64 {
    instructions as u64
}

/// The progress of one run: it counts for as much as expected, so that all runs add up to the
/// total whatever each issues.
pub(super) struct RunProgress<'a> {
    running: &'a dyn Progress,
    /// What it may still count; `None`: whatever it issues.
    left: Option<u64>,
}

impl<'a> RunProgress<'a> {
    pub(super) fn new(running: &'a dyn Progress, expected: Option<u64>) -> Self {
        Self { running, left: expected }
    }

    /// The run has issued so many more warp instructions.
    pub(super) fn advance(&mut self, issued: u64) {
        let counted = self.left.map_or(issued, |left| issued.min(left));
        self.left = self.left.map(|left| left - counted);
        self.running.advance(counted);
    }
}

impl Drop for RunProgress<'_> {
    /// What was expected and not issued counts too: the run has ended, or its result was cached.
    fn drop(&mut self) {
        if let Some(left @ 1..) = self.left {
            self.running.advance(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use gpumodel_report::results::AppRecord;
    use gpumodel_trace::Progress;

    use super::{Expected, RunProgress};
    use crate::{EndWhen, Ending};

    fn solo(warp_instructions: u64, cycles: u64) -> AppRecord {
        AppRecord { warp_instructions, cycles, ..AppRecord::default() }
    }

    #[test]
    fn the_end_of_a_run_sets_its_instructions() {
        let of = |when, cycles, targets| {
            let solo = [solo(1000, 100), solo(400, 200)];
            Expected::new(&solo, Ending { when, cycles }, targets).run()
        };
        let none = || vec![None; 2];
        assert_eq!(of(EndWhen::All, None, none()), 1400);
        assert_eq!(of(EndWhen::All, Some(50), none()), 500 + 100);
        assert_eq!(of(EndWhen::First, None, none()), 1000 + 200);
        assert_eq!(of(EndWhen::FirstRun, None, none()), 2000 + 400, "the shorter one twice");
        assert_eq!(of(EndWhen::Clock, Some(1000), none()), 1400, "none relaunches");
        assert_eq!(of(EndWhen::Targets, None, vec![Some(300.0), None]), 300 + 400);
    }

    struct Count(AtomicU64);

    impl Progress for Count {
        fn begin(&self, _: u64) {}
        fn more(&self, _: u64) {}
        fn begin_about(&self, _: u64) {}
        fn advance(&self, done: u64) {
            self.0.fetch_add(done, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_run_counts_for_what_was_expected_of_it() {
        let counted = |expected, issued: &[u64]| {
            let count = Count(AtomicU64::new(0));
            let mut progress = RunProgress::new(&count, expected);
            issued.iter().for_each(|&issued| progress.advance(issued));
            drop(progress);
            count.0.into_inner()
        };
        assert_eq!(counted(Some(10), &[4, 3]), 10, "fewer");
        assert_eq!(counted(Some(10), &[4, 30, 2]), 10, "more");
        assert_eq!(counted(Some(10), &[]), 10, "from the cache");
        assert_eq!(counted(None, &[4, 30]), 34, "nothing was expected");
    }
}
