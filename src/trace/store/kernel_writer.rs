//! Collects a kernel's CTAs into chunks and hands them to the writer.

use std::sync::Arc;

use rayon::prelude::*;

use super::dictionary::Dictionary;
use super::layout::MOST_STATICS;
use super::pack::{Packed, pack};
use super::records::{Batch, Block, Piece};
use super::writer::StoreWriter;
use crate::error::TraceError;
use gpumodel_core::units::{Dim3, to_usize};

/// A chunk has at least this many warp instructions, unless it is the last one.
const CHUNK_INSTRUCTIONS: usize = 1 << 16;
/// So many successive chunks become one when CTAs repeat each other.
const GROUP_CHUNKS: usize = 16;
/// A group is also full when it has this many warp instructions: a bound on memory for
/// CTAs of more than a chunk each.
const GROUP_INSTRUCTIONS: usize = 2 * GROUP_CHUNKS * CHUNK_INSTRUCTIONS;
/// A chunk is also closed when it has this many warps: a bound on memory for
/// warps that hardly do anything.
const CHUNK_WARPS: usize = 1 << 16;
/// Most warp instructions of one CTA: a bound on memory.
pub(crate) const MOST_CTA_INSTRUCTIONS: usize = 1 << 26;
/// Most bytes of one CTA's records, with addresses and line tails: a bound on memory.
pub(crate) const MOST_CTA_BYTES: usize = 1 << 30;

/// Successive CTAs, and where chunks end in them.
#[derive(Debug, Default)]
struct Group {
    blocks: Vec<Block>,
    ends: Vec<usize>,
    /// Warp instructions before the last end.
    instructions: usize,
}

impl Group {
    /// Packs the group: as one chunk when its second chunk adds little to its
    /// first one (CTAs of many kernels repeat each other but for what the models
    /// predict), else chunk by chunk. Depends on the records alone.
    fn pack(&self, grid: Dim3, memory: &[u32]) -> Vec<Packed> {
        let pack = |from: usize, to: usize| pack(&self.blocks[from..to], grid, memory);
        let Some((&first_end, further)) = self.ends.split_first() else { return Vec::new() };
        let first = pack(0, first_end);
        let repeats = |whole: &Packed| {
            let size = |packed: &Packed| packed.body.len() + packed.tails.len();
            size(whole) <= size(&first) + size(&first) / 4
        };
        if further.first().is_some_and(|&end| repeats(&pack(0, end))) {
            return vec![pack(0, self.blocks.len())];
        }
        let starts = self.ends.par_iter().zip(further);
        let rest: Vec<Packed> = starts.map(|(&from, &to)| pack(from, to)).collect();
        std::iter::once(first).chain(rest).collect()
    }
}

/// One kernel on its way into a store.
pub(crate) struct Kernel<'w> {
    writer: &'w mut StoreWriter,
    grid: Dim3,
    dictionary: Dictionary,
    /// The group that is not full yet, and its last chunk's size.
    open: Group,
    open_instructions: usize,
    open_warps: usize,
    /// Full groups that wait for [`Kernel::flush`].
    ready: Vec<Group>,
}

impl<'w> Kernel<'w> {
    /// A kernel that `writer` was just told of.
    pub(crate) fn new(writer: &'w mut StoreWriter, grid: Dim3) -> Self {
        let (dictionary, open, ready) = (Dictionary::default(), Group::default(), Vec::new());
        Self { writer, grid, dictionary, open, open_instructions: 0, open_warps: 0, ready }
    }

    /// The kernel's numbers of the batch's statics; `None` when there are more
    /// than a kernel may have.
    pub(crate) fn numbers(&mut self, batch: &Batch) -> Option<Arc<Vec<u32>>> {
        let mut numbers = vec![u32::MAX; batch.statics.len()];
        for &local in &batch.order {
            numbers[to_usize(local)] = self.dictionary.number(&batch.statics[to_usize(local)]);
        }
        (self.dictionary.len() <= MOST_STATICS).then(|| Arc::new(numbers))
    }

    /// How many statics have a number.
    pub(crate) fn statics(&self) -> usize {
        self.dictionary.len()
    }

    /// Gives `block` the kernel's numbers of the statics that its own records need.
    pub(crate) fn number(&mut self, block: &mut Block) {
        let mut pieces: Vec<&mut Piece> = block.warps.iter_mut().flatten().collect();
        for same in pieces.chunk_by_mut(|one, next| Arc::ptr_eq(&one.batch, &next.batch)) {
            let Some(batch) = same.first().map(|piece| Arc::clone(&piece.batch)) else { continue };
            let mut numbers = vec![u32::MAX; batch.statics.len()];
            let records = same.iter().flat_map(|piece| &batch.records[piece.records.clone()]);
            for local in records.map(|record| to_usize(record.number)) {
                if numbers[local] == u32::MAX {
                    numbers[local] = self.dictionary.number(&batch.statics[local]);
                }
            }
            let numbers = Arc::new(numbers);
            same.iter_mut().for_each(|piece| piece.numbers = Arc::clone(&numbers));
        }
    }

    /// Gives `block`, of one batch, the kernel's numbers of the batch's statics. `numbers` holds
    /// those that blocks of the same statics have so far, and takes the new ones.
    pub(crate) fn learn(&mut self, numbers: &mut Arc<Vec<u32>>, block: &mut Block) {
        let Some(piece) = block.warps.iter().flatten().next() else { return };
        let batch = Arc::clone(&piece.batch);
        for local in batch.order.iter().map(|&local| to_usize(local)) {
            if numbers[local] == u32::MAX {
                let number = self.dictionary.number(&batch.statics[local]);
                Arc::make_mut(numbers)[local] = number;
            }
        }
        for piece in block.warps.iter_mut().flatten() {
            piece.numbers = Arc::clone(numbers);
        }
    }

    /// Appends a CTA; one without any instruction is left out.
    pub(crate) fn push(&mut self, block: Block) {
        if block.is_empty() {
            return;
        }
        let instructions = block.instructions();
        self.open_warps += block.warps.len();
        self.open_instructions += instructions;
        self.open.blocks.push(block);
        if self.open_instructions >= CHUNK_INSTRUCTIONS || self.open_warps >= CHUNK_WARPS {
            self.close();
        }
    }

    /// Ends the last chunk of the open group.
    fn close(&mut self) {
        let end = self.open.blocks.len();
        if end > self.open.ends.last().copied().unwrap_or(0) {
            self.open.ends.push(end);
        }
        self.open.instructions += self.open_instructions;
        let full = self.open.instructions >= GROUP_INSTRUCTIONS;
        if full || self.open.ends.len() == GROUP_CHUNKS {
            self.ready.push(std::mem::take(&mut self.open));
        }
        (self.open_instructions, self.open_warps) = (0, 0);
    }

    /// Packs and writes the full groups.
    pub(crate) fn flush(&mut self) -> Result<(), TraceError> {
        let (grid, memory) = (self.grid, &self.dictionary.memory);
        let ready = std::mem::take(&mut self.ready);
        let packed: Vec<Packed> =
            ready.par_iter().flat_map(|group| group.pack(grid, memory)).collect();
        self.writer.chunks(&mut self.dictionary, packed)
    }

    /// Writes what is left, and the code; gives the CTAs of the kernel.
    pub(crate) fn end(mut self, text_bytes: u64, file_bytes: u64) -> Result<u64, TraceError> {
        self.close();
        self.ready.push(std::mem::take(&mut self.open));
        self.flush()?;
        self.writer.end(&self.dictionary, text_bytes, file_bytes)
    }
}
