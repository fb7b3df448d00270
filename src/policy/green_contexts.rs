//! Green contexts.

use gpumodel_core::contract::{
    DispatchOrder, Facts, LawBroken, Plan, PlanDraft, Probe, ProbeResult,
};
use gpumodel_core::units::AppId;

use super::parameter::Text;
use super::{Parameter, Scheme, Settings, shares};

/// The default of `sms`.
const EQUAL: &str = "equal";

/// What a user may set.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::list("sms", EQUAL)
        .does("SMs of each context, as 60+48; equal: the same for all (assumed)"),
    Parameter::whole("multiple", 2, 1..=64).does(
        "SMs come in multiples of this: 2 on compute capability 8, 8 on 9 (published: CUDA driver \
         API, cuDevSmResourceSplitByCount)",
    ),
];

/// Green contexts of one process: each has SMs to itself, and all share L2 and channels. A count
/// is rounded up to the multiple of the device, as the driver does.
#[derive(Clone, Copy, Debug)]
pub(super) struct GreenContexts {
    sms: Text,
    multiple: u32,
}

impl GreenContexts {
    pub(super) fn make(settings: &Settings) -> Box<dyn Scheme> {
        Box::new(Self { sms: settings.list("sms"), multiple: settings.small("multiple") })
    }

    fn counts(&self, facts: &Facts) -> Result<Vec<u32>, LawBroken> {
        let (text, apps, all) = (self.sms.as_str(), facts.apps.len(), u32::from(facts.sms));
        let counts: Option<Vec<u32>> = if text == EQUAL {
            let owners = u32::try_from(apps).unwrap_or(u32::MAX).max(1);
            let each = all / owners / self.multiple * self.multiple;
            (each > 0).then(|| vec![each; apps])
        } else {
            let count =
                |word: &str| word.parse().ok().filter(|&count: &u32| (1..=all).contains(&count));
            text.split('+').map(count).collect()
        };
        let rounded = |count: u32| count.next_multiple_of(self.multiple);
        let counts = counts.filter(|counts| counts.len() == apps);
        let counts: Option<Vec<u32>> =
            counts.map(|counts| counts.into_iter().map(rounded).collect());
        counts.filter(|counts| counts.iter().sum::<u32>() <= all).ok_or_else(|| {
            LawBroken::Setting(format!(
                "green-contexts: sms={text}: expected a count for each of {apps} applications with \
                 + between them, in multiples of {} at most {all} together",
                self.multiple
            ))
        })
    }
}

impl Scheme for GreenContexts {
    fn probes(&self, facts: &Facts) -> Result<Vec<Probe>, LawBroken> {
        self.counts(facts).map(|_| Vec::new())
    }

    fn start(&mut self, facts: &Facts, _probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        let counts = self.counts(facts)?;
        let apps: Vec<AppId> = facts.apps.iter().map(|app| app.app).collect();
        let first = |app: usize| counts[..app].iter().sum::<u32>();
        let owns = |app: usize, sm: usize| {
            u32::try_from(sm).is_ok_and(|sm| (first(app)..first(app) + counts[app]).contains(&sm))
        };
        let shares = shares::on_own_sms(facts, &apps, owns);
        let words = facts.apps.iter().zip(&counts);
        let words = words.map(|(app, count)| format!("{} has {count} SMs", app.name));
        let (order, reason) = (DispatchOrder::RoundRobin, words.collect::<Vec<_>>().join(", "));
        Plan::new(facts, PlanDraft { shares, order, reason, ..PlanDraft::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Choice;
    use super::super::fixture::facts;
    use gpumodel_core::units::AppId;

    fn sms(scheme: &str) -> Result<[usize; 2], String> {
        let facts = facts(&["HOT", "BFS"]);
        let plan = Choice::parse(scheme).unwrap().make().start(&facts, &[]);
        let plan = plan.map_err(|error| error.to_string())?;
        Ok([0, 1].map(|app| (0..16).filter(|&sm| plan.quota(AppId(app), sm) > 0).count()))
    }

    #[test]
    fn counts_are_rounded_up_as_the_driver_does() {
        assert_eq!(sms("green-contexts").unwrap(), [8, 8]);
        assert_eq!(sms("green-contexts:sms=9+5").unwrap(), [10, 6]);
        assert_eq!(sms("green-contexts:sms=3+8:multiple=8").unwrap(), [8, 8]);
        for wrong in ["sms=9+8", "sms=16", "sms=0+4", "sms=4+4:multiple=16"] {
            let error = sms(&format!("green-contexts:{wrong}")).unwrap_err();
            assert!(error.contains("a count for each of 2 applications"), "{error}");
        }
    }
}
