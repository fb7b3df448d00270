//! Unbalanced slices of the GPU that follow what applications ask for.

use gpumodel_core::contract::{
    DispatchOrder, Facts, LawBroken, Migration, Plan, PlanDraft, Probe, ProbeResult, Vacate, View,
    WakeOn,
};
use gpumodel_core::units::{AppId, Cycle, to_u32};

use super::super::shares::{FREED, FreedSms};
use super::super::{Parameter, Scheme, Settings};
use super::algorithm::{
    self, Algorithm, DELTA_GROUPS, DELTA_SM, ITERATIONS, MIN_GROUPS, MIN_SMS, Trader,
};
use super::demand::EpochCounters;
use super::demand::{B_MEM, Demand, PORT_LIMIT};
use super::demand::{SoloProfiles, WINDOW, solo_probes, solo_window};
use super::partition::Partition;
use super::priority::{self, HIGH, PriorityApp, TARGET};
use super::refuse_staying;

pub(super) const EPOCH: Parameter = Parameter::whole("epoch", 5_000_000, 1..=u64::MAX)
    .does("cycles of an epoch (published: section 3.3)");

const BEGIN: Parameter = Parameter::whole("begin", 148, 0..=1_000_000_000)
    .does("cycles until demand and supply are calculated (published: section 3.3)");

const EACH: Parameter = Parameter::whole("each", 162, 0..=1_000_000_000)
    .does("cycles of an iteration, the old plan runs on (published for four: section 3.3)");

const FEEDBACK: Parameter = Parameter::word("feedback", "off", &["off", "on"])
    .does("moves after which the throughput fell are taken back (section 6.4, not in section 3)");

const REST: Parameter = Parameter::whole("rest", 4, 0..=u64::MAX)
    .does("epochs without a move after one that was taken back (assumed)");

/// What a user may set of `ugpu`, `ugpu-soft` and `ugpu-ori`.
pub(in super::super) const PARAMETERS: &[Parameter] = &OWN;

const OWN: [Parameter; 14] = [
    EPOCH,
    DELTA_SM,
    DELTA_GROUPS,
    MIN_SMS,
    MIN_GROUPS,
    ITERATIONS,
    BEGIN,
    EACH,
    B_MEM,
    PORT_LIMIT,
    FEEDBACK,
    REST,
    WINDOW,
    FREED,
];

/// What a user may set of `qos-ugpu`: the promise, and the same.
pub(in super::super) const QOS_TARGET: &[Parameter] = &with_qos_target();

const fn with_qos_target() -> [Parameter; OWN.len() + 2] {
    let mut all = [TARGET; OWN.len() + 2];
    all[1] = HIGH;
    let mut place = 0;
    while place < OWN.len() {
        all[place + 2] = OWN[place];
        place += 1;
    }
    all
}

/// UGPU (section 3): all begin with as many SMs and channels each. At the end of every
/// epoch the demand-aware algorithm takes the counters of the epoch and moves SMs and
/// groups of channels; its time is the delay of the plan, for any number of applications
/// as the paper counts it for four. SMs are drained where their CTAs end within the
/// epoch, and switched where they do not. Pages follow as the migration says.
///
/// An application that has executed nothing in the epoch, or has ended where its part stays
/// idle, neither gives nor takes. When one comes or ends, all is divided evenly again. With as
/// many applications as groups of channels every application has the least of channels, and only
/// SMs move.
///
/// With `feedback` the end of an epoch compares the system throughput of the epoch, by runs alone,
/// with that of the epoch before a move, and takes the move back where it fell.
///
/// Under a promise the application with the high priority begins with the target's part
/// of the machine, and nothing is taken from it that would bring its predicted
/// performance below the target's part of that with the whole machine (section 6.7).
#[derive(Clone, Debug)]
struct Ugpu {
    algorithm: Algorithm,
    epoch: Cycle,
    /// When the epoch ends.
    next: Cycle,
    /// When the plan of the last epoch takes effect.
    effect: Cycle,
    begin: Cycle,
    each: Cycle,
    migration: Migration,
    /// The application with the high priority, and the target.
    qos_target: Option<(PriorityApp, f64)>,
    feedback: bool,
    rest: u64,
    window: Option<Cycle>,
    solo_profiles: SoloProfiles,
    high: Option<AppId>,
    partition: Partition,
    /// The counters of the epoch.
    epoch_counters: EpochCounters,
    /// The partition before the last move and the throughput with it.
    before: Option<(Partition, f64)>,
    /// Epochs that pass before the next move.
    resting: u64,
}

/// UGPU with PageMove.
pub(in super::super) fn ugpu(settings: &Settings) -> Box<dyn Scheme> {
    Box::new(Ugpu::of(settings, Migration::PageMove))
}

/// UGPU with PageMove's mapping and memory management, and no hardware for copies.
pub(in super::super) fn ugpu_soft(settings: &Settings) -> Box<dyn Scheme> {
    Box::new(Ugpu::of(settings, Migration::Software))
}

/// UGPU with traditional page migration.
pub(in super::super) fn ugpu_ori(settings: &Settings) -> Box<dyn Scheme> {
    Box::new(Ugpu::of(settings, Migration::Traditional))
}

/// UGPU with a promise to the application with the high priority.
pub(in super::super) fn qos_ugpu(settings: &Settings) -> Box<dyn Scheme> {
    let qos_target = Some((PriorityApp::of(settings), settings.real(TARGET.name)));
    Box::new(Ugpu { qos_target, ..Ugpu::of(settings, Migration::PageMove) })
}

impl Ugpu {
    fn of(settings: &Settings, migration: Migration) -> Self {
        Self {
            algorithm: Algorithm::of(settings),
            epoch: settings.whole(EPOCH.name),
            next: 0,
            effect: 0,
            begin: settings.whole(BEGIN.name),
            each: settings.whole(EACH.name),
            migration,
            qos_target: None,
            feedback: settings.word(FEEDBACK.name) == "on",
            rest: settings.whole(REST.name),
            window: solo_window(settings),
            solo_profiles: SoloProfiles::default(),
            high: None,
            partition: Partition::new(true, FreedSms::of(settings)),
            epoch_counters: EpochCounters::default(),
            before: None,
            resting: 0,
        }
    }

    /// Equal parts for those that are there, but for who was promised more.
    fn divide(&mut self, facts: &Facts) -> String {
        (self.before, self.resting) = (None, 0);
        let whole = self.partition.whole();
        let part = self.qos_target.map(|(_, target)| priority::part(whole, target));
        self.partition.divide(self.high.zip(part));
        let why = match self.partition.apps() {
            [_] => "one application is active",
            _ => "nothing is known yet",
        };
        format!("{why}: {}", self.partition.words(facts))
    }

    /// What the counters of the epoch change, why, and how long that takes.
    fn reallocate(&mut self, facts: &Facts, view: &View) -> (String, Cycle) {
        let throughput = self.solo_profiles.throughput(&self.epoch_counters);
        if let Some(words) = self.take_back(throughput) {
            return (format!("{words}: {}", self.partition.words(facts)), 0);
        }
        let traders = self.traders(facts, view);
        if traders.len() < 2 {
            return (
                format!("no other application to trade with: {}", self.partition.words(facts)),
                0,
            );
        }
        let found = self.algorithm.run(facts, &self.partition, &traders);
        if found.moved && self.feedback {
            self.before = Some((self.partition.clone(), throughput));
        }
        self.partition.give(&found.parts);
        let least = self.partition.whole().groups == to_u32(self.partition.apps().len());
        let least = if least { "; every application has the least of channels" } else { "" };
        let (asked, end) = (found.asked, found.stays.unwrap_or(found.end));
        let words = format!("{asked}; {end}{least}: {}", self.partition.words(facts));
        (words, self.begin + self.each * Cycle::from(found.iterations))
    }

    /// Takes the last move back where the throughput has fallen; in words where nothing
    /// is tried at this epoch.
    fn take_back(&mut self, throughput: f64) -> Option<String> {
        if let Some((before, last)) = self.before.take()
            && throughput < last
        {
            (self.partition, self.resting) = (before, self.rest);
            return Some(format!("STP fell from {last:.3} to {throughput:.3}, back to before"));
        }
        self.resting = self.resting.checked_sub(1)?;
        Some(String::from("rests after a move that was taken back"))
    }

    /// Those between whom resources move.
    fn traders(&self, facts: &Facts, view: &View) -> Vec<Trader> {
        let trader = |app: AppId| {
            let seen = &view.apps[app.index()];
            let demand =
                Demand::new(facts, self.epoch_counters.traffic(app), self.algorithm.b_mem)?;
            let demand = self.algorithm.bounded(facts, demand);
            let target = self.qos_target.map_or(0.0, |(_, target)| target);
            let keeps = if self.high == Some(app) { target } else { 0.0 };
            Some(Trader { app, demand, needs: algorithm::needs(facts, seen), keeps })
        };
        self.partition.running(view).into_iter().filter_map(trader).collect()
    }

    fn plan(&self, facts: &Facts, running: usize, why: (String, Cycle)) -> Result<Plan, LawBroken> {
        let wake = (running > 1).then_some(WakeOn::At(self.next));
        let mut draft = PlanDraft {
            migration: self.migration,
            vacate: Vacate::Hybrid,
            delay: why.1,
            wake: wake.into_iter().collect(),
            reason: why.0,
            ..self.partition.draft(facts)
        };
        if let Some(app) = self.high {
            draft.order = DispatchOrder::Priority(vec![app]);
        }
        Plan::new(facts, draft)
    }
}

impl Scheme for Ugpu {
    fn probes(&self, facts: &Facts) -> Result<Vec<Probe>, LawBroken> {
        refuse_staying(facts)?;
        let asks = self.feedback || self.qos_target.is_some_and(|(who, _)| who.asks());
        if asks { solo_probes(facts, self.window) } else { Ok(Vec::new()) }
    }

    fn start(&mut self, facts: &Facts, probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        self.solo_profiles = SoloProfiles::new(probes);
        let b_mem = self.algorithm.b_mem;
        self.high = self.qos_target.and_then(|(who, _)| who.app(facts, &self.solo_profiles, b_mem));
        self.partition.begin(facts);
        let reason = self.divide(facts);
        self.next = self.epoch;
        self.plan(facts, self.partition.apps().len(), (reason, 0))
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        self.epoch_counters.add(view);
        let changed = self.partition.follow(facts, view);
        let ends = changed || view.now >= self.next;
        if ends {
            self.next = view.now.saturating_add(self.epoch);
        }
        let why = match (changed, ends) {
            (true, _) => (self.divide(facts), 0),
            (false, true) => self.reallocate(facts, view),
            (false, false) => {
                // Throughputs of others would be compared.
                self.before = None;
                let left = self.effect.saturating_sub(view.now);
                (format!("as before: {}", self.partition.words(facts)), left)
            }
        };
        self.effect = view.now.saturating_add(why.1);
        if ends {
            self.epoch_counters.clear();
        }
        self.plan(facts, self.partition.running(view).len(), why)
    }
}
