//! What a run spent of its epochs on dividing the machine anew (UGPU, Fig. 12a).

use gpumodel_core::units::Cycle;

use super::quantity::float;
use super::{CoRun, DecisionRecord, MovedSoFar};

/// Shares of the epochs of a run, 0 to 1, by application and epoch: from the beginning to
/// the first look of the scheme, from look to look, and from the last one to the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EpochShares {
    /// Epochs; without the last where the record does not say what had moved at the end.
    pub epochs: usize,
    /// In which the application held more CTAs than its share on some SM; empty: the
    /// record does not say.
    pub vacating: Vec<Vec<f64>>,
    /// In which pages of it were under way.
    pub moving: Vec<Vec<f64>>,
}

/// What had moved up to a cycle, by application; empty: nothing.
type Mark<'a> = (Cycle, &'a [MovedSoFar]);

impl EpochShares {
    /// Those of `run`; `None` where no channels were owned, or the scheme never looked.
    #[must_use]
    pub fn of(run: &CoRun) -> Option<Self> {
        let is_timed = |decision: &&DecisionRecord| decision.is_timed();
        let looks: Vec<&DecisionRecord> = run.decisions.iter().filter(is_timed).collect();
        let reported = looks.iter().any(|look| !look.moved.is_empty());
        let mut owners = run.apps.iter().filter_map(|app| app.migration);
        if looks.is_empty() || !reported && owners.clone().count() == 0 {
            return None;
        }
        let marks = marks(run, &looks);
        let of = |cycles: fn(&MovedSoFar) -> Cycle| -> Vec<Vec<f64>> {
            (0..run.apps.len()).map(|app| shares(&marks, app, cycles)).collect()
        };
        let moving = of(|moved| moved.moving_cycles);
        let epochs = moving.first().map_or(0, Vec::len);
        // Looks tell nothing as long as no page has moved, though SMs may have.
        let known = reported || owners.all(|owner| owner.vacating_cycles == 0);
        let vacating = if known { of(|moved| moved.vacating_cycles) } else { Vec::new() };
        (epochs > 0).then_some(Self { epochs, vacating, moving })
    }

    /// By epoch: the largest share of any application, SMs or pages. Both together take at
    /// least that.
    #[must_use]
    pub fn most(&self) -> Vec<f64> {
        let apps = || self.vacating.iter().chain(&self.moving);
        (0..self.epochs).map(|epoch| apps().map(|app| app[epoch]).fold(0.0, f64::max)).collect()
    }
}

/// Where epochs begin and end.
fn marks<'a>(run: &'a CoRun, looks: &[&'a DecisionRecord]) -> Vec<Mark<'a>> {
    let start: Mark<'_> = (0, &[]);
    let looks = looks.iter().map(|look| (look.cycle, look.moved.as_slice()));
    let end = run.moved.as_ref().map(|moved| (run.cycles, moved.as_slice()));
    std::iter::once(start).chain(looks).chain(end).collect()
}

/// What application `app` spent of each epoch between two marks. What had vacated
/// before the first page moved counts to the epoch in which that did, as far as it
/// lasts.
fn shares(marks: &[Mark<'_>], app: usize, of: fn(&MovedSoFar) -> Cycle) -> Vec<f64> {
    let cycles = |moved: &[MovedSoFar]| moved.get(app).map_or(0, of);
    let share = |two: &[Mark<'_>]| {
        let [(since, before), (until, after)] = [two[0], two[1]];
        let length = until.checked_sub(since).filter(|length| *length > 0)?;
        let spent = cycles(after).saturating_sub(cycles(before));
        Some(float(spent.min(length)) / float(length))
    };
    marks.windows(2).filter_map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::EpochShares;
    use crate::results::{CoRun, CoRunApp, DecisionRecord, MovedSoFar};

    fn moved(moving_cycles: u64, vacating_cycles: u64) -> Vec<MovedSoFar> {
        vec![MovedSoFar { moving_cycles, vacating_cycles, ..MovedSoFar::default() }]
    }

    #[test]
    fn an_epoch_has_what_was_spent_between_looks_beginning_and_end() {
        let look = |cycle, moving_cycles, vacating_cycles| DecisionRecord {
            cycle,
            wake: "as asked".into(),
            moved: moved(moving_cycles, vacating_cycles),
            ..DecisionRecord::default()
        };
        let run = CoRun {
            apps: vec![CoRunApp::default()],
            decisions: vec![look(100, 0, 0), look(200, 10, 30), look(400, 60, 30)],
            ..CoRun::default()
        };
        let found = EpochShares::of(&run).unwrap();
        assert_eq!((found.moving[0].clone(), found.epochs), (vec![0.0, 0.1, 0.25], 3));
        assert_eq!(found.vacating, [[0.0, 0.3, 0.0]]);
        assert_eq!(found.most(), [0.0, 0.3, 0.25]);
        let run = CoRun { cycles: 500, moved: Some(moved(140, 40)), ..run };
        let found = EpochShares::of(&run).unwrap();
        assert_eq!((found.moving[0].clone(), found.epochs), (vec![0.0, 0.1, 0.25, 0.8], 4));
        assert_eq!(found.vacating[0][3], 0.1);
        // A run that ends with its last look has no epoch behind it.
        let run = CoRun { cycles: 400, ..run };
        assert_eq!(EpochShares::of(&run).unwrap().epochs, 3);
        assert_eq!(EpochShares::of(&CoRun::default()), None);
    }
}
