//! Kernels that ran as workers, and what hosts did, for the record.

use gpumodel_core::contract::{KernelFacts, Plan};
use gpumodel_core::units::{AppId, Cycle, to_u16};
use gpumodel_report::results::{HostTime, WorkersRecord};
use gpumodel_sim::{AppOutcome, KernelCounts, Outcome};

use super::stage::Stage;

impl Stage<'_> {
    /// An application's launches in the form that they ran in.
    pub(super) fn formed(&self, app: usize, plan: Option<&Plan>) -> Vec<KernelFacts> {
        let kernels = &self.facts.apps[app].kernels;
        let form = plan.and_then(|plan| plan.workers(AppId(to_u16(app))));
        let formed = form.map(|form| kernels.iter().map(|kernel| form.of(kernel, &self.facts)));
        formed.map_or_else(|| kernels.clone(), Iterator::collect)
    }

    /// How an application's kernels ran as workers, if they did.
    pub(super) fn workers(
        &self,
        app: usize,
        plan: &Plan,
        counts: &KernelCounts,
    ) -> Option<WorkersRecord> {
        let form = plan.workers(AppId(to_u16(app)))?;
        let formed = self.formed(app, Some(plan));
        let most = |of: fn(&KernelFacts) -> u32, kernels: &[KernelFacts]| {
            u64::from(kernels.iter().map(of).max().unwrap_or(0))
        };
        let written = &self.facts.apps[app].kernels;
        Some(WorkersRecord {
            task_blocks: form.task_blocks.into(),
            registers: most(|kernel| kernel.registers_per_thread, &formed),
            shared_bytes: most(|kernel| kernel.shared_bytes, &formed),
            registers_as_written: most(|kernel| kernel.registers_per_thread, written),
            shared_bytes_as_written: most(|kernel| kernel.shared_bytes, written),
            workers: counts.workers,
            tasks: counts.tasks,
            added_instructions: counts.added_instructions,
        })
    }

    /// Where an application's time went. Calls go out as soon as the launch before has
    /// ended: what of them lies beside another wait counts as theirs.
    pub(super) fn host(
        &self,
        app: usize,
        plan: &Plan,
        ended: &AppOutcome,
        outcome: &Outcome,
    ) -> HostTime {
        let launches = &outcome.kernels[self.mix.launches(app)];
        let begun = launches.iter().filter(|launch| launch.ctas_started > 0);
        let mut spans: Vec<(Cycle, Cycle)> = begun
            .map(|launch| (launch.start, if launch.end > 0 { launch.end } else { ended.end }))
            .collect();
        spans.sort_unstable();
        let form = plan.workers(AppId(to_u16(app)));
        let (call, mut compile) =
            form.map_or((0, 0), |form| (form.call_cycles, form.compile_cycles));
        let (mut time, mut until) = (HostTime::default(), ended.arrival);
        for (start, end) in spans {
            let gap = start.saturating_sub(until);
            let compiles = std::mem::take(&mut compile).min(gap);
            let calls = call.min(gap - compiles);
            time.compilation_cycles += compiles;
            time.communication_cycles += calls;
            time.waiting_cycles += gap - compiles - calls;
            time.kernel_cycles += end.saturating_sub(start.max(until));
            until = until.max(end);
        }
        time.waiting_cycles += ended.end.saturating_sub(until);
        time
    }
}
