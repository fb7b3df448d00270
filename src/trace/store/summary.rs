//! What a store says of one launch.

use gpumodel_core::isa::Launch;

use super::index;
use super::layout::{ChunkRow, KernelRow};
use super::selection::Selection;

/// What the index says of one launch: a view into it.
#[derive(Clone, Copy, Debug)]
pub struct KernelSummary<'a> {
    pub(super) row: &'a KernelRow,
    pub(super) chunks: &'a [ChunkRow],
    pub(super) name: &'a str,
    pub(super) header: &'a str,
    pub(super) memory_only: bool,
    /// The CTAs that are shown; `None`: all of them.
    pub(super) selection: Option<&'a Selection>,
}

impl<'a> KernelSummary<'a> {
    /// The launch as its header states it.
    #[must_use]
    pub fn launch(&self) -> Launch {
        Launch {
            name: self.name.to_owned(),
            id: self.row.id.get(),
            grid: index::dim(self.row.grid),
            block: index::dim(self.row.block),
            shared_bytes: self.row.shared_bytes.get(),
            registers: self.row.registers.get(),
            binary_version: self.row.binary_version.get(),
            stream: self.row.stream.get(),
            shared_window: self.row.shared_window.get(),
            local_window: self.row.local_window.get(),
        }
    }

    /// The kernel's name as printed, usually mangled.
    #[must_use]
    pub const fn name(&self) -> &'a str {
        self.name
    }

    /// The header lines of the trace, or the launch line of a log, LF between them.
    #[must_use]
    pub const fn header(&self) -> &'a str {
        self.header
    }

    /// The launch comes from a log of accesses: its memory instructions alone, in the
    /// order of each warp, without registers. Its warps are slots of an SM.
    #[must_use]
    pub const fn memory_only(&self) -> bool {
        self.memory_only
    }

    /// CTAs in the trace: tracers leave out those without an instruction.
    #[must_use]
    pub fn cta_count(&self) -> u64 {
        self.selection.map_or(self.row.ctas.get(), |some| some.ctas)
    }

    /// Warp instructions.
    #[must_use]
    pub fn warp_instructions(&self) -> u64 {
        self.selection.map_or(self.row.warp_instructions.get(), |some| some.warp_instructions)
    }

    /// Active lanes, summed over all warp instructions.
    #[must_use]
    pub fn thread_instructions(&self) -> u64 {
        self.selection.map_or(self.row.thread_instructions.get(), |some| some.thread_instructions)
    }

    /// Warp instructions with addresses.
    #[must_use]
    pub fn memory_instructions(&self) -> u64 {
        self.selection.map_or(self.row.memory_instructions.get(), |some| some.memory_instructions)
    }

    /// Bytes of the source's decompressed text.
    #[must_use]
    pub fn text_bytes(&self) -> u64 {
        self.row.text_bytes.get()
    }

    /// Bytes of the source file as it was.
    #[must_use]
    pub fn source_bytes(&self) -> u64 {
        self.row.source_bytes.get()
    }

    /// Bytes of the launch's chunks in the store, without its code.
    #[must_use]
    pub fn compressed_bytes(&self) -> u64 {
        let stored =
            |chunk: &ChunkRow| u64::from(chunk.body.stored) + u64::from(chunk.tails.stored);
        self.chunks.iter().map(stored).sum()
    }

    /// Bytes of the launch's chunks once decompressed, tails left out: what
    /// cursors over all of it need in memory.
    #[must_use]
    pub fn decoded_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.body.raw)).sum()
    }
}
