//! One application has the whole machine.

use crate::epoch::{Facts, LawBroken, Plan, PlanDraft, ProbeResult, Share, View};

use super::Scheme;

/// Gives the first application every CTA slot and lets all others wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct Solo;

impl Scheme for Solo {
    fn start(&mut self, facts: &Facts, _probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        let all = vec![facts.max_ctas_per_sm; usize::from(facts.sms)];
        let mut shares = vec![Share::Waiting; facts.apps.len()];
        if let Some(first) = shares.first_mut() {
            *first = Share::Quota(all);
        }
        let reason = String::from("the whole machine for one application");
        Plan::new(facts, PlanDraft { shares, reason, ..PlanDraft::default() })
    }

    fn decide(&mut self, facts: &Facts, _view: &View) -> Result<Plan, LawBroken> {
        self.start(facts, &[])
    }
}
