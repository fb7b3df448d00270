//! What a run spent of its epochs on dividing the machine anew (UGPU, Fig. 12a).

use crate::units::Cycle;

use super::quantity::float;
use super::{CoRun, DecisionRecord, MovedSoFar};

/// Why a scheme was asked that looks at an epoch's end.
const LOOK: &str = "as asked";

/// Shares of the epochs between two looks of a scheme, 0 to 1, by application and epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EpochShares {
    /// Epochs between two looks.
    pub epochs: usize,
    /// In which the application held more CTAs than its share on some SM; empty: the
    /// record does not say.
    pub vacating: Vec<Vec<f64>>,
    /// In which pages of it were under way.
    pub moving: Vec<Vec<f64>>,
}

impl EpochShares {
    /// Those of `run`; `None` where no channels were owned, or no two looks span an epoch.
    #[must_use]
    pub fn of(run: &CoRun) -> Option<Self> {
        let looks: Vec<&DecisionRecord> =
            run.decisions.iter().filter(|decision| decision.wake == LOOK).collect();
        let told = looks.iter().any(|look| !look.moved.is_empty());
        let mut owners = run.apps.iter().filter_map(|app| app.migration);
        if !told && owners.clone().count() == 0 {
            return None;
        }
        let of = |cycles: fn(&MovedSoFar) -> Cycle| -> Vec<Vec<f64>> {
            (0..run.apps.len()).map(|app| shares(&looks, app, cycles)).collect()
        };
        let moving = of(|moved| moved.moving_cycles);
        let epochs = moving.first().map_or(0, Vec::len);
        // Looks tell nothing as long as no page has moved, though SMs may have.
        let known = told || owners.all(|owner| owner.vacating_cycles == 0);
        let vacating = if known { of(|moved| moved.vacating_cycles) } else { Vec::new() };
        (epochs > 0).then_some(Self { epochs, vacating, moving })
    }

    /// By epoch: the largest share of any application, SMs or pages.
    #[must_use]
    pub fn most(&self) -> Vec<f64> {
        let apps = || self.vacating.iter().chain(&self.moving);
        (0..self.epochs).map(|epoch| apps().map(|app| app[epoch]).fold(0.0, f64::max)).collect()
    }
}

/// What application `app` spent of each epoch between two looks. What had vacated
/// before the first page moved counts to the epoch in which that did, as far as it
/// lasts.
fn shares(looks: &[&DecisionRecord], app: usize, of: fn(&MovedSoFar) -> Cycle) -> Vec<f64> {
    let cycles = |look: &DecisionRecord| look.moved.get(app).map_or(0, of);
    let share = |two: &[&DecisionRecord]| {
        let length = two[1].cycle.checked_sub(two[0].cycle).filter(|length| *length > 0)?;
        let spent = cycles(two[1]).saturating_sub(cycles(two[0]));
        Some(float(spent.min(length)) / float(length))
    };
    looks.windows(2).filter_map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::EpochShares;
    use crate::record::{CoRun, CoRunApp, DecisionRecord, MovedSoFar};

    #[test]
    fn an_epoch_has_what_was_spent_between_its_looks() {
        let look = |cycle, moving_cycles, vacating_cycles| DecisionRecord {
            cycle,
            wake: "as asked".into(),
            moved: vec![MovedSoFar { moving_cycles, vacating_cycles, ..MovedSoFar::default() }],
            ..DecisionRecord::default()
        };
        let run = CoRun {
            apps: vec![CoRunApp::default()],
            decisions: vec![look(100, 0, 0), look(200, 10, 30), look(400, 60, 30)],
            ..CoRun::default()
        };
        let found = EpochShares::of(&run).unwrap();
        assert_eq!((found.moving[0].clone(), found.epochs), (vec![0.1, 0.25], 2));
        assert_eq!(found.vacating, [[0.3, 0.0]]);
        assert_eq!(found.most(), [0.3, 0.25]);
        assert_eq!(EpochShares::of(&CoRun::default()), None);
    }
}
