//! The contract between machine and scheme: Facts, Probe, View, Plan and the
//! Plan's laws. Plain data, versioned, printable.
//!
//! The machine does not know the scheme; the scheme does not touch the machine.

mod facts;
mod law;
mod persistent;
mod plan;
mod probe;
mod queue;
mod view;

pub use facts::{AppFacts, Facts, KernelFacts, MigFacts, MigProfile};
pub use law::LawBroken;
pub use persistent::{AddedCode, Persistent, Resize, Touch, Word, most_registers};
pub use plan::{
    Curve, DispatchOrder, Freed, MemoryInstance, Migration, Plan, PlanDraft, Region, Share,
    TimeSlice, Vacate, WakeOn,
};
pub use probe::{Probe, ProbeApp, ProbeResult};
pub use queue::{
    Classified, Findings, Group, GroupLaw, GroupProbe, GroupProbeResult, Groups, Job, PairFound,
    PatternUse, Profile, QueueFacts, QueueView, Threshold,
};
pub use view::{AppView, ChannelUse, View, Wake};
