//! Runs the workload of a microbenchmark on a machine.

use gpumodel_core::contract::{AppFacts, Facts, Plan, PlanDraft, Share};
use gpumodel_core::models::ModelFiles;
use gpumodel_core::units::AppId;
use gpumodel_feed::WorkloadFeed;
use gpumodel_sim::config::{Machine, Resolved};
use gpumodel_sim::{End, Gpu, Outcome, Setup, machine_facts};
use gpumodel_trace::workload::{Workload, WorkloadError};

use super::MeasureError;
use crate::float;
use crate::memory::Memory;

/// The folder of workloads below `models/`.
const FOLDER: &str = "microbenchmarks";

/// The placeholder of an opcode in the text of a workload.
const OPCODE: &str = "OPCODE";

/// A machine on which microbenchmarks run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bench<'a> {
    pub(super) resolved: &'a Resolved,
    pub(super) memory: &'a Memory,
    pub(super) models: &'a ModelFiles,
}

/// What a workload left.
#[derive(Debug)]
pub(super) struct Ran(pub(super) Outcome);

impl Ran {
    /// Cycles of a launch from its first CTA on.
    pub(super) fn cycles(&self, launch: usize) -> f64 {
        let counts = &self.0.kernels[launch];
        float(counts.end - counts.first_cta)
    }

    /// By how much the second last launch is shorter than the last, which has more of the same.
    pub(super) fn more(&self) -> f64 {
        let last = self.0.kernels.len() - 1;
        self.cycles(last) - self.cycles(last - 1)
    }
}

/// A run of the benchmark's name at a point.
pub(super) type At<'a> = (&'static str, &'a str);

impl<'a> Bench<'a> {
    pub(super) fn machine(&self) -> &'a Machine {
        &self.resolved.machine
    }

    /// SMs as a number of CTAs.
    pub(super) fn sms(&self) -> i64 {
        self.machine().dispatch.sms.into()
    }

    /// Bytes of the L2, of all slices.
    pub(super) fn l2_bytes(&self) -> i64 {
        let l2 = &self.machine().l2;
        i64::from(l2.slices)
            * i64::from(l2.cache.sets)
            * i64::from(l2.cache.ways)
            * i64::from(l2.cache.line_bytes)
    }

    /// Runs a workload with these constants.
    pub(super) fn run(
        &self,
        at: At<'_>,
        workload: &str,
        constants: &[(&str, i64)],
    ) -> Result<Ran, MeasureError> {
        self.run_with(at, workload, "FFMA", constants)
    }

    /// Runs a workload with these constants, and with `opcode` where it has none of its own.
    pub(super) fn run_with(
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
