//! The binary store: its layout, writer, reader and cursors.
//!
//! # How records become small
//! * A kernel's static instructions are numbered in order of first appearance
//!   and kept once, with opcodes as text. Runs of consecutive numbers are
//!   segments; a warp's path is a sequence of segments, and warps share paths.
//! * Masks are runs of equal values per warp ([`run_length`]).
//! * Addresses are predicted ([`address_model`]): an affine model per memory
//!   instruction and chunk for a warp's first access, the warp's own past after
//!   that. Only what differs is stored ([`memory_stream`]); lane patterns that come back
//!   are kept once per chunk ([`lanes`]). The address mode follows from the
//!   tracer's rule and is stored where it does not.
//! * A chunk is a range of CTAs in file order with at least 65 536 warp
//!   instructions, up to 16 times as many where CTAs repeat each other, and is
//!   compressed with zstd ([`chunk`] draws it; [`layout`] draws the file).
//!
//! A reading order: [`layout`], [`records`], [`chunk_writer`], [`chunk`], [`cursor`],
//! [`reader`].

mod address_model;
mod chunk;
pub(crate) mod chunk_writer;
mod code;
mod cursor;
mod export;
pub(crate) mod file;
mod index;
pub(crate) mod lanes;
pub(crate) mod layout;
mod memory_stream;
mod reader;
pub(crate) mod records;
mod run_length;
mod statistics;
mod summary;
mod trailing_fields;
pub(crate) mod varint;
pub(crate) mod writer;

pub use cursor::{Cta, WarpCursor};
pub use export::export;
pub use reader::{Command, Store};
pub use statistics::TraceStatistics;
pub use summary::KernelSummary;
pub use trailing_fields::CtaTrailingFields;
