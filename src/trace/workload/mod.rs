//! Workload models: a kernel declared in a file becomes the same instructions
//! as a trace of it.
//!
//! A workload file (its language: `models/workloads/README.md`) is read and compiled
//! once; [`Workload`] then gives launches, CTAs and warps, and a [`WarpStream`]
//! steps through one warp's dynamic instructions: segments, masks and addresses, all
//! pure functions of the file, the scale and the position, so that any warp can
//! be read at any time, in any order, on any thread.
//!
//! [`write_folder`] writes the same instructions as an Accel-Sim trace folder,
//! [`convert_workload`](crate::convert_workload) as a store.
//!
//! TOML -> `description` + `code` (as written) -> `names` (expressions with their names
//! resolved) -> `program` (segments and jumps) -> `kernel` (warps) -> `records` (checked) ->
//! `trace_folder`.
//!
//! Knows nothing of machines or schemes.

mod asynchronous;
mod code;
mod description;
mod distribution;
mod error;
mod kernel;
mod lane_expression;
mod names;
mod program;
mod records;
mod trace_folder;
#[allow(clippy::module_inception, reason = "the type that the module is about")]
mod workload;

pub use error::WorkloadError;
pub use kernel::{Cta, Kernel, WarpStream};
pub(crate) use records::{CtaRecords, Executed};
pub use trace_folder::{Compression, FolderReport, write_folder};
pub(crate) use trace_folder::{cta_bytes, header};
pub use workload::{Workload, names};
