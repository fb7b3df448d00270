//! The workload file, key by key; the keys are documented in
//! `models/workloads/README.md`.

use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use gpumodel_core::isa::Launch;
use gpumodel_core::units::{Dim3, to_u32};

use super::body::{read_body, read_term};
use super::compile::{Budget, Frame, compile};
use super::document::{Entry, Keys, mismatch};
use super::error::Fault;
use super::names::Names;
use super::program::Program;

/// Address of the first buffer: where CUDA's allocations usually lie.
const FIRST_BUFFER: i64 = 0x7f40_0000_0000;
/// Buffers start at multiples of this, as `cudaMalloc`'s do.
const BUFFER_ALIGNMENT: i64 = 512;
/// Start of the window of shared memory in generic addresses.
const SHARED_WINDOW: u64 = 0x7f3e_0200_0000;
/// Start of the window of local memory, 32 MB below, as under NVBit 1.5 and later.
const LOCAL_WINDOW: u64 = SHARED_WINDOW - 0x200_0000;
/// Largest buffer and largest constant.
const LARGEST: i64 = 1 << 40;
/// Most launches of a workload.
const LAUNCHES: i64 = 10_000;

/// Keys of a workload file.
const KEYS: [&str; 9] = [
    "description",
    "behaviour",
    "source",
    "seed",
    "rounds",
    "constants",
    "scaled",
    "buffers",
    "kernel",
];

/// A workload file, read, checked and compiled.
#[derive(Debug)]
pub(super) struct Description {
    pub(super) description: String,
    pub(super) behaviour: String,
    pub(super) source: String,
    pub(super) seed: u64,
    pub(super) rounds: u32,
    /// Has scaled constants.
    pub(super) scales: bool,
    /// All of them are 1: no scale makes less of it.
    pub(super) least: bool,
    pub(super) buffers: Vec<Buffer>,
    pub(super) kernels: Vec<KernelDescription>,
}

/// A range of device memory.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) name: String,
    pub(super) base: u64,
    pub(super) bytes: u64,
    /// The host copies it to the device before the first launch.
    pub(super) copied: bool,
}

/// One kernel of the file.
#[derive(Debug)]
pub(super) struct KernelDescription {
    /// The launch but for its id.
    pub(super) launch: Launch,
    /// Launches in a row.
    pub(super) launches: u32,
    pub(super) program: Arc<Program>,
}

/// Reads the whole file.
pub(super) fn describe(table: &DeTable<'_>, scale: f64) -> Result<Description, Fault> {
    let keys = Keys::new(table, 0, "the workload", &KEYS)?;
    let seed = keys.integer("seed", 0..=i64::MAX, 0)?.cast_unsigned();
    let rounds = keys.integer("rounds", 1..=LAUNCHES, 1)?;
    let mut names = Names::new(seed);
    let scaled = keys.entries("scaled")?;
    read_constants(&keys.entries("constants")?, &mut names, None)?;
    let sizes = read_constants(&scaled, &mut names, Some(scale))?;
    let buffers = read_buffers(&keys.entries("buffers")?, &mut names)?;
    let kernels = keys.items("kernel")?;
    let mut budget = Budget::new();
    let kernels: Vec<_> = kernels
        .into_iter()
        .map(|kernel| read_kernel(kernel, &names, &mut budget))
        .collect::<Result<_, _>>()?;
    let launches: i64 = rounds * kernels.iter().map(|k| i64::from(k.launches)).sum::<i64>();
    if launches > LAUNCHES {
        let what = format!("{launches} launches, expected at most {LAUNCHES}");
        return Err(Fault::new(keys.at(), what));
    }
    Ok(Description {
        description: keys.text("description")?.to_owned(),
        behaviour: keys.text("behaviour")?.to_owned(),
        source: keys.text("source")?.to_owned(),
        seed,
        rounds: to_u32(rounds),
        scales: !scaled.is_empty(),
        least: sizes.iter().all(|&size| size == 1),
        buffers,
        kernels,
    })
}

/// Adds constants, multiplied by `scale` where there is one, and gives their values.
fn read_constants(
    entries: &[Entry<'_>],
    names: &mut Names,
    scale: Option<f64>,
) -> Result<Vec<i64>, Fault> {
    let mut values = Vec::with_capacity(entries.len());
    for entry in entries {
        let at = entry.value.span().start;
        let mut value = constant(entry.value, entry.name, names)?;
        if let Some(scale) = scale {
            if !(1..=1 << 32).contains(&value) {
                let what =
                    format!("the scaled constant `{}` is {value}, expected 1 to 2^32", entry.name);
                return Err(Fault::new(at, what));
            }
            value = multiply(value, scale);
        }
        names.set_constant(entry.name, value).map_err(|e| Fault::new(entry.at, e))?;
        values.push(value);
    }
    Ok(values)
}

/// `value`, 1 to 2^32, times `scale`, above 0 and at most 10^6, rounded; at least 1.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "both are in range"
)]
fn multiply(value: i64, scale: f64) -> i64 {
    ((value as f64 * scale).round() as i64).max(1)
}

/// An integer or an expression over constants, 0 to 2^40 in size.
fn constant(value: &Spanned<DeValue<'_>>, key: &str, names: &Names) -> Result<i64, Fault> {
    let at = value.span().start;
    let term = read_term(value, key)?;
    let found = names.constant(&term).map_err(|e| Fault::new(at, format!("in `{key}`: {e}")))?;
    if found.unsigned_abs() > LARGEST.unsigned_abs() {
        return Err(Fault::new(at, format!("`{key}` is {found}, expected at most 2^40")));
    }
    Ok(found)
}

fn read_buffers(entries: &[Entry<'_>], names: &mut Names) -> Result<Vec<Buffer>, Fault> {
    let mut buffers = Vec::with_capacity(entries.len());
    let mut base = FIRST_BUFFER;
    for entry in entries {
        let at = entry.value.span().start;
        let table = entry.value.get_ref().as_table();
        let table = table.ok_or_else(|| mismatch(entry.value, entry.name, "a table"))?;
        let place = format!("the buffer `{}`", entry.name);
        let keys = Keys::new(table, at, &place, &["bytes", "copy"])?;
        let bytes = constant(keys.require("bytes")?, "bytes", names)?;
        if bytes < 1 {
            return Err(Fault::new(at, format!("{place} has {bytes} bytes, expected at least 1")));
        }
        names.set_buffer(entry.name, base, bytes).map_err(|e| Fault::new(entry.at, e))?;
        buffers.push(Buffer {
            name: entry.name.to_owned(),
            base: base.cast_unsigned(),
            bytes: bytes.cast_unsigned(),
            copied: keys.flag("copy")?,
        });
        base += (bytes + BUFFER_ALIGNMENT - 1) / BUFFER_ALIGNMENT * BUFFER_ALIGNMENT;
    }
    Ok(buffers)
}

fn read_kernel(
    value: &Spanned<DeValue<'_>>,
    names: &Names,
    budget: &mut Budget,
) -> Result<KernelDescription, Fault> {
    let at = value.span().start;
    let table = value.get_ref().as_table();
    let table = table.ok_or_else(|| mismatch(value, "kernel", "a table `[[kernel]]`"))?;
    let known = [
        "name",
        "grid",
        "block",
        "registers",
        "shared_bytes",
        "stream",
        "binary_version",
        "launches",
        "let",
        "code",
    ];
    let keys = Keys::new(table, at, "the kernel", &known)?;
    let launch = read_launch(&keys, names)?;
    let mut names = names.clone();
    names.set_extents(extents(&launch));
    for entry in keys.entries("let")? {
        let term = read_term(entry.value, entry.name)?;
        names.set_let(entry.name, term).map_err(|e| Fault::new(entry.at, e))?;
    }
    let frame = Frame {
        grid: launch.grid,
        block: launch.block,
        registers: launch.registers,
        binary_version: launch.binary_version,
    };
    let program = compile(&read_body(&keys, "code")?, names, frame, budget)?;
    let launches = to_u32(keys.integer("launches", 1..=LAUNCHES, 1)?);
    Ok(KernelDescription { launch, launches, program: Arc::new(program) })
}

fn read_launch(keys: &Keys<'_>, names: &Names) -> Result<Launch, Fault> {
    let name = keys.text("name")?;
    if name.is_empty() || name.contains(char::is_control) {
        return Err(Fault::new(keys.at(), "a kernel's `name` is one line of text"));
    }
    // CUDA C++ Programming Guide, technical specifications per compute capability.
    let grid = read_extent(keys, "grid", [i64::from(i32::MAX), 65_535, 65_535], names)?;
    let block = read_extent(keys, "block", [1024, 1024, 64], names)?;
    let whole = |ok: bool, what: String| if ok { Ok(()) } else { Err(Fault::new(keys.at(), what)) };
    whole(
        block.count() <= 1024,
        format!("a block of {} threads, expected at most 1024", block.count()),
    )?;
    whole(grid.count() < 1 << 31, format!("a grid of {} CTAs, expected below 2^31", grid.count()))?;
    Ok(Launch {
        name: name.to_owned(),
        id: 0,
        grid,
        block,
        shared_bytes: to_u32(keys.integer("shared_bytes", 0..=1 << 20, 0)?),
        registers: to_u32(keys.integer("registers", 1..=255, 32)?),
        binary_version: to_u32(keys.integer("binary_version", 30..=999, 70)?),
        stream: keys.integer("stream", 0..=i64::MAX, 0)?.cast_unsigned(),
        shared_window: SHARED_WINDOW,
        local_window: LOCAL_WINDOW,
    })
}

fn read_extent(keys: &Keys<'_>, key: &str, most: [i64; 3], names: &Names) -> Result<Dim3, Fault> {
    let items = keys.items(key)?;
    let mut extent = [1; 3];
    if items.len() > extent.len() {
        let what = format!("`{key}` has {} entries, expected 1 to 3", items.len());
        return Err(Fault::new(keys.at(), what));
    }
    for ((item, slot), most) in items.into_iter().zip(&mut extent).zip(most) {
        let found = constant(item, key, names)?;
        if !(1..=most).contains(&found) {
            let what = format!("`{key}` has an extent of {found}, expected 1 to {most}");
            return Err(Fault::new(item.span().start, what));
        }
        *slot = to_u32(found);
    }
    Ok(extent.into())
}

/// The values of [`EXTENTS`](super::names::EXTENTS) for a launch.
fn extents(launch: &Launch) -> [i64; 9] {
    let (grid, block) = (launch.grid, launch.block);
    let [gx, gy, gz] = <[u32; 3]>::from(grid).map(i64::from);
    let [dx, dy, dz] = <[u32; 3]>::from(block).map(i64::from);
    let (ctas, threads) = (grid.count().cast_signed(), block.count().cast_signed());
    [gx, gy, gz, ctas, dx, dy, dz, threads, i64::from(launch.warps_per_cta())]
}
