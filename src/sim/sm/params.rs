//! What an SM needs of the machine beyond its parts.

use gpumodel_core::isa::Unit;

use crate::config::Machine;
use crate::sm::scheduler::issue_interval::IssueInterval;

/// Figures of the machine file, as the SM counts with them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Params {
    /// What one scheduler has of [`crate::config::Quirks::collector_queue`]; `None`: collectors
    /// never limit.
    pub(super) collectors: Option<u32>,
    pub(super) lead: Lead,
    /// See [`crate::config::SmSpec::exit_cycles`].
    pub(super) exit_cycles: u64,
    /// See [`crate::config::SmSpec::posted_stores`].
    pub(super) posted_stores: bool,
    /// See [`crate::config::SmSpec::bulk_copy_cycles`].
    pub(super) bulk_copy: u64,
}

impl Params {
    /// Those of `machine`.
    pub(super) fn new(machine: &Machine) -> Self {
        Self {
            collectors: match machine.quirks.collector_queue {
                0 => None,
                queue => Some(queue.div_ceil(machine.sm.schedulers.max(1))),
            },
            lead: Lead::new(machine),
            exit_cycles: u64::from(machine.sm.exit_cycles),
            posted_stores: machine.sm.posted_stores,
            bulk_copy: u64::from(machine.sm.bulk_copy_cycles),
        }
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
