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
//! | paths | distinct streams with their users ([`Streams`]), as [`super::run_length`] |
//! | masks | the same, as [`super::run_length`] |
//! | memory | the same, as [`super::memory_stream`] |
//!
//! Decoding checks every index and length once and keeps the bytes as they are:
//! a decoded chunk is about as large as its payload, and each warp's streams
//! are decoded lazily by its cursor.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::Xxh3Default;

use gpumodel_core::units::{Dim3, to_u32, to_u64, to_usize};

use super::address_model::Model;
use super::code::Program;
use super::lanes;
use super::memory_stream::ListAt;
use super::run_length::Path;
use super::varint::{self, Reader};
use crate::error::ByteFault;

/// Marks memory instructions that a chunk does not execute.
const UNUSED: u32 = u32::MAX;

/// Where a warp's streams lie.
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
    /// Equal for equal sequences of segments in all chunks of a kernel.
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

/// What decoding a chunk checks against.
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
    /// A [`ByteFault`] that names the section that is damaged.
    pub(super) fn decode(bytes: Vec<u8>, frame: Frame<'_>) -> Result<Self, ByteFault> {
        let mut reader = Reader::new(&bytes);
        let segments = read_segments(&mut reader, frame.program)?;
        let (models, slots) = read_models(&mut reader, frame.program)?;
        let lists = read_lists(&mut reader)?;
        let positions = read_positions(&mut reader, frame)?;
        let users = to_usize(u64::from(frame.ctas) * u64::from(frame.warps_per_cta));
        let (paths, path_of) = read_streams(&mut reader, users);
        let (masks, mask_of) = read_streams(&mut reader, users);
        let (memory, memory_of) = read_streams(&mut reader, users);
        reader.check("warp streams")?;
        if reader.left() > 0 {
            return Err(ByteFault::new(reader.at(), "the end of the chunk", "more bytes"));
        }
        let paths = read_paths(&bytes, &paths, &segments, frame.program)?;
        let mut warps = Vec::with_capacity(users);
        for ((&path, &mask), &memory_index) in path_of.iter().zip(&mask_of).zip(&memory_of) {
            let mask = masks.get(to_usize(mask)).map(|place| place.0);
            let memory = memory.get(to_usize(memory_index)).map(|place| place.0);
            let (true, Some(masks), Some(memory)) = (to_usize(path) < paths.len(), mask, memory)
            else {
                return Err(ByteFault::new(reader.at(), "streams that exist", "others"));
            };
            warps.push(WarpPlace { path, masks, memory });
        }
        if warps.len() != users {
            return Err(ByteFault::new(
                reader.at(),
                format!("{users} warps"),
                warps.len().to_string(),
            ));
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

    /// Adds to `counts`, by segment of the code, what the warps of those CTAs execute that
    /// `takes` takes by their place in the chunk. Each distinct path is read once.
    pub(super) fn count_segments(&self, takes: impl Fn(u64) -> bool, counts: &mut [u64]) {
        let mut users = vec![0_u64; self.paths.len()];
        for (cta, warps) in self.warps.chunks(to_usize(self.warps_per_cta)).enumerate() {
            if takes(to_u64(cta)) {
                warps.iter().for_each(|warp| users[to_usize(warp.path)] += 1);
            }
        }
        for (place, users) in self.paths.iter().zip(users) {
            let mut path = Path::new(to_usize(place.start), to_usize(place.end));
            while let Some((step, times)) = path.run(&self.bytes, u64::MAX) {
                let segment = self.segments.get(to_usize(step));
                if let Some(count) = segment.and_then(|&number| counts.get_mut(to_usize(number))) {
                    *count = count.saturating_add(times.saturating_mul(users));
                }
            }
        }
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

fn read_segments(reader: &mut Reader<'_>, program: &Program) -> Result<Vec<u32>, ByteFault> {
    let count = reader.count(1);
    let mut last = 0_i64;
    let mut segments = Vec::with_capacity(count);
    for _ in 0..count {
        last = last.wrapping_add(reader.signed());
        let known = u32::try_from(last).ok().filter(|&number| program.segment(number).is_some());
        let Some(number) = known else {
            return Err(ByteFault::new(reader.at(), "a segment of the code", last.to_string()));
        };
        segments.push(number);
    }
    reader.check("segments")?;
    Ok(segments)
}

fn read_models(
    reader: &mut Reader<'_>,
    program: &Program,
) -> Result<(Vec<Model>, Vec<u32>), ByteFault> {
    let count = reader.count(8);
    let mut models = Vec::with_capacity(count);
    let mut slots = vec![UNUSED; program.memory.len()];
    for slot in 0..count {
        let head = reader.number();
        let memory = usize::try_from(head >> 1).unwrap_or(usize::MAX);
        let Some(place) = slots.get_mut(memory) else {
            return Err(ByteFault::new(reader.at(), "a memory instruction", memory.to_string()));
        };
        *place = to_u32(slot);
        let base = reader.number();
        let [x, y, z, warp, step, stride] = [(); 6].map(|()| reader.signed());
        models.push(Model { base, cta: [x, y, z], warp, step, stride, full: head & 1 == 1 });
    }
    reader.check("address models")?;
    Ok((models, slots))
}

fn read_lists(reader: &mut Reader<'_>) -> Result<Vec<ListAt>, ByteFault> {
    let total = reader.count(2);
    let mut lists = Vec::with_capacity(total);
    for _ in 0..total {
        let count = reader.small();
        if count >= 32 {
            return Err(ByteFault::new(reader.at(), "at most 31 differences", count.to_string()));
        }
        let at = reader.at();
        lists.push(ListAt { at: to_u32(at), count });
        reader.pass_with(|bytes, at| lanes::pass(bytes, at, count));
    }
    reader.check("lane lists")?;
    Ok(lists)
}

fn read_positions(reader: &mut Reader<'_>, frame: Frame<'_>) -> Result<Vec<Dim3>, ByteFault> {
    // Every warp takes at least three bytes further on: a bound on the count.
    let least = u64::from(frame.ctas) * u64::from(frame.warps_per_cta) * 3;
    if least > to_u64(reader.left()) {
        return Err(ByteFault::new(reader.at(), format!("{least} bytes"), "fewer"));
    }
    let mut positions = Vec::with_capacity(to_usize(frame.ctas));
    for _ in 0..reader.count(2) {
        let (first, length) = (reader.number(), reader.number());
        let end = first.saturating_add(length);
        let room = to_u64(to_usize(frame.ctas) - positions.len());
        if end > frame.grid.count() || length > room {
            return Err(ByteFault::new(reader.at(), "CTAs inside the grid", end.to_string()));
        }
        positions.extend((first..end).map(|linear| frame.grid.position(linear)));
    }
    reader.check("positions")?;
    if positions.len() != to_usize(frame.ctas) {
        let found = positions.len().to_string();
        return Err(ByteFault::new(reader.at(), format!("{} CTAs", frame.ctas), found));
    }
    Ok(positions)
}

fn read_paths(
    bytes: &[u8],
    places: &Places,
    segments: &[u32],
    program: &Program,
) -> Result<Vec<PathPlace>, ByteFault> {
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
                return Err(ByteFault::new(
                    to_usize(start),
                    "segments of the chunk",
                    step.to_string(),
                ));
            };
            instructions =
                instructions.saturating_add(count.saturating_mul(u64::from(segment.length)));
        }
        paths.push(PathPlace { start, end, instructions, shape: shape.digest() });
    }
    Ok(paths)
}

/// Distinct byte streams of warps in order of first appearance, and which warp has which.
#[derive(Debug, Default)]
pub(super) struct Streams {
    numbers: FxHashMap<Box<[u8]>, u32>,
    bytes: Vec<u8>,
    lengths: Vec<usize>,
    uses: Vec<u32>,
}

impl Streams {
    /// Adds the stream of the next warp.
    pub(super) fn push(&mut self, stream: &[u8]) {
        if let Some(&number) = self.numbers.get(stream) {
            self.uses.push(number);
            return;
        }
        let number = to_u32(self.lengths.len());
        self.numbers.insert(stream.into(), number);
        self.bytes.extend_from_slice(stream);
        self.lengths.push(stream.len());
        self.uses.push(number);
    }

    /// Appends count, lengths and bytes, then per user how far its stream lies
    /// before the next new one: 0 is a new one.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        varint::put(out, to_u64(self.lengths.len()));
        for length in &self.lengths {
            varint::put(out, to_u64(*length));
        }
        out.extend_from_slice(&self.bytes);
        let mut next = 0;
        for &number in &self.uses {
            varint::put(out, u64::from(next - number));
            next += u32::from(number == next);
        }
    }
}

/// Where streams lie in a chunk: start and end byte of each.
type Places = Vec<(u32, u32)>;

/// Reads what [`Streams::write`] wrote for `users` users: the places, and each
/// user's index into them.
fn read_streams(reader: &mut Reader<'_>, users: usize) -> (Places, Vec<u32>) {
    let count = reader.count(1);
    let lengths: Vec<usize> = (0..count).map(|_| reader.count(1)).collect();
    let mut places = Places::with_capacity(count);
    for length in lengths {
        let start = to_u32(reader.at());
        let taken = reader.take(length).len();
        places.push((start, start + to_u32(taken)));
    }
    let mut next = 0_u32;
    let mut uses = Vec::with_capacity(users.min(reader.left()));
    for _ in 0..users.min(reader.left()) {
        let number = u64::from(next).checked_sub(reader.number()).unwrap_or(u64::MAX);
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        next += u32::from(number == next);
        uses.push(number);
    }
    (places, uses)
}

/// Bytes of chunks that are kept although they are not in use.
const KEPT_BYTES: usize = 256 << 20;

/// Chunks by number. A chunk in use is shared however old it is; of the others
/// the most recently decoded ones are kept.
#[derive(Debug, Default)]
pub(super) struct ChunkCache {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    known: BTreeMap<u32, Weak<Chunk>>,
    recent: VecDeque<Arc<Chunk>>,
    recent_bytes: usize,
}

impl ChunkCache {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // The lock guards plain tables that no panic leaves half changed.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The chunk `number`, if it is in memory.
    pub(super) fn get(&self, number: u32) -> Option<Arc<Chunk>> {
        self.lock().known.get(&number)?.upgrade()
    }

    /// Adds the chunk `number`; returns the one that is already there, if another
    /// thread was faster.
    pub(super) fn put(&self, number: u32, chunk: Chunk) -> Arc<Chunk> {
        let mut inner = self.lock();
        if let Some(other) = inner.known.get(&number).and_then(Weak::upgrade) {
            return other;
        }
        let chunk = Arc::new(chunk);
        inner.known.insert(number, Arc::downgrade(&chunk));
        inner.recent_bytes += chunk.size();
        inner.recent.push_back(Arc::clone(&chunk));
        while inner.recent_bytes > KEPT_BYTES && inner.recent.len() > 1 {
            if let Some(oldest) = inner.recent.pop_front() {
                inner.recent_bytes -= oldest.size();
            }
        }
        chunk
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::{Chunk, Frame};
    use crate::import::{ConvertRequest, Silent, convert};
    use crate::store::code::{self, Program};
    use crate::store::cursor::Cta;
    use crate::store::file::StoreFile;
    use crate::store::index::{self, Index};
    use crate::store::trailing_fields;
    use gpumodel_core::isa::Access;
    use gpumodel_core::units::Dim3;

    /// The blocks of the golden trace's store.
    struct Blocks {
        chunk: Vec<u8>,
        tails: Vec<u8>,
        code: Vec<u8>,
        grid: Dim3,
    }

    fn blocks() -> Blocks {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out.gpt");
        let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/golden/v1.traceg");
        let inputs: Vec<PathBuf> = vec![input];
        let request =
            ConvertRequest { inputs, output: output.clone(), ..ConvertRequest::default() };
        convert(&request, &Silent).unwrap();
        let file = StoreFile::open(&output).unwrap();
        let index = Index::open(&output, &file).unwrap();
        let kernel = &index.kernels()[0];
        let rows = index.chunks_of(kernel).1;
        Blocks {
            chunk: file.block(&rows[0].body).unwrap(),
            tails: file.block(&rows[0].tails).unwrap(),
            code: file.block(&index.codes()[0].body).unwrap(),
            grid: index::dim(kernel.grid),
        }
    }

    /// Reads at most some thousand segments of every warp.
    fn read(chunk: Chunk, program: &Arc<Program>) {
        let chunk = Arc::new(chunk);
        let mut access = Access::default();
        for (index, position) in (0_u32..).zip(chunk.positions.clone()) {
            let cta =
                Cta { position, index, chunk: Arc::clone(&chunk), program: Arc::clone(program) };
            for warp in 0..cta.warp_count() {
                let mut cursor = cta.warp(warp);
                for _ in 0..2_000 {
                    if cursor.next_segment().is_none() {
                        break;
                    }
                    let _ = cursor.mask();
                    cursor.access(&mut access);
                    cursor.skip(1);
                    while cursor.left() > 0 {
                        cursor.access(&mut access);
                    }
                }
            }
        }
    }

    fn damage(bytes: &mut Vec<u8>, edits: &[(prop::sample::Index, u8, u8)]) {
        for (at, value, kind) in edits {
            let at = at.index(bytes.len().max(1));
            match kind % 3 {
                0 => bytes.insert(at.min(bytes.len()), *value),
                1 if bytes.len() > 1 => {
                    bytes.remove(at);
                }
                _ => bytes[at] = *value,
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 20_000,
            failure_persistence: None,
            ..Default::default()
        })]

        /// Blocks whose checksums are right but whose bytes are not, as only a forger makes them:
        /// reading them must end, without a panic, in an error or in some records.
        #[test]
        fn forged_blocks_end_in_errors_or_records(
            edits in prop::collection::vec(
                (any::<prop::sample::Index>(), any::<u8>(), any::<u8>()),
                1..5,
            ),
            target in 0..3,
        ) {
            thread_local!(static BLOCKS: Blocks = blocks());
            BLOCKS.with(|good| {
                let [mut chunk, mut tails, mut code] =
                    [&good.chunk, &good.tails, &good.code].map(Clone::clone);
                let blocks = [&mut chunk, &mut tails, &mut code];
                damage(blocks[usize::try_from(target).unwrap()], &edits);
                let _ = trailing_fields::unpack(&tails, 2, 2);
                let Ok(code) = code::read(&code) else { return };
                let program = Arc::new(Program::new(Arc::new(code)));
                let frame =
                    Frame { program: &program, grid: good.grid, warps_per_cta: 2, ctas: 2 };
                if let Ok(chunk) = Chunk::decode(chunk, frame) {
                    read(chunk, &program);
                }
            });
        }
    }
}
