//! The ports of the GPCs, through which the answers of the L2 go to their SMs.

use crate::config::Machine;
use gpumodel_core::units::SECTOR_BYTES;

/// What the SMs of a GPC get together, where that is limited.
#[derive(Debug)]
pub(super) struct GpcPorts {
    /// The GPC of each SM.
    of: Vec<u16>,
    /// By GPC, when its port is free, times `bytes`: so no fraction of a cycle is lost.
    free_at: Vec<u64>,
    /// Bytes per cycle of a port.
    bytes: u64,
    shift: u32,
}

impl GpcPorts {
    /// Those of `machine`, where they limit anything; times are in 1/2^`shift` cycles.
    pub(super) fn new(machine: &Machine, shift: u32) -> Option<Self> {
        let cluster = machine.cluster.as_ref()?;
        let bytes = u64::from(cluster.gpc_bytes_per_cycle);
        let sms = machine.dispatch.sms;
        (bytes > 0).then(|| Self {
            of: (0..sms).map(|sm| cluster.gpc_of(sm, sms)).collect(),
            free_at: vec![0; usize::from(cluster.gpcs)],
            bytes,
            shift,
        })
    }

    /// When sectors for an SM that come at `at` have the port of its GPC.
    pub(super) fn pass(&mut self, sm: u16, sectors: u64, at: u64) -> u64 {
        // Page walkers have no GPC.
        let Some(&gpc) = self.of.get(usize::from(sm)) else { return at };
        let free_at = &mut self.free_at[usize::from(gpc)];
        let start = (at * self.bytes).max(*free_at);
        *free_at = start + ((sectors * SECTOR_BYTES) << self.shift);
        start.div_ceil(self.bytes)
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
            machine.cluster.as_mut().unwrap().gpc_bytes_per_cycle = bytes;
        };
        bytes(&mut machine, 0);
        assert!(GpcPorts::new(&machine, 8).is_none());
        bytes(&mut machine, 256);
        let mut ports = GpcPorts::new(&machine, 8).unwrap();
        // Lines of 128 bytes take half a cycle each; the last four SMs lie in other GPCs.
        let mut starts = |sms: [u16; 4]| sms.map(|sm| ports.pass(sm, 4, 1000 << 8));
        assert_eq!(starts([0, 1, 2, 3]), [0, 1, 2, 3].map(|n| (1000 << 8) + n * 128));
        assert_eq!(starts([20, 40, 60, 80]), [1000 << 8; 4]);
        assert_eq!(starts([132; 4]), [1000 << 8; 4], "page walkers");
        bytes(&mut machine, 548);
        let mut ports = GpcPorts::new(&machine, 8).unwrap();
        let last = (0..=548).map(|_| ports.pass(0, 4, 0)).last();
        assert_eq!(last, Some(128 << 8), "548 lines of 128 bytes");
    }
}
