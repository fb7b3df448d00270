//! The part of a machine on which samples run.

use gpumodel_core::units::Cycle;
use gpumodel_sim::config::Machine;

use crate::memory::Memory;

/// The largest relative deviation of SMs per channel from the machine's.
const MISMATCH: f64 = 0.03;

/// The fewest SMs of a part: an interval needs more than one.
const MIN_SMS: u32 = 2;

/// A machine with fewer SMs, L2 slices and channels, all in proportion: each SM has as large a
/// share of the memory system as in the whole machine.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    /// The part.
    pub(super) machine: Machine,
    /// Its memory: the address map of the whole, folded onto fewer channels.
    pub(super) memory: Memory,
    /// SMs of the whole machine.
    pub(super) whole_sms: u32,
    /// Cycles between two dispatches of CTAs.
    pub(super) cta_interval: Cycle,
}

impl Scale {
    /// The smallest part of `machine` that keeps its proportions; `None` if there is none of at
    /// most half the SMs.
    pub(super) fn of(machine: &Machine, memory: &Memory) -> Option<Self> {
        let (channels, sms) = (machine.dram.channels, u32::from(machine.dispatch.sms));
        let parts = (1..=channels / 2).filter(|kept| channels.is_multiple_of(*kept));
        let (kept, chosen) = parts
            .map(|kept| (kept, sms_for(machine, kept)))
            .find(|&(kept, chosen)| fits(machine, kept, chosen))?;
        let mut part = machine.clone();
        part.dispatch.sms = u16::try_from(chosen).ok()?;
        part.dram.channels = kept;
        part.l2.slices = machine.l2.slices / channels * kept;
        let map = memory.map.clone().folded(kept);
        // To the nearest whole number of cycles.
        let per_cycle = chosen * machine.dispatch.ctas_per_cycle.max(1);
        part.dispatch.ctas_per_cycle = 1;
        let cta_interval = u64::from((2 * sms + per_cycle) / (2 * per_cycle)).max(1);
        let memory = Memory { map, ..memory.clone() };
        Some(Self { machine: part, memory, whole_sms: sms, cta_interval })
    }

    /// SMs of the whole machine for one of the part.
    pub(super) fn times(&self) -> f64 {
        f64::from(self.whole_sms) / f64::from(self.sms())
    }

    /// SMs of the part.
    pub(super) fn sms(&self) -> u32 {
        u32::from(self.machine.dispatch.sms)
    }
}

/// SMs for `kept` channels: the nearest whole number of ports.
fn sms_for(machine: &Machine, kept: u32) -> u32 {
    let port = machine.interconnect.sms_per_port.max(1);
    let per_channel = machine.dram.channels * port;
    let ports = (u32::from(machine.dispatch.sms) * kept * 2 + per_channel) / (per_channel * 2);
    ports * port
}

fn fits(machine: &Machine, kept: u32, chosen: u32) -> bool {
    let exact =
        f64::from(u32::from(machine.dispatch.sms) * kept) / f64::from(machine.dram.channels);
    let half = chosen * 2 <= u32::from(machine.dispatch.sms);
    chosen >= MIN_SMS && half && (f64::from(chosen) / exact - 1.0).abs() <= MISMATCH
}

#[cfg(test)]
mod tests {
    use super::{Memory, Scale};

    #[test]
    fn a_part_keeps_the_proportions_of_the_whole() {
        let models = crate::models(None).unwrap();
        for (name, sms, channels) in [("v100", 5, 2), ("rtx-2060", 5, 2)] {
            let machine = models.machine(name, &[]).unwrap().machine;
            let memory = Memory::load(&machine, &models).unwrap();
            let part = Scale::of(&machine, &memory).unwrap().machine;
            assert_eq!((u32::from(part.dispatch.sms), part.dram.channels), (sms, channels));
            let per_channel = |m: &gpumodel_sim::config::Machine| m.l2.slices / m.dram.channels;
            assert_eq!(per_channel(&part), per_channel(&machine), "{name}");
        }
    }
}
