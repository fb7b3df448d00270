//! Partitions that are made once: of sizes that are set, or from profiles of solo runs.

use gpumodel_core::contract::{DispatchOrder, Facts, LawBroken, Plan, Probe, ProbeResult, View};
use gpumodel_core::units::{AppId, Cycle};

use super::super::parameter::PLACE;
use super::super::shares::{FREED, FreedSms};
use super::super::solo::at_most;
use super::super::solve::Resources;
use super::super::{Parameter, Scheme, Settings};
use super::algorithm::{
    Algorithm, Claim, DELTA_GROUPS, DELTA_SM, ITERATIONS, MIN_GROUPS, MIN_SMS, SMS_PER_CHANNEL,
};
use super::demand::{B_MEM, BMem, PORT_LIMIT, SoloProfiles, WINDOW, solo_probes};
use super::partition::{self, HIGH, Partition, PriorityApp, TARGET};

const FIRST: Parameter = Parameter::whole(PLACE, 1, 1..=65_535)
    .does("whose SMs and channels are set, by its place from 1");

const SMS: Parameter = Parameter::whole("sms", 0, 0..=65_535)
    .does("its SMs, the others divide the rest; 0: all have equally many (published: 60 of 80)");

/// What a user may set of `bp`.
pub(in super::super) const BALANCED: &[Parameter] = &[
    SMS,
    Parameter::whole("channels", 0, 0..=65_535)
        .does("its channels, whole groups of them; 0: all have equally many (published)"),
    FIRST,
    FREED,
];

/// What a user may set of `bp-bs` and `bp-sb`.
pub(in super::super) const UNEQUAL: &[Parameter] = &[FREED];

/// What a user may set of `mps-share`.
pub(in super::super) const SHARED: &[Parameter] = &[SMS, FIRST, FREED];

/// What a user may set of `qos-bp` and `qos-mps-share`.
pub(in super::super) const QOS: &[Parameter] = &[TARGET, HIGH, B_MEM, WINDOW, FREED];

/// The larger part of `bp-bs` and `bp-sb`: 60 of 80 SMs, 24 of 32 channels (section 6).
const LARGER: f64 = 0.75;

/// The part of the application with the priority.
#[derive(Clone, Copy, Debug)]
enum Size {
    /// These numbers; where one is 0, as many as the others.
    Counts { sms: u32, channels: u32 },
    /// This part of the machine.
    Part(f64),
}

/// Each application owns SMs, and channels where they can be owned, until one arrives or
/// ends: the balanced partition and the schemes that UGPU is compared with (section 6).
/// Pages stay where they are: such a GPU cannot move them.
#[derive(Clone, Debug)]
struct Fixed {
    priority: PriorityApp,
    size: Size,
    b_mem: BMem,
    window: Option<Cycle>,
    high: Option<AppId>,
    partition: Partition,
}

/// BP: equal SMs and channels for all, or as many as are set for one.
pub(in super::super) fn bp(settings: &Settings) -> Box<dyn Scheme> {
    let (sms, channels) = (settings.small(SMS.name), settings.small("channels"));
    let size = Size::Counts { sms, channels };
    Box::new(Fixed::new(settings, PriorityApp::of(settings), size, true))
}

/// BP-BS and BP-SB: three quarters for one of two applications.
pub(in super::super) fn bp_unequal(settings: &Settings, larger: AppId) -> Box<dyn Scheme> {
    Box::new(Fixed::new(settings, PriorityApp::App(larger), Size::Part(LARGER), true))
}

/// MPS as UGPU describes it: own SMs for each, and the memory for all.
pub(in super::super) fn mps_share(settings: &Settings) -> Box<dyn Scheme> {
    let size = Size::Counts { sms: settings.small(SMS.name), channels: 0 };
    Box::new(Fixed::new(settings, PriorityApp::of(settings), size, false))
}

/// QoS-aware BP, and MPS where channels are not owned: three quarters for the application with
/// the high priority.
pub(in super::super) fn qos_fixed(settings: &Settings, owns: bool) -> Box<dyn Scheme> {
    let size = Size::Part(settings.real(TARGET.name));
    Box::new(Fixed {
        b_mem: BMem::of(settings),
        window: settings.window(WINDOW.name),
        ..Fixed::new(settings, PriorityApp::of(settings), size, owns)
    })
}

impl Fixed {
    fn new(settings: &Settings, priority: PriorityApp, size: Size, owns: bool) -> Self {
        let partition = Partition::new(owns, FreedSms::of(settings));
        Self { priority, size, b_mem: BMem::Peak, window: None, high: None, partition }
    }

    fn part(&self, facts: &Facts) -> Resources {
        let whole = self.partition.total();
        match self.size {
            Size::Part(part) => partition::part(whole, part),
            Size::Counts { sms, channels } => {
                let each = facts.channels / whole.groups.max(1);
                let groups = (channels / each.max(1)).max(channels.min(1));
                Resources { sms, groups }
            }
        }
    }

    fn plan(&mut self, facts: &Facts) -> Result<Plan, LawBroken> {
        let part = self.part(facts);
        let priority = self.high.filter(|_| part != Resources::default());
        let mut draft = self.partition.draft(facts);
        if let Some(app) = priority {
            draft.order = DispatchOrder::Priority(vec![app]);
        }
        let words = self.partition.words(facts);
        let name = |app: AppId| facts.apps.get(app.index()).map(|app| app.name.as_str());
        let active = |app: &AppId| self.partition.apps().contains(app);
        let rounded = self.rounded(facts);
        draft.reason = match (self.partition.apps(), priority.filter(active).and_then(name)) {
            ([_], _) => format!("one application is active: {words}{rounded}"),
            (_, Some(name)) => {
                format!("a set part for {name}, the others divide the rest: {words}{rounded}")
            }
            (_, None) => format!("equal parts: {words}"),
        };
        Plan::new(facts, draft)
    }

    /// Where a part differs from its setting, in words.
    fn rounded(&self, facts: &Facts) -> String {
        let (Size::Counts { sms, channels }, Some(app)) = (self.size, self.high) else {
            return String::new();
        };
        let others = self.partition.apps().iter().filter(|&&other| other != app).count();
        // The application has no part yet, or all others have ended and it has everything.
        if !self.partition.apps().contains(&app) || others == 0 && facts.apps.len() > 1 {
            return String::new();
        }
        let (has, whole) = (self.partition.of(app), self.partition.total());
        let each = facts.channels / whole.groups.max(1);
        let kept = if others > 0 { "; each other one keeps some" } else { "" };
        let mut words = String::new();
        if sms > 0 && sms != has.sms {
            words += &format!("; {sms} SMs were set, {} of {} given{kept}", has.sms, whole.sms);
        }
        let given = has.groups * each;
        if self.partition.owns() && channels > 0 && channels != given {
            words += &format!(
                "; {channels} channels were set, {given} of {} given, {each} at a time{kept}",
                facts.channels
            );
        }
        words
    }

    fn divide(&mut self, facts: &Facts) {
        let part = self.part(facts);
        if let (&[app], Size::Counts { .. }) = (self.partition.apps(), self.size)
            && facts.apps.len() == 1
        {
            // The only application of the run has a slice of that size.
            let total = self.partition.total();
            let sms = at_most(part.sms.into(), total.sms);
            let groups = at_most(part.groups.into(), total.groups);
            self.partition.assign(&[(app, Resources { sms, groups })]);
        } else {
            self.partition.divide(self.high.map(|app| (app, part)));
        }
    }
}

impl Scheme for Fixed {
    fn probes(&self, facts: &Facts) -> Result<Vec<Probe>, LawBroken> {
        self.partition.check(facts)?;
        if self.priority.needs_probes() { solo_probes(facts, self.window) } else { Ok(Vec::new()) }
    }

    fn start(&mut self, facts: &Facts, probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        self.high = self.priority.app(facts, &SoloProfiles::new(probes), self.b_mem);
        self.partition.reset(facts);
        self.divide(facts);
        self.plan(facts)
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        if self.partition.update(facts, view) {
            self.divide(facts);
        }
        self.plan(facts)
    }
}

/// What a user may set.
pub(in super::super) const OFFLINE: &[Parameter] = &[
    DELTA_SM,
    DELTA_GROUPS,
    MIN_SMS,
    MIN_GROUPS,
    SMS_PER_CHANNEL,
    ITERATIONS,
    B_MEM,
    PORT_LIMIT,
    WINDOW,
    FREED,
];

/// The most runs of the algorithm, where its result does not become stable.
const RUNS: usize = 1000;

/// UGPU-offline (section 6): the final result of the demand-aware algorithm from equal parts
/// and the counters of solo runs, however many epochs that would take. The run begins with
/// this partition, which changes only when an application arrives or ends; pages stay where
/// they are. The memory that applications fill is not known before they run, so it limits
/// nothing.
#[derive(Clone, Debug)]
struct Offline {
    algorithm: Algorithm,
    window: Option<Cycle>,
    solo_profiles: SoloProfiles,
    partition: Partition,
}

/// UGPU from profiles.
pub(in super::super) fn ugpu_offline(settings: &Settings) -> Box<dyn Scheme> {
    Box::new(Offline {
        algorithm: Algorithm::of(settings),
        window: settings.window(WINDOW.name),
        solo_profiles: SoloProfiles::default(),
        partition: Partition::new(true, FreedSms::of(settings)),
    })
}

impl Offline {
    /// Runs the algorithm to its end; returns why it ended.
    fn settle(&mut self, facts: &Facts) -> String {
        self.partition.divide(None);
        let claim = |&app: &AppId| {
            let demand = self.solo_profiles.demand(facts, app, self.algorithm.b_mem)?;
            Some(self.algorithm.claim(facts, app, demand))
        };
        let claims: Vec<Claim> = self.partition.apps().iter().filter_map(claim).collect();
        if claims.len() < 2 {
            return format!("one application is active: {}", self.partition.words(facts));
        }
        let mut found = self.algorithm.run(facts, &self.partition, &claims);
        let (asked, mut moved) = (found.asked.clone(), found.moved);
        for _ in 1..RUNS {
            self.partition.assign(&found.parts);
            if !found.cut {
                break;
            }
            found = self.algorithm.run(facts, &self.partition, &claims);
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
        self.partition.check(facts)?;
        solo_probes(facts, self.window)
    }

    fn start(&mut self, facts: &Facts, probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        self.solo_profiles = SoloProfiles::new(probes);
        self.partition.reset(facts);
        let reason = self.settle(facts);
        self.plan(facts, reason)
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        let reason = if self.partition.update(facts, view) {
            self.settle(facts)
        } else {
            format!("as before: {}", self.partition.words(facts))
        };
        self.plan(facts, reason)
    }
}
