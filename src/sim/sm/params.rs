//! What an SM needs of the machine beyond its parts.

use gpumodel_core::isa::Unit;
use gpumodel_core::units::{SECTOR_BYTES, to_u32, to_usize};

use crate::config::{L1Data, Machine, RequestGranularity, SharedSpec, WarpPlacement};
use crate::sm::cluster::ClusterParams;
use crate::sm::coalesce::{LINE_BYTES, Reach};
use crate::sm::scheduler::issue_interval::IssueInterval;

/// Figures of the machine file, as the SM counts with them.
#[derive(Clone, Debug)]
pub(super) struct Params {
    pub(super) shared: SharedSpec,
    pub(super) l1_latency: u64,
    pub(super) l1_banks: u32,
    pub(super) l1_bank_bytes: u64,
    pub(super) l1_by_word: bool,
    /// What one request asks for.
    pub(super) reach: Reach,
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
    /// See [`crate::config::SmSpec::barrier_cycles`].
    pub(super) barrier_cycles: u64,
    /// See [`crate::config::SmSpec::barrier_arrival_cycles`].
    pub(super) barrier_arrival: u64,
    /// See [`crate::config::SmSpec::leaves_at_any_wait`].
    pub(super) leaves_at_any_wait: bool,
    /// See [`crate::config::SmSpec::bulk_copy_cycles`].
    pub(super) bulk_copy: u64,
    /// See [`crate::config::Quirks::accesses_null`].
    pub(super) accesses_null: bool,
    /// See [`crate::config::Cluster`].
    pub(super) cluster: ClusterParams,
}

impl Params {
    /// Those of `machine`.
    ///
    /// `block_bytes`: see [`crate::memory::MemorySystem::block_bytes`].
    pub(super) fn new(machine: &Machine, block_bytes: u64) -> Self {
        let sectors = to_u32(block_bytes / SECTOR_BYTES);
        let reach = match machine.interconnect.request_granularity {
            RequestGranularity::Line => Reach::Block { sectors, alike: false },
            RequestGranularity::Sector
                if u64::from(machine.l1.cache.sector_bytes) == LINE_BYTES =>
            {
                Reach::WholeLine
            }
            RequestGranularity::Sector => Reach::Sector,
        };
        Self {
            shared: machine.shared.clone(),
            accesses_null: machine.quirks.accesses_null,
            l1_latency: u64::from(machine.l1.latency_cycles),
            l1_banks: machine.l1.banks.max(1),
            l1_bank_bytes: u64::from(machine.l1.bank_bytes),
            l1_by_word: machine.l1.data == L1Data::Word,
            reach,
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
            barrier_cycles: u64::from(machine.sm.barrier_cycles.max(1)),
            barrier_arrival: u64::from(machine.sm.barrier_arrival_cycles),
            leaves_at_any_wait: machine.sm.leaves_at_any_wait,
            bulk_copy: u64::from(machine.sm.bulk_copy_cycles),
            cluster: ClusterParams::new(machine),
        }
    }
}

impl Params {
    /// Whether requests go by line.
    #[inline]
    pub(super) fn by_line(&self) -> bool {
        matches!(self.reach, Reach::Block { .. })
    }
}

/// The rule of one machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lead {
    /// Port cycles of the memory unit that a scheduler has per cycle.
    ports: f64,
    /// The shortest way that starts at the issue.
    most: f64,
}

impl Lead {
    /// The rule of `machine`. A port that schedulers share holds an instruction
    /// until its turn: what follows counts from there.
    pub(super) fn new(machine: &Machine) -> Self {
        let schedulers = f64::from(machine.sm.schedulers.max(1));
        let count = machine.units.get(Unit::Memory.name()).map_or(0.0, |u| f64::from(u.count));
        let clocks = &machine.clocks;
        let crossing = f64::from(machine.interconnect.latency_cycles) * clocks.core_mhz
            / clocks.interconnect_mhz;
        let latencies = [machine.l1.latency_cycles, machine.shared.latency_cycles].map(f64::from);
        let ports = count / schedulers;
        let most = latencies.into_iter().fold(crossing, f64::min);
        Self { ports, most: if ports < 1.0 { 0.0 } else { most } }
    }

    /// Cycles from the issue of an interval's last instruction to the interval's end,
    /// when the interval runs alone.
    pub(super) fn of(&self, interval: &IssueInterval) -> u32 {
        let port = f64::from(interval.demand[Unit::Memory.index()]) / self.ports;
        let lead = (1.0 + (port - interval.cycles).max(0.0)).min(self.most);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and a latency"
        )]
        let whole = lead as u32;
        whole
    }
}
