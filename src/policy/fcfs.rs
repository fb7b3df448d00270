//! First come, first served.

use gpumodel_core::contract::{DispatchOrder, Facts, LawBroken, Plan, PlanDraft, ProbeResult};

use super::{Scheme, shares};

/// CTAs of all applications are dispatched in turn, each to an SM where it fits, so their
/// registers and shared bytes are interleaved and leave gaps (Warped-Slicer, Fig. 2a).
#[derive(Clone, Copy, Debug)]
pub(super) struct Fcfs;

impl Scheme for Fcfs {
    fn start(&mut self, facts: &Facts, _probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        let shares = shares::everything(facts, &shares::in_arrival_order(facts));
        let reason = String::from("CTAs of all applications in turn, each to an SM where it fits");
        let order = DispatchOrder::RoundRobin;
        Plan::new(facts, PlanDraft { shares, order, reason, ..PlanDraft::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, view};
    use super::{DispatchOrder, Fcfs, Scheme};
    use gpumodel_core::contract::{Share, Wake};
    use gpumodel_core::units::AppId;

    #[test]
    fn quotas_are_full_and_the_order_decides() {
        let facts = facts(&["BLK", "IMG", "NN"]);
        let plan = Fcfs.start(&facts, &[]).unwrap();
        assert_eq!(plan.shares(), vec![Share::Quota(vec![8; 16]); 3]);
        assert_eq!(plan.order(), &DispatchOrder::RoundRobin);
        assert!(plan.regions().is_empty(), "all take from the whole");
        let later = view(&facts, 9000, Wake::AppEnd(AppId(1)));
        assert_eq!(Fcfs.decide(&facts, &later).unwrap(), plan, "it never changes");
    }
}
