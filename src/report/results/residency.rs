//! Who ran where over time.

use serde::{Deserialize, Serialize};

use gpumodel_core::units::Cycle;

/// Resident CTAs by SM and application on a grid of equal intervals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResidencyRecord {
    /// Length of an interval; the last one may end later than the run.
    pub interval_cycles: Cycle,
    /// One row per SM and application that was ever there, by SM, then application.
    pub rows: Vec<ResidencyRow>,
}

/// One application on one SM.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResidencyRow {
    /// Which SM.
    pub sm: u32,
    /// Position of the application in [`super::CoRun::apps`].
    pub app_index: u32,
    /// Resident CTAs in each interval from cycle 0 on, mean over the interval; none
    /// after the end of the list.
    pub ctas: Vec<f64>,
}

impl ResidencyRecord {
    /// Most intervals of a record.
    pub const INTERVALS: usize = 128;
}
