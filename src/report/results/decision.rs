//! What a scheme decided, when and why.

use serde::{Deserialize, Serialize};

use gpumodel_core::units::{Cycle, to_u64};

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

impl DecisionRecord {
    /// How many SMs and memory channels the plan gives an application, by its place;
    /// `None` where it has the same on all SMs, or channels have no owners.
    #[must_use]
    pub fn slice(&self, app: usize) -> Option<(u64, u64)> {
        let quotas = self.plan.get("shares")?.get(app)?.as_array()?;
        let sms = quotas.iter().filter(|quota| quota.as_u64().is_some_and(|ctas| ctas > 0));
        let channels = self.plan.get("channels")?.get(app)?.as_array()?;
        Some((to_u64(sms.count()), to_u64(channels.len())))
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::DecisionRecord;

    #[test]
    fn a_slice_is_what_a_plan_gives_of_sms_and_channels() {
        let plan = json!({"shares": [[0, 4, 4], "waiting", 4], "channels": [[0, 1], [2], []]});
        let decision = DecisionRecord { plan, ..DecisionRecord::default() };
        assert_eq!(decision.slice(0), Some((2, 2)));
        assert_eq!([1, 2, 3].map(|app| decision.slice(app)), [None; 3]);
        assert_eq!(DecisionRecord::default().slice(0), None);
    }
}
