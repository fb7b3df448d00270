//! Crossbar, caches and memory of an imported machine, in the order of its file.

use crate::config::error::SpecError;
use gpumodel_core::toml::SourceKind;

use super::caches::{collector_queue, l1, l2};
use super::dram::dram;
use super::levels::Levels;
use super::options::Options;
use super::sheet::Sheet;

/// Writes the sections from the L1 on.
pub(super) fn write_memory(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    let levels = Levels::read(options)?;
    l1(options, sheet, &levels)?;
    interconnect(options, sheet)?;
    l2(options, sheet, &levels)?;
    dram(options, sheet, &levels)?;
    quirks(options, sheet)
}

fn interconnect(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    let mode = options.or("-network_mode", "1");
    mode.within(1..=2)?;
    sheet.section("interconnect");
    if mode.number::<u32>()? == 2 {
        let source = format!("{}: built-in crossbar, one packet per port and cycle", mode.cite());
        sheet.published("latency_cycles", 1, &source);
        sheet.published("flit_bytes", 0, &source);
        let arbiter = options.or("-icnt_arbiter_algo", "1");
        arbiter.number::<u32>()?;
        let source = format!("{}: FIFO inputs, one packet per output and cycle", arbiter.cite());
        sheet.choice("allocation", "matched", &source);
    } else {
        let source = format!("{}: a router with one-cycle allocators and its links", mode.cite());
        sheet.leaf("latency_cycles", &4, SourceKind::Assumed, &source);
        let flit = options.or("-icnt_flit_size", "32");
        sheet.published("flit_bytes", flit.within(1..=4096)?, &flit.cite());
    }
    sheet.published("header_bytes", 8, "GPGPU-Sim READ_PACKET_SIZE, WRITE_PACKET_SIZE");
    for (key, option) in
        [("input_queue", "-icnt_in_buffer_limit"), ("output_queue", "-icnt_out_buffer_limit")]
    {
        let value = options.or(option, "64");
        sheet.published(key, value.within(1..=1 << 20)?, &value.cite());
    }
    let port = options.or("-gpgpu_n_cores_per_cluster", "3");
    sheet.published("sms_per_port", port.number::<u32>()?, &port.cite());
    Ok(())
}

fn quirks(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    sheet.section("quirks");
    sheet.published("instruction_buffer", 2, "GPGPU-Sim IBUFFER_SIZE");
    let lone = "Accel-Sim runs of one and four warps with eight independent FFMA on QV100: \
                2920 and 3037 cycles";
    sheet.leaf("refetch_cycles", &1, SourceKind::Fitted, lone);
    let together = options.or("-gpgpu_concurrent_kernel_sm", "0");
    sheet.published("serial_kernels", !together.flag()?, &together.cite());
    if together.flag()? {
        let busy = "Accel-Sim's main loop: a kernel waits for its own stream alone, 0 among them";
        sheet.published("per_thread_default_stream", true, busy);
    }
    let spreads = format!(
        "{}; GPGPU-Sim max_cta: where kernels run one by one, a grid that does not fill the GPU \
         is spread",
        together.cite()
    );
    sheet.published("spreads_small_grids", !together.flag()?, &spreads);
    collector_queue(options, sheet)?;
    for (key, source) in [
        ("listed_registers_only", "Accel-Sim scoreboard: the registers of the trace line"),
        (
            "pools_storage",
            "GPGPU-Sim occupy_shader_resource_1block: registers and shared memory are counted",
        ),
        ("whole_cta_barriers", "Accel-Sim trace_driven.cc: barrier 0, all threads, synchronising"),
        ("ignores_predicates", "Accel-Sim traces list no predicate registers"),
        (
            "accesses_null",
            "Accel-Sim trace_driven.cc: the address of every active lane is accessed, whatever it is",
        ),
        ("no_refresh", "GPGPU-Sim dram_t has no refresh"),
        ("textures_are_latency", "Accel-Sim: texture instructions take a fixed time"),
    ] {
        sheet.published(key, true, source);
    }
    Ok(())
}
