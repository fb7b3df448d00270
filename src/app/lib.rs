//! Joins machine, traces and schemes: opens applications, runs them, fills records.
//!
//! Only `cli` knows the command line; nothing here draws.

pub mod cli;
pub mod guide;

mod analyze;
mod app;
mod cache;
mod corun;
mod dram;
mod error;
mod measure;
mod memory;
mod queue;
mod record;
mod reproduce;
mod run_context;
mod sample;
mod scheme;
mod solo;
mod sweep;
mod trace_counters;
mod trace_device;

use std::path::Path;

use gpumodel_sim::config::{Models, SpecError};

pub use analyze::{AnalyzeRequest, EventDetail, Phase, Unwatched, Watch, analyze};
pub use app::{App, AppName, default_name};
pub use corun::{EndWhen, Ending};
pub use dram::requests::RequestError;
pub use dram::{DramError, DramJob, RequestFormat};
pub use error::RunError;
pub use measure::{MeasureError, MeasureRequest, benchmarks, measure};
pub use memory::check_memory;
pub use queue::QueueFileError;
pub use reproduce::{ReproduceError, ReproduceRequest, reproduce};
pub(crate) use run_context::RunContext;
pub use sample::SampleRequest;
pub use scheme::{ParameterRow, SchemeRow, schemes};
pub use sweep::{
    MergeRequest, SlurmError, SlurmOutcome, SlurmRequest, SweepError, SweepProgress, SweepRequest,
    SweepWatch, merge, slurm_sweep, sweep, sweep_estimate, sweep_tables,
};

/// A count as a number; counts of a run stay below 2^53.
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

/// `part` over `whole`; 0 where `whole` is 0.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { float(part) / float(whole) }
}

/// The carried model files, and over them those of `folder`.
///
/// # Errors
/// [`SpecError::Toml`].
pub fn models(folder: Option<&Path>) -> Result<Models, SpecError> {
    Models::with_overrides(gpumodel_models::builtin(), folder)
}
