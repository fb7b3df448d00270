//! How long before the end of its interval a memory instruction issued.
//!
//! An interval ends when the unit's port has taken its last instruction, which is the
//! one with addresses; latencies of the caches count from that one's issue.

use crate::config::Machine;
use gpumodel_core::isa::Unit;

use super::issue_interval::IssueInterval;

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
