//! How fast a kernel is with each number of CTAs on an SM.

use thiserror::Error;

/// One measured point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// CTAs of the kernel on the SM, from 1.
    pub ctas: u32,
    /// Its speed in any unit that is the same for all samples of the kernel.
    pub speed: f64,
}

/// A number of CTAs that is better than every smaller one: an entry of the
/// paper's vectors Q and M.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// CTAs (M).
    pub ctas: u32,
    /// Performance against the kernel's own best, 0 to 1 (Q).
    pub performance: f64,
}

/// The speed of one kernel against its CTAs on an SM.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    samples: Vec<Sample>,
    steps: Vec<Step>,
}

/// Why samples are not a curve.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum BadCurve {
    /// There is no sample with one CTA, from which every split begins.
    #[error("the first sample of a curve must be that of one CTA")]
    Start,
    /// Counts of CTAs do not grow.
    #[error("the sample of {0} CTAs does not follow one of fewer")]
    Order(u32),
    /// A speed is negative or not finite.
    #[error("a speed of {speed} with {ctas} CTAs is none")]
    Speed {
        /// CTAs of the sample.
        ctas: u32,
        /// Its speed.
        speed: f64,
    },
}

impl Curve {
    /// The curve through `samples`, by rising CTA counts from 1; counts may be
    /// left out. Performance is divided by the best sample; when all samples are
    /// zero nothing is known of the kernel and its performance is 0.
    ///
    /// The first step is one CTA also when its speed is 0: a kernel always holds
    /// one, and the paper's Algorithm 1 would else count from the wrong place.
    ///
    /// # Errors
    /// [`BadCurve`] when the first sample is not of one CTA, counts do not rise,
    /// or a speed is negative, infinite or not a number.
    pub fn new(samples: &[Sample]) -> Result<Self, BadCurve> {
        let mut before = 0;
        for &Sample { ctas, speed } in samples {
            if ctas <= before {
                return Err(BadCurve::Order(ctas));
            }
            if !(speed.is_finite() && speed >= 0.0) {
                return Err(BadCurve::Speed { ctas, speed });
            }
            before = ctas;
        }
        if samples.first().is_none_or(|first| first.ctas != 1) {
            return Err(BadCurve::Start);
        }
        let best = samples.iter().fold(0.0_f64, |best, sample| best.max(sample.speed));
        Ok(Self { samples: samples.to_vec(), steps: steps(samples, best) })
    }

    /// The samples it was made of.
    #[must_use]
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The numbers of CTAs worth having, by rising count and performance.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}

/// Running bests of `samples` against `best`.
fn steps(samples: &[Sample], best: f64) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::with_capacity(samples.len());
    for sample in samples {
        let performance = if best > 0.0 { sample.speed / best } else { 0.0 };
        if steps.last().is_none_or(|last| performance > last.performance) {
            steps.push(Step { ctas: sample.ctas, performance });
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::{BadCurve, Curve, Sample, Step};

    fn curve(speeds: &[f64]) -> Result<Curve, BadCurve> {
        let samples = (1..).zip(speeds).map(|(ctas, &speed)| Sample { ctas, speed });
        Curve::new(&samples.collect::<Vec<_>>())
    }

    fn steps(speeds: &[f64]) -> Vec<(u32, f64)> {
        let curve = curve(speeds).unwrap();
        curve.steps().iter().map(|&Step { ctas, performance }| (ctas, performance)).collect()
    }

    #[test]
    fn only_counts_better_than_all_smaller_ones_are_steps() {
        assert_eq!(steps(&[10.0, 10.0, 20.0, 15.0, 40.0]), [(1, 0.25), (3, 0.5), (5, 1.0)]);
        assert_eq!(steps(&[4.0, 2.0, 1.0]), [(1, 1.0)], "one CTA is best");
    }

    #[test]
    fn a_kernel_that_did_nothing_with_one_cta_still_begins_there() {
        assert_eq!(steps(&[0.0, 0.0, 3.0]), [(1, 0.0), (3, 1.0)]);
        assert_eq!(steps(&[0.0, 0.0]), [(1, 0.0)], "nothing is known of it");
    }

    #[test]
    fn the_smallest_speeds_have_a_best() {
        assert_eq!(steps(&[f64::MIN_POSITIVE, f64::MAX])[1], (2, 1.0));
    }

    #[test]
    fn what_is_no_curve_is_refused() {
        assert_eq!(curve(&[]), Err(BadCurve::Start));
        let two = Sample { ctas: 2, speed: 1.0 };
        assert_eq!(Curve::new(&[two]), Err(BadCurve::Start));
        let one = Sample { ctas: 1, speed: 1.0 };
        assert_eq!(Curve::new(&[one, two, two]), Err(BadCurve::Order(2)));
        assert!(matches!(curve(&[1.0, f64::NAN]), Err(BadCurve::Speed { ctas: 2, .. })));
        assert!(matches!(curve(&[-1.0]), Err(BadCurve::Speed { ctas: 1, .. })));
        assert!(Curve::new(&[one, Sample { ctas: 4, speed: 2.0 }]).is_ok(), "gaps are allowed");
    }
}
