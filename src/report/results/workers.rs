//! Kernels that ran as workers, and what their hosts did meanwhile.

use serde::{Deserialize, Serialize};

use gpumodel_core::units::Cycle;

/// An application whose kernels ran as workers that pull tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkersRecord {
    /// Thread blocks of a task.
    pub task_blocks: u64,
    /// Registers of a thread, of the launch that has most.
    pub registers: u64,
    /// Shared bytes of a CTA, of the launch that has most.
    pub shared_bytes: u64,
    /// The same of the kernels as written.
    pub registers_as_written: u64,
    /// The same of the kernels as written.
    pub shared_bytes_as_written: u64,
    /// Workers that came, over all instances of all launches.
    pub workers: u64,
    /// Tasks that they took.
    pub tasks: u64,
    /// Warp instructions that the form has added.
    pub added_instructions: u64,
}

/// Where an application's time from arrival to end went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostTime {
    /// In which a launch of it had begun and not ended: launch latency, and waits at the
    /// block scheduler or for a time slice, included.
    pub kernel_cycles: Cycle,
    /// Messages to whoever launches its kernels.
    pub communication_cycles: Cycle,
    /// Rewriting and compiling its kernels.
    pub compilation_cycles: Cycle,
    /// The rest: it held no share, or waited for an answer.
    pub waiting_cycles: Cycle,
}
