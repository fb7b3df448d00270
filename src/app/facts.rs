//! The facts that schemes get before a run starts.

use gpumodel_core::contract::{AppFacts, Facts, KernelFacts};
use gpumodel_core::units::{AppId, Cycle, to_u16};
use gpumodel_feed::StoreFeed;
use gpumodel_report::results::MachineRecord;
use gpumodel_sim::config::{Machine, Resolved};
use gpumodel_sim::{Need, Program, machine_facts};

use crate::RunContext;
use crate::memory::Memory;

/// The facts of applications on a machine: their names, launches and arrivals.
pub(super) fn facts(ctx: &RunContext<'_>, apps: &[(&str, &StoreFeed<'_>, Cycle)]) -> Facts {
    let machine = &ctx.resolved.machine;
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
    Facts { apps: apps.iter().enumerate().map(app).collect(), ..without_apps(machine, ctx.memory) }
}

fn without_apps(machine: &Machine, memory: &Memory) -> Facts {
    machine_facts(machine, &memory.standard, &memory.map, memory.peak_gb_per_s)
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
    let facts = without_apps(machine, memory);
    let issue = u32::from(machine.dispatch.sms) * machine.sm.schedulers * machine.sm.issue_width;
    MachineRecord {
        name: machine.name.clone(),
        reference_name: machine.reference_name.clone(),
        hash: resolved.hash.clone(),
        sms: u64::from(machine.dispatch.sms),
        core_mhz: machine.clocks.core_mhz,
        peak_dram_gb_per_s: memory.peak_gb_per_s,
        peak_l2_gb_per_s: facts.peak_l2_gb_per_s,
        peak_warp_instructions_per_cycle: f64::from(issue),
    }
}
