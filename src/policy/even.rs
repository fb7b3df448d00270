//! An equal part of every SM for each application.

use gpumodel_core::contract::{
    DispatchOrder, Facts, LawBroken, Plan, PlanDraft, ProbeResult, Region, View,
};
use gpumodel_core::units::{AppId, to_u32};

use super::solve::Amount;
use super::{Scheme, shares};

/// Divides registers, shared memory, warps and CTA slots of every SM evenly between the
/// active applications (Warped-Slicer, Fig. 2c), again when one arrives or ends.
///
/// An application whose CTAs are larger than such a part could never run. Then as many of
/// the earliest share as can, and the others wait for one to end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Even;

impl Even {
    fn plan(facts: &Facts, active: &[AppId]) -> Result<Plan, LawBroken> {
        let parts = parts(facts, active);
        let sharing = &active[..parts];
        let mut regions = vec![Region::default(); facts.apps.len()];
        for (place, app) in sharing.iter().enumerate() {
            regions[app.index()] = shares::equal_region(facts, to_u32(place), to_u32(parts));
        }
        let ctas = |place: usize, _| regions[sharing[place].index()].ctas;
        let shares = shares::on_each_sm(facts, sharing, ctas);
        let divided = format!("every SM is divided evenly between {parts} applications");
        let reason = match active.len() - parts {
            0 if parts == 1 => String::from("the only active application has every SM"),
            0 => divided,
            more => format!("{divided}; CTAs of {more} more do not fit smaller parts and wait"),
        };
        let order = DispatchOrder::RoundRobin;
        Plan::new(facts, PlanDraft { shares, order, regions, reason, ..PlanDraft::default() })
    }
}

/// How many of the earliest applications can share, each with a part that holds any of its
/// CTAs; at least one.
fn parts(facts: &Facts, active: &[AppId]) -> usize {
    let need = |app: &AppId| shares::largest_cta(&facts.apps[app.index()].kernels);
    let needs: Vec<Amount> = active.iter().map(need).collect();
    let all_fit = |&parts: &usize| {
        let region = |place| shares::equal_region(facts, to_u32(place), to_u32(parts));
        let mut places = needs[..parts].iter().enumerate();
        places.all(|(place, &need)| shares::region_resources(&region(place)).minus(need).is_some())
    };
    (2..=active.len()).rev().find(all_fit).unwrap_or_else(|| active.len().min(1))
}

impl Scheme for Even {
    fn start(&mut self, facts: &Facts, _probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        Self::plan(facts, &shares::apps_at_start(facts))
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        Self::plan(facts, &shares::active_apps(facts, view))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{KERNELS, facts, view};
    use super::{Even, Scheme, shares};
    use gpumodel_core::contract::{Plan, Share, Wake};
    use gpumodel_core::units::AppId;

    /// CTAs of its first launch that each application's region holds.
    fn held(facts: &gpumodel_core::contract::Facts, plan: &Plan) -> Vec<u64> {
        let need = |index: usize| shares::cta_resources(&facts.apps[index].kernels[0]);
        let regions = plan.regions().iter().enumerate();
        regions
            .map(|(index, part)| shares::region_resources(part).holds(need(index)).unwrap())
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
