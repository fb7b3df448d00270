//! A trace-driven, analytic/cycle-hybrid performance model of GPUs that run
//! several kernels at once.
//!
//! # The stations
//! trace text -> [`trace`] store -> [`feed`] -> [`sim`] (View -> [`policy`] -> Plan) -> record
//! -> table and SVG by [`report`].
//!
//! # The crates
//! Each room is a crate, so that cargo keeps imports pointing down.
//!
//! | crate | what it is | may import |
//! |---|---|---|
//! | [`app`] | runs, sweeps, command line | all |
//! | [`report`] | records, tables, figures | core |
//! | [`policy`] | schemes of sharing and their solvers | core |
//! | [`feed`] | stores and workloads as the machine's instructions | trace, sim, core |
//! | [`trace_run`] | SASS of CUDA programs, decoded and executed; its `runtime` | trace, core |
//! | [`sim`] | the machine and its description | core |
//! | [`trace`] | stores, importers, workloads | core |
//! | [`core`] | units, instructions, the contract of policy and machine | nothing |
//!
//! # The laws
//! The machine does not know which scheme decides; a scheme does not touch the machine.
//! Hardware is a file under `models/`; every number in it has a source.
//! Same input, same bytes, on any number of threads.
//!
//! # An example
//! ```
//! use gpumodel::app::{AnalyzeRequest, AppName, Unwatched, analyze};
//!
//! let cache = std::env::temp_dir().join("gpumodel-example");
//! let apps = vec![AppName::parse("synth:saxpy:scale=0.05")];
//! let request = AnalyzeRequest::new(apps, "v100", &cache);
//! let analysis = analyze(&request, &Unwatched).expect("a workload and a machine of `models`");
//! assert!(analysis.solo[0].ipc > 0.0);
//! ```

// The examples of the guide use the library under this crate's name.
#[cfg(doctest)]
#[doc = include_str!("app/guide/library.md")]
mod guide_library {}

pub use gpumodel_app as app;
pub use gpumodel_core as core;
pub use gpumodel_feed as feed;
pub use gpumodel_policy as policy;
pub use gpumodel_report as report;
pub use gpumodel_sim as sim;
pub use gpumodel_trace as trace;
pub use gpumodel_trace_run as trace_run;

use sim::config::Models;

/// The model files that the program carries.
#[must_use]
pub fn models() -> Models {
    Models::new(gpumodel_models::builtin())
}
