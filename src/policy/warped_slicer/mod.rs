//! Warped-Slicer (Xu et al., ISCA 2016, section IV): samples how fast each kernel is with
//! each number of CTAs, then slices every SM so that the slowest is as fast as possible.
//!
//! Where the paper is silent: a kernel is identified by its application and name, and its
//! curve also serves its later launches. Later profiling phases warm up as long as the first
//! one, so that the CTAs of the plan before drain.

use std::collections::BTreeMap;

use gpumodel_core::contract::{
    Facts, KernelFacts, LawBroken, Plan, PlanDraft, Probe, ProbeResult, Share, View, Wake, WakeOn,
};
use gpumodel_core::units::{AppId, Cycle, to_u32, to_usize};

use super::parameter::Parameter;
use super::solve::{self, Amount, Demand, Split, Unsolved, float};
use super::spatial::Spatial;
use super::{Scheme, Settings, shares};
use profile::{KernelCurve, Profile, Subject};

mod profile;
#[cfg(test)]
mod tests;

/// The policy, with the curves that it has sampled.
#[derive(Clone, Debug)]
pub(super) struct WarpedSlicer {
    rules: Rules,
    curves: BTreeMap<(AppId, String), KernelCurve>,
    /// For each application its launches that run, or the last ones that did.
    running: Vec<Vec<usize>>,
    /// The current profiling phase.
    profile: Option<Profile>,
    /// Shares under the last plan outside profiling.
    held: Vec<Share>,
    /// When the plan of those shares takes effect.
    effect: Cycle,
    /// When the last profiling phase ended.
    sampled: Cycle,
}

impl WarpedSlicer {
    pub(super) fn make(settings: &Settings) -> Box<dyn Scheme> {
        Box::new(Self {
            rules: Rules::new(settings),
            curves: BTreeMap::new(),
            running: Vec::new(),
            profile: None,
            held: Vec::new(),
            effect: 0,
            sampled: 0,
        })
    }

    /// The launches of an application that run, the earliest first.
    fn kernels<'a>(&self, facts: &'a Facts, app: AppId) -> Vec<&'a KernelFacts> {
        let all = &facts.apps[app.index()].kernels;
        self.running[app.index()].iter().filter_map(|&index| all.get(index)).collect()
    }

    /// The key of an application's running kernel.
    fn key(&self, facts: &Facts, app: AppId) -> (AppId, String) {
        let kernels = self.kernels(facts, app);
        (app, kernels.first().map_or_else(String::new, |kernel| kernel.name.clone()))
    }

    /// The most that a CTA of an application takes.
    fn need(&self, facts: &Facts, app: AppId) -> Amount {
        shares::largest_cta(self.kernels(facts, app))
    }

    fn note_running(&mut self, view: &View) {
        for (slot, app) in self.running.iter_mut().zip(&view.apps) {
            if !app.running.is_empty() {
                slot.clone_from(&app.running);
            }
        }
    }

    /// The plan for these applications: a profiling phase when one of them has no curve.
    fn plan_for(&mut self, facts: &Facts, now: Cycle, active_apps: Vec<AppId>) -> PlanDraft {
        if let [app] = active_apps[..] {
            let draft = whole_machine(facts, app);
            self.held.clone_from(&draft.shares);
            return draft;
        }
        let unknown = |app: &&AppId| !self.curves.contains_key(&self.key(facts, **app));
        let subject = |&app: &AppId| {
            let most = self.kernels(facts, app).first().map_or(1, |kernel| kernel.ctas_per_sm);
            Subject { app, most }
        };
        let subjects: Vec<Subject> = active_apps.iter().filter(unknown).map(subject).collect();
        if !subjects.is_empty() {
            let profile = Profile::new(facts, subjects, active_apps, now, &self.rules);
            let draft = profile.draft(facts, &self.held);
            self.profile = Some(profile);
            return draft;
        }
        let mut draft = self.partition(facts, &active_apps);
        if draft.shares != self.held {
            self.effect = now.saturating_add(self.rules.delay);
            self.held.clone_from(&draft.shares);
        }
        // Another decision meanwhile does not bring the same plan forward.
        draft.delay = self.effect.saturating_sub(now);
        draft
    }

    fn partition(&self, facts: &Facts, active_apps: &[AppId]) -> PlanDraft {
        let kernel = |&app: &AppId| {
            let curve = self.curves.get(&self.key(facts, app)).expect("all are sampled");
            Kernel { app, need: self.need(facts, app), curve }
        };
        let kernels: Vec<Kernel<'_>> = active_apps.iter().map(kernel).collect();
        draft(facts, &self.rules, &kernels)
    }

    /// Keeps the curves of a profiling phase. A kernel without samples has an empty curve:
    /// otherwise it would be sampled forever.
    fn learn(&mut self, facts: &Facts, profile: &Profile, now: Cycle) {
        let mut curves = profile::curves(&profile.samplings, self.rules.scaling);
        for app in profile.apps() {
            let curve = curves.remove(&app).unwrap_or_default();
            self.curves.insert(self.key(facts, app), curve);
        }
        self.sampled = now;
    }

    /// Whether a change of IPC makes the scheme sample the kernel again; not at the end of its
    /// grid, where no CTAs are left to sample.
    fn resamples(&self, view: &View, app: AppId) -> bool {
        let rested = view.now >= self.sampled.saturating_add(self.rules.rest);
        rested && !self.rules.offline && view.apps[app.index()].ctas_left > 0
    }

    /// Curves of solo runs, one for all kernels of an application.
    fn learn_offline(&mut self, facts: &Facts, probes: &[ProbeResult]) {
        let mut results = probes.iter();
        for app in shares::in_arrival_order(facts) {
            let kernels = &facts.apps[app.index()].kernels;
            let ipc = results.by_ref().take(counts(kernels)).map(|result| speed(facts, result));
            let curve = KernelCurve::unscaled(ipc.collect());
            for kernel in kernels {
                self.curves.insert((app, kernel.name.clone()), curve.clone());
            }
        }
    }
}

/// The most CTAs that an SM holds of any launch.
fn counts(kernels: &[KernelFacts]) -> usize {
    to_usize(kernels.iter().map(|kernel| kernel.ctas_per_sm).max().unwrap_or(0))
}

/// Warp instructions per cycle and SM of a solo run.
fn speed(facts: &Facts, result: &ProbeResult) -> Option<f64> {
    let sm_cycles = float(result.cycles.max(1)) * f64::from(facts.sms);
    result.apps.first().map(|app| float(app.warp_instructions) / sm_cycles)
}

impl Scheme for WarpedSlicer {
    fn probes(&self, facts: &Facts) -> Result<Vec<Probe>, LawBroken> {
        let mut probes = Vec::new();
        if !self.rules.offline || facts.apps.len() < 2 {
            return Ok(probes);
        }
        for app in shares::in_arrival_order(facts) {
            for count in (1..).take(counts(&facts.apps[app.index()].kernels)) {
                let shares = shares::on_each_sm(facts, &[app], |_, _| count);
                let reason = format!("{count} CTAs on every SM, alone");
                let draft = PlanDraft { shares, reason, ..PlanDraft::default() };
                probes.push(shares::solo_probe(facts, app, None, draft)?);
            }
        }
        Ok(probes)
    }

    fn start(&mut self, facts: &Facts, probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        self.running = vec![vec![0]; facts.apps.len()];
        if self.rules.offline {
            self.learn_offline(facts, probes);
        }
        let draft = self.plan_for(facts, 0, shares::apps_at_start(facts));
        Plan::new(facts, draft)
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        self.note_running(view);
        let active_apps = shares::active_apps(facts, view);
        if let Some(mut profile) = self.profile.take() {
            if profile.active_apps() == active_apps {
                if !profile.advance(facts, view, &self.rules) {
                    let draft = profile.draft(facts, &self.held);
                    self.profile = Some(profile);
                    return Plan::new(facts, draft);
                }
                self.learn(facts, &profile, view.now);
            }
        } else if let Wake::IpcShift(app) = view.wake
            && self.resamples(view, app)
        {
            self.curves.remove(&self.key(facts, app));
        }
        let draft = self.plan_for(facts, view.now, active_apps);
        Plan::new(facts, draft)
    }
}

/// The parameters, with the paper's values where it has one.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::whole("warmup", 20_000, 0..=1_000_000_000)
        .does("cycles before the first sampling of a phase (section V.A: 20 K)"),
    Parameter::whole("settle", 5000, 0..=1_000_000_000)
        .does("cycles before further samplings of a phase, when counts outnumber SMs (assumed)"),
    Parameter::whole("window", 5000, 1..=1_000_000_000)
        .does("cycles of a sampling (section V.A: 5 K)"),
    Parameter::whole("delay", 0, 0..=1_000_000_000)
        .does("cycles that the algorithm takes; the old plan runs on (section V.H adds 1 to 10 K)"),
    Parameter::word("threshold_on", "performance", &["loss", "performance"])
        .does("what factor / K limits: the loss of the slowest as printed, or its performance"),
    Parameter::real("factor", 1.2, 0.0..=100.0).does(
        "SMs are divided instead where the slowest of K breaks factor / K (section IV: 120 %)",
    ),
    Parameter::word("scaling", "inverse", &["printed", "inverse", "off"])
        .does("psi of eq. 3: CTA_i / CTA_avg - 1 as eq. 4 prints it, CTA_avg / CTA_i - 1, or 0"),
    Parameter::word("phi", "blocked", &["blocked", "latency"]).does(
        "phi of eq. 3: slots lost to memory latency, or also those of a load/store unit that memory blocks",
    ),
    Parameter::word("solver", "water-filling", &["water-filling", "exact"])
        .does("Algorithm 1, or the integer program of eq. 1"),
    Parameter::word("profile", "online", &["online", "offline"])
        .does("samples while running, or runs of each alone beforehand (section IV: full runs)"),
    Parameter::real("ipc_shift", 0.5, 0.0..=100.0).does(
        "change of IPC over a window after which a kernel is sampled again; 0: never (assumed)",
    ),
    Parameter::whole("rest", 100_000, 0..=1_000_000_000_000)
        .does("cycles after a sampling before a change of IPC asks for another (assumed)"),
];

/// How samples are scaled for the bandwidth that SMs share: psi of eq. 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scaling {
    /// `CTA_i / CTA_avg - 1`: eq. 4 as printed.
    Printed,
    /// `CTA_avg / CTA_i - 1`: what eq. 3 gives when SMs get bandwidth in proportion
    /// to their CTAs while sampled, and alike when all hold as many.
    Inverse,
    /// Not at all.
    Off,
}

impl Scaling {
    /// The factor of eq. 3 for an SM with `ctas` where the mean is `mean`, of whose
    /// slots `memory_stalls` waited for memory.
    fn factor(self, ctas: u32, mean: f64, memory_stalls: f64) -> f64 {
        let psi = match self {
            Self::Printed => f64::from(ctas) / mean - 1.0,
            Self::Inverse => mean / f64::from(ctas) - 1.0,
            Self::Off => 0.0,
        };
        1.0 + memory_stalls.clamp(0.0, 1.0) * psi
    }
}

/// The settings of a run.
#[derive(Clone, Debug)]
struct Rules {
    warmup: Cycle,
    settle: Cycle,
    window: Cycle,
    delay: Cycle,
    /// `factor / K` limits the loss of the slowest, else its performance.
    limits_loss: bool,
    factor: f64,
    scaling: Scaling,
    /// Slots of a load/store unit that memory blocks count as lost to memory.
    blocked: bool,
    exact: bool,
    offline: bool,
    ipc_shift: f64,
    rest: Cycle,
}

impl Rules {
    fn new(settings: &Settings) -> Self {
        let scaling = match settings.word("scaling") {
            "printed" => Scaling::Printed,
            "inverse" => Scaling::Inverse,
            _ => Scaling::Off,
        };
        Self {
            warmup: settings.whole("warmup"),
            settle: settings.whole("settle"),
            window: settings.whole("window"),
            delay: settings.whole("delay"),
            limits_loss: settings.word("threshold_on") == "loss",
            factor: settings.real("factor"),
            scaling,
            blocked: settings.word("phi") == "blocked",
            exact: settings.word("solver") == "exact",
            offline: settings.word("profile") == "offline",
            ipc_shift: settings.real("ipc_shift"),
            rest: settings.whole("rest"),
        }
    }

    /// The performance below which the slowest of `kernels` may not fall.
    fn least_performance(&self, kernels: u32) -> f64 {
        let limit = self.factor / f64::from(kernels);
        if self.limits_loss { 1.0 - limit } else { limit }
    }

    /// The events at which a plan from samples is revised.
    fn wake(&self) -> Vec<WakeOn> {
        let mut wake = vec![WakeOn::KernelBegin, WakeOn::KernelEnd];
        if self.ipc_shift > 0.0 && !self.offline {
            wake.push(WakeOn::IpcShift { fraction: self.ipc_shift, sustained: self.window });
        }
        wake
    }
}

/// The running kernel of an application.
struct Kernel<'a> {
    app: AppId,
    /// What a CTA of it takes.
    need: Amount,
    curve: &'a KernelCurve,
}

/// The plan for these kernels, in arrival order.
fn draft(facts: &Facts, rules: &Rules, kernels: &[Kernel<'_>]) -> PlanDraft {
    let split = split(facts, rules, kernels);
    let ctas = split.as_ref().map_or_else(|_| vec![0; kernels.len()], |split| split.ctas.clone());
    let each = kernels.iter().zip(&ctas);
    let curves = each.map(|(kernel, &ctas)| kernel.curve.of_plan(kernel.app, ctas)).collect();
    let apps: Vec<AppId> = kernels.iter().map(|kernel| kernel.app).collect();
    let draft = match split {
        Ok(split) => {
            let needs: Vec<Amount> = kernels.iter().map(|kernel| kernel.need).collect();
            let reason = format!(
                "{}; the slowest keeps {:.0} % of its best",
                shares::cta_words(facts, &apps, &ctas),
                100.0 * split.minimum()
            );
            PlanDraft { reason, ..shares::sliced_draft(facts, &apps, &ctas, &needs) }
        }
        Err(why) => {
            let spatial = Spatial::draft(facts, &apps);
            let reason = format!("{why}: {}", spatial.reason);
            PlanDraft { reason, ..spatial }
        }
    };
    PlanDraft { curves, wake: rules.wake(), ..draft }
}

/// The whole machine for the only active application.
fn whole_machine(facts: &Facts, app: AppId) -> PlanDraft {
    let reason = format!("{} is alone", facts.apps[app.index()].name);
    PlanDraft { shares: shares::everything(facts, &[app]), reason, ..PlanDraft::default() }
}

/// The split of an SM, or in words why SMs are not shared.
fn split(facts: &Facts, rules: &Rules, kernels: &[Kernel<'_>]) -> Result<Split, String> {
    let mut demands = Vec::with_capacity(kernels.len());
    for &Kernel { app, need, curve } in kernels {
        let nothing = || format!("{} has no samples", facts.apps[app.index()].name);
        demands.push(Demand { need, curve: curve.of_solver().ok_or_else(nothing)? });
    }
    let total = shares::sm_resources(facts);
    let solved: Result<Split, Unsolved> = if rules.exact {
        solve::exact(total, &demands)
    } else {
        solve::water_filling(total, &demands).map(|filling| filling.split)
    };
    let split = solved.map_err(|unsolved| unsolved.to_string())?;
    let (minimum, least) = (split.minimum(), rules.least_performance(to_u32(kernels.len())));
    if minimum < least {
        return Err(format!(
            "on shared SMs the slowest would keep {:.0} % of its best, less than {:.0} %",
            100.0 * minimum,
            100.0 * least
        ));
    }
    Ok(split)
}
