//! Joins machine, traces and schemes: opens applications, runs them, fills
//! records.
//!
//! Knows no drawing and no command line.

pub mod cli;

mod analyze;
mod app;
mod cache;
mod corun;
mod dram;
mod ending;
mod error;
mod facts;
mod memory;
mod queue;
mod random;
mod record;
mod reproduce;
mod sample;
mod scheme;
mod solo;
mod sweep;

use std::path::Path;

use gpumodel_sim::config::{Models, SpecError};

pub(crate) use analyze::RunContext;
pub use analyze::{AnalyzeRequest, Unwatched, Watch, analyze};
pub use app::{App, AppName, default_name};
pub use dram::requests::RequestError;
pub use dram::{DramError, DramJob, RequestFormat};
pub use ending::{EndWhen, Ending};
pub use error::RunError;
pub use memory::check_memory;
pub use queue::QueueFileError;
pub use reproduce::{ReproduceError, ReproduceRequest, reproduce};
pub use sample::SampleRequest;
pub use scheme::{ParameterRow, SchemeRow, schemes};
pub use sweep::{
    MergeRequest, SlurmError, SlurmOutcome, SlurmRequest, SweepError, SweepProgress, SweepRequest,
    SweepWatch, merge, slurm_sweep, sweep, sweep_estimate, sweep_tables,
};

/// The carried model files, and over them those of `folder`.
///
/// # Errors
/// [`SpecError::File`].
pub fn models(folder: Option<&Path>) -> Result<Models, SpecError> {
    Models::with_overrides(gpumodel_models::builtin(), folder)
}
