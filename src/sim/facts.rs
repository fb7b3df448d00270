//! The facts of a machine that schemes get.

use gpumodel_core::contract::Facts;
use gpumodel_core::units::{SECTOR_BYTES, WARP_LANES};

use crate::config::{AddressMap, Machine, MemoryStandard, PageChannels};

/// The facts of a machine and its memory, without applications.
///
/// # Panics
/// Never: a warp has 32 lanes.
#[must_use]
pub fn machine_facts(
    machine: &Machine,
    standard: &MemoryStandard,
    map: &AddressMap,
    peak_dram_gb_per_s: f64,
) -> Facts {
    let pages = machine.translation.as_ref();
    let channels = pages.and_then(|spec| PageChannels::of(map, spec.page_bytes));
    let slices = f64::from(machine.l2.slices * machine.l2.accesses_per_cycle);
    let lanes = u32::try_from(WARP_LANES).expect("a warp has 32 lanes");
    Facts {
        sms: machine.dispatch.sms,
        max_ctas_per_sm: machine.sm.max_ctas,
        max_warps_per_sm: machine.sm.max_warps,
        registers_per_sm: machine.sm.registers,
        shared_bytes_per_sm: machine.shared.bytes,
        register_unit: machine.sm.register_unit,
        shared_unit_bytes: machine.shared.unit_bytes,
        shared_reserved_bytes: machine.shared.reserved_bytes_per_cta,
        channels: machine.dram.channels,
        channel_groups: channels.map_or_else(Vec::new, |pages| pages.groups().to_vec()),
        channel_bytes: standard.channel_bytes(),
        page_bytes: pages.map_or(0, |spec| spec.page_bytes),
        pages_follow: pages.is_some_and(|spec| !spec.ideal),
        core_mhz: machine.clocks.core_mhz,
        peak_dram_gb_per_s,
        peak_l2_gb_per_s: slices * SECTOR_BYTES as f64 * machine.clocks.l2_mhz / 1000.0,
        peak_sm_port_gb_per_s: port_gb_per_s(machine),
        peak_ipc_per_sm: f64::from(machine.sm.schedulers * machine.sm.issue_width * lanes),
        schedulers_per_sm: machine.sm.schedulers,
        mig: machine.mig.as_ref().and_then(|mig| mig.facts(machine)),
        apps: Vec::new(),
    }
}

/// Bandwidth of an SM's crossbar port; a sector per cycle if packets are not cut into flits.
fn port_gb_per_s(machine: &Machine) -> f64 {
    let port = &machine.interconnect;
    let sector = u32::try_from(SECTOR_BYTES).expect("a sector has 32 bytes");
    let bytes = if port.flit_bytes == 0 { sector } else { port.flit_bytes };
    f64::from(bytes) * machine.clocks.interconnect_mhz / 1000.0 / f64::from(port.sms_per_port)
}
