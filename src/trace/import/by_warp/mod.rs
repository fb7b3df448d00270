//! Raw text: lines of all warps as they came. Gathered per warp in a short form
//! until the file ends, then handed on block by block, x fastest.
//!
//! What is gathered beyond the memory that may be used goes to a temporary file
//! ([`spill`]) as a sorted run; at the end all runs are merged. What comes
//! out does not depend on where runs were cut.

mod buffer;
mod spill;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::error::TraceError;
use crate::store::records::{Batch, Block, Piece, Static};
use gpumodel_core::units::{Dim3, to_u32, to_u64, to_usize};

use super::accelsim::parse as piece;
use super::cta_selector::Pick;
use crate::store::kernel_writer::{MOST_CTA_BYTES, MOST_CTA_INSTRUCTIONS};
use buffer::{Part, Parts, Strand};
pub(super) use spill::Merge;
use spill::Spill;

/// Versions from which `LDGSTS` leaves two records: the number of the tracer,
/// or any that prints immediates.
const PAIRS_SINCE: u32 = 5;
/// Bytes of a warp's strand and of its place, whatever it holds.
const STRAND_BYTES: usize = size_of::<Strand>() + 32;

/// The place of a record that is not taken.
pub(super) const NOWHERE: u64 = u64::MAX;

/// How much may be gathered in memory, and where the rest goes.
#[derive(Clone, Debug, Default)]
pub(super) struct Room {
    /// Bytes of records in memory.
    pub(super) bytes: usize,
    /// A folder for temporary files.
    pub(super) folder: PathBuf,
}

impl Room {
    /// `bytes` in memory, more than that beside the file `output`.
    pub(super) fn beside(output: &Path, bytes: usize) -> Self {
        let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
        Self { bytes, folder: folder.unwrap_or(Path::new(".")).to_path_buf() }
    }
}

/// All warps of a raw trace.
#[derive(Debug, Default)]
pub(super) struct Warps {
    statics: Vec<Static>,
    numbers: HashMap<Static, u32>,
    /// By static where the blocks show it first: warp, and records before it.
    first: Vec<(u64, u64)>,
    records: u64,
    strands: Vec<Strand>,
    /// From linear CTA times warps plus warp to the strand.
    places: FxHashMap<u64, u32>,
    tracer: u32,
    warps_per_cta: u32,
    pick: Pick,
    room: Room,
    /// Bytes of all strands, but for what the last relief had to leave.
    held: usize,
    spill: Option<Spill>,
}

impl Warps {
    /// No records yet, of a trace of version `tracer`.
    pub(super) fn new(tracer: u32, warps_per_cta: u32, room: Room, pick: Pick) -> Self {
        Self { tracer, warps_per_cta, room, pick, ..Self::default() }
    }

    /// How many statics were seen.
    pub(super) fn statics(&self) -> usize {
        self.statics.len()
    }

    /// Takes the next piece.
    ///
    /// # Errors
    /// When records do not fit in memory and cannot be written to a file.
    pub(super) fn piece(&mut self, piece: &piece::Piece) -> Result<(), TraceError> {
        let batch = &piece.batch;
        let numbers: Vec<u32> = batch.statics.iter().map(|new| self.number(new)).collect();
        let pairs: Vec<bool> = batch.statics.iter().map(|new| self.leaves_pairs(new)).collect();
        let some = !self.pick.all();
        let mut accesses = batch.accesses.iter();
        let mut tails = batch.tails.iter().peekable();
        for (index, (record, &place)) in batch.records.iter().zip(&piece.places).enumerate() {
            let local = to_usize(record.number);
            let addressed = batch.statics[local].width > 0;
            let lines = if addressed { accesses.next() } else { None };
            let tail = tails.next_if(|(at, _)| to_usize(*at) == index);
            let cta = place / u64::from(self.warps_per_cta);
            if place == NOWHERE || (some && !self.pick.record(cta)) {
                continue;
            }
            let strand = self.strand(place);
            let strand = &mut self.strands[strand];
            if pairs[local] {
                strand.half = !strand.half;
                if strand.half {
                    continue;
                }
            }
            let before = strand.part.bytes.capacity();
            self.held += tail.map_or(0, |(_, tail)| strand.tail(tail));
            let lines = lines.map(|lines| (lines, batch.deltas(lines)));
            strand.push(numbers[local], record.mask, lines);
            self.held += strand.part.bytes.capacity() - before;
            let first = &mut self.first[to_usize(numbers[local])];
            if place < first.0 {
                *first = (place, self.records);
            }
            self.records += 1;
            if self.held > self.room.bytes {
                self.relieve()?;
            }
        }
        Ok(())
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

    fn strand(&mut self, place: u64) -> usize {
        let new = to_u32(self.strands.len());
        let index = *self.places.entry(place).or_insert(new);
        if index == new {
            self.strands.push(Strand::default());
            self.held += STRAND_BYTES;
        }
        to_usize(index)
    }

    /// Moves everything to the temporary file.
    fn relieve(&mut self) -> Result<(), TraceError> {
        let halves = self.halves();
        let parts = self.parts();
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(Spill::create(&self.room.folder)?),
        };
        spill.run(parts)?;
        for place in halves {
            let strand = self.strand(place);
            self.strands[strand].half = true;
        }
        self.held = 0;
        Ok(())
    }

    /// Warps that are between the two records of an `LDGSTS`.
    fn halves(&self) -> Vec<u64> {
        let half = |index: u32| self.strands[to_usize(index)].half;
        #[allow(clippy::iter_over_hash_type)] // what is made of it has no order
        self.places.iter().filter(|(_, index)| half(**index)).map(|(&place, _)| place).collect()
    }

    /// Takes all strands, ascending by warp.
    fn parts(&mut self) -> Parts {
        #[allow(clippy::iter_over_hash_type)] // sorted right away
        let mut places: Vec<(u64, u32)> = self.places.drain().collect();
        places.sort_unstable();
        Parts { places: places.into_iter(), strands: std::mem::take(&mut self.strands) }
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
        let end = self.pick.end().saturating_mul(u64::from(warps_per_cta));
        order.retain(|&number| self.first[to_usize(number)].0 < end);
        order.sort_by_key(|&number| self.first[to_usize(number)]);
        let statics = Batch { statics: Arc::new(self.statics), order, ..Batch::default() };
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
    /// The block spelled out, with `statics` and the kernel's `numbers` of them.
    pub(super) fn block(self, statics: &Arc<Vec<Static>>, numbers: &Arc<Vec<u32>>) -> Block {
        let mut batch = Batch { statics: Arc::clone(statics), ..Batch::default() };
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
        let mut warps: Vec<Vec<Part>> = Vec::new();
        warps.resize_with(to_usize(self.warps_per_cta), Vec::new);
        let (mut records, mut bytes) = (0, 0);
        while let Some((place, more)) = self.merge.peek()
            && place / per_cta == linear
        {
            records += more;
            if records > MOST_CTA_INSTRUCTIONS || bytes > MOST_CTA_BYTES {
                let (most, room) = (to_u64(MOST_CTA_INSTRUCTIONS), MOST_CTA_BYTES >> 20);
                return Err(TraceError::Request(format!(
                    "thread block {position} has more than {most} instructions or {room} MiB of \
                     them; trace fewer"
                )));
            }
            if let Some((place, part)) = self.merge.next()? {
                bytes += part.expanded();
                warps[to_usize(place % per_cta)].push(part);
            }
        }
        Ok(Some(RawBlock { position, warps, records }))
    }
}
