//! Plans in which every SM is sliced alike.

use gpumodel_core::contract::{DispatchOrder, Facts, PlanDraft, Region};
use gpumodel_core::units::AppId;

use super::solve::Amount;
use super::{room, shares};

/// `ctas[i]` CTAs of `apps[i]` on every SM, each of at most `needs[i]`. Where all
/// fit, each application has a region of its own, so that none of its CTAs lies in
/// another's way; else they take from the whole.
pub(super) fn draft(facts: &Facts, apps: &[AppId], ctas: &[u32], needs: &[Amount]) -> PlanDraft {
    let amounts: Vec<Amount> =
        needs.iter().zip(ctas).map(|(need, &ctas)| need.times(ctas)).collect();
    let regions = room::side_by_side(facts, &amounts).map_or_else(Vec::new, |side_by_side| {
        let mut regions = vec![Region::default(); facts.apps.len()];
        for (app, region) in apps.iter().zip(side_by_side) {
            regions[app.index()] = region;
        }
        regions
    });
    let shares = shares::on_each_sm(facts, apps, |place, _| ctas[place]);
    PlanDraft { shares, regions, order: DispatchOrder::RoundRobin, ..PlanDraft::default() }
}

/// How many CTAs each has, in words.
pub(super) fn words(facts: &Facts, apps: &[AppId], ctas: &[u32]) -> String {
    let one = |(app, ctas): (&AppId, &u32)| format!("{ctas} of {}", facts.apps[app.index()].name);
    let each: Vec<String> = apps.iter().zip(ctas).map(one).collect();
    format!("CTAs on every SM: {}", each.join(", "))
}
