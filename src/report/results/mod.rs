//! Result rows with units in their names: the only thing between running and
//! showing. Reads and writes the JSON contract and reference tables.
//!
//! Knows no machine, no trace and no drawing.

mod analysis;
mod assumption;
mod cell;
mod cell_files;
mod cell_rows;
mod cell_table;
#[cfg(feature = "parquet")]
mod columnar;
mod comparison;
mod corun;
mod counters;
mod decision;
mod document;
mod dram;
mod duplicates;
mod energy;
mod epoch_shares;
mod error;
mod field;
mod joined;
mod launches;
mod measure;
mod metrics;
mod migration;
mod parts;
mod qos;
mod quantity;
mod queue;
mod queue_check;
mod queue_gain;
mod reference;
mod residency;
mod rows;
mod sample;
mod slots;
pub mod statistics;
mod summary;
mod sweep_estimate;
mod tidy;
mod timed_decision;
mod unbounded;
mod utilization;
mod workers;

pub use analysis::{Analysis, AppRecord, Interval, KernelRecord, MachineRecord, SCHEMA};
pub use assumption::AssumptionRecord;
pub use cell::{CellRecord, FailedCell, SWEEP_SCHEMA, SweepRecord};
pub use cell_files::{CellOutcome, SweepFiles, SweepListing};
pub use cell_table::cells_of_table;
pub use comparison::{COMPARISON_SCHEMA, ComparedRow, Comparison, Coverage, Pair};
pub use corun::{CoRun, CoRunApp, CoRunKernel};
pub use counters::{
    CacheCounters, ConstantCounters, DramCounters, FetchCounters, TlbCounters, TranslationCounters,
};
pub use decision::{CurveRecord, DecisionRecord};
pub use dram::DramRecord;
pub use duplicates::{disambiguate_apps, refuse_ambiguous_apps, refuse_duplicate_rows};
pub use energy::EnergyRecord;
pub use epoch_shares::EpochShares;
pub use error::RecordError;
pub use joined::{alone_once, joined};
pub use launches::Launches;
pub use measure::Measure;
pub(crate) use measure::first_partition;
pub use metrics::Alone;
pub use migration::{MigrationRecord, MovedSoFar};
pub use parts::{ChannelRecord, SmCounters};
pub use quantity::{ErrorUnit, Quantity};
pub use queue::{
    ClassifiedRecord, GroupRecord, InterferenceRecord, JobRecord, MatchingRecord, PairRecord,
    PatternRecord, PublishedSlowdown, QueueRun, ShareRecord, ThresholdRecord,
};
pub use queue_gain::{Gain, NamedRun, Over, QueueGain, gains};
pub use reference::{ReferenceRow, ReferenceTable};
pub use residency::{ResidencyRecord, ResidencyRow};
pub use sample::SampleRecord;
pub use slots::SlotShares;
pub use summary::Summary;
pub use sweep_estimate::{CellEstimate, SweepEstimate};
pub use tidy::{OTHER_FORMS, TABLE_FORMS, Tidy};
pub use utilization::{UnitShares, UtilizationRecord};
pub use workers::{HostTime, WorkersRecord};
