//! The facts that schemes get before a run starts.

use gpumodel_core::contract::{AppFacts, Facts, KernelFacts};
use gpumodel_core::units::{AppId, Cycle, SECTOR_BYTES, WARP_LANES, to_u16};
use gpumodel_feed::StoreFeed;
use gpumodel_report::results::MachineRecord;
use gpumodel_sim::config::{Machine, PageChannels, Resolved};
use gpumodel_sim::{Need, Program};

use crate::RunContext;
use crate::memory::Memory;

/// The facts of applications on a machine: their names, launches and arrivals.
pub(super) fn facts(ctx: &RunContext<'_>, apps: &[(&str, &StoreFeed<'_>, Cycle)]) -> Facts {
    let machine = &ctx.resolved.machine;
    let peaks = peaks(ctx.resolved, ctx.memory);
    let lanes = u32::try_from(WARP_LANES).expect("a warp has 32 lanes");
    let app = |(index, &(name, feed, arrival)): (usize, &(&str, &StoreFeed<'_>, Cycle))| {
        let kernels = feed.programs().iter().enumerate();
        let kernels =
            kernels.map(|(index, program)| kernel(machine, program, feed.warp_instructions(index)));
        AppFacts {
            app: AppId(to_u16(index)),
            name: name.to_owned(),
            arrival,
            kernels: kernels.collect(),
        }
    };
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
        channel_groups: channel_groups(machine, ctx.memory),
        channel_bytes: ctx.memory.standard.channel_bytes(),
        page_bytes: machine.translation.as_ref().map_or(0, |spec| spec.page_bytes),
        pages_follow: machine.translation.as_ref().is_some_and(|spec| !spec.ideal),
        core_mhz: machine.clocks.core_mhz,
        peak_dram_gb_per_s: peaks.peak_dram_gb_per_s,
        peak_l2_gb_per_s: peaks.peak_l2_gb_per_s,
        peak_sm_port_gb_per_s: port_gb_per_s(machine),
        peak_ipc_per_sm: f64::from(machine.sm.schedulers * machine.sm.issue_width * lanes),
        schedulers_per_sm: machine.sm.schedulers,
        apps: apps.iter().enumerate().map(app).collect(),
    }
}

/// Bandwidth of an SM's crossbar port; a sector per cycle if packets are not cut into flits.
fn port_gb_per_s(machine: &Machine) -> f64 {
    let port = &machine.interconnect;
    let sector = u32::try_from(SECTOR_BYTES).expect("a sector has 32 bytes");
    let bytes = if port.flit_bytes == 0 { sector } else { port.flit_bytes };
    f64::from(bytes) * machine.clocks.interconnect_mhz / 1000.0 / f64::from(port.sms_per_port)
}

/// The groups of channels between which pages are divided; empty if pages span all channels.
fn channel_groups(machine: &Machine, memory: &Memory) -> Vec<Vec<u32>> {
    let pages = machine.translation.as_ref();
    let pages = pages.and_then(|spec| PageChannels::of(&memory.map, spec.page_bytes));
    pages.map_or_else(Vec::new, |pages| pages.groups().to_vec())
}

fn kernel(machine: &Machine, program: &Program, warp_instructions: u64) -> KernelFacts {
    let need = Need::of(&program.launch, machine);
    KernelFacts {
        name: program.launch.name.clone(),
        ctas: program.ctas,
        threads_per_cta: u32::try_from(program.launch.block.count()).unwrap_or(u32::MAX),
        warps_per_cta: need.warps,
        registers_per_thread: program.launch.registers,
        shared_bytes: program.launch.shared_bytes,
        registers_per_cta: need.registers,
        shared_bytes_per_cta: need.shared_bytes,
        ctas_per_sm: need.fits(machine).0,
        warp_instructions,
    }
}

/// The machine in a record: name, hash and the peak rates of its description.
pub(super) fn peaks(resolved: &Resolved, memory: &Memory) -> MachineRecord {
    let machine = &resolved.machine;
    let slices = f64::from(machine.l2.slices * machine.l2.accesses_per_cycle);
    let issue = u32::from(machine.dispatch.sms) * machine.sm.schedulers * machine.sm.issue_width;
    MachineRecord {
        name: machine.name.clone(),
        reference_name: machine.reference_name.clone(),
        hash: resolved.hash.clone(),
        sms: u64::from(machine.dispatch.sms),
        core_mhz: machine.clocks.core_mhz,
        peak_dram_gb_per_s: memory.peak_gb_per_s,
        peak_l2_gb_per_s: slices * SECTOR_BYTES as f64 * machine.clocks.l2_mhz / 1000.0,
        peak_warp_instructions_per_cycle: f64::from(issue),
    }
}
