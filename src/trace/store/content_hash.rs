//! The hash of what a store says, whatever it was made from.
//!
//! Fed in order: per kernel its launch, name, header text, chunks and code,
//! then the commands. Written and checked by the same code.

use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_128};
use zerocopy::IntoBytes;

use super::layout::{CommandRow, KernelRow};

/// The hash so far.
pub(super) struct Content(Xxh3);

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Content")
    }
}

impl Content {
    pub(super) fn new() -> Self {
        Self(Xxh3::new())
    }

    /// A kernel's launch, name and header; its blocks follow.
    pub(super) fn kernel(&mut self, row: &KernelRow, name: &[u8], header: &[u8]) {
        self.block(row.id.as_bytes());
        self.block(row.grid.as_bytes());
        self.block(row.block.as_bytes());
        self.block(name);
        self.block(header);
    }

    /// A chunk, its tails or a code block, before compression.
    pub(super) fn block(&mut self, raw: &[u8]) {
        self.digest(xxh3_128(raw));
    }

    /// A block by its own hash.
    pub(super) fn digest(&mut self, hash: u128) {
        self.0.update(&hash.to_le_bytes());
    }

    /// The commands, and the end.
    pub(super) fn finish(mut self, commands: &[CommandRow]) -> [u8; 16] {
        self.block(commands.as_bytes());
        self.0.digest128().to_le_bytes()
    }
}

/// The checksum of a block as stored.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}
