//! Shares of the machine that several schemes give.

use gpumodel_core::contract::{DispatchOrder, Facts, PlanDraft, Region, Share};
use gpumodel_core::units::AppId;

use super::cta_resources;
use super::solve::Amount;

/// `apps` may fill every SM, all others wait.
pub(super) fn everything(facts: &Facts, apps: &[AppId]) -> Vec<Share> {
    on_each_sm(facts, apps, |_, _| facts.max_ctas_per_sm)
}

/// The SMs divided evenly between `apps`, in their order: neighbours belong
/// together, what cannot be divided goes to the first. All others wait, also those
/// behind the last SM.
pub(super) fn sm_sets(facts: &Facts, apps: &[AppId]) -> Vec<Share> {
    let apps = &apps[..apps.len().min(usize::from(facts.sms))];
    let owners = sm_owners(facts, apps.len());
    on_each_sm(facts, apps, |place, sm| if owners[sm] == place { facts.max_ctas_per_sm } else { 0 })
}

/// For every SM the place of its owner, when `parts` owners divide them evenly.
pub(super) fn sm_owners(facts: &Facts, parts: usize) -> Vec<usize> {
    let sms = usize::from(facts.sms);
    let (each, more) = (sms / parts, sms % parts);
    let sizes = (0..parts).map(|place| each + usize::from(place < more));
    sizes.enumerate().flat_map(|(place, size)| std::iter::repeat_n(place, size)).collect()
}

/// The quota that `ctas` says for each place of `apps` and SM; all others wait.
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

/// `ctas[i]` CTAs of `apps[i]` on every SM, each of at most `needs[i]`. Where all
/// fit, each application has a region of its own, so that none of its CTAs lies in
/// another's way; else they take from the whole.
pub(super) fn sliced_draft(
    facts: &Facts,
    apps: &[AppId],
    ctas: &[u32],
    needs: &[Amount],
) -> PlanDraft {
    let amounts: Vec<Amount> =
        needs.iter().zip(ctas).map(|(need, &ctas)| need.times(ctas)).collect();
    let regions =
        cta_resources::side_by_side(facts, &amounts).map_or_else(Vec::new, |side_by_side| {
            let mut regions = vec![Region::default(); facts.apps.len()];
            for (app, region) in apps.iter().zip(side_by_side) {
                regions[app.index()] = region;
            }
            regions
        });
    let shares = on_each_sm(facts, apps, |place, _| ctas[place]);
    PlanDraft { shares, regions, order: DispatchOrder::RoundRobin, ..PlanDraft::default() }
}

/// How many CTAs each has, in words.
pub(super) fn cta_words(facts: &Facts, apps: &[AppId], ctas: &[u32]) -> String {
    let one = |(app, ctas): (&AppId, &u32)| format!("{ctas} of {}", facts.apps[app.index()].name);
    let each: Vec<String> = apps.iter().zip(ctas).map(one).collect();
    format!("CTAs on every SM: {}", each.join(", "))
}
