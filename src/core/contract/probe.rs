//! Questions that a scheme asks before it starts.

use serde::{Deserialize, Serialize};

use crate::units::{AppId, Cycle};

use super::{ChannelUse, Plan};

/// "Run these applications under this static plan for this long and tell me."
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// The applications that run.
    pub apps: Vec<AppId>,
    /// The plan they run under, unchanged to the end.
    pub plan: Plan,
    /// Length in cycles; `None`: until the end that the run itself has.
    pub window: Option<Cycle>,
    /// Only the fastest of the probes that race matters: one whose clock has passed
    /// the best finished one may stop there. The fastest one never stops early.
    pub race: bool,
}

/// The answer to one [`Probe`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeResult {
    /// Length of the run; [`Cycle::MAX`] where it lost its race and stopped.
    pub cycles: Cycle,
    /// One row per application of the probe, in its order.
    pub apps: Vec<ProbeApp>,
}

/// One application's row of a [`ProbeResult`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeApp {
    /// Which application.
    pub app: AppId,
    /// Cycles until it finished, or the window.
    pub cycles: Cycle,
    /// Warp instructions.
    pub warp_instructions: u64,
    /// Thread instructions.
    pub thread_instructions: u64,
    /// Sector requests to L1.
    pub l1_accesses: u64,
    /// L1 hits among them.
    pub l1_hits: u64,
    /// Sector requests to L2.
    pub l2_accesses: u64,
    /// L2 hits among them.
    pub l2_hits: u64,
    /// Those of the hits whose sector was in flight already.
    pub l2_merged: u64,
    /// Bytes over the DRAM pins.
    pub dram_bytes: u64,
    /// What all memory channels have done.
    pub channels: ChannelUse,
    /// Single-precision operations of all lanes, a multiply-add counted as two; by the
    /// part of its trace that it came through.
    pub flops: f64,
    /// Memory instructions among the warp instructions.
    pub memory_instructions: u64,
    /// Share of scheduler slot-cycles lost to long memory latency, 0 to 1.
    pub memory_stall_fraction: f64,
}
