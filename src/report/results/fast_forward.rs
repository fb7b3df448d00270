//! What a fast-forwarded run passed over.

use gpumodel_core::units::Cycle;
use serde::{Deserialize, Serialize};

/// Stretches of an application's run in which every launch advanced steadily and that were
/// passed over. Instructions of a stretch are counted exactly; its other counters are
/// extrapolated from the windows before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FastForwardRecord {
    /// Cycles among `cycles` that were passed over.
    pub cycles: Cycle,
    /// Stretches.
    pub stretches: u32,
    /// Half the 95 % interval of `cycles` (of the instructions where the application did not
    /// finish), as a part of it: from the spread of the windows before each stretch, the change
    /// of the rate across it, 2 % of the cycles passed over, and 0.2 % of all.
    pub interval: f64,
}
