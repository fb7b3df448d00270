//! What several schemes share: which applications run, and their shares of the machine and of
//! an SM.

use gpumodel_core::contract::{
    DispatchOrder, Facts, KernelFacts, LawBroken, Plan, PlanDraft, Probe, Region, Share, View,
};
use gpumodel_core::units::{AppId, Cycle, WARP_LANES, to_u16, to_u64};

use super::solve::Amount;
use super::{Parameter, Settings};

/// All applications, the earliest arrival first, then in the order of their ids.
pub(super) fn in_arrival_order(facts: &Facts) -> Vec<AppId> {
    let mut all: Vec<AppId> = (0..facts.apps.len()).map(|index| AppId(to_u16(index))).collect();
    all.sort_by_key(|app| facts.apps[app.index()].arrival);
    all
}

/// The applications that are active when a run starts: the first to arrive.
pub(super) fn apps_at_start(facts: &Facts) -> Vec<AppId> {
    let mut all = in_arrival_order(facts);
    let arrival = |app: AppId| facts.apps[app.index()].arrival;
    let first = all.first().map(|&app| arrival(app));
    all.retain(|&app| Some(arrival(app)) == first);
    all
}

/// The applications that have arrived and not finished, in arrival order. Where none has,
/// those that are still to come, and after the last end all: a plan has at least one.
pub(super) fn active_apps(facts: &Facts, view: &View) -> Vec<AppId> {
    let all = in_arrival_order(facts);
    let kept = |keep: &dyn Fn(&AppId) -> bool| -> Vec<AppId> {
        all.iter().copied().filter(|app| keep(app)).collect()
    };
    let active = kept(&|app| view.apps[app.index()].active);
    if !active.is_empty() {
        return active;
    }
    let coming = kept(&|app| !view.apps[app.index()].finished);
    if coming.is_empty() { all } else { coming }
}

/// The parameter of all schemes under which an application has SMs to itself.
pub(super) const FREED: Parameter = Parameter::word("freed", GIVEN, &[GIVEN, IDLE])
    .does("SMs of an application that has ended: given to the others, or idle");

const GIVEN: &str = "given";
const IDLE: &str = "idle";

/// What happens to the SMs of an application that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FreedSms {
    /// All SMs are divided again between the others.
    #[default]
    Given,
    /// They stay idle until another application arrives; then all are divided again.
    Idle,
}

impl FreedSms {
    pub(super) fn of(settings: &Settings) -> Self {
        if settings.word(FREED.name) == IDLE { Self::Idle } else { Self::Given }
    }

    /// The applications that divide the SMs, in arrival order and at most one for each SM;
    /// `before` are those that divided them until now.
    pub(super) fn owners(self, before: &[AppId], facts: &Facts, view: &View) -> Vec<AppId> {
        let mut now = active_apps(facts, view);
        now.truncate(usize::from(facts.sms));
        let known = now.iter().all(|app| before.contains(app));
        if self == Self::Idle && known { before.to_vec() } else { now }
    }
}

/// `apps` may fill every SM, all others wait.
pub(super) fn everything(facts: &Facts, apps: &[AppId]) -> Vec<Share> {
    on_each_sm(facts, apps, |_, _| facts.max_ctas_per_sm)
}

/// Full quotas of `apps` on the SMs that `owns` names by their place in `apps`; all others wait.
pub(super) fn on_own_sms(
    facts: &Facts,
    apps: &[AppId],
    owns: impl Fn(usize, usize) -> bool,
) -> Vec<Share> {
    let full = facts.max_ctas_per_sm;
    on_each_sm(facts, apps, |place, sm| if owns(place, sm) { full } else { 0 })
}

/// For every SM the place of its owner when `parts` owners divide the SMs evenly: each has
/// neighbours, and the first have one more.
pub(super) fn sm_owners(facts: &Facts, parts: usize) -> Vec<usize> {
    let sms = usize::from(facts.sms);
    let (each, more) = (sms / parts, sms % parts);
    let sizes = (0..parts).map(|place| each + usize::from(place < more));
    sizes.enumerate().flat_map(|(place, size)| std::iter::repeat_n(place, size)).collect()
}

/// The quota that `ctas` returns for each place of `apps` and SM; all others wait.
pub(super) fn on_each_sm(
    facts: &Facts,
    apps: &[AppId],
    ctas: impl Fn(usize, usize) -> u32,
) -> Vec<Share> {
    let mut shares = vec![Share::Waiting; facts.apps.len()];
    for (place, app) in apps.iter().enumerate() {
        let quota = (0..usize::from(facts.sms)).map(|sm| ctas(place, sm)).collect();
        shares[app.index()] = Share::Quota(quota);
    }
    shares
}

/// `ctas[i]` CTAs of `apps[i]` on every SM, each of at most `needs[i]`. Where all fit, each
/// application has its own region, so that no CTA fragments the space of another
/// application; else all allocate from the whole SM.
pub(super) fn sliced_draft(
    facts: &Facts,
    apps: &[AppId],
    ctas: &[u32],
    needs: &[Amount],
) -> PlanDraft {
    let amounts: Vec<Amount> =
        needs.iter().zip(ctas).map(|(need, &ctas)| need.times(ctas)).collect();
    let mut regions = Vec::new();
    if let Some(adjacent) = adjacent_regions(facts, &amounts) {
        regions.resize(facts.apps.len(), Region::default());
        for (app, region) in apps.iter().zip(adjacent) {
            regions[app.index()] = region;
        }
    }
    let shares = on_each_sm(facts, apps, |place, _| ctas[place]);
    PlanDraft { shares, regions, order: DispatchOrder::RoundRobin, ..PlanDraft::default() }
}

/// How many CTAs each has, in words.
pub(super) fn cta_words(facts: &Facts, apps: &[AppId], ctas: &[u32]) -> String {
    let one = |(app, ctas): (&AppId, &u32)| format!("{ctas} of {}", facts.apps[app.index()].name);
    let each: Vec<String> = apps.iter().zip(ctas).map(one).collect();
    format!("CTAs on every SM: {}", each.join(", "))
}

/// A run of one application under a draft, for at most `window` cycles.
pub(super) fn solo_probe(
    facts: &Facts,
    app: AppId,
    window: Option<Cycle>,
    draft: PlanDraft,
) -> Result<Probe, LawBroken> {
    Ok(Probe { apps: vec![app], plan: Plan::new(facts, draft)?, window, race: false })
}

/// The resources of an SM.
pub(super) fn sm_resources(facts: &Facts) -> Amount {
    Amount {
        registers: u64::from(facts.registers_per_sm),
        shared_bytes: u64::from(facts.shared_bytes_per_sm),
        threads: u64::from(facts.max_warps_per_sm) * to_u64(WARP_LANES),
        warps: u64::from(facts.max_warps_per_sm),
        cta_slots: u64::from(facts.max_ctas_per_sm),
    }
}

/// What a CTA of a launch takes.
pub(super) fn cta_resources(kernel: &KernelFacts) -> Amount {
    Amount {
        registers: u64::from(kernel.registers_per_cta),
        shared_bytes: u64::from(kernel.shared_bytes_per_cta),
        threads: u64::from(kernel.threads_per_cta),
        warps: u64::from(kernel.warps_per_cta),
        cta_slots: 1,
    }
}

/// The most of each resource that a CTA of any of the launches takes.
pub(super) fn largest_cta<'a>(kernels: impl IntoIterator<Item = &'a KernelFacts>) -> Amount {
    kernels.into_iter().map(cta_resources).fold(Amount::default(), Amount::most)
}

/// The resources of a region.
pub(super) fn region_resources(region: &Region) -> Amount {
    Amount {
        registers: u64::from(region.registers),
        shared_bytes: u64::from(region.shared_bytes),
        threads: u64::from(region.warps) * to_u64(WARP_LANES),
        warps: u64::from(region.warps),
        cta_slots: u64::from(region.ctas),
    }
}

/// Region `place` of `parts` equal ones of an SM; the first have what cannot be divided.
pub(super) fn equal_region(facts: &Facts, place: u32, parts: u32) -> Region {
    let begin = |total: u32, place: u32| {
        let begin = (u64::from(total) * u64::from(place)).div_ceil(u64::from(parts));
        u32::try_from(begin).expect("a part lies within the whole")
    };
    let length = |total: u32| begin(total, place + 1) - begin(total, place);
    Region {
        first_register: begin(facts.registers_per_sm, place),
        registers: length(facts.registers_per_sm),
        first_shared_byte: begin(facts.shared_bytes_per_sm, place),
        shared_bytes: length(facts.shared_bytes_per_sm),
        warps: length(facts.max_warps_per_sm),
        ctas: length(facts.max_ctas_per_sm),
    }
}

/// Regions of these sizes, one after the other from the low end; `None` when they do not
/// all fit an SM.
fn adjacent_regions(facts: &Facts, amounts: &[Amount]) -> Option<Vec<Region>> {
    let (mut left, mut first) = (sm_resources(facts), Amount::default());
    let small = |amount: u64| u32::try_from(amount).expect("it fits an SM");
    let mut regions = Vec::with_capacity(amounts.len());
    for &amount in amounts {
        left = left.minus(amount)?;
        regions.push(Region {
            first_register: small(first.registers),
            registers: small(amount.registers),
            first_shared_byte: small(first.shared_bytes),
            shared_bytes: small(amount.shared_bytes),
            warps: small(amount.warps),
            ctas: small(amount.cta_slots),
        });
        first = first.plus(amount);
    }
    Some(regions)
}
