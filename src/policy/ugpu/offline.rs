//! UGPU's partition from profiles of each application alone.

use gpumodel_core::contract::{Facts, LawBroken, Plan, Probe, ProbeResult, View};
use gpumodel_core::units::Cycle;

use super::super::vacated::{FREED, Vacated};
use super::super::{Parameter, Scheme, Settings};
use super::algorithm::{
    Algorithm, DELTA_GROUPS, DELTA_SM, ITERATIONS, MIN_GROUPS, MIN_SMS, Trader,
};
use super::alone::{self, Alone, WINDOW};
use super::demand::{B_MEM, PORT_LIMIT};
use super::partition::Partition;
use super::refuse;

/// What a user may set.
pub(in super::super) const PARAMETERS: &[Parameter] =
    &[DELTA_SM, DELTA_GROUPS, MIN_SMS, MIN_GROUPS, ITERATIONS, B_MEM, PORT_LIMIT, WINDOW, FREED];

/// Runs of the algorithm after which an end is not waited for any longer.
const RUNS: usize = 1000;

/// UGPU-offline (section 6): what the demand-aware algorithm comes to with the counters
/// of runs alone, from equal parts on, however many epochs that would take. The
/// partition is there from the beginning and changes only when an application comes or
/// ends; pages stay where they are. The memory that applications fill is not known
/// before they run, so it bounds nothing.
#[derive(Clone, Debug)]
struct Offline {
    algorithm: Algorithm,
    window: Option<Cycle>,
    alone: Alone,
    partition: Partition,
}

/// UGPU from profiles.
pub(in super::super) fn ugpu_offline(settings: &Settings) -> Box<dyn Scheme> {
    Box::new(Offline {
        algorithm: Algorithm::of(settings),
        window: alone::window(settings),
        alone: Alone::default(),
        partition: Partition::new(true, Vacated::of(settings)),
    })
}

impl Offline {
    /// The end of the algorithm, and why.
    fn settle(&mut self, facts: &Facts) -> String {
        self.partition.divide(None);
        let known = |&app| {
            let demand = self.alone.demand(facts, app, self.algorithm.b_mem)?;
            let demand = self.algorithm.bounded(facts, demand);
            Some(Trader { app, demand, needs: 0, keeps: 0.0 })
        };
        let traders: Vec<Trader> = self.partition.apps().iter().filter_map(known).collect();
        if traders.len() < 2 {
            return format!("one application is there: {}", self.partition.words(facts));
        }
        let mut found = self.algorithm.run(facts, &self.partition, &traders);
        let (asked, mut moved) = (found.asked.clone(), found.moved);
        for _ in 1..RUNS {
            self.partition.give(&found.parts);
            if !found.cut {
                break;
            }
            found = self.algorithm.run(facts, &self.partition, &traders);
            moved |= found.moved;
        }
        let end = found.stays.filter(|_| !moved).unwrap_or(found.end);
        format!("alone {asked}; {end}: {}", self.partition.words(facts))
    }

    fn plan(&self, facts: &Facts, reason: String) -> Result<Plan, LawBroken> {
        let mut draft = self.partition.draft(facts);
        draft.reason = reason;
        Plan::new(facts, draft)
    }
}

impl Scheme for Offline {
    fn probes(&self, facts: &Facts) -> Result<Vec<Probe>, LawBroken> {
        refuse(facts, true)?;
        alone::probes(facts, self.window)
    }

    fn start(&mut self, facts: &Facts, probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        self.alone = Alone::new(probes);
        self.partition.begin(facts);
        let reason = self.settle(facts);
        self.plan(facts, reason)
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        let reason = if self.partition.follow(facts, view) {
            self.settle(facts)
        } else {
            format!("as before: {}", self.partition.words(facts))
        };
        self.plan(facts, reason)
    }
}
