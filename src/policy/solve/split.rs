//! What is asked of a solver, and what it answers.

use thiserror::Error;

use super::{Amount, Curve};

/// What one kernel asks of an SM.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// What one CTA takes.
    pub need: Amount,
    /// Its speed against its CTAs, up to the most that an SM may hold of it.
    pub curve: Curve,
}

/// CTAs of each kernel on an SM.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// CTAs of each kernel, at least 1, in the order of the demands.
    pub ctas: Vec<u32>,
    /// Predicted performance of each against its own best, 0 to 1.
    pub performance: Vec<f64>,
}

impl Split {
    /// The performance of the slowest kernel; 1 when there is none.
    #[must_use]
    pub fn minimum(&self) -> f64 {
        self.performance.iter().copied().fold(1.0, f64::min)
    }

    /// The performance of all kernels together: 2.0 is two at their best.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.performance.iter().sum()
    }

    /// The split in which kernel `i` is at entry `places[i]` of its steps.
    pub(super) fn at(demands: &[Demand], places: &[usize]) -> Self {
        let steps = demands.iter().zip(places).map(|(demand, &place)| demand.curve.steps()[place]);
        let (ctas, performance) = steps.map(|step| (step.ctas, step.performance)).unzip();
        Self { ctas, performance }
    }

    /// What of `total` it leaves free; `None` when it takes more than there is.
    pub(super) fn leaves(&self, total: Amount, demands: &[Demand]) -> Option<Amount> {
        let mut pairs = demands.iter().zip(&self.ctas);
        pairs.try_fold(total, |left, (demand, &ctas)| left.minus(demand.need.times(ctas)))
    }
}

/// Why there is no split.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unsolved {
    /// One CTA of each kernel is already too much for an SM.
    #[error("an SM does not hold one CTA of each kernel")]
    NoRoom,
    /// The solver of the integer program gave up.
    #[error("the integer program was not solved: {0}")]
    Solver(String),
    /// The solver's answer is not one, or not the best: its numbers went wrong.
    #[error("the integer program's answer is wrong: {0}")]
    Wrong(String),
}
