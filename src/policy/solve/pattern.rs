//! Patterns of classes: which kinds of applications a group has, and what that is
//! worth.

use gpumodel_core::units::to_u64;

/// How many applications of each class a group has (ILP-SMRA, eq. 2).
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// Applications of each class; where places stay idle, their count comes last.
    pub counts: Vec<u32>,
    /// What a group of it is worth (eq. 3): see [`efficiency`].
    pub efficiency: f64,
}

/// Patterns of `classes` classes in groups of `places` (N_P, eq. 1): the multisets.
/// `None` when there are 2^64 or more.
#[must_use]
pub fn count_patterns(classes: usize, places: u32) -> Option<u64> {
    let classes = u128::from(to_u64(classes));
    let ways = (0..u128::from(places)).try_fold(1_u128, |ways, place| {
        // The product of so many neighbours is divisible by the factorial so far.
        Some(ways.checked_mul(classes + place)? / (place + 1))
    });
    ways.and_then(|ways| u64::try_from(ways).ok())
}

/// Applications of each class, with the places that stay idle behind them where the
/// queue cannot be divided by `places`: the fewest that make it so.
///
/// # Panics
/// When groups have no place.
#[must_use]
pub fn with_idle(waiting: &[u64], places: u32) -> Vec<u64> {
    let over = waiting.iter().sum::<u64>() % u64::from(places);
    let idle = (over > 0).then(|| u64::from(places) - over);
    waiting.iter().copied().chain(idle).collect()
}

/// Every pattern of `places` that asks for no more of a class than `demand` has, the
/// first classes first. `demand` is [`with_idle`]'s: places beyond the classes of
/// `slowdown` are idle.
///
/// # Panics
/// When a slow-down that counts is missing.
#[must_use]
pub fn patterns(slowdown: &[Vec<f64>], demand: &[u64], places: u32) -> Vec<Pattern> {
    let mut behind: Vec<u64> = vec![0; demand.len() + 1];
    for class in (0..demand.len()).rev() {
        behind[class] = behind[class + 1] + demand[class];
    }
    let mut all = Vec::new();
    let mut counts = vec![0; demand.len()];
    fill(demand, &behind, 0, places, &mut counts, &mut |counts| {
        let efficiency = efficiency(slowdown, counts);
        all.push(Pattern { counts: counts.to_vec(), efficiency });
    });
    all
}

/// Gives `left` places to the classes from `class` on in every way; `behind` says how
/// many applications these classes have.
fn fill(
    demand: &[u64],
    behind: &[u64],
    class: usize,
    left: u32,
    counts: &mut [u32],
    found: &mut impl FnMut(&[u32]),
) {
    if left == 0 {
        return found(counts);
    }
    if behind[class] < u64::from(left) {
        return;
    }
    let most = u32::try_from(demand[class]).map_or(left, |waiting| waiting.min(left));
    for count in (0..=most).rev() {
        counts[class] = count;
        fill(demand, behind, class + 1, left - count, counts, found);
    }
}

/// Eq. 3: the sum of 1 / `slowdown[j][i]` over all ordered pairs of different places
/// (j disturbs, i suffers; two of the same class are a pair, too) over the number of
/// places. A place that stays idle disturbs nobody, so beside it 1 is added for each
/// that suffers; it does no work itself, so nothing is added for it.
///
/// # Panics
/// When a slow-down that counts is missing.
#[must_use]
pub fn efficiency(slowdown: &[Vec<f64>], counts: &[u32]) -> f64 {
    let some = |&(_, count): &(usize, u32)| count > 0;
    let held: Vec<(usize, u32)> = counts.iter().copied().enumerate().filter(some).collect();
    let mut sum = 0.0;
    for &(sufferer, suffer) in held.iter().filter(|(class, _)| *class < slowdown.len()) {
        for &(disturber, disturb) in &held {
            let others = if disturber == sufferer { disturb - 1 } else { disturb };
            if others > 0 {
                let slowdown = slowdown.get(disturber).map_or(1.0, |row| row[sufferer]);
                sum += f64::from(suffer) * f64::from(others) / slowdown;
            }
        }
    }
    sum / f64::from(counts.iter().sum::<u32>()).max(1.0)
}

/// The most groups of a pattern that `demand` allows.
pub(super) fn most_groups(pattern: &Pattern, demand: &[u64]) -> u64 {
    let asked = pattern.counts.iter().zip(demand).filter(|(count, _)| **count > 0);
    asked.map(|(&count, &waiting)| waiting / u64::from(count)).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{count_patterns, efficiency, patterns, with_idle};

    /// As far as the paper prints them: M, MC, C, A disturb (row) and suffer (column).
    fn published() -> Vec<Vec<f64>> {
        vec![
            vec![2.10, 1.78, 1.61, 1.20],
            vec![2.05, 1.60, 1.55, 1.10],
            vec![1.76, 1.55, 1.50, 1.08],
            vec![1.51, 1.30, 1.20, 1.06],
        ]
    }

    #[test]
    fn four_classes_make_ten_pairs_and_twenty_triples() {
        for (places, number) in [(1, 4), (2, 10), (3, 20), (4, 35)] {
            assert_eq!(count_patterns(4, places), Some(number));
            let all = patterns(&published(), &[9; 4], places);
            assert_eq!(all.len() as u64, number);
            assert!(all.iter().all(|one| one.counts.iter().sum::<u32>() == places));
            let unique = |place: usize| !all[..place].iter().any(|o| o.counts == all[place].counts);
            assert!((0..all.len()).all(unique));
        }
        assert_eq!(count_patterns(36, 3), Some(8436), "each of 36 applications a class");
        assert_eq!(count_patterns(usize::MAX, 3), None);
    }

    #[test]
    fn every_ordered_pair_of_places_counts() {
        let s = published();
        let same = efficiency(&s, &[2, 0, 0, 0]);
        assert!((same - 2.0 / 2.10 / 2.0).abs() < 1e-12, "M slows M, both ways: {same}");
        let mixed = efficiency(&s, &[1, 0, 0, 1]);
        assert!((mixed - (1.0 / 1.20 + 1.0 / 1.51) / 2.0).abs() < 1e-12, "{mixed}");
        // Three: six ordered pairs over three places.
        let three = efficiency(&s, &[2, 0, 0, 1]);
        let pairs = 2.0 / 2.10 + 2.0 / 1.20 + 2.0 / 1.51;
        assert!((three - pairs / 3.0).abs() < 1e-12, "{three}");
    }

    #[test]
    fn an_idle_place_disturbs_nobody_and_does_nothing() {
        assert_eq!(with_idle(&[3, 4], 3), [3, 4, 2]);
        assert_eq!(with_idle(&[3, 3], 3), [3, 3]);
        let s = published();
        assert_eq!(efficiency(&s, &[1, 0, 0, 0, 1]), 0.5, "one works as if alone");
        assert_eq!(efficiency(&s, &[0, 0, 0, 1, 2]), 2.0 / 3.0);
        let idle = patterns(&s, &with_idle(&[1, 0, 0, 0], 2), 2);
        assert_eq!(idle.iter().map(|one| &one.counts[..]).collect::<Vec<_>>(), [[1, 0, 0, 0, 1]]);
    }

    #[test]
    fn nothing_is_asked_for_that_the_queue_does_not_have() {
        let all = patterns(&published(), &[1, 1, 2, 0], 2);
        let counts: Vec<&[u32]> = all.iter().map(|one| &one.counts[..]).collect();
        assert_eq!(counts, [[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 2, 0]]);
    }
}
