//! The L1 and the L2 of an imported machine.

use gpumodel_core::toml::SourceKind;

use super::Sheet;
use super::levels::{CacheLine, Level, Levels, SECTOR};
use super::options::{Entry, Options};
use crate::config::error::SpecError;

/// Longest latency in cycles.
const LONGEST: u32 = 99_999;

/// Longest queue.
const LONGEST_QUEUE: u32 = 1 << 20;

/// Most bytes of all L1s, and of all slices of the L2.
const MOST_BYTES: u64 = 1 << 30;

/// Outstanding misses of a cache that the configuration does not have: none of its requests waits
/// for one.
const NO_CACHE_ENTRIES: u32 = 4096;

/// Writes `[l1]` and `[l1.cache]`.
pub(super) fn l1(
    options: &mut Options,
    sheet: &mut Sheet,
    levels: &Levels,
) -> Result<(), SpecError> {
    sheet.section("l1");
    let skip = options.or("-gpgpu_gmem_skip_L1D", "0");
    let (cached, source) = match levels.l1.line {
        Some(_) => (!skip.flag()?, skip.cite()),
        None => (false, levels.l1.entry.cite()),
    };
    sheet.published("caches_global", cached, &source);
    let ways = carve_outs(options, sheet, &levels.l1)?;
    let latency = options.or("-gpgpu_l1_latency", "1");
    sheet.published("latency_cycles", latency.within(0..=LONGEST)?, &latency.cite());
    banks(options, sheet, levels)?;
    let dirty = options.or("-gpgpu_l1_cache_write_ratio", "0");
    sheet.published("dirty_percent", dirty.within(0..=100)?, &dirty.cite());
    queue(options, sheet)?;
    sheet.published("returns_per_cycle", 1, "GPGPU-Sim ldst_unit::writeback: one result per cycle");
    let flush = options.or("-gpgpu_flush_l1_cache", "0");
    sheet.published("flushed_at_kernel_start", flush.flag()?, &flush.cite());
    sheet.section("l1.cache");
    let Some(line) = levels.l1.line else { return no_cache(sheet, levels, &levels.l1.entry) };
    let write = match line.write {
        'T' => "write-through",
        'B' => "write-back",
        'E' => "write-evict",
        'L' => "local-write-back",
        _ => return Err(levels.l1.entry.refuse("a write policy T, B, E or L")),
    };
    let sms = options.or("-gpgpu_n_clusters", "10").number::<u32>()?
        * options.or("-gpgpu_n_cores_per_cluster", "3").number::<u32>()?;
    check_total(&levels.l1.entry, &line, ways.0, sms)?;
    geometry(sheet, levels, (&levels.l1.entry, &line), &ways, write)
}

/// Refuses more bytes in `caches` caches than any GPU has.
fn check_total(entry: &Entry, line: &CacheLine, ways: u32, caches: u32) -> Result<(), SpecError> {
    let factors = [line.sets, ways, line.line_bytes, caches].map(u64::from);
    let total = factors.into_iter().fold(1, u64::saturating_mul);
    if total <= MOST_BYTES {
        return Ok(());
    }
    Err(entry.refuse(&format!("at most 1 GiB in all {caches} of these caches")))
}

/// Writes the banks of the L1. Whole lines lie in one bank each, beginning with the bank of
/// their first bytes.
fn banks(options: &mut Options, sheet: &mut Sheet, levels: &Levels) -> Result<(), SpecError> {
    let banks = options.or("-gpgpu_l1_banks", "1");
    let bytes = options.or("-gpgpu_l1_banks_byte_interleaving", "32");
    let (count, width) = (banks.within(1..=32)?, bytes.number::<u32>()?);
    if !width.is_power_of_two() || width < 32 {
        return Err(bytes.refuse("a power of two of bytes from 32 on"));
    }
    if levels.sector_bytes == SECTOR {
        sheet.published("banks", count, &banks.cite());
        sheet.published("tags_per_cycle", count, &banks.cite());
        sheet.published("bank_bytes", width, &bytes.cite());
        return Ok(());
    }
    let reached = (count.saturating_mul(width) / levels.sector_bytes).clamp(1, count);
    let source = format!(
        "{} of {}: whole lines of {} bytes begin in so many of them",
        banks.cite(),
        bytes.cite(),
        levels.sector_bytes
    );
    for (key, value) in [("banks", reached), ("tags_per_cycle", reached), ("bank_bytes", 0)] {
        sheet.published(key, value, &source);
    }
    Ok(())
}

/// Memory instructions in the registers before the operand collectors, behind them, and in the
/// collectors themselves.
struct Widths {
    widths: Entry,
    collectors: Entry,
    /// `ID_OC_MEM` and `OC_EX_MEM`.
    registers: [u32; 2],
    collected: u32,
}

impl Widths {
    fn read(options: &mut Options) -> Result<Self, SpecError> {
        let widths = options.or("-gpgpu_pipeline_widths", "1,1,1,1,1,1,1,1,1,1,1,1,1");
        // GPGPU-Sim 3.x had no stages for DP and INT.
        let places = if widths.value.split(',').count() < 10 { [2, 5] } else { [4, 9] };
        let generic = options.or("-gpgpu_operand_collector_num_units_gen", "0");
        let collectors = if generic.number::<u32>()? > 0 {
            generic
        } else {
            options.or("-gpgpu_operand_collector_num_units_mem", "2")
        };
        let [before, behind] = places.map(|place| widths.part::<u32>(place));
        let collected = collectors.number()?;
        let registers = [before?, behind?];
        let sum = collectors.sum(&[registers[0], registers[1], collected])?;
        if !(1..=LONGEST_QUEUE).contains(&sum) {
            return Err(collectors.refuse("1 to 1048576 places for memory instructions"));
        }
        Ok(Self { widths, collectors, registers, collected })
    }
}

/// Memory instructions wait in the registers before and behind the operand
/// collectors and in the collectors themselves.
fn queue(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    let Widths { widths, collectors, registers: [before, behind], collected } =
        Widths::read(options)?;
    let source = format!("{} (ID_OC_MEM, OC_EX_MEM) + {}", widths.cite(), collectors.cite());
    sheet.published("queue", before + behind + collected, &source);
    Ok(())
}

/// Memory instructions that fill the registers behind the collectors and all of them.
pub(super) fn collector_queue(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    let Widths { widths, collectors, registers: [_, behind], collected } = Widths::read(options)?;
    let source = format!("{} (OC_EX_MEM) + {}", widths.cite(), collectors.cite());
    sheet.published("collector_queue", behind + collected, &source);
    Ok(())
}

/// Places of the queue between the L1's banks and the network.
pub(super) fn miss_queue(options: &mut Options, sheet: &mut Sheet) {
    if let Some(entry) = options.find("-gpgpu_cache:dl1")
        && let Some(line) = CacheLine::read(&entry.value)
        && line.miss_queue > 0
    {
        sheet.published("miss_queue", line.miss_queue, &entry.cite());
    }
}

/// Writes the carve-out and gives the ways at the largest size with their source.
fn carve_outs(
    options: &mut Options,
    sheet: &mut Sheet,
    level: &Level,
) -> Result<(u32, String), SpecError> {
    let adaptive = options.or("-gpgpu_adaptive_cache_config", "0");
    let unified = options.or("-gpgpu_unified_l1d_size", "0");
    let sizes = options.or("-gpgpu_shmem_option", "0");
    let Some(line) = level.line.filter(|_| adaptive.flag().unwrap_or(true)) else {
        adaptive.flag()?;
        let cite = if level.line.is_some() { adaptive.cite() } else { level.entry.cite() };
        sheet.published("unified_bytes", 0, &cite);
        sheet.published("carve_outs_bytes", "[]", &cite);
        return Ok((level.line.map_or(1, |line| line.ways), level.entry.cite()));
    };
    adaptive.flag()?;
    let sizes = if sizes.value == "0" { Entry { value: VOLTA.to_owned(), ..sizes } } else { sizes };
    let bytes = carve_out_sizes(options, &sizes)?;
    let way = level.entry.product(&[line.sets, line.line_bytes])?;
    let unified = if unified.number::<u32>()? == 0 { four_fold(&unified, level)? } else { unified };
    let total = unified.product(&[unified.number()?, 1024])?;
    let (smallest, largest) = (bytes[0], bytes[bytes.len() - 1]);
    if total < largest || total == smallest || !(total - smallest).is_multiple_of(way) {
        return Err(unified.refuse(&format!(
            "KB that hold the {largest} bytes of shared memory at most, and beside the {smallest} \
             at least whole ways of {way} bytes"
        )));
    }
    sheet.published("unified_bytes", total, &unified.cite());
    sheet.published("carve_outs_bytes", format!("{bytes:?}"), &sizes.cite());
    let source =
        format!("{} less the smallest of {}, {way} bytes per way", unified.cite(), sizes.cite());
    Ok(((total - smallest) / way, source))
}

/// The sizes of shared memory that GPGPU-Sim 4.0 had fixed for an adaptive L1, in KB.
const VOLTA: &str = "0,8,16,32,64,96";

/// The unified size in GPGPU-Sim 4.0, which had no option for it: four times the L1 as written.
fn four_fold(unified: &Entry, level: &Level) -> Result<Entry, SpecError> {
    let line = level.line.ok_or_else(|| unified.refuse("an L1"))?;
    let bytes = level.entry.product(&[line.sets, line.ways, line.line_bytes, 4])?;
    Ok(Entry { value: (bytes / 1024).to_string(), ..unified.clone() })
}

/// The selectable sizes of shared memory in bytes, ascending.
fn carve_out_sizes(options: &mut Options, sizes: &Entry) -> Result<Vec<u32>, SpecError> {
    let kilobytes = sizes.value.split(',').map(|size| size.trim().parse::<u32>().ok());
    let bytes: Option<Vec<u32>> =
        kilobytes.map(|size| size.and_then(|size| size.checked_mul(1024))).collect();
    let mut bytes = bytes.ok_or_else(|| sizes.refuse("sizes in KB, separated by commas"))?;
    bytes.sort_unstable();
    bytes.dedup();
    let shared = options.or("-gpgpu_shmem_size", "16384").number::<u32>()?;
    if bytes.last().is_none_or(|&largest| largest < shared) {
        let text = format!("a size of at least the {shared} bytes of -gpgpu_shmem_size");
        return Err(sizes.refuse(&text));
    }
    Ok(bytes)
}

/// Writes `[l2]` and `[l2.cache]`.
pub(super) fn l2(
    options: &mut Options,
    sheet: &mut Sheet,
    levels: &Levels,
) -> Result<(), SpecError> {
    let channels = options.or("-gpgpu_n_mem", "8");
    let parts = options.or("-gpgpu_n_sub_partition_per_mchannel", "1");
    sheet.section("l2");
    let slices = channels.product(&[channels.number()?, parts.number()?])?;
    channels.within(1..=1024)?;
    if parts.number::<u32>()? == 0 || slices > 4096 {
        return Err(parts.refuse("at least one sub-partition, and at most 4096 in all channels"));
    }
    sheet.published("slices", slices, &format!("{} x {}", channels.cite(), parts.cite()));
    let rop = options.or("-gpgpu_l2_rop_latency", "85");
    sheet.published("latency_cycles", rop.within(0..=LONGEST)?, &rop.cite());
    sheet.published("accesses_per_cycle", 1, "GPGPU-Sim memory_sub_partition::cache_cycle");
    let queues = options.or("-gpgpu_dram_partition_queues", "8:8:8:8");
    // Crossbar to L2, L2 to DRAM, DRAM to L2, L2 to crossbar.
    for (key, part) in [("input_queue", 0), ("dram_queue", 1), ("reply_queue", 3)] {
        sheet.published(key, queues.part_within(part, 1..=LONGEST_QUEUE)?, &queues.cite());
    }
    sheet.section("l2.cache");
    let entry = &levels.l2.entry;
    let Some(line) = levels.l2.line else { return no_cache(sheet, levels, entry) };
    let write = match line.write {
        'B' => "write-back",
        'T' => "write-through",
        'E' => "write-evict",
        _ => return Err(entry.refuse("a write policy B, T or E")),
    };
    check_total(entry, &line, line.ways, slices)?;
    geometry(sheet, levels, (entry, &line), &(line.ways, entry.cite()), write)
}

/// A cache that the configuration does not have, or that only textures use: the smallest one.
fn no_cache(sheet: &mut Sheet, levels: &Levels, entry: &Entry) -> Result<(), SpecError> {
    let source = format!("{}: a single line stands for no cache", entry.cite());
    let mut assumed = |key: &str, value: &str| {
        sheet.leaf(key, &value, SourceKind::Assumed, &source);
    };
    for (key, value) in [("sets", "1"), ("ways", "1"), ("line_bytes", "128")] {
        assumed(key, value);
    }
    if levels.sector_bytes != SECTOR {
        assumed("sector_bytes", &levels.sector_bytes.to_string());
    }
    assumed("mshr_entries", &NO_CACHE_ENTRIES.to_string());
    assumed("mshr_merge", "1");
    for (key, value) in [
        ("hash", "\"linear\""),
        ("write", "\"write-through\""),
        ("write_miss", "\"around\""),
        ("allocate", "\"on-fill\""),
        ("replacement", "\"lru\""),
    ] {
        assumed(key, value);
    }
    Ok(())
}

/// Writes the geometry; `ways` with its own source.
fn geometry(
    sheet: &mut Sheet,
    levels: &Levels,
    (entry, line): (&Entry, &CacheLine),
    ways: &(u32, String),
    write: &str,
) -> Result<(), SpecError> {
    let cite = entry.cite();
    if line.sets.is_power_of_two() {
        sheet.published("sets", line.sets, &cite);
    } else {
        let source = format!("{cite}: the remainder; the simulator masks, and uses fewer sets");
        sheet.leaf("sets", &line.sets, SourceKind::Assumed, &source);
    }
    sheet.published("ways", ways.0, &ways.1);
    sheet.published("line_bytes", line.line_bytes, &cite);
    sectors(sheet, levels, line);
    let hash = match line.hash {
        None | Some('L') => "linear",
        Some('X') => "xor",
        Some('P') => "ipoly",
        _ => "fermi",
    };
    sheet.choice("hash", hash, &cite);
    misses(sheet, levels, entry, line)?;
    sheet.choice("write", write, &cite);
    policies(sheet, entry, line)
}

/// Writes the bytes that are valid as one, unless they are a sector in a sectored cache.
fn sectors(sheet: &mut Sheet, levels: &Levels, line: &CacheLine) {
    let (exact, source) = levels.sectors_source();
    if line.kind == 'S' && levels.sector_bytes == SECTOR {
        return;
    }
    let kind = if exact { SourceKind::Published } else { SourceKind::Assumed };
    sheet.leaf("sector_bytes", &levels.sector_bytes, kind, &source);
}

/// Writes the table of outstanding misses.
fn misses(
    sheet: &mut Sheet,
    levels: &Levels,
    entry: &Entry,
    line: &CacheLine,
) -> Result<(), SpecError> {
    let cite = entry.cite();
    if line.allocate == 's' {
        let sectors = (line.line_bytes / levels.sector_bytes).max(1);
        let entries = entry.product(&[line.sets, line.ways, 4 * sectors])?;
        if entries > 1 << 20 {
            return Err(entry.refuse("at most 1048576 sectors in four times the cache"));
        }
        let part = if levels.sector_bytes == SECTOR { "sector" } else { "line" };
        let source = format!("{cite}: streaming, an entry per {part} of four times the cache");
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
    let (write_miss, note) = write_miss(line);
    if note.is_empty() {
        sheet.choice("write_miss", write_miss, &cite);
    } else {
        let (value, source) = (format!("\"{write_miss}\""), format!("{cite}: {note}"));
        sheet.leaf("write_miss", &value, SourceKind::Assumed, &source);
    }
    let allocate = if line.allocate == 'm' { "on-miss" } else { "on-fill" };
    sheet.choice("allocate", allocate, &cite);
    let replacement = match line.replacement {
        'L' => "lru",
        'F' => "fifo",
        _ => return Err(entry.refuse("a replacement L or F")),
    };
    sheet.choice("replacement", replacement, &cite);
    Ok(())
}

/// What a write miss does, and, where the model does something else than the configuration
/// says, what.
fn write_miss(line: &CacheLine) -> (&'static str, &'static str) {
    // Before the option existed write-back caches allocated for writes, and others did not.
    let written = line.write_allocate.unwrap_or(if line.write == 'B' { 'W' } else { 'N' });
    match (written, line.write) {
        ('N', _) => ("around", ""),
        (_, 'E') => ("around", "a line that a write drops is not allocated for it"),
        ('L', _) => ("lazy", ""),
        ('F', 'B' | 'L') => ("fetch", ""),
        ('W', 'B' | 'L') if line.allocate == 'm' => {
            ("fetch", "the old write allocation; the write itself does not go on")
        }
        (_, _) if line.allocate == 'm' => {
            ("lazy", "what is written through needs no fetch of the rest before it is read")
        }
        (_, _) => ("around", "a line that is allocated on its fill has no place for a write"),
    }
}
