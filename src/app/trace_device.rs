//! A machine as a CUDA program sees it.

use gpumodel_sim::config::{Machine, MemoryStandard};
use gpumodel_trace_run::request::Device;

/// Compute capability of an instruction set; that of the most common one for others.
const CAPABILITIES: &[(&str, u32)] = &[
    ("volta", 70),
    ("turing", 75),
    ("ampere", 80),
    ("ampere-workstation", 86),
    ("ampere-geforce", 86),
    ("ada", 89),
    ("ada-l40", 89),
    ("hopper", 90),
];
const USUAL_CAPABILITY: u32 = 80;

/// The properties of `machine` with its memory.
pub(crate) fn device(machine: &Machine, memory: &MemoryStandard) -> Device {
    let capability = CAPABILITIES.iter().find(|(isa, _)| *isa == machine.isa);
    let l2 = &machine.l2;
    Device {
        name: format!("{} (gpumodel)", machine.name),
        sm: capability.map_or(USUAL_CAPABILITY, |(_, sm)| *sm),
        sms: machine.dispatch.sms.into(),
        threads_per_sm: machine.sm.max_warps * 32,
        ctas_per_sm: machine.sm.max_ctas,
        registers_per_sm: machine.sm.registers,
        partitions: machine.sm.schedulers,
        register_unit: machine.sm.register_unit,
        shared_bytes_per_sm: machine.shared.bytes.into(),
        shared_unit_bytes: machine.shared.unit_bytes,
        reserved_shared_bytes: machine.shared.reserved_bytes_per_cta.into(),
        memory_bytes: memory.channel_bytes() * u64::from(machine.dram.channels),
        l2_bytes: [l2.cache.sets, l2.cache.ways, l2.cache.line_bytes]
            .into_iter()
            .fold(l2.slices.into(), |bytes, part| bytes * u64::from(part)),
        clock_khz: khz(machine.clocks.core_mhz),
        memory_clock_khz: khz(machine.clocks.dram_mhz.unwrap_or_default()),
        // Both edges of the clock carry data.
        bus_bits: machine.dram.channels * machine.dram.channel_bytes_per_clock * 4,
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive clock")]
fn khz(mhz: f64) -> u32 {
    (mhz * 1000.0).round() as u32
}
