//! What applications do alone on the whole machine: the profiles of the offline schemes.

use gpumodel_core::contract::{
    DispatchOrder, Facts, LawBroken, Plan, PlanDraft, Probe, ProbeApp, ProbeResult,
};
use gpumodel_core::units::{AppId, Cycle, to_u16};

use super::super::{Kind, Parameter, Settings, shares};
use super::counted::Counted;
use super::demand::{Demand, Traffic, float};

/// How long each runs alone.
pub(super) const WINDOW: Parameter = Parameter {
    name: "window",
    kind: Kind::Whole { default: 0, least: 0, most: u64::MAX },
    summary: "cycles of a run alone; 0: to its end (assumed)",
};

/// The window that is set.
pub(super) fn window(settings: &Settings) -> Option<Cycle> {
    Some(settings.whole(WINDOW.name)).filter(|&cycles| cycles > 0)
}

/// A run of each application alone; none where it is the only one.
pub(super) fn probes(facts: &Facts, window: Option<Cycle>) -> Result<Vec<Probe>, LawBroken> {
    if facts.apps.len() < 2 {
        return Ok(Vec::new());
    }
    let probe = |app: AppId| {
        let shares = shares::everything(facts, &[app]);
        let (order, reason) = (DispatchOrder::RoundRobin, String::from("alone on every SM"));
        let plan = Plan::new(facts, PlanDraft { shares, order, reason, ..PlanDraft::default() })?;
        Ok(Probe { apps: vec![app], plan, window, race: false })
    };
    facts.apps.iter().map(|app| probe(app.app)).collect()
}

/// What those runs have shown, by [`AppId`]; nothing about who is the only one.
#[derive(Clone, Debug, Default)]
pub(super) struct Alone(Vec<ProbeApp>);

impl Alone {
    /// By the answers to [`probes`].
    pub(super) fn new(answers: &[ProbeResult]) -> Self {
        Self(answers.iter().filter_map(|answer| answer.apps.first()).cloned().collect())
    }

    /// Eq. 1 and 2 with the counters of a run alone.
    pub(super) fn demand(&self, facts: &Facts, app: AppId, b_mem: f64) -> Option<Demand> {
        Demand::new(facts, Traffic::from(self.0.get(app.index())?), b_mem)
    }

    /// System throughput of an epoch: the sum of each one's thread instructions per
    /// cycle over those that it had alone (eq. 3).
    pub(super) fn throughput(&self, counted: &Counted) -> f64 {
        let cycles = float(counted.cycles.max(1));
        let progress = |(app, row): (u16, &ProbeApp)| {
            let alone = float(row.thread_instructions) / float(row.cycles.max(1));
            let now = float(counted.traffic(AppId(app)).thread_instructions) / cycles;
            if alone > 0.0 { now / alone } else { 0.0 }
        };
        (0..).zip(&self.0).map(progress).sum()
    }

    /// Who asks for least of what the memory gives it, the first of equals.
    pub(super) fn most_compute_bound(&self, facts: &Facts, b_mem: f64) -> Option<AppId> {
        let apps = (0..self.0.len()).map(|place| AppId(to_u16(place)));
        let pressure = |app: AppId| {
            let demand = self.demand(facts, app, b_mem)?;
            Some((app, demand.per_sm / demand.per_channel))
        };
        let least = apps.filter_map(pressure).min_by(|one, other| one.1.total_cmp(&other.1));
        least.map(|(app, _)| app)
    }
}
