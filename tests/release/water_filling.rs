//! How far is Warped-Slicer's Algorithm 1 from the best split of an SM?
//!
//! `cargo test --test release water_filling -- --nocapture` prints the table of
//! `reports/WATER_FILLING.md`.

#[path = "../bench/curves.rs"]
mod curves;

use curves::{Draw, LARGE, SMALL, Shape, demands, sampled};
use gpumodel::policy::solve::{Amount, Demand, exact, water_filling};

/// Sets of kernels per row of the table.
const SETS: u32 = 200;

const SHAPES: [Shape; 3] = [Shape::Saturating, Shape::Peaked, Shape::Noisy];

/// Relative error of a sampled speed in the last column.
const ERROR: f64 = 0.05;

/// Losses against the best over all sets of a row.
#[derive(Default)]
struct Losses(Vec<f64>);

impl Losses {
    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / f64::from(SETS)
    }

    /// Share of sets that lose anything.
    fn share(&self) -> f64 {
        self.0.iter().map(|&loss| f64::from(u8::from(loss > 1e-9))).sum::<f64>() / f64::from(SETS)
    }

    fn worst(&self) -> f64 {
        self.0.iter().copied().fold(0.0, f64::max)
    }
}

#[derive(Default)]
struct Row {
    /// Best minimum - Algorithm 1's.
    minimum: Losses,
    /// Best sum among splits of that minimum - Algorithm 1's, per kernel.
    sum: Losses,
    /// Best minimum - that of Algorithm 1 on speeds without normalisation.
    raw: Losses,
    /// Best minimum - the true one of the split that sampled speeds give.
    sampled: Losses,
}

/// Performance of a demand with exactly so many CTAs.
fn performance(demand: &Demand, ctas: u32) -> f64 {
    let samples = demand.curve.samples();
    let best = samples.iter().map(|sample| sample.speed).fold(0.0, f64::max);
    samples[ctas as usize - 1].speed / best
}

fn minimum(demands: &[Demand], ctas: &[u32]) -> f64 {
    demands.iter().zip(ctas).map(|(d, &n)| performance(d, n)).fold(1.0, f64::min)
}

/// Algorithm 1 on speeds as they are: the kernel of fewest instructions per
/// cycle grows.
fn unnormalised(sm: Amount, demands: &[Demand]) -> Vec<u32> {
    let mut places = vec![0; demands.len()];
    let mut full = vec![false; demands.len()];
    let ctas = |places: &[usize]| -> Vec<u32> {
        demands.iter().zip(places).map(|(d, &place)| d.curve.steps()[place].ctas).collect()
    };
    let speed = |kernel: usize, place: usize| {
        demands[kernel].curve.samples()[demands[kernel].curve.steps()[place].ctas as usize - 1]
            .speed
    };
    while let Some(slowest) = (0..demands.len())
        .filter(|&kernel| !full[kernel])
        .min_by(|&a, &b| speed(a, places[a]).total_cmp(&speed(b, places[b])))
    {
        places[slowest] += 1;
        let more = places[slowest] < demands[slowest].curve.steps().len();
        let fits = more && {
            let mut taken = demands.iter().zip(ctas(&places));
            taken.try_fold(sm, |left, (d, n)| left.minus(d.need.times(n))).is_some()
        };
        if !fits {
            places[slowest] -= 1;
            full[slowest] = true;
        }
    }
    ctas(&places)
}

fn measure(sm: Amount, kernels: usize, shape: Shape, seed: u64) -> Row {
    let mut draw = Draw(seed);
    let mut row = Row::default();
    for _ in 0..SETS {
        let demands = demands(&mut draw, sm, kernels, shape);
        let best = exact(sm, &demands).unwrap();
        let filled = water_filling(sm, &demands).unwrap().split;
        row.minimum.0.push(best.minimum() - filled.minimum());
        let kernels = f64::from(u32::try_from(kernels).unwrap());
        row.sum.0.push((best.sum() - filled.sum()) / kernels);
        row.raw.0.push(best.minimum() - minimum(&demands, &unnormalised(sm, &demands)));
        let seen: Vec<Demand> = demands.iter().map(|d| sampled(&mut draw, d, ERROR)).collect();
        let blurred = water_filling(sm, &seen).unwrap().split;
        row.sampled.0.push(best.minimum() - minimum(&demands, &blurred.ctas));
    }
    row
}

/// Mean and worst loss of all rows, in percent.
fn summary(rows: &[Row], of: impl Fn(&Row) -> &Losses) -> (f64, f64) {
    let count = f64::from(u32::try_from(rows.len()).unwrap());
    let mean = rows.iter().map(|row| of(row).mean()).sum::<f64>() / count;
    let worst = rows.iter().map(|row| of(row).worst()).fold(0.0, f64::max);
    (100.0 * mean, 100.0 * worst)
}

#[allow(clippy::print_stdout, reason = "the table is what the test is run for")]
fn print(name: &str, shape: Shape, kernels: usize, row: &Row) {
    let cell =
        |losses: &Losses| format!("{:.1}, {:.1}", 100.0 * losses.mean(), 100.0 * losses.worst());
    println!(
        "| {name} | {shape:?} | {kernels} | {} | {:.1} | {} | {} | {} |",
        cell(&row.minimum),
        100.0 * row.sum.share(),
        cell(&row.sum),
        cell(&row.sampled),
        cell(&row.raw),
    );
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, sm) in [("8 CTAs", SMALL), ("32 CTAs", LARGE)] {
        for shape in SHAPES {
            for kernels in 2..=4 {
                rows.push(measure(sm, kernels, shape, 1));
                print(name, shape, kernels, &rows[rows.len() - 1]);
            }
        }
    }
    rows
}

#[test]
fn losses_are_as_reported() {
    let rows = rows();
    assert_eq!(summary(&rows, |row| &row.minimum), (0.0, 0.0), "Algorithm 1 is exact");
    let near = |(mean, worst): (f64, f64), reported: (f64, f64)| {
        let holds = (mean - reported.0).abs() < 0.1 * reported.0 + 0.01;
        assert!(holds && (worst - reported.1).abs() < 0.5, "{mean}, {worst} for {reported:?}");
    };
    near(summary(&rows, |row| &row.sum), (0.03, 7.2));
    near(summary(&rows, |row| &row.sampled), (0.34, 9.2));
    near(summary(&rows, |row| &row.raw), (7.4, 71.4));
}
