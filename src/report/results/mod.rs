//! Result rows with units in their names: the only thing between running and
//! showing. Reads and writes the JSON contract and reference tables.
//!
//! Knows no machine, no trace and no drawing.

mod analysis;
mod app_names;
mod benchmark;
mod check;
mod comparison;
mod corun;
mod counters;
mod hot;
mod measure;
mod metrics;
mod profile;
mod quantity;
mod queue;
mod reference;
mod scheme_means;
pub mod statistics;
mod sweep;
mod sweep_table;

pub use analysis::{
    Analysis, AppRecord, AssumptionRecord, CtaRecord, FastForwardRecord, Interval, KernelRecord,
    Launches, MachineRecord, RunEvents, SCHEMA, SampleRecord,
};
pub(crate) use app_names::last_component;
pub use app_names::{AppNames, with_short_names};
pub use benchmark::{BenchmarkErrors, BenchmarkRecord, BenchmarkRow, Measurements};
pub use check::RecordError;
pub(crate) use check::pretty;
pub use comparison::{
    COMPARISON_SCHEMA, ComparedRow, Comparison, Coverage, Pair, disambiguate_apps,
    refuse_ambiguous_apps, refuse_duplicate_rows,
};
pub use corun::{
    CoRun, CoRunApp, CoRunKernel, CurveRecord, DecisionRecord, EnergyRecord, HostTime,
    MigrationRecord, MovedSoFar, ResidencyRecord, ResidencyRow, WorkersRecord,
};
pub use counters::{
    CacheCounters, ChannelRecord, ConstantCounters, DramCounters, DramRecord, FetchCounters,
    LinkRecord, SmCounters, TlbCounters, TranslationCounters, UnitShares, UtilizationRecord,
};
pub use hot::{HotInstruction, HotMeasure, HotRecord};
pub(crate) use measure::first_partition;
pub use measure::{EpochShares, Measure};
pub use metrics::Alone;
pub use profile::{CountedLaunch, Counter, CounterCheck, CounterRow, Unmatched};
pub use quantity::{ErrorUnit, Quantity, SlotShares, Summary};
pub use queue::{
    ClassifiedRecord, Gain, GroupRecord, InterferenceRecord, JobRecord, MatchingRecord, NamedRun,
    Over, PairRecord, PatternRecord, PublishedSlowdown, QueueGain, QueueRun, ShareRecord,
    ThresholdRecord, gains,
};
pub use reference::{ReferenceRow, ReferenceTable};
pub use scheme_means::{Means, SchemeMeans, scheme_means};
pub(crate) use sweep::read_document;
pub use sweep::{
    CellEstimate, CellOutcome, CellRecord, FailedCell, SWEEP_SCHEMA, SweepEstimate, SweepFiles,
    SweepListing, SweepRecord, alone_once, joined,
};
pub use sweep_table::{TABLE_FORMS, Tidy, cells_of_table};

/// The JSON Schema (2020-12) of the record of `analyze`: every key with its type and meaning.
pub const RECORD_SCHEMA: &str = include_str!("record.schema.json");

/// Leaves a count out of a document where there is nothing to count.
pub(crate) fn is_zero<T: Default + PartialEq>(count: &T) -> bool {
    *count == T::default()
}
