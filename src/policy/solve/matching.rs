//! Which patterns the groups of a queue follow, as an integer program.

use good_lp::{
    Expression, ProblemVariables, ResolutionError, Solution, SolutionStatus, Solver, SolverModel,
    Variable, variable,
};
use thiserror::Error;

use super::Pattern;
use super::pattern::most_groups;

/// How often each pattern is used.
#[derive(Clone, Debug, PartialEq)]
pub struct Matching {
    /// Groups that follow each pattern (L_k).
    pub groups: Vec<u64>,
    /// The sum of their efficiencies (eq. 4).
    pub objective: f64,
}

/// Why there is no matching.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoMatching {
    /// No numbers of groups use every application exactly once.
    #[error("no numbers of groups use every application exactly once")]
    Infeasible,
    /// The solver has no proven answer.
    #[error("the solver found no proven answer: {0}")]
    Solver(String),
    /// The solver's answer does not hold.
    #[error("the solver's answer does not hold: {0}")]
    Wrong(String),
}

/// Who solves the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// Written in Rust, always there.
    #[cfg_attr(not(feature = "highs"), default)]
    Microlp,
    /// With the cargo feature `highs`.
    #[cfg(feature = "highs")]
    #[default]
    Highs,
}

/// The numbers of groups that are worth most (ILP-SMRA, eq. 4 and 5): every class of
/// `demand` is used exactly as often as it is there. The paper's other constraint,
/// the number of groups, follows from that, as all patterns have as many places.
///
/// The answer is rounded and verified in whole numbers; its objective is computed
/// anew. It is the highest within the solver's tolerance (1e-6 of it); which of
/// several such is found is fixed but not stated.
///
/// # Errors
/// [`NoMatching::Infeasible`] when the patterns cannot use up `demand`,
/// [`NoMatching::Solver`] when the program has no proven answer,
/// [`NoMatching::Wrong`] when the answer does not hold.
pub fn matching(
    patterns: &[Pattern],
    demand: &[u64],
    engine: Engine,
) -> Result<Matching, NoMatching> {
    if (0..demand.len()).any(|class| demand[class] > 0 && !taken(patterns, class)) {
        return Err(NoMatching::Infeasible);
    }
    if patterns.is_empty() {
        return Ok(Matching { groups: Vec::new(), objective: 0.0 });
    }
    match engine {
        Engine::Microlp => solve(patterns, demand, good_lp::microlp),
        #[cfg(feature = "highs")]
        Engine::Highs => solve(patterns, demand, exact_highs),
    }
}

/// Does a group of any pattern have one of the class?
fn taken(patterns: &[Pattern], class: usize) -> bool {
    patterns.iter().any(|pattern| pattern.counts[class] > 0)
}

/// HiGHS without the gap that it allows itself, on one thread: the same every time.
#[cfg(feature = "highs")]
fn exact_highs(
    problem: good_lp::variable::UnsolvedProblem,
) -> good_lp::solvers::highs::HighsProblem {
    let exact = "a gap of zero is allowed";
    let model = good_lp::highs(problem).set_threads(1);
    model.set_mip_rel_gap(0.0).expect(exact).set_mip_abs_gap(0.0).expect(exact)
}

/// Writes the program down, has it solved and checks the answer.
fn solve<S: Solver>(patterns: &[Pattern], demand: &[u64], solver: S) -> Result<Matching, NoMatching>
where
    S::Model: SolverModel<Error = ResolutionError>,
{
    let mut variables = ProblemVariables::new();
    let mut groups = Vec::with_capacity(patterns.len());
    let mut worth = Expression::with_capacity(patterns.len());
    for pattern in patterns {
        let most = float(most_groups(pattern, demand));
        let number = variables.add(variable().integer().min(0.0).max(most));
        worth.add_mul(pattern.efficiency, number);
        groups.push(number);
    }
    let mut model = variables.maximise(worth).using(solver);
    for class in (0..demand.len()).filter(|&class| taken(patterns, class)) {
        let mut used = Expression::default();
        let takes = |pattern: &Pattern| pattern.counts[class] > 0;
        for (pattern, &number) in patterns.iter().zip(&groups).filter(|(one, _)| takes(one)) {
            used.add_mul(f64::from(pattern.counts[class]), number);
        }
        model.add_constraint(used.eq(float(demand[class])));
    }
    let solution = model.solve().map_err(|error| match error {
        ResolutionError::Infeasible => NoMatching::Infeasible,
        other => NoMatching::Solver(other.to_string()),
    })?;
    if !matches!(solution.status(), SolutionStatus::Optimal) {
        return Err(NoMatching::Solver(String::from("it stopped before its proof")));
    }
    verified(patterns, demand, &groups, &solution)
}

/// The answer in whole numbers, if it holds.
fn verified(
    patterns: &[Pattern],
    demand: &[u64],
    groups: &[Variable],
    solution: &impl Solution,
) -> Result<Matching, NoMatching> {
    let wrong = |text: String| Err(NoMatching::Wrong(text));
    let mut matching = Matching { groups: Vec::with_capacity(groups.len()), objective: 0.0 };
    let mut claimed = 0.0;
    for (pattern, &variable) in patterns.iter().zip(groups) {
        let value = solution.value(variable);
        let Some(number) = whole(value) else {
            return wrong(format!("{value} groups follow a pattern"));
        };
        claimed += pattern.efficiency * value;
        matching.objective += pattern.efficiency * float(number);
        matching.groups.push(number);
    }
    for (class, &waiting) in demand.iter().enumerate() {
        let uses = patterns.iter().zip(&matching.groups);
        let used: u128 = uses
            .map(|(pattern, &number)| u128::from(pattern.counts[class]) * u128::from(number))
            .sum();
        if used != u128::from(waiting) {
            return wrong(format!("{used} of class {class} are used; {waiting} wait"));
        }
    }
    if (claimed - matching.objective).abs() > TOLERANCE * claimed.abs().max(1.0) {
        return wrong(format!("it is worth {} and claims {claimed}", matching.objective));
    }
    Ok(matching)
}

/// How far a solver's number may be from a whole one.
const TOLERANCE: f64 = 1e-5;

/// The whole number next to `value`, if it is one.
fn whole(value: f64) -> Option<u64> {
    let number = value.round();
    let lawful = (value - number).abs() <= TOLERANCE && (0.0..=MOST).contains(&number);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in 0..=2^53")]
    lawful.then_some(number as u64)
}

/// 2^53: up to here doubles tell whole numbers apart.
const MOST: f64 = 9_007_199_254_740_992.0;

#[allow(clippy::cast_precision_loss, reason = "a queue has fewer than 2^53 applications")]
fn float(count: u64) -> f64 {
    count as f64
}
