//! Result rows with units in their names: the only thing between running and
//! showing. Reads and writes the JSON contract and reference tables.
//!
//! Knows no machine, no trace and no drawing.

mod analysis;
mod counters;

pub use analysis::{
    Analysis, AppRecord, CoRun, CoRunApp, CoRunKernel, DecisionRecord, Interval, KernelRecord,
    MachineRecord, SCHEMA,
};
pub use counters::{CacheCounters, DramCounters};
