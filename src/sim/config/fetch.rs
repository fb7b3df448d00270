//! Instruction caches of a machine.

use serde::{Deserialize, Serialize};

/// The way of instructions to the schedulers: inner caches next to them (L0),
/// an outer cache of the SM (L1 or L1.5), then the L2. Latencies in core cycles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fetch {
    /// Bytes of a line, at all levels of the SM.
    pub line_bytes: u32,
    /// Inner caches of an SM; the schedulers share them evenly.
    pub inner_caches: u32,
    /// Bytes of one inner cache.
    pub inner_bytes: u32,
    /// Its ways.
    pub inner_ways: u32,
    /// Bytes of the outer cache.
    pub outer_bytes: u32,
    /// Its ways.
    pub outer_ways: u32,
    /// Cycles from a miss of an inner cache until a line of the outer one is there.
    pub outer_latency_cycles: u32,
    /// Cycles from one line that the outer cache delivers to the next.
    pub outer_interval_cycles: u32,
    /// Lines that the outer cache may await from the L2 at a time.
    pub outer_outstanding: u32,
    /// Lines that follow a line and are fetched with it.
    pub prefetch_lines: u32,
}
