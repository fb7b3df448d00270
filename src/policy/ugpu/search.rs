//! A search for the best SMs of each application.

use gpumodel_core::contract::{
    Facts, LawBroken, Plan, PlanDraft, Probe, ProbeResult, Vacate, View, WakeOn,
};
use gpumodel_core::units::{AppId, Cycle, to_u32};

use super::super::shares::{FREED, FreedSms};
use super::super::solve::Resources;
use super::super::{Parameter, Scheme, Settings};
use super::algorithm::{Algorithm, MIN_SMS, Trader};
use super::demand::EpochCounters;
use super::demand::{B_MEM, Demand};
use super::demand::{SoloProfiles, WINDOW, solo_probes, solo_window};
use super::online::EPOCH;
use super::partition::Partition;
use super::refuse;

const STEP: Parameter =
    Parameter::whole("step", 8, 1..=1024).does("SMs that move at a time at first (assumed)");

/// What a user may set.
pub(in super::super) const PARAMETERS: &[Parameter] = &[EPOCH, STEP, MIN_SMS, B_MEM, WINDOW, FREED];

/// CD-Search, classification-driven search of SMs (Zhao et al., ICS 2018), as UGPU
/// compares with it (section 6.4), which prints no more than its name. Assumed: all
/// begin with as many SMs each. At the end of every epoch applications are classified by
/// eq. 1 and 2, and some SMs go from the most memory-bound to the most compute-bound. A
/// move after which the system throughput, by runs alone, has not risen is taken back,
/// and half as many SMs move from then on; where that is none the search is over, until
/// an application comes or ends.
///
/// The memory is shared, and each application counts with an equal part of it; on a
/// balanced partition channels are owned, equally many by each, and stay.
#[derive(Clone, Debug)]
struct CdSearch {
    epoch: Cycle,
    /// When the epoch ends.
    next: Cycle,
    first_step: u32,
    /// SMs that move at a time; 0: the search is over.
    step: u32,
    min_sms: u32,
    b_mem: f64,
    window: Option<Cycle>,
    solo_profiles: SoloProfiles,
    partition: Partition,
    /// The counters of the epoch.
    epoch_counters: EpochCounters,
    /// The partition before the last move and the throughput with it.
    before: Option<(Partition, f64)>,
}

/// CD-Search where all share the memory.
pub(in super::super) fn cd_search(settings: &Settings) -> Box<dyn Scheme> {
    CdSearch::make(settings, false)
}

/// CD-Search on a balanced partition.
pub(in super::super) fn bp_cd_search(settings: &Settings) -> Box<dyn Scheme> {
    CdSearch::make(settings, true)
}

impl CdSearch {
    fn make(settings: &Settings, owns: bool) -> Box<dyn Scheme> {
        Box::new(Self {
            epoch: settings.whole(EPOCH.name),
            next: 0,
            first_step: to_u32(settings.whole(STEP.name)),
            step: 0,
            min_sms: to_u32(settings.whole(MIN_SMS.name)),
            b_mem: settings.real(B_MEM.name),
            window: solo_window(settings),
            solo_profiles: SoloProfiles::default(),
            partition: Partition::new(owns, FreedSms::of(settings)),
            epoch_counters: EpochCounters::default(),
            before: None,
        })
    }

    /// Equal parts, and the search begins again.
    fn divide(&mut self, facts: &Facts) -> String {
        (self.before, self.step) = (None, self.first_step);
        self.partition.divide(None);
        let why = match self.partition.apps() {
            [_] => "one application is active",
            _ => "the search begins",
        };
        format!("{why}: {}", self.partition.words(facts))
    }

    /// What the counters of the epoch change, and why.
    fn reallocate(&mut self, facts: &Facts, view: &View) -> String {
        let throughput = self.solo_profiles.throughput(&self.epoch_counters);
        if let Some((before, last)) = self.before.take()
            && throughput <= last
        {
            (self.partition, self.step) = (before, self.step / 2);
            let then = match self.step {
                0 => "and the search is over".into(),
                1 => "one SM at a time from now on".into(),
                step => format!("{step} SMs at a time from now on"),
            };
            let words = self.partition.words(facts);
            return format!(
                "STP went from {last:.3} to {throughput:.3}, back to before, {then}: {words}"
            );
        }
        let traders = self.traders(facts, view);
        if self.step == 0 || traders.len() < 2 {
            return format!("the search is over: {}", self.partition.words(facts));
        }
        let algorithm = Algorithm {
            step: Resources { sms: self.step, groups: 0 },
            least: Resources { sms: self.min_sms, groups: 1 },
            iterations: 1,
            b_mem: self.b_mem,
            port_limit: false,
        };
        let found = algorithm.run(facts, &self.partition, &traders);
        if found.moved {
            self.before = Some((self.partition.clone(), throughput));
            self.partition.give(&found.parts);
        }
        format!("STP {throughput:.3}, {}: {}", found.asked, self.partition.words(facts))
    }

    fn traders(&self, facts: &Facts, view: &View) -> Vec<Trader> {
        let trader = |app: AppId| {
            let demand = Demand::new(facts, self.epoch_counters.traffic(app), self.b_mem)?;
            Some(Trader { app, demand, needs: 0, keeps: 0.0 })
        };
        self.partition.running(view).into_iter().filter_map(trader).collect()
    }

    fn plan(&self, facts: &Facts, running: usize, reason: String) -> Result<Plan, LawBroken> {
        let wake = (running > 1).then_some(WakeOn::At(self.next));
        let draft = PlanDraft {
            vacate: Vacate::Hybrid,
            wake: wake.into_iter().collect(),
            reason,
            ..self.partition.draft(facts)
        };
        Plan::new(facts, draft)
    }
}

impl Scheme for CdSearch {
    fn probes(&self, facts: &Facts) -> Result<Vec<Probe>, LawBroken> {
        refuse(facts, self.partition.owns())?;
        solo_probes(facts, self.window)
    }

    fn start(&mut self, facts: &Facts, probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        self.solo_profiles = SoloProfiles::new(probes);
        self.partition.begin(facts);
        let reason = self.divide(facts);
        self.next = self.epoch;
        self.plan(facts, self.partition.apps().len(), reason)
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        self.epoch_counters.add(view);
        let changed = self.partition.follow(facts, view);
        let ends = changed || view.now >= self.next;
        if ends {
            self.next = view.now.saturating_add(self.epoch);
        }
        let reason = match (changed, ends) {
            (true, _) => self.divide(facts),
            (false, true) => self.reallocate(facts, view),
            (false, false) => {
                // Throughputs of others would be compared.
                self.before = None;
                format!("as before: {}", self.partition.words(facts))
            }
        };
        if ends {
            self.epoch_counters.clear();
        }
        self.plan(facts, self.partition.running(view).len(), reason)
    }
}
