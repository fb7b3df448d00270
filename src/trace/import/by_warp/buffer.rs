//! One warp's records in a short form: what raw traces are gathered in, in
//! memory and in temporary files.

use crate::store::records::{Batch, Lines, Record};
use crate::store::varint::{self, get};
use gpumodel_core::isa::AddressMode;
use gpumodel_core::units::{to_u32, to_usize};

/// Records of one warp that follow each other, readable on their own.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: usize,
    /// Index of a record in the part, and the tail of its line.
    pub(crate) tails: Vec<(usize, Box<[u8]>)>,
}

/// A warp's part so far, and what its next record is told by.
#[derive(Debug, Default)]
pub(crate) struct Strand {
    pub(crate) part: Part,
    /// The last record's static, mask and base.
    number: u32,
    mask: u32,
    base: u64,
    /// An `LDGSTS` record was dropped; its second half comes.
    pub(crate) half: bool,
}

/// The parts of many warps, ascending by warp, without those that are empty.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// Warp and index of its strand.
    pub(crate) places: std::vec::IntoIter<(u64, u32)>,
    pub(crate) strands: Vec<Strand>,
}

impl Iterator for Parts {
    type Item = (u64, Part);

    fn next(&mut self) -> Option<(u64, Part)> {
        loop {
            let (place, index) = self.places.next()?;
            let part = std::mem::take(&mut self.strands[to_usize(index)].part);
            if part.records > 0 {
                return Some((place, part));
            }
        }
    }
}

impl Strand {
    /// The end of the next record's line; gives the bytes that it takes, about.
    pub(crate) fn tail(&mut self, tail: &[u8]) -> usize {
        self.part.tails.push((self.part.records, tail.into()));
        tail.len() + 2 * size_of_val(&self.part.tails[0])
    }

    /// One record: the step from the last static and whether the mask changed,
    /// the mask if so, then mode, base and lanes of an access.
    pub(crate) fn push(&mut self, number: u32, mask: u32, lines: Option<(&Lines, &[i64])>) {
        let bytes = &mut self.part.bytes;
        let step = i64::from(number) - i64::from(self.number) - 1;
        varint::put(bytes, varint::fold(step) << 1 | u64::from(mask != self.mask));
        if mask != self.mask {
            bytes.extend_from_slice(&mask.to_le_bytes());
        }
        (self.number, self.mask) = (number, mask);
        self.part.records += 1;
        let Some((lines, deltas)) = lines else { return };
        bytes.push(match lines.mode {
            AddressMode::List => 0,
            AddressMode::Stride => 1,
            AddressMode::Delta => 2,
        });
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
    pub(crate) fn expanded(&self) -> usize {
        let tails = self.tails.iter().map(|tail| size_of_val(tail) + tail.1.len());
        tails.sum::<usize>() + size_of::<Record>() * self.bytes.len()
    }

    /// Appends the records to `batch`.
    pub(crate) fn expand(self, batch: &mut Batch) {
        let first = batch.records.len();
        batch.tails.extend(self.tails.into_iter().map(|(at, tail)| (to_u32(first + at), tail)));
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

/// A position in the bytes of a part, which only [`Strand::push`] writes.
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
        self.number += 1 + varint::unfold(head >> 1);
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
        self.base = self.base.wrapping_add_signed(varint::unfold(get(bytes, &mut self.at)));
        let stride = varint::unfold(get(bytes, &mut self.at));
        let delta_count = bytes[self.at];
        self.at += 1;
        let first = to_u32(deltas.len());
        deltas.extend((0..delta_count).map(|_| varint::unfold(get(bytes, &mut self.at))));
        Lines { mode, base: self.base, stride, deltas: first, delta_count }
    }
}
