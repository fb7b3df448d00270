//! Runs of applications together on one machine, under a scheme or a fixed plan; and about how many
//! warp instructions they will issue: the total of their progress.

use std::sync::atomic::{AtomicU64, Ordering};

use gpumodel_core::contract::{
    ChannelUse, Facts, LawBroken, Plan, Probe, ProbeApp, ProbeResult, View,
};
use gpumodel_core::isa::Unit;
use gpumodel_core::units::{AppId, Cycle, SECTOR_BYTES, to_u16, to_u64};
use gpumodel_feed::Mix;
use gpumodel_policy::Scheme;
use gpumodel_report::results::AppRecord;
use gpumodel_sim::{Cause, End, Gpu, KernelCounts, Load, MachineError, Outcome, Pause};
use gpumodel_trace::Progress;

use crate::{EndWhen, Ending, EventDetail, RunContext, RunError, scheme};

/// Applications ready to run together.
pub(crate) struct MixRunner<'a> {
    pub(crate) ctx: &'a RunContext<'a>,
    /// Their names, for messages.
    pub(crate) names: String,
    pub(crate) mix: Mix<'a>,
    pub(crate) facts: Facts,
    pub(crate) until: Ending,
    /// By application: warp instructions after which it stops.
    pub(crate) targets: Vec<Option<f64>>,
    /// How long runs are, for their progress; `None`: they count what they issue.
    pub(crate) expected: Option<Expected>,
}

/// One decision of a scheme.
pub(crate) struct Decision {
    pub(crate) cycle: Cycle,
    /// The view that the scheme got; `None` at the start.
    pub(crate) view: Option<Box<View>>,
    pub(crate) plan: Plan,
}

impl<'a> MixRunner<'a> {
    /// The machine with the applications `present`, to run until `end`.
    fn gpu<'m>(
        &'m self,
        mix: &'m Mix<'a>,
        present: &[AppId],
        end: End,
    ) -> Result<Gpu<'m>, RunError> {
        let load = |app: usize| Load {
            commands: self.mix.commands(app),
            arrival: self.facts.apps[app].arrival,
            target: self.targets[app],
            relaunches: self.until.when == EndWhen::FirstRun,
            absent: !present.contains(&AppId(to_u16(app))),
        };
        let loads = (0..self.facts.apps.len()).map(load).collect();
        let setup = self.ctx.setup(&self.ctx.resolved.machine, loads, end);
        Gpu::new(setup, mix).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: MachineError) -> RunError {
        RunError::Machine { app: self.names.clone(), source }
    }

    /// The error of a run under a scheme. A scheme may give an application nothing while others
    /// relaunch, and replayed decisions may leave an application waiting forever.
    fn stopped(&self, scheme: &str, source: MachineError) -> RunError {
        let typed = scheme.to_owned();
        match source {
            MachineError::Starved { app } => {
                RunError::Starved { scheme: typed, app: self.facts.apps[app].name.clone() }
            }
            MachineError::Stuck { .. } if scheme == scheme::REPLAY => {
                let problem = String::from(
                    "its decisions leave an application waiting forever here: machine, arrivals \
                     or end differ from those of the record",
                );
                RunError::Replay { typed, problem }
            }
            source => self.failed(source),
        }
    }

    /// The end of a run under a scheme.
    fn end(&self) -> End {
        End { first: self.until.when == EndWhen::First, at: self.until.cycles }
    }

    /// What is expected of a run, if anything is.
    pub(super) fn expects(&self, of: impl FnOnce(&Expected) -> u64) -> Option<u64> {
        self.expected.as_ref().map(of)
    }

    /// The progress of a run of which `of` says how long it is.
    fn progress(&self, of: impl FnOnce(&Expected) -> u64) -> RunProgress<'a> {
        RunProgress::new(self.ctx.watch.running(), self.expects(of))
    }

    fn all(&self) -> Vec<AppId> {
        self.facts.apps.iter().map(|app| app.app).collect()
    }

    /// Runs all applications under a scheme, with the results of its probes.
    pub(crate) fn run_scheme(
        &'a self,
        name: &str,
        scheme: &mut dyn Scheme,
        probes: &[ProbeResult],
    ) -> Result<(Outcome, Vec<Decision>), RunError> {
        let law = |source: LawBroken| RunError::law(name, source);
        let plan = scheme.start(&self.facts, probes).map_err(law)?;
        let mix = self.mix.formed(&plan, self.ctx.resolved);
        let mut gpu = self.ctx.on_threads(self.gpu(&mix, &self.all(), self.end())?);
        if self.ctx.events == EventDetail::Ctas {
            gpu = gpu.with_cta_spans();
        }
        if self.ctx.fast_forward {
            gpu = gpu.with_fast_forward();
        }
        gpu.follow(plan.clone()).map_err(|source| self.failed(source))?;
        let mut decisions = vec![Decision { cycle: 0, view: None, plan }];
        let mut progress = self.progress(Expected::run);
        let mut watch = |issued| progress.advance(issued);
        while let Pause::Decide(view) =
            gpu.advance(&mut watch).map_err(|source| self.stopped(name, source))?
        {
            let plan = scheme.decide(&self.facts, &view).map_err(law)?;
            let first = &decisions[0].plan;
            let other = |app: &AppId| plan.workers(*app) != first.workers(*app);
            if let Some(app) = self.all().into_iter().find(other) {
                return Err(law(LawBroken::Reformed(app)));
            }
            gpu.follow(plan.clone()).map_err(|source| self.failed(source))?;
            decisions.push(Decision { cycle: view.now, view: Some(view), plan });
        }
        let outcome = gpu.finish().map_err(|source| self.stopped(name, source))?;
        self.check_instructions(&outcome)?;
        Ok((outcome, decisions))
    }

    /// Checks that each finished application has executed its trace once, without the
    /// instructions of CTAs that were killed and restarted.
    fn check_instructions(&self, outcome: &Outcome) -> Result<(), RunError> {
        for (app, feed) in self.mix.feeds.iter().enumerate() {
            if outcome.apps[app].runs == 0 {
                continue;
            }
            let sums = sums(&outcome.kernels[self.mix.launches(app)]);
            let found = sums.warp_instructions - sums.lost_instructions - sums.added_instructions;
            let launches = 0..feed.programs().len();
            let expected = launches.map(|index| feed.instructions(index).0).sum();
            if found != expected {
                let app = self.facts.apps[app].name.clone();
                return Err(RunError::Instructions { app, expected, found });
            }
        }
        Ok(())
    }

    /// The result of a probe, from the cache or from [`MixRunner::probe`]. A racing probe always
    /// runs: its result depends on the other probes.
    pub(crate) fn cached_probe(
        &'a self,
        probe: &Probe,
        best: &AtomicU64,
    ) -> Result<ProbeResult, RunError> {
        let mut progress = self.progress(|expected| expected.probe(probe));
        if probe.race {
            return self.counted_probe(probe, best, &mut progress);
        }
        let key_parts = || {
            let asked = serde_json::to_string(probe).expect("a probe is plain data");
            let stopped = format!("{} {:?}", self.until, self.targets);
            let mut parts = vec![String::from("probe"), asked, stopped];
            for (app, feed) in self.facts.apps.iter().zip(&self.mix.feeds) {
                parts.push(format!("{} {} {:?}", app.name, app.arrival, feed.content()));
            }
            parts
        };
        self.ctx.cached(key_parts, || self.counted_probe(probe, best, &mut progress))
    }

    /// Runs a probe. `best` is the length of the shortest racing run so far.
    pub(crate) fn probe(
        &'a self,
        probe: &Probe,
        best: &AtomicU64,
    ) -> Result<ProbeResult, RunError> {
        let mut progress = self.progress(|expected| expected.probe(probe));
        self.counted_probe(probe, best, &mut progress)
    }

    fn counted_probe(
        &'a self,
        probe: &Probe,
        best: &AtomicU64,
        progress: &mut RunProgress<'_>,
    ) -> Result<ProbeResult, RunError> {
        let mut end = match probe.window {
            Some(window) => {
                End { first: false, at: Some(self.first_arrival(&probe.apps) + window) }
            }
            None => self.end(),
        };
        let bound = best.load(Ordering::Relaxed);
        if probe.race && bound < Cycle::MAX {
            end.at = Some(end.at.map_or(bound + 1, |at| at.min(bound + 1)));
        }
        let mix = self.mix.formed(&probe.plan, self.ctx.resolved);
        let gpu = self.gpu(&mix, &probe.apps, end)?;
        let mut watch = |issued| progress.advance(issued);
        let outcome = gpu.run(&probe.plan, &mut watch).map_err(|source| self.failed(source))?;
        let lost = probe.race && outcome.cycles > bound;
        if probe.race && !lost {
            best.fetch_min(outcome.cycles, Ordering::Relaxed);
        }
        let cycles = if lost { Cycle::MAX } else { outcome.cycles };
        let apps = probe.apps.iter().map(|&app| self.probed(app, &outcome));
        Ok(ProbeResult { cycles, apps: apps.collect::<Result<_, _>>()? })
    }

    /// The first arrival of some applications, where windows begin.
    fn first_arrival(&self, apps: &[AppId]) -> Cycle {
        let arrivals = apps.iter().map(|app| self.facts.apps[app.index()].arrival);
        arrivals.min().unwrap_or(0)
    }

    /// Single-precision operations in so many warp instructions of an application, at the mean
    /// over its whole trace.
    fn flops(&self, app: usize, warp_instructions: u64) -> Result<f64, RunError> {
        let feed = self.mix.feeds[app];
        let flops = feed.flops()?;
        let all: u64 = (0..feed.programs().len()).map(|index| feed.instructions(index).0).sum();
        Ok(flops * warp_instructions as f64 / all.max(1) as f64)
    }

    fn probed(&self, app: AppId, outcome: &Outcome) -> Result<ProbeApp, RunError> {
        let sums = sums(&outcome.kernels[self.mix.launches(app.index())]);
        let ended = outcome.apps[app.index()];
        let (warp_instructions, thread_instructions) = self.work(app.index(), &ended, &sums);
        let stalled = sums.stalls[Cause::LongMemoryLatency as usize];
        Ok(ProbeApp {
            app,
            cycles: ended.cycles(),
            warp_instructions,
            thread_instructions,
            l1_accesses: sums.l1.accesses(),
            l1_hits: sums.l1.accesses() - sums.l1.misses(),
            l2_accesses: sums.l2.accesses(),
            l2_hits: sums.l2.accesses() - sums.l2.misses(),
            l2_merged: sums.l2.merges(),
            dram_bytes: (sums.dram_reads + sums.dram_writes) * SECTOR_BYTES,
            channels: channel_use(outcome),
            flops: self.flops(app.index(), warp_instructions)?,
            memory_instructions: sums.by_unit[Unit::Memory.index()],
            memory_stall_fraction: if sums.slot_cycles > 0.0 {
                (stalled / sums.slot_cycles).clamp(0.0, 1.0)
            } else {
                0.0
            },
        })
    }
}

/// What all channels have done in a run.
fn channel_use(outcome: &Outcome) -> ChannelUse {
    let total = sums(&outcome.totals);
    ChannelUse {
        bytes: (total.dram_reads + total.dram_writes) * SECTOR_BYTES,
        waiting_cycles: outcome.channels.iter().map(|channel| channel.waiting_cycles).sum(),
        cycles: outcome.cycles * to_u64(outcome.channels.len()),
    }
}

/// The summed counts of several launches.
pub(crate) fn sums(launches: &[KernelCounts]) -> KernelCounts {
    let mut sums = KernelCounts::default();
    launches.iter().for_each(|launch| sums.join(launch));
    sums
}

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

    /// From the warp instructions of the traces, before it is known how long they take.
    pub(super) fn of_traces(instructions: impl Iterator<Item = u64>, until: Ending) -> Self {
        let alone: Vec<(f64, f64)> = instructions.map(|whole| (whole as f64, 1.0)).collect();
        Self { targets: vec![None; alone.len()], alone, until }
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
