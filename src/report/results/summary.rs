//! Errors of one quantity over many rows.

use serde::{Deserialize, Serialize};
use statrs::statistics::{Data, OrderStatistics, Statistics};

use super::{ComparedRow, ErrorUnit, Quantity};

/// Errors of one quantity over the rows that count; percent or percentage
/// points, as the quantity says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The quantity.
    pub quantity: Quantity,
    /// Pairs whose error counts.
    pub counted: usize,
    /// Pairs in all: the others have a reference too small for a relative error.
    pub pairs: usize,
    /// Mean of the absolute errors.
    pub mean_absolute: f64,
    /// Median of the absolute errors.
    pub median_absolute: f64,
    /// Mean of the signed errors: the bias.
    pub mean_signed: f64,
    /// The error that is largest in size, with its sign.
    pub worst: f64,
    /// Its application, with the launches where not all.
    pub worst_trace: String,
    /// Pearson correlation of the logarithms of both sides (of the values
    /// themselves for rates); absent below 3 pairs or without spread.
    pub correlation: Option<f64>,
}

impl Summary {
    /// The summary of `quantity` over `rows`; `None` when no error counts.
    #[must_use]
    pub fn of(quantity: Quantity, rows: &[ComparedRow]) -> Option<Self> {
        let pairs: Vec<_> =
            rows.iter().filter_map(|row| row.pairs.get(&quantity).map(|p| (row, p))).collect();
        let errors: Vec<(&ComparedRow, f64)> = pairs
            .iter()
            .filter(|(_, pair)| pair.counted)
            .filter_map(|(row, pair)| pair.error.map(|error| (*row, error)))
            .collect();
        let &(mut worst_row, mut worst) = errors.first()?;
        for &(row, error) in &errors {
            if error.abs() > worst.abs() {
                (worst_row, worst) = (row, error);
            }
        }
        let sizes: Vec<f64> = errors.iter().map(|(_, error)| error.abs()).collect();
        let counted = pairs.iter().filter(|(_, pair)| pair.counted);
        let sides: Vec<(f64, f64)> = counted.map(|(_, p)| (p.model, p.reference)).collect();
        Some(Self {
            quantity,
            counted: errors.len(),
            pairs: pairs.len(),
            mean_absolute: sizes.iter().mean(),
            median_absolute: Data::new(sizes.clone()).median(),
            mean_signed: errors.iter().map(|&(_, error)| error).mean(),
            worst,
            worst_trace: worst_row.label(),
            correlation: correlation(quantity, &sides),
        })
    }
}

impl ComparedRow {
    /// `trace`, with the launches where the row is not about all.
    #[must_use]
    pub fn label(&self) -> String {
        if self.launches == "all" {
            self.trace.clone()
        } else {
            format!("{} #{}", self.trace, self.launches)
        }
    }
}

/// Pearson's r of both sides; see [`Summary::correlation`].
fn correlation(quantity: Quantity, sides: &[(f64, f64)]) -> Option<f64> {
    let logarithms = quantity.unit() == ErrorUnit::Percent;
    let usable: Vec<(f64, f64)> = sides
        .iter()
        .filter(|(model, reference)| !logarithms || (*model > 0.0 && *reference > 0.0))
        .map(|&(m, r)| if logarithms { (m.ln(), r.ln()) } else { (m, r) })
        .collect();
    if usable.len() < 3 {
        return None;
    }
    let (model, reference): (Vec<f64>, Vec<f64>) = usable.into_iter().unzip();
    let spread = model.iter().population_std_dev() * reference.iter().population_std_dev();
    let r = model.iter().population_covariance(reference.iter()) / spread;
    (spread > 0.0 && r.is_finite()).then_some(r)
}
