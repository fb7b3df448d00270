//! Clocks, dispatch, SM, units and shared memory of an imported machine.

use crate::config::error::SpecError;
use gpumodel_core::toml::SourceKind;

use super::Sheet;
use super::options::{Entry, Options};

/// Most SMs of a machine.
const MOST_SMS: u32 = 4096;

/// Clocks that DRAM has: beyond, the unit is probably wrong.
const DRAM_MHZ: std::ops::RangeInclusive<f64> = 55.0..=50_000.0;

/// Longest latency in cycles.
const LONGEST: u32 = 99_999;

/// Longest launch in cycles.
const LONGEST_LAUNCH: u32 = 10_000_000;

/// Writes the sections of everything up to the first cache.
pub(super) fn write_core(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    isa(options, sheet)?;
    clocks(options, sheet)?;
    dispatch(options, sheet)?;
    sm(options, sheet)?;
    units(options, sheet)?;
    shared(options, sheet)
}

/// Instructions are classed as the simulator does for machines with or without
/// units of their own for integers.
fn isa(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    options.or("-gpgpu_occupancy_sm_number", "0").number::<u32>()?;
    let own = integer_units(options)?.is_some();
    sheet.word("isa", if own { "accelsim" } else { "accelsim-pascal" });
    Ok(())
}

fn integer_units(options: &mut Options) -> Result<Option<(u32, Entry)>, SpecError> {
    let Some(entry) = options.find("-gpgpu_num_int_units") else { return Ok(None) };
    let count: u32 = entry.number()?;
    Ok((count > 0).then_some((count, entry)))
}

fn clocks(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    let entry = options.or("-gpgpu_clock_domains", "500.0:2000.0:2000.0:2000.0");
    sheet.section("clocks");
    for (index, key) in ["core_mhz", "interconnect_mhz", "l2_mhz", "dram_mhz"].iter().enumerate() {
        let mhz: f64 = entry.part(index)?;
        if !(0.001..100_000.0).contains(&mhz) {
            return Err(entry.refuse("four clocks in MHz, each below 100000"));
        }
        if *key == "dram_mhz" && !DRAM_MHZ.contains(&mhz) {
            return Err(entry.refuse("four clocks in MHz, the last from 55 to 50000"));
        }
        sheet.published(key, format!("{mhz:?}"), &entry.cite());
    }
    Ok(())
}

fn dispatch(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    let clusters = options.or("-gpgpu_n_clusters", "10");
    let per_cluster = options.or("-gpgpu_n_cores_per_cluster", "3");
    let sms = clusters.within(1..=MOST_SMS)? * per_cluster.within(1..=MOST_SMS)?;
    if sms > MOST_SMS {
        return Err(clusters.refuse(&format!("at most {MOST_SMS} SMs in all clusters")));
    }
    sheet.section("dispatch");
    sheet.published("sms", sms, &format!("{} x {}", clusters.cite(), per_cluster.cite()));
    let launch = options.or("-gpgpu_kernel_launch_latency", "0");
    sheet.published("kernel_launch_cycles", launch.within(0..=LONGEST_LAUNCH)?, &launch.cite());
    let source = format!("{}: GPGPU-Sim starts one CTA per cluster and cycle", clusters.cite());
    sheet.published("ctas_per_cycle", clusters.number::<u32>()?, &source);
    let cta = options.or("-gpgpu_TB_launch_latency", "0");
    sheet.published("cta_launch_cycles", cta.within(0..=LONGEST_LAUNCH)?, &cta.cite());
    let empty = "an empty kernel takes 5008 cycles, 5000 of them launch latency";
    sheet.leaf("kernel_retire_cycles", &0, SourceKind::Assumed, empty);
    sheet.choice("order", "round-robin", "GPGPU-Sim issue_block2core: clusters in turn");
    let copies = options.or("-gpgpu_perf_sim_memcpy", "1");
    let source =
        format!("{}: yet the first reads after copies miss the L2 in its runs", copies.cite());
    copies.flag()?;
    sheet.leaf("memcpy_fills_l2", &false, SourceKind::Measured, &source);
    Ok(())
}

fn sm(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    sheet.section("sm");
    let schedulers = options.or("-gpgpu_num_sched_per_core", "1");
    residents(options, sheet, &schedulers)?;
    sheet.published("schedulers", schedulers.number::<u32>()?, &schedulers.cite());
    let policy = options.or("-gpgpu_scheduler", "gto");
    sheet.choice("policy", scheduler_policy(&policy)?, &policy.cite());
    if scheduler_policy(&policy)? == "two-level" {
        sheet.published("active_warps", policy.part_within(1, 1..=256)?, &policy.cite());
    }
    let width = options.or("-gpgpu_max_insn_issue_per_warp", "2");
    sheet.published("issue_width", width.within(1..=8)?, &width.cite());
    let chains = "Accel-Sim runs of dependent chains on QV100: FADD 7 at latency 2, DFMA 13 at 8, MUFU 25 at 20";
    sheet.leaf("dependent_issue_cycles", &5, SourceKind::Measured, chains);
    let first = "GPGPU-Sim shader_core_ctx::cycle: issue comes before fetch and decode, so a CTA's first instruction issues in its second cycle";
    sheet.published("first_issue_cycles", 1, first);
    let chases = "Accel-Sim runs of pointer chases over L1 hits: 23 cycles at l1_latency 20 on QV100, 42 at 39 on RTX 3070, less a cycle of the port";
    sheet.leaf("memory_issue_cycles", &2, SourceKind::Measured, chases);
    let last = "GPGPU-Sim shader_core_ctx::fetch: a warp ends when its EXIT has been read, dispatched, executed and written back, five stages";
    sheet.published("exit_cycles", 5, last);
    register_banks(options, sheet, schedulers.number()?)?;
    sheet.published("branch_cycles", 0, "Accel-Sim trace mode: no branch hazard");
    Ok(())
}

/// Writes how many warps, CTAs and registers an SM holds.
fn residents(
    options: &mut Options,
    sheet: &mut Sheet,
    schedulers: &Entry,
) -> Result<(), SpecError> {
    let threads = options.or("-gpgpu_shader_core_pipeline", "1024:32");
    if threads.part::<u32>(1)? != 32 {
        return Err(threads.refuse("a warp of 32 threads"));
    }
    let warps = threads.part_within(0, 32..=256 * 32)? / 32;
    if schedulers.number::<u32>()? == 0 {
        return Err(schedulers.refuse("at least one scheduler"));
    }
    if !warps.is_multiple_of(schedulers.within(1..=64)?) {
        return Err(schedulers.refuse(&format!("schedulers that divide the {warps} warps")));
    }
    sheet.published("max_warps", warps, &threads.cite());
    let ctas = options.or("-gpgpu_shader_cta", "32");
    sheet.published("max_ctas", ctas.within(1..=256)?, &ctas.cite());
    let registers = options.or("-gpgpu_shader_registers", "8192");
    // What is left over holds no warp's registers.
    let whole = registers.within(REGISTER_UNIT..=u32::MAX)? / REGISTER_UNIT * REGISTER_UNIT;
    sheet.published("registers", whole, &registers.cite());
    let rounding = "GPGPU-Sim shader_core_config::max_cta: registers per thread rounded up to 4";
    sheet.published("register_unit", REGISTER_UNIT, rounding);
    Ok(())
}

/// Registers of a warp come in multiples of this many.
const REGISTER_UNIT: u32 = 128;

fn scheduler_policy(entry: &Entry) -> Result<&'static str, SpecError> {
    match entry.value.split(':').next().unwrap_or_default() {
        "lrr" | "rrr" => Ok("lrr"),
        "gto" => Ok("gto"),
        "old" | "oldest" => Ok("oldest"),
        "two_level_active" => Ok("two-level"),
        _ => Err(entry.refuse("lrr, gto, rrr, old or two_level_active:…; others are not modelled")),
    }
}

fn register_banks(
    options: &mut Options,
    sheet: &mut Sheet,
    schedulers: u32,
) -> Result<(), SpecError> {
    let banks = options.or("-gpgpu_num_reg_banks", "8");
    let sub_core = options.or("-gpgpu_sub_core_model", "0");
    // Without sub-cores every scheduler reaches every bank: its share is the same.
    let source = format!("{} over {schedulers} schedulers; {}", banks.cite(), sub_core.cite());
    sub_core.flag()?;
    let share = banks.number::<u32>()? / schedulers.max(1);
    sheet.published("register_banks", share.min(1024), &source);
    let ports = options.or("-gpgpu_reg_file_port_throughput", "1");
    let source = format!("{}: the collectors step as often per cycle", ports.cite());
    sheet.published("register_bank_ports", ports.number::<u32>()?, &source);
    Ok(())
}

/// The units by name: the option that counts them, the simulator's default for it, and the
/// option with their latency and initiation interval.
const UNITS: [(&str, &str, &str, &str); 4] = [
    ("fp32", "-gpgpu_num_sp_units", "1", "-trace_opcode_latency_initiation_sp"),
    ("int", "-gpgpu_num_int_units", "0", "-trace_opcode_latency_initiation_int"),
    ("fp64", "-gpgpu_num_dp_units", "0", "-trace_opcode_latency_initiation_dp"),
    ("sfu", "-gpgpu_num_sfu_units", "1", "-trace_opcode_latency_initiation_sfu"),
];

/// Most units of a kind.
const MOST_UNITS: u32 = 1024;

/// Specialised units: the one with their timing, the one that declares them.
const SPECIALISED: [(&str, &str, &str); 4] = [
    ("branch", "-specialized_unit_1", "-trace_opcode_latency_initiation_spec_op_1"),
    ("texture", "-specialized_unit_2", "-trace_opcode_latency_initiation_spec_op_2"),
    ("tensor", "-specialized_unit_3", "-trace_opcode_latency_initiation_spec_op_3"),
    ("uniform", "-specialized_unit_4", "-trace_opcode_latency_initiation_spec_op_4"),
];

fn units(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    let shared = options.or("-gpgpu_num_sp_units", "1");
    shared.within(1..=MOST_UNITS)?;
    for (name, count, default, timing) in UNITS {
        let timing = options.or(timing, "4,1");
        let own = options.or(count, default);
        // The SP unit runs integers, the SFU doubles, where they have no unit.
        let count = if own.within(0..=MOST_UNITS)? == 0 { &shared } else { &own };
        unit(sheet, name, (count, count.number()?), &timing)?;
        if name == "fp32" {
            half(sheet, count, &timing)?;
        }
    }
    let integer = options.or("-trace_opcode_latency_initiation_int", "4,1");
    for (name, declared, timing) in SPECIALISED {
        let declared = options.find(declared);
        let enabled = declared.filter(|entry| entry.part::<u32>(0).is_ok_and(|on| on != 0));
        let Some(declared) = enabled else {
            unit(sheet, name, (&shared, shared.number()?), &integer)?;
            continue;
        };
        let timing = options.or(timing, "4,4");
        unit(sheet, name, (&declared, declared.part_within(1, 1..=MOST_UNITS)?), &timing)?;
    }
    one_cycle(sheet, "memory", 1, "GPGPU-Sim: one load/store unit per SM; LOAD_OP takes one cycle");
    let schedulers = options.or("-gpgpu_num_sched_per_core", "1").number()?;
    one_cycle(
        sheet,
        "control",
        schedulers,
        "Accel-Sim set_latency: barriers and exits take one cycle",
    );
    Ok(())
}

/// One unit: `count` with its source, `timing` as `latency,initiation`.
fn unit(
    sheet: &mut Sheet,
    name: &str,
    count: (&Entry, u32),
    timing: &Entry,
) -> Result<(), SpecError> {
    sheet.section(&format!("units.{name}"));
    sheet.published("count", count.1, &count.0.cite());
    sheet.published("latency_cycles", timing.part_within(0, 0..=LONGEST)?, &timing.cite());
    sheet.published("initiation_cycles", timing.part_within(1, 1..=LONGEST)?, &timing.cite());
    overrides(sheet);
    Ok(())
}

/// Half precision on the SP unit.
fn half(sheet: &mut Sheet, count: &Entry, timing: &Entry) -> Result<(), SpecError> {
    sheet.section("units.half");
    sheet.published("count", count.number::<u32>()?, &count.cite());
    sheet.published("latency_cycles", timing.part::<u32>(0)?, &timing.cite());
    let initiation = (timing.part::<u32>(1)? / 2).max(1);
    let source = format!("{}, halved by Accel-Sim for half precision", timing.cite());
    sheet.published("initiation_cycles", initiation, &source);
    overrides(sheet);
    Ok(())
}

fn one_cycle(sheet: &mut Sheet, name: &str, count: u32, source: &str) {
    sheet.section(&format!("units.{name}"));
    for (key, value) in [("count", count), ("latency_cycles", 1), ("initiation_cycles", 1)] {
        sheet.published(key, value, source);
    }
    overrides(sheet);
}

fn overrides(sheet: &mut Sheet) {
    sheet.published("overrides_isa", true, "Accel-Sim: timing per unit, not per opcode");
}

fn shared(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    sheet.section("shared");
    let bytes = options.or("-gpgpu_shmem_size", "16384");
    sheet.published("bytes", bytes.number::<u32>()?, &bytes.cite());
    sheet.published("unit_bytes", 1, "GPGPU-Sim max_cta: shared bytes as launched");
    sheet.published("reserved_bytes_per_cta", 0, "GPGPU-Sim max_cta: shared bytes as launched");
    let latency = options.or("-gpgpu_smem_latency", "3");
    sheet.published("latency_cycles", latency.within(0..=LONGEST)?, &latency.cite());
    let banks = options.or("-gpgpu_shmem_num_banks", "16");
    if !banks.within(1..=64)?.is_power_of_two() {
        return Err(banks.refuse("a power of two of banks"));
    }
    sheet.published("banks", banks.number::<u32>()?, &banks.cite());
    sheet.published("bank_bytes", 4, "GPGPU-Sim WORD_SIZE");
    let words =
        "Accel-Sim keeps one address per lane: 64- and 128-bit accesses cost as 32-bit ones";
    sheet.choice("conflicts", "first-word", words);
    Ok(())
}
