//! The mechanism: SM interval model, caches, TLBs, crossbar, DRAM; it moves and
//! counts. Reads no files and never knows which scheme rules.
//!
//! Exact where queues decide (load/store queue, L1, crossbar ports, L2 slices,
//! memory controllers): event-driven, every queue finite. Analytic where only
//! arithmetic happens: between memory instructions a warp's instructions are
//! one burst with a length alone and demands on issue slot and units
//! (`profile`); the bursts of a scheduler share its slots as fluids
//! (`sm/share.rs`). Cost grows with memory requests and bursts, not with cycles.
//!
//! Order of events: by cycle, then by order of scheduling (`queue.rs`).

#[cfg(test)]
mod bandwidth_tests;
#[cfg(test)]
mod bank_tests;
#[cfg(test)]
mod barrier_tests;
mod cache;
#[cfg(test)]
mod cache_facts_tests;
mod chip;
mod coalesce;
#[cfg(test)]
mod coalescing_tests;
#[cfg(test)]
mod coherence_tests;
pub mod config;
#[cfg(test)]
mod conservation_tests;
#[cfg(test)]
mod constant_tests;
mod counters;
mod course;
#[cfg(test)]
mod crew;
#[cfg(test)]
mod crossbar_tests;
mod dispatch;
pub mod dram;
mod elsewhere;
mod error;
mod event;
mod fabric;
#[cfg(test)]
mod facts_tests;
mod feed;
#[cfg(test)]
mod fetch_tests;
#[cfg(test)]
mod fixture;
mod gauge;
mod gpu;
mod grid;
#[cfg(test)]
mod image_tests;
#[cfg(test)]
mod isolation_tests;
#[cfg(test)]
mod issue_tests;
#[cfg(test)]
mod latency_tests;
mod launches;
mod lines;
mod load;
mod outcome;
mod packet;
mod profile;
mod queue;
mod reallocation;
#[cfg(test)]
mod reallocation_tests;
#[cfg(test)]
mod repeat_tests;
mod residency;
mod rule;
mod ruling;
mod scaling;
#[cfg(test)]
mod scripted;
mod setup;
#[cfg(test)]
mod sharing_tests;
mod slab;
mod sm;
mod space;
mod span;
mod staff;
#[cfg(test)]
mod sub_core_tests;
mod tasks;
mod timeline;
mod translation;
#[cfg(test)]
mod translation_tests;
#[cfg(test)]
mod vacating_tests;
mod worker;
#[cfg(test)]
mod worker_tests;
#[cfg(test)]
mod working;

pub use counters::{
    CacheCounts, Cause, ConstantCounts, FetchCounts, KernelCounts, SmCounts, StallStack, TlbCounts,
    TranslationCounts,
};
pub use elsewhere::Elsewhere;
pub use error::MachineError;
pub use feed::{Feed, FeedError, Program, Stream, WarpStream};
pub use gpu::{Gpu, Pause};
pub use launches::Command;
pub use load::{AppMoved, AppOutcome, End, Load};
pub use outcome::Outcome;
pub use profile::ProfileImage;
pub use residency::Residency;
pub use setup::{Part, Setup};
pub use sm::{Limit, Need};
pub use span::CtaSpan;
pub use timeline::Sample;
pub use translation::AppMemory;
pub use worker::{Line, Piece, Pieces, TASK_BARRIER, Worker};
