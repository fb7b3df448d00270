//! Result rows with units in their names: the only thing between running and
//! showing. Reads and writes the JSON contract and reference tables.
//!
//! Knows no machine, no trace and no drawing.

mod analysis;
mod cell;
mod cell_files;
mod cell_rows;
mod cell_table;
#[cfg(feature = "parquet")]
mod columnar;
mod comparison;
mod corun;
mod counters;
mod document;
mod dram;
mod duplicates;
mod epoch_shares;
mod error;
mod field;
mod joined;
mod measure;
mod metrics;
mod qos;
mod quantity;
mod queue;
mod queue_check;
mod queue_gain;
mod reference;
mod rows;
mod slots;
pub mod statistics;
mod summary;
mod sweep_estimate;
mod tidy;
mod timed_decision;
mod unbounded;

pub use analysis::{
    Analysis, AppRecord, AssumptionRecord, Interval, KernelRecord, Launches, MachineRecord, SCHEMA,
    SampleRecord,
};
pub use cell::{CellRecord, FailedCell, SWEEP_SCHEMA, SweepRecord};
pub use cell_files::{CellOutcome, SweepFiles, SweepListing};
pub use cell_table::cells_of_table;
pub use comparison::{COMPARISON_SCHEMA, ComparedRow, Comparison, Coverage, Pair};
pub use corun::{
    CoRun, CoRunApp, CoRunKernel, CurveRecord, DecisionRecord, EnergyRecord, HostTime,
    MigrationRecord, MovedSoFar, ResidencyRecord, ResidencyRow, WorkersRecord,
};
pub use counters::{
    CacheCounters, ChannelRecord, ConstantCounters, DramCounters, FetchCounters, SmCounters,
    TlbCounters, TranslationCounters, UnitShares, UtilizationRecord,
};
pub use dram::DramRecord;
pub use duplicates::{disambiguate_apps, refuse_ambiguous_apps, refuse_duplicate_rows};
pub use epoch_shares::EpochShares;
pub use error::RecordError;
pub use joined::{alone_once, joined};
pub use measure::Measure;
pub(crate) use measure::first_partition;
pub use metrics::Alone;
pub use quantity::{ErrorUnit, Quantity};
pub use queue::{
    ClassifiedRecord, GroupRecord, InterferenceRecord, JobRecord, MatchingRecord, PairRecord,
    PatternRecord, PublishedSlowdown, QueueRun, ShareRecord, ThresholdRecord,
};
pub use queue_gain::{Gain, NamedRun, Over, QueueGain, gains};
pub use reference::{ReferenceRow, ReferenceTable};
pub use slots::SlotShares;
pub use summary::Summary;
pub use sweep_estimate::{CellEstimate, SweepEstimate};
pub use tidy::{OTHER_FORMS, TABLE_FORMS, Tidy};
