//! How busy the SMs were (Warped-Slicer, table II and Fig. 7a).

use serde::{Deserialize, Serialize};

/// Shares from 0 to 1, means over all SMs and cycles of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UtilizationRecord {
    /// Issue capacity of the arithmetic units that was used.
    pub alu: f64,
    /// The same of the special function units.
    pub sfu: f64,
    /// The same of the load/store units.
    pub load_store: f64,
    /// Registers that resident CTAs held.
    pub registers: f64,
    /// Shared memory that resident CTAs held.
    pub shared: f64,
}
