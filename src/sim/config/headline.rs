//! A value that a paper prints of schemes against each other.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::paper::Set;

/// How the gains of mixes become one value.
const MEANS: [&str; 4] = ["arithmetic", "geometric", "largest", "largest-change"];

/// A value that a paper prints of schemes against each other.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Headline {
    /// Where it is printed.
    pub published: String,
    /// The scheme, as `name:key=value` where parameters matter.
    pub scheme: String,
    /// What it is compared with; absent: nothing, it is a share of the scheme's own.
    #[serde(default)]
    pub over: String,
    /// Over which runs: a key of [`Paper::sets`](super::Paper::sets).
    pub set: String,
    /// What is compared: a measure of `record`.
    pub measure: String,
    /// `arithmetic`, `geometric`, or of the mixes the `largest` or the `largest-change`.
    #[serde(default = "arithmetic")]
    pub mean: String,
    /// The gain in percent, or both ends of what the paper prints.
    pub percent: Percent,
    /// The paper prints a limit, as `at most 2 %`: it has to hold, without a tolerance.
    #[serde(default)]
    pub limit: bool,
    /// Why ours is another: of whole runs, and only on the side `when`.
    pub analysis: Option<String>,
    /// Where ours lies when `analysis` holds.
    pub when: Option<Side>,
    /// Why ours of the short version is another.
    pub quick_analysis: Option<String>,
}

/// A side of what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Below it.
    Low,
    /// Above it.
    High,
}

/// One value or both ends of several.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a number of percent, or [lowest, highest]")]
pub enum Percent {
    /// One.
    One(f64),
    /// Both ends.
    Ends([f64; 2]),
}

impl Percent {
    /// Lowest and highest.
    #[must_use]
    pub fn ends(self) -> [f64; 2] {
        match self {
            Self::One(one) => [one, one],
            Self::Ends(ends) => ends,
        }
    }
}

pub(super) fn arithmetic() -> String {
    String::from("arithmetic")
}

impl Headline {
    /// What no value can be.
    pub(super) fn wrong(&self, sets: &BTreeMap<String, Set>) -> Option<String> {
        let [low, high] = self.percent.ends();
        if let Some(wrong) = wrong_words(&self.set, &self.mean, sets) {
            return Some(wrong);
        }
        if self.analysis.is_some() != self.when.is_some() {
            let when = "expected it with analysis: on which side of what is printed ours is then";
            return Some(format!("when: {when}, low or high"));
        }
        let finite = low.is_finite() && high.is_finite() && low <= high;
        (!finite).then(|| format!("percent: expected [lowest, highest], found [{low}, {high}]"))
    }
}

/// What is wrong about a set and a mean, whatever has them.
pub(super) fn wrong_words(set: &str, mean: &str, sets: &BTreeMap<String, Set>) -> Option<String> {
    if !sets.contains_key(set) {
        return Some(format!("there is no set {set}"));
    }
    let expected = MEANS.join(", ");
    (!MEANS.contains(&mean)).then(|| format!("mean: expected one of {expected}, found {mean}"))
}
