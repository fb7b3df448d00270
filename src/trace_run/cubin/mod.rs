//! The device code of a program: fat binaries, and the cubins in them.

mod bytes;
mod elf;
mod fatbin;
mod lz4;
mod module;
mod parameters;

pub(crate) use elf::{Dynamic, dynamic};
pub use fatbin::{Entry, choose, entries, total_bytes};
pub use module::{Function, Module, Variable};
