//! Slices of the machine that do not follow what applications ask for.

use gpumodel_core::contract::{DispatchOrder, Facts, LawBroken, Plan, Probe, ProbeResult, View};
use gpumodel_core::units::{AppId, Cycle, to_u32};

use super::super::parameter::PLACE;
use super::super::solve::Resources;
use super::super::vacated::{FREED, Vacated};
use super::super::{Kind, Parameter, Scheme, Settings};
use super::alone::{self, Alone, WINDOW};
use super::demand::B_MEM;
use super::favoured::{self, Favoured, HIGH, TARGET};
use super::partition::Partition;
use super::refuse;

const FIRST: Parameter = Parameter {
    name: PLACE,
    kind: Kind::Whole { default: 1, least: 1, most: 65_535 },
    summary: "whose SMs and channels are set, by its place from 1",
};

const SMS: Parameter = Parameter {
    name: "sms",
    kind: Kind::Whole { default: 0, least: 0, most: 65_535 },
    summary: "its SMs, the others divide the rest; 0: all have equally many (published: 60 of 80)",
};

/// What a user may set of `bp`.
pub(in super::super) const BALANCED: &[Parameter] = &[
    SMS,
    Parameter {
        name: "channels",
        kind: Kind::Whole { default: 0, least: 0, most: 65_535 },
        summary: "its channels, whole groups of them; 0: all have equally many (published)",
    },
    FIRST,
    FREED,
];

/// What a user may set of `bp-bs` and `bp-sb`.
pub(in super::super) const UNEQUAL: &[Parameter] = &[FREED];

/// What a user may set of `mps-share`.
pub(in super::super) const SHARED: &[Parameter] = &[SMS, FIRST, FREED];

/// What a user may set of `qos-bp` and `qos-mps-share`.
pub(in super::super) const PROMISED: &[Parameter] = &[TARGET, HIGH, B_MEM, WINDOW, FREED];

/// The larger part of `bp-bs` and `bp-sb`: 60 of 80 SMs, 24 of 32 channels (section 6).
const LARGER: f64 = 0.75;

/// How much who is favoured has.
#[derive(Clone, Copy, Debug)]
enum Size {
    /// So many SMs and channels; of what is 0, as much as everybody.
    Counts { sms: u32, channels: u32 },
    /// This part of the machine.
    Part(f64),
}

/// Gives each application SMs of its own, and where channels are owned some of those,
/// and changes that only when one comes or ends: the balanced partition and what UGPU is
/// compared with (section 6). Pages stay where they are: such a GPU cannot move them.
#[derive(Clone, Debug)]
struct Fixed {
    favoured: Favoured,
    size: Size,
    b_mem: f64,
    window: Option<Cycle>,
    high: Option<AppId>,
    partition: Partition,
}

/// BP: equal SMs and channels for all, or as many as are set for one.
pub(in super::super) fn bp(settings: &Settings) -> Box<dyn Scheme> {
    let small = |name: &str| to_u32(settings.whole(name));
    let size = Size::Counts { sms: small(SMS.name), channels: small("channels") };
    Fixed::set(settings, Favoured::of(settings), size, true)
}

/// BP-BS: three quarters for the first of two applications.
pub(in super::super) fn bp_bs(settings: &Settings) -> Box<dyn Scheme> {
    Fixed::set(settings, Favoured::App(AppId(0)), Size::Part(LARGER), true)
}

/// BP-SB: three quarters for the second of two applications.
pub(in super::super) fn bp_sb(settings: &Settings) -> Box<dyn Scheme> {
    Fixed::set(settings, Favoured::App(AppId(1)), Size::Part(LARGER), true)
}

/// MPS as UGPU understands it: SMs for each, and the memory for all.
pub(in super::super) fn mps_share(settings: &Settings) -> Box<dyn Scheme> {
    let size = Size::Counts { sms: to_u32(settings.whole(SMS.name)), channels: 0 };
    Fixed::set(settings, Favoured::of(settings), size, false)
}

/// QoS-aware BP: three quarters for the application with the high priority.
pub(in super::super) fn qos_bp(settings: &Settings) -> Box<dyn Scheme> {
    Fixed::promised(settings, true)
}

/// MPS with three quarters of the SMs for the application with the high priority.
pub(in super::super) fn qos_mps_share(settings: &Settings) -> Box<dyn Scheme> {
    Fixed::promised(settings, false)
}

impl Fixed {
    fn set(settings: &Settings, favoured: Favoured, size: Size, owns: bool) -> Box<dyn Scheme> {
        let partition = Partition::new(owns, Vacated::of(settings));
        Box::new(Self { favoured, size, b_mem: 1.0, window: None, high: None, partition })
    }

    fn promised(settings: &Settings, owns: bool) -> Box<dyn Scheme> {
        Box::new(Self {
            favoured: Favoured::of(settings),
            size: Size::Part(settings.real(TARGET.name)),
            b_mem: settings.real(B_MEM.name),
            window: alone::window(settings),
            high: None,
            partition: Partition::new(owns, Vacated::of(settings)),
        })
    }

    /// What the favoured one has.
    fn part(&self, facts: &Facts) -> Resources {
        let whole = self.partition.whole();
        match self.size {
            Size::Part(part) => favoured::part(whole, part),
            Size::Counts { sms, channels } => {
                let each = facts.channels / whole.groups.max(1);
                let groups = (channels / each.max(1)).max(channels.min(1));
                Resources { sms, groups }
            }
        }
    }

    fn plan(&mut self, facts: &Facts) -> Result<Plan, LawBroken> {
        let part = self.part(facts);
        let favoured = self.high.filter(|_| part != Resources::default());
        let mut draft = self.partition.draft(facts);
        if let Some(app) = favoured {
            draft.order = DispatchOrder::Priority(vec![app]);
        }
        let words = self.partition.words(facts);
        let name = |app: AppId| facts.apps.get(app.index()).map(|app| app.name.as_str());
        let there = |app: &AppId| self.partition.apps().contains(app);
        let rounded = self.rounded(facts);
        draft.reason = match (self.partition.apps(), favoured.filter(there).and_then(name)) {
            ([_], _) => format!("one application is there: {words}{rounded}"),
            (_, Some(name)) => {
                format!("a set part for {name}, the others divide the rest: {words}{rounded}")
            }
            (_, None) => format!("equal parts: {words}"),
        };
        Plan::new(facts, draft)
    }

    /// What was set and cannot be, in words.
    fn rounded(&self, facts: &Facts) -> String {
        let (Size::Counts { sms, channels }, Some(app)) = (self.size, self.high) else {
            return String::new();
        };
        let others = self.partition.apps().iter().filter(|&&other| other != app).count();
        // Who has no part yet, and who is left behind others and has everything.
        if !self.partition.apps().contains(&app) || others == 0 && facts.apps.len() > 1 {
            return String::new();
        }
        let (has, whole) = (self.partition.of(app), self.partition.whole());
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
        match (self.partition.apps(), self.size) {
            // Alone from beginning to end: on a slice of that size.
            (&[app], Size::Counts { .. }) if facts.apps.len() == 1 => {
                let whole = self.partition.whole();
                let some = |set: u32, all: u32| if set == 0 { all } else { set.min(all) };
                let (sms, groups) = (some(part.sms, whole.sms), some(part.groups, whole.groups));
                self.partition.give(&[(app, Resources { sms, groups })]);
            }
            _ => self.partition.divide(self.high.map(|app| (app, part))),
        }
    }
}

impl Scheme for Fixed {
    fn probes(&self, facts: &Facts) -> Result<Vec<Probe>, LawBroken> {
        refuse(facts, self.partition.owns())?;
        if self.favoured.asks() { alone::probes(facts, self.window) } else { Ok(Vec::new()) }
    }

    fn start(&mut self, facts: &Facts, probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        self.high = self.favoured.app(facts, &Alone::new(probes), self.b_mem);
        self.partition.begin(facts);
        self.divide(facts);
        self.plan(facts)
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        if self.partition.follow(facts, view) {
            self.divide(facts);
        }
        self.plan(facts)
    }
}
