//! A chunk of a store, decompressed: whole CTAs, read in place by cursors.
//!
//! Sections, one after the other, all in numbers of variable length:
//!
//! | section | content |
//! |---|---|
//! | segments | count; per segment of the chunk its index in the code's table, as a difference to the last one (signed) |
//! | models | count; per memory instruction: memory number doubled plus "lists full addresses", base, per CTA in x, y, z, per warp, step, stride |
//! | lists | count; per list its length and its packed form ([`super::lanes`]) |
//! | positions | count of runs; per run of neighbours in the grid: linear position, length |
//! | paths | distinct strands with their users ([`super::interned_bytes`]), as [`super::path`] |
//! | masks | the same, as [`super::mask`] |
//! | memory | the same, as [`super::stream`] |
//!
//! Decoding checks every index and length once and keeps the bytes as they are:
//! a decoded chunk is about as large as its payload, and each warp's streams
//! are decoded lazily by its cursor.

use xxhash_rust::xxh3::Xxh3Default;

use gpumodel_core::units::{Dim3, to_u32, to_u64, to_usize};

use super::interned_bytes;
use super::lanes;
use super::path::Path;
use super::predict::Model;
use super::program::Program;
use super::stream::ListAt;
use super::varint::Reader;
use crate::error::Fault;

/// Marks memory instructions that a chunk does not execute.
const UNUSED: u32 = u32::MAX;

/// Where a warp's strands lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct WarpPlace {
    /// Index into [`Chunk::paths`].
    pub(super) path: u32,
    /// First byte of the masks and of the memory stream.
    pub(super) masks: u32,
    pub(super) memory: u32,
}

/// One distinct path: bytes and instructions.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathPlace {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) instructions: u64,
    /// Equal for equal sequences of segments, in whatever chunk of a kernel.
    pub(super) shape: u64,
}

/// A decoded chunk.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) bytes: Vec<u8>,
    /// From the chunk's segments to the code's.
    pub(super) segments: Vec<u32>,
    pub(super) models: Vec<Model>,
    /// From the code's memory numbers to [`Chunk::models`].
    slots: Vec<u32>,
    pub(super) lists: Vec<ListAt>,
    pub(super) positions: Vec<Dim3>,
    pub(super) paths: Vec<PathPlace>,
    pub(super) warps: Vec<WarpPlace>,
    pub(super) warps_per_cta: u32,
}

/// What a chunk must agree with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) program: &'a Program,
    pub(super) grid: Dim3,
    pub(super) warps_per_cta: u32,
    pub(super) ctas: u32,
}

impl Chunk {
    /// Checks and indexes the payload `bytes`.
    ///
    /// # Errors
    /// A [`Fault`] that names the section that is damaged.
    pub(super) fn decode(bytes: Vec<u8>, frame: Frame<'_>) -> Result<Self, Fault> {
        let mut reader = Reader::new(&bytes);
        let segments = read_segments(&mut reader, frame.program)?;
        let (models, slots) = read_models(&mut reader, frame.program)?;
        let lists = read_lists(&mut reader)?;
        let positions = read_positions(&mut reader, frame)?;
        let users = to_usize(u64::from(frame.ctas) * u64::from(frame.warps_per_cta));
        let (paths, path_of) = interned_bytes::read(&mut reader, users);
        let (masks, mask_of) = interned_bytes::read(&mut reader, users);
        let (memory, memory_of) = interned_bytes::read(&mut reader, users);
        reader.check("warp strands")?;
        if reader.left() > 0 {
            return Err(Fault::new(reader.at(), "the end of the chunk", "more bytes"));
        }
        let paths = read_paths(&bytes, &paths, &segments, frame.program)?;
        let mut warps = Vec::with_capacity(users);
        for ((&path, &mask), &memory_index) in path_of.iter().zip(&mask_of).zip(&memory_of) {
            let mask = masks.get(to_usize(mask)).map(|place| place.0);
            let memory = memory.get(to_usize(memory_index)).map(|place| place.0);
            let (true, Some(masks), Some(memory)) = (to_usize(path) < paths.len(), mask, memory)
            else {
                return Err(Fault::new(reader.at(), "strands that exist", "others"));
            };
            warps.push(WarpPlace { path, masks, memory });
        }
        if warps.len() != users {
            return Err(Fault::new(reader.at(), format!("{users} warps"), warps.len().to_string()));
        }
        let warps_per_cta = frame.warps_per_cta;
        Ok(Self { segments, models, slots, lists, positions, paths, warps, warps_per_cta, bytes })
    }

    /// Where warp `warp` of the CTA `cta` (from 0 within the chunk) lies.
    pub(super) fn warp(&self, cta: u32, warp: u32) -> (WarpPlace, PathPlace) {
        let index = to_usize(u64::from(cta) * u64::from(self.warps_per_cta) + u64::from(warp));
        let place = self.warps[index];
        (place, self.paths[to_usize(place.path)])
    }

    /// The chunk's slot of the kernel's memory number.
    #[inline]
    pub(super) fn slot(&self, memory: u32) -> usize {
        to_usize(self.slots.get(to_usize(memory)).copied().unwrap_or(UNUSED))
    }

    /// Bytes held, about.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
            + size_of_val(&*self.warps)
            + size_of_val(&*self.paths)
            + size_of_val(&*self.models)
            + size_of_val(&*self.positions)
            + 4 * (self.slots.len() + self.segments.len() + 2 * self.lists.len())
    }
}

fn read_segments(reader: &mut Reader<'_>, program: &Program) -> Result<Vec<u32>, Fault> {
    let count = reader.count(1);
    let mut last = 0_i64;
    let mut segments = Vec::with_capacity(count);
    for _ in 0..count {
        last = last.wrapping_add(reader.signed());
        let known = u32::try_from(last).ok().filter(|&number| program.segment(number).is_some());
        let Some(number) = known else {
            return Err(Fault::new(reader.at(), "a segment of the code", last.to_string()));
        };
        segments.push(number);
    }
    reader.check("segments")?;
    Ok(segments)
}

fn read_models(
    reader: &mut Reader<'_>,
    program: &Program,
) -> Result<(Vec<Model>, Vec<u32>), Fault> {
    let count = reader.count(8);
    let mut models = Vec::with_capacity(count);
    let mut slots = vec![UNUSED; program.memory.len()];
    for slot in 0..count {
        let head = reader.number();
        let memory = usize::try_from(head >> 1).unwrap_or(usize::MAX);
        let Some(place) = slots.get_mut(memory) else {
            return Err(Fault::new(reader.at(), "a memory instruction", memory.to_string()));
        };
        *place = to_u32(slot);
        let base = reader.number();
        let [x, y, z, warp, step, stride] = [(); 6].map(|()| reader.signed());
        models.push(Model { base, cta: [x, y, z], warp, step, stride, full: head & 1 == 1 });
    }
    reader.check("address models")?;
    Ok((models, slots))
}

fn read_lists(reader: &mut Reader<'_>) -> Result<Vec<ListAt>, Fault> {
    let total = reader.count(2);
    let mut lists = Vec::with_capacity(total);
    for _ in 0..total {
        let count = reader.small();
        if count >= 32 {
            return Err(Fault::new(reader.at(), "at most 31 differences", count.to_string()));
        }
        let at = reader.at();
        lists.push(ListAt { at: to_u32(at), count });
        reader.pass_with(|bytes, at| lanes::pass(bytes, at, count));
    }
    reader.check("lane lists")?;
    Ok(lists)
}

fn read_positions(reader: &mut Reader<'_>, frame: Frame<'_>) -> Result<Vec<Dim3>, Fault> {
    // Every warp takes at least three bytes further on: a bound on the count.
    let least = u64::from(frame.ctas) * u64::from(frame.warps_per_cta) * 3;
    if least > to_u64(reader.left()) {
        return Err(Fault::new(reader.at(), format!("{least} bytes"), "fewer"));
    }
    let mut positions = Vec::with_capacity(to_usize(frame.ctas));
    for _ in 0..reader.count(2) {
        let (first, length) = (reader.number(), reader.number());
        let end = first.saturating_add(length);
        let room = to_u64(to_usize(frame.ctas) - positions.len());
        if end > frame.grid.count() || length > room {
            return Err(Fault::new(reader.at(), "CTAs inside the grid", end.to_string()));
        }
        positions.extend((first..end).map(|linear| frame.grid.position(linear)));
    }
    reader.check("positions")?;
    if positions.len() != to_usize(frame.ctas) {
        let found = positions.len().to_string();
        return Err(Fault::new(reader.at(), format!("{} CTAs", frame.ctas), found));
    }
    Ok(positions)
}

fn read_paths(
    bytes: &[u8],
    places: &interned_bytes::Places,
    segments: &[u32],
    program: &Program,
) -> Result<Vec<PathPlace>, Fault> {
    let mut paths = Vec::with_capacity(places.len());
    for &(start, end) in places {
        let mut path = Path::new(to_usize(start), to_usize(end));
        let mut instructions = 0_u64;
        let mut shape = Xxh3Default::new();
        while let Some((step, count)) = path.run(bytes, u64::MAX) {
            let number = segments.get(to_usize(step)).copied().unwrap_or(UNUSED);
            shape.update(&number.to_le_bytes());
            shape.update(&count.to_le_bytes());
            let Some(segment) = program.segment(number) else {
                return Err(Fault::new(to_usize(start), "segments of the chunk", step.to_string()));
            };
            instructions =
                instructions.saturating_add(count.saturating_mul(u64::from(segment.length)));
        }
        paths.push(PathPlace { start, end, instructions, shape: shape.digest() });
    }
    Ok(paths)
}
