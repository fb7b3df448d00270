//! The mathematics of sharing: pure, without Facts, Views or Plans.
//!
//! Several kernels share an SM. Each says what a CTA of it needs and how fast
//! it is with 1, 2, … CTAs ([`Demand`]); a [`Split`] gives each a count of CTAs.
//! The best split is the one whose slowest kernel is fastest, each measured
//! against its own best (Warped-Slicer, eq. 1): max min `P(i, T_i)` subject to
//! the sum of the needs being within the SM.
//!
//! [`water_filling`] is the paper's Algorithm 1, [`exact`] the same as an integer
//! program. Both find the same minimum: [`water_filling`] says why.
//!
//! [`greedy`] gives each a configuration so that who has most time left is done soonest
//! (ARCS 2018, Algorithm 1).
//!
//! Applications of several classes wait to run in groups. A [`Pattern`] says how many
//! of each class a group has and what that is worth; [`matching`] finds how many
//! groups follow each of them (ILP-SMRA, eq. 1 to 5).
//!
//! [`redistribute`] moves SMs to who computes and memory channels to who waits for
//! memory, until both have what they ask for (UGPU, Fig. 5).

mod amount;
mod curve;
mod exact;
mod greedy;
mod matching;
mod pattern;
mod proportion;
mod redistribution;
mod split;
mod water_filling;

pub use amount::Amount;
pub use curve::{BadCurve, Curve, Sample, Step};
pub use exact::exact;
pub use greedy::{Candidate, greedy};
pub use matching::{Engine, Matching, NoMatching, matching};
pub use pattern::{Pattern, count_patterns, efficiency, patterns, with_idle};
pub use proportion::proportion;
pub use redistribution::{Redistribution, Resources, Slice, Stop, Terms, redistribute};
pub use split::{Demand, Split, Unsolved};
pub use water_filling::{Filling, water_filling};

/// A count as a number with a fraction.
#[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}
