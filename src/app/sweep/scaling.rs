//! What a sweep would take on many nodes, from what its measured cells took.

use std::collections::BTreeMap;

use statrs::distribution::{ContinuousCDF, LogNormal};
use statrs::statistics::Statistics;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use gpumodel_core::units::to_u64;
use gpumodel_report::results::{NodesEstimate, SweepScaling};

use super::schedule::{Piece, Schedule};
use super::seconds::Took;
use super::stock::{Cell, Stock};

/// Spread of a distribution of which one value is known, or equal ones: none to speak of.
const LEAST_SCALE: f64 = 1e-9;

/// On how many nodes a sweep is thought to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScalingRequest {
    /// Nodes, each at least 1.
    pub nodes: Vec<u32>,
    /// Cells at once on a node.
    pub threads: u32,
    /// Seed of what is drawn; `None`: the first one of the plan.
    pub seed: Option<u64>,
}

/// The estimate for `cells`; `None` where none of them has been measured.
pub(super) fn scaling(
    stock: &Stock,
    cells: &[Cell],
    request: &ScalingRequest,
) -> Option<SweepScaling> {
    let known = stock.seconds.known();
    let keys: Vec<&str> = cells.iter().map(|cell| cell.record.key.as_str()).collect();
    let measured = measured(&known, &keys);
    let own = fit(&measured)?;
    let around = measured.iter().map(|took| took.around).sum::<u64>() / to_u64(measured.len());
    let seed = request.seed.or(stock.plan.seeds.first().copied()).unwrap_or(0);
    let (names, needs) = shared(stock, cells);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let alone = self::measured(&known, &names);
    let alone_fit = fit(&alone).unwrap_or(own);
    let micros = |key: &str, fit: &LogNormal| match known.get(key) {
        Some(took) => took.whole(),
        None => drawn(fit, key, seed).saturating_add(around),
    };
    let pieces = keys.iter().zip(needs);
    let pieces = pieces.map(|(key, needs)| Piece { micros: micros(key, &own), needs }).collect();
    let shared_micros = names.iter().map(|name| micros(name, &alone_fit)).collect();
    Some(SweepScaling {
        cells: to_u64(cells.len()),
        measured_cells: to_u64(measured.len()),
        shared_runs: to_u64(names.len()),
        measured_shared_runs: to_u64(alone.len()),
        median_seconds: own.inverse_cdf(0.5) / 1e6,
        high_seconds: own.inverse_cdf(0.95) / 1e6,
        overhead_seconds: seconds(around),
        threads: request.threads,
        seed,
        nodes: rows(&Schedule::new(shared_micros, pieces), request),
    })
}

/// What is known of those in `keys`.
fn measured(known: &BTreeMap<String, Took>, keys: &[&str]) -> Vec<Took> {
    keys.iter().filter_map(|&key| known.get(key).copied()).collect()
}

/// The log-normal distribution of the work of `measured`, in microseconds: mean and
/// deviation of the logarithms. `None` of nothing.
fn fit(measured: &[Took]) -> Option<LogNormal> {
    let logs: Vec<f64> = measured.iter().map(|took| float(took.own.max(1)).ln()).collect();
    let scale = if logs.len() > 1 { logs.as_slice().std_dev() } else { 0.0 };
    (!logs.is_empty()).then_some(())?;
    LogNormal::new(logs.as_slice().mean(), scale.max(LEAST_SCALE)).ok()
}

/// A draw that belongs to `key` and `seed` alone, in microseconds.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a value of a log-normal distribution is not negative; what is too large saturates"
)]
fn drawn(fit: &LogNormal, key: &str, seed: u64) -> u64 {
    // 52 bits: the middle of each step is exact, above 0 and below 1.
    let share = (float(xxh3_64_with_seed(key.as_bytes(), seed) >> 12) + 0.5) / float(1 << 52);
    fit.inverse_cdf(share).round() as u64
}

/// The applications alone, in the order in which cells ask for them, and by cell which
/// of them it needs.
fn shared(stock: &Stock, cells: &[Cell]) -> (Vec<String>, Vec<Vec<usize>>) {
    let mut places: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let mut names = Vec::new();
    let mut needs = Vec::with_capacity(cells.len());
    for cell in cells {
        let need = |&app: &usize| {
            *places.entry((cell.machine, app)).or_insert_with(|| {
                names.push(stock.name_alone(cell.machine, app));
                names.len() - 1
            })
        };
        needs.push(cell.mix.iter().map(need).collect());
    }
    (names, needs)
}

fn rows(schedule: &Schedule, request: &ScalingRequest) -> Vec<NodesEstimate> {
    let threads = u64::from(request.threads.max(1));
    let one = schedule.micros(threads);
    let row = |&nodes: &u32| {
        let slots = u64::from(nodes.max(1)) * threads;
        let micros = schedule.micros(slots);
        let speedup = float(one) / float(micros.max(1));
        NodesEstimate {
            nodes,
            seconds: seconds(micros),
            speedup,
            efficiency: speedup / f64::from(nodes.max(1)),
            bottleneck: schedule.bottleneck(slots),
        }
    };
    request.nodes.iter().map(row).collect()
}

fn seconds(micros: u64) -> f64 {
    float(micros) / 1e6
}

#[allow(clippy::cast_precision_loss, reason = "times and draws are below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use statrs::distribution::LogNormal;

    use super::{Took, drawn, fit};

    #[test]
    fn the_fit_recovers_what_was_drawn() {
        let law = LogNormal::new(12.0, 0.7).unwrap();
        let draw = |n: u32| Took { own: drawn(&law, &n.to_string(), 5), around: 0 };
        let fitted = fit(&(0..20_000).map(draw).collect::<Vec<_>>()).unwrap();
        assert!((fitted.location() - 12.0).abs() < 0.02, "{fitted}");
        assert!((fitted.scale() - 0.7).abs() < 0.02, "{fitted}");
        assert!(fit(&[]).is_none());
    }

    #[test]
    fn one_value_or_equal_ones_are_drawn_again() {
        for count in [1, 3] {
            let law = fit(&vec![Took { own: 5000, around: 0 }; count]).unwrap();
            assert_eq!(drawn(&law, "any", 1), 5000);
        }
    }

    #[test]
    fn a_draw_belongs_to_its_cell_and_seed() {
        let law = LogNormal::new(12.0, 0.7).unwrap();
        let draw = |key, seed| drawn(&law, key, seed);
        assert_eq!(draw("a", 1), draw("a", 1));
        assert_ne!(draw("a", 1), draw("a", 2));
        assert_ne!(draw("a", 1), draw("b", 1));
    }
}
