//! Zipf's law: of the numbers in `0..range`, `i` comes with a probability proportional to
//! 1 / (i + 1)^exponent.
//!
//! Drawn by rejection. The range is cut into buckets, 32 per power of two, the first ones
//! of one number each; a bucket is chosen as if all of its numbers were as probable as its
//! first, a number of it evenly, and that is kept with the probability that its own weight
//! asks for. So no draw costs more than a search among some hundred buckets, and most cost
//! no power at all: a number is kept at once where even the least of its bucket would be.
//!
//! The law holds to within 2^-40 of each probability, which is rounding: a bucket's share
//! is a multiple of 2^-63, weights are products and square roots of `f64`. Those are the
//! only operations used beside division and comparison, and IEEE 754 fixes each of their
//! bits, so that draws are the same on every machine; `powf` and `ln` may differ.

use std::ops::RangeInclusive;

use gpumodel_core::units::to_u64;

use super::random::{Bits, scale};

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

    use super::super::random::mix_in;
    use super::{Zipf, decimal, power, width};

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
}
