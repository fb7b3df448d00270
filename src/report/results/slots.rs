//! Scheduler slot-cycles as a cycle simulator tells them apart.
//!
//! | simulator (`scheduler_*`) | causes of a record |
//! |---|---|
//! | `issued` | issued |
//! | `stall_pipe`: ready, its pipe is full | execution_resource |
//! | `idle`: no warp has a valid instruction | instruction_buffer_empty, barrier, idle |
//! | `scoreboard`: valid, operands not ready | long_memory_latency, short_raw |
//!
//! The simulator counts an SM only while it has work, a record all SMs from the
//! first CTA on: what lies outside [`KernelRecord::held_slot_fraction`] is taken
//! off `idle` first. It books a slot to one cause where a record shares it out
//! among the waiting warps, so agreement to a few points is all there can be.

use std::collections::BTreeMap;

use super::KernelRecord;
use super::quantity::float;

/// Shares of the slot-cycles of SMs that have work; they sum to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotShares {
    /// An instruction issued.
    pub issued: f64,
    /// A ready instruction found its pipe full.
    pub pipe: f64,
    /// No warp had an instruction.
    pub idle: f64,
    /// Operands were not ready.
    pub scoreboard: f64,
}

impl SlotShares {
    /// From slot-cycles in the order of the fields; `None` when there are none.
    pub(super) fn of_counts([issued, pipe, idle, scoreboard]: [f64; 4]) -> Option<Self> {
        let whole = issued + pipe + idle + scoreboard;
        (whole > 0.0).then(|| Self {
            issued: issued / whole,
            pipe: pipe / whole,
            idle: idle / whole,
            scoreboard: scoreboard / whole,
        })
    }

    /// From a launch, or what [`mean`] made of several; `None` where the record
    /// does not say which slot-cycles had work.
    pub(super) fn of_record(kernel: &KernelRecord) -> Option<Self> {
        let held = kernel.held_slot_fraction?;
        let share = |cause: &str| kernel.stall_fractions.get(cause).copied().unwrap_or(0.0);
        let idle = (share("idle") - (1.0 - held)).max(0.0);
        Self::of_counts([
            share("issued"),
            share("execution_resource"),
            idle + share("instruction_buffer_empty") + share("barrier"),
            share("long_memory_latency") + share("short_raw"),
        ])
    }
}

/// Shares by cause over several launches, and how much of it had work: the means
/// weighted by cycles beyond launch.
pub(super) fn mean(kernels: &[&KernelRecord]) -> (BTreeMap<String, f64>, Option<f64>) {
    let weight = |kernel: &KernelRecord| float(kernel.cycles.saturating_sub(kernel.launch_cycles));
    let whole: f64 = kernels.iter().map(|kernel| weight(kernel)).sum();
    let mut shares = BTreeMap::new();
    let mut held = Some(0.0);
    if whole <= 0.0 {
        return (shares, None);
    }
    for kernel in kernels {
        let part = weight(kernel) / whole;
        for (cause, share) in &kernel.stall_fractions {
            *shares.entry(cause.clone()).or_default() += part * share;
        }
        held = held.zip(kernel.held_slot_fraction).map(|(sum, one)| sum + part * one);
    }
    (shares, held)
}
