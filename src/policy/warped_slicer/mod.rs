//! Warped-Slicer (Xu et al., ISCA 2016, section IV): samples how fast each kernel
//! is with each number of CTAs, then slices every SM so that the slowest is as fast
//! as can be.
//!
//! Where the paper leaves room: a kernel is known by its application and name, and
//! what is known of it serves its later launches too. Profiling phases after the
//! first one warm up as long as that, for the CTAs of the plan before to drain.

use std::collections::BTreeMap;

use gpumodel_core::contract::{
    self, Facts, KernelFacts, LawBroken, Plan, PlanDraft, Probe, ProbeResult, Share, View, Wake,
    WakeOn,
};
use gpumodel_core::units::{AppId, Cycle, to_u32};

use super::parameter::Parameter;
use super::solve::{self, Amount, Demand, Split, Unsolved};
use super::spatial::Spatial;
use super::{Scheme, Settings, shares};
use profile::{Known, Profile, Progress, Subject};

mod profile;
#[cfg(test)]
mod tests;

/// The policy, with all that it has learned.
#[derive(Clone, Debug)]
pub(super) struct WarpedSlicer {
    rules: Rules,
    known: BTreeMap<(AppId, String), Known>,
    /// For each application its launches that run, or the last ones that did.
    running: Vec<Vec<usize>>,
    /// The profiling phase that goes on.
    profile: Option<Profile>,
    /// Shares under the last plan that was no profiling.
    held: Vec<Share>,
    /// When the plan of those shares takes effect.
    settled: Cycle,
    /// When the last profiling phase ended.
    sampled: Cycle,
}

impl WarpedSlicer {
    pub(super) fn make(settings: &Settings) -> Box<dyn Scheme> {
        Box::new(Self {
            rules: Rules::new(settings),
            known: BTreeMap::new(),
            running: Vec::new(),
            profile: None,
            held: Vec::new(),
            settled: 0,
            sampled: 0,
        })
    }

    /// The launches of an application that run: first the one that began first.
    fn kernels<'a>(&self, facts: &'a Facts, app: AppId) -> Vec<&'a KernelFacts> {
        let all = &facts.apps[app.index()].kernels;
        self.running[app.index()].iter().filter_map(|&index| all.get(index)).collect()
    }

    /// Under which name an application's running kernel is known.
    fn key(&self, facts: &Facts, app: AppId) -> (AppId, String) {
        let kernels = self.kernels(facts, app);
        (app, kernels.first().map_or_else(String::new, |kernel| kernel.name.clone()))
    }

    /// What a CTA of an application takes at most.
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

    /// The plan for those present: a profiling phase when one of them is unknown.
    fn consider(&mut self, facts: &Facts, now: Cycle, active_apps: Vec<AppId>) -> PlanDraft {
        if let [app] = active_apps[..] {
            let draft = alone(facts, app);
            self.held.clone_from(&draft.shares);
            return draft;
        }
        let unknown = |app: &&AppId| !self.known.contains_key(&self.key(facts, **app));
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
            self.settled = now.saturating_add(self.rules.delay);
            self.held.clone_from(&draft.shares);
        }
        // Found again meanwhile, it is not there any sooner.
        draft.delay = self.settled.saturating_sub(now);
        draft
    }

    fn partition(&self, facts: &Facts, active_apps: &[AppId]) -> PlanDraft {
        let party = |&app: &AppId| {
            let known = self.known.get(&self.key(facts, app)).expect("all present are known");
            Party { app, need: self.need(facts, app), known }
        };
        let parties: Vec<Party<'_>> = active_apps.iter().map(party).collect();
        draft(facts, &self.rules, &parties)
    }

    /// Keeps what a profiling phase has found. A kernel of which it saw nothing is
    /// known too, as one of which nothing is known: else it would be sampled forever.
    fn learn(&mut self, facts: &Facts, profile: &Profile, now: Cycle) {
        let mut curves = profile::curves(&profile.samplings, self.rules.scaling);
        for app in profile.apps() {
            let known = curves.remove(&app).unwrap_or_default();
            self.known.insert(self.key(facts, app), known);
        }
        self.sampled = now;
    }

    /// Is a change of IPC a reason to sample the kernel again? Not at the end of its
    /// grid, where there are no CTAs to sample.
    fn doubts(&self, view: &View, app: AppId) -> bool {
        let rested = view.now >= self.sampled.saturating_add(self.rules.rest);
        rested && !self.rules.offline && view.apps[app.index()].ctas_left > 0
    }

    /// Curves of runs alone, for every kernel of an application alike.
    fn learn_offline(&mut self, facts: &Facts, probes: &[ProbeResult]) {
        let mut results = probes.iter();
        for app in shares::in_arrival_order(facts) {
            let kernels = &facts.apps[app.index()].kernels;
            let ipc = results.by_ref().take(counts(kernels)).map(|result| speed(facts, result));
            let known = Known::plain(ipc.collect());
            for kernel in kernels {
                self.known.insert((app, kernel.name.clone()), known.clone());
            }
        }
    }
}

/// CTAs that an SM holds of any launch.
fn counts(kernels: &[KernelFacts]) -> usize {
    let most = kernels.iter().map(|kernel| kernel.ctas_per_sm).max().unwrap_or(0);
    usize::try_from(most).expect("an SM holds few CTAs")
}

/// Warp instructions per cycle and SM of a run alone.
fn speed(facts: &Facts, result: &ProbeResult) -> Option<f64> {
    #[allow(clippy::cast_precision_loss, reason = "runs are below 2^53 cycles")]
    let sm_cycles = result.cycles.max(1) as f64 * f64::from(facts.sms);
    #[allow(clippy::cast_precision_loss, reason = "runs are below 2^53 instructions")]
    let speed = |app: &gpumodel_core::contract::ProbeApp| app.warp_instructions as f64 / sm_cycles;
    result.apps.first().map(speed)
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
                let plan = Plan::new(facts, PlanDraft { shares, reason, ..PlanDraft::default() })?;
                probes.push(Probe { apps: vec![app], plan, window: None, race: false });
            }
        }
        Ok(probes)
    }

    fn start(&mut self, facts: &Facts, probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        self.running = vec![vec![0]; facts.apps.len()];
        if self.rules.offline {
            self.learn_offline(facts, probes);
        }
        let draft = self.consider(facts, 0, shares::apps_at_start(facts));
        Plan::new(facts, draft)
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        self.note_running(view);
        let active_apps = shares::active_apps(facts, view);
        if let Some(mut profile) = self.profile.take() {
            if profile.active_apps() == active_apps {
                if profile.advance(facts, view, &self.rules) == Progress::More {
                    let draft = profile.draft(facts, &self.held);
                    self.profile = Some(profile);
                    return Plan::new(facts, draft);
                }
                self.learn(facts, &profile, view.now);
            }
        } else if let Wake::IpcShift(app) = view.wake
            && self.doubts(view, app)
        {
            self.known.remove(&self.key(facts, app));
        }
        let draft = self.consider(facts, view.now, active_apps);
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
    Parameter::word("scaling", "printed", &["printed", "inverse", "off"])
        .does("psi of eq. 3: CTA_i / CTA_avg - 1 as eq. 4 prints it, CTA_avg / CTA_i - 1, or 0"),
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

/// What `factor / K` limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Threshold {
    Loss,
    Performance,
}

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
    threshold_on: Threshold,
    factor: f64,
    scaling: Scaling,
    exact: bool,
    offline: bool,
    ipc_shift: f64,
    rest: Cycle,
}

impl Rules {
    fn new(settings: &Settings) -> Self {
        let threshold_on = match settings.word("threshold_on") {
            "loss" => Threshold::Loss,
            _ => Threshold::Performance,
        };
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
            threshold_on,
            factor: settings.real("factor"),
            scaling,
            exact: settings.word("solver") == "exact",
            offline: settings.word("profile") == "offline",
            ipc_shift: settings.real("ipc_shift"),
            rest: settings.whole("rest"),
        }
    }

    /// The performance below which the slowest of `kernels` may not fall.
    fn least_performance(&self, kernels: u32) -> f64 {
        let limit = self.factor / f64::from(kernels);
        match self.threshold_on {
            Threshold::Loss => 1.0 - limit,
            Threshold::Performance => limit,
        }
    }

    /// When a plan that came of samples is thought over.
    fn wake(&self) -> Vec<WakeOn> {
        let mut wake = vec![WakeOn::KernelBegin, WakeOn::KernelEnd];
        if self.ipc_shift > 0.0 && !self.offline {
            wake.push(WakeOn::IpcShift { fraction: self.ipc_shift, sustained: self.window });
        }
        wake
    }
}

/// One of those that share.
struct Party<'a> {
    app: AppId,
    /// What a CTA of it takes.
    need: Amount,
    /// What is known of its kernel.
    known: &'a Known,
}

/// The plan for `parties`, in arrival order.
fn draft(facts: &Facts, rules: &Rules, parties: &[Party<'_>]) -> PlanDraft {
    let split = split(facts, rules, parties);
    let ctas = split.as_ref().map_or_else(|_| vec![0; parties.len()], |split| split.ctas.clone());
    let curves = evidence(parties, &ctas);
    let apps: Vec<AppId> = parties.iter().map(|party| party.app).collect();
    let draft = match split {
        Ok(split) => {
            let needs: Vec<Amount> = parties.iter().map(|party| party.need).collect();
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

/// The whole machine for who is alone.
fn alone(facts: &Facts, app: AppId) -> PlanDraft {
    let reason = format!("{} is alone", facts.apps[app.index()].name);
    PlanDraft { shares: shares::everything(facts, &[app]), reason, ..PlanDraft::default() }
}

fn evidence(parties: &[Party<'_>], ctas: &[u32]) -> Vec<contract::Curve> {
    let each = parties.iter().zip(ctas);
    each.map(|(party, &chosen)| party.known.evidence(party.app, chosen)).collect()
}

/// The split of an SM, or in words why SMs are not shared.
fn split(facts: &Facts, rules: &Rules, parties: &[Party<'_>]) -> Result<Split, String> {
    let mut demands = Vec::with_capacity(parties.len());
    for &Party { app, need, known } in parties {
        let nothing = || format!("nothing is known of {}", facts.apps[app.index()].name);
        demands.push(Demand { need, curve: known.curve().ok_or_else(nothing)? });
    }
    let total = shares::sm_resources(facts);
    let solved: Result<Split, Unsolved> = if rules.exact {
        solve::exact(total, &demands)
    } else {
        solve::water_filling(total, &demands).map(|filling| filling.split)
    };
    let split = solved.map_err(|unsolved| unsolved.to_string())?;
    let (minimum, least) = (split.minimum(), rules.least_performance(to_u32(parties.len())));
    if minimum < least {
        return Err(format!(
            "on shared SMs the slowest would keep {:.0} % of its best, less than {:.0} %",
            100.0 * minimum,
            100.0 * least
        ));
    }
    Ok(split)
}
