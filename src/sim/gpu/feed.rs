//! Where instructions come from: the trait that `run` fills from a store or a
//! workload model, and tests with hand-made lists.

use std::error::Error;
use std::fmt::Debug;
use std::sync::Arc;

use gpumodel_core::isa::{Access, AsyncFields, Code, Launch, Opcode};
use gpumodel_core::units::{Dim3, KernelId};

use crate::gpu::workers::Worker;

/// An error of the source of instructions, for the user.
pub type FeedError = Box<dyn Error + Send + Sync>;

/// The instruction stream of one warp, consumed front to back.
pub trait WarpStream: Debug {
    /// Enters the next segment of the warp's path: an index into
    /// [`Code::segments`]; `None` at the end. Every instruction of the current
    /// segment must have been consumed.
    fn next_segment(&mut self) -> Option<u32>;

    /// Consumes `count` instructions of the current segment and returns their
    /// active lanes, summed. Addresses among them are passed over.
    fn skip(&mut self, count: u32) -> u64;

    /// Consumes one instruction that carries addresses.
    fn access(&mut self, into: &mut Access);

    /// What the source has of the next instruction, a bulk copy or a step at a barrier object,
    /// beyond its lanes; consumes nothing. `None`: nothing.
    fn fields(&mut self) -> Option<AsyncFields> {
        None
    }

    /// How often the current segment at least follows itself from here on. A
    /// source that does not know says 0.
    fn repeats(&self) -> u64 {
        0
    }

    /// Consumes the current segment, of `length` instructions and none consumed
    /// yet, and enters it again: so `times` times, at most
    /// [`WarpStream::repeats`]. Returns the active lanes, summed.
    fn pass(&mut self, times: u64, length: u32) -> u64 {
        let mut lanes = 0;
        for _ in 0..times {
            lanes += self.skip(length);
            self.next_segment();
        }
        lanes
    }
}

/// A warp's stream as the machine keeps it, whatever the source: the machine is compiled
/// once, apart from its sources.
pub type Stream = Box<dyn WarpStream>;

/// The static side of a launch on one machine.
#[derive(Clone, Debug)]
pub struct Program {
    /// The launch.
    pub launch: Launch,
    /// Instructions and segments.
    pub code: Arc<Code>,
    /// Class and timing of each entry of [`Code::opcodes`].
    pub opcodes: Arc<[Opcode]>,
    /// CTAs that the source has for this launch.
    pub ctas: u64,
}

/// A source of programs and warp streams.
pub trait Feed: Debug {
    /// The static side of launch `kernel`.
    fn program(&self, kernel: KernelId) -> &Program;

    /// How the CTAs of launch `kernel` are workers, whose added code its program has;
    /// `None`: each CTA runs one block, as the trace has it.
    fn worker(&self, _kernel: KernelId) -> Option<&Arc<Worker>> {
        None
    }

    /// Opens CTA `ordinal` (in source order, below [`Program::ctas`]): pushes one
    /// stream per warp and returns the CTA's position.
    ///
    /// # Errors
    /// Whatever reading the source meets.
    fn open(
        &self,
        kernel: KernelId,
        ordinal: u64,
        warps: &mut Vec<Stream>,
    ) -> Result<Dim3, FeedError>;
}
