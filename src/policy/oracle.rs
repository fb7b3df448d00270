//! Tries everything and keeps the fastest.

use std::cmp::Reverse;

use gpumodel_core::contract::{Facts, Freed, LawBroken, Plan, PlanDraft, Probe, ProbeResult, View};
use gpumodel_core::units::{AppId, to_usize};

use super::left_over::LeftOver;
use super::solve::Amount;
use super::spatial::Spatial;
use super::{Parameter, Scheme, Settings, shares};

/// What a user may set.
pub(super) const PARAMETERS: &[Parameter] = &[Parameter::whole("most", 128, 1..=1_000_000)
    .does("CTA combinations to try; when there are more, counts go up by 2, 3, ... (assumed)")];

/// Runs left-over, spatial and every combination of CTAs that an SM holds, each as a plan
/// that does not change, and takes the fastest; of plans that end in the same cycle the one
/// with the most instructions, of equals the first (Warped-Slicer, section V.A).
#[derive(Clone, Debug)]
pub(super) struct Oracle {
    most: usize,
    chosen: PlanDraft,
}

impl Oracle {
    pub(super) fn make(settings: &Settings) -> Box<dyn Scheme> {
        Box::new(Self { most: to_usize(settings.whole("most")), chosen: PlanDraft::default() })
    }

    /// The plans that are tried, in a fixed order.
    fn candidates(&self, facts: &Facts) -> Vec<PlanDraft> {
        let apps = shares::in_arrival_order(facts);
        let mut drafts = vec![LeftOver::draft(facts)];
        if apps.len() > 1 {
            drafts.push(Spatial::draft(facts, &apps));
            let need = |app: &AppId| shares::largest_cta(&facts.apps[app.index()].kernels);
            let needs: Vec<Amount> = apps.iter().map(need).collect();
            for ctas in self.combinations(facts, &apps) {
                let reason = shares::cta_words(facts, &apps, &ctas);
                let draft = shares::sliced_draft(facts, &apps, &ctas, &needs);
                drafts.push(PlanDraft { reason, ..draft });
            }
        }
        drafts.iter_mut().for_each(|draft| draft.freed = Freed::ToLast);
        drafts
    }

    /// CTAs per application and SM, at most `most` combinations.
    fn combinations(&self, facts: &Facts, apps: &[AppId]) -> Vec<Vec<u32>> {
        let few = |found: &Vec<_>| found.len() <= self.most;
        let mut steps = (1..).map(|step| combinations(facts, apps, step, self.most));
        steps.find(few).expect("a large step leaves one combination")
    }
}

/// Combinations of 1, 1 + `step`, ... CTAs that fit an SM by the least that a CTA of
/// each application takes; stops one beyond `most`.
fn combinations(facts: &Facts, apps: &[AppId], step: u32, most: usize) -> Vec<Vec<u32>> {
    let needs: Vec<Amount> = apps.iter().map(|app| smallest_cta(facts, *app)).collect();
    let taken = |ctas: &[u32]| {
        let each = needs.iter().zip(ctas).map(|(need, &ctas)| need.times(ctas));
        each.fold(Amount::default(), Amount::plus)
    };
    let fits = |ctas: &[u32]| shares::sm_resources(facts).minus(taken(ctas)).is_some();
    let mut ctas = vec![1; apps.len()];
    let mut found = Vec::new();
    while fits(&ctas) && found.len() <= most {
        found.push(ctas.clone());
        let grows = (0..ctas.len()).rev().find(|&place| {
            ctas[place + 1..].fill(1);
            ctas[place] += step;
            fits(&ctas)
        });
        if grows.is_none() {
            break;
        }
    }
    found
}

/// The least of each resource that a CTA of any launch takes; at least a slot.
fn smallest_cta(facts: &Facts, app: AppId) -> Amount {
    let slot = Amount { cta_slots: 1, ..Amount::default() };
    let kernels = facts.apps[app.index()].kernels.iter();
    kernels.map(shares::cta_resources).reduce(Amount::least).unwrap_or(slot)
}

impl Scheme for Oracle {
    fn probes(&self, facts: &Facts) -> Result<Vec<Probe>, LawBroken> {
        let candidates = self.candidates(facts);
        if candidates.len() == 1 {
            return Ok(Vec::new());
        }
        let apps = shares::in_arrival_order(facts);
        let probe = |draft| {
            let plan = Plan::new(facts, draft)?;
            Ok(Probe { apps: apps.clone(), plan, window: None, race: true })
        };
        candidates.into_iter().map(probe).collect()
    }

    fn start(&mut self, facts: &Facts, probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        let mut candidates = self.candidates(facts);
        let rank = |result: &ProbeResult| {
            let done: u64 = result.apps.iter().map(|app| app.thread_instructions).sum();
            (result.cycles, Reverse(done))
        };
        let fastest = probes.iter().enumerate().min_by_key(|(_, result)| rank(result));
        let (place, cycles) = fastest.map_or((0, None), |(place, best)| (place, Some(best.cycles)));
        let tried = candidates.len();
        self.chosen = candidates.swap_remove(place);
        if let Some(cycles) = cycles {
            let reason = std::mem::take(&mut self.chosen.reason);
            self.chosen.reason = format!("fastest of {tried} plans with {cycles} cycles: {reason}");
        }
        Plan::new(facts, self.chosen.clone())
    }

    fn decide(&mut self, facts: &Facts, _view: &View) -> Result<Plan, LawBroken> {
        Plan::new(facts, self.chosen.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, view};
    use super::super::{Choice, Scheme};
    use gpumodel_core::contract::{DispatchOrder, Freed, ProbeApp, ProbeResult, Wake};
    use gpumodel_core::units::AppId;

    fn make(text: &str) -> Box<dyn Scheme> {
        Choice::parse(text).unwrap().make()
    }

    #[test]
    fn every_combination_that_fits_is_tried_once() {
        // HOT takes 28 % of the registers, NN 11.75 %: with 1, 2, 3 of HOT at most
        // 6, 3 and 1 of NN.
        let probes = make("oracle").probes(&facts(&["HOT", "NN"])).unwrap();
        assert_eq!(probes.len(), 2 + 6 + 3 + 1);
        assert!(probes.iter().all(|probe| probe.race && probe.window.is_none()));
        assert!(probes.iter().all(|probe| probe.plan.freed() == Freed::ToLast));
        let plans: Vec<_> = probes.iter().map(|probe| probe.plan.shares()).collect();
        assert!((0..plans.len()).all(|place| !plans[..place].contains(&plans[place])));
        let three = make("oracle").probes(&facts(&["IMG", "NN", "KNN"])).unwrap();
        let slots = 8 * 7 * 6 / 6;
        assert!(three.len() > 30 && three.len() <= 2 + slots, "{}", three.len());
    }

    #[test]
    fn too_many_combinations_are_thinned_out() {
        let few = make("oracle:most=10").probes(&facts(&["IMG", "NN"])).unwrap();
        assert!((5..=12).contains(&few.len()), "{}", few.len());
        let counts: Vec<u32> = few[2..].iter().map(|probe| probe.plan.quota(AppId(1), 0)).collect();
        assert!(counts.contains(&1) && counts.iter().all(|count| count % 2 == 1), "{counts:?}");
    }

    #[test]
    fn the_fastest_is_kept_and_the_first_of_equals() {
        let facts = facts(&["HOT", "NN"]);
        let mut oracle = make("oracle");
        let probes = oracle.probes(&facts).unwrap();
        let took = |cycles| ProbeResult { cycles, apps: vec![] };
        let mut results = vec![took(900); probes.len()];
        results[3] = took(500);
        results[5] = took(500);
        results[4] = took(u64::MAX);
        let plan = oracle.start(&facts, &results).unwrap();
        assert_eq!(plan.shares(), probes[3].plan.shares());
        assert!(plan.reason().starts_with("fastest of 12 plans with 500 cycles: CTAs on every SM"));
        let later = view(&facts, 800, Wake::AppEnd(AppId(0)));
        assert_eq!(oracle.decide(&facts, &later).unwrap(), plan, "as it was probed");
        results[0] = took(400);
        let left_over = make("oracle").start(&facts, &results).unwrap();
        assert_eq!(left_over.order(), &DispatchOrder::InOrder);
    }

    #[test]
    fn of_equal_times_the_most_work_counts() {
        let facts = facts(&["HOT", "NN"]);
        let probes = make("oracle").probes(&facts).unwrap();
        let did = |thread_instructions| ProbeResult {
            cycles: 1000,
            apps: vec![ProbeApp { thread_instructions, ..ProbeApp::default() }],
        };
        let mut results = vec![did(50); probes.len()];
        results[6] = did(70);
        let plan = make("oracle").start(&facts, &results).unwrap();
        assert_eq!(plan.shares(), probes[6].plan.shares());
    }

    #[test]
    fn alone_there_is_nothing_to_try() {
        let facts = facts(&["HOT"]);
        assert!(make("oracle").probes(&facts).unwrap().is_empty());
        assert_eq!(make("oracle").start(&facts, &[]).unwrap().quota(AppId(0), 15), 8);
    }
}
