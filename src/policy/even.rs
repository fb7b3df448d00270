//! To each application an equal part of every SM.

use gpumodel_core::contract::{
    DispatchOrder, Facts, LawBroken, Plan, PlanDraft, ProbeResult, Region, View,
};
use gpumodel_core::units::{AppId, to_u32};

use super::solve::Amount;
use super::{Scheme, Settings, active_apps, cta_resources, shares};

/// Divides registers, shared memory, warps and CTA slots of every SM evenly
/// between the applications that are there (Warped-Slicer, Fig. 2c), and anew when
/// one comes or ends.
///
/// An application whose CTAs are larger than such a part could never run. Then as
/// many of the earliest share as can, and the others wait for one to end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Even;

impl Even {
    pub(super) fn make(_: &Settings) -> Box<dyn Scheme> {
        Box::new(Self)
    }

    fn plan(facts: &Facts, active_apps: &[AppId]) -> Result<Plan, LawBroken> {
        let parts = sharing(facts, active_apps);
        let sharing = &active_apps[..parts];
        let mut regions = vec![Region::default(); facts.apps.len()];
        for (place, app) in sharing.iter().enumerate() {
            regions[app.index()] = cta_resources::equal_part(facts, to_u32(place), to_u32(parts));
        }
        let shares =
            shares::on_each_sm(facts, sharing, |place, _| regions[sharing[place].index()].ctas);
        let reason = match active_apps.len() - parts {
            0 if parts == 1 => String::from("the only active application has every SM"),
            0 => format!("every SM is divided evenly between {parts} applications"),
            more => format!(
                "every SM is divided evenly between {parts} applications; CTAs of {more} more do not fit smaller parts and wait"
            ),
        };
        let order = DispatchOrder::RoundRobin;
        Plan::new(facts, PlanDraft { shares, order, regions, reason, ..PlanDraft::default() })
    }
}

/// How many of the earliest applications can share: each has a part that holds any
/// of its CTAs. One always can.
fn sharing(facts: &Facts, active_apps: &[AppId]) -> usize {
    let needs: Vec<Amount> = active_apps
        .iter()
        .map(|app| cta_resources::of_any(&facts.apps[app.index()].kernels))
        .collect();
    let all_fit = |&parts: &usize| {
        let part = |place| cta_resources::equal_part(facts, to_u32(place), to_u32(parts));
        let mut places = needs[..parts].iter().enumerate();
        places.all(|(place, &need)| cta_resources::of_region(&part(place)).minus(need).is_some())
    };
    (2..=active_apps.len()).rev().find(all_fit).unwrap_or_else(|| active_apps.len().min(1))
}

impl Scheme for Even {
    fn start(&mut self, facts: &Facts, _probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        Self::plan(facts, &active_apps::at_start(facts))
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        Self::plan(facts, &active_apps::now(facts, view))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{KERNELS, facts, view};
    use super::{Even, Scheme, cta_resources};
    use gpumodel_core::contract::{Plan, Share, Wake};
    use gpumodel_core::units::AppId;

    /// CTAs of its first launch that each application's region holds.
    fn held(facts: &gpumodel_core::contract::Facts, plan: &Plan) -> Vec<u64> {
        let need = |index: usize| cta_resources::of_cta(&facts.apps[index].kernels[0]);
        let regions = plan.regions().iter().enumerate();
        regions
            .map(|(index, part)| cta_resources::of_region(part).holds(need(index)).unwrap())
            .collect()
    }

    #[test]
    fn halves_hold_the_ctas_of_table_iii() {
        for one in KERNELS {
            for other in KERNELS {
                let facts = facts(&[one.0, other.0]);
                let plan = Even.start(&facts, &[]).unwrap();
                let expected = [u64::from(one.5), u64::from(other.5)];
                assert_eq!(held(&facts, &plan), expected, "{} {}", one.0, other.0);
            }
        }
    }

    #[test]
    fn thirds_cover_the_sm_and_the_first_get_the_rest() {
        let facts = facts(&["IMG", "NN", "KNN"]);
        let plan = Even.start(&facts, &[]).unwrap();
        let regions = plan.regions();
        assert_eq!(regions.iter().map(|region| region.ctas).collect::<Vec<_>>(), [3, 3, 2]);
        assert_eq!(regions.iter().map(|region| region.warps).sum::<u32>(), 48);
        assert_eq!(regions.iter().map(|region| region.registers).sum::<u32>(), 32_768);
        assert_eq!(plan.shares()[2], Share::Quota(vec![2; 16]));
    }

    #[test]
    fn large_ctas_share_with_fewer() {
        // A third of 48 warps holds one CTA of BFS (16 warps), a quarter none.
        let three = facts(&["BFS", "IMG", "NN"]);
        assert_eq!(held(&three, &Even.start(&three, &[]).unwrap())[0], 1);
        let four = facts(&["BFS", "IMG", "NN", "MVP"]);
        let plan = Even.start(&four, &[]).unwrap();
        assert_eq!(plan.shares()[3], Share::Waiting);
        assert_eq!(held(&four, &plan)[..3], held(&three, &Even.start(&three, &[]).unwrap())[..]);
        assert!(plan.reason().contains("1 more"), "{}", plan.reason());
        let mut seen = view(&four, 1000, Wake::AppEnd(AppId(0)));
        (seen.apps[0].active, seen.apps[0].finished) = (false, true);
        let after = Even.decide(&four, &seen).unwrap();
        assert_eq!(after.shares()[0], Share::Waiting);
        assert!(held(&four, &after)[1..].iter().all(|&ctas| ctas > 0));
    }
}
