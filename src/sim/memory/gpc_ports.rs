//! The ports of the GPCs, through which the answers of the L2 go to their SMs.

use super::kilohertz;
use crate::config::Machine;
use gpumodel_core::units::SECTOR_BYTES;

/// Bits of a fraction of a time of the crossbar.
const FRACTION: u32 = 16;

/// What the SMs of a GPC get together, where that is limited.
#[derive(Debug)]
pub(super) struct GpcPorts {
    /// The GPC of each SM.
    of: Vec<u16>,
    /// By GPC, when its port is free, in 1/2^`FRACTION` of the crossbar's times.
    free_at: Vec<u64>,
    /// What a sector takes of a port, in the same.
    sector: u64,
}

impl GpcPorts {
    /// Those of `machine`, where they limit anything; times are in 1/2^`shift` core cycles.
    pub(super) fn new(machine: &Machine, shift: u32) -> Option<Self> {
        let cluster = machine.cluster.as_ref()?;
        let bytes = u64::from(cluster.gpc_bytes_per_l2_cycle);
        let sms = machine.dispatch.sms;
        let core = (SECTOR_BYTES * kilohertz(machine.clocks.core_mhz)) << (shift + FRACTION);
        (bytes > 0).then(|| Self {
            of: (0..sms).map(|sm| cluster.gpc_of(sm, sms)).collect(),
            free_at: vec![0; usize::from(cluster.gpcs)],
            sector: core / (bytes * kilohertz(machine.clocks.l2_mhz).max(1)),
        })
    }

    /// When sectors for an SM that come at `at` have the port of its GPC.
    pub(super) fn pass(&mut self, sm: u16, sectors: u64, at: u64) -> u64 {
        // Page walkers have no GPC.
        let Some(&gpc) = self.of.get(usize::from(sm)) else { return at };
        let free_at = &mut self.free_at[usize::from(gpc)];
        let start = (at << FRACTION).max(*free_at);
        *free_at = start + sectors * self.sector;
        start.div_ceil(1 << FRACTION)
    }
}

#[cfg(test)]
mod tests {
    use super::GpcPorts;
    use crate::config::Models;

    #[test]
    fn the_sms_of_a_gpc_share_its_port() {
        let mut machine = Models::builtin().machine("h100", &[]).unwrap().machine;
        let bytes = |machine: &mut crate::config::Machine, bytes| {
            machine.cluster.as_mut().unwrap().gpc_bytes_per_l2_cycle = bytes;
        };
        machine.clocks.l2_mhz = machine.clocks.core_mhz;
        bytes(&mut machine, 0);
        assert!(GpcPorts::new(&machine, 8).is_none());
        bytes(&mut machine, 256);
        let mut ports = GpcPorts::new(&machine, 8).unwrap();
        // Lines of 128 bytes take half a cycle each; the last four SMs lie in other GPCs.
        let mut starts = |sms: [u16; 4]| sms.map(|sm| ports.pass(sm, 4, 1000 << 8));
        assert_eq!(starts([0, 1, 2, 3]), [0, 1, 2, 3].map(|n| (1000 << 8) + n * 128));
        assert_eq!(starts([20, 40, 60, 80]), [1000 << 8; 4]);
        assert_eq!(starts([132; 4]), [1000 << 8; 4], "page walkers");
        machine.clocks.l2_mhz = machine.clocks.core_mhz / 2.0;
        bytes(&mut machine, 1096);
        let mut ports = GpcPorts::new(&machine, 8).unwrap();
        let last = (0..=548).map(|_| ports.pass(0, 4, 0)).last();
        assert_eq!(last, Some(128 << 8), "548 lines of 128 bytes");
    }
}
