//! The static side of a launch that runs as workers: what its added code is, where in
//! the program it lies and what it touches.

use gpumodel_core::contract::{Resize, Word};
use gpumodel_core::units::Cycle;

/// The immediate of the barrier at which a worker waits for its task: no trace has it.
pub const TASK_BARRIER: i64 = i64::MIN;

/// One warp's segment of a piece of added code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddedSegment {
    /// Index into [`gpumodel_core::isa::Code::segments`].
    pub segment: u32,
    /// Its first instruction's place in [`Worker::lines`].
    pub line: u32,
}

/// What the first warp runs and what each of the others does; `None`: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddedSegments {
    /// The first warp's.
    pub leader: Option<AddedSegment>,
    /// That of the others.
    pub others: Option<AddedSegment>,
}

impl AddedSegments {
    /// The piece of a warp.
    #[must_use]
    pub fn of(&self, leader: bool) -> Option<AddedSegment> {
        if leader { self.leader } else { self.others }
    }
}

/// One added instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Active lanes.
    pub mask: u32,
    /// The word that it touches.
    pub word: Option<Word>,
}

/// How CTAs of a launch are workers: its program holds the kernel's code and behind
/// it the added one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Blocks of a task, at least 1.
    pub task_blocks: u32,
    /// How workers follow the plan.
    pub resize: Resize,
    /// Before an application's first launch.
    pub compile_cycles: Cycle,
    /// Before each launch.
    pub call_cycles: Cycle,
    /// The first added segment.
    pub first_segment: u32,
    /// When it comes.
    pub arrive: AddedSegments,
    /// For each task; all warps meet at [`TASK_BARRIER`] within.
    pub task: AddedSegments,
    /// For each block.
    pub block: Option<AddedSegment>,
    /// Before it leaves.
    pub leave: AddedSegments,
    /// The added instructions in their order.
    pub lines: Vec<Line>,
}

/// Where the words of launches lie in an application's addresses: above all user
/// memory, below saved state.
const WORDS_BASE: u64 = 0xd << 44;

/// Bytes from one launch's words to the next one's: the allocation unit of the
/// counters, the flag and the progress is 256 bytes.
const LAUNCH_BYTES: u64 = 4096;

/// Bytes of the queue's word and the counters, one for each SM.
const COUNTERS_BYTES: u64 = 2048;

/// The first byte of a launch's words, and their length.
pub(crate) fn words(kernel: u32) -> (u64, u64) {
    (WORDS_BASE + u64::from(kernel) * LAUNCH_BYTES, LAUNCH_BYTES)
}

/// Where a word of launch `kernel` lies; of the counters, that of `sm`.
pub(crate) fn address(kernel: u32, sm: u16, word: Word) -> u64 {
    words(kernel).0
        + match word {
            Word::Queue => 0,
            Word::Workers => 4 * (1 + u64::from(sm)) % COUNTERS_BYTES,
            Word::Flag => COUNTERS_BYTES,
            Word::Progress => COUNTERS_BYTES + 256,
        }
}
