//! What is counted per instruction of each launch, where that is wanted.

use gpumodel_core::units::to_usize;

use crate::counters::{CacheCounts, StallStack};

/// What one static instruction of a launch has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct InstructionCounts {
    /// Slot-cycles that were lost at it, by cause; the sums over all instructions are those of
    /// [`KernelCounts::stalls`](crate::KernelCounts::stalls), issued and idle ones left out.
    pub stalls: StallStack,
    /// Times that a warp issued it with active lanes and addresses.
    pub requests: u64,
    /// Sectors of 32 bytes that these asked for; of shared memory none.
    pub sectors: u64,
    /// Its look-ups in the L1, in sectors.
    pub l1: CacheCounts,
    /// Passes over the banks of shared memory beyond those that its distinct words need.
    pub bank_conflict_cycles: u64,
}

/// The counts of all instructions.
#[derive(Debug, Default)]
pub(crate) struct HotSpots {
    /// By launch and instruction; empty before the first count.
    launches: Vec<Vec<InstructionCounts>>,
    /// By SM and operation in flight: its instruction.
    in_flight: Vec<Vec<u32>>,
}

impl HotSpots {
    /// No counts of `launches` launches on `sms` SMs.
    pub(crate) fn new(launches: usize, sms: usize) -> Self {
        Self { launches: vec![Vec::new(); launches], in_flight: vec![Vec::new(); sms] }
    }

    /// The counts of a launch whose code has so many instructions.
    pub(crate) fn rows(&mut self, kernel: u32, instructions: usize) -> &mut [InstructionCounts] {
        let rows = &mut self.launches[to_usize(kernel)];
        rows.resize(instructions, InstructionCounts::default());
        rows
    }

    /// An operation of an SM begins, for an instruction.
    pub(crate) fn begin(&mut self, sm: u16, operation: u32, instruction: u32) {
        let operations = &mut self.in_flight[usize::from(sm)];
        let place = to_usize(operation);
        if operations.len() <= place {
            operations.resize(place + 1, 0);
        }
        operations[place] = instruction;
    }

    /// Counts a look-up of an operation in the L1.
    #[cold]
    pub(crate) fn count_l1(
        &mut self,
        (sm, kernel, operation): (u16, u32, u32),
        counted: &CacheCounts,
        sectors: u8,
    ) {
        let instruction = self.in_flight[usize::from(sm)][to_usize(operation)];
        self.launches[to_usize(kernel)][to_usize(instruction)].l1.add(counted, sectors);
    }

    /// The counts by launch and instruction.
    pub(crate) fn into_launches(self) -> Vec<Vec<InstructionCounts>> {
        self.launches
    }
}
