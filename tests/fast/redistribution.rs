//! Does redistribution of SMs and channels end, keep what it must, and favour no application?

use gpumodel::policy::solve::{Resources, Slice, Stop, Terms, redistribute};
use proptest::prelude::*;

fn any_slices() -> impl Strategy<Value = Vec<Slice>> {
    let one = (0.001_f64..60.0, 50.0_f64..400.0, 1_u32..30, 1_u32..6, 0_u32..8, 0.0_f64..1.0);
    proptest::collection::vec(one, 1..9).prop_map(|list| {
        let slice =
            |(demand, supply, sms, groups, needs, keeps): (f64, f64, u32, u32, u32, f64)| {
                // Most have small working sets, and nothing promised.
                let needs = needs.saturating_sub(5);
                let keeps = if keeps > 0.9 { 0.2 } else { 0.0 };
                Slice { demand, supply, has: Resources { sms, groups }, needs, keeps }
            };
        list.into_iter().map(slice).collect()
    })
}

fn terms_of(slices: &[Slice], step: u32, least: u32) -> Terms {
    let sum = |of: fn(&Slice) -> u32| slices.iter().map(of).sum();
    let whole = Resources { sms: sum(|one| one.has.sms), groups: sum(|one| one.has.groups) };
    let least = Resources { sms: least, groups: 1 };
    let step_of = Resources { sms: step, groups: 1 };
    // None is kept for channels with steps of one SM, up to four with steps of five.
    Terms { step: step_of, least, sms_per_group: step - 1, whole, iterations: 20 }
}

fn with(slices: &[Slice], parts: &[Resources]) -> Vec<Slice> {
    slices.iter().zip(parts).map(|(slice, &has)| Slice { has, ..*slice }).collect()
}

proptest! {
    #[test]
    fn sums_and_kept_minimums_stay(slices in any_slices(), delta in 1_u32..6, least in 1_u32..6) {
        let terms = terms_of(&slices, delta, least);
        let found = redistribute(&slices, &terms);
        prop_assert!((1..=20).contains(&found.iterations));
        let sum = |of: fn(&Resources) -> u32| found.parts.iter().map(of).sum::<u32>();
        prop_assert_eq!(sum(|part| part.sms), terms.whole.sms);
        prop_assert_eq!(sum(|part| part.groups), terms.whole.groups);
        for (before, &part) in slices.iter().zip(&found.parts) {
            prop_assert!(part.sms >= least.min(before.has.sms));
            prop_assert!(part.groups >= before.has.groups.min(before.needs.max(1)));
            let promised = before.keeps.min(before.progress(terms.whole));
            let after = Slice { has: part, ..*before };
            prop_assert!(after.progress(terms.whole) >= promised * (1.0 - 1e-6));
        }
    }

    #[test]
    fn it_ends_in_a_fixed_point(slices in any_slices(), delta in 1_u32..6) {
        let terms = terms_of(&slices, delta, 1);
        let mut parts: Vec<Resources> = slices.iter().map(|slice| slice.has).collect();
        for _ in 0..40 {
            let found = redistribute(&with(&slices, &parts), &terms);
            if found.stop != Stop::Iterations {
                let again = redistribute(&with(&slices, &found.parts), &terms);
                prop_assert_eq!(again.parts, found.parts);
                return Ok(());
            }
            parts = found.parts;
        }
        prop_assert!(false, "never ends");
    }

    #[test]
    fn a_mirrored_order_mirrors_the_result(slices in any_slices(), delta in 1_u32..6) {
        let terms = terms_of(&slices, delta, 1);
        // On a tie the first wins; here no two slices are equally short of memory.
        let slices: Vec<Slice> =
            slices.into_iter().map(|slice| Slice { needs: 0, ..slice }).collect();
        let mirrored: Vec<Slice> = slices.iter().rev().copied().collect();
        let (mut there, back) = (redistribute(&slices, &terms), redistribute(&mirrored, &terms));
        there.parts.reverse();
        prop_assert_eq!(there, back);
    }

    #[test]
    fn memory_bound_give_sms_and_compute_bound_give_channels(
        slices in any_slices(), delta in 1_u32..6,
    ) {
        let terms = terms_of(&slices, delta, 1);
        let one = Terms { iterations: 1, ..terms };
        let next = redistribute(&slices, &one).parts;
        for (before, after) in slices.iter().zip(&next) {
            if before.computes() {
                prop_assert!(after.sms >= before.has.sms);
                prop_assert!(after.groups <= before.has.groups);
            } else {
                prop_assert!(after.sms <= before.has.sms);
                prop_assert!(after.groups >= before.has.groups);
            }
        }
    }
}
