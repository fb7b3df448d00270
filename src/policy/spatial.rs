//! To each application its own SMs.

use gpumodel_core::contract::{
    DispatchOrder, Facts, LawBroken, Plan, PlanDraft, ProbeResult, View,
};
use gpumodel_core::units::AppId;

use super::active_apps::{FREED, FreedSms};
use super::{Parameter, Scheme, Settings, active_apps, shares};

/// What a user may set.
pub(super) const PARAMETERS: &[Parameter] = &[FREED];

/// Divides the SMs evenly between the applications that are there, and anew when
/// one comes or ends (spatial multitasking, Adriaens et al., HPCA 2012, as
/// Warped-Slicer compares with it); where the SMs of who ends stay idle, anew only
/// when one comes.
#[derive(Clone, Debug, Default)]
pub struct Spatial {
    freed: FreedSms,
    /// Between whom the SMs are divided.
    apps: Vec<AppId>,
}

impl Spatial {
    pub(super) fn make(settings: &Settings) -> Box<dyn Scheme> {
        Box::new(Self { freed: FreedSms::of(settings), apps: Vec::new() })
    }

    pub(super) fn draft(facts: &Facts, active_apps: &[AppId]) -> PlanDraft {
        let reason = match active_apps.len().min(usize::from(facts.sms)) {
            1 => String::from("the only active application has every SM"),
            apps => format!("{} SMs are divided evenly between {apps} applications", facts.sms),
        };
        let shares = shares::sm_sets(facts, active_apps);
        PlanDraft { shares, order: DispatchOrder::RoundRobin, reason, ..PlanDraft::default() }
    }
}

impl Scheme for Spatial {
    fn start(&mut self, facts: &Facts, _probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        self.apps = active_apps::at_start(facts);
        self.apps.truncate(usize::from(facts.sms));
        Plan::new(facts, Self::draft(facts, &self.apps))
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        self.apps = self.freed.holders(&self.apps, facts, view);
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
    fn who_ends_leaves_its_sms_to_the_others() {
        let facts = facts(&["HOT", "BFS", "NN"]);
        let mut seen = view(&facts, 1000, Wake::AppEnd(AppId(0)));
        (seen.apps[0].active, seen.apps[0].finished) = (false, true);
        assert_eq!(sms(&spatial().decide(&facts, &seen).unwrap(), 3), [0, 8, 8]);
    }

    #[test]
    fn what_stays_idle_is_nobodys_until_another_comes() {
        let mut facts = facts(&["HOT", "BFS", "NN"]);
        facts.apps[2].arrival = 5000;
        let mut idle = Choice::parse("spatial:freed=idle").unwrap().make();
        assert_eq!(sms(&idle.start(&facts, &[]).unwrap(), 3), [8, 8, 0]);
        let mut seen = view(&facts, 1000, Wake::AppEnd(AppId(0)));
        (seen.apps[0].active, seen.apps[0].finished) = (false, true);
        seen.apps[2].active = false;
        let plan = idle.decide(&facts, &seen).unwrap();
        assert_eq!(sms(&plan, 3), [8, 8, 0], "the others keep exactly their own");
        (seen.wake, seen.apps[2].active) = (Wake::Arrival(AppId(2)), true);
        assert_eq!(sms(&idle.decide(&facts, &seen).unwrap(), 3), [0, 8, 8]);
    }

    #[test]
    fn who_waits_for_an_sm_has_one_when_another_ends() {
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
