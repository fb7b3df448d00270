//! Max-min split as an integer program.

use good_lp::{
    Expression, ProblemVariables, Solution, SolutionStatus, SolverModel, Variable, microlp,
    variable,
};

use super::{Amount, Demand, Split, Unsolved};

/// Splits an SM that has `total` between `demands`: the best minimum of the
/// performances, and among the splits that reach it one with the highest sum.
///
/// Two programs over binaries `x_ij` (kernel `i` is at step `j`), exactly one
/// per kernel, each resource within the SM. The first maximises `t` with
/// `t <= sum_j r_ij x_ij`; `r` is the rank of the performance among all of the
/// demands', because only their order matters and whole numbers are further apart than a
/// solver's tolerance. The second leaves out the steps below the minimum and maximises the
/// sum of performances. The minimum is verified in whole numbers; the sum is the highest
/// within the solver's tolerance (1e-6). Of several such splits the same is found every
/// time, but which is unspecified.
///
/// # Errors
/// [`Unsolved::DoesNotFit`] when one CTA of each does not fit, [`Unsolved::Solver`]
/// when a program has no proven answer, [`Unsolved::Wrong`] when the answer takes
/// more than the SM or a higher minimum would fit.
pub fn exact(total: Amount, demands: &[Demand]) -> Result<Split, Unsolved> {
    let lowest = vec![0; demands.len()];
    Split::at(demands, &lowest).leaves(total, demands).ok_or(Unsolved::DoesNotFit)?;
    let levels = levels(demands);
    let fair = highest_minimum(total, demands, &levels)?;
    let minimum = fair.minimum();
    let above = levels.partition_point(|&level| level <= minimum);
    if levels.get(above).is_some_and(|&level| reachable(total, demands, level)) {
        return Err(Unsolved::Wrong(format!("a minimum above {minimum} fits")));
    }
    highest_sum(total, demands, minimum)
}

/// Every performance of any step, rising, each once.
fn levels(demands: &[Demand]) -> Vec<f64> {
    let steps = demands.iter().flat_map(|demand| demand.curve.steps());
    let mut levels: Vec<f64> = steps.map(|step| step.performance).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    levels
}

/// The first step of a demand that reaches `level`.
fn first_at(demand: &Demand, level: f64) -> usize {
    demand.curve.steps().partition_point(|step| step.performance < level)
}

/// Whether the fewest CTAs with which each kernel reaches `level` fit together.
fn reachable(total: Amount, demands: &[Demand], level: f64) -> bool {
    let places: Vec<usize> = demands.iter().map(|demand| first_at(demand, level)).collect();
    let exists = |(demand, &place): (&Demand, &usize)| place < demand.curve.steps().len();
    demands.iter().zip(&places).all(exists)
        && Split::at(demands, &places).leaves(total, demands).is_some()
}

fn highest_minimum(total: Amount, demands: &[Demand], levels: &[f64]) -> Result<Split, Unsolved> {
    let mut variables = ProblemVariables::new();
    let choices = Choices::new(&mut variables, demands, 0.0);
    #[allow(clippy::cast_precision_loss, reason = "a rank is below a few thousand")]
    let rank = |performance: f64| levels.partition_point(|&l| l < performance) as f64;
    let minimum = variables.add(variable().min(0.0).max(rank(f64::INFINITY)));
    let mut model = variables.maximise(minimum).using(microlp);
    for (kernel, demand) in demands.iter().enumerate() {
        let performance =
            choices.sum(kernel, |place| rank(demand.curve.steps()[place].performance));
        model.add_constraint((Expression::from(minimum) - performance).leq(0.0));
    }
    choices.solve(model, total, demands)
}

fn highest_sum(total: Amount, demands: &[Demand], minimum: f64) -> Result<Split, Unsolved> {
    let mut variables = ProblemVariables::new();
    let choices = Choices::new(&mut variables, demands, minimum);
    let mut sum = Expression::default();
    for (kernel, demand) in demands.iter().enumerate() {
        sum += choices.sum(kernel, |place| demand.curve.steps()[place].performance);
    }
    choices.solve(variables.maximise(sum).using(microlp), total, demands)
}

/// The binaries of a program: for each kernel its steps from some place on.
struct Choices(Vec<Vec<(usize, Variable)>>);

impl Choices {
    /// A binary for each step that reaches `minimum`.
    fn new(variables: &mut ProblemVariables, demands: &[Demand], minimum: f64) -> Self {
        let mut of = |demand: &Demand| {
            let places = first_at(demand, minimum)..demand.curve.steps().len();
            places.map(|place| (place, variables.add(variable().binary()))).collect()
        };
        Self(demands.iter().map(&mut of).collect())
    }

    /// The sum of a kernel's binaries, each times a weight of its place.
    fn sum(&self, kernel: usize, weight: impl Fn(usize) -> f64) -> Expression {
        let mut sum = Expression::default();
        for &(place, chosen) in &self.0[kernel] {
            sum.add_mul(weight(place), chosen);
        }
        sum
    }

    /// Adds one step per kernel and the resources to the model, and solves it.
    fn solve(
        &self,
        mut model: impl SolverModel<Error = good_lp::ResolutionError>,
        total: Amount,
        demands: &[Demand],
    ) -> Result<Split, Unsolved> {
        for kernel in 0..demands.len() {
            model.add_constraint(self.sum(kernel, |_| 1.0).eq(1.0));
        }
        for resource in 0..Amount::RESOURCES {
            self.limit(&mut model, total.parts()[resource], demands, resource);
        }
        let solution = model.solve().map_err(|error| Unsolved::Solver(error.to_string()))?;
        if !matches!(solution.status(), SolutionStatus::Optimal) {
            return Err(Unsolved::Solver(String::from("it stopped before its proof")));
        }
        let split = Split::at(demands, &self.chosen(&solution)?);
        let fits = split.leaves(total, demands).is_some();
        fits.then_some(split).ok_or_else(|| Unsolved::Wrong(String::from("it does not fit")))
    }

    /// One resource stays within the SM, in the largest unit in which all needs
    /// are whole: small coefficients are exact ones.
    fn limit(&self, model: &mut impl SolverModel, total: u64, demands: &[Demand], resource: usize) {
        let need = |kernel: usize| demands[kernel].need.parts()[resource];
        let unit = (0..demands.len()).map(need).fold(0, common_divisor);
        if unit == 0 {
            return;
        }
        #[allow(clippy::cast_precision_loss, reason = "resources of an SM are below 2^53")]
        let whole = |amount: u64| (amount / unit) as f64;
        let mut taken = Expression::default();
        for (kernel, demand) in demands.iter().enumerate() {
            let steps = demand.curve.steps();
            taken += self.sum(kernel, |place| whole(need(kernel)) * f64::from(steps[place].ctas));
        }
        model.add_constraint(taken.leq(whole(total)));
    }

    /// The place of each kernel in a solution.
    fn chosen(&self, solution: &impl Solution) -> Result<Vec<usize>, Unsolved> {
        let one = |steps: &Vec<(usize, Variable)>| {
            let mut chosen = steps.iter().filter(|&&(_, x)| solution.value(x) > 0.5);
            match (chosen.next(), chosen.next()) {
                (Some(&(place, _)), None) => Ok(place),
                _ => Err(Unsolved::Wrong(String::from("a kernel is not at one step"))),
            }
        };
        self.0.iter().map(one).collect()
    }
}

/// The greatest common divisor; that of 0 and a number is the number.
fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}
