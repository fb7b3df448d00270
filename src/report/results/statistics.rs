//! Means of lists of figures, as papers state them.
//!
//! A list with a value that is not finite has no mean of any kind: `None`, not a
//! number that looks like one.

use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::statistics::Statistics;

use crate::format::float;

/// Arithmetic mean; `None` of nothing or where a value is not finite.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    usable(values).then(|| values.mean())
}

/// Geometric mean; `None` of nothing or where a value is not finite or not above 0.
#[must_use]
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let positive = values.iter().all(|&value| value > 0.0);
    (usable(values) && positive).then(|| values.geometric_mean())
}

/// Harmonic mean; `None` of nothing or where a value is not finite or below 0; 0
/// where a value is 0.
pub(crate) fn harmonic_mean(values: &[f64]) -> Option<f64> {
    let positive = values.iter().all(|&value| value >= 0.0);
    (usable(values) && positive).then(|| values.harmonic_mean())
}

/// Both ends of the interval that holds the mean behind the values with
/// `confidence` (above 0, below 1), by Student's t; `None` of fewer than two, where
/// a value is not finite or where `confidence` is none.
pub(crate) fn confidence_interval(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    if values.len() < 2 || !usable(values) || !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let count = float(values.len());
    let t = StudentsT::new(0.0, 1.0, count - 1.0).ok()?.inverse_cdf(f64::midpoint(1.0, confidence));
    let reach = t * values.std_dev() / count.sqrt();
    let mean = values.mean();
    Some((mean - reach, mean + reach))
}

fn usable(values: &[f64]) -> bool {
    !values.is_empty() && values.iter().all(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::{confidence_interval, geometric_mean, harmonic_mean, mean};

    fn close(value: Option<f64>, expected: f64) {
        assert!(value.is_some_and(|value| (value - expected).abs() < 1e-9), "{value:?}");
    }

    #[test]
    fn means_of_two_and_eight() {
        close(mean(&[2.0, 8.0]), 5.0);
        close(geometric_mean(&[2.0, 8.0]), 4.0);
        close(harmonic_mean(&[2.0, 8.0]), 3.2);
    }

    #[test]
    fn what_has_no_mean_has_none() {
        for values in [&[][..], &[1.0, f64::INFINITY], &[f64::NAN]] {
            assert_eq!(mean(values), None);
            assert_eq!((geometric_mean(values), harmonic_mean(values)), (None, None));
        }
        assert_eq!((geometric_mean(&[1.0, 0.0]), geometric_mean(&[1.0, -2.0])), (None, None));
        assert_eq!((harmonic_mean(&[1.0, 0.0]), harmonic_mean(&[-1.0])), (Some(0.0), None));
    }

    #[test]
    fn the_interval_of_one_to_five_is_a_table_s() {
        // Mean 3, deviation sqrt(2.5), t of 4 degrees at 95 % 2.776445: 3 +- 1.963243.
        let (low, high) = confidence_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).unwrap();
        assert!((low - 1.036_757).abs() < 1e-5 && (high - 4.963_243).abs() < 1e-5, "{low} {high}");
        assert_eq!(confidence_interval(&[3.0, 3.0], 0.9), Some((3.0, 3.0)));
        assert_eq!(confidence_interval(&[3.0], 0.95), None);
        assert_eq!(confidence_interval(&[3.0, 4.0], 1.0), None);
    }
}
