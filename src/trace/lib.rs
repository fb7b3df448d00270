//! Traces of GPU kernels: a compact binary store, importers for the usual trace formats, and
//! kernels that are declared in a file instead of traced.
//!
//! | module | content |
//! |---|---|
//! | `store` | the store: layout, writer, reader, cursors |
//! | `import` | importers of Accel-Sim text (`.trace`, `.traceg`), `.tracez` and NVBit `mem_trace` logs |
//! | [`workload`] | declared workloads: the instructions of a kernel from a TOML file |
//!
//! [`convert`] writes a store from traces. [`Store`] opens one, [`Store::cta`] returns one of
//! its CTAs, and [`Cta::warp`] a [`WarpCursor`] over the segments, active masks and addresses
//! of a warp. [`export`] writes a store as grouped text again.
//!
//! The crate knows trace files. It does not know what an opcode does, and it models no GPU.
//!
//! # Example
//! ```
//! use gpumodel_trace::{ConvertRequest, Silent, Store, convert};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let scratch = tempfile::tempdir()?;
//! # let samples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/samples");
//! let request = ConvertRequest {
//!     inputs: vec![samples.join("saxpy")],
//!     output: scratch.path().join("saxpy.gpt"),
//!     ..ConvertRequest::default()
//! };
//! let report = convert(&request, &Silent)?;
//!
//! let store = Store::open(&request.output)?;
//! assert_eq!(store.kernel_count(), report.kernels);
//! // The first warp of the first CTA of the first kernel, segment by segment.
//! let mut warp = store.cta(0, 0)?.warp(0);
//! let (mut instructions, mut active_lanes) = (0, 0);
//! while let Some(_segment) = warp.next_segment() {
//!     instructions += warp.left();
//!     active_lanes += warp.skip(warp.left());
//! }
//! assert!(active_lanes <= 32 * u64::from(instructions));
//! # Ok(())
//! # }
//! ```
//!
//! `examples/count_opcodes.rs` is a whole program that needs this crate alone.

mod async_fields;
mod error;
mod filter;
mod grouped_text;
mod import;
mod recorder;
mod store;
pub mod workload;

pub use async_fields::{bulk_copy, is_open, source_values};
pub use error::TraceError;
pub use filter::{CtaChoice, Filter, KernelIds, NamePattern};
pub use import::{
    ConvertReport, ConvertRequest, Progress, SharedProgress, Silent, convert, convert_workload,
    expand, source_name, sources,
};
pub use recorder::{LaunchRecorder, Recorder, WarpRecord};
pub use store::{
    Command, Cta, CtaTrailingFields, KernelSummary, Store, TraceStatistics, WarpCursor, export,
};
