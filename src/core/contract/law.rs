//! The laws that every plan keeps.

use thiserror::Error;

use super::{DispatchOrder, Facts, PlanDraft, Region, Share, Vacate};
use crate::units::AppId;

pub(super) fn check(facts: &Facts, draft: &PlanDraft) -> Result<(), LawBroken> {
    let apps = facts.apps.len();
    if draft.shares.len() != apps {
        return Err(LawBroken::ShareCount { expected: apps, found: draft.shares.len() });
    }
    for (index, share) in draft.shares.iter().enumerate() {
        check_share(facts, app_id(index), share)?;
    }
    let runs = |share: &Share| matches!(share, Share::Quota(by_sm) if by_sm.iter().any(|&q| q > 0));
    if !draft.shares.iter().any(runs) && draft.wake.is_empty() {
        return Err(LawBroken::Asleep);
    }
    check_regions(facts, &draft.regions)?;
    check_channels(facts, draft)?;
    check_instances(facts, draft)?;
    check_workers(apps, draft)?;
    check_priority(apps, &draft.order)
}

fn app_id(index: usize) -> AppId {
    AppId(crate::units::to_u16(index))
}

fn check_share(facts: &Facts, app: AppId, share: &Share) -> Result<(), LawBroken> {
    let Share::Quota(by_sm) = share else { return Ok(()) };
    let expected = usize::from(facts.sms);
    if by_sm.len() != expected {
        return Err(LawBroken::QuotaLength { app, expected, found: by_sm.len() });
    }
    let limit = facts.max_ctas_per_sm;
    match by_sm.iter().enumerate().find(|&(_, &quota)| quota > limit) {
        Some((sm, &quota)) => Err(LawBroken::QuotaTooLarge { app, sm, quota, limit }),
        None => Ok(()),
    }
}

fn check_regions(facts: &Facts, regions: &[Region]) -> Result<(), LawBroken> {
    let (expected, found) = (facts.apps.len(), regions.len());
    if found != 0 && found != expected {
        return Err(LawBroken::RegionCount { expected, found });
    }
    let (mut warps, mut ctas) = (0, 0);
    for (index, region) in regions.iter().enumerate() {
        warps += u64::from(region.warps);
        ctas += u64::from(region.ctas);
        let end = |first: u32, length: u32| u64::from(first) + u64::from(length);
        let asked = [
            (end(region.first_register, region.registers), facts.registers_per_sm, "registers"),
            (
                end(region.first_shared_byte, region.shared_bytes),
                facts.shared_bytes_per_sm,
                "shared bytes",
            ),
            (warps, facts.max_warps_per_sm, "warps"),
            (ctas, facts.max_ctas_per_sm, "CTA slots"),
        ];
        if let Some(&(_, _, what)) = asked.iter().find(|(end, most, _)| *end > u64::from(*most)) {
            return Err(LawBroken::RegionTooLarge { app: app_id(index), what });
        }
        let meets = |other: &Region| overlap(region, other);
        if let Some(other) = regions[..index].iter().position(meets) {
            return Err(LawBroken::RegionOverlap(app_id(other), app_id(index)));
        }
    }
    Ok(())
}

fn overlap(one: &Region, other: &Region) -> bool {
    let meet = |(first, length): (u32, u32), (start, span): (u32, u32)| {
        length > 0 && span > 0 && first < start + span && start < first + length
    };
    let registers = |region: &Region| (region.first_register, region.registers);
    let shared = |region: &Region| (region.first_shared_byte, region.shared_bytes);
    meet(registers(one), registers(other)) || meet(shared(one), shared(other))
}

fn check_channels(facts: &Facts, draft: &PlanDraft) -> Result<(), LawBroken> {
    let (expected, found) = (facts.apps.len(), draft.channels.len());
    if found == 0 {
        return Ok(());
    }
    if found != expected {
        return Err(LawBroken::ChannelCount { expected, found });
    }
    let mut owned = vec![false; crate::units::to_usize(facts.channels)];
    for (index, list) in draft.channels.iter().enumerate() {
        let app = app_id(index);
        for &channel in list {
            match owned.get_mut(crate::units::to_usize(channel)) {
                Some(slot) if !*slot => *slot = true,
                _ => return Err(LawBroken::Channel { app, channel }),
            }
        }
        check_groups(facts, app, list)?;
        let runs =
            matches!(&draft.shares[index], Share::Quota(by_sm) if by_sm.iter().any(|&q| q > 0));
        if runs && list.is_empty() {
            return Err(LawBroken::NoChannel(app));
        }
    }
    if draft.migration.stays() || facts.pages_follow { Ok(()) } else { Err(LawBroken::PagesStay) }
}

fn check_instances(facts: &Facts, draft: &PlanDraft) -> Result<(), LawBroken> {
    let instances = &draft.instances;
    if instances.is_empty() {
        return Ok(());
    }
    let Some(mig) = facts.mig.as_ref().filter(|_| instances.len() == facts.apps.len()) else {
        return Err(LawBroken::NoInstances);
    };
    for (index, one) in instances.iter().enumerate() {
        let beyond = u64::from(one.first) + u64::from(one.slices) > u64::from(mig.memory_slices);
        let meets = |other: &super::MemoryInstance| {
            one.first < other.first + other.slices && other.first < one.first + one.slices
        };
        if beyond || instances[..index].iter().any(meets) {
            return Err(LawBroken::Instance(app_id(index)));
        }
        let runs = matches!(&draft.shares[index], Share::Quota(by) if by.iter().any(|&q| q > 0));
        if runs && one.slices == 0 {
            return Err(LawBroken::NoChannel(app_id(index)));
        }
    }
    if draft.channels.is_empty() { Ok(()) } else { Err(LawBroken::NoInstances) }
}

/// Groups of channels are owned whole.
fn check_groups(facts: &Facts, app: AppId, list: &[u32]) -> Result<(), LawBroken> {
    if facts.channel_groups.is_empty() {
        return Err(LawBroken::NoGroups);
    }
    for group in &facts.channel_groups {
        let owned = |channel: &&u32| list.contains(channel);
        let part = group.iter().find(owned);
        if let Some(&channel) = part.filter(|_| !group.iter().all(|c| owned(&c))) {
            return Err(LawBroken::ChannelGroup { app, channel });
        }
    }
    Ok(())
}

fn check_workers(apps: usize, draft: &PlanDraft) -> Result<(), LawBroken> {
    let found = draft.workers.len();
    if found != 0 && found != apps {
        return Err(LawBroken::WorkerCount { expected: apps, found });
    }
    let drained = draft.vacate == Vacate::Drain && draft.time_slice.is_none();
    for (index, workers) in draft.workers.iter().enumerate() {
        let empty = |form: &super::Persistent| form.task_blocks == 0;
        if workers.as_ref().is_some_and(|form| !drained || empty(form)) {
            return Err(LawBroken::Workers(app_id(index)));
        }
    }
    Ok(())
}

fn check_priority(apps: usize, order: &DispatchOrder) -> Result<(), LawBroken> {
    let DispatchOrder::Priority(list) = order else { return Ok(()) };
    let mut seen = vec![false; apps];
    for &app in list {
        match seen.get_mut(app.index()) {
            Some(slot) if !*slot => *slot = true,
            _ => return Err(LawBroken::Priority(app)),
        }
    }
    Ok(())
}

/// Which law a draft breaks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LawBroken {
    /// Shares and applications differ in number.
    #[error("the plan has {found} shares for {expected} applications")]
    ShareCount {
        /// Applications of the run.
        expected: usize,
        /// Shares in the draft.
        found: usize,
    },
    /// A quota list does not cover the SMs.
    #[error("application {app} has quotas for {found} SMs; the machine has {expected}")]
    QuotaLength {
        /// Whose quotas.
        app: AppId,
        /// SMs of the machine.
        expected: usize,
        /// Entries in the list.
        found: usize,
    },
    /// An SM would hold more CTAs than it has slots.
    #[error("application {app} is given {quota} CTAs on SM {sm}; an SM holds {limit}")]
    QuotaTooLarge {
        /// Whose quota.
        app: AppId,
        /// Which SM.
        sm: usize,
        /// The quota.
        quota: u32,
        /// CTA slots of an SM.
        limit: u32,
    },
    /// Regions and applications differ in number.
    #[error("the plan has {found} regions for {expected} applications")]
    RegionCount {
        /// Applications of the run.
        expected: usize,
        /// Regions in the draft.
        found: usize,
    },
    /// A region leaves the SM, or the regions together do.
    #[error("the region of application {app} asks for more {what} than an SM has left")]
    RegionTooLarge {
        /// Whose region.
        app: AppId,
        /// Of what.
        what: &'static str,
    },
    /// Two regions have something in common.
    #[error("the regions of applications {0} and {1} overlap")]
    RegionOverlap(AppId, AppId),
    /// A channel does not exist or has two owners.
    #[error("channel {channel} of application {app} does not exist or is owned twice")]
    Channel {
        /// Whose channel list.
        app: AppId,
        /// Which channel.
        channel: u32,
    },
    /// Channel lists and applications differ in number.
    #[error("the plan has channels for {found} of {expected} applications")]
    ChannelCount {
        /// Applications of the run.
        expected: usize,
        /// Lists in the draft.
        found: usize,
    },
    /// A part of a group of channels is owned.
    #[error("application {app} owns channel {channel}, not those that its pages lie in with it")]
    ChannelGroup {
        /// Whose channel list.
        app: AppId,
        /// A channel of the group.
        channel: u32,
    },
    /// The pages of the machine spread over all channels.
    #[error(
        "channels are owned on machines only whose mapping keeps a page in some of them: \
         translation, and channel bits above the page's, as `ugpu` has (with larger pages, \
         --set dram.mapping=ugpu-8k to ugpu-2m)"
    )]
    NoGroups,
    /// Pages are to follow channels that change hands, and the machine has no real TLBs.
    #[error(
        "pages follow channels that change owner where TLBs learn of it: not with \
         translation.ideal=true, as bp, ugpu-offline and cd-search run too"
    )]
    PagesStay,
    /// An application runs without a channel.
    #[error("application {0} has SMs and no memory channel")]
    NoChannel(AppId),
    /// Instances on a machine without, for another number of applications, or with owned channels.
    #[error(
        "memory slices are owned on machines only that have a section [mig] (a100, h100), one \
         instance for each application"
    )]
    NoInstances,
    /// Two instances have a memory slice in common, or one leaves the machine.
    #[error("the memory slices of application {0} do not exist or belong to another one")]
    Instance(AppId),
    /// A setting of a scheme asks for what the machine or the run lacks.
    #[error("{0}")]
    Setting(String),
    /// Forms as workers and applications differ in number.
    #[error("the plan has forms as workers for {found} of {expected} applications")]
    WorkerCount {
        /// Applications of the run.
        expected: usize,
        /// Forms in the draft.
        found: usize,
    },
    /// A worker can neither be saved nor dropped, and none has empty tasks.
    #[error(
        "application {0} runs as workers: they are only drained, without time slices, and a \
         task has a block at least"
    )]
    Workers(AppId),
    /// A later plan of a run gives an application another form.
    #[error("application {0} is to have another form in the middle of a run")]
    Reformed(AppId),
    /// No application runs and nothing would wake the scheme.
    #[error("no application has a share and no wake condition is set")]
    Asleep,
    /// A priority list names an application twice or one that does not exist.
    #[error("the priority list names application {0} twice or it does not exist")]
    Priority(AppId),
}

#[cfg(test)]
mod tests {
    use super::LawBroken;
    use crate::contract::{AppFacts, Facts, Plan, PlanDraft, Region, Share};
    use crate::units::AppId;

    fn facts() -> Facts {
        let app =
            |n| AppFacts { app: AppId(n), name: format!("a{n}"), arrival: 0, kernels: vec![] };
        Facts {
            sms: 2,
            max_ctas_per_sm: 8,
            max_warps_per_sm: 48,
            registers_per_sm: 32_768,
            shared_bytes_per_sm: 49_152,
            register_unit: 256,
            shared_unit_bytes: 128,
            shared_reserved_bytes: 0,
            channels: 6,
            channel_groups: vec![vec![0, 1], vec![2, 3], vec![4, 5]],
            channel_bytes: 1 << 29,
            page_bytes: 4096,
            pages_follow: true,
            core_mhz: 1400.0,
            peak_dram_gb_per_s: 177.4,
            peak_l2_gb_per_s: 300.0,
            peak_sm_port_gb_per_s: 44.8,
            peak_ipc_per_sm: 64.0,
            schedulers_per_sm: 2,
            mig: None,
            apps: vec![app(0), app(1)],
        }
    }

    fn draft() -> PlanDraft {
        PlanDraft { shares: vec![Share::Quota(vec![8, 1]), Share::Waiting], ..PlanDraft::default() }
    }

    #[test]
    fn a_lawful_plan_tells_its_quotas() {
        let plan = Plan::new(&facts(), draft()).unwrap();
        assert_eq!(plan.quota(AppId(0), 1), 1);
        assert_eq!(plan.quota(AppId(1), 0), 0);
    }

    #[test]
    fn each_law_is_kept() {
        let broken = |change: &dyn Fn(&mut PlanDraft)| {
            let mut draft = draft();
            change(&mut draft);
            Plan::new(&facts(), draft).unwrap_err()
        };
        let missing = broken(&|d| d.shares.truncate(1));
        assert_eq!(missing, LawBroken::ShareCount { expected: 2, found: 1 });
        let long = broken(&|d| d.shares[0] = Share::Quota(vec![1; 3]));
        assert!(matches!(long, LawBroken::QuotaLength { expected: 2, found: 3, .. }));
        let large = broken(&|d| d.shares[1] = Share::Quota(vec![0, 9]));
        assert!(matches!(large, LawBroken::QuotaTooLarge { sm: 1, quota: 9, limit: 8, .. }));
        let twice = broken(&|d| d.channels = vec![vec![0, 1], vec![1]]);
        assert_eq!(twice, LawBroken::Channel { app: AppId(1), channel: 1 });
        let beyond = broken(&|d| d.channels = vec![vec![6], vec![]]);
        assert_eq!(beyond, LawBroken::Channel { app: AppId(0), channel: 6 });
        assert_eq!(broken(&|d| d.shares[0] = Share::Waiting), LawBroken::Asleep);
    }

    #[test]
    fn messages_number_applications_from_1() {
        let (app, other) = (AppId(0), AppId(1));
        let found = [
            LawBroken::QuotaLength { app, expected: 30, found: 15 },
            LawBroken::RegionOverlap(app, other),
            LawBroken::ChannelGroup { app, channel: 3 },
            LawBroken::Priority(app),
        ]
        .map(|law| law.to_string());
        assert!(found.iter().all(|law| law.contains(" number 1 ")), "{found:?}");
        assert!(!found.iter().any(|law| law.contains("AppId")), "{found:?}");
        assert_eq!(found[0], "application number 1 has quotas for 15 SMs; the machine has 30");
    }

    #[test]
    fn channels_are_owned_by_groups_and_by_everyone_who_runs() {
        let broken = |lists: &[&[u32]]| {
            let channels = lists.iter().map(|list| list.to_vec()).collect();
            Plan::new(&facts(), PlanDraft { channels, ..draft() }).unwrap_err()
        };
        assert_eq!(broken(&[&[0, 1]]), LawBroken::ChannelCount { expected: 2, found: 1 });
        assert_eq!(
            broken(&[&[0, 1, 4], &[]]),
            LawBroken::ChannelGroup { app: AppId(0), channel: 4 }
        );
        assert_eq!(broken(&[&[], &[2, 3]]), LawBroken::NoChannel(AppId(0)));
        let spread = Facts { channel_groups: vec![], ..facts() };
        let channels = vec![vec![0, 1], vec![]];
        let owned = PlanDraft { channels, ..draft() };
        assert_eq!(Plan::new(&spread, owned).unwrap_err(), LawBroken::NoGroups);
    }

    #[test]
    fn regions_lie_on_the_sm_side_by_side() {
        let half = Region {
            registers: 16_384,
            shared_bytes: 24_576,
            warps: 24,
            ctas: 4,
            ..Region::default()
        };
        let other = Region { first_register: 16_384, first_shared_byte: 24_576, ..half };
        let plan = |regions: Vec<Region>| Plan::new(&facts(), PlanDraft { regions, ..draft() });
        assert_eq!(plan(vec![half, other]).unwrap().regions(), [half, other]);
        let alone = LawBroken::RegionCount { expected: 2, found: 1 };
        assert_eq!(plan(vec![half]), Err(alone));
        let (one, two) = (AppId(0), AppId(1));
        assert_eq!(plan(vec![half, half]), Err(LawBroken::RegionOverlap(one, two)));
        for (change, what) in [
            (Region { first_register: 16_385, ..other }, "registers"),
            (Region { shared_bytes: 24_577, ..other }, "shared bytes"),
            (Region { warps: 25, ..other }, "warps"),
            (Region { ctas: 5, ..other }, "CTA slots"),
        ] {
            let broken = LawBroken::RegionTooLarge { app: two, what };
            assert_eq!(plan(vec![half, change]), Err(broken));
        }
    }
}
