//! How often each number of a range is drawn.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::random::scale;
use super::zipf::Zipf;

/// How often each number of a range is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Law {
    /// Each in `0..range` as often as another.
    Even(u64),
    /// The first ones most.
    Skewed(Arc<Zipf>),
}

impl Law {
    /// The law of `hash` for a range, where it is a constant.
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

/// The skewed laws of a workload, each made when it is asked for first.
#[derive(Debug, Default)]
pub(super) struct Laws(RefCell<BTreeMap<(u32, u64), Arc<Zipf>>>);

impl Laws {
    /// The law of `skew` for an exponent in hundredths and a range, where they are constants.
    pub(super) fn skewed(&self, exponent: Option<i64>, range: Option<i64>) -> Result<Law, String> {
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
        let law = made.entry((power, below)).or_insert_with(|| Arc::new(Zipf::new(power, below)));
        Ok(Law::Skewed(Arc::clone(law)))
    }
}

#[cfg(test)]
mod tests {
    use super::Laws;

    #[test]
    fn a_law_is_made_once_and_only_so_many_are() {
        let laws = Laws::default();
        let law = |range| laws.skewed(Some(100), Some(range));
        assert_eq!(law(5), law(5));
        assert!((1..=64).all(|range| law(range).is_ok()));
        assert!(law(65).unwrap_err().contains("more than 64 pairs"));
        assert!(law(64).is_ok());
    }
}
