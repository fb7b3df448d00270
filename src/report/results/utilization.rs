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

/// Shares of resources, each from 0 to 1, by name.
///
/// Of an SM that is full with CTAs of a launch (ARCS 2018, Fig. 2): `registers`,
/// `shared`, `threads`, `cta_slots`. Of a launch while it runs (Fig. 7): `int`, `fp32`,
/// `fp64`, `half`, `sfu`, ... of issue capacity, as far as the launch uses the unit;
/// `shared` of the passes of shared memory (one per cycle and SM), `l1` and `l2` of
/// sector look-ups, `dram` of the pins.
pub type UnitShares = std::collections::BTreeMap<String, f64>;
