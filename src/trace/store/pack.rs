//! Packs whole CTAs into one chunk; [`super::chunk`] reads it back and draws
//! the layout.

use std::collections::HashMap;

use gpumodel_core::isa::{AddressMode, Segment};
use gpumodel_core::units::{Dim3, to_u32, to_u64, to_usize};

use super::access::{Lists, Seen, classify};
use super::fit::{WarpAccesses, fit};
use super::interned_bytes::Strands;
use super::lanes;
use super::mask;
use super::path;
use super::predict::Model;
use super::records::{Block, Piece};
use super::stream::{self, StreamWriter};
use super::trailing_fields;
use super::varint;

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

/// One warp, flattened over its pieces.
#[derive(Debug, Default)]
struct Warp {
    cta: Dim3,
    warp: u32,
    numbers: Vec<u32>,
    masks: Vec<u32>,
    /// Range of the chunk's accesses.
    accesses: std::ops::Range<usize>,
}

/// What packing one chunk builds up.
#[derive(Debug, Default)]
struct Chunk {
    seen: Vec<Seen>,
    lists: Lists,
    /// From memory numbers of the kernel to those of the chunk.
    slots: HashMap<u32, u32>,
    /// Kernel's memory number, and whether the trace lists full addresses, as the
    /// first access with an active lane says.
    used: Vec<(u32, Option<bool>)>,
}

/// Packs `blocks` of a kernel with `grid`; `memory` gives the memory number of
/// every static of the kernel, or [`NO_MEMORY`].
pub(super) fn pack(blocks: &[Block], grid: Dim3, memory: &[u32]) -> Packed {
    let mut chunk = Chunk::default();
    let mut warps = Vec::new();
    for block in blocks {
        for (warp, pieces) in block.warps.iter().enumerate() {
            warps.push(chunk.flatten(block.position, to_u32(warp), pieces, memory));
        }
    }
    let full: Vec<bool> = chunk.used.iter().map(|(_, full)| full.unwrap_or(false)).collect();
    let accesses: Vec<WarpAccesses<'_>> = warps
        .iter()
        .map(|w| WarpAccesses { cta: w.cta, warp: w.warp, seen: &chunk.seen[w.accesses.clone()] })
        .collect();
    let models = fit(&accesses, &full);
    let mut packed = Packed { ctas: to_u32(blocks.len()), ..Packed::default() };
    let body = &mut packed.body;
    let memories = chunk.used.iter().map(|&(memory, _)| memory);
    write_models(memories, &models, body);
    let table = stream::table(&chunk.lists);
    write_lists(&chunk.lists, body);
    write_positions(blocks, grid, body);
    let writer = StreamWriter { models: &models, lists: &chunk.lists, table: &table };
    write_warps(&warps, &chunk.seen, &writer, &mut packed);
    packed.tails = trailing_fields::pack(blocks);
    packed.memory_instructions = to_u64(chunk.seen.len());
    packed
}

impl Chunk {
    fn flatten(&mut self, cta: Dim3, warp: u32, pieces: &[Piece], memory: &[u32]) -> Warp {
        let start = self.seen.len();
        let mut flat = Warp { cta, warp, ..Warp::default() };
        for piece in pieces {
            let mut access = piece.access;
            for record in &piece.batch.records[piece.records.clone()] {
                let number = piece.numbers[to_usize(record.number)];
                flat.numbers.push(number);
                flat.masks.push(record.mask);
                let memory = memory[to_usize(number)];
                if memory != NO_MEMORY {
                    self.see(memory, record.mask, piece, access);
                    access += 1;
                }
            }
        }
        flat.accesses = start..self.seen.len();
        flat
    }

    fn see(&mut self, memory: u32, mask: u32, piece: &Piece, access: usize) {
        let lines = &piece.batch.accesses[access];
        let new = to_u32(self.used.len());
        let slot = *self.slots.entry(memory).or_insert(new);
        if slot == new {
            self.used.push((memory, None));
        }
        let full = &mut self.used[to_usize(slot)].1;
        if mask != 0 && full.is_none() {
            *full = Some(lines.mode == AddressMode::List);
        }
        let full = full.unwrap_or(false);
        let kind = classify(mask, lines, piece.batch.deltas(lines), full, &mut self.lists);
        self.seen.push(Seen { slot, mask, base: lines.base, kind });
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
    let repeated = lists.lists.iter().filter(|(_, count)| *count > 1);
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

fn write_warps(warps: &[Warp], seen: &[Seen], writer: &StreamWriter<'_>, packed: &mut Packed) {
    let [mut paths, mut masks, mut memories] = [(); 3].map(|()| Strands::default());
    let mut numbers = HashMap::new();
    let mut strand = Vec::new();
    for warp in warps {
        strand.clear();
        let steps = segments(&warp.numbers, &mut numbers, &mut packed.segments);
        path::encode(&steps, &mut strand);
        paths.push(&strand);
        strand.clear();
        mask::encode(&warp.masks, &mut strand);
        masks.push(&strand);
        strand.clear();
        writer.write(warp.cta, warp.warp, &seen[warp.accesses.clone()], &mut strand);
        memories.push(&strand);
        packed.warp_instructions += to_u64(warp.numbers.len());
        let lanes = |mask: &u32| u64::from(mask.count_ones());
        packed.thread_instructions += warp.masks.iter().map(lanes).sum::<u64>();
    }
    for strands in [paths, masks, memories] {
        strands.write(&mut packed.body);
    }
}

/// The maximal runs of consecutive statics in `path`, as numbers in `segments`.
fn segments(
    path: &[u32],
    numbers: &mut HashMap<Segment, u32>,
    segments: &mut Vec<Segment>,
) -> Vec<u32> {
    path.chunk_by(|a, b| a + 1 == *b)
        .map(|run| {
            let segment = Segment { first: run[0], length: to_u32(run.len()) };
            *numbers.entry(segment).or_insert_with(|| {
                segments.push(segment);
                to_u32(segments.len() - 1)
            })
        })
        .collect()
}
