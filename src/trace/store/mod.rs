//! The binary store: its layout, writer, reader and cursors.
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
//! [`reader`].

mod access;
mod block;
mod chunk;
mod chunk_cache;
mod content_hash;
mod cursor;
mod dictionary;
mod executed;
mod export;
pub(crate) mod file;
mod fit;
#[cfg(test)]
mod hostile;
mod index;
mod interned_bytes;
pub(crate) mod kernel_writer;
pub(crate) mod lanes;
pub(crate) mod layout;
pub(crate) mod map;
mod mask;
mod pack;
mod path;
mod predict;
mod program;
mod reader;
pub(crate) mod records;
mod selection;
mod stream;
mod summary;
mod survey;
mod trailing_fields;
pub(crate) mod varint;
pub(crate) mod writer;

pub use cursor::{Cta, WarpCursor};
pub use export::export;
pub use reader::{Command, Store};
pub use summary::KernelSummary;
pub use survey::Survey;
pub use trailing_fields::CtaTrailingFields;
