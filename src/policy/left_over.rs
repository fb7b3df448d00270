//! What the first leaves over, the next may have.

use gpumodel_core::contract::{
    DispatchOrder, Facts, LawBroken, Plan, PlanDraft, ProbeResult, View,
};

use super::{Scheme, Settings, active_apps, shares};

/// Concurrent kernel execution as GPUs have it: CTAs are dispatched strictly in
/// the order of the launches, so the next begins only when the one before it has
/// no CTA left to start (Warped-Slicer, section III).
#[derive(Clone, Copy, Debug, Default)]
pub struct LeftOver;

impl LeftOver {
    pub(super) fn make(_: &Settings) -> Box<dyn Scheme> {
        Box::new(Self)
    }

    pub(super) fn draft(facts: &Facts) -> PlanDraft {
        PlanDraft {
            shares: shares::everything(facts, &active_apps::in_arrival_order(facts)),
            order: DispatchOrder::InOrder,
            reason: String::from("the next launch has what the ones before it leave over"),
            ..PlanDraft::default()
        }
    }
}

impl Scheme for LeftOver {
    fn start(&mut self, facts: &Facts, _probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        Plan::new(facts, Self::draft(facts))
    }

    fn decide(&mut self, facts: &Facts, _view: &View) -> Result<Plan, LawBroken> {
        Plan::new(facts, Self::draft(facts))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, view};
    use super::{DispatchOrder, LeftOver, Scheme};
    use gpumodel_core::contract::{Share, Wake};
    use gpumodel_core::units::AppId;

    #[test]
    fn nobody_has_a_quota_and_the_order_decides() {
        let facts = facts(&["BLK", "IMG", "NN"]);
        let plan = LeftOver.start(&facts, &[]).unwrap();
        assert_eq!(plan.shares(), vec![Share::Quota(vec![8; 16]); 3]);
        assert_eq!(plan.order(), &DispatchOrder::InOrder);
        assert!(plan.regions().is_empty(), "all take from the whole");
        let later = view(&facts, 9000, Wake::AppEnd(AppId(1)));
        assert_eq!(LeftOver.decide(&facts, &later).unwrap(), plan, "it never changes");
    }
}
