//! The binary store: layout, writer, reader, importers of trace text.
//!
//! [`convert`] makes a store of traces; [`Store`] opens one; [`Store::cta`]
//! gives a CTA, [`Cta::warp`] a [`WarpCursor`] that walks a warp's segments,
//! masks and addresses.
//!
//! Knows trace files and bytes. Must not know what an opcode does, which GPU
//! runs it, or who asks.
//!
//! # How records become small
//! * A kernel's static instructions are numbered in order of first appearance
//!   and kept once, with opcodes as text. Runs of consecutive numbers are
//!   segments; a warp's path is a sequence of segments, and warps share paths.
//! * Masks are runs of equal values per warp ([`mask`]).
//! * Addresses are predicted ([`predict`]): an affine model per memory
//!   instruction and chunk for a warp's first access, the warp's own past after
//!   that. Only what differs is stored ([`stream`]); lane patterns that come back
//!   are kept once per chunk ([`lanes`]). The address mode follows from the
//!   tracer's rule and is stored where it does not.
//! * A chunk is a range of CTAs in file order with at least 65 536 warp
//!   instructions, up to 16 times as many where CTAs repeat each other, and is
//!   compressed with zstd ([`chunk`] draws it; [`layout`] draws the file).
//!
//! A reading order: [`layout`], [`records`], [`pack`], [`chunk`], [`cursor`],
//! [`store`], then `import`.

// The map above links to this room's private files.
#![allow(rustdoc::private_intra_doc_links)]

mod access;
mod block;
mod cache;
mod chunk;
mod content;
mod cursor;
mod dictionary;
mod error;
mod executed;
mod export;
mod file;
mod filter;
mod fit;
#[cfg(test)]
mod hostile;
mod import;
mod index;
mod lanes;
mod layout;
mod map;
mod mask;
mod number;
mod pack;
mod path;
mod predict;
mod program;
mod records;
mod selection;
mod store;
mod strands;
mod stream;
mod summary;
mod survey;
mod tails;
pub mod workload;
mod writer;

pub use cursor::{Cta, WarpCursor};
pub use error::TraceError;
pub use export::export;
pub use filter::{CtaChoice, Filter, KernelIds, NamePattern};
pub use import::{
    Beside, ConvertReport, ConvertRequest, Launches, Progress, Silent, TakeRecord, convert,
    convert_launches, expand, sources,
};
pub use store::{Command, Store};
pub use summary::KernelSummary;
pub use survey::Survey;
pub use tails::CtaTails;
