//! Does the integer program equal an exhaustive search over groupings?

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use gpumodel::policy::solve::{
    Engine, Matching, NoMatching, Pattern, efficiency, matching, patterns, with_idle,
};
use proptest::prelude::*;

/// The best sum of efficiencies over every way to take whole groups out of the rest,
/// computed without patterns, once for each rest.
fn best_of_all(slowdown: &[Vec<f64>], places: u32, left: &[u64], known: &mut Known) -> Option<f64> {
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
        if let Some(worth) = best_of_all(slowdown, places, &rest, known) {
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
        let best = best_of_all(&slowdown, places, &demand, &mut Known::new()).unwrap();
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
