//! Caches, crossbar and memory of an imported machine.

use std::collections::BTreeMap;

use crate::config::error::SpecError;
use gpumodel_core::toml::SourceKind;

use super::cache_line::CacheLine;
use super::options::{Entry, Options};
use super::sheet::Sheet;

/// Sectors of a line in the simulator.
const SECTORS: u32 = 4;

/// Writes the sections from the L1 on.
pub(super) fn write_memory(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    l1(options, sheet)?;
    interconnect(options, sheet)?;
    l2(options, sheet)?;
    dram(options, sheet)?;
    quirks(options, sheet)
}

/// A cache description, with the line that it is from.
fn cache(entry: &Entry) -> Result<CacheLine, SpecError> {
    let line = CacheLine::read(&entry.value).ok_or_else(|| {
        entry.refuse(
            "S:sets:line:ways,rep:write:alloc:write-alloc:hash,mshr:entries:merge,queue:fifo,port",
        )
    })?;
    if line.kind != 'S' || line.line_bytes != 32 * SECTORS {
        return Err(entry.refuse("a sectored cache (S) with lines of 128 bytes"));
    }
    Ok(line)
}

/// Writes the geometry; `ways` with its own source.
fn geometry(
    sheet: &mut Sheet,
    entry: &Entry,
    line: &CacheLine,
    ways: (u32, &str),
    write: &str,
) -> Result<(), SpecError> {
    let cite = entry.cite();
    sheet.published("sets", line.sets, &cite);
    sheet.published("ways", ways.0, ways.1);
    sheet.published("line_bytes", line.line_bytes, &cite);
    let hash = match line.hash {
        'L' => "linear",
        'X' => "xor",
        'P' => "ipoly",
        _ => return Err(entry.refuse("a set index function L, X or P")),
    };
    sheet.choice("hash", hash, &cite);
    misses(sheet, entry, line)?;
    sheet.choice("write", write, &cite);
    policies(sheet, entry, line)
}

/// Writes the table of outstanding misses.
fn misses(sheet: &mut Sheet, entry: &Entry, line: &CacheLine) -> Result<(), SpecError> {
    let cite = entry.cite();
    if line.allocate == 's' {
        let source = format!("{cite}: streaming, an entry per sector of four times the cache");
        let entries = entry.product(&[line.sets, line.ways, 4 * SECTORS])?;
        sheet.published("mshr_entries", entries, &source);
        sheet.published(
            "mshr_merge",
            64,
            "GPGPU-Sim: streaming caches merge MAX_WARP_PER_SM requests",
        );
    } else {
        sheet.published("mshr_entries", line.mshr_entries, &cite);
        sheet.published("mshr_merge", line.mshr_merge, &cite);
    }
    Ok(())
}

/// Writes what misses do and which line makes room.
fn policies(sheet: &mut Sheet, entry: &Entry, line: &CacheLine) -> Result<(), SpecError> {
    let cite = entry.cite();
    let write_miss = match line.write_allocate {
        'N' => "around",
        'L' => "lazy",
        'F' => "fetch",
        _ => return Err(entry.refuse("a write allocation N, L or F")),
    };
    sheet.choice("write_miss", write_miss, &cite);
    let allocate = match line.allocate {
        'm' => "on-miss",
        'f' | 's' => "on-fill",
        _ => return Err(entry.refuse("an allocation m, f or s")),
    };
    sheet.choice("allocate", allocate, &cite);
    let replacement = match line.replacement {
        'L' => "lru",
        'F' => "fifo",
        _ => return Err(entry.refuse("a replacement L or F")),
    };
    sheet.choice("replacement", replacement, &cite);
    Ok(())
}

fn l1(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    let entry = options.need("-gpgpu_cache:dl1", "the L1 data cache")?;
    let line = cache(&entry)?;
    sheet.section("l1");
    let skip = options.or("-gpgpu_gmem_skip_L1D", "0");
    sheet.published("caches_global", !skip.flag()?, &skip.cite());
    let (ways, source) = carve_outs(options, sheet, &entry, &line)?;
    for (key, option, default) in [
        ("latency_cycles", "-gpgpu_l1_latency", "1"),
        ("banks", "-gpgpu_l1_banks", "1"),
        ("tags_per_cycle", "-gpgpu_l1_banks", "1"),
        ("bank_bytes", "-gpgpu_l1_banks_byte_interleaving", "32"),
        ("dirty_percent", "-gpgpu_l1_cache_write_ratio", "0"),
    ] {
        let value = options.or(option, default);
        sheet.published(key, value.number::<u32>()?, &value.cite());
    }
    queue(options, sheet)?;
    sheet.published("returns_per_cycle", 1, "GPGPU-Sim ldst_unit::writeback: one result per cycle");
    let flush = options.or("-gpgpu_flush_l1_cache", "0");
    sheet.published("flushed_at_kernel_start", flush.flag()?, &flush.cite());
    let write = match line.write {
        'T' => "write-through",
        'B' => "write-back",
        'E' => "write-evict",
        'L' => "local-write-back",
        _ => return Err(entry.refuse("a write policy T, B, E or L")),
    };
    sheet.section("l1.cache");
    geometry(sheet, &entry, &line, (ways, &source), write)
}

/// Memory instructions wait in the registers before and behind the operand
/// collectors and in the collectors themselves.
fn queue(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    let widths = options.or("-gpgpu_pipeline_widths", "1,1,1,1,1,1,1,1,1,1,1,1,1");
    let collectors = options.or("-gpgpu_operand_collector_num_units_gen", "6");
    let parts = [widths.part(4)?, widths.part(9)?, collectors.number()?];
    let source = format!("{} (ID_OC_MEM, OC_EX_MEM) + {}", widths.cite(), collectors.cite());
    sheet.published("queue", collectors.sum(&parts)?, &source);
    Ok(())
}

/// Memory instructions that fill the registers behind the collectors and all of them.
fn collector_queue(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    let widths = options.or("-gpgpu_pipeline_widths", "1,1,1,1,1,1,1,1,1,1,1,1,1");
    let collectors = options.or("-gpgpu_operand_collector_num_units_gen", "6");
    let source = format!("{} (OC_EX_MEM) + {}", widths.cite(), collectors.cite());
    let full = collectors.sum(&[widths.part(9)?, collectors.number()?])?;
    sheet.published("collector_queue", full, &source);
    Ok(())
}

/// Writes the carve-out and gives the ways at the largest size.
fn carve_outs(
    options: &mut Options,
    sheet: &mut Sheet,
    entry: &Entry,
    line: &CacheLine,
) -> Result<(u32, String), SpecError> {
    let adaptive = options.or("-gpgpu_adaptive_cache_config", "0");
    let unified = options.or("-gpgpu_unified_l1d_size", "0");
    let sizes = options.or("-gpgpu_shmem_option", "0");
    if !adaptive.flag()? {
        sheet.published("unified_bytes", 0, &adaptive.cite());
        sheet.published("carve_outs_bytes", "[]", &adaptive.cite());
        return Ok((line.ways, entry.cite()));
    }
    let kilobytes = sizes.value.split(',').map(|size| size.trim().parse::<u32>().ok());
    let bytes: Option<Vec<u32>> =
        kilobytes.map(|size| size.and_then(|size| size.checked_mul(1024))).collect();
    let bytes = bytes.ok_or_else(|| sizes.refuse("sizes in KB, separated by commas"))?;
    let total = unified.product(&[unified.number()?, 1024])?;
    let way = entry.product(&[line.sets, line.line_bytes])?;
    let smallest = bytes.first().copied().unwrap_or(0);
    let ways = total.saturating_sub(smallest).checked_div(way);
    let ways = ways.ok_or_else(|| entry.refuse("at least one set"))?;
    sheet.published("unified_bytes", total, &unified.cite());
    sheet.published("carve_outs_bytes", format!("{bytes:?}"), &sizes.cite());
    let source =
        format!("{} less the smallest of {}, {way} bytes per way", unified.cite(), sizes.cite());
    Ok((ways, source))
}

fn interconnect(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    let mode = options.or("-network_mode", "1");
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
        sheet.published("flit_bytes", flit.number::<u32>()?, &flit.cite());
    }
    sheet.published("header_bytes", 8, "GPGPU-Sim READ_PACKET_SIZE, WRITE_PACKET_SIZE");
    for (key, option) in
        [("input_queue", "-icnt_in_buffer_limit"), ("output_queue", "-icnt_out_buffer_limit")]
    {
        let value = options.or(option, "64");
        sheet.published(key, value.number::<u32>()?, &value.cite());
    }
    let port = options.need("-gpgpu_n_cores_per_cluster", "SMs of a cluster")?;
    sheet.published("sms_per_port", port.number::<u32>()?, &port.cite());
    Ok(())
}

fn l2(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    let entry = options.need("-gpgpu_cache:dl2", "the L2 cache of a slice")?;
    let line = cache(&entry)?;
    let channels = options.need("-gpgpu_n_mem", "memory channels")?;
    let parts = options.or("-gpgpu_n_sub_partition_per_mchannel", "1");
    sheet.section("l2");
    let slices = channels.product(&[channels.number()?, parts.number()?])?;
    sheet.published("slices", slices, &format!("{} x {}", channels.cite(), parts.cite()));
    let rop = options.or("-gpgpu_l2_rop_latency", "85");
    sheet.published("latency_cycles", rop.number::<u32>()?, &rop.cite());
    sheet.published("accesses_per_cycle", 1, "GPGPU-Sim memory_sub_partition::cache_cycle");
    let queues = options.or("-gpgpu_dram_partition_queues", "8:8:8:8");
    // Crossbar to L2, L2 to DRAM, DRAM to L2, L2 to crossbar.
    sheet.published("input_queue", queues.part::<u32>(0)?, &queues.cite());
    sheet.published("dram_queue", queues.part::<u32>(1)?, &queues.cite());
    sheet.published("reply_queue", queues.part::<u32>(3)?, &queues.cite());
    let write = match line.write {
        'B' => "write-back",
        'T' => "write-through",
        'E' => "write-evict",
        _ => return Err(entry.refuse("a write policy B, T or E")),
    };
    sheet.section("l2.cache");
    geometry(sheet, &entry, &line, (line.ways, &entry.cite()), write)
}

fn dram(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    let channels = options.need("-gpgpu_n_mem", "memory channels")?;
    let dual = options.or("-dram_dual_bus_interface", "0");
    sheet.section("dram");
    let standard = if dual.flag()? { "accelsim-hbm" } else { "accelsim-gddr" };
    sheet.choice("standard", standard, &dual.cite());
    sheet.published("channels", channels.number::<u32>()?, &channels.cite());
    let map = options.need("-gpgpu_mem_addr_mapping", "bits of the address")?;
    let hashing = options.or("-gpgpu_memory_partition_indexing", "0");
    let source = format!("{}; {}", map.cite(), hashing.cite());
    sheet.choice("mapping", mapping(&map, &hashing, channels.number()?)?, &source);
    peak(options, sheet)?;
    let latency = options.or("-dram_latency", "30");
    sheet.published("latency_cycles", latency.number::<u32>()?, &latency.cite());
    let queue = options.or("-gpgpu_frfcfs_dram_sched_queue_size", "64");
    sheet.published("queue", queue.number::<u32>()?, &queue.cite());
    timing(options, sheet)
}

/// The address layouts that `models/memory/mappings` describes: bits of the
/// address without the channel, channels, `-gpgpu_memory_partition_indexing`.
const MAPPINGS: [(&str, u32, u32, &str); 5] = [
    (HBM_BITS, 32, 2, "accelsim-qv100"),
    (GDDR_BITS, 40, 0, "accelsim-a100"),
    (GDDR_BITS, 16, 2, "accelsim-rtx3070"),
    (GDDR_BITS, 12, 0, "accelsim-rtx2060"),
    (GDDR_BITS, 12, 4, "accelsim-titanx"),
];

/// The layout of the HBM configurations.
const HBM_BITS: &str = "RRRRRRRRRRRRRBBBCCCBCCCSSSSS";

/// The layout of the GDDR configurations and the older A100.
const GDDR_BITS: &str = "RRRRRRRRRRRRRBBBCCCCBCCSSSSS";

/// The mapping file of an address layout.
fn mapping(map: &Entry, hashing: &Entry, channels: u32) -> Result<&'static str, SpecError> {
    let bits = map.value.split(';').nth(1).unwrap_or_default().replace('.', "");
    let layout = bits.trim_start_matches('0');
    let kind: u32 = hashing.number()?;
    let known = MAPPINGS.iter().find(|row| (row.0, row.1, row.2) == (layout, channels, kind));
    known.map(|row| row.3).ok_or_else(|| {
        let names = MAPPINGS.map(|row| row.3).join(", ");
        let expected = format!(
            "a layout, {channels} channels and partition indexing {kind} that models/memory/mappings \
             describes ({names}); add a mapping file and a row to the importer"
        );
        map.refuse(&expected)
    })
}

/// Bytes of a channel and memory clock: the bus, twice or four times a clock.
fn peak(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    let bus = options.need("-gpgpu_dram_buswidth", "bytes of the DRAM bus")?;
    let beats = options.need("-dram_data_command_freq_ratio", "beats per clock")?;
    let devices = options.or("-gpgpu_n_mem_per_ctrlr", "1");
    let bytes = bus.product(&[bus.number()?, beats.number()?, devices.number()?])?;
    let source = format!("{} x {} x {}", bus.cite(), beats.cite(), devices.cite());
    sheet.published("channel_bytes_per_clock", bytes, &source);
    Ok(())
}

fn timing(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    let entry = options.need("-gpgpu_dram_timing_opt", "DRAM timing")?;
    let mut named = BTreeMap::new();
    sheet.section("dram.timing");
    for part in entry.value.split([':', ' ']).map(str::trim).filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let value: u32 =
            value.parse().map_err(|_| entry.refuse("NAME=CLOCKS, separated by colons"))?;
        if !name.chars().all(|c| c.is_ascii_alphanumeric()) || name.is_empty() {
            return Err(entry.refuse("NAME=CLOCKS, separated by colons"));
        }
        let source = format!("{} {} {part}", entry.line(), entry.key);
        sheet.published(name, value, &source);
        if named.insert(name, value).is_some() {
            return Err(entry.refuse(&format!("{name} once")));
        }
    }
    if let (Some(rcd), Some(wl), None) = (named.get("RCD"), named.get("WL"), named.get("RCDWR")) {
        let source = "GPGPU-Sim memory_config::init: tRCDWR = tRCD - (WL + 1)";
        sheet.published("RCDWR", rcd.saturating_sub(wl.saturating_add(1)), source);
    }
    for (key, option) in [
        ("bus_bytes", "-gpgpu_dram_buswidth"),
        ("burst_length", "-gpgpu_dram_burst_length"),
        ("data_command_ratio", "-dram_data_command_freq_ratio"),
    ] {
        let value = options.need(option, "DRAM bus")?;
        sheet.published(key, value.number::<u32>()?, &value.cite());
    }
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
        ("no_refresh", "GPGPU-Sim dram_t has no refresh"),
        ("textures_are_latency", "Accel-Sim: texture instructions take a fixed time"),
    ] {
        sheet.published(key, true, source);
    }
    Ok(())
}
