//! Random numbers of a workload: pure functions of the seed and the keys, the same on every
//! machine, thread and run.
//!
//! `hash` draws evenly, `skew` by Zipf's law: of the numbers in `0..range`, `i` comes with a
//! probability proportional to 1 / (i + 1)^exponent.
//!
//! Zipf's law is drawn by rejection. The range is cut into buckets, 32 per power of two, the
//! first ones of one number each; a bucket is chosen as if all of its numbers were as probable
//! as its first, a number of it evenly, and that is kept with the probability of its own
//! weight. So a draw costs a search among some hundred buckets at most, and most cost no power
//! at all: a number is kept at once where even the least of its bucket would be.
//!
//! The law holds to within 2^-40 of each probability, which is rounding: a bucket's share
//! is a multiple of 2^-63, weights are products and square roots of `f64`. Besides division
//! and comparison those are the only operations, and IEEE 754 fixes each of their bits;
//! `powf` and `ln` may differ between machines.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use gpumodel_core::units::to_u64;

/// How often each number of a range is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Distribution {
    /// Each in `0..range` as often as another.
    Even(u64),
    /// The first ones most.
    Skewed(Arc<Zipf>),
}

impl Distribution {
    /// That of `hash` for a range, where it is a constant.
    pub(super) fn even(range: Option<i64>) -> Result<Self, String> {
        let range = range.and_then(|range| u64::try_from(range).ok());
        let range = range.filter(|&range| range > 0);
        let wrong = "the range of `hash`, its last argument, must be a constant above 0";
        range.map(Self::Even).ok_or_else(|| wrong.to_owned())
    }

    /// The number that a state stands for.
    pub(super) fn draw(&self, state: u64) -> i64 {
        match self {
            Self::Even(range) => scale(state, *range),
            Self::Skewed(zipf) => zipf.draw(state),
        }
    }
}

/// Most pairs of exponent and range of a workload: each is a table.
const SKEWED: usize = 64;

/// The skewed distributions of a workload, each computed once.
#[derive(Debug, Default)]
pub(super) struct Distributions(RefCell<BTreeMap<(u32, u64), Arc<Zipf>>>);

impl Distributions {
    /// That of `skew` for an exponent in hundredths and a range, where they are constants.
    pub(super) fn skewed(
        &self,
        exponent: Option<i64>,
        range: Option<i64>,
    ) -> Result<Distribution, String> {
        let wrong = |what: &str, found: Option<i64>, expected: &str| {
            let found = found.map_or("no constant".to_owned(), |found| found.to_string());
            format!("{what} of `skew` is {found}, expected {expected}")
        };
        let power = exponent.and_then(|found| u32::try_from(found).ok());
        let power = power.filter(|found| Zipf::EXPONENTS.contains(found));
        let power = power.ok_or_else(|| {
            wrong("the exponent, last but one,", exponent, "1 to 400, in hundredths")
        })?;
        let below = range.and_then(|found| u64::try_from(found).ok());
        let below = below.filter(|found| Zipf::RANGES.contains(found));
        let below = below.ok_or_else(|| wrong("the range, last,", range, "1 to 2^40"))?;
        let mut made = self.0.borrow_mut();
        if made.len() == SKEWED && !made.contains_key(&(power, below)) {
            return Err(format!("`skew` has more than {SKEWED} pairs of exponent and range"));
        }
        let zipf = made.entry((power, below)).or_insert_with(|| Arc::new(Zipf::new(power, below)));
        Ok(Distribution::Skewed(Arc::clone(zipf)))
    }
}

/// Adds a key to the state of a draw.
pub(super) fn mix_in(state: u64, key: i64) -> u64 {
    mix(state ^ mix(key.cast_unsigned().wrapping_add(STEP)))
}

/// What SplitMix64 adds from number to number.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A number in `0..range` from 64 mixed bits, without the bias of a remainder.
pub(super) fn scale(bits: u64, range: u64) -> i64 {
    let high = (u128::from(bits) * u128::from(range)) >> 64;
    i64::try_from(high).unwrap_or(i64::MAX)
}

/// As many mixed bits as a draw needs: SplitMix64 from one state on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bits(u64);

impl Bits {
    /// Those of a state.
    pub(super) fn of(state: u64) -> Self {
        Self(state)
    }

    /// The next 64.
    pub(super) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }
}

/// The law for one exponent and range.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Zipf {
    /// In hundredths.
    exponent: u32,
    range: u64,
    buckets: Vec<Bucket>,
}

/// Neighbours that are chosen alike.
#[derive(Debug, PartialEq, Eq)]
struct Bucket {
    /// The first number.
    first: u64,
    /// Below what part of 2^63 a draw chooses this bucket or one before it.
    until: u64,
    /// The part of 2^63 with which every number of it is kept.
    sure: u64,
}

/// 1 in parts of 2^63.
const WHOLE: f64 = 9_223_372_036_854_775_808.0;

impl Zipf {
    /// Exponents in hundredths.
    pub(super) const EXPONENTS: RangeInclusive<u32> = 1..=400;
    /// Ranges.
    pub(super) const RANGES: RangeInclusive<u64> = 1..=1 << 40;

    /// The law for an exponent in hundredths and a range, each one of those above.
    pub(super) fn new(exponent: u32, range: u64) -> Self {
        let mut buckets = Vec::new();
        let mut reached = Vec::new();
        let (mut first, mut sum) = (0, 0.0);
        while first < range {
            let width = width(first).min(range - first);
            sum += decimal(width) / power(first + 1, exponent);
            reached.push(sum);
            let sure = parts(power(first + 1, exponent) / power(first + width, exponent));
            buckets.push(Bucket { first, until: 0, sure });
            first += width;
        }
        for (bucket, reached) in buckets.iter_mut().zip(reached) {
            bucket.until = parts(reached / sum);
        }
        Self { exponent, range, buckets }
    }

    /// The number that a state stands for.
    pub(super) fn draw(&self, state: u64) -> i64 {
        let mut bits = Bits::of(state);
        loop {
            let chosen = bits.draw() >> 1;
            let place = self.buckets.partition_point(|bucket| bucket.until <= chosen);
            let bucket = &self.buckets[place];
            let end = self.buckets.get(place + 1).map_or(self.range, |next| next.first);
            let number = to_u64(scale(bits.draw(), end - bucket.first)) + bucket.first;
            let keep = bits.draw() >> 1;
            if keep < bucket.sure || keep < self.kept(bucket.first, number) {
                return number.cast_signed();
            }
        }
    }

    /// The part of 2^63 with which `number` of the bucket from `first` on is kept.
    fn kept(&self, first: u64, number: u64) -> u64 {
        parts(power(first + 1, self.exponent) / power(number + 1, self.exponent))
    }
}

/// Numbers of the bucket that starts with `first`: a 32nd of the power of two below it.
fn width(first: u64) -> u64 {
    1 << first.checked_ilog2().unwrap_or(0).saturating_sub(5)
}

/// `base` to the power of so many hundredths, by square roots: their product over the
/// binary digits of the exponent.
fn power(base: u64, hundredths: u32) -> f64 {
    let base = decimal(base);
    let whole = (0..hundredths / 100).fold(1.0, |product, _| product * base);
    let (mut product, mut root, mut rest) = (whole, base, hundredths % 100);
    for _ in 0..52 {
        root = root.sqrt();
        rest *= 2;
        if rest >= 100 {
            rest -= 100;
            product *= root;
        }
    }
    product
}

/// A number up to 2^40 + 1, exactly.
#[allow(clippy::cast_precision_loss, reason = "an f64 holds it")]
fn decimal(number: u64) -> f64 {
    number as f64
}

/// A part of 1 in parts of 2^63.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 to 1 times 2^63 is in range"
)]
fn parts(part: f64) -> u64 {
    (part * WHOLE) as u64
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{ChiSquared, ContinuousCDF};

    use super::{Bits, Distributions, Zipf, decimal, mix_in, power, scale, width};

    /// How often each of `range` numbers comes in so many draws.
    fn counts(law: &Zipf, range: usize, draws: i64) -> Vec<u64> {
        let mut counts = vec![0; range];
        for key in 0..draws {
            counts[usize::try_from(law.draw(mix_in(5, key))).unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn draws_follow_the_law() {
        const DRAWS: u32 = 200_000;
        for (exponent, range) in [(1, 90_u32), (91, 1000), (100, 513), (150, 300), (400, 70)] {
            let law = Zipf::new(exponent, u64::from(range));
            let counts = counts(&law, range as usize, i64::from(DRAWS));
            let s = f64::from(exponent) / 100.0;
            let weights: Vec<f64> = (1..=range).map(|i| f64::from(i).powf(-s)).collect();
            let all: f64 = weights.iter().sum();
            // The rare numbers at the end are one class, so that every class has five.
            let (mut distance, mut classes) = (0.0, 0.0);
            let (mut expected, mut found) = (0.0, 0.0);
            for (weight, count) in weights.iter().zip(counts).rev() {
                expected += weight / all * f64::from(DRAWS);
                found += decimal(count);
                if expected >= 5.0 {
                    distance += (found - expected) * (found - expected) / expected;
                    (expected, found, classes) = (0.0, 0.0, classes + 1.0);
                }
            }
            let worst = ChiSquared::new(classes - 1.0).unwrap().inverse_cdf(0.999);
            assert!(distance < worst, "{exponent} {range}: {distance}, {worst} allowed");
        }
    }

    #[test]
    fn rare_numbers_of_a_large_range_come_as_often_as_they_should() {
        let law = Zipf::new(100, 1 << 20);
        let draws = 100_000_i64;
        let mut octaves = [0.0; 21];
        for key in 0..draws {
            let drawn = u64::try_from(law.draw(mix_in(3, key))).unwrap() + 1;
            octaves[drawn.ilog2() as usize] += 1.0 / decimal(draws.cast_unsigned());
        }
        // At the exponent of 1 every power of two has about the same share.
        let all: f64 = (1..=1_u32 << 20).map(|i| 1.0 / f64::from(i)).sum();
        for (octave, found) in octaves.into_iter().enumerate().take(20) {
            let first = 1_u32 << octave;
            let expected = (first..2 * first).map(|i| 1.0 / f64::from(i)).sum::<f64>() / all;
            let deviation = (expected / decimal(draws.cast_unsigned())).sqrt();
            assert!((found - expected).abs() < 5.0 * deviation, "{octave}: {found} {expected}");
        }
    }

    #[test]
    fn powers_are_powers_and_buckets_are_narrow() {
        for (base, hundredths) in [(1, 77), (2, 50), (10, 100), (1 << 40, 399), (12_345, 91)] {
            let known = decimal(base).powf(f64::from(hundredths) / 100.0);
            assert!((power(base, hundredths) / known - 1.0).abs() < 1e-12, "{base} {hundredths}");
        }
        assert_eq!([0, 1, 31, 63, 64, 127, 128, 4096].map(width), [1, 1, 1, 1, 2, 2, 4, 128]);
        assert!(Zipf::new(100, 1 << 40).buckets.len() < 1200);
    }

    #[test]
    fn draws_are_these_and_stay_in_range() {
        // The bits of the law are fixed: so are its draws.
        let law = Zipf::new(91, 1 << 21);
        let drawn: Vec<i64> = (0..6).map(|key| law.draw(mix_in(1, key))).collect();
        assert_eq!(drawn, [16201, 20, 442, 34, 80, 0]);
        assert_eq!(Zipf::new(300, 1).draw(5), 0);
        let whole = Zipf::new(1, 1 << 40);
        assert!((0..1000).all(|key| (0..1 << 40).contains(&whole.draw(mix_in(9, key)))));
    }

    #[test]
    fn bits_fill_a_range_from_end_to_end() {
        assert_eq!((scale(u64::MAX, 10), scale(0, 10)), (9, 0));
        assert_eq!(scale(u64::MAX, u64::MAX), i64::MAX);
    }

    #[test]
    fn bits_are_splitmix64() {
        // The first numbers of seed 1234567, as published with the generator.
        let mut bits = Bits::of(1_234_567);
        let drawn = [bits.draw(), bits.draw(), bits.draw()];
        assert_eq!(
            drawn,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn a_distribution_is_made_once_and_64_at_most() {
        let all = Distributions::default();
        let law = |range| all.skewed(Some(100), Some(range));
        assert_eq!(law(5), law(5));
        assert!((1..=64).all(|range| law(range).is_ok()));
        assert!(law(65).unwrap_err().contains("more than 64 pairs"));
        assert!(law(64).is_ok());
    }
}
