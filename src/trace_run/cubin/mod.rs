//! The device code of a program: fat binaries, the cubins in them, and little-endian numbers at
//! places that may not exist.

mod elf;
mod fatbin;
mod module;

pub(crate) use elf::{Dynamic, dynamic};
pub use fatbin::{Entry, choose, entries, total_bytes};
pub use module::{Function, Module, Variable};

/// The bytes at `at`, a place that may not exist.
fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// 16 bits, little-endian, at `at`.
fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

/// 32 bits, little-endian, at `at`.
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

/// 64 bits, little-endian, at `at`.
fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_le_bytes)
}

/// 64 bits at `at` as an index.
fn index_at(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64_at(bytes, at)?).ok()
}
