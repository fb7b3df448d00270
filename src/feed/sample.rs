//! A sample of one launch as the machine's source of instructions.

use gpumodel_core::units::{Dim3, KernelId, to_u32, to_u64, to_usize};
use gpumodel_sim::{Command, Feed, FeedError, Program, Stream};

use super::store::StoreFeed;

/// Some CTAs of one launch of a store.
#[derive(Debug)]
pub struct SampleFeed<'a> {
    whole: &'a StoreFeed<'a>,
    /// The launch's place among the store's chosen ones.
    place: usize,
    /// The CTAs, in order.
    ctas: &'a [u64],
    program: Program,
}

impl<'a> SampleFeed<'a> {
    /// The CTAs `ctas` of the launch at `place` of `whole`.
    pub fn new(whole: &'a StoreFeed<'a>, place: usize, ctas: &'a [u64]) -> Self {
        let program = Program { ctas: to_u64(ctas.len()), ..whole.programs()[place].clone() };
        Self { whole, place, ctas, program }
    }

    /// The command list: the launch alone.
    pub fn commands(&self) -> Vec<Command> {
        vec![Command::Launch { kernel: KernelId(0), stream: self.program.launch.stream }]
    }
}

impl Feed for SampleFeed<'_> {
    fn program(&self, _kernel: KernelId) -> &Program {
        &self.program
    }

    fn open(
        &self,
        _kernel: KernelId,
        ordinal: u64,
        warps: &mut Vec<Stream>,
    ) -> Result<Dim3, FeedError> {
        self.whole.open(KernelId(to_u32(self.place)), self.ctas[to_usize(ordinal)], warps)
    }
}

/// Consecutive launches that run whole, numbered from the first of them on.
#[derive(Debug)]
pub struct RangeFeed<'a> {
    whole: &'a StoreFeed<'a>,
    first: u32,
}

impl<'a> RangeFeed<'a> {
    /// The launches of `whole` from place `first` on.
    pub fn new(whole: &'a StoreFeed<'a>, first: usize) -> Self {
        Self { whole, first: to_u32(first) }
    }
}

impl Feed for RangeFeed<'_> {
    fn program(&self, kernel: KernelId) -> &Program {
        self.whole.program(KernelId(kernel.0 + self.first))
    }

    fn open(
        &self,
        kernel: KernelId,
        ordinal: u64,
        warps: &mut Vec<Stream>,
    ) -> Result<Dim3, FeedError> {
        self.whole.open(KernelId(kernel.0 + self.first), ordinal, warps)
    }
}
