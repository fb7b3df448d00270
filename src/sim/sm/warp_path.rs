//! Where a warp's instructions come from: its trace, or as a worker's the added code
//! and the traces of one block after the other.

use std::collections::VecDeque;
use std::sync::Arc;

use gpumodel_core::isa::{Access, AddressMode, AsyncFields};
use gpumodel_core::units::to_usize;

use crate::gpu::feed::{Stream, WarpStream};
use crate::gpu::workers::{self, AddedSegment, Worker};

/// A warp's way through code.
#[derive(Debug)]
pub(crate) enum Path {
    /// The trace of one block.
    Plain(Stream),
    /// A worker's.
    Worker(Box<WorkerPath>),
}

/// Where a worker's warp is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Fresh,
    Arrive,
    Task,
    Head,
    Block,
    Leave,
}

/// The way of one warp of a worker.
#[derive(Debug)]
pub(crate) struct WorkerPath {
    worker: Arc<Worker>,
    kernel: u32,
    sm: u16,
    leader: bool,
    /// It only finds out that it is not wanted.
    visits: bool,
    at: At,
    /// The next added instruction, within added code.
    line: usize,
    /// Its part of the task's blocks; the first is the present one.
    blocks: VecDeque<Stream>,
}

impl WorkerPath {
    /// The way of a warp of a worker that comes to SM `sm`.
    pub(crate) fn new(
        worker: &Arc<Worker>,
        (kernel, sm): (u32, u16),
        leader: bool,
        visits: bool,
    ) -> Self {
        let worker = Arc::clone(worker);
        let (at, blocks) = (At::Fresh, VecDeque::new());
        Self { worker, kernel, sm, leader, visits, at, line: 0, blocks }
    }

    fn is_added(&self) -> bool {
        self.at != At::Block
    }

    fn enter(&mut self, piece: Option<AddedSegment>) -> Option<u32> {
        let piece = piece?;
        self.line = to_usize(piece.line);
        Some(piece.segment)
    }

    fn lanes(&mut self, count: u32) -> u64 {
        let lines = &self.worker.lines[self.line..self.line + to_usize(count)];
        self.line += to_usize(count);
        lines.iter().map(|line| u64::from(line.mask.count_ones())).sum()
    }

    fn touch(&mut self, into: &mut Access) {
        let line = self.worker.lines[self.line];
        self.line += 1;
        let word = line.word.expect("added instructions with an address name a word");
        into.mask = line.mask;
        into.mode = AddressMode::Stride;
        into.stride = 0;
        into.base = workers::address(self.kernel, self.sm, word);
    }
}

impl WorkerPath {
    /// The segment behind the present one. Behind the code that gets a task it is the
    /// first block's, or with no block at all what is done before leaving.
    fn next_segment(&mut self) -> Option<u32> {
        loop {
            let piece = match self.at {
                At::Fresh => {
                    self.at = At::Arrive;
                    self.worker.arrive.of(self.leader)
                }
                At::Arrive if self.visits => {
                    self.at = At::Leave;
                    self.worker.leave.of(self.leader)
                }
                At::Arrive => self.begin_task(),
                At::Task if self.blocks.is_empty() => {
                    self.at = At::Leave;
                    self.worker.leave.of(self.leader)
                }
                At::Task => self.begin_block(),
                At::Head | At::Block => {
                    self.at = At::Block;
                    if let Some(segment) = self.block().next_segment() {
                        return Some(segment);
                    }
                    self.blocks.pop_front();
                    if self.blocks.is_empty() { self.begin_task() } else { self.begin_block() }
                }
                At::Leave => return None,
            };
            if let Some(segment) = self.enter(piece) {
                return Some(segment);
            }
        }
    }

    fn begin_task(&mut self) -> Option<AddedSegment> {
        self.at = At::Task;
        self.worker.task.of(self.leader)
    }

    fn begin_block(&mut self) -> Option<AddedSegment> {
        self.at = At::Head;
        self.worker.block
    }

    fn block(&mut self) -> &mut Stream {
        self.blocks.front_mut().expect("a worker in a block has its trace")
    }
}

impl Path {
    /// Gives a worker's warp its part of a block; nothing for others.
    pub(super) fn push(&mut self, block: Stream) {
        if let Self::Worker(worker_path) = self {
            worker_path.blocks.push_back(block);
        }
    }

    /// The first added segment of a worker's code; of others one beyond all.
    #[inline]
    pub(super) fn added_from(&self) -> u32 {
        match self {
            Self::Plain(_) => u32::MAX,
            Self::Worker(worker_path) => worker_path.worker.first_segment,
        }
    }
}

impl WarpStream for Path {
    #[inline]
    fn next_segment(&mut self) -> Option<u32> {
        match self {
            Self::Plain(stream) => stream.next_segment(),
            Self::Worker(worker_path) => worker_path.next_segment(),
        }
    }

    #[inline]
    fn skip(&mut self, count: u32) -> u64 {
        match self {
            Self::Plain(stream) => stream.skip(count),
            Self::Worker(worker_path) if worker_path.is_added() => worker_path.lanes(count),
            Self::Worker(worker_path) => worker_path.block().skip(count),
        }
    }

    #[inline]
    fn access(&mut self, into: &mut Access) {
        match self {
            Self::Plain(stream) => stream.access(into),
            Self::Worker(worker_path) if worker_path.is_added() => worker_path.touch(into),
            Self::Worker(worker_path) => worker_path.block().access(into),
        }
    }

    fn fields(&mut self) -> Option<AsyncFields> {
        match self {
            Self::Plain(stream) => stream.fields(),
            Self::Worker(worker_path) if worker_path.is_added() => None,
            Self::Worker(worker_path) => worker_path.block().fields(),
        }
    }

    fn repeats(&self) -> u64 {
        match self {
            Self::Plain(stream) => stream.repeats(),
            Self::Worker(worker_path) if worker_path.is_added() => 0,
            Self::Worker(worker_path) => {
                worker_path.blocks.front().map_or(0, |block| block.repeats())
            }
        }
    }

    fn pass(&mut self, times: u64, length: u32) -> u64 {
        match self {
            Self::Plain(stream) => stream.pass(times, length),
            Self::Worker(worker_path) => worker_path.block().pass(times, length),
        }
    }
}
