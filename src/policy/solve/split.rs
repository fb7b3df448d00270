//! The problem of splitting an SM: resources, speeds by numbers of CTAs, and splits.

use thiserror::Error;

/// An amount of each resource of an SM: what a CTA takes, or the whole SM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// 32-bit registers.
    pub registers: u64,
    /// Bytes of shared memory.
    pub shared_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// Warps.
    pub warps: u64,
    /// CTA slots.
    pub cta_slots: u64,
}

impl Amount {
    /// Resources that an amount counts.
    pub const RESOURCES: usize = 5;

    /// The amounts in the order of the fields.
    #[must_use]
    pub fn parts(self) -> [u64; Self::RESOURCES] {
        [self.registers, self.shared_bytes, self.threads, self.warps, self.cta_slots]
    }

    fn of([registers, shared_bytes, threads, warps, cta_slots]: [u64; Self::RESOURCES]) -> Self {
        Self { registers, shared_bytes, threads, warps, cta_slots }
    }

    /// `count` times as much of each, saturating.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        Self::of(self.parts().map(|part| part.saturating_mul(u64::from(count))))
    }

    /// The sum, saturating.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    /// The larger of both, resource by resource.
    #[must_use]
    pub fn most(self, other: Self) -> Self {
        self.each(other, u64::max)
    }

    /// The smaller of both, resource by resource.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        self.each(other, u64::min)
    }

    fn each(self, other: Self, join: fn(u64, u64) -> u64) -> Self {
        let (mut parts, others) = (self.parts(), other.parts());
        for (part, other) in parts.iter_mut().zip(others) {
            *part = join(*part, other);
        }
        Self::of(parts)
    }

    /// The rest after `taken`; `None` when any resource is too small.
    #[must_use]
    pub fn minus(self, taken: Self) -> Option<Self> {
        let (mut left, taken) = (self.parts(), taken.parts());
        for (left, taken) in left.iter_mut().zip(taken) {
            *left = left.checked_sub(taken)?;
        }
        Some(Self::of(left))
    }

    /// How many of `need` it holds; `None` when `need` is zero of everything.
    #[must_use]
    pub fn holds(self, need: Self) -> Option<u64> {
        let pairs = self.parts().into_iter().zip(need.parts());
        pairs.filter_map(|(has, takes)| has.checked_div(takes)).min()
    }
}

/// One measured point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// CTAs of the kernel on the SM, from 1.
    pub ctas: u32,
    /// Its speed in any unit that is the same for all samples of the kernel.
    pub speed: f64,
}

/// A number of CTAs that is faster than every smaller one: an entry of the paper's vectors Q
/// and M.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// CTAs (M).
    pub ctas: u32,
    /// Performance against the kernel's best, 0 to 1 (Q).
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
    /// The first sample is not that of one CTA, from which every split begins.
    #[error("the first sample of a curve must be that of one CTA")]
    Start,
    /// Counts of CTAs do not grow.
    #[error("the sample of {0} CTAs does not follow one of fewer")]
    Order(u32),
    /// A speed is negative or not finite.
    #[error("{speed} with {ctas} CTAs is not a speed")]
    Speed {
        /// CTAs of the sample.
        ctas: u32,
        /// Its speed.
        speed: f64,
    },
}

impl Curve {
    /// The curve through `samples`, by rising CTA counts from 1; counts may be left out.
    /// Performance is relative to the best sample; when all samples are zero it is 0.
    ///
    /// The first step is one CTA even when its speed is 0: a kernel always holds one, and the
    /// paper's Algorithm 1 would otherwise count from the wrong place.
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

    /// The samples.
    #[must_use]
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The numbers of CTAs that are faster than every smaller one, rising.
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

/// One of the kernels between which an SM is split.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// What one CTA takes.
    pub need: Amount,
    /// Its speed by number of CTAs, up to the most that an SM holds of it.
    pub curve: Curve,
}

/// CTAs of each kernel on an SM.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// CTAs of each kernel, at least 1, in the order of the demands.
    pub ctas: Vec<u32>,
    /// Predicted performance of each against its best, 0 to 1.
    pub performance: Vec<f64>,
}

impl Split {
    /// The performance of the slowest kernel; 1 without kernels.
    #[must_use]
    pub fn minimum(&self) -> f64 {
        self.performance.iter().copied().fold(1.0, f64::min)
    }

    /// The sum of performances: 2.0 is two kernels at their best.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.performance.iter().sum()
    }

    /// The split in which kernel `i` is at entry `places[i]` of its steps.
    pub(super) fn at(demands: &[Demand], places: &[usize]) -> Self {
        let steps = demands.iter().zip(places).map(|(demand, &place)| demand.curve.steps()[place]);
        let (ctas, performance) = steps.map(|step| (step.ctas, step.performance)).unzip();
        Self { ctas, performance }
    }

    /// The part of `total` that it leaves free; `None` when it takes more.
    pub(super) fn leaves(&self, total: Amount, demands: &[Demand]) -> Option<Amount> {
        let mut pairs = demands.iter().zip(&self.ctas);
        pairs.try_fold(total, |left, (demand, &ctas)| left.minus(demand.need.times(ctas)))
    }
}

/// Why no split was found.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unsolved {
    /// An SM does not hold one CTA of each kernel.
    #[error("an SM does not hold one CTA of each kernel")]
    DoesNotFit,
    /// The solver of the integer program did not finish.
    #[error("the integer program was not solved: {0}")]
    Solver(String),
    /// The solver's answer is invalid or not the best, by its rounding errors.
    #[error("the integer program's answer is wrong: {0}")]
    Wrong(String),
}

#[cfg(test)]
mod tests {
    use super::{Amount, BadCurve, Curve, Sample, Step};

    #[test]
    fn the_scarcest_resource_decides() {
        let total = Amount {
            registers: 32_768,
            shared_bytes: 49_152,
            threads: 1536,
            warps: 48,
            cta_slots: 8,
        };
        let need =
            Amount { registers: 4096, shared_bytes: 16_384, threads: 64, warps: 2, cta_slots: 1 };
        assert_eq!(total.holds(need), Some(3), "three times 16 KB are 48 KB");
        assert_eq!(total.minus(need.times(3)).unwrap().shared_bytes, 0);
        assert_eq!(total.minus(need.times(4)), None);
        assert_eq!(total.holds(Amount::default()), None, "any number of zeros fits");
        assert_eq!(need.times(u32::MAX).times(u32::MAX).times(u32::MAX).warps, u64::MAX);
    }

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
        assert_eq!(steps(&[0.0, 0.0]), [(1, 0.0)], "its speed is unknown");
    }

    #[test]
    fn the_smallest_speeds_have_a_best() {
        assert_eq!(steps(&[f64::MIN_POSITIVE, f64::MAX])[1], (2, 1.0));
    }

    #[test]
    fn samples_that_are_not_a_curve_are_refused() {
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
