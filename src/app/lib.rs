//! Joins machine, traces and schemes: opens applications, runs them, fills
//! records.
//!
//! Knows no drawing and no command line.

pub mod cli;

mod alone;
mod answers;
mod app;
mod assumptions;
mod cached;
mod corun;
mod disk_cache;
mod dram;
mod dram_latency;
mod dram_requests;
mod draws;
mod energy;
mod error;
mod facts;
mod given;
mod hosted;
mod memory;
mod models;
mod notes;
mod parts;
mod profiles;
mod queue;
mod recall;
mod replay;
mod reproduce;
mod request;
mod rows;
mod sample;
mod schemes;
mod shares;
mod solo;
mod stage;
mod stopwatch;
mod sweep;
mod together;
mod until;
mod utilization;
mod watch;
mod wrong;

pub use app::{App, AppName, default_name};
pub use dram::{DramError, DramJob, RequestFormat};
pub use dram_requests::RequestError;
pub use error::RunError;
pub use memory::check_memory;
pub use models::models;
pub use queue::QueueFileError;
pub use reproduce::{ReproduceError, ReproduceRequest, reproduce};
pub use request::{AnalyzeRequest, analyze};
pub use sample::SampleRequest;
pub use schemes::{ParameterRow, SchemeRow, schemes};
pub use sweep::{
    MergeRequest, SlurmEnd, SlurmError, SlurmRequest, SweepEnd, SweepError, SweepRequest,
    SweepWatch, merge, remaining, slurm_sweep, sweep, sweep_tables,
};
pub use until::{Until, Who};
pub use watch::{Unwatched, Watch};
