//! Collects a kernel's CTAs into chunks, packs them and hands them to the writer;
//! [`super::chunk`] reads a chunk back and draws its layout.

use std::ops::Range;
use std::sync::Arc;

use gpumodel_core::isa::{AddressMode, Segment};
use gpumodel_core::units::{Dim3, to_u32, to_u64, to_usize};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::address_model::{AccessKind, Classified, Lists, Model, WarpAccesses, classify, fit};
use super::chunk::Streams;
use super::code::Dictionary;
use super::layout::MOST_STATICS;
use super::memory_stream::StreamWriter;
use super::records::{Batch, Block, Piece};
use super::run_length::{encode_masks, encode_path};
use super::writer::StoreWriter;
use super::{lanes, trailing_fields, varint};
use crate::error::TraceError;

/// A chunk has at least this many warp instructions, unless it is the last one.
const CHUNK_INSTRUCTIONS: usize = 1 << 16;
/// So many successive chunks become one when CTAs repeat each other.
const GROUP_CHUNKS: usize = 16;
/// A group is also full when it has this many warp instructions: a bound on memory for
/// CTAs of more than a chunk each.
const GROUP_INSTRUCTIONS: usize = 2 * GROUP_CHUNKS * CHUNK_INSTRUCTIONS;
/// A chunk is also closed when it has this many warps: a bound on memory for
/// warps of few instructions.
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

/// Writes one kernel of a store.
pub(crate) struct KernelWriter<'w> {
    writer: &'w mut StoreWriter,
    grid: Dim3,
    dictionary: Dictionary,
    /// The group that is not full yet, and its last chunk's size.
    open: Group,
    open_instructions: usize,
    open_warps: usize,
    /// Full groups that wait for [`KernelWriter::flush`].
    ready: Vec<Group>,
    /// The CTAs of a cluster, as far as places in clusters have been noted.
    cluster: Dim3,
}

impl<'w> KernelWriter<'w> {
    /// The kernel that `writer` began last.
    pub(crate) fn new(writer: &'w mut StoreWriter, grid: Dim3) -> Self {
        let (dictionary, open, ready) = (Dictionary::default(), Group::default(), Vec::new());
        let cluster = Dim3::default();
        Self { writer, grid, dictionary, open, open_instructions: 0, open_warps: 0, ready, cluster }
    }

    /// Notes that a CTA has this place in its cluster.
    pub(crate) fn in_cluster(&mut self, place: Dim3) {
        let Dim3 { x, y, z } = self.cluster;
        let to = |known: u32, place: u32| known.max(place.saturating_add(1));
        self.cluster = Dim3::new(to(x, place.x), to(y, place.y), to(z, place.z));
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

    /// Writes what is left, and the code; returns the CTAs of the kernel.
    pub(crate) fn end(mut self, text_bytes: u64, file_bytes: u64) -> Result<u64, TraceError> {
        self.close();
        self.ready.push(std::mem::take(&mut self.open));
        self.flush()?;
        self.writer.clustered(self.cluster);
        self.writer.end(&self.dictionary, text_bytes, file_bytes)
    }
}

/// Marks statics without addresses in a table of memory numbers.
pub(super) const NO_MEMORY: u32 = u32::MAX;

/// A chunk before compression, still without its table of segments.
#[derive(Debug, Default)]
pub(super) struct Packed {
    /// The chunk's own segments in order of first appearance.
    pub(super) segments: Vec<Segment>,
    /// All sections after the segment table.
    pub(super) body: Vec<u8>,
    /// Tails and notes; empty when there are none.
    pub(super) tails: Vec<u8>,
    pub(super) ctas: u32,
    pub(super) warp_instructions: u64,
    pub(super) thread_instructions: u64,
    pub(super) memory_instructions: u64,
}

/// Where a warp is, and its range of the chunk's accesses.
#[derive(Debug)]
struct Warp {
    cta: Dim3,
    warp: u32,
    accesses: Range<usize>,
}

/// The accesses of one chunk while it is packed.
#[derive(Debug, Default)]
struct ChunkAccesses {
    seen: Vec<Classified>,
    lists: Lists,
    /// From memory numbers of the kernel to those of the chunk, or [`NO_MEMORY`].
    slots: Vec<u32>,
    used: Vec<UsedMemory>,
}

/// A memory instruction of the chunk.
#[derive(Debug)]
struct UsedMemory {
    /// Its memory number in the kernel.
    memory: u32,
    /// The trace lists full addresses, as the first access with an active lane says.
    full: Option<bool>,
    last: Option<AccessKind>,
}

/// Paths and masks of one chunk's warps.
#[derive(Debug, Default)]
struct ChunkPaths {
    paths: Streams,
    masks: Streams,
    /// Numbers of the chunk's segments.
    numbers: FxHashMap<Segment, u32>,
    /// Of the warp under way: its segments, and masks with how often each comes.
    steps: Vec<u32>,
    runs: Vec<(u32, u64)>,
    stream: Vec<u8>,
}

/// Packs `blocks` of a kernel with `grid`; `memory` gives the memory number of
/// every static of the kernel, or [`NO_MEMORY`].
pub(super) fn pack(blocks: &[Block], grid: Dim3, memory: &[u32]) -> Packed {
    let mut chunk = ChunkAccesses::default();
    let mut paths = ChunkPaths::default();
    let mut packed = Packed { ctas: to_u32(blocks.len()), ..Packed::default() };
    let mut warps = Vec::with_capacity(blocks.iter().map(|block| block.warps.len()).sum());
    for block in blocks {
        for (warp, pieces) in block.warps.iter().enumerate() {
            let start = chunk.seen.len();
            for piece in pieces {
                chunk.add(piece, memory);
            }
            let accesses = start..chunk.seen.len();
            warps.push(Warp { cta: block.position, warp: to_u32(warp), accesses });
            paths.add(pieces, &mut packed);
        }
    }
    let full: Vec<bool> = chunk.used.iter().map(|used| used.full.unwrap_or(false)).collect();
    let accesses: Vec<WarpAccesses<'_>> = warps
        .iter()
        .map(|w| WarpAccesses { cta: w.cta, warp: w.warp, seen: &chunk.seen[w.accesses.clone()] })
        .collect();
    let models = fit(&accesses, &full);
    let body = &mut packed.body;
    write_models(chunk.used.iter().map(|used| used.memory), &models, body);
    write_lists(&chunk.lists, body);
    write_positions(blocks, grid, body);
    paths.paths.write(body);
    paths.masks.write(body);
    write_memories(&accesses, StreamWriter::new(&models, &chunk.lists), body);
    packed.tails = trailing_fields::pack(blocks);
    packed.memory_instructions = to_u64(chunk.seen.len());
    packed
}

impl ChunkAccesses {
    /// Adds the accesses of a warp's next piece.
    fn add(&mut self, piece: &Piece, memory: &[u32]) {
        let mut access = piece.access;
        for record in &piece.batch.records[piece.records.clone()] {
            let memory = memory[to_usize(piece.numbers[to_usize(record.number)])];
            if memory != NO_MEMORY {
                self.see(memory, record.mask, piece, access);
                access += 1;
            }
        }
    }

    fn see(&mut self, memory: u32, mask: u32, piece: &Piece, access: usize) {
        let lines = &piece.batch.accesses[access];
        let slot = self.slot(memory);
        let used = &mut self.used[to_usize(slot)];
        if mask != 0 && used.full.is_none() {
            used.full = Some(lines.mode == AddressMode::List);
        }
        let (full, deltas) = (used.full.unwrap_or(false), piece.batch.deltas(lines));
        let kind = classify(mask, lines, deltas, full, used.last, &mut self.lists);
        used.last = Some(kind);
        self.seen.push(Classified { slot, mask, base: lines.base, kind });
    }

    /// The chunk's number of a memory instruction, given when it is first seen.
    fn slot(&mut self, memory: u32) -> u32 {
        let index = to_usize(memory);
        if index >= self.slots.len() {
            self.slots.resize(index + 1, NO_MEMORY);
        }
        if self.slots[index] == NO_MEMORY {
            self.slots[index] = to_u32(self.used.len());
            self.used.push(UsedMemory { memory, full: None, last: None });
        }
        self.slots[index]
    }
}

impl ChunkPaths {
    /// Adds the streams of a warp, its new segments to `packed`.
    fn add(&mut self, pieces: &[Piece], packed: &mut Packed) {
        self.steps.clear();
        self.runs.clear();
        let mut segment = Segment { first: 0, length: 0 };
        let (mut mask, mut count) = (0, 0);
        for piece in pieces {
            for record in &piece.batch.records[piece.records.clone()] {
                let number = piece.numbers[to_usize(record.number)];
                if number != segment.first + segment.length {
                    self.step(segment, &mut packed.segments);
                    segment = Segment { first: number, length: 0 };
                }
                segment.length += 1;
                if record.mask != mask {
                    self.run(mask, count, packed);
                    (mask, count) = (record.mask, 0);
                }
                count += 1;
            }
        }
        self.step(segment, &mut packed.segments);
        self.run(mask, count, packed);
        self.stream.clear();
        encode_path(&self.steps, &mut self.stream);
        self.paths.push(&self.stream);
        self.stream.clear();
        encode_masks(&self.runs, &mut self.stream);
        self.masks.push(&self.stream);
    }

    /// Ends a maximal run of consecutive statics, unless it is empty.
    fn step(&mut self, segment: Segment, segments: &mut Vec<Segment>) {
        if segment.length > 0 {
            let number = *self.numbers.entry(segment).or_insert_with(|| {
                segments.push(segment);
                to_u32(segments.len() - 1)
            });
            self.steps.push(number);
        }
    }

    /// Ends a run of equal masks, unless it is empty.
    fn run(&mut self, mask: u32, count: u64, packed: &mut Packed) {
        if count > 0 {
            self.runs.push((mask, count));
            packed.warp_instructions += count;
            packed.thread_instructions += count * u64::from(mask.count_ones());
        }
    }
}

fn write_models(memories: impl Iterator<Item = u32>, models: &[Model], out: &mut Vec<u8>) {
    varint::put(out, to_u64(models.len()));
    for (memory, model) in memories.zip(models) {
        varint::put(out, u64::from(memory) << 1 | u64::from(model.full));
        varint::put(out, model.base);
        for signed in model.cta.into_iter().chain([model.warp, model.step, model.stride]) {
            varint::put_signed(out, signed);
        }
    }
}

fn write_lists(lists: &Lists, out: &mut Vec<u8>) {
    let repeated = lists.iter().filter(|(_, count)| *count > 1);
    varint::put(out, to_u64(repeated.clone().count()));
    for (list, _) in repeated {
        varint::put(out, to_u64(list.len()));
        lanes::pack(list, out);
    }
}

fn write_positions(blocks: &[Block], grid: Dim3, out: &mut Vec<u8>) {
    let linear: Vec<u64> = blocks.iter().map(|block| block.position.linear(grid)).collect();
    let runs: Vec<&[u64]> = linear.chunk_by(|a, b| a.checked_add(1) == Some(*b)).collect();
    varint::put(out, to_u64(runs.len()));
    for run in runs {
        varint::put(out, run[0]);
        varint::put(out, to_u64(run.len()));
    }
}

fn write_memories(accesses: &[WarpAccesses<'_>], mut writer: StreamWriter<'_>, out: &mut Vec<u8>) {
    let (mut memories, mut stream) = (Streams::default(), Vec::new());
    for warp in accesses {
        stream.clear();
        writer.write(warp.cta, warp.warp, warp.seen, &mut stream);
        memories.push(&stream);
    }
    memories.write(out);
}
