//! Warped-Slicer (Xu et al., ISCA 2016, section IV): samples how fast each kernel
//! is with each number of CTAs, then slices every SM so that the slowest is as fast
//! as can be.
//!
//! Where the paper leaves room: a kernel is known by its application and name, and
//! what is known of it serves its later launches too. Profiling phases after the
//! first one warm up as long as that, for the CTAs of the plan before to drain.

mod partition;
mod profile;
mod rules;
mod samples;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use gpumodel_core::contract::{
    Facts, KernelFacts, LawBroken, Plan, PlanDraft, Probe, ProbeResult, Share, View, Wake,
};
use gpumodel_core::units::{AppId, Cycle};

use super::solve::Amount;
use super::{Scheme, Settings, present, room, shares};
use partition::Party;
use profile::{Profile, Progress, Subject};
use rules::Rules;
use samples::Known;

pub(super) use rules::PARAMETERS;

/// The policy, with all that it has learned.
#[derive(Clone, Debug)]
pub struct WarpedSlicer {
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
        room::of_any(self.kernels(facts, app))
    }

    fn note_running(&mut self, view: &View) {
        for (slot, app) in self.running.iter_mut().zip(&view.apps) {
            if !app.running.is_empty() {
                slot.clone_from(&app.running);
            }
        }
    }

    /// The plan for those present: a profiling phase when one of them is unknown.
    fn consider(&mut self, facts: &Facts, now: Cycle, present: Vec<AppId>) -> PlanDraft {
        if let [app] = present[..] {
            let draft = partition::alone(facts, app);
            self.held.clone_from(&draft.shares);
            return draft;
        }
        let unknown = |app: &&AppId| !self.known.contains_key(&self.key(facts, **app));
        let subject = |&app: &AppId| {
            let most = self.kernels(facts, app).first().map_or(1, |kernel| kernel.ctas_per_sm);
            Subject { app, most }
        };
        let subjects: Vec<Subject> = present.iter().filter(unknown).map(subject).collect();
        if !subjects.is_empty() {
            let profile = Profile::new(facts, subjects, present, now, &self.rules);
            let draft = profile.draft(facts, &self.held);
            self.profile = Some(profile);
            return draft;
        }
        let mut draft = self.partition(facts, &present);
        if draft.shares != self.held {
            self.settled = now.saturating_add(self.rules.delay);
            self.held.clone_from(&draft.shares);
        }
        // Found again meanwhile, it is not there any sooner.
        draft.delay = self.settled.saturating_sub(now);
        draft
    }

    fn partition(&self, facts: &Facts, present: &[AppId]) -> PlanDraft {
        let party = |&app: &AppId| {
            let known = self.known.get(&self.key(facts, app)).expect("all present are known");
            Party { app, need: self.need(facts, app), known }
        };
        let parties: Vec<Party<'_>> = present.iter().map(party).collect();
        partition::draft(facts, &self.rules, &parties)
    }

    /// Keeps what a profiling phase has found. A kernel of which it saw nothing is
    /// known too, as one of which nothing is known: else it would be sampled forever.
    fn learn(&mut self, facts: &Facts, profile: &Profile, now: Cycle) {
        let mut curves = samples::curves(&profile.samplings, self.rules.scaling);
        for app in profile.apps() {
            let known = curves.remove(&app).unwrap_or_default();
            self.known.insert(self.key(facts, app), known);
        }
        self.sampled = now;
    }

    /// Is a change of IPC a reason to sample the kernel anew? Not at the end of its
    /// grid, where there are no CTAs to sample.
    fn doubts(&self, view: &View, app: AppId) -> bool {
        let rested = view.now >= self.sampled.saturating_add(self.rules.rest);
        rested && !self.rules.offline && view.apps[app.index()].ctas_left > 0
    }

    /// Curves of runs alone, for every kernel of an application alike.
    fn learn_offline(&mut self, facts: &Facts, probes: &[ProbeResult]) {
        let mut results = probes.iter();
        for app in present::in_arrival_order(facts) {
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
        for app in present::in_arrival_order(facts) {
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
        let draft = self.consider(facts, 0, present::at_start(facts));
        Plan::new(facts, draft)
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        self.note_running(view);
        let present = present::now(facts, view);
        if let Some(mut profile) = self.profile.take() {
            if profile.present() == present {
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
        let draft = self.consider(facts, view.now, present);
        Plan::new(facts, draft)
    }
}
