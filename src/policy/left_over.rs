//! Each launch has what the launches before it leave over.

use gpumodel_core::contract::{DispatchOrder, Facts, LawBroken, Plan, PlanDraft, ProbeResult};

use super::{Scheme, shares};

/// Concurrent kernel execution as on GPUs: CTAs are dispatched strictly in the order of
/// the launches, so a launch begins only when the one before it has no CTA left to start
/// (Warped-Slicer, section III).
#[derive(Clone, Copy, Debug)]
pub(super) struct LeftOver;

impl LeftOver {
    pub(super) fn draft(facts: &Facts) -> PlanDraft {
        PlanDraft {
            shares: shares::everything(facts, &shares::in_arrival_order(facts)),
            order: DispatchOrder::InOrder,
            reason: String::from("each launch has what the launches before it leave over"),
            ..PlanDraft::default()
        }
    }
}

impl Scheme for LeftOver {
    fn start(&mut self, facts: &Facts, _probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
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
    fn quotas_are_full_and_the_order_decides() {
        let facts = facts(&["BLK", "IMG", "NN"]);
        let plan = LeftOver.start(&facts, &[]).unwrap();
        assert_eq!(plan.shares(), vec![Share::Quota(vec![8; 16]); 3]);
        assert_eq!(plan.order(), &DispatchOrder::InOrder);
        assert!(plan.regions().is_empty(), "all take from the whole");
        let later = view(&facts, 9000, Wake::AppEnd(AppId(1)));
        assert_eq!(LeftOver.decide(&facts, &later).unwrap(), plan, "it never changes");
    }
}
