//! Result rows with units in their names: the only thing between running and
//! showing. Reads and writes the JSON contract and reference tables.
//!
//! Knows no machine, no trace and no drawing.

mod analysis;
mod assumption;
mod comparison;
mod counters;
mod document;
mod dram;
mod error;
mod launches;
mod parts;
mod quantity;
mod reference;
mod rows;
mod sample;
mod slots;
mod summary;

pub use analysis::{
    Analysis, AppRecord, CoRun, CoRunApp, CoRunKernel, DecisionRecord, Interval, KernelRecord,
    MachineRecord, SCHEMA,
};
pub use assumption::AssumptionRecord;
pub use comparison::{COMPARISON_SCHEMA, ComparedRow, Comparison, Coverage, Pair};
pub use counters::{
    CacheCounters, ConstantCounters, DramCounters, FetchCounters, TlbCounters, TranslationCounters,
};
pub use dram::DramRecord;
pub use error::RecordError;
pub use launches::Launches;
pub use parts::{ChannelRecord, SmCounters};
pub use quantity::{ErrorUnit, Quantity};
pub use reference::{ReferenceRow, ReferenceTable};
pub use sample::SampleRecord;
pub use slots::SlotShares;
pub use summary::Summary;
