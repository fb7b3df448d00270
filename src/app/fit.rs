//! The constant of a workload model with which its run alone has what a paper prints.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use thiserror::Error;

use gpumodel_core::units::{Scratch, WholeFile, did_you_mean};
use gpumodel_report::paper::{PublishedLookup, TableEntry, solo_columns};
use gpumodel_report::results::Analysis;
use gpumodel_trace::workload::{SynthError, Workload};

use super::app::AppName;
use super::error::RunError;
use super::request::AnalyzeRequest;

/// What [`fit`] is asked for.
#[derive(Clone, Debug)]
pub struct FitRequest {
    /// The workload model: a name or a file.
    pub workload: String,
    /// How much of it runs.
    pub scale: f64,
    /// A constant of its file.
    pub constant: String,
    /// Its least and its largest value.
    pub range: RangeInclusive<u32>,
    /// The machine: a name or a file.
    pub machine: String,
    /// A column of papers' tables, one of [`solo_columns`].
    pub column: String,
    /// What the column is to have.
    pub wanted: f64,
    /// A folder of model files before the built-in ones.
    pub models: Option<PathBuf>,
    /// Where the stores of the runs lie until each has ended.
    pub cache: PathBuf,
}

/// One run of a fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitStep {
    /// The constant's value.
    pub value: u32,
    /// What the column then has.
    pub found: f64,
}

impl FitStep {
    fn distance(&self, wanted: f64) -> f64 {
        (self.found - wanted).abs()
    }
}

/// What a fit has found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitted {
    /// The run that comes nearest, of equals the first.
    pub nearest: FitStep,
    /// Those with the least and with the largest value.
    pub ends: [FitStep; 2],
}

impl Fitted {
    /// How far from what is wanted is near, in percent of it: the bar of
    /// `models/workloads/CALIBRATION.md`.
    pub const NEAR_PERCENT: f64 = 10.0;

    /// The nearest is near.
    #[must_use]
    pub fn meets(&self, wanted: f64) -> bool {
        100.0 * self.nearest.distance(wanted) <= Self::NEAR_PERCENT * wanted
    }

    /// Two values give the same.
    #[must_use]
    pub fn unmoved(&self) -> bool {
        let [low, high] = self.ends;
        low.value != high.value && low.found.to_bits() == high.found.to_bits()
    }

    /// Two values give both more or both less than what is wanted, so that nothing between
    /// them was run.
    #[must_use]
    pub fn outside(&self, wanted: f64) -> bool {
        let [low, high] = self.ends;
        let (least, most) = (low.found.min(high.found), low.found.max(high.found));
        low.value != high.value && !(least..=most).contains(&wanted)
    }
}

/// A fit that cannot be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FitError {
    /// The model is wrong, or has no such constant.
    #[error(transparent)]
    Synth(#[from] SynthError),
    /// It cannot be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// No run alone has the column.
    #[error("no run alone has `{column}`{hint}; expected one of {known}")]
    Column {
        /// As typed.
        column: String,
        /// The nearest one.
        hint: String,
        /// All of them.
        known: String,
    },
    /// Nobody hears of the runs any more.
    #[error("writing a row")]
    Output(#[source] io::Error),
    /// The run of this model on this machine lacks it.
    #[error("the run of {workload} on {machine} has no `{column}`")]
    Nothing {
        /// The model.
        workload: String,
        /// The machine.
        machine: String,
        /// The column.
        column: String,
    },
}

/// Checks the request, then runs the model by `alone` with constants of the range, both ends
/// first, then the middle of what is left as if the column rose or fell with the constant;
/// `tell` hears of each run. The same request takes the same steps.
///
/// # Errors
/// [`FitError`]: an unknown column, machine, model or constant and an end with which the model
/// makes no sense, all before the first run; a run that fails, or `tell`.
pub fn fit(
    request: &FitRequest,
    mut alone: impl FnMut(&AnalyzeRequest) -> Result<Analysis, RunError>,
    mut tell: impl FnMut(FitStep) -> io::Result<()>,
) -> Result<Fitted, FitError> {
    let workload = request.checked()?;
    search(&request.range, request.wanted, |value| {
        let step = FitStep { value, found: request.value_with(value, &workload, &mut alone)? };
        tell(step).map_err(FitError::Output)?;
        Ok(step)
    })
}

impl FitRequest {
    /// The model, where all that is named is there.
    fn checked(&self) -> Result<Workload, FitError> {
        if !solo_columns().any(|known| known == self.column) {
            let known = solo_columns().collect::<Vec<_>>().join(", ");
            let hint = did_you_mean(&self.column, solo_columns());
            return Err(FitError::Column { column: self.column.clone(), hint, known });
        }
        let models = self.models.as_deref();
        let files = crate::models(models).map_err(RunError::from)?;
        files.machine(&self.machine, &[]).map_err(RunError::from)?;
        let workload = Workload::load_scaled(&self.workload, &files, self.scale)?;
        for end in [self.range.start(), self.range.end()] {
            workload.text_with(&self.constant, *end)?;
        }
        Ok(workload)
    }

    /// What the column has where the constant is `value`.
    fn value_with(
        &self,
        value: u32,
        workload: &Workload,
        alone: &mut impl FnMut(&AnalyzeRequest) -> Result<Analysis, RunError>,
    ) -> Result<f64, FitError> {
        let failed = |source| RunError::Cache { path: self.cache.clone(), source };
        fs::create_dir_all(&self.cache).map_err(failed)?;
        let folder = Scratch::create(&self.cache).map_err(failed)?;
        let file = folder.path().join(format!("{}.toml", workload.name()));
        let text = workload.text_with(&self.constant, value)?;
        WholeFile::write(&file, text.as_bytes()).map_err(failed)?;
        let mut path = OsString::from("synth:");
        path.push(&file);
        if self.scale.to_bits() != 1.0_f64.to_bits() {
            path.push(format!(":scale={}", self.scale));
        }
        let app = AppName { name: workload.name().to_owned(), path: path.into() };
        let models = self.models.clone();
        let request = AnalyzeRequest::new(vec![app], &self.machine, folder.path());
        let record = alone(&AnalyzeRequest { models, ..request })?;
        self.column(workload.name(), record).ok_or_else(|| FitError::Nothing {
            workload: workload.name().to_owned(),
            machine: self.machine.clone(),
            column: self.column.clone(),
        })
    }

    fn column(&self, workload: &str, record: Analysis) -> Option<f64> {
        let lookup = PublishedLookup {
            rows: "",
            row: "",
            column: &self.column,
            apps: &[vec![workload.to_owned()]],
            schemes: &[],
            at: &BTreeMap::new(),
            window_cycles: None,
        };
        match lookup.value(&[record]) {
            Some(TableEntry::Number(value)) => Some(value),
            _ => None,
        }
    }
}

/// Steps of `range` towards `wanted`, by halves.
fn search<E>(
    range: &RangeInclusive<u32>,
    wanted: f64,
    mut step: impl FnMut(u32) -> Result<FitStep, E>,
) -> Result<Fitted, E> {
    let nearer = |one: FitStep, other: FitStep| {
        if other.distance(wanted) < one.distance(wanted) { other } else { one }
    };
    let mut low = step(*range.start())?;
    if range.end() <= range.start() {
        return Ok(Fitted { nearest: low, ends: [low, low] });
    }
    let mut high = step(*range.end())?;
    let ends = [low, high];
    let mut nearest = nearer(low, high);
    let below = |step: FitStep| step.found < wanted;
    while below(low) != below(high) && high.value - low.value > 1 {
        let middle = step(low.value + (high.value - low.value) / 2)?;
        nearest = nearer(nearest, middle);
        *(if below(middle) == below(low) { &mut low } else { &mut high }) = middle;
    }
    Ok(Fitted { nearest, ends })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::{FitStep, Fitted, search};

    /// What is found, and the steps to it.
    fn fitted(wanted: f64, of: impl Fn(f64) -> f64) -> (Fitted, Vec<u32>) {
        let mut values = Vec::new();
        let step = |value: u32| -> Result<FitStep, Infallible> {
            values.push(value);
            Ok(FitStep { value, found: of(value.into()) })
        };
        let Ok(fitted) = search(&(1..=9), wanted, step);
        (fitted, values)
    }

    /// The best value, and the steps to it.
    fn found(wanted: f64, of: impl Fn(f64) -> f64) -> (u32, Vec<u32>) {
        let (fitted, values) = fitted(wanted, of);
        (fitted.nearest.value, values)
    }

    #[test]
    fn what_rises_or_falls_is_found_by_halves() {
        assert_eq!(found(7.2, |value| value), (7, vec![1, 9, 5, 7, 8]));
        assert_eq!(found(12.0, |value| 60.0 / value), (5, vec![1, 9, 5, 7, 6]));
    }

    #[test]
    fn what_no_value_gives_is_met_by_the_nearest_end() {
        assert_eq!(found(20.0, |value| value), (9, vec![1, 9]));
        assert_eq!(found(5.0, |_| 3.0), (1, vec![1, 9]), "of equals the first");
    }

    #[test]
    fn a_value_is_met_within_a_tenth_whatever_the_ends_give() {
        let said = |wanted, of: fn(f64) -> f64| {
            let (fitted, _) = fitted(wanted, of);
            (fitted.meets(wanted), fitted.outside(wanted), fitted.unmoved())
        };
        assert_eq!(said(7.2, |value| value), (true, false, false));
        assert_eq!(said(1.4, |value| value), (false, false, false), "between two integers");
        assert_eq!(said(9.0, |value| value), (true, false, false), "an end is not outside");
        assert_eq!(said(9.5, |value| value), (true, true, false));
        assert_eq!(said(20.0, |value| 60.0 - value), (false, true, false));
        assert_eq!(said(3.1, |_| 3.0), (true, true, true));
        assert_eq!(said(5.0, |_| 3.0), (false, true, true));
    }

    #[test]
    fn of_one_value_alone_nothing_is_said_about_ends() {
        let step = |value| -> Result<FitStep, Infallible> { Ok(FitStep { value, found: 3.0 }) };
        let Ok(fitted) = search(&(4..=4), 5.0, step);
        assert_eq!((fitted.nearest.value, fitted.meets(5.0)), (4, false));
        assert!(!fitted.outside(5.0) && !fitted.unmoved());
    }
}
