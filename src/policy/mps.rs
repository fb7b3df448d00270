//! The Multi-Process Service.

use gpumodel_core::contract::{
    DispatchOrder, Facts, LawBroken, Plan, PlanDraft, Probe, ProbeResult,
};
use gpumodel_core::units::{AppId, to_u32, to_usize};

use super::parameter::Text;
use super::{Parameter, Scheme, Settings, shares};

const IN_ORDER: &str = "in-order";
const IN_TURN: &str = "in-turn";

/// What a user may set.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::list("active_thread_percentage", "100").does(
        "the part of the SMs that each client may use, as 50+50, or one for all; the default of \
         MPS (published)",
    ),
    Parameter::word("order", IN_ORDER, &[IN_ORDER, IN_TURN])
        .does("CTAs in the order of launches, or of all clients in turn (assumed)"),
];

/// MPS of Volta and later: kernels of several processes run at once in one context, on SMs, caches
/// and channels that all share; `active_thread_percentage` limits the SMs of a client and
/// reserves none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mps {
    percentages: Text,
    in_turn: bool,
}

impl Mps {
    pub(super) fn make(settings: &Settings) -> Box<dyn Scheme> {
        let percentages = settings.list("active_thread_percentage");
        Box::new(Self { percentages, in_turn: settings.word("order") == IN_TURN })
    }

    /// SMs of each client: its part of all, rounded up.
    fn sms(&self, facts: &Facts) -> Result<Vec<u32>, LawBroken> {
        let (text, apps) = (self.percentages.as_str(), facts.apps.len());
        let wrong = || {
            LawBroken::Setting(format!(
                "mps: active_thread_percentage={text}: expected a number from 1 to 100 for each of \
                 {apps} applications with + between them, or one for all"
            ))
        };
        let part = |word: &str| word.parse::<u32>().ok().filter(|part| (1..=100).contains(part));
        let parts: Vec<u32> = text.split('+').map(part).collect::<Option<_>>().ok_or_else(wrong)?;
        let parts = match parts[..] {
            [all] => vec![all; apps],
            _ if parts.len() == apps => parts,
            _ => return Err(wrong()),
        };
        let sms = u32::from(facts.sms);
        Ok(parts.into_iter().map(|part| (sms * part).div_ceil(100).max(1)).collect())
    }
}

impl Scheme for Mps {
    fn probes(&self, facts: &Facts) -> Result<Vec<Probe>, LawBroken> {
        self.sms(facts).map(|_| Vec::new())
    }

    fn start(&mut self, facts: &Facts, _probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        let (sms, all) = (self.sms(facts)?, to_u32(usize::from(facts.sms)));
        let apps: Vec<AppId> = facts.apps.iter().map(|app| app.app).collect();
        // A client begins where the one before ends, so that limited ones meet as late as possible.
        let first: Vec<u32> =
            (0..sms.len()).map(|app| sms[..app].iter().sum::<u32>() % all).collect();
        let may = |app: usize, sm: usize| (to_u32(sm) + all - first[app]) % all < sms[app];
        let shares = shares::on_own_sms(facts, &apps, may);
        let order = if self.in_turn { DispatchOrder::RoundRobin } else { DispatchOrder::InOrder };
        let words = facts.apps.iter().map(|app| {
            format!("{} may use {} SMs", app.name, sms[to_usize(to_u32(app.app.index()))])
        });
        let reason = words.collect::<Vec<_>>().join(", ");
        Plan::new(facts, PlanDraft { shares, order, reason, ..PlanDraft::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Choice;
    use super::super::fixture::facts;
    use gpumodel_core::units::AppId;

    fn sms(scheme: &str) -> Result<Vec<Vec<usize>>, String> {
        let facts = facts(&["HOT", "BFS"]);
        let plan = Choice::parse(scheme).unwrap().make().start(&facts, &[]);
        let plan = plan.map_err(|error| error.to_string())?;
        let of = |app| (0..16).filter(|&sm| plan.quota(AppId(app), sm) > 0).collect();
        Ok((0..2).map(of).collect())
    }

    #[test]
    fn a_percentage_limits_and_reserves_nothing() {
        let all: Vec<usize> = (0..16).collect();
        assert_eq!(sms("mps").unwrap(), [all.clone(), all]);
        let apart = sms("mps:active_thread_percentage=50").unwrap();
        assert_eq!(apart, [(0..8).collect::<Vec<_>>(), (8..16).collect()]);
        let meet = sms("mps:active_thread_percentage=70+60").unwrap();
        // 11.2 and 9.6 of 16 SMs, rounded up.
        assert_eq!((meet[0].len(), meet[1].len()), (12, 10));
        for wrong in ["0", "101", "50+50+50", "x"] {
            let error = sms(&format!("mps:active_thread_percentage={wrong}")).unwrap_err();
            assert!(error.contains("from 1 to 100 for each of 2 applications"), "{error}");
        }
    }
}
