//! Kernels in software: as workers on SMs of their own, beside whom they go with.

mod class;
mod form;
mod split;

use std::collections::VecDeque;

use gpumodel_core::contract::{
    DispatchOrder, Facts, LawBroken, Persistent, Plan, PlanDraft, Probe,
};
use gpumodel_core::contract::{ProbeResult, Share, View, Wake, WakeOn};
use gpumodel_core::units::{AppId, Cycle};

use super::{Kind, Parameter, Scheme, Settings, present, shares};
use class::{COMPUTE_HIGH, COMPUTE_MEDIUM, MEMORY_HIGH, MEMORY_MEDIUM};
pub use class::{Cuts, Intensity, Level, Profile};
use form::Costs;
use split::{SATURATE, SPLIT};

/// What a user may set.
pub(super) const PARAMETERS: &[Parameter] = &[
    form::TASK,
    SPLIT,
    COMPUTE_MEDIUM,
    COMPUTE_HIGH,
    MEMORY_MEDIUM,
    MEMORY_HIGH,
    form::COMMUNICATION,
    form::COMPILATION,
    form::RELAUNCH,
    form::REGISTERS,
    form::SHARED,
    form::LEADER,
    form::INSTRUCTIONS,
    form::BLOCK,
    Parameter {
        name: "window",
        kind: Kind::Whole { default: 0, least: 0, most: u64::MAX },
        summary: "cycles of each profiling run, extrapolated; 0: to the end (as in the paper)",
    },
];

/// Slate (IPDPS 2019). Kernels run as workers that pull tasks of several blocks in
/// order. A daemon has a queue of kernels, one for each application at a time. The first
/// runs; beside it runs the first of the others that goes with it by Table I, each on a
/// range of SMs of its own; without one it has all SMs. When a kernel comes or ends,
/// those that run are resized: all their workers retreat and are launched anew.
///
/// Intensities are those of a run alone as written. Daemon and compiler take their
/// parts of the application's time as published; what the paper does not print
/// (levels, the split, the cost of a launch anew) are parameters.
#[derive(Clone, Debug)]
pub struct Slate {
    costs: Costs,
    cuts: Cuts,
    saturate: bool,
    window: Option<Cycle>,
    profiles: Vec<Profile>,
    forms: Vec<Persistent>,
    /// By application: SMs that saturate its traffic, where that is asked for.
    enough: Vec<u32>,
    /// Applications whose next kernel waits, the first to come first.
    queue: VecDeque<AppId>,
    /// Who has the lower SMs and who the upper: alone, either has all.
    running: [Option<AppId>; 2],
}

impl Slate {
    pub(super) fn make(settings: &Settings) -> Box<dyn Scheme> {
        let window = settings.whole("window");
        Box::new(Self {
            costs: Costs::of(settings),
            cuts: Cuts::of(settings),
            saturate: settings.word(SPLIT.name) == SATURATE,
            window: (window > 0).then_some(window),
            profiles: Vec::new(),
            forms: Vec::new(),
            enough: Vec::new(),
            queue: VecDeque::new(),
            running: [None; 2],
        })
    }

    fn intensity(&self, app: AppId) -> Intensity {
        self.cuts.intensity(&self.profiles[app.index()])
    }

    /// SMs on which an application is tried.
    fn tried(&self, facts: &Facts) -> Vec<u16> {
        if self.saturate && facts.apps.len() > 1 {
            return (1..=facts.sms).collect();
        }
        vec![facts.sms]
    }

    /// A kernel of an application wants to run.
    fn enqueue(&mut self, app: AppId) {
        if !self.queue.contains(&app) && !self.running.contains(&Some(app)) {
            self.queue.push_back(app);
        }
    }

    fn dequeue(&mut self, app: AppId) {
        self.queue.retain(|&waits| waits != app);
        for place in self.running.iter_mut().filter(|place| **place == Some(app)) {
            *place = None;
        }
    }

    /// Fills the places of those that run.
    fn fill(&mut self) {
        if self.running == [None; 2] {
            self.running[0] = self.queue.pop_front();
        }
        let (alone, free) = match self.running {
            [Some(one), None] => (one, 1),
            [None, Some(one)] => (one, 0),
            _ => return,
        };
        let first = self.intensity(alone);
        let goes = |&app: &AppId| first.goes_with(self.intensity(app));
        if let Some(place) = self.queue.iter().position(goes) {
            self.running[free] = self.queue.remove(place);
        }
    }

    fn plan(&self, facts: &Facts) -> Result<Plan, LawBroken> {
        let sms = u32::from(facts.sms);
        // Who has no SM of its own waits: on a machine of one SM all but the first.
        let (holders, first) = match self.running {
            [Some(one), Some(other)] if sms > 1 => {
                let enough = [one, other].map(|app| self.enough[app.index()]);
                let enough = self.saturate.then_some(enough);
                let between = [one, other].map(|app| self.intensity(app));
                (vec![one, other], split::divide(sms, enough, between))
            }
            [one, other] => (one.or(other).into_iter().collect(), sms),
        };
        let owns = |place: usize, sm: usize| {
            (u32::try_from(sm).is_ok_and(|sm| sm < first)) == (place == 0)
        };
        let quota = |place, sm| if owns(place, sm) { facts.max_ctas_per_sm } else { 0 };
        let given: Vec<Share> = shares::on_each_sm(facts, &holders, quota);
        Plan::new(
            facts,
            PlanDraft {
                shares: given,
                order: DispatchOrder::InOrder,
                workers: self.forms.iter().cloned().map(Some).collect(),
                wake: vec![WakeOn::KernelEnd],
                reason: self.words(facts, first),
                ..PlanDraft::default()
            },
        )
    }

    fn words(&self, facts: &Facts, first: u32) -> String {
        let name =
            |app: &AppId| format!("{} ({})", facts.apps[app.index()].name, self.intensity(*app));
        match (&self.running, self.queue.is_empty()) {
            ([Some(one), Some(other)], _) => {
                let rest = u32::from(facts.sms) - first;
                format!(
                    "{} has {first} SMs and {} {rest}: they go together",
                    name(one),
                    name(other)
                )
            }
            ([Some(one), None] | [None, Some(one)], true) => format!("{} is alone", name(one)),
            ([Some(one), None] | [None, Some(one)], false) => {
                let waits: Vec<String> = self.queue.iter().map(name).collect();
                format!("{} goes with none of those that wait: {}", name(one), waits.join(", "))
            }
            ([None, None], _) => String::from("no kernel waits"),
        }
    }
}

impl Scheme for Slate {
    fn probes(&self, facts: &Facts) -> Result<Vec<Probe>, LawBroken> {
        let probe = |app: AppId, sms: u16| {
            let inside = |sm: usize| sm < usize::from(sms);
            let quota = |_, sm| if inside(sm) { facts.max_ctas_per_sm } else { 0 };
            let draft = PlanDraft {
                shares: shares::on_each_sm(facts, &[app], quota),
                reason: format!("alone on {sms} SMs, as written"),
                ..PlanDraft::default()
            };
            let plan = Plan::new(facts, draft)?;
            Ok(Probe { apps: vec![app], plan, window: self.window, race: false })
        };
        let tried = self.tried(facts);
        let apps = facts.apps.iter().map(|app| app.app);
        let all = apps.flat_map(|app| tried.iter().map(move |&sms| (app, sms)));
        all.map(|(app, sms)| probe(app, sms)).collect()
    }

    fn start(&mut self, facts: &Facts, probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        let rows = probes.chunks(self.tried(facts).len());
        for (app, rows) in facts.apps.iter().zip(rows) {
            let whole = rows.last().and_then(|row| row.apps.first()).cloned().unwrap_or_default();
            self.profiles.push(Profile::of(&whole, facts));
            self.forms.push(self.costs.form(app, &whole, facts));
            self.enough.push(split::saturates(rows));
        }
        self.profiles.resize(facts.apps.len(), Profile::default());
        self.forms.resize_with(facts.apps.len(), || self.costs.bare(facts));
        self.enough.resize(facts.apps.len(), u32::from(facts.sms));
        let there = present::at_start(facts);
        let now = there.first().map_or(0, |app| facts.apps[app.index()].arrival);
        if now > 0 {
            // Nobody is there: whoever comes first will have all.
            self.running[0] = there.first().copied();
            let plan = self.plan(facts);
            self.running = [None; 2];
            return plan;
        }
        there.into_iter().for_each(|app| self.enqueue(app));
        self.fill();
        self.plan(facts)
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        match view.wake {
            Wake::Arrival(app) => self.enqueue(app),
            Wake::KernelEnd(app) if view.apps[app.index()].running.is_empty() => {
                self.dequeue(app);
            }
            _ => {}
        }
        for app in present::in_arrival_order(facts) {
            if view.apps[app.index()].active {
                self.enqueue(app);
            } else {
                self.dequeue(app);
            }
        }
        self.fill();
        self.plan(facts)
    }
}
