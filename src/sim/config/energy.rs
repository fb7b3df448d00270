//! Energy per event and static power of a machine.

use serde::{Deserialize, Serialize};

/// What events cost, in picojoules, and what time costs, in watts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Energy {
    /// Leakage and constant power of the whole GPU without its memory.
    pub static_watts: f64,
    /// Background power of the memory.
    pub dram_static_watts: f64,
    /// One instruction of one thread, register file and shared memory included.
    pub thread_instruction_pj: f64,
    /// One 32-byte sector looked up in an L1.
    pub l1_sector_pj: f64,
    /// One 32-byte sector over the crossbar, one way.
    pub interconnect_sector_pj: f64,
    /// One 32-byte sector looked up in the L2.
    pub l2_sector_pj: f64,
    /// One 32-byte sector to or from memory, interface included.
    pub dram_sector_pj: f64,
    /// One row activation with its precharge.
    pub dram_activate_pj: f64,
    /// One 128-byte column out of a bank or into one, without the interface, where the
    /// memory copies pages itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dram_migrate_pj: Option<f64>,
}
