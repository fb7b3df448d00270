//! What a launch's numbers lean on beyond the trace and the machine's file.

use serde::{Deserialize, Serialize};

/// Something that the trace leaves open, and how it was taken.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AssumptionRecord {
    /// What is open.
    pub what: String,
    /// Warp instructions that it is about.
    pub instructions: u64,
    /// The same as a share of the launch's warp instructions, 0 to 1.
    pub share: f64,
    /// How they were taken.
    pub effect: String,
}
