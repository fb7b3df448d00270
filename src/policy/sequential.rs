//! One application after the other.

use gpumodel_core::contract::{Facts, LawBroken, Plan, PlanDraft, ProbeResult, View};
use gpumodel_core::units::AppId;

use super::{Scheme, shares};

/// Gives the whole machine to the application that arrived first, until it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sequential;

impl Sequential {
    fn plan(facts: &Facts, active: &[AppId]) -> Result<Plan, LawBroken> {
        let first = &active[..active.len().min(1)];
        let names: Vec<&str> = first.iter().map(|a| facts.apps[a.index()].name.as_str()).collect();
        let reason = format!("{} is the first that has not ended", names.join(""));
        let shares = shares::everything(facts, first);
        Plan::new(facts, PlanDraft { shares, reason, ..PlanDraft::default() })
    }
}

impl Scheme for Sequential {
    fn start(&mut self, facts: &Facts, _probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        Self::plan(facts, &shares::apps_at_start(facts))
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        Self::plan(facts, &shares::active_apps(facts, view))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, view};
    use super::{Scheme, Sequential};
    use gpumodel_core::contract::{Share, Wake};
    use gpumodel_core::units::AppId;

    #[test]
    fn the_earliest_that_is_not_done_has_the_machine() {
        let mut facts = facts(&["BLK", "IMG", "NN"]);
        facts.apps[0].arrival = 50;
        let first = Sequential.start(&facts, &[]).unwrap();
        assert_eq!(first.shares()[1], Share::Quota(vec![8; 16]), "IMG and NN arrive first");
        assert_eq!((&first.shares()[0], &first.shares()[2]), (&Share::Waiting, &Share::Waiting));
        let mut seen = view(&facts, 1000, Wake::Arrival(AppId(0)));
        assert_eq!(Sequential.decide(&facts, &seen).unwrap().shares(), first.shares());
        (seen.apps[1].active, seen.apps[1].finished) = (false, true);
        let second = Sequential.decide(&facts, &seen).unwrap();
        assert_eq!(second.shares()[2], Share::Quota(vec![8; 16]), "then NN, BLK came last");
        assert!(second.reason().starts_with("NN "), "{}", second.reason());
    }

    #[test]
    fn between_two_arrivals_the_plan_is_for_the_next() {
        let mut facts = facts(&["BLK", "IMG"]);
        facts.apps[1].arrival = 5000;
        let mut seen = view(&facts, 1000, Wake::AppEnd(AppId(0)));
        (seen.apps[0].active, seen.apps[0].finished) = (false, true);
        seen.apps[1].active = false;
        let plan = Sequential.decide(&facts, &seen).unwrap();
        assert_eq!(plan.shares()[1], Share::Quota(vec![8; 16]));
        seen.apps[1].finished = true;
        assert!(Sequential.decide(&facts, &seen).is_ok(), "lawful also when all is done");
    }
}
