//! The mathematics of sharing: pure, without Facts, Views or Plans.
//!
//! Several kernels share an SM. A [`Demand`] says what a CTA of a kernel takes and how fast
//! the kernel is with 1, 2, … CTAs; a [`Split`] gives each kernel a number of CTAs. The best
//! split is the one whose slowest kernel is fastest, each relative to its best
//! (Warped-Slicer, eq. 1): max min `P(i, T_i)` subject to the sum of the needs being within
//! the SM. [`water_filling`] is the paper's Algorithm 1, [`exact`] the same as an integer
//! program; both find the same minimum, for the reason in [`water_filling`].
//!
//! [`greedy`] gives each kernel a configuration so that the one with most time left ends
//! soonest (ARCS 2018, Algorithm 1).
//!
//! Applications of several classes wait to run in groups. A [`Pattern`] says how many of
//! each class a group has and what that is worth; [`matching`] finds how many groups follow
//! each of them (ILP-SMRA, eq. 1 to 5).
//!
//! [`redistribute`] moves SMs to compute-bound and memory channels to memory-bound
//! applications, until all have what they ask for (UGPU, Fig. 5).

mod exact;
mod greedy;
mod matching;
mod redistribution;
mod split;
mod water_filling;

pub use exact::exact;
pub use greedy::{Candidate, greedy};
pub use matching::{
    Engine, Matching, NoMatching, Pattern, count_patterns, efficiency, matching, patterns,
    with_idle,
};
pub use redistribution::{Redistribution, Resources, Slice, Stop, Terms, redistribute};
pub use split::{Amount, BadCurve, Curve, Demand, Sample, Split, Step, Unsolved};
pub use water_filling::{Filling, water_filling};

/// Divides `total` in proportion to `weights` by largest remainders, at least 1 for each.
/// Where the lowest shares are raised to 1, the one most above its exact share loses 1. Ties
/// go to the lowest index.
///
/// # Panics
/// When `total` is less than 1 for each, or a weight is 0.
#[must_use]
pub fn proportion(total: u64, weights: &[u64]) -> Vec<u64> {
    let all: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    assert!(u128::from(total) >= weights.len() as u128, "at least one for each");
    assert!(weights.iter().all(|&weight| weight > 0), "weights are above 0");
    // In units of 1 / all, so that everything is whole.
    let exact: Vec<u128> =
        weights.iter().map(|&weight| u128::from(weight) * u128::from(total)).collect();
    let mut parts: Vec<u128> = exact.iter().map(|&exact| (exact / all).max(1)).collect();
    let given = |parts: &[u128]| parts.iter().sum::<u128>();
    while given(&parts) < u128::from(total) {
        let lacks =
            |&place: &usize| (std::cmp::Reverse(lack(exact[place], parts[place], all)), place);
        let place = (0..parts.len()).min_by_key(lacks).expect("a part is below its share");
        parts[place] += 1;
    }
    while given(&parts) > u128::from(total) {
        let rich = (0..parts.len()).filter(|&place| parts[place] > 1);
        let place = rich.min_by_key(|&place| (lack(exact[place], parts[place], all), place));
        parts[place.expect("a part is above 1")] -= 1;
    }
    let narrow = |part| u64::try_from(part).expect("a part is at most the total");
    parts.into_iter().map(narrow).collect()
}

/// What a part lacks of its exact share, in units of 1 / `all`; less than 0: it has more.
fn lack(exact: u128, part: u128, all: u128) -> i128 {
    let signed = |value: u128| i128::try_from(value).unwrap_or(i128::MAX);
    signed(exact).saturating_sub(signed(part * all))
}

/// A count as a number with a fraction.
#[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::proportion;

    #[test]
    fn what_fits_stays_and_what_does_not_is_scaled() {
        assert_eq!(proportion(60, &[36, 24]), [36, 24]);
        assert_eq!(proportion(60, &[12, 12]), [30, 30]);
        assert_eq!(proportion(60, &[60, 30]), [40, 20]);
        assert_eq!(proportion(60, &[60, 60, 54]), [21, 21, 18], "20.7, 20.7 and 18.6");
        assert_eq!(proportion(5, &[1, 1]), [3, 2], "of equals the first");
    }

    #[test]
    fn each_has_at_least_one() {
        assert_eq!(proportion(4, &[100, 1, 1, 1]), [1, 1, 1, 1]);
        assert_eq!(proportion(10, &[100, 1, 1]), [8, 1, 1]);
        assert_eq!(proportion(6, &[100, 50, 1]), [3, 2, 1], "3.97, 1.99 and 0.04");
        assert_eq!(proportion(1, &[7]), [1]);
    }
}
