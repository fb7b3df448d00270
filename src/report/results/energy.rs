//! Where the energy of a run went.

use serde::{Deserialize, Serialize};

/// Energy in joules by what took it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EnergyRecord {
    /// Leakage and constant power of the GPU without its memory.
    pub static_joules: f64,
    /// Background power of the memory.
    pub dram_static_joules: f64,
    /// Instructions of threads, register file included.
    pub instructions_joules: f64,
    /// Look-ups of L1 and shared memory.
    pub l1_joules: f64,
    /// Sectors over the crossbar.
    pub interconnect_joules: f64,
    /// Look-ups of the L2.
    pub l2_joules: f64,
    /// Sectors over the pins of the memory.
    pub dram_joules: f64,
    /// Activates of DRAM rows.
    pub activates_joules: f64,
    /// Columns of pages that the memory copied itself.
    #[serde(default)]
    pub migrations_joules: f64,
}

impl EnergyRecord {
    /// What the memory took: background, pins, activates and copies of its own.
    #[must_use]
    pub fn memory_joules(&self) -> f64 {
        self.dram_static_joules + self.dram_joules + self.activates_joules + self.migrations_joules
    }

    /// The sum of all parts.
    #[must_use]
    pub fn total_joules(&self) -> f64 {
        self.static_joules
            + self.dram_static_joules
            + self.instructions_joules
            + self.l1_joules
            + self.interconnect_joules
            + self.l2_joules
            + self.dram_joules
            + self.activates_joules
            + self.migrations_joules
    }
}
