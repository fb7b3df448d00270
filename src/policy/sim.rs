//! Persistent workers whose number a host service adapts.

use gpumodel_core::contract::{
    AppFacts, Curve, DispatchOrder, Facts, KernelFacts, LawBroken, Persistent, Plan, PlanDraft,
    Probe, ProbeResult, View, Wake, WakeOn,
};
use gpumodel_core::units::{AppId, Cycle, to_u16, to_usize};

use super::pt::{self, INSTRUCTIONS, LEADER, REGISTERS, SHARED, TASK};
use super::solve::{Amount, Candidate, float, greedy};
use super::{Parameter, Scheme, Settings, shares};

/// What a user may set.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::real("latency_us", 10.0, 0.0..=1e6)
        .does("microseconds that a message takes, from and to the service (assumed)"),
    Parameter::whole("window", 200_000, 0..=u64::MAX)
        .does("cycles of each profiling run, extrapolated; 0: to the end (assumed)"),
    TASK,
    REGISTERS,
    SHARED,
    INSTRUCTIONS,
    LEADER,
];

/// Adaptive simultaneous multi-tenancy (ARCS 2018, section 3). Applications send a request
/// to a service on the host before they launch a kernel and report when its last task has
/// started. A message takes `latency_us`; the service handles all that arrive meanwhile at
/// once. It reads how far all applications are, estimates the time left of each with 1, 2,
/// ... CTAs per SM (eq. 1, from solo runs), chooses by Algorithm 1 and answers: kernels
/// with too many workers lose some at the end of their tasks, those with too few launch
/// another instance. Where not even one CTA of each fits, all have one.
///
/// All launches of an application have one profile. An application alone in the run is not
/// profiled and has the workers that fit.
#[derive(Clone, Debug)]
pub(super) struct Sim {
    latency_us: f64,
    window: Option<Cycle>,
    form: Persistent,
    latency: Cycle,
    /// By application: cycles of its solo run with 1, 2, ... CTAs per SM.
    times: Vec<Vec<f64>>,
    needs: Vec<Amount>,
    progress: Progress,
    /// CTAs per SM in the last answer to each application.
    assigned: Vec<Option<u32>>,
    /// When the service begins to handle the messages that it has.
    due: Option<Cycle>,
    /// When its last answers arrive.
    answered: Cycle,
    reason: String,
}

impl Sim {
    pub(super) fn make(settings: &Settings) -> Box<dyn Scheme> {
        Box::new(Self {
            latency_us: settings.real("latency_us"),
            window: settings.window("window"),
            form: pt::form(settings),
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

    /// Workers that an SM holds; at least one, which the machine refuses where it does not fit.
    fn fits(&self, facts: &Facts, app: AppId) -> u32 {
        pt::need(facts, app, &self.form).1.max(1)
    }

    /// Cycles of an application's solo run with 1, 2, ... CTAs per SM.
    fn profile(&self, facts: &Facts, app: AppId, rows: &[ProbeResult]) -> Vec<f64> {
        if rows.is_empty() {
            return (1..=self.fits(facts, app)).map(|ctas| 1.0 / f64::from(ctas)).collect();
        }
        let kernels = &facts.apps[app.index()].kernels;
        let all: u64 = kernels.iter().map(|kernel| kernel.warp_instructions).sum();
        let time = |row: &ProbeResult| {
            let (cycles, done) =
                row.apps.first().map_or((0, 0), |app| (app.cycles, app.warp_instructions));
            float(cycles) * (float(all) / float(done.max(1))).max(1.0)
        };
        rows.iter().map(time).collect()
    }

    /// Notes what has happened; true when the service is notified.
    fn take_events(&mut self, facts: &Facts, view: &View) -> bool {
        self.progress.update(facts, view);
        let ends = match view.wake {
            Wake::LastTaskStarted(app) => self.progress.of(app) == LaunchState::Draining,
            // It ended without a last task: it was stopped.
            Wake::AppEnd(app) => self.assigned[app.index()].is_some(),
            Wake::At(_)
            | Wake::Arrival(_)
            | Wake::KernelBegin(_)
            | Wake::KernelEnd(_)
            | Wake::CtaDrained(_)
            | Wake::IpcShift(_) => false,
        };
        let idle = [LaunchState::Inactive, LaunchState::Waiting, LaunchState::Draining];
        for app in self.progress.apps_in(&idle) {
            self.assigned[app.index()] = None;
        }
        ends || !self.progress.apps_in(&[LaunchState::Waiting]).is_empty()
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
        let chosen = greedy(shares::sm_resources(facts), &candidates);
        let mut words = Vec::new();
        for (place, &app) in apps.iter().enumerate() {
            let configuration = chosen.as_ref().map_or(0, |chosen| chosen[place]);
            let (ctas, time) = candidates[place].configurations[configuration];
            self.assigned[app.index()] = Some(ctas);
            self.progress.set(app, LaunchState::Running);
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
        let mut apps = shares::in_arrival_order(facts);
        apps.retain(|app| self.assigned[app.index()].is_some());
        let ctas = |app: AppId| self.assigned[app.index()].unwrap_or(0);
        let mut wake = vec![WakeOn::LastTaskStarted, WakeOn::KernelEnd];
        wake.extend(self.due.map(WakeOn::At));
        let curve = |&app: &AppId| {
            let times = &self.times[app.index()];
            let best = times.iter().copied().fold(f64::INFINITY, f64::min);
            Curve {
                app,
                ipc: Vec::new(),
                normalized: times.iter().map(|time| Some(best / time)).collect(),
                chosen: ctas(app),
            }
        };
        Plan::new(
            facts,
            PlanDraft {
                shares: shares::on_each_sm(facts, &apps, |place, _| ctas(apps[place])),
                order: DispatchOrder::InOrder,
                workers: vec![Some(self.form.clone()); facts.apps.len()],
                delay: self.answered.saturating_sub(now),
                wake,
                reason: self.reason.clone(),
                curves: apps.iter().map(curve).collect(),
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
            shares::solo_probe(facts, app, self.window, draft)
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
        let need = |app: &AppFacts| pt::need(facts, app.app, &self.form).0;
        self.needs = facts.apps.iter().map(need).collect();
        self.assigned = vec![None; facts.apps.len()];
        self.latency = facts.cycles_in(self.latency_us * 1e-6);
        let first = shares::apps_at_start(facts);
        let now = first.first().map_or(0, |app| facts.apps[app.index()].arrival);
        self.progress = Progress::new(facts);
        if now == 0 {
            first.into_iter().for_each(|app| self.progress.set(app, LaunchState::Waiting));
        }
        if now > 0 || self.latency > 0 {
            self.due = Some(now + self.latency);
        } else {
            self.allocate(facts, None);
        }
        self.plan(facts, 0)
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        let notified = self.take_events(facts, view);
        self.reason = String::from("the service has not answered again");
        if notified && self.due.is_none() {
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

/// The state of an application that sends a request before each launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LaunchState {
    /// It has not arrived, or has ended.
    #[default]
    Inactive,
    /// It has sent a request to launch a kernel.
    Waiting,
    /// Its kernel runs, or may.
    Running,
    /// The last task of its kernel has started.
    Draining,
}

/// The progress of all applications, each by its place in the facts.
#[derive(Clone, Debug, Default)]
struct Progress {
    state: Vec<LaunchState>,
    /// Launches of each that have ended.
    ended: Vec<usize>,
    /// The cycle of each one's last request.
    requested: Vec<Cycle>,
}

impl Progress {
    fn new(facts: &Facts) -> Self {
        let apps = facts.apps.len();
        Self {
            state: vec![LaunchState::Inactive; apps],
            ended: vec![0; apps],
            requested: vec![0; apps],
        }
    }

    fn of(&self, app: AppId) -> LaunchState {
        self.state[app.index()]
    }

    fn set(&mut self, app: AppId, state: LaunchState) {
        self.state[app.index()] = state;
    }

    /// The applications that run, and those whose request was sent by `cycle`.
    fn known_at(&self, cycle: Cycle) -> Vec<AppId> {
        let mut apps = self.apps_in(&[LaunchState::Waiting, LaunchState::Running]);
        apps.retain(|app| {
            self.of(*app) == LaunchState::Running || self.requested[app.index()] <= cycle
        });
        apps
    }

    /// The cycle of the earliest request that waits.
    fn first_request(&self) -> Option<Cycle> {
        let waiting = self.apps_in(&[LaunchState::Waiting]);
        waiting.into_iter().map(|app| self.requested[app.index()]).min()
    }

    /// The applications in one of these states, by their ids.
    fn apps_in(&self, states: &[LaunchState]) -> Vec<AppId> {
        let apps = self.state.iter().enumerate();
        let found = apps.filter(|(_, state)| states.contains(state));
        found.map(|(app, _)| AppId(to_u16(app))).collect()
    }

    /// Notes what has happened.
    fn update(&mut self, facts: &Facts, view: &View) {
        let before = self.state.clone();
        self.take_wake(facts, view);
        for (place, seen) in view.apps.iter().enumerate() {
            let state = &mut self.state[place];
            if !seen.active {
                *state = LaunchState::Inactive;
            } else if *state == LaunchState::Inactive {
                *state = LaunchState::Waiting;
            }
            if *state == LaunchState::Waiting && before[place] != LaunchState::Waiting {
                self.requested[place] = view.now;
            }
        }
    }

    fn take_wake(&mut self, facts: &Facts, view: &View) {
        match view.wake {
            Wake::Arrival(app) => self.set(app, LaunchState::Waiting),
            Wake::LastTaskStarted(app) => {
                // Another launch of the application may still have tasks.
                if view.apps[app.index()].ctas_left == 0 {
                    self.set(app, LaunchState::Draining);
                }
            }
            Wake::KernelEnd(app) => {
                let place = app.index();
                // An application that is repeated begins with its first launch.
                let launches = facts.apps[place].kernels.len().max(1);
                self.ended[place] = (self.ended[place] + 1) % launches;
                if view.apps[place].running.is_empty() {
                    self.set(app, LaunchState::Waiting);
                }
            }
            Wake::At(_)
            | Wake::KernelBegin(_)
            | Wake::AppEnd(_)
            | Wake::CtaDrained(_)
            | Wake::IpcShift(_) => {}
        }
    }

    /// The part of an application's work that is left; of launches that run, the blocks that
    /// no worker has taken.
    fn left(&self, facts: &Facts, view: Option<&View>, app: AppId) -> f64 {
        let kernels = &facts.apps[app.index()].kernels;
        let weight = |kernel: &KernelFacts| float(kernel.warp_instructions);
        let all: f64 = kernels.iter().map(weight).sum();
        let open: f64 = kernels.iter().skip(self.ended[app.index()]).map(weight).sum();
        let begun = view.map_or(0.0, |view| {
            let seen = &view.apps[app.index()];
            let running = || seen.running.iter().filter_map(|&place| kernels.get(place));
            let ctas: u64 = running().map(|kernel| kernel.ctas).sum();
            let taken = ctas - seen.ctas_left.min(ctas);
            running().map(weight).sum::<f64>() * float(taken) / float(ctas.max(1))
        });
        if all > 0.0 { ((open - begun) / all).clamp(0.0, 1.0) } else { 1.0 }
    }
}
