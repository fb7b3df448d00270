//! Workload models: a kernel declared in a file becomes the same instructions
//! as a trace of it.
//!
//! A workload file (its language: `models/workloads/README.md`) is read and compiled
//! once; [`Workload`] then gives launches, CTAs and warps, and a [`WarpStream`]
//! walks one warp's dynamic instructions: segments, masks and addresses, all
//! pure functions of the file, the scale and the position, so that any warp can
//! be walked at any time, in any order, on any thread.
//!
//! [`write_folder`] writes the same instructions as an Accel-Sim trace folder,
//! [`LaunchRecords`] gives them CTA by CTA to who makes a store of them.
//!
//! Stations: TOML -> `document` -> `description` + `body` (terms and lines as
//! written) -> `names` + `resolver` + `compile` (a program of segments and moves) ->
//! `stream` -> `walk` -> `text`.
//!
//! Knows nothing of machines, schemes or stores.

mod body;
mod compile;
mod declared;
mod description;
mod document;
mod error;
mod expression;
mod folder;
mod kernel;
mod launch_records;
mod law;
mod listing;
mod names;
mod program;
mod random;
mod reader;
mod resolver;
mod stream;
mod term;
mod text;
mod walk;
mod zipf;

pub use declared::{Command, Workload, names};
pub use error::SynthError;
pub use folder::{Compression, FolderReport, write_folder};
pub use kernel::{Cta, Kernel};
pub use launch_records::{LaunchRecords, TakeRecord};
pub use stream::WarpStream;
