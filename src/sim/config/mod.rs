//! Reads and checks `models/*.toml` and imports foreign configurations:
//! raw text -> checked -> resolved.
//!
//! What comes out of here needs no further checks: sizes divide, clocks tick,
//! every number has a source. Knows no trace and no scheme.

mod cache;
mod check;
mod cluster;
mod error;
mod import;
mod isa_table;
mod link;
mod machine;
mod matrix;
mod memory;
mod mig;
mod models;
mod resolve;
mod translation;

pub use cache::{AllocatePolicy, Cache, ReplacementPolicy, SetHash, WriteMiss, WritePolicy};
pub use check::Problem;
pub use cluster::Cluster;
pub use error::SpecError;
pub use import::{IMPORT_MARK, Import, ImportLabel, import_accelsim};
pub use isa_table::{IsaTable, Unlisted};
pub use link::{Link, ManagedMemory};
pub use machine::{
    Allocation, BankConflicts, Clocks, Constant, ControlBitsUse, CtaOrder, Dispatch, DramSpec,
    Energy, Fetch, Interconnect, L1Data, L1Spec, L2Spec, Machine, OperandReads, PortQueues, Quirks,
    RequestGranularity, SchedulerPolicy, SharedSpec, SmSpec, UnitSpec, WarpPlacement,
};
pub use memory::{
    AddressMap, BankGroupBits, BankIndex, Command, ControllerOptions, Gap, Layout, Level, Location,
    Mapping, MemoryStandard, Order, PageChannels, PagePolicy, PartitionIndex, Refresh,
};
pub use mig::Mig;
pub use models::Models;
pub use resolve::{Listed, Resolved};
pub use translation::{MigrationFill, Translation};
