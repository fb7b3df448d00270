//! Cursors over a store: CTAs and the warps in them.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use gpumodel_core::isa::Access;
use gpumodel_core::units::{Dim3, to_usize};

use super::chunk::Chunk;
use super::code::Program;
use super::memory_stream::{Stream, StreamSource};
use super::run_length::{Masks, Path};

/// One CTA of a kernel. Holds its decoded chunk; cheap to clone.
#[derive(Clone, Debug)]
pub struct Cta {
    /// Position in the grid.
    pub position: Dim3,
    pub(super) index: u32,
    pub(super) chunk: Arc<Chunk>,
    pub(super) program: Arc<Program>,
}

impl Cta {
    /// Warps of the CTA: those of the launch, also when the trace has no
    /// instruction for some of them.
    #[must_use]
    pub fn warp_count(&self) -> u32 {
        self.chunk.warps_per_cta
    }

    /// Warp instructions of warp `warp`.
    ///
    /// # Panics
    /// When `warp` is not below [`Cta::warp_count`].
    #[must_use]
    pub fn warp_instructions(&self, warp: u32) -> u64 {
        assert!(warp < self.warp_count(), "warp {warp} of {}", self.warp_count());
        self.chunk.warp(self.index, warp).1.instructions
    }

    /// A number that is equal for CTAs of one kernel whose warps take the same
    /// paths through the code, in order of warps.
    #[must_use]
    pub fn shape(&self) -> u64 {
        let shapes = (0..self.warp_count()).map(|warp| self.chunk.warp(self.index, warp).1.shape);
        let bytes: Vec<u8> = shapes.flat_map(u64::to_le_bytes).collect();
        xxh3_64(&bytes)
    }

    /// A cursor before the first instruction of warp `warp`.
    ///
    /// # Panics
    /// When `warp` is not below [`Cta::warp_count`].
    #[must_use]
    pub fn warp(&self, warp: u32) -> WarpCursor {
        assert!(warp < self.warp_count(), "warp {warp} of {}", self.warp_count());
        let (place, path) = self.chunk.warp(self.index, warp);
        WarpCursor {
            path: Path::new(to_usize(path.start), to_usize(path.end)),
            masks: Masks::new(to_usize(place.masks)),
            stream: Stream::new(to_usize(place.memory), self.chunk.models.len()),
            next: 0,
            first: 0,
            end: 0,
            memory: 0,
            cta: self.position,
            warp,
            chunk: Arc::clone(&self.chunk),
            program: Arc::clone(&self.program),
        }
    }
}

/// A position in one warp's instructions: owned, small, independent of all
/// other cursors.
#[derive(Clone, Debug)]
pub struct WarpCursor {
    path: Path,
    masks: Masks,
    stream: Stream,
    /// The next static instruction, and where the current segment begins and ends.
    next: u32,
    first: u32,
    end: u32,
    /// The memory number of the next static with a width.
    memory: u32,
    cta: Dim3,
    warp: u32,
    chunk: Arc<Chunk>,
    program: Arc<Program>,
}

impl WarpCursor {
    /// Enters the next segment of the path and returns its index in
    /// [`gpumodel_core::isa::Code::segments`]; passes over what is left of the current
    /// one. `None` at the end of the warp.
    pub fn next_segment(&mut self) -> Option<u32> {
        if self.next < self.end {
            self.skip(self.end - self.next);
        }
        let step = self.path.next(&self.chunk.bytes)?;
        let number = *self.chunk.segments.get(to_usize(step))?;
        let segment = self.program.segment(number)?;
        self.next = segment.first;
        self.first = segment.first;
        self.end = segment.first + segment.length;
        self.memory = self.program.memory_from(segment.first);
        Some(number)
    }

    /// How often the current segment follows itself from here on.
    #[must_use]
    pub fn repeats(&self) -> u64 {
        self.path.repeats()
    }

    /// Consumes what is left of the current segment and enters it again, `times`
    /// times, at most [`WarpCursor::repeats`]; returns the active lanes, summed.
    /// Takes no longer for many repetitions where the segment carries no addresses.
    pub fn pass(&mut self, times: u64) -> u64 {
        let times = times.min(self.repeats());
        if times == 0 {
            return 0;
        }
        if self.memory_before(self.end).is_some() || self.left() < self.end - self.first {
            let turn = |_| {
                let lanes = self.skip(self.left());
                self.next_segment();
                lanes
            };
            return (0..times).map(turn).sum();
        }
        self.path.run(&self.chunk.bytes, times);
        self.masks.skip(&self.chunk.bytes, times * u64::from(self.left()))
    }

    /// Instructions of the current segment that are not consumed yet.
    #[must_use]
    pub fn left(&self) -> u32 {
        self.end - self.next
    }

    /// The next instruction as an index in [`gpumodel_core::isa::Code::instructions`];
    /// `None` at the end of the segment.
    #[must_use]
    pub fn instruction(&self) -> Option<u32> {
        (self.next < self.end).then_some(self.next)
    }

    /// Consumes `count` instructions, at most those that are left in the
    /// segment, passing over their addresses; returns their active lanes, summed.
    pub fn skip(&mut self, count: u32) -> u64 {
        let end = self.next + count.min(self.left());
        let mut lanes = 0;
        while let Some(number) = self.memory_before(end) {
            lanes += self.masks.skip(&self.chunk.bytes, u64::from(number - self.next));
            self.next = number;
            lanes += u64::from(self.consume(None).count_ones());
        }
        lanes += self.masks.skip(&self.chunk.bytes, u64::from(end - self.next));
        self.next = end;
        lanes
    }

    /// Active lanes of the next instruction, without consuming it.
    #[must_use]
    pub fn mask(&self) -> u32 {
        self.masks.peek(&self.chunk.bytes)
    }

    /// Consumes the next instruction, one with addresses (its width is above
    /// 0), and fills `into`. An instruction without addresses gives an access
    /// with its mask at address 0; at the end of the segment nothing happens.
    pub fn access(&mut self, into: &mut Access) {
        if self.next >= self.end {
            return;
        }
        if self.memory_before(self.next + 1).is_some() {
            self.consume(Some(into));
            return;
        }
        *into = Access { mask: self.masks.next(&self.chunk.bytes), ..Access::default() };
        self.next += 1;
    }

    /// The next static with a width, when it comes before `end`.
    #[inline]
    fn memory_before(&self, end: u32) -> Option<u32> {
        let number = *self.program.memory.get(to_usize(self.memory))?;
        (number < end).then_some(number)
    }

    /// Consumes the memory instruction that is next; returns its mask.
    #[inline]
    fn consume(&mut self, into: Option<&mut Access>) -> u32 {
        let mask = self.masks.next(&self.chunk.bytes);
        let source = StreamSource {
            bytes: &self.chunk.bytes,
            models: &self.chunk.models,
            lists: &self.chunk.lists,
            cta: self.cta,
            warp: self.warp,
        };
        self.stream.next(source, self.chunk.slot(self.memory), mask, into);
        self.memory += 1;
        self.next += 1;
        mask
    }
}
