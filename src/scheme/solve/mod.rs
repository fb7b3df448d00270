//! The mathematics of sharing one SM: pure, without Facts, Views or Plans.
//!
//! Several kernels share an SM. Each says what a CTA of it needs and how fast
//! it is with 1, 2, … CTAs ([`Demand`]); a [`Split`] gives each a count of CTAs.
//! The best split is the one whose slowest kernel is fastest, each measured
//! against its own best (Warped-Slicer, eq. 1): max min `P(i, T_i)` subject to
//! the sum of the needs being within the SM.
//!
//! [`water_filling`] is the paper's Algorithm 1, [`exact`] the same as an integer
//! program. Both find the same minimum: [`water_filling`] says why.

mod amount;
mod curve;
mod exact;
mod split;
mod water_filling;

pub use amount::Amount;
pub use curve::{BadCurve, Curve, Sample, Step};
pub use exact::exact;
pub use split::{Demand, Split, Unsolved};
pub use water_filling::{Filling, water_filling};
