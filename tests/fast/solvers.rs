//! Do the solvers equal an exhaustive search, over splits and over groupings? Does redistribution
//! of SMs and channels end, keep what it must, and favour no application?

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use gpumodel::policy::solve::{
    Amount, Curve, Demand, Engine, Matching, NoMatching, Pattern, Resources, Sample, Slice, Split,
    Stop, Terms, Unsolved, efficiency, exact, matching, patterns, redistribute, water_filling,
    with_idle,
};
use proptest::prelude::*;

/// A small SM, so that every resource is scarce in some case.
const SM: Amount =
    Amount { registers: 64, shared_bytes: 48, threads: 1024, warps: 32, cta_slots: 8 };

/// The same with room for 32 CTAs.
const WIDE: Amount = Amount { registers: 128, warps: 64, cta_slots: 32, ..SM };

/// A kernel with any speeds, zeros and equals among them.
fn any_demand(most: usize) -> impl Strategy<Value = Demand> {
    let speed = prop_oneof![
        (0_u32..12).prop_map(f64::from),
        (0_u32..1000).prop_map(|n| f64::from(n) / 7.0),
    ];
    let speeds = proptest::collection::vec(speed, 1..=most);
    let need = (1_u64..20, 0_u64..12, 1_u64..5);
    (need, speeds, any::<bool>()).prop_map(|(need, mut speeds, rising)| {
        if rising {
            speeds.sort_by(f64::total_cmp);
        }
        let (registers, shared_bytes, warps) = need;
        let need = Amount { registers, shared_bytes, threads: 32 * warps, warps, cta_slots: 1 };
        let samples = (1..).zip(speeds).map(|(ctas, speed)| Sample { ctas, speed });
        Demand { need, curve: Curve::new(&samples.collect::<Vec<_>>()).unwrap() }
    })
}

/// Performance of a demand with exactly so many CTAs, from its samples.
fn performance(demand: &Demand, ctas: u32) -> f64 {
    let samples = demand.curve.samples();
    let best = samples.iter().map(|sample| sample.speed).fold(0.0, f64::max);
    let speed = samples.iter().find(|sample| sample.ctas == ctas).unwrap().speed;
    if best > 0.0 { speed / best } else { 0.0 }
}

fn fits(total: Amount, demands: &[Demand], ctas: &[u32]) -> bool {
    (0..Amount::RESOURCES).all(|resource| {
        let of = |(demand, &ctas): (&Demand, &u32)| demand.need.parts()[resource] * u64::from(ctas);
        demands.iter().zip(ctas).map(of).sum::<u64>() <= total.parts()[resource]
    })
}

/// The best (minimum, sum) over all splits, the minimum first.
fn best_split(total: Amount, demands: &[Demand]) -> Option<(f64, f64)> {
    let most: Vec<u32> = demands.iter().map(|d| d.curve.samples().last().unwrap().ctas).collect();
    let mut ctas = vec![1; demands.len()];
    let mut best: Option<(f64, f64)> = None;
    loop {
        if fits(total, demands, &ctas) {
            let all: Vec<f64> =
                demands.iter().zip(&ctas).map(|(d, &n)| performance(d, n)).collect();
            let found = (all.iter().copied().fold(1.0, f64::min), all.iter().sum());
            if best.is_none_or(|best| found > best) {
                best = Some(found);
            }
        }
        let Some(next) = (0..ctas.len()).find(|&i| ctas[i] < most[i]) else { return best };
        ctas[..next].fill(1);
        ctas[next] += 1;
    }
}

/// Does the split say the truth about itself?
fn lawful(total: Amount, demands: &[Demand], split: &Split) -> Result<(), TestCaseError> {
    prop_assert!(fits(total, demands, &split.ctas), "{split:?} does not fit");
    for (place, demand) in demands.iter().enumerate() {
        prop_assert_eq!(split.performance[place], performance(demand, split.ctas[place]));
    }
    Ok(())
}

fn agree(total: Amount, demands: &[Demand]) -> Result<(), TestCaseError> {
    let Some((minimum, sum)) = best_split(total, demands) else {
        prop_assert_eq!(exact(total, demands), Err(Unsolved::DoesNotFit));
        prop_assert_eq!(water_filling(total, demands), Err(Unsolved::DoesNotFit));
        return Ok(());
    };
    let solved = exact(total, demands).unwrap();
    lawful(total, demands, &solved)?;
    prop_assert_eq!(solved.minimum(), minimum);
    prop_assert!((solved.sum() - sum).abs() < 1e-6, "sum {} of {sum}", solved.sum());
    let filled = water_filling(total, demands).unwrap();
    lawful(total, demands, &filled.split)?;
    prop_assert_eq!(filled.split.minimum(), minimum, "Algorithm 1 reaches the best minimum");
    prop_assert!(filled.split.sum() <= sum + 1e-9);
    let steps: usize = demands.iter().map(|demand| demand.curve.steps().len()).sum();
    prop_assert!(filled.picks as usize <= steps, "{} picks of {steps} steps", filled.picks);
    Ok(())
}

/// After Algorithm 1 no kernel can take the next step: it leaves nothing useful
/// unused.
fn saturated(total: Amount, demands: &[Demand]) -> Result<(), TestCaseError> {
    let Ok(filled) = water_filling(total, demands) else { return Ok(()) };
    for (place, demand) in demands.iter().enumerate() {
        let mut ctas = filled.split.ctas.clone();
        let next = demand.curve.steps().iter().find(|step| step.ctas > ctas[place]);
        if let Some(next) = next {
            ctas[place] = next.ctas;
            prop_assert!(!fits(total, demands, &ctas), "kernel {place} could still grow");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn two_to_four_kernels_of_eight_ctas(
        demands in proptest::collection::vec(any_demand(8), 2..=4),
    ) {
        agree(SM, &demands)?;
        saturated(SM, &demands)?;
    }

    #[test]
    fn two_and_three_kernels_of_thirty_two_ctas(
        demands in proptest::collection::vec(any_demand(32), 2..=3),
    ) {
        agree(WIDE, &demands)?;
        saturated(WIDE, &demands)?;
    }
}

/// The best sum of efficiencies over every way to take whole groups out of the rest,
/// computed without patterns, once for each rest.
fn best_groups(slowdown: &[Vec<f64>], places: u32, left: &[u64], known: &mut Known) -> Option<f64> {
    if left.iter().all(|&waiting| waiting == 0) {
        return Some(0.0);
    }
    if let Some(&found) = known.get(left) {
        return found;
    }
    let mut best: Option<f64> = None;
    for group in groups(left.len(), places) {
        let less = |(&waiting, &count): (&u64, &u32)| waiting.checked_sub(u64::from(count));
        let Some(rest) = left.iter().zip(&group).map(less).collect::<Option<Vec<u64>>>() else {
            continue;
        };
        if let Some(worth) = best_groups(slowdown, places, &rest, known) {
            let worth = worth + efficiency(slowdown, &group);
            best = Some(best.map_or(worth, |best| best.max(worth)));
        }
    }
    known.insert(left.to_vec(), best);
    best
}

type Known = BTreeMap<Vec<u64>, Option<f64>>;

/// Every count of classes from (0, 0, ...) up whose sum is `places`.
fn groups(classes: usize, places: u32) -> Vec<Vec<u32>> {
    let mut all = vec![vec![]];
    for _ in 0..classes {
        let longer = |group: &Vec<u32>| {
            (0..=places).map(|count| [&group[..], &[count]].concat()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all.retain(|group| group.iter().sum::<u32>() == places);
    all
}

/// Is every application in exactly one group, and is the objective that of the groups?
fn holds(patterns: &[Pattern], demand: &[u64], found: &Matching) -> Result<(), TestCaseError> {
    for (class, &waiting) in demand.iter().enumerate() {
        let used = patterns.iter().zip(&found.groups);
        let used: u64 = used.map(|(one, &groups)| u64::from(one.counts[class]) * groups).sum();
        prop_assert_eq!(used, waiting);
    }
    let worth = patterns.iter().zip(&found.groups).map(|(one, &n)| one.efficiency * n as f64);
    prop_assert!((worth.sum::<f64>() - found.objective).abs() < 1e-9);
    Ok(())
}

fn any_slowdown(classes: usize) -> impl Strategy<Value = Vec<Vec<f64>>> {
    // Coarse ones, so that many groupings are worth the same, and fine ones.
    let one = prop_oneof![
        (2_u32..=8).prop_map(|halves| f64::from(halves) / 2.0),
        (1000_u32..=4000).prop_map(|thousandths| f64::from(thousandths) / 1000.0),
    ];
    proptest::collection::vec(proptest::collection::vec(one, classes), classes)
}

fn any_queue(most: u64) -> impl Strategy<Value = (Vec<Vec<f64>>, Vec<u64>, u32)> {
    (1_usize..=4, 2_u32..=3).prop_flat_map(move |(classes, places)| {
        let jobs = proptest::collection::vec(0..classes, 1..=usize::try_from(most).unwrap());
        (any_slowdown(classes), jobs).prop_map(move |(slowdown, jobs)| {
            let of = |class| jobs.iter().filter(|&&job| job == class).count() as u64;
            (slowdown, (0..classes).map(of).collect(), places)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nothing_is_worth_more_than_the_matching((slowdown, waiting, places) in any_queue(9)) {
        let demand = with_idle(&waiting, places);
        let patterns = patterns(&slowdown, &demand, places);
        let found = matching(&patterns, &demand, Engine::default()).unwrap();
        holds(&patterns, &demand, &found)?;
        let best = best_groups(&slowdown, places, &demand, &mut Known::new()).unwrap();
        prop_assert!((found.objective - best).abs() < 1e-9, "{} of {best}", found.objective);
        if cfg!(feature = "highs") {
            let other = matching(&patterns, &demand, Engine::Microlp).unwrap();
            prop_assert!((found.objective - other.objective).abs() < 1e-9);
        }
    }
}

/// A seeded source of numbers (SplitMix64), from 0 to below `below`.
fn draw(seed: &mut u64, below: u64) -> u64 {
    *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) % below
}

#[test]
fn ten_thousand_applications_take_less_than_a_second() {
    let mut slowest = Duration::ZERO;
    for seed in 0..40 {
        let mut state = seed;
        let steps = [1, 4, 1000][usize::try_from(seed % 3).unwrap()];
        let mut slow = || 1.0 + draw(&mut state, 3 * steps + 1) as f64 / steps as f64;
        let slowdown: Vec<Vec<f64>> = (0..4).map(|_| (0..4).map(|_| slow()).collect()).collect();
        let mut waiting = [0_u64; 4];
        for _ in 0..10_000 - seed % 7 {
            let most = draw(&mut state, 4) + 1;
            waiting[usize::try_from(draw(&mut state, most)).unwrap()] += 1;
        }
        for places in [2, 3] {
            let begin = Instant::now();
            let demand = with_idle(&waiting, places);
            let patterns = patterns(&slowdown, &demand, places);
            let found = matching(&patterns, &demand, Engine::default()).unwrap();
            slowest = slowest.max(begin.elapsed());
            holds(&patterns, &demand, &found).unwrap();
        }
    }
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
}

#[test]
fn patterns_that_cannot_use_up_the_queue_are_refused() {
    let demand = [4, 4];
    let only = |counts: &[&[u32]]| {
        let patterns: Vec<Pattern> = counts
            .iter()
            .map(|counts| Pattern { counts: counts.to_vec(), efficiency: 1.0 })
            .collect();
        matching(&patterns, &demand, Engine::default())
    };
    assert_eq!(only(&[&[2, 0], &[0, 2]]).unwrap().groups, [2, 2]);
    assert_eq!(only(&[&[3, 0], &[0, 2]]), Err(NoMatching::Infeasible), "4 is not 3 and 3");
    assert_eq!(only(&[&[2, 0]]), Err(NoMatching::Infeasible), "no group takes the others");
    assert_eq!(only(&[&[2, 0], &[1, 3]]), Err(NoMatching::Infeasible), "4 is not 3 and 1");
    assert_eq!(only(&[]), Err(NoMatching::Infeasible));
    assert!(matching(&[], &[0], Engine::default()).unwrap().groups.is_empty());
}

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
