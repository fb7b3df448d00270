//! Collects a kernel's CTAs into chunks and hands them to the writer.

use std::sync::Arc;

use rayon::prelude::*;

use crate::trace::dictionary::Dictionary;
use crate::trace::error::TraceError;
use crate::trace::layout::MOST_STATICS;
use crate::trace::pack::{Packed, pack};
use crate::trace::records::{Batch, Block};
use crate::trace::writer::StoreWriter;
use crate::units::{Dim3, to_usize};

/// A chunk is closed when it has this many warp instructions.
const CHUNK_INSTRUCTIONS: usize = 1 << 16;
/// A chunk is also closed when it has this many warps: a bound on memory for
/// warps that hardly do anything.
const CHUNK_WARPS: usize = 1 << 16;
/// Most warp instructions of one CTA: a bound on memory.
pub(super) const MOST_CTA_INSTRUCTIONS: usize = 1 << 26;

/// One kernel on its way into a store.
pub(super) struct Kernel<'w> {
    writer: &'w mut StoreWriter,
    grid: Dim3,
    dictionary: Dictionary,
    /// The chunk that is not full yet.
    open: Vec<Block>,
    open_instructions: usize,
    open_warps: usize,
    /// Full chunks that wait for [`Kernel::flush`].
    ready: Vec<Vec<Block>>,
}

impl<'w> Kernel<'w> {
    /// A kernel that `writer` was just told of.
    pub(super) fn new(writer: &'w mut StoreWriter, grid: Dim3) -> Self {
        let (dictionary, open, ready) = (Dictionary::default(), Vec::new(), Vec::new());
        Self { writer, grid, dictionary, open, open_instructions: 0, open_warps: 0, ready }
    }

    /// The kernel's numbers of the batch's statics; `None` when there are more
    /// than a kernel may have.
    pub(super) fn numbers(&mut self, batch: &Batch) -> Option<Arc<Vec<u32>>> {
        let mut numbers = vec![u32::MAX; batch.statics.len()];
        for &local in &batch.order {
            numbers[to_usize(local)] = self.dictionary.number(&batch.statics[to_usize(local)]);
        }
        (self.dictionary.len() <= MOST_STATICS).then(|| Arc::new(numbers))
    }

    /// Appends a CTA; one without any instruction is left out.
    pub(super) fn push(&mut self, block: Block) {
        let instructions = block.instructions();
        if instructions == 0 && block.note.is_empty() {
            return;
        }
        self.open_warps += block.warps.len();
        self.open_instructions += instructions;
        self.open.push(block);
        if self.open_instructions >= CHUNK_INSTRUCTIONS || self.open_warps >= CHUNK_WARPS {
            self.close();
        }
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.ready.push(std::mem::take(&mut self.open));
        }
        (self.open_instructions, self.open_warps) = (0, 0);
    }

    /// Packs and writes the full chunks.
    pub(super) fn flush(&mut self) -> Result<(), TraceError> {
        let (grid, memory) = (self.grid, &self.dictionary.memory);
        let ready = std::mem::take(&mut self.ready);
        let packed: Vec<Packed> =
            ready.par_iter().map(|blocks| pack(blocks, grid, memory)).collect();
        self.writer.chunks(&mut self.dictionary, packed)
    }

    /// Writes what is left, and the code; gives the CTAs of the kernel.
    pub(super) fn end(mut self, text_bytes: u64, file_bytes: u64) -> Result<u64, TraceError> {
        self.close();
        self.flush()?;
        self.writer.end(&self.dictionary, text_bytes, file_bytes)
    }
}
