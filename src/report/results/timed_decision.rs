//! Looks of a scheme: cycles that it named to be asked again.

use gpumodel_core::units::Cycle;

use super::{CoRun, DecisionRecord};

impl DecisionRecord {
    /// Why a scheme was asked whose cycle had come.
    pub const AS_ASKED: &str = "as asked";

    /// Whether it was taken at a cycle that the scheme had named.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.wake == Self::AS_ASKED
    }

    /// The first cycle that its plan names for the next decision; `None`: it names none.
    #[must_use]
    pub fn next_timed(&self) -> Option<Cycle> {
        let wakes = self.plan.get("wake")?.as_array()?;
        wakes.iter().filter_map(|wake| wake.get("at")?.as_u64()).min()
    }
}

impl CoRun {
    /// The first cycle that the scheme named, where no such cycle ever came; `None`: one
    /// came, or it named none.
    #[must_use]
    pub fn missed_timed(&self) -> Option<Cycle> {
        let looked = self.decisions.iter().any(DecisionRecord::is_timed);
        let first = self.decisions.iter().find_map(DecisionRecord::next_timed);
        first.filter(|_| !looked)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{CoRun, DecisionRecord};

    #[test]
    fn a_cycle_that_was_named_and_never_came_is_missed() {
        let decision = |wake: &str, asked| DecisionRecord {
            wake: wake.into(),
            plan: json!({ "wake": asked }),
            ..DecisionRecord::default()
        };
        let missed = |decisions: &[DecisionRecord]| {
            CoRun { decisions: decisions.to_vec(), ..CoRun::default() }.missed_timed()
        };
        let start = decision("start", json!(["kernel_end", { "at": 500 }]));
        let end = decision("b ends", json!([]));
        let look = decision("as asked", json!([{ "at": 1000 }]));
        assert_eq!(missed(&[start.clone(), end.clone()]), Some(500));
        assert_eq!(missed(&[start, look]), None, "the second one may be missed");
        assert_eq!(missed(&[end, DecisionRecord::default()]), None, "nobody asked");
    }
}
