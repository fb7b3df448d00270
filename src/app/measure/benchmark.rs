//! The microbenchmarks: one row each. To add one: a workload in `models/microbenchmarks`, and a
//! row here.

use super::MeasureError;
use super::{Bench, Ran};
use crate::float;

/// A microbenchmark.
#[derive(Clone, Copy, Debug)]
pub(super) struct Benchmark {
    /// Its name on the command line and in tables.
    pub(super) name: &'static str,
    /// What it measures, in one line.
    pub(super) about: &'static str,
    /// What its points are, with the unit.
    pub(super) at: &'static str,
    /// The unit of its values.
    pub(super) unit: &'static str,
    /// The points of a machine without published values.
    pub(super) points: fn(&Bench<'_>) -> Vec<String>,
    /// Whether a point can be run: what was found and expected, where not.
    pub(super) check: fn(&str) -> Result<(), String>,
    /// Its value at a point that was checked.
    pub(super) value: fn(&Bench<'_>, &str) -> Result<f64, MeasureError>,
}

/// All of them, in the order of tables.
pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "load-latency",
        about: "dependent loads of one lane (pointer chase), against the size of the buffer",
        at: "buffer (kB)",
        unit: "cycles",
        points: |bench| powers(16, 4 * bench.l2_bytes() / 1024),
        check: whole,
        value: load_latency,
    },
    Benchmark {
        name: "stream-read",
        about: "a load of 8 bytes per thread, two CTAs per SM, against their part of the SM",
        at: "occupancy (%)",
        unit: "GB/s",
        points: |_| OCCUPANCIES.map(String::from).into(),
        check: number,
        value: |bench, at| stream(bench, ("stream-read", at), 1, 0),
    },
    Benchmark {
        name: "stream-scale",
        about: "a load and a store of 8 bytes per thread, two CTAs per SM",
        at: "occupancy (%)",
        unit: "GB/s",
        points: |_| OCCUPANCIES.map(String::from).into(),
        check: number,
        value: |bench, at| stream(bench, ("stream-scale", at), 1, 1),
    },
    Benchmark {
        name: "stream-init",
        about: "a store of 8 bytes per thread, two CTAs per SM",
        at: "occupancy (%)",
        unit: "GB/s",
        points: |_| vec![String::from("100")],
        check: number,
        value: |bench, at| stream(bench, ("stream-init", at), 0, 1),
    },
    Benchmark {
        name: "stream-triad",
        about: "two loads and a store of 8 bytes per thread, two CTAs per SM",
        at: "occupancy (%)",
        unit: "GB/s",
        points: |_| vec![String::from("100")],
        check: number,
        value: |bench, at| stream(bench, ("stream-triad", at), 2, 1),
    },
    Benchmark {
        name: "dram-read-sms",
        about: "reads of so many SMs from the DRAM, 64 KB of each in flight",
        at: "SMs",
        unit: "GB/s",
        points: some_sms,
        check: whole,
        value: |bench, at| {
            let per_cycle = sm_read(bench, ("dram-read-sms", at), false)?;
            Ok(gb_per_s(bench, per_cycle, 1.0))
        },
    },
    Benchmark {
        name: "l2-read-sms",
        about: "reads of so many SMs from the L2, 64 KB of each in flight",
        at: "SMs",
        unit: "B/cycle",
        points: some_sms,
        check: whole,
        value: |bench, at| sm_read(bench, ("l2-read-sms", at), true),
    },
    Benchmark {
        name: "l2-read-shared",
        about: "all SMs read the same buffer",
        at: "buffer (kB)",
        unit: "GB/s",
        points: |bench| vec![(bench.l2_bytes() / 2048).to_string()],
        check: whole,
        value: shared_read,
    },
    Benchmark {
        name: "l2-read-chunks",
        about: "each SM reads a chunk of 512 KB of its own, against the size of all chunks",
        at: "data (kB)",
        unit: "GB/s",
        points: |bench| powers(4096, 4 * bench.l2_bytes() / 1024),
        check: whole,
        value: chunk_read,
    },
    Benchmark {
        name: "l1-read",
        about: "all SMs read a buffer of their own in the L1",
        at: "buffer (kB)",
        unit: "GB/s",
        points: |_| vec![String::from("8")],
        check: whole,
        value: l1_read,
    },
    Benchmark {
        name: "l1-stride-float",
        about: "a load of 4 bytes per lane from the L1, against the stride",
        at: "stride (elements)",
        unit: "cycles",
        points: |_| STRIDES.map(String::from).into(),
        check: whole,
        value: |bench, at| stride(bench, ("l1-stride-float", at), false),
    },
    Benchmark {
        name: "l1-stride-double",
        about: "a load of 8 bytes per lane from the L1, against the stride",
        at: "stride (elements)",
        unit: "cycles",
        points: |_| STRIDES.map(String::from).into(),
        check: whole,
        value: |bench, at| stride(bench, ("l1-stride-double", at), true),
    },
    Benchmark {
        name: "shared-stride",
        about: "a load of 4 bytes per lane from shared memory, against the stride",
        at: "stride (words)",
        unit: "cycles",
        points: |_| STRIDES.map(String::from).into(),
        check: whole,
        value: shared_stride,
    },
    Benchmark {
        name: "atomic-add",
        about: "additions of all lanes to so many words",
        at: "words",
        unit: "per cycle",
        points: |_| ["1", "32", "1048576"].map(String::from).into(),
        check: whole,
        value: atomics,
    },
    Benchmark {
        name: "opcode-latency",
        about: "from an instruction to the next that reads its result",
        at: "opcode",
        unit: "cycles",
        points: |_| OPCODES.map(String::from).into(),
        check: opcode,
        value: opcode_latency,
    },
    Benchmark {
        name: "opcode-interval",
        about: "from an instruction to the next on one scheduler: of 4 warps, OPCODE@N of N, OPCODE@most of all that fit",
        at: "opcode",
        unit: "cycles",
        points: |_| OPCODES.map(String::from).into(),
        check: opcode_of_warps,
        value: opcode_interval,
    },
    Benchmark {
        name: "launch-interval",
        about: "from a launch of a small kernel to the next in a stream",
        at: "elements",
        unit: "us",
        points: |_| vec![String::from("4096")],
        check: whole,
        value: launch_interval,
    },
    Benchmark {
        name: "cta-interval",
        about: "from an empty CTA to the next on one SM, all SMs busy",
        at: "threads",
        unit: "cycles",
        points: |_| ["32", "128", "512", "1024"].map(String::from).into(),
        check: threads,
        value: cta_interval,
    },
];

/// Parts of an SM's threads that two CTAs take.
const OCCUPANCIES: [&str; 4] = ["12.5", "25", "50", "100"];

const STRIDES: [&str; 7] = ["0", "1", "2", "4", "8", "16", "32"];

/// Instructions of every unit that all architectures have.
const OPCODES: [&str; 10] =
    ["FADD", "FFMA", "IADD3", "IMAD", "LOP3.LUT", "SHF.L.U32", "MUFU.RCP", "DFMA", "HFMA2", "POPC"];

/// In a point: as many warps as fit.
const MOST: &str = "most";

/// What is put behind a published point of a benchmark, to run it in other ways for which the
/// same value holds: a unit keeps its rate from two warps per scheduler on.
pub(super) fn variants(benchmark: &str) -> &'static [&'static str] {
    if benchmark == "opcode-interval" { &["@2", "@8", "@most"] } else { &[] }
}

/// Threads of a warp.
const WARP: i64 = 32;

/// Largest number of a point.
const LARGEST: i64 = 1 << 30;

/// Bytes that two CTAs read in a round that fills the L2.
const FILL_BYTES: i64 = 2 * 16_384;

/// Bytes of a line of the caches.
const LINE_BYTES: i64 = 128;

/// Elements of 8 bytes that each SM moves in a launch of a stream: its ends are a small part.
const STREAM_ELEMENTS: i64 = 72 * 1024;

/// Powers of two from `first` to `last`.
fn powers(first: i64, last: i64) -> Vec<String> {
    let doubled = |&size: &i64| Some(2 * size);
    std::iter::successors(Some(first), doubled)
        .take_while(|&size| size <= last)
        .map(|size| size.to_string())
        .collect()
}

/// One SM, and parts of all.
fn some_sms(bench: &Bench<'_>) -> Vec<String> {
    let all = bench.sms();
    let mut sms = vec![1, (all / 8).max(1), (all / 4).max(1), (all / 2).max(1), all];
    sms.dedup();
    sms.iter().map(i64::to_string).collect()
}

fn whole(at: &str) -> Result<(), String> {
    let fits = |value: &i64| (0..=LARGEST).contains(value);
    at.parse()
        .ok()
        .filter(fits)
        .map(drop)
        .ok_or_else(|| format!("expected a number from 0 to {LARGEST}, found `{at}`"))
}

fn number(at: &str) -> Result<(), String> {
    let fits = |value: &f64| *value > 0.0 && *value <= 100.0;
    at.parse()
        .ok()
        .filter(fits)
        .map(drop)
        .ok_or_else(|| format!("expected a number above 0, at most 100, found `{at}`"))
}

fn threads(at: &str) -> Result<(), String> {
    let fits = |value: &i64| (1..=1024).contains(value);
    let fits = at.parse().ok().filter(fits);
    fits.map(drop).ok_or_else(|| format!("expected 1 to 1024 threads, found `{at}`"))
}

fn opcode(at: &str) -> Result<(), String> {
    let letters = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '.' || c == '_';
    let fits = !at.is_empty() && at.len() <= 64 && at.chars().all(letters);
    if fits { Ok(()) } else { Err(format!("expected an opcode as FFMA, found `{at}`")) }
}

/// An opcode, and how many warps of each scheduler issue it.
fn opcode_of_warps(at: &str) -> Result<(), String> {
    let (text, warps) = at.split_once('@').unwrap_or((at, MOST));
    let fits = |warps: u32| (1..=64).contains(&warps);
    if warps != MOST && !warps.parse().is_ok_and(fits) {
        return Err(format!("expected 1 to 64 warps or `{MOST}` behind `@`, found `{warps}`"));
    }
    opcode(text)
}

/// A point that was checked, as a whole number.
fn count(at: &str) -> i64 {
    at.parse().unwrap_or(1)
}

/// Rounds of `each` bytes in which `bytes` are read into the L2; none where they do not fit it.
/// What both halves of an L2 hold is read by SMs of both.
fn filling(bench: &Bench<'_>, bytes: i64, each: i64) -> i64 {
    if bytes > bench.l2_bytes() { 0 } else { (bytes + each - 1) / each }
}

/// GB/s of so many bytes in so many cycles of the SMs.
fn gb_per_s(bench: &Bench<'_>, bytes: f64, cycles: f64) -> f64 {
    bytes / cycles * bench.machine().clocks.core_mhz * 1e-3
}

fn load_latency(bench: &Bench<'_>, at: &str) -> Result<f64, MeasureError> {
    const ROUNDS: i64 = 40;
    const LOADS: i64 = 16;
    let bytes = (1024 * count(at)).max(256);
    let lines = bytes / 128;
    let machine = bench.machine();
    let in_l1 = machine.l1.caches_global && bytes <= i64::from(machine.l1.unified_bytes);
    let inner = if in_l1 { (lines + WARP - 1) / WARP } else { 1 };
    // Nearly the golden section: lines of one row of the DRAM come far from each other.
    let golden = lines * 618 / 1000;
    let step = (golden.max(1)..).find(|&step| coprime(step, lines)).unwrap_or(1);
    let constants = [
        ("number", bench.sms()),
        ("lines", lines),
        ("step", step),
        ("filled", filling(bench, bytes, 1024 * LINE_BYTES)),
        ("inner", inner),
        ("rounds", ROUNDS),
    ];
    let ran = bench.run(("load-latency", at), "pointer-chase", &constants)?;
    Ok(ran.more() / float_of(2 * ROUNDS * LOADS))
}

fn coprime(a: i64, b: i64) -> bool {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a == 1
}

fn stream(
    bench: &Bench<'_>,
    at: (&'static str, &str),
    loads: i64,
    stores: i64,
) -> Result<f64, MeasureError> {
    let machine = bench.machine();
    let occupancy: f64 = at.1.parse().unwrap_or(100.0);
    let warps = f64::from(machine.sm.max_warps) * occupancy / 200.0;
    let width = WARP * whole_number(warps.round().clamp(1.0, 32.0));
    let half =
        i64::from(machine.shared.bytes / 2) - i64::from(machine.shared.reserved_bytes_per_cta);
    // An array is larger than the L2: the second launch finds nothing of the first.
    let elements = (bench.sms() * STREAM_ELEMENTS).max(bench.l2_bytes() / 6);
    let third_fits = 3 * width <= WARP * i64::from(machine.sm.max_warps);
    let constants = [
        ("width", width),
        ("number", elements / width),
        ("shared", if third_fits { half / 1024 * 1024 } else { 0 }),
        ("loads", loads),
        ("stores", stores),
    ];
    let ran = bench.run(at, "stream", &constants)?;
    // The first launch leaves the L2 full of what is to be written.
    let bytes = float_of(8 * (loads + stores) * (elements / width * width));
    Ok(gb_per_s(bench, bytes, ran.cycles(1)))
}

/// Bytes per cycle of so many SMs, from the L2 or from the DRAM.
fn sm_read(bench: &Bench<'_>, at: (&'static str, &str), l2: bool) -> Result<f64, MeasureError> {
    const ROUND_BYTES: i64 = 65_536;
    const ROUNDS: i64 = 6;
    let sms = count(at.1).clamp(1, bench.sms());
    // The loop reads a window again and again, or never the same.
    let half = bench.l2_bytes() / 2 / ROUND_BYTES;
    let window = ROUND_BYTES * if l2 { (2 * sms).min(half).max(1) } else { 5 * ROUNDS * sms };
    let filled = if l2 { filling(bench, window, FILL_BYTES) } else { 1 };
    let constants = [
        ("number", sms),
        ("window", window),
        ("filled", filled),
        ("strong", i64::from(l2)),
        ("rounds", ROUNDS),
    ];
    let ran = bench.run(at, "sm-read", &constants)?;
    Ok(float_of(2 * ROUNDS * ROUND_BYTES * sms) / ran.more())
}

fn shared_read(bench: &Bench<'_>, at: &str) -> Result<f64, MeasureError> {
    const ROUNDS: i64 = 4;
    let bytes = (1024 * count(at) / 65_536).max(1) * 65_536;
    let filled = filling(bench, bytes, FILL_BYTES).max(1);
    let constants =
        [("number", bench.sms()), ("bytes", bytes), ("filled", filled), ("rounds", ROUNDS)];
    let ran = bench.run(("l2-read-shared", at), "shared-read", &constants)?;
    Ok(round_rate(bench, &ran, 2 * ROUNDS))
}

fn chunk_read(bench: &Bench<'_>, at: &str) -> Result<f64, MeasureError> {
    const ROUNDS: i64 = 8;
    let chunks = (count(at) / 512).max(1);
    let filled = filling(bench, 524_288 * chunks, FILL_BYTES).max(1);
    // As many CTAs of 1024 threads as fit.
    let ctas = i64::from(bench.machine().sm.max_warps) / WARP;
    let constants = [
        ("number", ctas * bench.sms()),
        ("chunks", chunks),
        ("filled", filled),
        ("rounds", ROUNDS),
    ];
    let ran = bench.run(("l2-read-chunks", at), "chunk-read", &constants)?;
    Ok(round_rate(bench, &ran, ctas * ROUNDS))
}

/// GB/s of all SMs that read 64 KB in each of so many rounds.
fn round_rate(bench: &Bench<'_>, ran: &Ran, rounds: i64) -> f64 {
    gb_per_s(bench, float_of(rounds * 65_536 * bench.sms()), ran.more())
}

fn l1_read(bench: &Bench<'_>, at: &str) -> Result<f64, MeasureError> {
    const ROUNDS: i64 = 8;
    let bytes = (count(at) / 8).max(1) * 8192;
    let constants = [("number", 1), ("bytes", bytes), ("rounds", ROUNDS)];
    let ran = bench.run(("l1-read", at), "shared-read", &constants)?;
    Ok(round_rate(bench, &ran, 2 * ROUNDS))
}

/// Cycles per load of a warp.
fn per_load(ran: &Ran, rounds: i64) -> f64 {
    const LOADS: i64 = 8;
    const WARPS: i64 = 32;
    ran.more() / float_of(2 * rounds * LOADS * WARPS)
}

fn stride(bench: &Bench<'_>, at: (&'static str, &str), wide: bool) -> Result<f64, MeasureError> {
    const ROUNDS: i64 = 8;
    let element = if wide { 8 } else { 4 };
    let stride = count(at.1).min(1 << 16);
    let constants =
        [("stride", stride), ("element", element), ("wide", i64::from(wide)), ("rounds", ROUNDS)];
    Ok(per_load(&bench.run(at, "strides", &constants)?, ROUNDS))
}

fn shared_stride(bench: &Bench<'_>, at: &str) -> Result<f64, MeasureError> {
    const ROUNDS: i64 = 8;
    let constants = [("stride", count(at)), ("rounds", ROUNDS)];
    let ran = bench.run(("shared-stride", at), "shared-strides", &constants)?;
    Ok(per_load(&ran, ROUNDS))
}

fn atomics(bench: &Bench<'_>, at: &str) -> Result<f64, MeasureError> {
    const ROUNDS: i64 = 2;
    const ADDITIONS: i64 = 8;
    const THREADS: i64 = 256;
    let words = count(at).max(1);
    let number = bench.sms();
    let constants = [("number", number), ("words", words), ("rounds", ROUNDS)];
    let ran = bench.run(("atomic-add", at), "atomics", &constants)?;
    Ok(float_of(2 * ROUNDS * ADDITIONS * THREADS * number) / ran.more())
}

/// Cycles that 64 more instructions of a round take, per instruction: rounds have the same
/// branch, and so many of them that the first fetch of the code does not count.
fn per_instruction(
    bench: &Bench<'_>,
    at: (&'static str, &str),
    opcode: &str,
    size: &[(&str, i64)],
) -> Result<f64, MeasureError> {
    const ROUNDS: i64 = 640;
    const MORE: i64 = 64;
    let cycles = |length| {
        let constants = [size, &[("length", length), ("rounds", ROUNDS)]].concat();
        Ok::<_, MeasureError>(bench.run_with(at, "opcode", opcode, &constants)?.cycles(0))
    };
    Ok((cycles(32 + MORE)? - cycles(32)?) / float_of(ROUNDS * MORE))
}

fn opcode_latency(bench: &Bench<'_>, at: &str) -> Result<f64, MeasureError> {
    let size = [("number", 1), ("width", WARP), ("chains", 1), ("held", 64)];
    per_instruction(bench, ("opcode-latency", at), at, &size)
}

fn opcode_interval(bench: &Bench<'_>, at: &str) -> Result<f64, MeasureError> {
    const WARPS: i64 = 4;
    /// Warps of a CTA.
    const LARGEST_CTA: i64 = 32;
    let sm = &bench.machine().sm;
    let (schedulers, most) = (i64::from(sm.schedulers), i64::from(sm.max_warps));
    let (opcode, warps) = match at.split_once('@') {
        None => (at, WARPS),
        Some((opcode, MOST)) => (opcode, most / schedulers),
        Some((opcode, warps)) => (opcode, count(warps).min(most / schedulers)),
    };
    let (warps, all) = (warps.max(1), warps.max(1) * schedulers);
    let ctas = (1..=all).find(|ctas| all % ctas == 0 && all / ctas <= LARGEST_CTA).unwrap_or(all);
    let per_warp = i64::from(sm.registers) / (WARP * all);
    let (chains, held) = if per_warp < 64 { (4, 32) } else { (8, 64) };
    let size = [("number", ctas), ("width", WARP * all / ctas), ("chains", chains), ("held", held)];
    let mut alone = bench.resolved.clone();
    alone.machine.dispatch.sms = 1;
    let bench = Bench { resolved: &alone, ..*bench };
    Ok(per_instruction(&bench, ("opcode-interval", at), opcode, &size)? / float_of(warps))
}

fn launch_interval(bench: &Bench<'_>, at: &str) -> Result<f64, MeasureError> {
    let constants = [("elements", count(at).max(1))];
    let ran = bench.run(("launch-interval", at), "launches", &constants)?;
    let kernels = &ran.0.kernels;
    let last = kernels.len() - 1;
    let cycles = float(kernels[last].end - kernels[1].end) / float_of(count_of(last) - 1);
    Ok(cycles / bench.machine().clocks.core_mhz)
}

fn cta_interval(bench: &Bench<'_>, at: &str) -> Result<f64, MeasureError> {
    const PER_SM: i64 = 100;
    let constants = [("width", count(at)), ("number", PER_SM * bench.sms())];
    let ran = bench.run(("cta-interval", at), "empty-ctas", &constants)?;
    Ok(ran.more() / float_of(2 * PER_SM))
}

fn count_of(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A count as a number; counts here are far below 2^53.
#[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
fn float_of(count: i64) -> f64 {
    count as f64
}

/// A small whole number, without its fraction.
#[allow(clippy::cast_possible_truncation, reason = "the caller clamps it")]
fn whole_number(value: f64) -> i64 {
    value as i64
}
