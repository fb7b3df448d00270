//! One application has the machine, or a part of it.

use gpumodel_core::contract::{Facts, LawBroken, Plan, PlanDraft, ProbeResult};
use gpumodel_core::units::AppId;

use super::{Parameter, Scheme, Settings, shares};

/// What a user may set: how an application does with less.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::whole("sms", 0, 0..=65_535).does("SMs that it has, the first ones; 0: all"),
    Parameter::whole("ctas", 0, 0..=1024).does("CTAs that each of them may hold; 0: all that fit"),
];

/// Gives the first application the CTA slots of the machine, or of a part of it; all others
/// wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct Solo {
    sms: u64,
    ctas: u64,
}

impl Solo {
    pub(super) fn make(settings: &Settings) -> Box<dyn Scheme> {
        Box::new(Self { sms: settings.whole("sms"), ctas: settings.whole("ctas") })
    }
}

/// At most `set` of `all`, where 0 stands for all.
pub(super) fn at_most(set: u64, all: u32) -> u32 {
    match u32::try_from(set) {
        Ok(set) if set > 0 => set.min(all),
        _ => all,
    }
}

impl Scheme for Solo {
    fn start(&mut self, facts: &Facts, _probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        let sms = at_most(self.sms, facts.sms.into());
        let ctas = at_most(self.ctas, facts.max_ctas_per_sm);
        let first: Vec<AppId> = facts.apps.iter().take(1).map(|app| app.app).collect();
        let inside = |sm: usize| u32::try_from(sm).is_ok_and(|sm| sm < sms);
        let shares = shares::on_each_sm(facts, &first, |_, sm| if inside(sm) { ctas } else { 0 });
        let reason = if (sms, ctas) == (facts.sms.into(), facts.max_ctas_per_sm) {
            String::from("the whole machine for one application")
        } else {
            format!("{sms} SMs for one application, at most {ctas} CTAs on each")
        };
        Plan::new(facts, PlanDraft { shares, reason, ..PlanDraft::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::facts;
    use super::{Scheme, Solo};
    use gpumodel_core::contract::Share;

    #[test]
    fn a_part_of_the_machine_is_its_first_sms() {
        let facts = facts(&["IMG"]);
        let plan = Solo { sms: 3, ctas: 2 }.start(&facts, &[]).unwrap();
        let quotas: Vec<u32> = (0..16).map(|sm| if sm < 3 { 2 } else { 0 }).collect();
        assert_eq!(plan.shares(), [Share::Quota(quotas)]);
        let plan = Solo { sms: 99, ctas: 0 }.start(&facts, &[]).unwrap();
        assert_eq!(plan.shares(), [Share::Quota(vec![8; 16])], "at most the machine");
    }
}
