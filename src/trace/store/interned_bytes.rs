//! Byte strings of a chunk, each kept once.

use std::collections::HashMap;

use gpumodel_core::units::{to_u32, to_u64};

use super::varint::{self, Reader};

/// Distinct byte strings in order of first appearance, and who uses which.
#[derive(Debug, Default)]
pub(super) struct Strands {
    numbers: HashMap<Box<[u8]>, u32>,
    bytes: Vec<u8>,
    lengths: Vec<usize>,
    uses: Vec<u32>,
}

impl Strands {
    /// Notes that the next user has `strand`.
    pub(super) fn push(&mut self, strand: &[u8]) {
        if let Some(&number) = self.numbers.get(strand) {
            self.uses.push(number);
            return;
        }
        let number = to_u32(self.lengths.len());
        self.numbers.insert(strand.into(), number);
        self.bytes.extend_from_slice(strand);
        self.lengths.push(strand.len());
        self.uses.push(number);
    }

    /// Appends count, lengths and bytes, then per user how far its strand lies
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

/// Where strands lie in a chunk: start and end byte of each.
pub(super) type Places = Vec<(u32, u32)>;

/// Reads what [`Strands::write`] wrote for `users` users: the places, and each
/// user's index into them.
pub(super) fn read(reader: &mut Reader<'_>, users: usize) -> (Places, Vec<u32>) {
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
