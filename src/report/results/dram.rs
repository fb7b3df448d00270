//! The result of running one memory channel alone.

use serde::{Deserialize, Serialize};

/// What `gpumodel dram` reports. The keys are a contract: added, never renamed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DramRecord {
    /// Always `gpumodel.dram/1`.
    pub schema: String,
    /// The memory standard.
    pub spec: String,
    /// Requests of the file.
    pub requests: u64,
    /// Native accesses of all requests.
    pub accesses: u64,
    /// Clock at which the last read returned or the last write was done.
    pub cycles: u64,
    /// Clock of the last read's last data beat.
    pub last_read_done_cycle: u64,
    /// Bytes moved over bytes that the data bus could have moved in `cycles`.
    pub bandwidth_utilization: f64,
    /// Read requests: from acceptance of the first access to the last data beat.
    pub mean_read_latency_cycles: f64,
    /// The same, 99th percentile.
    pub p99_read_latency_cycles: f64,
    /// Accesses whose row was open when their first command was sent.
    pub row_hits: u64,
    /// Accesses whose bank was closed then.
    pub row_misses: u64,
    /// Accesses whose bank had another row open then.
    pub row_conflicts: u64,
    /// ACT commands.
    pub activates: u64,
    /// REFab and REFpb commands.
    pub refreshes: u64,
    /// RD and RDA commands.
    pub reads: u64,
    /// WR and WRA commands.
    pub writes: u64,
    /// Memory command clock in kHz.
    pub clock_khz: u64,
    /// What `--set` changed, as typed.
    pub overrides: std::collections::BTreeMap<String, String>,
}

impl DramRecord {
    /// The value of [`DramRecord::schema`].
    pub const SCHEMA: &'static str = "gpumodel.dram/1";
}
