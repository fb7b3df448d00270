//! What an SM needs of the machine beyond its parts.

use crate::config::{Machine, SharedSpec, WarpPlacement};

use gpumodel_core::units::to_usize;

use super::lead::Lead;
use crate::sm::coalesce::LINE_BYTES;

/// Figures of the machine file, as the SM counts with them.
#[derive(Clone, Debug)]
pub(super) struct Params {
    pub(super) shared: SharedSpec,
    pub(super) l1_latency: u64,
    pub(super) l1_banks: u32,
    pub(super) l1_bank_bytes: u64,
    /// Caches have whole lines, not sectors.
    pub(super) whole_lines: bool,
    pub(super) return_time: u64,
    pub(super) tags_per_cycle: u32,
    pub(super) caches_global: bool,
    pub(super) max_warps: u32,
    /// See [`crate::config::Quirks::collector_queue`]; beyond reach where it is 0.
    pub(super) collectors: usize,
    pub(super) lead: Lead,
    pub(super) translates_before_l1: bool,
    pub(super) placement: WarpPlacement,
    /// See [`crate::config::SmSpec::memory_issue_cycles`].
    pub(super) memory_issue: u64,
    /// See [`crate::config::SmSpec::exit_cycles`].
    pub(super) exit_cycles: u64,
}

impl Params {
    /// Those of `machine`.
    pub(super) fn new(machine: &Machine) -> Self {
        Self {
            shared: machine.shared.clone(),
            l1_latency: u64::from(machine.l1.latency_cycles),
            l1_banks: machine.l1.banks.max(1),
            l1_bank_bytes: u64::from(machine.l1.bank_bytes),
            whole_lines: u64::from(machine.l1.cache.sector_bytes) == LINE_BYTES,
            return_time: u64::from(machine.l1.returns_per_cycle > 0),
            tags_per_cycle: machine.l1.tags_per_cycle.max(1),
            caches_global: machine.l1.caches_global,
            max_warps: machine.sm.max_warps,
            collectors: match machine.quirks.collector_queue {
                0 => usize::MAX,
                queue => to_usize(queue),
            },
            lead: Lead::new(machine),
            translates_before_l1: machine.translation.as_ref().is_some_and(|t| t.before_l1),
            placement: machine.sm.warp_placement,
            memory_issue: u64::from(machine.sm.memory_issue_cycles),
            exit_cycles: u64::from(machine.sm.exit_cycles),
        }
    }
}
