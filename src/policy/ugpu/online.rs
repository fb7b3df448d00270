//! Unbalanced slices of the GPU that follow the demands of applications.

use gpumodel_core::contract::{
    DispatchOrder, Facts, LawBroken, Migration, Plan, PlanDraft, Probe, ProbeResult, View,
};
use gpumodel_core::units::{AppId, Cycle, to_u32};

use super::super::shares::FREED;
use super::super::{Parameter, Scheme, Settings};
use super::algorithm::{
    self, Algorithm, Claim, DELTA_GROUPS, DELTA_SM, ITERATIONS, MIN_GROUPS, MIN_SMS,
    SMS_PER_CHANNEL,
};
use super::demand::{B_MEM, PORT_LIMIT, WINDOW, solo_probes};
use super::epoch::{EPOCH, Epochs, Moment};
use super::partition::{self, HIGH, PriorityApp, TARGET};

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

const OWN: [Parameter; 15] = [
    EPOCH,
    DELTA_SM,
    DELTA_GROUPS,
    MIN_SMS,
    MIN_GROUPS,
    SMS_PER_CHANNEL,
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

const MOVES: Parameter = Parameter::word("moves", "channels", &["channels", "all"]).does(
    "what moves at the end of an epoch (published: \"through providing the memory channels to \
              the low-priority application\", section 6.7; all: SMs too)",
);

/// What a user may set of `qos-ugpu`: the target, and the same.
pub(in super::super) const QOS_TARGET: &[Parameter] = &with_qos_target();

const fn with_qos_target() -> [Parameter; OWN.len() + 3] {
    let mut all = [TARGET; OWN.len() + 3];
    all[1] = HIGH;
    all[2] = MOVES;
    let mut place = 0;
    while place < OWN.len() {
        all[place + 3] = OWN[place];
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
/// idle, neither gives nor takes. When one arrives or ends, all is divided evenly again. With
/// as many applications as groups of channels every application has the least of channels,
/// and only SMs move.
///
/// With `feedback` the end of an epoch compares the system throughput of the epoch, against
/// solo runs, with that of the epoch before a move, and takes the move back where it fell.
///
/// With a target the application with the high priority begins with the target's part of
/// the machine and keeps its SMs; channels are taken from it as long as its predicted
/// performance stays at the target's part of that with the whole machine (section 6.7).
#[derive(Clone, Debug)]
struct Ugpu {
    algorithm: Algorithm,
    epochs: Epochs,
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
    high: Option<AppId>,
    /// Epochs that pass before the next move.
    resting: u64,
}

/// UGPU with PageMove; `ugpu-soft` has its mapping and memory management without hardware for
/// copies, `ugpu-ori` traditional page migration.
pub(in super::super) fn ugpu(settings: &Settings, migration: Migration) -> Box<dyn Scheme> {
    Box::new(Ugpu::of(settings, migration))
}

/// UGPU with a target for the application with the high priority.
pub(in super::super) fn qos_ugpu(settings: &Settings) -> Box<dyn Scheme> {
    let qos_target = Some((PriorityApp::of(settings), settings.real(TARGET.name)));
    let mut scheme = Ugpu { qos_target, ..Ugpu::of(settings, Migration::PageMove) };
    if settings.word(MOVES.name) == "channels" {
        scheme.algorithm.step.sms = 0;
    }
    Box::new(scheme)
}

impl Ugpu {
    fn of(settings: &Settings, migration: Migration) -> Self {
        Self {
            algorithm: Algorithm::of(settings),
            epochs: Epochs::new(settings, true),
            effect: 0,
            begin: settings.whole(BEGIN.name),
            each: settings.whole(EACH.name),
            migration,
            qos_target: None,
            feedback: settings.word(FEEDBACK.name) == "on",
            rest: settings.whole(REST.name),
            window: settings.window(WINDOW.name),
            high: None,
            resting: 0,
        }
    }

    /// Equal parts for all, but the target's part for the application with the priority.
    fn divide(&mut self, facts: &Facts) -> String {
        (self.epochs.before, self.resting) = (None, 0);
        let partition = &mut self.epochs.partition;
        let total = partition.total();
        let part = self.qos_target.map(|(_, target)| partition::part(total, target));
        partition.divide(self.high.zip(part));
        let why = match partition.apps() {
            [_] => "one application is active",
            _ => "nothing is measured yet",
        };
        format!("{why}: {}", partition.words(facts))
    }

    /// Moves resources by the counters of the epoch; returns why, and the cycles that it takes.
    fn reallocate(&mut self, facts: &Facts, view: &View) -> (String, Cycle) {
        let throughput = self.epochs.throughput();
        if let Some(words) = self.take_back(throughput) {
            return (format!("{words}: {}", self.epochs.partition.words(facts)), 0);
        }
        let claims = self.claims(facts, view);
        let partition = &mut self.epochs.partition;
        if claims.len() < 2 {
            let words = partition.words(facts);
            return (format!("no other application demands resources: {words}"), 0);
        }
        let found = self.algorithm.run(facts, partition, &claims);
        if found.moved && self.feedback {
            self.epochs.before = Some((partition.clone(), throughput));
        }
        partition.assign(&found.parts);
        let least = partition.total().groups == to_u32(partition.apps().len());
        let least = if least { "; every application has the least of channels" } else { "" };
        let (asked, end) = (found.asked, found.stays.unwrap_or(found.end));
        let words = format!("{asked}; {end}{least}: {}", partition.words(facts));
        (words, self.begin + self.each * Cycle::from(found.iterations))
    }

    /// Takes the last move back where the throughput has fallen; in words, where nothing moves
    /// at the end of this epoch.
    fn take_back(&mut self, throughput: f64) -> Option<String> {
        if let Some((before, last)) = self.epochs.before.take()
            && throughput < last
        {
            (self.epochs.partition, self.resting) = (before, self.rest);
            return Some(format!(
                "STP fell from {last:.3} to {throughput:.3}, the move is taken back"
            ));
        }
        self.resting = self.resting.checked_sub(1)?;
        Some(String::from("no move for some time after one that was taken back"))
    }

    fn claims(&self, facts: &Facts, view: &View) -> Vec<Claim> {
        let mut claims = self.epochs.claims(facts, view, &self.algorithm);
        for claim in &mut claims {
            claim.needs = algorithm::needs(facts, &view.apps[claim.app.index()]);
            if let Some((_, target)) = self.qos_target.filter(|_| self.high == Some(claim.app)) {
                claim.keeps = target;
            }
        }
        claims
    }

    fn plan(&self, facts: &Facts, running: usize, why: (String, Cycle)) -> Result<Plan, LawBroken> {
        let (reason, delay) = why;
        let draft = self.epochs.draft(facts, running, reason);
        let first = self.high.map(|app| DispatchOrder::Priority(vec![app]));
        let order = first.unwrap_or_else(|| draft.order.clone());
        Plan::new(facts, PlanDraft { migration: self.migration, delay, order, ..draft })
    }
}

impl Scheme for Ugpu {
    fn probes(&self, facts: &Facts) -> Result<Vec<Probe>, LawBroken> {
        self.epochs.partition.check(facts)?;
        if !facts.pages_follow {
            return Err(LawBroken::PagesStay);
        }
        let needed = self.feedback || self.qos_target.is_some_and(|(app, _)| app.needs_probes());
        if needed { solo_probes(facts, self.window) } else { Ok(Vec::new()) }
    }

    fn start(&mut self, facts: &Facts, probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        self.epochs.start(facts, probes);
        let (solo, b_mem) = (&self.epochs.solo_profiles, self.algorithm.b_mem);
        self.high = self.qos_target.and_then(|(app, _)| app.app(facts, solo, b_mem));
        let reason = self.divide(facts);
        self.plan(facts, self.epochs.partition.apps().len(), (reason, 0))
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        let why = match self.epochs.advance(facts, view) {
            Moment::OwnersChanged => (self.divide(facts), 0),
            Moment::EpochEnd => self.reallocate(facts, view),
            Moment::Between => {
                let left = self.effect.saturating_sub(view.now);
                (format!("as before: {}", self.epochs.partition.words(facts)), left)
            }
        };
        self.effect = view.now.saturating_add(why.1);
        self.plan(facts, self.epochs.partition.running(view).len(), why)
    }
}
