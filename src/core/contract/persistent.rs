//! Kernels rewritten to run as workers: a fixed set of resident CTAs that pull
//! tasks of thread blocks from a queue in memory.

use serde::{Deserialize, Serialize};

use crate::units::Cycle;

use super::{Facts, KernelFacts};

/// A word in device memory that the added code touches. Every launch has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// The next block that no worker has taken.
    Queue,
    /// What tells workers to leave.
    Flag,
    /// How far the launch is, for the host.
    Progress,
    /// The workers on the SM, one counter for each.
    Workers,
}

/// One access of the added code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Touch {
    /// Every warp reads it and waits for the value.
    Read(Word),
    /// The first thread adds to it and waits for the old value.
    Add(Word),
    /// The first thread writes it.
    Write(Word),
}

/// A piece of added code: reads of all warps and the rest by the first thread, a
/// barrier, and what all warps do with the outcome. That which gets a task always has
/// a barrier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedCode {
    /// Its accesses, in their order.
    pub touches: Vec<Touch>,
    /// Further instructions of the first warp before the barrier, one thread each.
    pub leader_instructions: u32,
    /// All warps meet at a barrier.
    pub meets: bool,
    /// Further instructions of every warp, behind the barrier.
    pub instructions: u32,
}

/// How the number of workers follows the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resize {
    /// Workers beyond the quota of an SM leave at the end of their task; more come
    /// with a second instance of the kernel, as late as any launch.
    #[default]
    InPlace,
    /// All workers leave at the end of their task; when all are gone the kernel is
    /// launched again on the SMs of the plan after so many cycles. Its CTAs on other
    /// SMs start and quit.
    Relaunch {
        /// From the last worker's end to the first one's start.
        cycles: Cycle,
    },
}

/// The form of a kernel that runs as workers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Persistent {
    /// Thread blocks of a task, at least 1; a worker runs them in order.
    pub task_blocks: u32,
    /// Registers of a thread over those of the kernel as written, rounded.
    pub register_factor: f64,
    /// Registers of a thread beyond that.
    pub more_registers: u32,
    /// Shared bytes that a CTA has more.
    pub more_shared_bytes: u32,
    /// What a worker does when it comes.
    pub arrive: AddedCode,
    /// What it does for each task, to get it.
    pub task: AddedCode,
    /// Instructions of every warp for each block of a task.
    pub block_instructions: u32,
    /// What it does before it leaves.
    pub leave: AddedCode,
    /// How the workers follow the plan.
    pub resize: Resize,
    /// From when an application could launch its first kernel until it does: its code
    /// is rewritten and compiled meanwhile.
    pub compile_cycles: Cycle,
    /// The same before every launch: what it has to tell others first.
    pub call_cycles: Cycle,
}

impl Persistent {
    /// Workers that run one block after the other and cost nothing but a barrier for
    /// each.
    #[must_use]
    pub fn bare() -> Self {
        Self { task_blocks: 1, register_factor: 1.0, ..Self::default() }
    }

    /// Registers of a thread of a kernel that has `registers` as written, where a thread
    /// may have `most`: a compiler that knows the CTA's size spills beyond that, which
    /// costs nothing here.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a small number that is not negative"
    )]
    pub fn registers(&self, registers: u32, most: u32) -> u32 {
        let grown = (f64::from(registers) * self.register_factor).round() as u32;
        (grown + self.more_registers).min(most.max(registers))
    }

    /// A launch as it is with workers: what one of them needs, and how many fit.
    #[must_use]
    pub fn of(&self, kernel: &KernelFacts, facts: &Facts) -> KernelFacts {
        let unit = facts.register_unit.max(1);
        let most = most_registers(facts.registers_per_sm, unit, kernel.warps_per_cta);
        let registers = self.registers(kernel.registers_per_thread, most);
        let per_warp = (registers * 32).div_ceil(unit) * unit;
        let bytes = kernel.shared_bytes + self.more_shared_bytes;
        let shared_unit = facts.shared_unit_bytes.max(1);
        let shared = (bytes + facts.shared_reserved_bytes).div_ceil(shared_unit) * shared_unit;
        let mut kernel = KernelFacts {
            registers_per_thread: registers,
            shared_bytes: bytes,
            registers_per_cta: per_warp * kernel.warps_per_cta,
            shared_bytes_per_cta: shared,
            ..kernel.clone()
        };
        kernel.ctas_per_sm = facts.fits(&kernel);
        kernel
    }
}

/// Registers of an instruction's field at most (CUDA programming guide, technical
/// specifications: 255 per thread).
const ADDRESSED: u32 = 255;

/// Registers that a thread may have where a CTA of `warps` warps is to fit an SM with
/// `registers`, handed out to warps in multiples of `unit`.
#[must_use]
pub fn most_registers(registers: u32, unit: u32, warps: u32) -> u32 {
    let per_warp = registers / warps.max(1) / unit.max(1) * unit.max(1);
    (per_warp / 32).min(ADDRESSED)
}
