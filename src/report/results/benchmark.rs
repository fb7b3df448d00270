//! Results of microbenchmarks in the model, and published values of the card.

use std::collections::BTreeMap;

use serde::Serialize;

use super::statistics::mean;

/// The result of `machine measure`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurements {
    /// `gpumodel.measure/1`.
    pub schema: &'static str,
    /// Name and version of the program.
    pub program: String,
    /// The machine.
    pub machine: String,
    /// What identifies every key of the machine.
    pub machine_hash: String,
    /// Keys that were changed for this run.
    pub overrides: BTreeMap<String, String>,
    /// The errors over all values with a published one; `None` where there is none.
    pub errors: Option<BenchmarkErrors>,
    /// The benchmarks in order.
    pub benchmarks: Vec<BenchmarkRecord>,
}

/// Errors of the model over several values, in percent of the published ones, without sign.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BenchmarkErrors {
    /// Values.
    pub count: usize,
    /// Their mean.
    pub mean_percent: f64,
    /// Their median; of an even number the mean of both.
    pub median_percent: f64,
    /// The largest.
    pub worst_percent: f64,
}

/// One microbenchmark.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchmarkRecord {
    /// Its name.
    pub name: String,
    /// What it measures.
    pub about: String,
    /// What its points are, with the unit.
    pub at: String,
    /// The unit of its values.
    pub unit: String,
    /// Its values.
    pub rows: Vec<BenchmarkRow>,
}

/// One value of a microbenchmark.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchmarkRow {
    /// The point: a number, or the name of an opcode.
    pub at: String,
    /// The model's value.
    pub model: f64,
    /// The published value of the card.
    pub published: Option<f64>,
    /// The model's value less the published one, in percent of that.
    pub error_percent: Option<f64>,
    /// The source of the published value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
}

impl BenchmarkRow {
    /// A value, with the published one where it is known.
    #[must_use]
    pub fn new(at: String, model: f64, published: Option<f64>, source: String) -> Self {
        let error_percent = published.map(|known| 100.0 * (model / known - 1.0));
        Self { at, model, published, error_percent, source }
    }
}

impl BenchmarkRecord {
    /// The errors of its values; `None` where none is published.
    #[must_use]
    pub fn errors(&self) -> Option<BenchmarkErrors> {
        errors(std::slice::from_ref(self))
    }
}

impl Measurements {
    /// The values of a machine, with the errors over all of them.
    #[must_use]
    pub fn new(
        program: String,
        (machine, machine_hash): (String, String),
        overrides: BTreeMap<String, String>,
        benchmarks: Vec<BenchmarkRecord>,
    ) -> Self {
        let (schema, errors) = ("gpumodel.measure/1", errors(&benchmarks));
        Self { schema, program, machine, machine_hash, overrides, errors, benchmarks }
    }
}

fn errors(benchmarks: &[BenchmarkRecord]) -> Option<BenchmarkErrors> {
    let rows = benchmarks.iter().flat_map(|benchmark| &benchmark.rows);
    let mut sizes: Vec<f64> = rows.filter_map(|row| row.error_percent).map(f64::abs).collect();
    sizes.sort_by(f64::total_cmp);
    let half = sizes.len() / 2;
    let middle = if sizes.len() % 2 == 1 { half..=half } else { half.checked_sub(1)?..=half };
    Some(BenchmarkErrors {
        count: sizes.len(),
        mean_percent: mean(&sizes)?,
        median_percent: mean(&sizes[middle])?,
        worst_percent: *sizes.last()?,
    })
}

#[cfg(test)]
mod tests {
    use super::{BenchmarkRecord, BenchmarkRow};

    fn of(pairs: &[(f64, Option<f64>)]) -> BenchmarkRecord {
        let row = |&(model, published)| BenchmarkRow::new("1".into(), model, published, "".into());
        let words = || String::from("x");
        let rows = pairs.iter().map(row).collect();
        BenchmarkRecord { name: words(), about: words(), at: words(), unit: words(), rows }
    }

    #[test]
    fn errors_are_of_the_published_values_alone() {
        assert_eq!(of(&[(3.0, None)]).errors(), None);
        let found = of(&[(110.0, Some(100.0)), (3.0, None), (70.0, Some(100.0))]).errors().unwrap();
        assert_eq!(found.count, 2);
        assert!((found.mean_percent - 20.0).abs() < 1e-9, "{found:?}");
        assert!((found.median_percent - 20.0).abs() < 1e-9, "{found:?}");
        assert!((found.worst_percent - 30.0).abs() < 1e-9, "{found:?}");
        let three = [(1.0, Some(1.0)), (2.0, Some(1.0)), (5.0, Some(4.0))];
        assert!((of(&three).errors().unwrap().median_percent - 25.0).abs() < 1e-9);
    }
}
