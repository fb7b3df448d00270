//! What a scheme decided, when and why.

use serde::{Deserialize, Serialize};

use crate::units::Cycle;

use super::MovedSoFar;

/// One decision of a scheme.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DecisionRecord {
    /// When it was taken.
    pub cycle: Cycle,
    /// Why the scheme was asked.
    pub wake: String,
    /// The plan it answered.
    pub plan: serde_json::Value,
    /// The scheme's reason.
    pub reason: String,
    /// What it knew of the applications' speed against their CTAs; empty where it
    /// did not ask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<CurveRecord>,
    /// By application, what had moved up to here; empty where nothing ever had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedSoFar>,
}

/// Speed of one application against its CTAs per SM. Values are by the number of
/// CTAs, the first for 1; `null` where that number was not sampled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CurveRecord {
    /// Application name.
    pub app: String,
    /// Instructions per cycle of one SM, as the scheme estimates them.
    pub ipc: Vec<Option<f64>>,
    /// The same over the application's largest.
    pub normalized: Vec<Option<f64>>,
    /// CTAs per SM that it was given; 0: the decision was another one.
    pub chosen: u32,
}
