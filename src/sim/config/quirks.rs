//! What machines do differently from hardware.

use serde::{Deserialize, Serialize};

/// What a given machine does differently from hardware; each is off by default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quirks {
    /// A warp's instruction buffer holds this many and is refilled only when
    /// empty; 0: fetch never limits.
    pub instruction_buffer: u32,
    /// Cycles from the issue of the buffer's last instruction, beyond the next
    /// one, until the refilled buffer issues again.
    pub refetch_cycles: u32,
    /// Memory instructions in front of the load/store unit that together have all
    /// operand collectors: then a scheduler issues nothing, unless its warps could
    /// fill all of its slots; 0: collectors never limit.
    pub collector_queue: u32,
    /// Only the registers that the trace lists carry dependencies: a wide load
    /// covers its first register alone.
    pub listed_registers_only: bool,
    /// Kernels run one at a time, whatever their streams.
    pub serial_kernels: bool,
    /// A grid smaller than the GPU's room is spread over all SMs.
    pub spreads_small_grids: bool,
    /// Registers and shared memory of an SM are counted: a CTA's need not lie in one
    /// piece.
    pub pools_storage: bool,
    /// Every barrier instruction waits at barrier 0 of the whole CTA.
    pub whole_cta_barriers: bool,
    /// Predicates carry no dependency.
    pub ignores_predicates: bool,
    /// DRAM is never refreshed.
    pub no_refresh: bool,
    /// Texture instructions take a fixed time and touch no memory.
    pub textures_are_latency: bool,
}
