//! The owners of SMs and channels, and the application with the high priority.

use gpumodel_core::contract::{DispatchOrder, Facts, LawBroken, PlanDraft, View};
use gpumodel_core::units::{AppId, to_u16, to_u32, to_usize};

use super::super::parameter::PLACE;
use super::super::shares::{self, FreedSms};
use super::super::solve::{Resources, proportion};
use super::super::{Parameter, Settings};
use super::demand::{BMem, SoloProfiles};

/// SMs and groups of channels with their owners. An application that loses some gives those
/// with the highest numbers and keeps the others: few CTAs and pages move.
#[derive(Clone, Debug)]
pub(super) struct Partition {
    /// Channels are owned; otherwise all share all.
    owns: bool,
    freed: FreedSms,
    /// The applications that have a part; those for which no SM or group of channels is left
    /// wait.
    apps: Vec<AppId>,
    sms: Vec<Option<AppId>>,
    groups: Vec<Option<AppId>>,
}

impl Partition {
    pub(super) fn new(owns: bool, freed: FreedSms) -> Self {
        Self { owns, freed, apps: Vec::new(), sms: Vec::new(), groups: Vec::new() }
    }

    /// Channels are owned.
    pub(super) fn owns(&self) -> bool {
        self.owns
    }

    /// Refuses a machine without groups of channels that can be owned, before anything runs.
    pub(super) fn check(&self, facts: &Facts) -> Result<(), LawBroken> {
        let lacks = self.owns && facts.channel_groups.is_empty();
        if lacks { Err(LawBroken::NoGroups) } else { Ok(()) }
    }

    /// The applications that have a part, in arrival order.
    pub(super) fn apps(&self) -> &[AppId] {
        &self.apps
    }

    /// Those of them that have not ended.
    pub(super) fn running(&self, view: &View) -> Vec<AppId> {
        let ended = |app: &AppId| view.apps[app.index()].finished;
        self.apps.iter().copied().filter(|app| !ended(app)).collect()
    }

    /// The most applications that can have a part: one for each SM and group of channels.
    /// Without groups of channels the plan is refused.
    fn most(&self, facts: &Facts) -> usize {
        let groups = if self.owns { facts.channel_groups.len() } else { 0 };
        let sms = usize::from(facts.sms);
        if groups == 0 { sms } else { sms.min(groups) }
    }

    /// A run begins: no SM and no channel has an owner.
    pub(super) fn reset(&mut self, facts: &Facts) {
        self.apps = shares::apps_at_start(facts);
        self.apps.truncate(self.most(facts));
        self.sms = vec![None; usize::from(facts.sms)];
        self.groups = vec![None; if self.owns { facts.channel_groups.len() } else { 0 }];
    }

    /// Takes the active applications of a view; true where others have a part than before.
    /// The SMs and channels of applications without a part become free.
    pub(super) fn update(&mut self, facts: &Facts, view: &View) -> bool {
        let mut now = self.freed.owners(&self.apps, facts, view);
        now.truncate(self.most(facts));
        let changed = now != self.apps;
        self.apps = now;
        for owner in self.sms.iter_mut().chain(&mut self.groups) {
            owner.take_if(|app| !self.apps.contains(app));
        }
        changed
    }

    /// What an application has.
    pub(super) fn of(&self, app: AppId) -> Resources {
        Resources { sms: held(&self.sms, app), groups: held(&self.groups, app) }
    }

    /// All SMs and groups of channels.
    pub(super) fn total(&self) -> Resources {
        Resources { sms: to_u32(self.sms.len()), groups: to_u32(self.groups.len()) }
    }

    /// Assigns these parts; other applications keep what they have.
    pub(super) fn assign(&mut self, parts: &[(AppId, Resources)]) {
        let sms: Vec<(AppId, u32)> = parts.iter().map(|(app, part)| (*app, part.sms)).collect();
        let groups: Vec<(AppId, u32)> =
            parts.iter().map(|(app, part)| (*app, part.groups)).collect();
        assign(&mut self.sms, &sms);
        assign(&mut self.groups, &groups);
    }

    /// Equal parts for all, the first with what cannot be divided. The application with the
    /// priority has its part first where that is not 0, with at least one left for each other.
    pub(super) fn divide(&mut self, priority: Option<(AppId, Resources)>) {
        let whole = self.total();
        let place = |app: AppId| self.apps.iter().position(|&other| other == app);
        let found = priority.and_then(|(app, part)| Some((place(app)?, part)));
        let sms = divide(whole.sms, self.apps.len(), found.map(|(app, part)| (app, part.sms)));
        let groups =
            divide(whole.groups, self.apps.len(), found.map(|(app, part)| (app, part.groups)));
        let part = |place: usize| Resources { sms: sms[place], groups: groups[place] };
        let parts: Vec<_> = self.apps.iter().enumerate().map(|(n, &app)| (app, part(n))).collect();
        self.assign(&parts);
    }

    /// The plan with these owners.
    pub(super) fn draft(&self, facts: &Facts) -> PlanDraft {
        let owns = |place: usize, sm: usize| self.sms[sm] == Some(self.apps[place]);
        let shares = shares::on_own_sms(facts, &self.apps, owns);
        let owned = |app: AppId| {
            let groups = self.groups.iter().zip(&facts.channel_groups);
            let groups = groups.filter(|(owner, _)| **owner == Some(app));
            let mut channels: Vec<u32> = groups.flat_map(|(_, group)| group).copied().collect();
            channels.sort_unstable();
            channels
        };
        let apps = facts.apps.iter().filter(|_| self.owns);
        let channels = apps.map(|app| owned(app.app)).collect();
        let order = DispatchOrder::RoundRobin;
        PlanDraft { shares, channels, order, ..PlanDraft::default() }
    }

    /// The part of each, in words.
    pub(super) fn words(&self, facts: &Facts) -> String {
        let each = facts.channels / to_u32(self.groups.len().max(1));
        let words = |app: &AppId| {
            let (part, name) = (self.of(*app), &facts.apps[app.index()].name);
            let channels = part.groups * each;
            let sms = if part.sms == 1 { "SM" } else { "SMs" };
            if self.owns {
                let plural = if channels == 1 { "" } else { "s" };
                format!("{name} has {} {sms} and {channels} channel{plural}", part.sms)
            } else {
                format!("{name} has {} {sms}", part.sms)
            }
        };
        self.apps.iter().map(words).collect::<Vec<_>>().join(", ")
    }
}

fn held(owners: &[Option<AppId>], app: AppId) -> u32 {
    to_u32(owners.iter().filter(|owner| **owner == Some(app)).count())
}

/// Gives owners as many as `wants` says: first the surplus of each becomes free, from the
/// highest number down, then the lowest free ones are taken.
fn assign(owners: &mut [Option<AppId>], wants: &[(AppId, u32)]) {
    for &(app, want) in wants {
        let surplus = held(owners, app).saturating_sub(want);
        let owned = owners.iter_mut().rev().filter(|owner| **owner == Some(app));
        owned.take(to_usize(surplus)).for_each(|owner| *owner = None);
    }
    for &(app, want) in wants {
        let lack = want.saturating_sub(held(owners, app));
        let free = owners.iter_mut().filter(|owner| owner.is_none());
        free.take(to_usize(lack)).for_each(|owner| *owner = Some(app));
    }
}

/// `total` in equal parts, of which one, by its place, may be set.
fn divide(total: u32, parts: usize, set: Option<(usize, u32)>) -> Vec<u32> {
    let evenly = |total: u32, parts: usize| -> Vec<u32> {
        // Less than one for each, or no parts.
        if usize::try_from(total).is_ok_and(|total| total < parts) || parts == 0 {
            return vec![0; parts];
        }
        proportion(total.into(), &vec![1; parts]).into_iter().map(to_u32).collect()
    };
    let set = set.filter(|&(_, want)| parts > 1 && want > 0);
    let Some((place, want)) = set else { return evenly(total, parts) };
    let own = want.clamp(1, total.saturating_sub(to_u32(parts - 1)).max(1)).min(total);
    let mut found = evenly(total - own, parts - 1);
    found.insert(place, own);
    found
}

pub(super) const HIGH: Parameter = Parameter::whole(PLACE, 0, 0..=65_535).does(
    "the high-priority application, by its place from 1; 0: the most compute-bound alone \
              (published)",
);

pub(super) const TARGET: Parameter = Parameter::real("target", 0.75, 0.01..=1.0)
    .does("what it keeps: of its solo performance, of the SMs, of the channels (published)");

/// The application with the high priority (section 6.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PriorityApp {
    /// The user has named it.
    App(AppId),
    /// The one that is most compute-bound alone.
    ComputeBound,
}

impl PriorityApp {
    pub(super) fn of(settings: &Settings) -> Self {
        match settings.whole(HIGH.name) {
            0 => Self::ComputeBound,
            place => Self::App(AppId(to_u16(place - 1))),
        }
    }

    /// It is found by solo runs.
    pub(super) fn needs_probes(self) -> bool {
        self == Self::ComputeBound
    }

    /// The application; `None`: it is the only one, or none executes an instruction.
    pub(super) fn app(self, facts: &Facts, solo: &SoloProfiles, b_mem: BMem) -> Option<AppId> {
        match self {
            Self::App(app) => Some(app),
            Self::ComputeBound => solo.most_compute_bound(facts, b_mem),
        }
    }
}

/// A part of the machine, rounded up: three quarters of 80 SMs and 8 groups of channels
/// are 60 and 6.
pub(super) fn part(whole: Resources, part: f64) -> Resources {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of a u32 is one"
    )]
    let of = |total: u32| (f64::from(total) * part - ROUNDING).ceil() as u32;
    Resources { sms: of(whole.sms), groups: of(whole.groups) }
}

/// The most by which a product of decimal fractions is too large.
const ROUNDING: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::{Partition, divide, part};
    use crate::fixture::{ugpu_facts as facts, view};
    use crate::shares::FreedSms;
    use crate::solve::Resources;
    use gpumodel_core::contract::{Plan, Wake};
    use gpumodel_core::units::AppId;

    fn resources(sms: u32, groups: u32) -> Resources {
        Resources { sms, groups }
    }

    #[test]
    fn the_whole_is_divided() {
        assert_eq!(divide(80, 3, None), [27, 27, 26]);
        assert_eq!(divide(80, 3, Some((1, 60))), [10, 60, 10]);
        assert_eq!(divide(8, 4, Some((3, 6))), [1, 1, 1, 5], "one for each other");
        assert_eq!(divide(8, 1, Some((0, 6))), [8]);
        assert_eq!(divide(80, 2, Some((0, 0))), [40, 40]);
        assert_eq!(divide(0, 2, Some((0, 6))), [0, 0]);
    }

    #[test]
    fn an_application_that_loses_some_gives_the_last_ones() {
        let facts = facts(&["PVC", "DXTC", "CP"]);
        let mut partition = Partition::new(true, FreedSms::Given);
        partition.reset(&facts);
        partition.divide(None);
        let before = partition.draft(&facts);
        assert_eq!(before.channels[0], [0, 1, 2, 8, 9, 10, 16, 17, 18, 24, 25, 26]);
        partition.assign(&[(AppId(0), resources(20, 4)), (AppId(1), resources(34, 2))]);
        let after = partition.draft(&facts);
        assert_eq!(partition.of(AppId(0)), resources(20, 4));
        assert_eq!(partition.of(AppId(2)), resources(26, 2), "was not asked");
        for channel in &before.channels[0] {
            assert!(after.channels[0].contains(channel), "{channel}");
        }
        assert_eq!(after.channels[1], [3, 4, 11, 12, 19, 20, 27, 28]);
        let owner = |sm: usize| partition.sms[sm];
        assert_eq!([19, 20, 26, 27, 53].map(owner), [0, 1, 1, 1, 1].map(|app| Some(AppId(app))));
        assert!(Plan::new(&facts, after).is_ok());
    }

    #[test]
    fn an_ended_application_leaves_everything_to_the_others() {
        let facts = facts(&["PVC", "DXTC", "CP"]);
        let mut partition = Partition::new(true, FreedSms::Given);
        partition.reset(&facts);
        partition.divide(None);
        let before = partition.draft(&facts);
        let mut seen = view(&facts, 1000, Wake::AppEnd(AppId(1)));
        assert!(!partition.update(&facts, &seen), "all are still there");
        (seen.apps[1].active, seen.apps[1].finished) = (false, true);
        assert!(partition.update(&facts, &seen));
        partition.divide(None);
        let after = partition.draft(&facts);
        assert_eq!(partition.of(AppId(0)), resources(40, 4));
        assert!(after.channels[1].is_empty());
        for app in [0, 2] {
            assert!(
                before.channels[app].iter().all(|channel| after.channels[app].contains(channel))
            );
        }
    }

    #[test]
    fn a_part_is_rounded_up_and_three_quarters_are_the_papers() {
        let whole = Resources { sms: 80, groups: 8 };
        assert_eq!(part(whole, 0.75), Resources { sms: 60, groups: 6 });
        assert_eq!(part(whole, 0.7), Resources { sms: 56, groups: 6 });
        assert_eq!(part(whole, 0.0), Resources::default());
        assert_eq!(part(whole, 1.0), whole);
    }
}
