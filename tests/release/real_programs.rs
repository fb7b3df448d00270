//! How far are the workload models from real traces of the same programs?
//!
//! `cargo test --test release real_programs -- --nocapture` prints the table that
//! `models/workloads/CALIBRATION.md` holds. Where a reference trace has another input than
//! the paper whose kernel is modelled, mixes shift with it: trips of loops, not loads.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use gpumodel::core::isa::{Access, Effect, Opcode, Space, Unit};
use gpumodel::sim::config::Resolved;
use gpumodel::trace::Store;
use gpumodel::trace::workload::{Compression, Kernel, Workload, write_folder};
use liblzma::read::XzDecoder;

use crate::rendering::{converted, reference};

/// A model and a real trace of the same program or algorithm.
struct Pair {
    model: &'static str,
    scale: f64,
    /// Part of the names of the model's kernels that are compared.
    ours: &'static str,
    /// Below the folder of reference traces.
    real: &'static str,
    /// Part of the names of its kernels that are compared.
    kernel: &'static str,
    /// How many CTAs of a launch are compared, from its first on; `None`: all.
    ctas: Option<u64>,
    /// Most points by which the mixes differ.
    mix: f64,
    /// Most that one side has as many sectors per access as the other, as a factor.
    sectors: f64,
}

const fn pair(
    model: &'static str,
    scale: f64,
    real: &'static str,
    kernel: &'static str,
    (mix, sectors): (f64, f64),
) -> Pair {
    Pair { model, scale, ours: "", real, kernel, ctas: None, mix, sectors }
}

impl Pair {
    /// Compares only the model's kernels whose names hold `ours`.
    const fn of(self, ours: &'static str) -> Self {
        Self { ours, ..self }
    }

    /// Compares only the first `ctas` CTAs: for traces of one long launch.
    const fn first(self, ctas: u64) -> Self {
        Self { ctas: Some(ctas), ..self }
    }

    /// The behaviour of the real trace.
    fn traced(&self, reference: &Path, scratch: &Path) -> Traced {
        let folder = reference.join(self.real);
        let trace = self.ctas.map(|ctas| beginning(&folder, ctas, scratch));
        let store = converted(trace.as_ref().unwrap_or(&folder), scratch);
        Traced::read(&store, self.kernel, self.ctas)
    }

    /// The behaviour of the model, at its small scale.
    fn modelled(&self, scratch: &Path) -> Traced {
        let workload = Workload::load_scaled(self.model, &gpumodel::models(), self.scale).unwrap();
        let folder = scratch.join("trace");
        write_folder(&workload, &folder, Compression::None, &mut |_| {}).unwrap();
        let store = converted(&folder, scratch);
        fs::remove_dir_all(&folder).unwrap();
        Traced::read(&store, self.ours, self.ctas)
    }
}

/// The first `ctas` CTAs of the launch in `folder`, as a trace in `scratch`: the
/// whole text may have gigabytes.
fn beginning(folder: &Path, ctas: u64, scratch: &Path) -> PathBuf {
    let file = File::open(folder.join("kernel-1.traceg.xz")).unwrap();
    let text = BufReader::new(XzDecoder::new_multi_decoder(file));
    let cut = scratch.join("beginning.traceg");
    let mut written = BufWriter::new(File::create(&cut).unwrap());
    let mut left = ctas;
    for line in text.lines() {
        let line = line.unwrap();
        writeln!(written, "{line}").unwrap();
        left -= u64::from(line == "#END_TB");
        if left == 0 {
            break;
        }
    }
    written.flush().unwrap();
    cut
}

const PAIRS: &[Pair] = &[
    pair("ugpu-lbm", 0.02, "apps/lbm", "StreamCollide", (12.0, 1.2)),
    pair("ws-lbm", 0.05, "apps/lbm", "StreamCollide", (14.0, 1.2)),
    pair("ugpu-hotspot", 0.02, "apps/hotspot", "calculate_temp", (20.0, 1.1)),
    pair("ws-hot", 0.05, "apps/hotspot", "calculate_temp", (21.0, 1.1)),
    pair("ws-hot", 0.05, "silicon/hotspot_full", "", (21.0, 1.1)).first(344),
    pair("ilp-hs", 0.05, "apps/hotspot", "calculate_temp", (14.0, 1.1)),
    pair("ws-bfs", 0.05, "apps/bfs", "Kernel", (14.0, 2.2)),
    pair("ilp-bfs2", 0.15, "apps/bfs", "Kernel", (11.0, 1.45)),
    pair("ws-bfs", 0.05, "real/bfs_sm70", "Kernel", (13.0, 4.25)),
    pair("ilp-bfs2", 0.15, "real/bfs_sm70", "Kernel", (10.0, 1.45)),
    pair("ugpu-fwt", 0.02, "apps/fwt", "fwtBatch2", (10.0, 1.1)),
    pair("ugpu-mriq", 0.02, "apps/mriq", "ComputeQ", (11.0, 1.1)).of("ComputeQ"),
    pair("ws-knn", 0.05, "apps/nn", "", (14.0, 1.1)),
    pair("ugpu-pf", 0.02, "apps/pathfinder", "dynproc", (16.0, 1.1)),
    pair("ugpu-bh", 0.02, "apps/BlackScholes", "", (6.0, 2.05)),
    pair("ws-blk", 0.02, "apps/BlackScholes", "", (4.0, 2.05)),
    pair("ilp-blk", 0.02, "apps/BlackScholes", "", (6.0, 2.05)),
    pair("black-scholes", 0.02, "apps/BlackScholes", "", (5.0, 1.1)),
    pair("ilp-lud", 0.05, "apps/lud", "", (22.0, 1.25)),
    pair("matrix-transpose", 0.02, "apps/transpose", "Naive", (14.0, 1.85)),
    pair("transpose", 0.25, "apps/transpose", "Naive", (20.0, 1.1)),
    pair("gaussian", 0.02, "apps/gaussian", "Fan2", (6.0, 1.15)),
    pair("quasirandom", 0.02, "silicon/quasirandom", "", (31.0, 1.1)),
    pair("ilp-bp", 0.05, "silicon/backprop_layerforward", "", (20.0, 1.1)).of("layerforward"),
    pair("sgemm", 0.05, "apps/matrixMul", "", (4.0, 1.1)),
    pair("matmul-tiled", 0.2, "apps/matrixMul", "", (4.0, 1.1)),
    pair("sgemm", 0.05, "real/matmul_sm61", "", (15.0, 1.1)),
    pair("ws-mm", 0.1, "silicon/sgemm", "", (45.0, 1.1)).first(32),
    pair("stream", 0.05, "real/vecadd_raw_sm61", "", (12.0, 1.1)).of("add"),
    pair("ugpu-srad", 0.02, "silicon/srad_v1", "", (16.0, 1.25)),
    pair("binomial-options", 0.02, "silicon/binomial_options", "", (9.0, 1.1)).first(8),
];

/// Kinds of instructions whose shares are compared. Integers and floating point are one:
/// before Volta they have one unit, and the models are for such GPUs.
pub(super) const KINDS: [&str; 5] = ["arithmetic", "special", "global", "shared", "control"];

/// The behaviour of a trace.
#[derive(Default)]
pub(super) struct Traced {
    /// Warp instructions of each of [`KINDS`].
    kinds: [u64; KINDS.len()],
    /// Instructions with an address in global memory and an active lane.
    accesses: u64,
    /// Sectors of 32 bytes that they touch, each instruction's counted once.
    sectors: u64,
    distinct: BTreeSet<u64>,
    warps: u64,
}

impl Traced {
    /// Reads the launches whose name holds `kernel`, the first `ctas` of each.
    pub(super) fn read(store: &Store, kernel: &str, ctas: Option<u64>) -> Self {
        let mut traced = Self::default();
        for number in 0..store.kernel_count() {
            if store.kernel(number).launch().name.contains(kernel) {
                traced.add(store, number, ctas);
            }
        }
        assert!(traced.kinds.iter().sum::<u64>() > 0, "no launch of {kernel}");
        traced
    }

    fn add(&mut self, store: &Store, number: usize, ctas: Option<u64>) {
        let launch = store.kernel(number);
        let Resolved { machine, isa, .. } = resolved(launch.launch().binary_version);
        let code = store.code(number).unwrap();
        let opcodes: Vec<_> = code.opcodes.iter().map(|text| isa.opcode(&machine, text)).collect();
        let mut access = Access::default();
        for ordinal in 0..ctas.unwrap_or(u64::MAX).min(launch.cta_count()) {
            let cta = store.cta(number, ordinal).unwrap();
            self.warps += u64::from(cta.warp_count());
            for warp in 0..cta.warp_count() {
                let mut cursor = cta.warp(warp);
                while cursor.next_segment().is_some() {
                    while let Some(at) = cursor.instruction() {
                        let at = code.instructions[usize::try_from(at).unwrap()].opcode;
                        let opcode = &opcodes[usize::try_from(at).unwrap()];
                        cursor.access(&mut access);
                        self.count(opcode, &access);
                    }
                }
            }
        }
    }

    /// The first `ctas` CTAs of the first launches of each kernel of a model at full length.
    pub(super) fn declared(workload: &Workload, launches: usize, ctas: u64) -> Self {
        let mut traced = Self::default();
        let mut seen = BTreeMap::new();
        for kernel in (0..workload.kernel_count()).map(|number| workload.kernel(number)) {
            let launch = seen.entry(kernel.launch().name.clone()).or_insert(0);
            *launch += 1;
            if *launch <= launches {
                traced.add_declared(&kernel, ctas);
            }
        }
        traced
    }

    fn add_declared(&mut self, kernel: &Kernel, ctas: u64) {
        let Resolved { machine, isa, .. } = resolved(kernel.launch().binary_version);
        let code = kernel.code();
        let opcodes: Vec<_> = code.opcodes.iter().map(|text| isa.opcode(&machine, text)).collect();
        for ordinal in 0..ctas.min(kernel.cta_count()) {
            let cta = kernel.cta(ordinal);
            self.warps += u64::from(cta.warp_count());
            for warp in 0..cta.warp_count() {
                let mut stream = cta.warp(warp);
                while let Some(segment) = stream.next_segment() {
                    let range = code.segments[usize::try_from(segment).unwrap()].range();
                    for instruction in &code.instructions[range] {
                        let mut access = Access::default();
                        if instruction.width == 0 {
                            stream.skip(1);
                        } else {
                            stream.access(&mut access);
                        }
                        self.count(&opcodes[usize::try_from(instruction.opcode).unwrap()], &access);
                    }
                }
            }
        }
    }

    fn count(&mut self, opcode: &Opcode, access: &Access) {
        self.kinds[kind(opcode.unit, opcode.effect)] += 1;
        if opcode.effect.space() == Some(Space::Global) {
            self.touch(access);
        }
    }

    fn touch(&mut self, access: &Access) {
        let sectors: BTreeSet<u64> = access.active().map(|(_, address)| address / 32).collect();
        self.accesses += u64::from(!sectors.is_empty());
        self.sectors += sectors.len() as u64;
        self.distinct.extend(sectors);
    }

    /// Share of each kind in percent.
    pub(super) fn shares(&self) -> [f64; KINDS.len()] {
        let all: u64 = self.kinds.iter().sum();
        self.kinds.map(|of| 100.0 * of as f64 / all as f64)
    }

    pub(super) fn sectors_per_access(&self) -> f64 {
        self.sectors as f64 / self.accesses as f64
    }

    /// Warp instructions of a warp.
    pub(super) fn per_warp(&self) -> f64 {
        self.kinds.iter().sum::<u64>() as f64 / self.warps as f64
    }

    /// Accesses per sector.
    fn reuse(&self) -> f64 {
        self.sectors as f64 / self.distinct.len() as f64
    }
}

/// A machine whose opcodes are those of the SASS target.
fn resolved(version: u32) -> Resolved {
    let name = match version {
        ..50 => "k40c",
        50..70 => "titan-xp",
        70.. => "v100",
    };
    gpumodel::models().machine(name, &[]).unwrap()
}

/// Which of [`KINDS`] an instruction is.
fn kind(unit: Unit, effect: Effect) -> usize {
    match (unit, effect.space()) {
        (_, Some(Space::Shared)) => 3,
        (_, Some(Space::Constant)) => 4,
        (Unit::Memory | Unit::Texture, Some(_)) => 2,
        (Unit::Int | Unit::Uniform | Unit::Fp32 | Unit::Fp64 | Unit::Half | Unit::Tensor, _) => 0,
        (Unit::Sfu, _) => 1,
        _ => 4,
    }
}

/// Percentage points of instructions of another kind.
pub(super) fn distance(ours: &[f64], theirs: &[f64]) -> f64 {
    ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0
}

#[test]
#[allow(clippy::print_stdout)]
fn models_do_what_the_programs_do() {
    let Some(reference) = reference() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let mut real = BTreeMap::new();
    println!("| model | trace | mix | {} | sectors per access | reuse |", KINDS.join(" | "));
    let mut far = Vec::new();
    for pair in PAIRS {
        let traced = real
            .entry((pair.real, pair.kernel, pair.ctas))
            .or_insert_with(|| pair.traced(&reference, scratch.path()));
        let model = pair.modelled(scratch.path());
        let (ours, theirs) = (model.shares(), traced.shares());
        let mix = distance(&ours, &theirs);
        let shares = ours.iter().zip(&theirs).map(|(a, b)| format!("{a:.0} / {b:.0}"));
        let (a, b) = (model.sectors_per_access(), traced.sectors_per_access());
        println!(
            "| `{}` | {} | {mix:.0} | {} | {a:.1} / {b:.1} | {:.1} / {:.1} |",
            pair.model,
            pair.real,
            shares.collect::<Vec<_>>().join(" | "),
            model.reuse(),
            traced.reuse(),
        );
        assert!(a > 0.0 && b > 0.0, "{} and {} have accesses", pair.model, pair.real);
        if mix > pair.mix || (a / b).max(b / a) > pair.sectors {
            far.push(format!(
                "{} is {mix:.1} points and {a:.2} for {b:.2} sectors off",
                pair.model
            ));
        }
    }
    assert!(far.is_empty(), "{far:#?}");
}
