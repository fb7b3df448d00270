//! The machine: SMs, caches, TLBs, crossbar, DRAM. It moves and counts; it does not know
//! which scheme decides.
//!
//! Exact where queues decide (load/store queue, L1, crossbar ports, L2 slices, memory
//! controllers): event-driven, every queue finite. Analytic where only arithmetic happens:
//! between memory instructions a warp's instructions are one issue interval with a length
//! alone and demands on issue slot and units ([`interval`]); the intervals of a scheduler
//! share its slots as fluids (`sm/scheduler/issue_bandwidth.rs`). Cost grows with memory requests and
//! intervals, not with cycles.
//!
//! | room | holds |
//! |---|---|
//! | [`config`] | machine files, memory standards, opcode tables, imports |
//! | [`gpu`] | the event loop, dispatch of CTAs, plans, the life of applications, workers |
//! | [`sm`] | warps, schedulers, load/store unit, L1, instruction fetch, barriers |
//! | [`interval`] | what a warp's instructions ask for between memory events |
//! | [`cache`] | tags, MSHRs, replacement |
//! | [`memory`] | crossbar, L2 slices, memory channels, whose controllers may go ahead on other threads |
//! | [`dram`] | one memory channel: commands, scheduling, refresh |
//! | [`mmu`] | TLBs, page walks, which page moves where |
//!
//! Events come by cycle, then in order of scheduling (`gpu/event_queue.rs`). To find a counter
//! of a kernel: [`KernelCounts`]. To feed the machine: [`Feed`].
#![allow(rustdoc::private_intra_doc_links)]

mod bits;
mod cache;
pub mod config;
mod counters;
pub mod dram;
mod facts;
mod gpu;
mod interval;
mod memory;
mod mmu;
mod slab;
mod sm;
#[cfg(test)]
mod testkit;
#[cfg(test)]
mod tests;

pub use counters::{
    CacheCounts, Cause, ConstantCounts, FetchCounts, KernelCounts, SmCounts, StallStack, TlbCounts,
    TranslationCounts,
};
pub use facts::machine_facts;
pub use gpu::app::{AppMoved, AppOutcome, Command, DEFAULT_STREAM, End, Load};
pub use gpu::error::{LostArrival, LostBarrier, MachineError};
pub use gpu::fast_forward::Passed;
pub use gpu::feed::{Feed, FeedError, Program, Stream, WarpStream};
pub use gpu::link::LinkUse;
pub use gpu::outcome::Outcome;
pub use gpu::setup::{Part, Setup};
pub use gpu::timeline::{CtaSpan, Residency, Sample};
pub use gpu::workers::{AddedSegment, AddedSegments, Line, TASK_BARRIER, Worker};
pub use gpu::{Gpu, Pause};
pub use interval::ProfileImage;
pub use memory::PresumedL2Hits;
pub use mmu::AppMemory;
pub use sm::hot::InstructionCounts;
pub use sm::{Limit, Need, access_sectors, bank_conflicts};
