//! Microbenchmarks in the model, and published values of the card; and runs of their workloads on
//! a machine.
//!
//! A benchmark is a workload in `models/microbenchmarks` and a row of the table in
//! [`benchmark`]; what is known of a card is `models/measured/MACHINE.csv`.

mod benchmark;
mod published;

use std::ffi::OsString;
use std::path::PathBuf;

use rayon::prelude::*;
use thiserror::Error;

use gpumodel_core::contract::{AppFacts, Facts, Plan, PlanDraft, Share};
use gpumodel_core::models::ModelFiles;
use gpumodel_core::toml::TomlError;
use gpumodel_core::units::{AppId, nearest};
use gpumodel_feed::WorkloadFeed;
use gpumodel_report::results::{BenchmarkRecord, BenchmarkRow, Measurements};
use gpumodel_sim::config::{Machine, Resolved, SpecError};
use gpumodel_sim::{End, Gpu, MachineError, Outcome, Setup, machine_facts};
use gpumodel_trace::workload::{Workload, WorkloadError};

use crate::float;
use crate::memory::Memory;
use benchmark::{BENCHMARKS, Benchmark};
use published::Published;

/// The request of `machine measure`.
#[derive(Clone, Debug)]
pub struct MeasureRequest {
    /// The machine: a name or a file.
    pub machine: OsString,
    /// Machine keys that `--set` overrides.
    pub overrides: Vec<(String, String)>,
    /// A folder of model files that take precedence over the built-in ones.
    pub models: Option<PathBuf>,
    /// The benchmarks to run; empty: all.
    pub only: Vec<String>,
    /// A table of published values; `None`: `models/measured/MACHINE.csv`, where it exists.
    pub measured: Option<PathBuf>,
    /// Run only the points that have a published value.
    pub published_only: bool,
}

/// Why microbenchmarks could not be run.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// The machine is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The workload of a benchmark is invalid: that of an overriding folder.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The table of published values is invalid.
    #[error(transparent)]
    File(Box<TomlError>),
    /// A line of the table of published values is invalid.
    #[error("{file}:{line}: {what}")]
    Published {
        /// The table.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What was found and what was expected.
        what: String,
    },
    /// A benchmark that does not exist.
    #[error("no benchmark `{name}`{hint}; expected one of {known}")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The nearest name.
        hint: String,
        /// All names.
        known: String,
    },
    /// Nothing is left to run.
    #[error("nothing to measure: no published value for {machine} in the benchmarks asked for")]
    Nothing {
        /// The machine.
        machine: String,
    },
    /// A run stopped.
    #[error("{benchmark} at {at}")]
    Machine {
        /// The benchmark.
        benchmark: &'static str,
        /// The point.
        at: String,
        /// Why.
        source: Box<MachineError>,
    },
}

/// Names and meanings of all microbenchmarks.
pub fn benchmarks() -> impl Iterator<Item = (&'static str, &'static str)> {
    BENCHMARKS.iter().map(|benchmark| (benchmark.name, benchmark.about))
}

/// Runs the microbenchmarks of a request; the same on any number of threads.
///
/// # Errors
/// [`MeasureError`].
pub fn measure(request: &MeasureRequest) -> Result<Measurements, MeasureError> {
    let chosen = chosen(&request.only)?;
    let models = crate::models(request.models.as_deref())?;
    let resolved = models.machine(&request.machine, &request.overrides)?;
    let memory = Memory::load(&resolved.machine, &models)?;
    let published = Published::load(request.measured.as_deref(), &resolved.machine.name, &models)?;
    let bench = Bench { resolved: &resolved, memory: &memory, models: &models };
    let points: Vec<(usize, String)> = chosen
        .iter()
        .enumerate()
        .flat_map(|(place, benchmark)| {
            let usual =
                if request.published_only { Vec::new() } else { (benchmark.points)(&bench) };
            let points = published.points(benchmark, usual);
            points.into_iter().map(move |at| (place, at))
        })
        .collect();
    if points.is_empty() {
        return Err(MeasureError::Nothing { machine: resolved.machine.name });
    }
    let values: Vec<f64> = points
        .par_iter()
        .map(|(place, at)| (chosen[*place].value)(&bench, at))
        .collect::<Result<_, _>>()?;
    let mut records: Vec<BenchmarkRecord> = chosen.iter().map(|one| record(one)).collect();
    for ((place, at), model) in points.into_iter().zip(values) {
        let row = published.row(chosen[place].name, &at);
        let (published, source) =
            row.map_or((None, String::new()), |(value, source)| (Some(value), source.to_owned()));
        records[place].rows.push(BenchmarkRow::new(at, model, published, source));
    }
    records.retain(|record| !record.rows.is_empty());
    let program = concat!("gpumodel ", env!("CARGO_PKG_VERSION")).to_owned();
    let machine = (resolved.machine.name, resolved.hash);
    Ok(Measurements::new(program, machine, resolved.overrides, records))
}

fn record(benchmark: &Benchmark) -> BenchmarkRecord {
    BenchmarkRecord {
        name: benchmark.name.to_owned(),
        about: benchmark.about.to_owned(),
        at: benchmark.at.to_owned(),
        unit: benchmark.unit.to_owned(),
        rows: Vec::new(),
    }
}

/// The benchmarks of these names, all where there are none.
fn chosen(names: &[String]) -> Result<Vec<&'static Benchmark>, MeasureError> {
    if names.is_empty() {
        return Ok(BENCHMARKS.iter().collect());
    }
    let known = || BENCHMARKS.iter().map(|benchmark| benchmark.name);
    let unknown = |name: &&String| known().all(|known| known != name.as_str());
    if let Some(name) = names.iter().find(unknown) {
        let hint = nearest(name, known()).map(|near| format!(" (did you mean `{near}`?)"));
        return Err(MeasureError::Unknown {
            name: name.clone(),
            hint: hint.unwrap_or_default(),
            known: known().collect::<Vec<_>>().join(", "),
        });
    }
    let asked = |benchmark: &&Benchmark| names.iter().any(|name| name == benchmark.name);
    Ok(BENCHMARKS.iter().filter(asked).collect())
}

/// The folder of workloads below `models/`.
const FOLDER: &str = "microbenchmarks";

/// The placeholder of an opcode in the text of a workload.
const OPCODE: &str = "OPCODE";

/// A machine on which microbenchmarks run.
#[derive(Clone, Copy, Debug)]
struct Bench<'a> {
    resolved: &'a Resolved,
    memory: &'a Memory,
    models: &'a ModelFiles,
}

/// What a workload left.
#[derive(Debug)]
struct Ran(Outcome);

impl Ran {
    /// Cycles of a launch from its first CTA on.
    fn cycles(&self, launch: usize) -> f64 {
        let counts = &self.0.kernels[launch];
        float(counts.end - counts.first_cta)
    }

    /// By how much the second last launch is shorter than the last, which has more of the same.
    fn more(&self) -> f64 {
        let last = self.0.kernels.len() - 1;
        self.cycles(last) - self.cycles(last - 1)
    }
}

/// A run of the benchmark's name at a point.
type At<'a> = (&'static str, &'a str);

impl<'a> Bench<'a> {
    fn machine(&self) -> &'a Machine {
        &self.resolved.machine
    }

    /// SMs as a number of CTAs.
    fn sms(&self) -> i64 {
        self.machine().dispatch.sms.into()
    }

    /// Bytes of the L2, of all slices.
    fn l2_bytes(&self) -> i64 {
        let l2 = &self.machine().l2;
        i64::from(l2.slices)
            * i64::from(l2.cache.sets)
            * i64::from(l2.cache.ways)
            * i64::from(l2.cache.line_bytes)
    }

    /// Runs a workload with these constants.
    fn run(
        &self,
        at: At<'_>,
        workload: &str,
        constants: &[(&str, i64)],
    ) -> Result<Ran, MeasureError> {
        self.run_with(at, workload, "FFMA", constants)
    }

    /// Runs a workload with these constants, and with `opcode` where it has none of its own.
    fn run_with(
        &self,
        (benchmark, at): At<'_>,
        workload: &str,
        opcode: &str,
        constants: &[(&str, i64)],
    ) -> Result<Ran, MeasureError> {
        let found = self.models.named(FOLDER, workload).ok_or_else(|| WorkloadError::Unknown {
            name: workload.to_owned(),
            hint: format!("expected it in models/{FOLDER}"),
        })?;
        let text = found.text.replace(OPCODE, opcode);
        let workload = Workload::with_constants(workload, &found.origin, text, constants)?;
        let feed = WorkloadFeed::new(&workload, self.resolved);
        let setup = Setup {
            machine: self.machine(),
            standard: &self.memory.standard,
            mapping: self.memory.map.clone(),
            apps: vec![feed.commands().into()],
            end: End::default(),
            part: None,
        };
        let stopped = |source| MeasureError::Machine {
            benchmark,
            at: at.to_owned(),
            source: Box::new(source),
        };
        let gpu = Gpu::new(setup, &feed).map_err(stopped)?;
        Ok(Ran(gpu.run(&self.plan(), &mut |_| ()).map_err(stopped)?))
    }

    /// The whole machine for one application.
    fn plan(&self) -> Plan {
        let memory = self.memory;
        let app =
            AppFacts { app: AppId(0), name: String::from("bench"), arrival: 0, kernels: vec![] };
        let facts =
            machine_facts(self.machine(), &memory.standard, &memory.map, memory.peak_gb_per_s);
        let facts = Facts { apps: vec![app], ..facts };
        let quotas = vec![facts.max_ctas_per_sm; usize::from(facts.sms)];
        let draft = PlanDraft { shares: vec![Share::Quota(quotas)], ..PlanDraft::default() };
        Plan::new(&facts, draft).expect("the whole machine is a plan that keeps every law")
    }
}
