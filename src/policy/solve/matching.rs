//! Groups of applications by their classes (ILP-SMRA): the patterns of classes, what each is
//! worth, and how many groups follow each of them, as an integer program.

use good_lp::{
    Expression, ProblemVariables, ResolutionError, Solution, SolutionStatus, Solver, SolverModel,
    Variable, variable,
};
use gpumodel_core::units::to_u64;
use thiserror::Error;

use super::float;

/// How many applications of each class a group has (ILP-SMRA, eq. 2).
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// Applications of each class; the count of idle places, if any, comes last.
    pub counts: Vec<u32>,
    /// The worth of a group (eq. 3): see [`efficiency`].
    pub efficiency: f64,
}

/// Patterns of `classes` classes in groups of `places` (N_P, eq. 1): the multisets.
/// `None` when there are 2^64 or more.
#[must_use]
pub fn count_patterns(classes: usize, places: u32) -> Option<u64> {
    let classes = u128::from(to_u64(classes));
    let ways = (0..u128::from(places)).try_fold(1_u128, |ways, place| {
        // The product of so many neighbours is divisible by the factorial so far.
        Some(ways.checked_mul(classes + place)? / (place + 1))
    });
    ways.and_then(|ways| u64::try_from(ways).ok())
}

/// Applications of each class, and behind them the fewest idle places with which the queue
/// can be divided by `places`.
///
/// # Panics
/// When groups have no place.
#[must_use]
pub fn with_idle(waiting: &[u64], places: u32) -> Vec<u64> {
    let over = waiting.iter().sum::<u64>() % u64::from(places);
    let idle = (over > 0).then(|| u64::from(places) - over);
    waiting.iter().copied().chain(idle).collect()
}

/// Every pattern of `places` that takes at most `demand` of each class, the first classes
/// first. `demand` is [`with_idle`]'s: counts beyond the classes of `slowdown` are idle.
///
/// # Panics
/// When a slow-down that counts is missing.
#[must_use]
pub fn patterns(slowdown: &[Vec<f64>], demand: &[u64], places: u32) -> Vec<Pattern> {
    let mut behind: Vec<u64> = vec![0; demand.len() + 1];
    for class in (0..demand.len()).rev() {
        behind[class] = behind[class + 1] + demand[class];
    }
    let mut all = Vec::new();
    let mut counts = vec![0; demand.len()];
    fill(demand, &behind, 0, places, &mut counts, &mut |counts| {
        let efficiency = efficiency(slowdown, counts);
        all.push(Pattern { counts: counts.to_vec(), efficiency });
    });
    all
}

/// Gives `left` places to the classes from `class` on in every way; `behind` says how
/// many applications these classes have.
fn fill(
    demand: &[u64],
    behind: &[u64],
    class: usize,
    left: u32,
    counts: &mut [u32],
    found: &mut impl FnMut(&[u32]),
) {
    if left == 0 {
        return found(counts);
    }
    if behind[class] < u64::from(left) {
        return;
    }
    let most = u32::try_from(demand[class]).map_or(left, |waiting| waiting.min(left));
    for count in (0..=most).rev() {
        counts[class] = count;
        fill(demand, behind, class + 1, left - count, counts, found);
    }
}

/// Eq. 3: the sum of 1 / `slowdown[j][i]` over all ordered pairs of different places
/// (j disturbs, i suffers; two of the same class are a pair, too) over the number of
/// places. An idle place does not disturb, so each application with it adds 1; it does no
/// work, so it adds nothing itself.
///
/// # Panics
/// When a slow-down that counts is missing.
#[must_use]
pub fn efficiency(slowdown: &[Vec<f64>], counts: &[u32]) -> f64 {
    let some = |&(_, count): &(usize, u32)| count > 0;
    let held: Vec<(usize, u32)> = counts.iter().copied().enumerate().filter(some).collect();
    let mut sum = 0.0;
    for &(sufferer, suffer) in held.iter().filter(|(class, _)| *class < slowdown.len()) {
        for &(disturber, disturb) in &held {
            let others = if disturber == sufferer { disturb - 1 } else { disturb };
            if others > 0 {
                let slowdown = slowdown.get(disturber).map_or(1.0, |row| row[sufferer]);
                sum += f64::from(suffer) * f64::from(others) / slowdown;
            }
        }
    }
    sum / f64::from(counts.iter().sum::<u32>()).max(1.0)
}

/// The most groups of a pattern that `demand` allows.
fn most_groups(pattern: &Pattern, demand: &[u64]) -> u64 {
    let asked = pattern.counts.iter().zip(demand).filter(|(count, _)| **count > 0);
    asked.map(|(&count, &waiting)| waiting / u64::from(count)).min().unwrap_or(0)
}

/// The number of groups of each pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct Matching {
    /// Groups that follow each pattern (L_k).
    pub groups: Vec<u64>,
    /// The sum of their efficiencies (eq. 4).
    pub objective: f64,
}

/// Why no matching was found.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoMatching {
    /// No numbers of groups take every application exactly once.
    #[error("no numbers of groups take every application exactly once")]
    Infeasible,
    /// The solver has no proven answer.
    #[error("the solver found no proven answer: {0}")]
    Solver(String),
    /// The solver's answer is wrong.
    #[error("the solver's answer is wrong: {0}")]
    Wrong(String),
}

/// The solver of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// Written in Rust, always available.
    #[cfg_attr(not(feature = "highs"), default)]
    Microlp,
    /// With the cargo feature `highs`.
    #[cfg(feature = "highs")]
    #[default]
    Highs,
}

/// The numbers of groups with the highest sum of efficiencies (ILP-SMRA, eq. 4 and 5) that
/// take exactly `demand` of each class. The paper's other constraint, the number of groups,
/// follows from that, as all patterns have as many places.
///
/// The answer is rounded and verified in whole numbers, and its objective computed from them.
/// It is the highest within the solver's tolerance (1e-6 of it); of several such answers the
/// same is found every time, but which is unspecified.
///
/// # Errors
/// [`NoMatching::Infeasible`] when the patterns cannot use up `demand`,
/// [`NoMatching::Solver`] when the program has no proven answer,
/// [`NoMatching::Wrong`] when the answer is wrong.
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

/// Whether a group of any pattern has one of the class.
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

/// Solves the program and checks the answer.
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

/// The answer in whole numbers, if it is right.
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
            return wrong(format!("{used} of class {class} are taken; {waiting} wait"));
        }
    }
    if (claimed - matching.objective).abs() > TOLERANCE * claimed.abs().max(1.0) {
        return wrong(format!("the objective is {} and not {claimed}", matching.objective));
    }
    Ok(matching)
}

/// How far a solver's number may be from a whole one.
const TOLERANCE: f64 = 1e-5;

/// `value` as a whole number, if it is near one.
fn whole(value: f64) -> Option<u64> {
    let number = value.round();
    let lawful = (value - number).abs() <= TOLERANCE && (0.0..=MOST).contains(&number);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in 0..=2^53")]
    lawful.then_some(number as u64)
}

/// 2^53: up to here doubles distinguish whole numbers.
const MOST: f64 = 9_007_199_254_740_992.0;

#[cfg(test)]
mod tests {
    use super::{count_patterns, efficiency, patterns, with_idle};

    /// As far as the paper prints them: M, MC, C, A disturb (row) and suffer (column).
    fn published() -> Vec<Vec<f64>> {
        vec![
            vec![2.10, 1.78, 1.61, 1.20],
            vec![2.05, 1.60, 1.55, 1.10],
            vec![1.76, 1.55, 1.50, 1.08],
            vec![1.51, 1.30, 1.20, 1.06],
        ]
    }

    #[test]
    fn four_classes_make_ten_pairs_and_twenty_triples() {
        for (places, number) in [(1, 4), (2, 10), (3, 20), (4, 35)] {
            assert_eq!(count_patterns(4, places), Some(number));
            let all = patterns(&published(), &[9; 4], places);
            assert_eq!(all.len() as u64, number);
            assert!(all.iter().all(|one| one.counts.iter().sum::<u32>() == places));
            let unique = |place: usize| !all[..place].iter().any(|o| o.counts == all[place].counts);
            assert!((0..all.len()).all(unique));
        }
        assert_eq!(count_patterns(36, 3), Some(8436), "each of 36 applications a class");
        assert_eq!(count_patterns(usize::MAX, 3), None);
    }

    #[test]
    fn every_ordered_pair_of_places_counts() {
        let s = published();
        let same = efficiency(&s, &[2, 0, 0, 0]);
        assert!((same - 2.0 / 2.10 / 2.0).abs() < 1e-12, "M slows M, both ways: {same}");
        let mixed = efficiency(&s, &[1, 0, 0, 1]);
        assert!((mixed - (1.0 / 1.20 + 1.0 / 1.51) / 2.0).abs() < 1e-12, "{mixed}");
        // Three: six ordered pairs over three places.
        let three = efficiency(&s, &[2, 0, 0, 1]);
        let pairs = 2.0 / 2.10 + 2.0 / 1.20 + 2.0 / 1.51;
        assert!((three - pairs / 3.0).abs() < 1e-12, "{three}");
    }

    #[test]
    fn an_idle_place_neither_disturbs_nor_works() {
        assert_eq!(with_idle(&[3, 4], 3), [3, 4, 2]);
        assert_eq!(with_idle(&[3, 3], 3), [3, 3]);
        let s = published();
        assert_eq!(efficiency(&s, &[1, 0, 0, 0, 1]), 0.5, "one works as if alone");
        assert_eq!(efficiency(&s, &[0, 0, 0, 1, 2]), 2.0 / 3.0);
        let idle = patterns(&s, &with_idle(&[1, 0, 0, 0], 2), 2);
        assert_eq!(idle.iter().map(|one| &one.counts[..]).collect::<Vec<_>>(), [[1, 0, 0, 0, 1]]);
    }

    #[test]
    fn patterns_take_at_most_what_waits() {
        let all = patterns(&published(), &[1, 1, 2, 0], 2);
        let counts: Vec<&[u32]> = all.iter().map(|one| &one.counts[..]).collect();
        assert_eq!(counts, [[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 2, 0]]);
    }
}
