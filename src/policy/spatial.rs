//! An equal number of SMs for each application.

use gpumodel_core::contract::{
    DispatchOrder, Facts, LawBroken, Plan, PlanDraft, ProbeResult, View,
};
use gpumodel_core::units::AppId;

use super::shares::{self, FREED, FreedSms};
use super::{Parameter, Scheme, Settings};

/// What a user may set.
pub(super) const PARAMETERS: &[Parameter] = &[FREED];

/// Divides the SMs evenly between the active applications (spatial multitasking, Adriaens
/// et al., HPCA 2012, as Warped-Slicer compares with it), again when one arrives or ends;
/// where the SMs of an ended application stay idle, again only when one arrives.
#[derive(Clone, Debug)]
pub(super) struct Spatial {
    freed: FreedSms,
    /// The applications between which the SMs are divided.
    apps: Vec<AppId>,
}

impl Spatial {
    pub(super) fn make(settings: &Settings) -> Box<dyn Scheme> {
        Box::new(Self { freed: FreedSms::of(settings), apps: Vec::new() })
    }

    /// The plan for these applications; those without an SM wait.
    pub(super) fn draft(facts: &Facts, apps: &[AppId]) -> PlanDraft {
        let apps = &apps[..apps.len().min(usize::from(facts.sms))];
        let owners = shares::sm_owners(facts, apps.len());
        let shares = shares::on_own_sms(facts, apps, |place, sm| owners[sm] == place);
        let (order, reason) = (DispatchOrder::RoundRobin, words(facts, apps.len()));
        PlanDraft { shares, order, reason, ..PlanDraft::default() }
    }
}

/// How SMs are divided evenly between `apps` applications, in words.
pub(super) fn words(facts: &Facts, apps: usize) -> String {
    match apps {
        1 => String::from("the only active application has every SM"),
        apps => format!("{} SMs are divided evenly between {apps} applications", facts.sms),
    }
}

impl Scheme for Spatial {
    fn start(&mut self, facts: &Facts, _probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        self.apps = shares::apps_at_start(facts);
        self.apps.truncate(usize::from(facts.sms));
        Plan::new(facts, Self::draft(facts, &self.apps))
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        self.apps = self.freed.owners(&self.apps, facts, view);
        Plan::new(facts, Self::draft(facts, &self.apps))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, view};
    use super::super::{Choice, Scheme};
    use gpumodel_core::contract::{Plan, Share, Wake};
    use gpumodel_core::units::{AppId, to_u16};

    fn spatial() -> Box<dyn Scheme> {
        Choice::parse("spatial").unwrap().make()
    }

    fn sms(plan: &Plan, apps: usize) -> Vec<usize> {
        let of = |app: usize| (0..16).filter(|&sm| plan.quota(AppId(to_u16(app)), sm) == 8).count();
        (0..apps).map(of).collect()
    }

    #[test]
    fn sms_are_divided_evenly_and_the_first_get_the_rest() {
        let pair = spatial().start(&facts(&["HOT", "BFS"]), &[]).unwrap();
        assert_eq!(sms(&pair, 2), [8, 8], "eight SMs each (table III)");
        let three = spatial().start(&facts(&["HOT", "BFS", "NN"]), &[]).unwrap();
        assert_eq!(sms(&three, 3), [6, 5, 5]);
        for sm in 0..16 {
            let owners = (0..3).filter(|&app| three.quota(AppId(app), sm) > 0).count();
            assert_eq!(owners, 1, "SM {sm}");
        }
    }

    #[test]
    fn an_ended_application_leaves_its_sms_to_the_others() {
        let facts = facts(&["HOT", "BFS", "NN"]);
        let mut seen = view(&facts, 1000, Wake::AppEnd(AppId(0)));
        (seen.apps[0].active, seen.apps[0].finished) = (false, true);
        assert_eq!(sms(&spatial().decide(&facts, &seen).unwrap(), 3), [0, 8, 8]);
    }

    #[test]
    fn idle_sms_have_no_owner_until_an_arrival() {
        let mut facts = facts(&["HOT", "BFS", "NN"]);
        facts.apps[2].arrival = 5000;
        let mut idle = Choice::parse("spatial:freed=idle").unwrap().make();
        assert_eq!(sms(&idle.start(&facts, &[]).unwrap(), 3), [8, 8, 0]);
        let mut seen = view(&facts, 1000, Wake::AppEnd(AppId(0)));
        (seen.apps[0].active, seen.apps[0].finished) = (false, true);
        seen.apps[2].active = false;
        let plan = idle.decide(&facts, &seen).unwrap();
        assert_eq!(sms(&plan, 3), [8, 8, 0], "the others keep their SMs");
        (seen.wake, seen.apps[2].active) = (Wake::Arrival(AppId(2)), true);
        assert_eq!(sms(&idle.decide(&facts, &seen).unwrap(), 3), [0, 8, 8]);
    }

    #[test]
    fn an_application_that_waits_for_an_sm_has_one_when_another_ends() {
        let mut facts = facts(&["HOT", "BFS", "NN"]);
        facts.sms = 2;
        let mut idle = Choice::parse("spatial:freed=idle").unwrap().make();
        idle.start(&facts, &[]).unwrap();
        let mut seen = view(&facts, 1000, Wake::AppEnd(AppId(0)));
        (seen.apps[0].active, seen.apps[0].finished) = (false, true);
        let plan = idle.decide(&facts, &seen).unwrap();
        assert_eq!(plan.shares()[2], Share::Quota(vec![0, 8]));
    }

    #[test]
    fn without_an_sm_for_each_the_last_wait() {
        let mut facts = facts(&["HOT", "BFS", "NN"]);
        facts.sms = 2;
        let plan = spatial().start(&facts, &[]).unwrap();
        assert_eq!(plan.shares()[1], Share::Quota(vec![0, 8]));
        assert_eq!(plan.shares()[2], Share::Waiting);
    }
}
