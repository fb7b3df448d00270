//! When a rate counts as steady: a test over the last windows.

/// Windows that a test looks at.
pub(super) const WINDOWS: usize = 8;

/// Student's t for 95 % on both sides, for the mean of [`WINDOWS`] windows.
const T_MEAN: f64 = 2.365;

/// The same for the slope of a line through them.
const T_SLOPE: f64 = 2.447;

/// Half the interval of a steady rate, as a part of it, at most.
const WIDEST: f64 = 0.03;

/// A steady rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rate {
    /// Instructions per cycle.
    pub(super) mean: f64,
    /// The standard error of that, as a part of it.
    pub(super) error: f64,
}

/// The rate of the last windows, where it is steady: its 95 % interval is at most 3 % to either
/// side, and a line through the windows does not rise or fall (Student's t at 95 %) by more than
/// that either. `rates` has one rate per window, [`WINDOWS`] at least.
pub(super) fn steady(rates: &[f64]) -> Option<Rate> {
    let rates = &rates[rates.len().checked_sub(WINDOWS)?..];
    let count = WINDOWS as f64;
    let mean = rates.iter().sum::<f64>() / count;
    if mean <= 0.0 {
        return None;
    }
    let middle = (count - 1.0) / 2.0;
    let places = || (0..WINDOWS).map(|place| place as f64 - middle);
    let spread = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>();
    let square = places().map(|x| x * x).sum::<f64>();
    let slope = places().zip(rates).map(|(x, rate)| x * rate).sum::<f64>() / square;
    let residue = (spread - slope * slope * square).max(0.0);
    let slope_error = (residue / (count - 2.0) / square).sqrt();
    let error = (spread / (count - 1.0) / count).sqrt() / mean;
    let rises = slope.abs() > T_SLOPE * slope_error && slope.abs() * count > WIDEST * mean;
    (T_MEAN * error <= WIDEST && !rises).then_some(Rate { mean, error })
}

#[cfg(test)]
mod tests {
    use super::steady;

    #[test]
    fn a_constant_rate_is_steady_and_known_exactly() {
        let rate = steady(&[2.0; 8]).unwrap();
        assert!((rate.mean - 2.0).abs() < 1e-12 && rate.error < 1e-12);
    }

    #[test]
    fn noise_is_steady_while_its_mean_is_known() {
        let noisy = |part: f64| -> Vec<f64> {
            [1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0].map(|sign| 1.0 + part * sign).into()
        };
        assert!(steady(&noisy(0.01)).is_some());
        assert_eq!(steady(&noisy(0.05)), None);
    }

    #[test]
    fn a_rate_that_rises_is_not_steady() {
        let rates: Vec<f64> = (0..8).map(|place| 1.0 + 0.005 * f64::from(place)).collect();
        assert_eq!(steady(&rates), None);
        assert!(steady(&rates[..4]).is_none(), "too few windows");
    }
}
