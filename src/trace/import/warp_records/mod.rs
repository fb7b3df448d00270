//! Records that come in any order of warps, as in raw text: gathered per warp in a short form
//! until the file ends, then taken CTA by CTA, x fastest.
//!
//! Records beyond the limit of memory go to a temporary file
//! ([`spill`]) as a sorted run; at the end all runs are merged. The result
//! does not depend on where runs were cut.

mod spill;

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::error::TraceError;
use crate::store::records::{AddressList, Batch, Block, Piece, Record, Static};
use crate::store::varint::{self, get};
use gpumodel_core::isa::AddressMode;
use gpumodel_core::units::{Dim3, to_u32, to_usize};

use super::accelsim::parse;
use crate::filter::CtaSelector;
use crate::store::chunk_writer::{KernelWriter, MOST_CTA_BYTES, MOST_CTA_INSTRUCTIONS};
pub(super) use spill::Merge;
use spill::Spill;

/// Versions from which `LDGSTS` leaves two records: the number of the tracer,
/// or any that prints immediates.
const PAIRS_SINCE: u32 = 5;
/// Bytes of an empty buffer of a warp and of its place.
const BUFFER_BYTES: usize = size_of::<WarpBuffer>() + 32;

/// The place of a record that is left out.
pub(super) const NOWHERE: u64 = u64::MAX;

/// The limit of records in memory, and the folder for the rest.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryLimit {
    /// Bytes of records in memory.
    pub(super) bytes: usize,
    /// A folder for temporary files.
    pub(super) folder: PathBuf,
}

impl MemoryLimit {
    /// `bytes` in memory, the rest in the folder of the file `output`.
    pub(super) fn new(output: &Path, bytes: usize) -> Self {
        let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
        Self { bytes, folder: folder.unwrap_or(Path::new(".")).to_path_buf() }
    }
}

/// All warps of a raw trace.
#[derive(Debug, Default)]
pub(super) struct WarpRecords {
    statics: Vec<Static>,
    numbers: HashMap<Static, u32>,
    /// By static where the blocks show it first: warp, and records before it.
    first: Vec<(u64, u64)>,
    records: u64,
    buffers: Vec<WarpBuffer>,
    /// From linear CTA times warps plus warp to the buffer.
    places: FxHashMap<u64, u32>,
    tracer: u32,
    warps_per_cta: u32,
    selector: CtaSelector,
    limit: MemoryLimit,
    /// Bytes of all buffers since the last spill.
    held: usize,
    spill: Option<Spill>,
}

impl WarpRecords {
    /// No records yet, of a trace of version `tracer`.
    pub(super) fn new(
        tracer: u32,
        warps_per_cta: u32,
        limit: MemoryLimit,
        selector: CtaSelector,
    ) -> Self {
        Self { tracer, warps_per_cta, limit, selector, ..Self::default() }
    }

    /// How many statics were seen.
    pub(super) fn statics(&self) -> usize {
        self.statics.len()
    }

    /// Takes the next piece.
    ///
    /// # Errors
    /// When records do not fit in memory and cannot be written to a file.
    pub(super) fn piece(&mut self, piece: &parse::Piece) -> Result<(), TraceError> {
        let batch = &piece.batch;
        let (numbers, pairs) = self.numbers(batch);
        let some = !self.selector.all();
        let mut accesses = batch.accesses.iter();
        let mut tails = batch.tails.iter().peekable();
        for (index, (record, &place)) in batch.records.iter().zip(&piece.places).enumerate() {
            let local = to_usize(record.number);
            let addressed = batch.statics[local].width > 0;
            let lines = if addressed { accesses.next() } else { None };
            let tail = tails.next_if(|(at, _)| to_usize(*at) == index);
            let cta = place / u64::from(self.warps_per_cta);
            if place == NOWHERE || (some && !self.selector.record(cta)) {
                continue;
            }
            let buffer = self.buffer(place);
            let buffer = &mut self.buffers[buffer];
            if pairs[local] {
                buffer.half = !buffer.half;
                if buffer.half {
                    continue;
                }
            }
            let before = buffer.part.bytes.capacity();
            self.held += tail.map_or(0, |(_, text)| buffer.tail(batch.texts.get(*text)));
            let lines = lines.map(|lines| (lines, batch.deltas(lines)));
            buffer.push(numbers[local], record.mask, lines);
            self.held += buffer.part.bytes.capacity() - before;
            let first = &mut self.first[to_usize(numbers[local])];
            if place < first.0 {
                *first = (place, self.records);
            }
            self.records += 1;
            if self.held > self.limit.bytes {
                self.spill_records()?;
            }
        }
        Ok(())
    }

    /// By the number of a batch's static: our number of it, and whether it leaves pairs.
    fn numbers(&mut self, batch: &Batch) -> (Vec<u32>, Vec<bool>) {
        let mut numbers = vec![u32::MAX; batch.statics.len()];
        let mut pairs = vec![false; batch.statics.len()];
        for local in batch.order.iter().map(|&local| to_usize(local)) {
            let new = &batch.statics[local];
            (numbers[local], pairs[local]) = (self.number(new), self.leaves_pairs(new));
        }
        (numbers, pairs)
    }

    fn number(&mut self, new: &Static) -> u32 {
        if let Some(&number) = self.numbers.get(new) {
            return number;
        }
        let number = to_u32(self.statics.len());
        self.statics.push(new.clone());
        self.first.push((u64::MAX, 0));
        self.numbers.insert(new.clone(), number);
        number
    }

    /// `LDGSTS` gives a record with the shared address, then one with the global
    /// address; grouping keeps the second.
    fn leaves_pairs(&self, new: &Static) -> bool {
        let late = self.tracer >= PAIRS_SINCE || !new.immediates.is_empty();
        late && new.opcode.contains("LDGSTS")
    }

    fn buffer(&mut self, place: u64) -> usize {
        let new = to_u32(self.buffers.len());
        let index = *self.places.entry(place).or_insert(new);
        if index == new {
            self.buffers.push(WarpBuffer::default());
            self.held += BUFFER_BYTES;
        }
        to_usize(index)
    }

    /// Moves everything to the temporary file.
    fn spill_records(&mut self) -> Result<(), TraceError> {
        let halves = self.halves();
        let parts = self.parts();
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(Spill::create(&self.limit.folder)?),
        };
        spill.run(parts)?;
        for place in halves {
            let buffer = self.buffer(place);
            self.buffers[buffer].half = true;
        }
        self.held = 0;
        Ok(())
    }

    /// Warps that are between the two records of an `LDGSTS`.
    fn halves(&self) -> Vec<u64> {
        let half = |index: u32| self.buffers[to_usize(index)].half;
        #[allow(clippy::iter_over_hash_type)] // what is made of it has no order
        self.places.iter().filter(|(_, index)| half(**index)).map(|(&place, _)| place).collect()
    }

    /// Takes all buffers, ascending by warp.
    fn parts(&mut self) -> Parts {
        #[allow(clippy::iter_over_hash_type)] // sorted right away
        let mut places: Vec<(u64, u32)> = self.places.drain().collect();
        places.sort_unstable();
        Parts { places: places.into_iter(), buffers: std::mem::take(&mut self.buffers) }
    }

    fn merge(&mut self) -> Result<Merge, TraceError> {
        let parts = self.parts();
        match self.spill.take() {
            None => Ok(Merge::of_memory(parts)),
            Some(spill) => spill.merge(parts),
        }
    }

    /// All statics, and the records of all warps in order of their places.
    pub(super) fn merged(mut self) -> Result<(Arc<Vec<Static>>, Merge), TraceError> {
        let merge = self.merge()?;
        Ok((Arc::new(self.statics), merge))
    }

    /// All warps as thread blocks in order, x fastest.
    pub(super) fn blocks(mut self, grid: Dim3) -> Result<Blocks, TraceError> {
        let merge = self.merge()?;
        let mut order: Vec<u32> = (0..to_u32(self.statics.len())).collect();
        let warps_per_cta = self.warps_per_cta;
        let end = self.selector.end().saturating_mul(u64::from(warps_per_cta));
        order.retain(|&number| self.first[to_usize(number)].0 < end);
        order.sort_by_key(|&number| self.first[to_usize(number)]);
        let mut statics = Batch::of(&Arc::new(self.statics));
        statics.order = order;
        Ok(Blocks { statics, merge, end, grid, warps_per_cta })
    }
}

/// Gives the thread blocks one by one.
#[derive(Debug)]
pub(super) struct Blocks {
    /// All statics, in order of first appearance in the blocks: what the kernel
    /// numbers them by, once.
    pub(super) statics: Batch,
    merge: Merge,
    /// The warp after the last one that is taken.
    end: u64,
    grid: Dim3,
    warps_per_cta: u32,
}

/// A thread block's records in short form, by warp.
#[derive(Debug)]
pub(super) struct RawBlock {
    pub(super) position: Dim3,
    pub(super) warps: Vec<Vec<Part>>,
    /// Warp instructions.
    pub(super) records: usize,
}

impl RawBlock {
    /// Takes the records of the next CTA, at `position`: those of `places`, in the warp that
    /// `warp_of` gives; `most_bytes` of them at most.
    ///
    /// # Errors
    /// When the temporary file cannot be read, or the CTA is too large.
    pub(super) fn take(
        merge: &mut Merge,
        position: Dim3,
        warps: u32,
        places: Range<u64>,
        most_bytes: usize,
        mut warp_of: impl FnMut(u64) -> usize,
    ) -> Result<Self, TraceError> {
        let mut block = Self { position, warps: vec![], records: 0 };
        block.warps.resize_with(to_usize(warps), Vec::new);
        let mut bytes = 0;
        while let Some((place, more)) = merge.peek()
            && places.contains(&place)
        {
            block.records += more;
            if block.records > MOST_CTA_INSTRUCTIONS || bytes > most_bytes {
                return Err(TraceError::Request(format!(
                    "thread block {position} has more than {MOST_CTA_INSTRUCTIONS} instructions \
                     or {} MiB of them; trace fewer",
                    MOST_CTA_BYTES >> 20
                )));
            }
            if let Some((place, part)) = merge.next()? {
                bytes += part.expanded();
                block.warps[warp_of(place)].push(part);
            }
        }
        Ok(block)
    }

    /// The block with whole records, of `statics` and the kernel's `numbers` of them.
    fn block(self, statics: &Arc<Vec<Static>>, numbers: &Arc<Vec<u32>>) -> Block {
        let mut batch = Batch::of(statics);
        let expand = |parts: Vec<Part>| {
            let (records, access) = (batch.records.len(), batch.accesses.len());
            parts.into_iter().for_each(|part| part.expand(&mut batch));
            (records..batch.records.len(), access)
        };
        let ranges: Vec<_> = self.warps.into_iter().map(expand).collect();
        let batch = Arc::new(batch);
        let piece = |(records, access)| {
            let (batch, numbers) = (Arc::clone(&batch), Arc::clone(numbers));
            vec![Piece { batch, numbers, records, access }]
        };
        let warps = ranges.into_iter().map(piece).collect();
        Block { position: self.position, warps, note: Vec::new() }
    }
}

/// Warp instructions of the CTAs that are expanded at once.
const BATCH_RECORDS: usize = 1 << 19;

/// Packs the CTAs of `next` into `kernel`, with `statics` and the kernel's `numbers` of them;
/// without `numbers` statics are numbered in order of appearance.
pub(super) fn pack(
    kernel: &mut KernelWriter<'_>,
    statics: &Arc<Vec<Static>>,
    numbers: Option<&Arc<Vec<u32>>>,
    mut next: impl FnMut() -> Result<Option<RawBlock>, TraceError>,
) -> Result<(), TraceError> {
    let none = Arc::default();
    loop {
        let (mut waiting, mut records) = (Vec::new(), 0);
        while records < BATCH_RECORDS
            && let Some(block) = next()?
        {
            records += block.records;
            waiting.push(block);
        }
        if waiting.is_empty() {
            return Ok(());
        }
        let spell = |block: RawBlock| block.block(statics, numbers.unwrap_or(&none));
        let spelled: Vec<Block> = waiting.into_par_iter().map(spell).collect();
        for mut block in spelled {
            if numbers.is_none() {
                kernel.number(&mut block);
            }
            kernel.push(block);
        }
        kernel.flush()?;
    }
}

impl Blocks {
    /// The next block.
    ///
    /// # Errors
    /// When the temporary file cannot be read, or a block is too large.
    pub(super) fn next(&mut self) -> Result<Option<RawBlock>, TraceError> {
        let per_cta = u64::from(self.warps_per_cta);
        let next = self.merge.peek().filter(|(place, _)| *place < self.end);
        let Some((place, _)) = next else { return Ok(None) };
        let linear = place / per_cta;
        let position = self.grid.position(linear);
        let places = linear * per_cta..(linear + 1) * per_cta;
        let warp = |place| to_usize(place % per_cta);
        let most = MOST_CTA_BYTES;
        RawBlock::take(&mut self.merge, position, self.warps_per_cta, places, most, warp).map(Some)
    }
}

/// Records of one warp that follow each other, readable on their own.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) bytes: Vec<u8>,
    pub(super) records: usize,
    /// Index of a record in the part, and the tail of its line.
    pub(super) tails: Vec<(usize, Box<[u8]>)>,
}

/// A warp's part so far, and the state that its next record is written against.
#[derive(Debug, Default)]
pub(super) struct WarpBuffer {
    pub(super) part: Part,
    /// The last record's static, mask and base.
    number: u32,
    mask: u32,
    base: u64,
    /// The first record of an `LDGSTS` was dropped; its second half follows.
    pub(super) half: bool,
}

/// The parts of many warps, ascending by warp, without those that are empty.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// Warp and index of its buffer.
    pub(super) places: std::vec::IntoIter<(u64, u32)>,
    pub(super) buffers: Vec<WarpBuffer>,
}

impl Iterator for Parts {
    type Item = (u64, Part);

    fn next(&mut self) -> Option<(u64, Part)> {
        loop {
            let (place, index) = self.places.next()?;
            let part = std::mem::take(&mut self.buffers[to_usize(index)].part);
            if part.records > 0 {
                return Some((place, part));
            }
        }
    }
}

impl WarpBuffer {
    /// The end of the next record's line; returns the bytes that it takes, about.
    pub(super) fn tail(&mut self, tail: &[u8]) -> usize {
        self.part.tails.push((self.part.records, tail.into()));
        tail.len() + 2 * size_of_val(&self.part.tails[0])
    }

    /// One record: the step from the last static and whether the mask changed,
    /// the mask if so, then mode, base and lanes of an access.
    pub(super) fn push(&mut self, number: u32, mask: u32, lines: Option<(&AddressList, &[i64])>) {
        let bytes = &mut self.part.bytes;
        let step = i64::from(number) - i64::from(self.number) - 1;
        varint::put(bytes, varint::fold(step) << 1 | u64::from(mask != self.mask));
        if mask != self.mask {
            bytes.extend_from_slice(&mask.to_le_bytes());
        }
        (self.number, self.mask) = (number, mask);
        self.part.records += 1;
        let Some((lines, deltas)) = lines else { return };
        bytes.push(lines.mode.number());
        varint::put_signed(bytes, lines.base.wrapping_sub(self.base).cast_signed());
        varint::put_signed(bytes, lines.stride);
        bytes.push(lines.delta_count);
        for delta in deltas {
            varint::put_signed(bytes, *delta);
        }
        self.base = lines.base;
    }
}

impl Part {
    /// Bytes of its records in a batch, at most about.
    pub(super) fn expanded(&self) -> usize {
        let tails = self.tails.iter().map(|tail| size_of_val(tail) + tail.1.len());
        tails.sum::<usize>() + size_of::<Record>() * self.bytes.len()
    }

    /// Appends the records to `batch`.
    pub(super) fn expand(self, batch: &mut Batch) {
        let first = batch.records.len();
        for (at, tail) in self.tails {
            batch.tails.push((to_u32(first + at), batch.texts.push(&tail)));
        }
        let mut reader = PartReader::default();
        while let Some(record) = reader.next(&self.bytes) {
            batch.records.push(record);
            if batch.statics[to_usize(record.number)].width > 0 {
                let lines = reader.access(&self.bytes, &mut batch.deltas);
                batch.accesses.push(lines);
            }
        }
    }
}

/// Reads the bytes of a part, which only [`WarpBuffer::push`] writes.
#[derive(Debug, Default)]
struct PartReader {
    at: usize,
    number: i64,
    mask: u32,
    base: u64,
}

impl PartReader {
    /// The next record; for one with addresses [`PartReader::access`] must follow.
    fn next(&mut self, bytes: &[u8]) -> Option<Record> {
        if self.at >= bytes.len() {
            return None;
        }
        let head = get(bytes, &mut self.at);
        self.number += 1 + varint::unfold(head >> 1);
        if head & 1 == 1 {
            let spelled = bytes[self.at..].first_chunk().expect("written by push");
            self.mask = u32::from_le_bytes(*spelled);
            self.at += 4;
        }
        Some(Record { number: to_u32(self.number), mask: self.mask })
    }

    /// The addresses of the record; differences go to `deltas`.
    fn access(&mut self, bytes: &[u8], deltas: &mut Vec<i64>) -> AddressList {
        let mode = AddressMode::of_number(bytes[self.at]).expect("written by push");
        self.at += 1;
        self.base = self.base.wrapping_add_signed(varint::unfold(get(bytes, &mut self.at)));
        let stride = varint::unfold(get(bytes, &mut self.at));
        let delta_count = bytes[self.at];
        self.at += 1;
        let first = to_u32(deltas.len());
        deltas.extend((0..delta_count).map(|_| varint::unfold(get(bytes, &mut self.at))));
        AddressList { mode, base: self.base, stride, deltas: first, delta_count }
    }
}
