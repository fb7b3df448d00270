//! From curves to a plan: Algorithm 1, the threshold, and what it falls back on.

use gpumodel_core::contract::{self, Facts, PlanDraft};
use gpumodel_core::units::{AppId, to_u32};

use super::super::solve::{self, Amount, Demand, Split, Unsolved};
use super::super::spatial::Spatial;
use super::super::{room, shares, slices};
use super::rules::Rules;
use super::samples::Known;

/// One of those that share.
pub(super) struct Party<'a> {
    pub(super) app: AppId,
    /// What a CTA of it takes.
    pub(super) need: Amount,
    /// What is known of its kernel.
    pub(super) known: &'a Known,
}

/// The plan for `parties`, in arrival order.
pub(super) fn draft(facts: &Facts, rules: &Rules, parties: &[Party<'_>]) -> PlanDraft {
    let split = split(facts, rules, parties);
    let ctas = split.as_ref().map_or_else(|_| vec![0; parties.len()], |split| split.ctas.clone());
    let curves = evidence(parties, &ctas);
    let apps: Vec<AppId> = parties.iter().map(|party| party.app).collect();
    let draft = match split {
        Ok(split) => {
            let needs: Vec<Amount> = parties.iter().map(|party| party.need).collect();
            let reason = format!(
                "{}; the slowest keeps {:.0} % of its best",
                slices::words(facts, &apps, &ctas),
                100.0 * split.minimum()
            );
            PlanDraft { reason, ..slices::draft(facts, &apps, &ctas, &needs) }
        }
        Err(why) => {
            let spatial = Spatial::draft(facts, &apps);
            let reason = format!("{why}: {}", spatial.reason);
            PlanDraft { reason, ..spatial }
        }
    };
    PlanDraft { curves, wake: rules.wake(), ..draft }
}

/// The whole machine for who is alone.
pub(super) fn alone(facts: &Facts, app: AppId) -> PlanDraft {
    let reason = format!("{} is alone", facts.apps[app.index()].name);
    PlanDraft { shares: shares::everything(facts, &[app]), reason, ..PlanDraft::default() }
}

fn evidence(parties: &[Party<'_>], ctas: &[u32]) -> Vec<contract::Curve> {
    let each = parties.iter().zip(ctas);
    each.map(|(party, &chosen)| party.known.evidence(party.app, chosen)).collect()
}

/// The split of an SM, or in words why SMs are not shared.
fn split(facts: &Facts, rules: &Rules, parties: &[Party<'_>]) -> Result<Split, String> {
    let mut demands = Vec::with_capacity(parties.len());
    for &Party { app, need, known } in parties {
        let nothing = || format!("nothing is known of {}", facts.apps[app.index()].name);
        demands.push(Demand { need, curve: known.curve().ok_or_else(nothing)? });
    }
    let total = room::of_sm(facts);
    let solved: Result<Split, Unsolved> = if rules.exact {
        solve::exact(total, &demands)
    } else {
        solve::water_filling(total, &demands).map(|filling| filling.split)
    };
    let split = solved.map_err(|unsolved| unsolved.to_string())?;
    let (minimum, least) = (split.minimum(), rules.least_performance(to_u32(parties.len())));
    if minimum < least {
        return Err(format!(
            "on shared SMs the slowest would keep {:.0} % of its best, less than {:.0} %",
            100.0 * minimum,
            100.0 * least
        ));
    }
    Ok(split)
}
