//! A service that tells kernels how many workers to have.

use gpumodel_core::contract::{
    Curve, DispatchOrder, Facts, LawBroken, Persistent, Plan, PlanDraft, Probe,
};
use gpumodel_core::contract::{ProbeResult, Share, View, Wake, WakeOn};
use gpumodel_core::units::{AppId, Cycle, to_usize};

use super::progress::{LaunchState, Progress};
use super::solve::{Amount, Candidate, greedy};
use super::tenancy::{self, INSTRUCTIONS, LEADER, REGISTERS, SHARED, TASK};
use super::{Kind, Parameter, Scheme, Settings, active_apps, cta_resources, shares};

/// What a user may set.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "latency_us",
        kind: Kind::Real { default: 10.0, least: 0.0, most: 1e6 },
        summary: "microseconds that a message takes, from and to the service (assumed)",
    },
    Parameter {
        name: "window",
        kind: Kind::Whole { default: 200_000, least: 0, most: u64::MAX },
        summary: "cycles of each profiling run, extrapolated; 0: to the end (assumed)",
    },
    TASK,
    REGISTERS,
    SHARED,
    INSTRUCTIONS,
    LEADER,
];

/// Adaptive simultaneous multi-tenancy (ARCS 2018, section 3). Applications ask a
/// service on the host before they launch a kernel and tell it when its last task has
/// started. A message takes `latency_us`; what comes in meanwhile is taken together.
/// The service asks how far all are, estimates what time is left of each with 1, 2, ...
/// CTAs per SM (eq. 1, from runs alone), chooses by Algorithm 1 and answers: kernels
/// with too many workers lose some at the end of their tasks, those with too few launch
/// another instance. Where not even one CTA of each fits, all have one.
///
/// An application of several launches has one profile for all of them. Alone, no
/// profile is taken: it has what fits.
#[derive(Clone, Debug)]
pub struct Sim {
    latency_us: f64,
    window: Option<Cycle>,
    form: Persistent,
    latency: Cycle,
    /// By application: cycles alone with 1, 2, ... CTAs per SM.
    times: Vec<Vec<f64>>,
    needs: Vec<Amount>,
    progress: Progress,
    /// CTAs per SM that each has been told to have.
    assigned: Vec<Option<u32>>,
    /// When the service begins with the messages that it has.
    due: Option<Cycle>,
    /// When its last answers arrive.
    answered: Cycle,
    reason: String,
}

impl Sim {
    pub(super) fn make(settings: &Settings) -> Box<dyn Scheme> {
        let window = settings.whole("window");
        Box::new(Self {
            latency_us: settings.real("latency_us"),
            window: (window > 0).then_some(window),
            form: tenancy::form(settings),
            latency: 0,
            times: Vec::new(),
            needs: Vec::new(),
            progress: Progress::default(),
            assigned: Vec::new(),
            due: None,
            answered: 0,
            reason: String::from("the service has not answered yet"),
        })
    }

    /// Workers on an SM: one at least, which the machine refuses where it does not fit.
    fn fits(&self, facts: &Facts, app: AppId) -> u32 {
        tenancy::need(facts, app, &self.form).1.max(1)
    }

    /// The cycles of an application alone with 1, 2, ... CTAs per SM.
    #[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
    fn profile(&self, facts: &Facts, app: AppId, rows: &[ProbeResult]) -> Vec<f64> {
        if rows.is_empty() {
            return (1..=self.fits(facts, app)).map(|ctas| 1.0 / f64::from(ctas)).collect();
        }
        let kernels = &facts.apps[app.index()].kernels;
        let all: u64 = kernels.iter().map(|kernel| kernel.warp_instructions).sum();
        let time = |row: &ProbeResult| {
            let (cycles, done) =
                row.apps.first().map_or((0, 0), |app| (app.cycles, app.warp_instructions));
            cycles as f64 * (all as f64 / done.max(1) as f64).max(1.0)
        };
        rows.iter().map(time).collect()
    }

    /// Notes what has happened; true when the service is notified.
    fn take_events(&mut self, facts: &Facts, view: &View) -> bool {
        self.progress.note(facts, view);
        let ends = match view.wake {
            Wake::LastTaskStarted(app) => self.progress.of(app) == LaunchState::Draining,
            // It went without a last task: it was stopped.
            Wake::AppEnd(app) => self.assigned[app.index()].is_some(),
            _ => false,
        };
        for app in
            self.progress.with(&[LaunchState::Away, LaunchState::Waiting, LaunchState::Draining])
        {
            self.assigned[app.index()] = None;
        }
        ends || !self.progress.with(&[LaunchState::Waiting]).is_empty()
    }

    /// The service decides.
    fn allocate(&mut self, facts: &Facts, view: Option<&View>) {
        let sent = view.map_or(0, |view| view.now.saturating_sub(self.latency));
        let apps: Vec<AppId> = self.progress.known_at(sent);
        let candidate = |app: &AppId| {
            let left = self.progress.left(facts, view, *app);
            let times: Vec<f64> = self.times[app.index()].iter().map(|time| time * left).collect();
            Candidate::pruned(self.needs[app.index()], &times)
        };
        let candidates: Vec<Candidate> = apps.iter().map(candidate).collect();
        let chosen = greedy(cta_resources::of_sm(facts), &candidates);
        let mut words = Vec::new();
        for (place, &app) in apps.iter().enumerate() {
            let configuration = chosen.as_ref().map_or(0, |chosen| chosen[place]);
            let (ctas, time) = candidates[place].configurations[configuration];
            self.assigned[app.index()] = Some(ctas);
            self.progress.runs(app);
            let name = &facts.apps[app.index()].name;
            words.push(match candidates.len() {
                1 => format!("{ctas} of {name}"),
                _ => format!("{ctas} of {name} ({time:.0} cycles left)"),
            });
        }
        let how = if chosen.is_some() { "" } else { "one CTA of each does not fit: " };
        self.reason = match words.len() {
            0 => String::from("no application has a kernel to start"),
            _ => format!("{how}CTAs on every SM: {}", words.join(", ")),
        };
    }

    fn plan(&self, facts: &Facts, now: Cycle) -> Result<Plan, LawBroken> {
        let apps = active_apps::in_arrival_order(facts);
        let mut given = shares::on_each_sm(facts, &apps, |place, _| {
            self.assigned[apps[place].index()].unwrap_or(0)
        });
        for (share, assigned) in given.iter_mut().zip(&self.assigned) {
            if assigned.is_none() {
                *share = Share::Waiting;
            }
        }
        let mut wake = vec![WakeOn::LastTaskStarted, WakeOn::KernelEnd];
        wake.extend(self.due.map(WakeOn::At));
        let curve = |app: &AppId| {
            let times = &self.times[app.index()];
            let best = times.iter().copied().fold(f64::INFINITY, f64::min);
            Curve {
                app: *app,
                ipc: Vec::new(),
                normalized: times.iter().map(|time| Some(best / time)).collect(),
                chosen: self.assigned[app.index()].unwrap_or(0),
            }
        };
        let assigned = apps.iter().filter(|app| self.assigned[app.index()].is_some());
        Plan::new(
            facts,
            PlanDraft {
                shares: given,
                order: DispatchOrder::InOrder,
                workers: vec![Some(self.form.clone()); facts.apps.len()],
                delay: self.answered.saturating_sub(now),
                wake,
                reason: self.reason.clone(),
                curves: assigned.map(curve).collect(),
                ..PlanDraft::default()
            },
        )
    }
}

impl Scheme for Sim {
    fn probes(&self, facts: &Facts) -> Result<Vec<Probe>, LawBroken> {
        if facts.apps.len() < 2 {
            return Ok(Vec::new());
        }
        let probe = |app: AppId, ctas: u32| {
            let draft = PlanDraft {
                shares: shares::on_each_sm(facts, &[app], |_, _| ctas),
                workers: vec![Some(self.form.clone()); facts.apps.len()],
                reason: format!("alone with {ctas} CTAs on every SM"),
                ..PlanDraft::default()
            };
            let plan = Plan::new(facts, draft)?;
            Ok(Probe { apps: vec![app], plan, window: self.window, race: false })
        };
        let apps = facts.apps.iter().map(|app| app.app);
        let all = apps.flat_map(|app| (1..=self.fits(facts, app)).map(move |ctas| (app, ctas)));
        all.map(|(app, ctas)| probe(app, ctas)).collect()
    }

    fn start(&mut self, facts: &Facts, probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        let mut rest = probes;
        for app in facts.apps.iter().map(|app| app.app) {
            let own = if probes.is_empty() { 0 } else { to_usize(self.fits(facts, app)) };
            let (rows, more) = rest.split_at(own.min(rest.len()));
            self.times.push(self.profile(facts, app, rows));
            rest = more;
        }
        let need =
            |app: &gpumodel_core::contract::AppFacts| tenancy::need(facts, app.app, &self.form).0;
        self.needs = facts.apps.iter().map(need).collect();
        self.assigned = vec![None; facts.apps.len()];
        self.latency = facts.cycles_in(self.latency_us * 1e-6);
        let there = active_apps::at_start(facts);
        let now = there.first().map_or(0, |app| facts.apps[app.index()].arrival);
        self.progress = Progress::new(facts);
        if now > 0 || self.latency > 0 {
            let asks = if now > 0 { Vec::new() } else { there };
            asks.into_iter().for_each(|app| self.progress.asks(app));
            self.due = Some(now + self.latency);
            return self.plan(facts, 0);
        }
        there.into_iter().for_each(|app| self.progress.asks(app));
        self.allocate(facts, None);
        self.plan(facts, 0)
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        let reported = self.take_events(facts, view);
        self.reason = String::from("the service has not answered again");
        if reported && self.due.is_none() {
            self.due = Some(view.now + self.latency);
        }
        if self.due.is_some_and(|due| due <= view.now) && view.now >= self.answered {
            self.due = None;
            self.allocate(facts, Some(view));
            self.answered = view.now + self.latency;
            self.due = self.progress.first_request().map(|requested| requested + self.latency);
        }
        self.plan(facts, view.now)
    }
}
