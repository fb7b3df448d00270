//! The workload file, key by key; the keys are documented in
//! `models/workloads/README.md`.

use std::sync::Arc;

use gpumodel_core::isa::Launch;
use gpumodel_core::toml::{Entry, Node, Section};
use gpumodel_core::units::{Dim3, nearest, to_u32};

use super::WorkloadError;
use super::code::{read_body, read_expression};
use super::names::Names;
use super::program::{Budget, Program};

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
/// Most CTAs of a cluster (CUDA C++ Programming Guide, thread block clusters: 16 where a kernel
/// asks for more than the portable 8).
const CLUSTER: i64 = 16;

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
    /// The scaled constants.
    pub(super) scaled: Vec<i64>,
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

/// Reads the whole file, with `given` instead of its own values of those constants.
pub(super) fn describe(
    file: &Node,
    scale: f64,
    given: &[(&str, i64)],
) -> Result<Description, WorkloadError> {
    let keys = file.root().section(&KEYS)?;
    let seed = keys.integer_or(0, "seed", 0..=i64::MAX)?.cast_unsigned();
    let mut names = Names::new(seed);
    let (constants, scaled) = (keys.entries("constants")?, keys.entries("scaled")?);
    check_known(given, constants.iter().chain(&scaled)).map_err(WorkloadError::at(keys.place()))?;
    read_constants(&constants, &mut names, None, given)?;
    let scaled = read_constants(&scaled, &mut names, Some(scale), given)?;
    let rounds = read_repeats(&keys, "rounds", &names)?;
    let buffers = read_buffers(&keys.entries("buffers")?, &mut names)?;
    let mut budget = Budget::new();
    let kernels = keys.require("kernel")?.items()?;
    let kernels: Vec<_> = kernels
        .iter()
        .map(|kernel| read_kernel(kernel, &names, &mut budget))
        .collect::<Result<_, _>>()?;
    let launches: i64 = rounds * kernels.iter().map(|k| i64::from(k.launches)).sum::<i64>();
    if launches > LAUNCHES {
        let what = format!("{launches} launches, expected at most {LAUNCHES}");
        return Err(WorkloadError::invalid(keys.place(), what));
    }
    Ok(Description {
        description: keys.text("description")?.to_owned(),
        behaviour: keys.text("behaviour")?.to_owned(),
        source: keys.text("source")?.to_owned(),
        seed,
        rounds: to_u32(rounds),
        scaled,
        buffers,
        kernels,
    })
}

/// Launches of all kernels in order, which may be an expression over constants.
fn read_repeats(keys: &Section<'_>, key: &str, names: &Names) -> Result<i64, WorkloadError> {
    let Some(entry) = keys.get(key) else { return Ok(1) };
    let found = constant(&entry, names)?;
    if (1..=LAUNCHES).contains(&found) {
        return Ok(found);
    }
    let what = format!("`{key}` is {found}, expected 1 to {LAUNCHES}");
    Err(WorkloadError::invalid(entry.place(), what))
}

/// Every constant of `given` is one of the file's.
fn check_known<'a>(
    given: &[(&str, i64)],
    constants: impl Iterator<Item = &'a Entry<'a>>,
) -> Result<(), String> {
    let known: Vec<&str> = constants.map(Entry::name).collect();
    let Some((name, _)) = given.iter().find(|(name, _)| !known.contains(name)) else {
        return Ok(());
    };
    Err(match nearest(name, known.iter().copied()) {
        Some(near) => format!("no constant `{name}`; did you mean `{near}`?"),
        None => format!("no constant `{name}`; the file has {}", known.join(", ")),
    })
}

/// Adds constants, those of `given` instead of the file's, multiplied by `scale` where there
/// is one, and returns their values.
fn read_constants(
    entries: &[Entry<'_>],
    names: &mut Names,
    scale: Option<f64>,
    given: &[(&str, i64)],
) -> Result<Vec<i64>, WorkloadError> {
    let mut values = Vec::with_capacity(entries.len());
    for entry in entries {
        let name = entry.name();
        let given = given.iter().find(|(known, _)| *known == name);
        let mut value = given.map_or_else(|| constant(entry, names), |given| Ok(given.1))?;
        if let Some(scale) = scale {
            if !(1..=1 << 32).contains(&value) {
                let what = format!("the scaled constant `{name}` is {value}, expected 1 to 2^32");
                return Err(WorkloadError::invalid(entry.place(), what));
            }
            value = multiply(value, scale);
        }
        let taken = names.set_constant(name, value);
        taken.map_err(WorkloadError::at(entry.place()))?;
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
fn constant(entry: &Entry<'_>, names: &Names) -> Result<i64, WorkloadError> {
    let (name, wrong) = (entry.name(), WorkloadError::at(entry.place()));
    let found = names.constant(&read_expression(entry)?);
    let found = found.map_err(|what| wrong(format!("in `{name}`: {what}")))?;
    if found.unsigned_abs() > LARGEST.unsigned_abs() {
        return Err(wrong(format!("`{name}` is {found}, expected at most 2^40")));
    }
    Ok(found)
}

fn read_buffers(entries: &[Entry<'_>], names: &mut Names) -> Result<Vec<Buffer>, WorkloadError> {
    let mut buffers = Vec::with_capacity(entries.len());
    let mut base = FIRST_BUFFER;
    for entry in entries {
        let wrong = WorkloadError::at(entry.place());
        let keys = entry.section(&["bytes", "copy"])?;
        let name = entry.name();
        let bytes = constant(&keys.require("bytes")?, names)?;
        if bytes < 1 {
            let what = format!("the buffer `{name}` has {bytes} bytes, expected at least 1");
            return Err(wrong(what));
        }
        names.set_buffer(name, base, bytes).map_err(&wrong)?;
        buffers.push(Buffer {
            name: name.to_owned(),
            base: base.cast_unsigned(),
            bytes: bytes.cast_unsigned(),
            copied: keys.flag("copy")?,
        });
        base += (bytes + BUFFER_ALIGNMENT - 1) / BUFFER_ALIGNMENT * BUFFER_ALIGNMENT;
    }
    Ok(buffers)
}

/// Keys of a kernel.
const KERNEL_KEYS: [&str; 11] = [
    "name",
    "grid",
    "block",
    "cluster",
    "registers",
    "shared_bytes",
    "stream",
    "binary_version",
    "launches",
    "let",
    "code",
];

fn read_kernel(
    entry: &Entry<'_>,
    file_names: &Names,
    budget: &mut Budget,
) -> Result<KernelDescription, WorkloadError> {
    let keys = entry.section(&KERNEL_KEYS)?;
    let launch = read_launch(&keys, file_names)?;
    let mut names = file_names.clone();
    names.set_extents(extents(&launch));
    for entry in keys.entries("let")? {
        let added = names.set_let(entry.name(), read_expression(&entry)?);
        added.map_err(WorkloadError::at(entry.place()))?;
    }
    let steps = read_body(&keys.require("code")?)?;
    let program = Arc::new(Program::compile(&steps, names, &launch, budget)?);
    let launches = to_u32(read_repeats(&keys, "launches", file_names)?);
    Ok(KernelDescription { launch, launches, program })
}

fn read_launch(keys: &Section<'_>, names: &Names) -> Result<Launch, WorkloadError> {
    let check = |kept: bool, what: String| match kept {
        true => Ok(()),
        false => Err(WorkloadError::invalid(keys.place(), what)),
    };
    let name = keys.text("name")?;
    let line = !name.is_empty() && !name.contains(char::is_control);
    check(line, "a kernel's `name` is one line of text".to_owned())?;
    // CUDA C++ Programming Guide, technical specifications per compute capability.
    let grid = read_extent(keys, "grid", [i64::from(i32::MAX), 65_535, 65_535], names)?;
    let block = read_extent(keys, "block", [1024, 1024, 64], names)?;
    let (ctas, threads) = (grid.count(), block.count());
    check(threads <= 1024, format!("a block of {threads} threads, expected at most 1024"))?;
    check(ctas < 1 << 31, format!("a grid of {ctas} CTAs, expected below 2^31"))?;
    let small = |default, key, range| keys.integer_or(default, key, range).map(to_u32);
    let shared_bytes = keys.get("shared_bytes").map_or(Ok(0), |entry| constant(&entry, names))?;
    let fits = (0..=1 << 20).contains(&shared_bytes);
    check(fits, format!("`shared_bytes` is {shared_bytes}, expected 0 to 1048576"))?;
    Ok(Launch {
        name: name.to_owned(),
        id: 0,
        grid,
        block,
        shared_bytes: to_u32(shared_bytes),
        registers: read_registers(keys, names)?,
        binary_version: small(70, "binary_version", 30..=999)?,
        stream: keys.integer_or(0, "stream", 0..=i64::MAX)?.cast_unsigned(),
        shared_window: SHARED_WINDOW,
        local_window: LOCAL_WINDOW,
        cluster: read_cluster(keys, grid, names)?,
    })
}

/// CTAs of a cluster, of which a grid has whole ones; one alone is none.
fn read_cluster(keys: &Section<'_>, grid: Dim3, names: &Names) -> Result<Dim3, WorkloadError> {
    let Some(entry) = keys.get("cluster") else { return Ok(Dim3::default()) };
    let cluster = read_extent(keys, "cluster", [CLUSTER; 3], names)?;
    let whole = [(grid.x, cluster.x), (grid.y, cluster.y), (grid.z, cluster.z)];
    if i64::try_from(cluster.count()).is_ok_and(|count| count > CLUSTER)
        || whole.iter().any(|(grid, of)| grid % of != 0)
    {
        let what = format!(
            "`cluster` is {cluster} in a grid of {grid}, expected at most {CLUSTER} CTAs and a \
             grid of whole clusters"
        );
        return Err(WorkloadError::invalid(entry.place(), what));
    }
    Ok(if cluster.count() > 1 { cluster } else { Dim3::default() })
}

/// Registers of a thread, 32 by default.
fn read_registers(keys: &Section<'_>, names: &Names) -> Result<u32, WorkloadError> {
    let Some(entry) = keys.get("registers") else { return Ok(32) };
    let found = constant(&entry, names)?;
    if !(1..=255).contains(&found) {
        let what = format!("`registers` is {found}, expected 1 to 255");
        return Err(WorkloadError::invalid(entry.place(), what));
    }
    Ok(to_u32(found))
}

fn read_extent(
    keys: &Section<'_>,
    key: &str,
    most: [i64; 3],
    names: &Names,
) -> Result<Dim3, WorkloadError> {
    let entry = keys.require(key)?;
    let items = entry.items()?;
    let mut extent = [1; 3];
    if items.len() > extent.len() {
        return Err(entry.wrong("1 to 3 extents").into());
    }
    for ((item, slot), most) in items.iter().zip(&mut extent).zip(most) {
        let found = constant(item, names)?;
        if !(1..=most).contains(&found) {
            let what = format!("`{key}` has an extent of {found}, expected 1 to {most}");
            return Err(WorkloadError::invalid(item.place(), what));
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
