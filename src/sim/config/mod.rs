//! Reads and checks `models/*.toml` and imports foreign configurations:
//! raw text -> checked -> resolved.
//!
//! What comes out of here needs no further checks: sizes divide, clocks tick,
//! every number has a source. Knows no trace and no scheme.

mod address_bits;
mod address_map;
mod cache;
mod cache_policy;
mod cache_size;
mod check;
mod constant;
mod decode;
mod energy;
mod error;
mod fetch;
mod import;
mod isa_table;
mod listing;
mod machine;
mod mapping;
mod memory;
mod memory_command;
mod memory_error;
mod memory_expression;
mod memory_file;
mod memory_gap;
mod memory_policy;
mod memory_resolve;
mod memory_shipped;
mod models;
mod page_channels;
mod pattern;
mod plain;
mod quirks;
mod resolve;
mod source;
mod translation;
mod tree;
mod unlisted;

pub use address_map::AddressMap;
pub use cache::{AllocatePolicy, Cache, ReplacementPolicy, SetHash, WriteMiss, WritePolicy};
pub use check::Problem;
pub use constant::Constant;
pub use energy::Energy;
pub use error::{Place, SpecError};
pub use fetch::Fetch;
pub use import::{Import, ImportLabel, import_accelsim};
pub use isa_table::IsaTable;
pub use listing::Listed;
pub use machine::{
    Allocation, BankConflicts, Clocks, CtaOrder, Dispatch, DramSpec, Interconnect, L1Spec, L2Spec,
    Machine, SchedulerPolicy, SharedSpec, SmSpec, UnitSpec, WarpPlacement,
};
pub use mapping::{Location, Mapping};
pub use memory::MemoryStandard;
pub use memory_command::{Command, Gap, Level};
pub use memory_error::MemoryError;
pub use memory_policy::{ControllerOptions, Order, PagePolicy, Refresh};
pub use models::Models;
pub use page_channels::PageChannels;
pub use plain::{KeyLines, plain, read_plain};
pub use quirks::Quirks;
pub use resolve::Resolved;
pub use source::{Kind, Provenance, Source};
pub use translation::{MigrationFill, Translation};
pub use unlisted::Unlisted;
