//! Raw text: lines of all warps as they came. Gathered per warp in a short form
//! until the file ends, then handed on block by block, x fastest.

use std::collections::HashMap;
use std::sync::Arc;

use crate::isa::AddressMode;
use crate::trace::number::{self, get};
use crate::trace::records::{Batch, Block, Lines, Piece, Record, Static};
use crate::units::{Dim3, to_u32, to_usize};

use super::piece;

/// Versions from which `LDGSTS` leaves two records: the number of the tracer,
/// or any that prints immediates.
const PAIRS_SINCE: u32 = 5;

/// One warp's records so far.
#[derive(Debug, Default)]
struct Strand {
    bytes: Vec<u8>,
    /// The last record's static, mask and base.
    number: u32,
    mask: u32,
    base: u64,
    records: u32,
    /// An `LDGSTS` record was dropped; its second half comes.
    half: bool,
    tails: Vec<(u32, Box<[u8]>)>,
}

/// All warps of a raw trace.
#[derive(Debug)]
pub(super) struct Warps {
    statics: Vec<Static>,
    numbers: HashMap<Static, u32>,
    strands: Vec<Strand>,
    /// From linear CTA times warps plus warp to the strand.
    places: HashMap<u64, u32>,
    tracer: u32,
}

impl Warps {
    /// No records yet, of a trace of version `tracer`.
    pub(super) fn new(tracer: u32) -> Self {
        let (strands, places) = (Vec::new(), HashMap::new());
        Self { statics: Vec::new(), numbers: HashMap::new(), strands, places, tracer }
    }

    /// How many statics were seen.
    pub(super) fn statics(&self) -> usize {
        self.statics.len()
    }

    /// Takes the next piece.
    pub(super) fn piece(&mut self, piece: &piece::Piece) {
        let batch = &piece.batch;
        let numbers: Vec<u32> = batch.statics.iter().map(|new| self.number(new)).collect();
        let pairs: Vec<bool> = batch.statics.iter().map(|new| self.leaves_pairs(new)).collect();
        let mut accesses = batch.accesses.iter();
        let mut tails = batch.tails.iter().peekable();
        for (index, (record, &place)) in batch.records.iter().zip(&piece.places).enumerate() {
            let local = to_usize(record.number);
            let addressed = batch.statics[local].width > 0;
            let lines = if addressed { accesses.next() } else { None };
            let tail = tails.next_if(|(at, _)| to_usize(*at) == index);
            let strand = self.strand(place);
            if pairs[local] {
                strand.half = !strand.half;
                if strand.half {
                    continue;
                }
            }
            if let Some((_, tail)) = tail {
                strand.tails.push((strand.records, tail.clone()));
            }
            let lines = lines.map(|lines| (lines, batch.deltas(lines)));
            strand.push(numbers[local], record.mask, lines);
        }
    }

    fn number(&mut self, new: &Static) -> u32 {
        if let Some(&number) = self.numbers.get(new) {
            return number;
        }
        let number = to_u32(self.statics.len());
        self.statics.push(new.clone());
        self.numbers.insert(new.clone(), number);
        number
    }

    /// `LDGSTS` gives a record with the shared address, then one with the global
    /// address; grouping keeps the second.
    fn leaves_pairs(&self, new: &Static) -> bool {
        let late = self.tracer >= PAIRS_SINCE || !new.immediates.is_empty();
        late && new.opcode.contains("LDGSTS")
    }

    fn strand(&mut self, place: u64) -> &mut Strand {
        let new = to_u32(self.strands.len());
        let index = *self.places.entry(place).or_insert(new);
        if index == new {
            self.strands.push(Strand::default());
        }
        &mut self.strands[to_usize(index)]
    }

    /// All warps as thread blocks in order, x fastest.
    pub(super) fn blocks(self, grid: Dim3, warps_per_cta: u32) -> Blocks {
        #[allow(clippy::iter_over_hash_type)] // sorted right away
        let mut places: Vec<(u64, u32)> = self.places.into_iter().collect();
        places.sort_unstable();
        let strands = self.strands.into_iter().map(Some).collect();
        let statics = Arc::new(self.statics);
        Blocks { statics, strands, places, next: 0, grid, warps_per_cta }
    }
}

/// Gives the thread blocks one by one.
#[derive(Debug)]
pub(super) struct Blocks {
    statics: Arc<Vec<Static>>,
    strands: Vec<Option<Strand>>,
    places: Vec<(u64, u32)>,
    next: usize,
    grid: Dim3,
    warps_per_cta: u32,
}

/// A thread block and its records, which still need the kernel's numbers.
pub(super) struct RawBlock {
    batch: Batch,
    position: Dim3,
    /// Per warp its records and its first access.
    warps: Vec<(std::ops::Range<usize>, usize)>,
}

impl RawBlock {
    /// Warp instructions.
    pub(super) fn instructions(&self) -> usize {
        self.batch.records.len()
    }

    /// The block with the kernel's `numbers`.
    pub(super) fn numbered(self, numbers: &Arc<Vec<u32>>) -> Block {
        let batch = Arc::new(self.batch);
        let piece = |(records, access)| {
            let (batch, numbers) = (Arc::clone(&batch), Arc::clone(numbers));
            vec![Piece { batch, numbers, records, access }]
        };
        let warps = self.warps.into_iter().map(piece).collect();
        Block { position: self.position, warps, note: Vec::new() }
    }
}

impl Blocks {
    /// An empty batch with all statics, in order of first appearance in the
    /// blocks: what the kernel numbers them by, once.
    pub(super) fn statics(&self) -> Batch {
        let mut batch = Batch { statics: Arc::clone(&self.statics), ..Batch::default() };
        let mut seen = vec![false; self.statics.len()];
        for &(_, strand) in &self.places {
            if batch.order.len() == seen.len() {
                break;
            }
            let Some(strand) = &self.strands[to_usize(strand)] else { continue };
            let mut walk = Walk::default();
            while let Some(record) = walk.next(&strand.bytes) {
                let number = record.number;
                if !std::mem::replace(&mut seen[to_usize(number)], true) {
                    batch.order.push(number);
                }
                if self.statics[to_usize(number)].width > 0 {
                    walk.access(&strand.bytes, &mut Vec::new());
                }
            }
        }
        batch
    }
}

impl Iterator for Blocks {
    type Item = RawBlock;

    fn next(&mut self) -> Option<RawBlock> {
        let warps = u64::from(self.warps_per_cta);
        let linear = self.places.get(self.next)?.0 / warps;
        let mut batch = Batch { statics: Arc::clone(&self.statics), ..Batch::default() };
        let mut ranges = Vec::new();
        for warp in 0..warps {
            let (records, access) = (batch.records.len(), batch.accesses.len());
            if let Some(&(place, strand)) = self.places.get(self.next)
                && place == linear * warps + warp
            {
                self.next += 1;
                if let Some(strand) = self.strands[to_usize(strand)].take() {
                    strand.expand(&mut batch);
                }
            }
            ranges.push((records..batch.records.len(), access));
        }
        let position = self.grid.position(linear);
        Some(RawBlock { batch, position, warps: ranges })
    }
}

impl Strand {
    /// One record: the step from the last static and whether the mask changed,
    /// the mask if so, then mode, base and lanes of an access.
    fn push(&mut self, number: u32, mask: u32, lines: Option<(&Lines, &[i64])>) {
        let step = i64::from(number) - i64::from(self.number) - 1;
        number::put(&mut self.bytes, number::fold(step) << 1 | u64::from(mask != self.mask));
        if mask != self.mask {
            self.bytes.extend_from_slice(&mask.to_le_bytes());
        }
        (self.number, self.mask) = (number, mask);
        self.records += 1;
        let Some((lines, deltas)) = lines else { return };
        self.bytes.push(match lines.mode {
            AddressMode::List => 0,
            AddressMode::Stride => 1,
            AddressMode::Delta => 2,
        });
        number::put_signed(&mut self.bytes, lines.base.wrapping_sub(self.base).cast_signed());
        number::put_signed(&mut self.bytes, lines.stride);
        self.bytes.push(lines.delta_count);
        for delta in deltas {
            number::put_signed(&mut self.bytes, *delta);
        }
        self.base = lines.base;
    }

    /// Appends the records to `batch`.
    fn expand(mut self, batch: &mut Batch) {
        let first = to_u32(batch.records.len());
        batch.tails.extend(self.tails.drain(..).map(|(at, tail)| (first + at, tail)));
        let mut walk = Walk::default();
        while let Some(record) = walk.next(&self.bytes) {
            batch.records.push(record);
            if batch.statics[to_usize(record.number)].width > 0 {
                let lines = walk.access(&self.bytes, &mut batch.deltas);
                batch.accesses.push(lines);
            }
        }
    }
}

/// A position in the bytes of a strand, which only [`Strand::push`] writes.
#[derive(Debug, Default)]
struct Walk {
    at: usize,
    number: i64,
    mask: u32,
    base: u64,
}

impl Walk {
    /// The next record; for one with addresses [`Walk::access`] must follow.
    fn next(&mut self, bytes: &[u8]) -> Option<Record> {
        if self.at >= bytes.len() {
            return None;
        }
        let head = get(bytes, &mut self.at);
        self.number += 1 + number::unfold(head >> 1);
        if head & 1 == 1 {
            let spelled = bytes[self.at..].first_chunk().expect("written by push");
            self.mask = u32::from_le_bytes(*spelled);
            self.at += 4;
        }
        Some(Record { number: to_u32(self.number), mask: self.mask })
    }

    /// The addresses of the record; differences go to `deltas`.
    fn access(&mut self, bytes: &[u8], deltas: &mut Vec<i64>) -> Lines {
        let mode = [AddressMode::List, AddressMode::Stride, AddressMode::Delta];
        let mode = mode[usize::from(bytes[self.at])];
        self.at += 1;
        self.base = self.base.wrapping_add_signed(number::unfold(get(bytes, &mut self.at)));
        let stride = number::unfold(get(bytes, &mut self.at));
        let delta_count = bytes[self.at];
        self.at += 1;
        let first = to_u32(deltas.len());
        deltas.extend((0..delta_count).map(|_| number::unfold(get(bytes, &mut self.at))));
        Lines { mode, base: self.base, stride, deltas: first, delta_count }
    }
}
