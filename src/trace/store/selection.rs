//! Some CTAs of a store's launch, counted as if there were no others.

use std::ops::Range;

use gpumodel_core::isa::Code;
use gpumodel_core::units::{to_u64, to_usize};

use super::cursor::Cta;

/// CTAs by their ordinals in the store, and what they add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selection {
    /// Ranges of ordinals, and the CTAs before each.
    ranges: Vec<(u64, Range<u64>)>,
    pub(super) ctas: u64,
    pub(super) warp_instructions: u64,
    pub(super) thread_instructions: u64,
    pub(super) memory_instructions: u64,
}

impl Selection {
    /// Adds the CTA with the ordinal `ordinal`, above all others so far; `memory`
    /// gives the memory instructions of every segment ([`memories`]).
    pub(super) fn add(&mut self, ordinal: u64, cta: &Cta, memory: &[u64]) {
        match self.ranges.last_mut() {
            Some((_, range)) if range.end == ordinal => range.end += 1,
            _ => self.ranges.push((self.ctas, ordinal..ordinal + 1)),
        }
        self.ctas += 1;
        for warp in 0..cta.warp_count() {
            let mut cursor = cta.warp(warp);
            while let Some(segment) = cursor.next_segment() {
                let length = cursor.left();
                self.warp_instructions += u64::from(length);
                self.thread_instructions += cursor.skip(length);
                self.memory_instructions += memory[to_usize(segment)];
            }
        }
    }

    /// The ordinal in the store of the CTA with the number `number` among those
    /// that were added.
    pub(super) fn ordinal(&self, number: u64) -> u64 {
        let after = self.ranges.partition_point(|(before, _)| *before <= number);
        let (before, range) = &self.ranges[after - 1];
        range.start + (number - before)
    }

    /// True when the CTA with this ordinal was added.
    pub(super) fn contains(&self, ordinal: u64) -> bool {
        let after = self.ranges.partition_point(|(_, range)| range.start <= ordinal);
        after > 0 && self.ranges[after - 1].1.contains(&ordinal)
    }
}

/// By segment its memory instructions.
pub(super) fn memories(code: &Code) -> Vec<u64> {
    let count = |first: u32, length: u32| {
        let of = &code.instructions[to_usize(first)..to_usize(first + length)];
        to_u64(of.iter().filter(|one| one.width > 0).count())
    };
    code.segments.iter().map(|segment| count(segment.first, segment.length)).collect()
}

/// Ascending numbers as ranges: first and last.
pub(super) fn ranges(numbers: impl Iterator<Item = u64>) -> Vec<[u64; 2]> {
    let mut ranges: Vec<[u64; 2]> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some([_, last]) if *last + 1 == number => *last = number,
            _ => ranges.push([number, number]),
        }
    }
    ranges
}
