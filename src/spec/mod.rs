//! Reads and checks `models/*.toml` and imports foreign configurations:
//! raw text -> checked -> resolved.
//!
//! What comes out of here needs no further checks: sizes divide, clocks tick,
//! every number has a source. Knows no trace and no scheme.

mod machine;

pub use machine::{
    AllocatePolicy, BankConflicts, Cache, Clocks, CtaOrder, Dispatch, DramSpec, Interconnect,
    L1Spec, L2Spec, Machine, Quirks, SchedulerPolicy, SetHash, SharedSpec, SmSpec, UnitSpec,
    WritePolicy,
};
