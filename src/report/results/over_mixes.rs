//! How the gains of several mixes become the one value of a row.

use super::statistics::{geometric_mean, mean};

/// The mean called `name` of `ratios`, 1 where nothing is gained; `None` of nothing, or
/// where the mean does not exist.
///
/// `best` and `largest` are the largest ratio. `largest-change` is the one furthest from 1,
/// above or below: what a paper bounds for every mix is not met by gains of one that cancel
/// losses of another.
pub(super) fn over_mixes(name: &str, ratios: &[f64]) -> Option<f64> {
    match name {
        "best" | "largest" => ratios.iter().copied().reduce(f64::max),
        "largest-change" => ratios.iter().copied().reduce(further),
        "geometric" => geometric_mean(ratios),
        _ => mean(ratios),
    }
}

/// Which is further from 1; the first where both are as far.
fn further(one: f64, other: f64) -> f64 {
    if (other - 1.0).abs() > (one - 1.0).abs() { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::over_mixes;

    #[test]
    fn gains_and_losses_cancel_in_a_mean_and_not_in_the_largest_change() {
        let ratios = [1.07, 0.94];
        assert!((over_mixes("arithmetic", &ratios).unwrap() - 1.0).abs() < 0.01);
        assert!((over_mixes("geometric", &ratios).unwrap() - 1.0).abs() < 0.01);
        assert_eq!(over_mixes("largest-change", &ratios), Some(1.07));
    }

    #[test]
    fn a_change_is_the_furthest_from_one_on_either_side() {
        let change = |ratios: &[f64]| over_mixes("largest-change", ratios);
        assert_eq!(change(&[1.03, 0.93, 1.05]), Some(0.93));
        assert_eq!(change(&[0.99, 1.04]), Some(1.04));
        assert_eq!((change(&[1.0]), change(&[])), (Some(1.0), None));
        assert_eq!(over_mixes("largest", &[1.03, 0.93, 1.05]), Some(1.05));
    }
}
