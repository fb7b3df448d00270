//! The record of a co-run.

use std::collections::BTreeMap;

use gpumodel_core::contract::{AppView, Plan, Share, View, Wake};
use gpumodel_core::units::{AppId, to_u32};
use gpumodel_report::results::{
    CoRun, CoRunApp, CoRunKernel, CurveRecord, DecisionRecord, MigrationRecord, MovedSoFar,
    ResidencyRecord, ResidencyRow, RunEvents,
};
use gpumodel_sim::{AppMoved, AppOutcome, Need, Outcome};

use super::runner::{Decision, sums};
use super::{MixRunner, SoloBaseline};
use crate::EventDetail;
use crate::record;
use crate::record::utilization::HeldResources;
use crate::record::{energy, utilization};
use crate::solo::threads;

/// Progress beyond this multiple of the target is noted.
const MAX_OVERSHOOT: f64 = 1.1;

impl MixRunner<'_> {
    /// The record of a run under a scheme.
    pub(crate) fn record(
        &self,
        (scheme, parameters): (&str, BTreeMap<String, String>),
        (outcome, decisions): (&Outcome, &[Decision]),
        baselines: &[SoloBaseline],
    ) -> CoRun {
        let machine = &self.ctx.resolved.machine;
        let cycles = outcome.cycles;
        let totals = sums(&outcome.totals);
        let energy = energy::spent(machine, outcome.totals.iter(), &outcome.channels, cycles);
        let busy = utilization::busy(
            machine,
            outcome.totals.iter(),
            self.held(outcome, decisions),
            cycles,
        );
        let mut run = CoRun {
            scheme: scheme.to_owned(),
            parameters,
            until: self.until.to_string(),
            cycles,
            apps: (0..self.facts.apps.len()).map(|app| self.app(app, outcome, decisions)).collect(),
            l1: record::cache(&totals.l1),
            l2: record::cache(&totals.l2),
            dram: record::dram(self.ctx, &totals, cycles),
            utilization: Some(busy),
            energy_joules: energy.map_or(0.0, |energy| energy.total_joules()),
            energy,
            killed_ctas: totals.ctas_killed,
            decisions: decisions.iter().map(|decision| self.decision(decision)).collect(),
            moved: owned(decisions).then(|| outcome.moved.iter().map(moved_so_far).collect()),
            residency: residency(outcome),
            notes: self.run_notes(outcome),
            events: self.events(outcome),
            ..CoRun::default()
        };
        let alone: Vec<_> = baselines.iter().map(|baseline| baseline.alone).collect();
        run.judge(&alone);
        run
    }

    /// What the record does not keep: activity over time and CTAs, where they are wanted.
    fn events(&self, outcome: &Outcome) -> RunEvents {
        let of = |kernel: usize| {
            let app =
                (0..self.facts.apps.len()).find(|&app| self.mix.launches(app).contains(&kernel));
            let app = app.unwrap_or(0);
            (app, kernel - self.mix.launches(app).start)
        };
        let mut events = record::ctas(outcome, of);
        if self.ctx.events >= EventDetail::Activity {
            events.timeline = outcome.timeline.iter().map(record::interval).collect();
        }
        events
    }

    /// What is said of a run.
    fn run_notes(&self, outcome: &Outcome) -> Vec<String> {
        let machine = &self.ctx.resolved.machine;
        let link = |app: usize| {
            let link = record::link(machine, &outcome.apps[app].link)?;
            let said: Vec<String> = [link.copies(), link.faults()].into_iter().flatten().collect();
            let name = &self.facts.apps[app].name;
            (!said.is_empty()).then(|| format!("{name}: {}", said.join("; ")))
        };
        let links = (0..self.facts.apps.len()).filter_map(link);
        self.overshoot_notes(outcome).into_iter().chain(links).collect()
    }

    /// Notes on applications that went far beyond their targets before the next check: their IPC
    /// covers all they executed, the solo IPC only the window.
    fn overshoot_notes(&self, outcome: &Outcome) -> Vec<String> {
        let far = |(app, &target): (usize, &Option<f64>)| {
            let (ended, target) = (&outcome.apps[app], target?);
            let far = ended.finished && ended.runs == 0 && ended.progress > MAX_OVERSHOOT * target;
            far.then(|| {
                format!(
                    "{}: executed {:.0} warp instructions before the check that its target of \
                     {target:.0} was reached (checks are 64 cycles or more apart): its \
                     progress is overstated; a longer --window compares better",
                    self.facts.apps[app].name, ended.progress
                )
            })
        };
        self.targets.iter().enumerate().filter_map(far).collect()
    }

    /// The registers and shared memory of resident CTAs over time.
    fn held(&self, outcome: &Outcome, decisions: &[Decision]) -> HeldResources {
        let plan = decisions.first().map(|decision| &decision.plan);
        let mut held = HeldResources::default();
        let kernels = (0..self.facts.apps.len()).flat_map(|app| self.formed(app, plan));
        for (kernel, &cycles) in kernels.zip(&outcome.cta_cycles) {
            let need = Need {
                warps: kernel.warps_per_cta,
                registers: kernel.registers_per_cta,
                shared_bytes: kernel.shared_bytes_per_cta,
            };
            held.add(&need, cycles as f64);
        }
        held
    }

    fn app(&self, app: usize, outcome: &Outcome, decisions: &[Decision]) -> CoRunApp {
        let ended = outcome.apps[app];
        let all = sums(&outcome.totals[self.mix.launches(app)]);
        let (sms, ctas_per_sm, channels) = self.share(app, &ended, decisions);
        let (mean_sms, mean_channels) = self.mean_share(app, &ended, decisions).unzip();
        let plan = decisions.first().map(|decision| &decision.plan);
        CoRunApp {
            sms,
            ctas_per_sm,
            channels,
            mean_sms,
            mean_channels,
            migration: self.migration(&ended, decisions),
            workers: plan.and_then(|plan| self.workers(app, plan, &all)),
            host: plan.map(|plan| self.host(app, plan, &ended, outcome)),
            kernels: self.kernels(app, outcome),
            ..self.app_counts(app, outcome)
        }
    }

    /// The counts of an application, without its shares of the machine.
    fn app_counts(&self, app: usize, outcome: &Outcome) -> CoRunApp {
        let machine = &self.ctx.resolved.machine;
        let launches = self.mix.launches(app);
        let counts = sums(&outcome.kernels[launches.clone()]);
        let all = sums(&outcome.totals[launches]);
        let ended = outcome.apps[app];
        let cycles = ended.cycles();
        let (warp_instructions, thread_instructions) = self.work(app, &ended, &counts);
        let relaunches = self.until.when == crate::EndWhen::FirstRun;
        let schedulers = u32::from(machine.dispatch.sms) * machine.sm.schedulers;
        let feed = &self.mix.feeds[app];
        CoRunApp {
            app: self.facts.apps[app].name.clone(),
            cycles,
            arrival_cycle: ended.arrival,
            end_cycle: ended.end,
            finished: ended.finished,
            runs: ended.runs,
            memory_only: (0..feed.programs().len()).any(|index| feed.memory_only(index)),
            warp_instructions,
            thread_instructions,
            all_thread_instructions: if relaunches { all.thread_instructions } else { 0 },
            fast_forward: record::fast_forward(&ended),
            link: record::link(machine, &ended.link),
            l1: record::cache(&counts.l1),
            l2: record::cache(&counts.l2),
            dram: record::dram(self.ctx, &counts, cycles),
            stall_fractions: record::stalls(counts.stalls, cycles as f64 * f64::from(schedulers)),
            killed_ctas: all.ctas_killed,
            ..CoRunApp::default()
        }
    }

    /// Warp and thread instructions of the reported run: those of the trace if it finished, else
    /// its progress.
    pub(crate) fn work(
        &self,
        app: usize,
        ended: &AppOutcome,
        counts: &gpumodel_sim::KernelCounts,
    ) -> (u64, u64) {
        let feed = &self.mix.feeds[app];
        if ended.runs > 0 {
            let launches = (0..feed.programs().len()).map(|index| feed.instructions(index));
            return launches.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count that is not negative"
        )]
        let warps = ended.progress.round() as u64;
        let threads = threads(ended.progress, counts.warp_instructions, counts.thread_instructions);
        (warps, threads)
    }

    /// The cost of owned channels to an application, if any were owned.
    fn migration(&self, ended: &AppOutcome, decisions: &[Decision]) -> Option<MigrationRecord> {
        let memory = ended.memory;
        owned(decisions).then(|| MigrationRecord {
            pages: memory.pages,
            pages_moved: memory.pages_moved,
            bytes_moved: memory.pages_moved * u64::from(self.facts.page_bytes),
            channel_changes: memory.changes,
            moving_cycles: memory.moving_cycles,
            resting_cycles: ended.resting_cycles,
            vacating_cycles: ended.vacating_cycles,
        })
    }

    fn kernels(&self, app: usize, outcome: &Outcome) -> Vec<CoRunKernel> {
        let feed = &self.mix.feeds[app];
        let launches = feed.programs().iter().zip(&outcome.kernels[self.mix.launches(app)]);
        let begun = launches.enumerate().filter(|(_, (_, counts))| counts.ctas_started > 0);
        begun
            .map(|(index, (program, counts))| CoRunKernel {
                name: program.launch.name.clone(),
                launch: to_u32(index + 1),
                start_cycle: counts.start,
                end_cycle: if counts.end > counts.start { counts.end } else { outcome.cycles },
                ctas: counts.ctas_retired,
            })
            .collect()
    }

    fn decision(&self, decision: &Decision) -> DecisionRecord {
        let Decision { cycle, view, plan } = decision;
        let name = |app: AppId| self.facts.apps[app.index()].name.clone();
        let curve = |curve: &gpumodel_core::contract::Curve| CurveRecord {
            app: name(curve.app),
            ipc: curve.ipc.clone(),
            normalized: curve.normalized.clone(),
            chosen: curve.chosen,
        };
        let wake = view.as_ref().map_or_else(
            || String::from("start"),
            |view| match view.wake {
                Wake::At(_) => String::from(DecisionRecord::AS_ASKED),
                Wake::Arrival(app) => format!("{} arrives", name(app)),
                Wake::KernelBegin(app) => format!("{} launches", name(app)),
                Wake::KernelEnd(app) => format!("a launch of {} ends", name(app)),
                Wake::AppEnd(app) => format!("{} ends", name(app)),
                Wake::LastTaskStarted(app) => format!("{} has no more tasks", name(app)),
                Wake::CtaDrained(app) => format!("{} has drained", name(app)),
                Wake::IpcShift(app) => format!("the IPC of {} has shifted", name(app)),
            },
        );
        DecisionRecord {
            cycle: *cycle,
            wake,
            plan: brief_plan(plan, view.is_none()),
            reason: plan.reason().to_owned(),
            curves: plan.curves().iter().map(curve).collect(),
            moved: view.as_ref().map_or_else(Vec::new, |view| moved(view)),
        }
    }
}

/// The plan without the fields that the record holds separately; a quota that is the same on
/// all SMs becomes one number. Worker forms hold for the whole run: only the first plan has
/// them.
fn brief_plan(plan: &Plan, first: bool) -> serde_json::Value {
    let mut value = serde_json::to_value(plan).expect("a plan is plain data");
    let shares: Vec<serde_json::Value> = plan.shares().iter().map(share).collect();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("curves");
        fields.remove("reason");
        if !first {
            fields.remove("workers");
        }
        fields.insert(String::from("shares"), shares.into());
    }
    value
}

fn share(share: &Share) -> serde_json::Value {
    match share {
        Share::Waiting => "waiting".into(),
        Share::Quota(by_sm) => match by_sm.first() {
            Some(first) if by_sm.iter().all(|quota| quota == first) => (*first).into(),
            _ => by_sm.clone().into(),
        },
    }
}

fn residency(outcome: &Outcome) -> Option<ResidencyRecord> {
    let residency = outcome.residency.as_ref()?;
    let apps = residency.cta_cycles.len();
    let sms = residency.cta_cycles.first().map_or(0, Vec::len);
    let mean = |&cycles: &u64| cycles as f64 / residency.span as f64;
    let mut rows = Vec::new();
    for sm in 0..sms {
        for app in 0..apps {
            let cycles = &residency.cta_cycles[app][sm];
            let last = cycles.iter().rposition(|&cycles| cycles > 0);
            let Some(last) = last else { continue };
            let ctas = cycles[..=last].iter().map(mean).collect();
            rows.push(ResidencyRow { sm: to_u32(sm), app_index: to_u32(app), ctas });
        }
    }
    Some(ResidencyRecord { interval_cycles: residency.span, rows })
}

/// Whether any plan gives applications channels.
fn owned(decisions: &[Decision]) -> bool {
    decisions.iter().any(|decision| !decision.plan.channels().is_empty())
}

/// The pages of an application that moved during the run.
fn moved_so_far(moved: &AppMoved) -> MovedSoFar {
    MovedSoFar {
        pages_moved: moved.pages,
        moving_cycles: moved.moving_cycles,
        vacating_cycles: moved.vacating_cycles,
    }
}

/// The pages that moved up to a decision; empty if channels are not owned or no page moved.
fn moved(view: &View) -> Vec<MovedSoFar> {
    let one = |app: &AppView| MovedSoFar {
        pages_moved: app.pages_moved,
        moving_cycles: app.moving_cycles,
        vacating_cycles: app.vacating_cycles,
    };
    let all: Vec<MovedSoFar> = view.apps.iter().map(one).collect();
    let owned = view.channel_owner.iter().any(Option::is_some);
    let any = |moved: &MovedSoFar| *moved != MovedSoFar::default();
    if owned && all.iter().any(any) { all } else { Vec::new() }
}
