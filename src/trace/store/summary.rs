//! The summary of one launch of a store, of all or some of its CTAs.

use std::ops::Range;

use gpumodel_core::isa::{Code, Launch};
use gpumodel_core::units::{Dim3, to_u64, to_usize};

use super::cursor::Cta;
use super::index;
use super::layout::{ChunkRow, KernelRow};

/// What the index says of one launch: a view into it.
#[derive(Clone, Copy, Debug)]
pub struct KernelSummary<'a> {
    pub(super) row: &'a KernelRow,
    pub(super) chunks: &'a [ChunkRow],
    pub(super) name: &'a str,
    pub(super) header: &'a str,
    pub(super) memory_only: bool,
    pub(super) cluster: Dim3,
    /// The CTAs that are shown; `None`: all of them.
    pub(super) selection: Option<&'a Selection>,
}

impl<'a> KernelSummary<'a> {
    /// The launch as its header states it.
    #[must_use]
    pub fn launch(&self) -> Launch {
        Launch {
            name: self.name.to_owned(),
            id: self.row.id.get(),
            grid: index::dim(self.row.grid),
            block: index::dim(self.row.block),
            shared_bytes: self.row.shared_bytes.get(),
            registers: self.row.registers.get(),
            binary_version: self.row.binary_version.get(),
            stream: self.row.stream.get(),
            shared_window: self.row.shared_window.get(),
            local_window: self.row.local_window.get(),
            cluster: self.cluster,
        }
    }

    /// The kernel's name as printed, usually mangled.
    #[must_use]
    pub const fn name(&self) -> &'a str {
        self.name
    }

    /// The header lines of the trace, or the launch line of a log, LF between them.
    #[must_use]
    pub const fn header(&self) -> &'a str {
        self.header
    }

    /// The launch comes from a log of accesses: its memory instructions alone, in the
    /// order of each warp, without registers. Its warps are slots of an SM.
    #[must_use]
    pub const fn memory_only(&self) -> bool {
        self.memory_only
    }

    /// CTAs in the trace: tracers leave out those without an instruction.
    #[must_use]
    pub fn cta_count(&self) -> u64 {
        self.selection.map_or(self.row.ctas.get(), |some| some.ctas)
    }

    /// Warp instructions.
    #[must_use]
    pub fn warp_instructions(&self) -> u64 {
        self.selection.map_or(self.row.warp_instructions.get(), |some| some.warp_instructions)
    }

    /// Active lanes, summed over all warp instructions.
    #[must_use]
    pub fn thread_instructions(&self) -> u64 {
        self.selection.map_or(self.row.thread_instructions.get(), |some| some.thread_instructions)
    }

    /// Warp instructions with addresses.
    #[must_use]
    pub fn memory_instructions(&self) -> u64 {
        self.selection.map_or(self.row.memory_instructions.get(), |some| some.memory_instructions)
    }

    /// Bytes of the source's decompressed text.
    #[must_use]
    pub fn text_bytes(&self) -> u64 {
        self.row.text_bytes.get()
    }

    /// Bytes of the source file as it was.
    #[must_use]
    pub fn source_bytes(&self) -> u64 {
        self.row.source_bytes.get()
    }

    /// Bytes of the launch's chunks in the store, without its code.
    #[must_use]
    pub fn compressed_bytes(&self) -> u64 {
        let stored =
            |chunk: &ChunkRow| u64::from(chunk.body.stored) + u64::from(chunk.tails.stored);
        self.chunks.iter().map(stored).sum()
    }

    /// Bytes of the launch's chunks once decompressed, tails left out: what
    /// cursors over all of it need in memory.
    #[must_use]
    pub fn decoded_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.body.raw)).sum()
    }
}

/// Some CTAs of a launch by their ordinals in the store, and their sums, as if there were no
/// others.
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
    /// gives the memory instructions of every segment ([`memory_counts`]).
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
pub(super) fn memory_counts(code: &Code) -> Vec<u64> {
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
