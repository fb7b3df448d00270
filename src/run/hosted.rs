//! Kernels that ran as workers, and what hosts did, for the record.

use crate::epoch::Plan;
use crate::machine::{AppOutcome, KernelCounts, Outcome};
use crate::record::{HostTime, WorkersRecord};
use crate::units::{AppId, Cycle, to_u16, to_u64};

use super::stage::Stage;

impl Stage<'_> {
    /// How an application's kernels ran as workers, if they did.
    pub(super) fn workers(
        &self,
        app: usize,
        plan: &Plan,
        counts: &KernelCounts,
    ) -> Option<WorkersRecord> {
        let form = plan.workers(AppId(to_u16(app)))?;
        let launches = || self.mix.feeds[app].programs().iter().map(|program| &program.launch);
        let registers = launches().map(|launch| launch.registers).max().unwrap_or(0);
        let shared = launches().map(|launch| launch.shared_bytes).max().unwrap_or(0);
        Some(WorkersRecord {
            task_blocks: form.task_blocks.into(),
            registers: form.registers(registers).into(),
            shared_bytes: (shared + form.more_shared_bytes).into(),
            registers_as_written: registers.into(),
            shared_bytes_as_written: shared.into(),
            workers: counts.workers,
            tasks: counts.tasks,
            added_instructions: counts.added_instructions,
        })
    }

    /// Where an application's time went.
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
        let (mut kernels, mut until) = (0, 0);
        for (start, end) in spans {
            kernels += end.saturating_sub(start.max(until));
            until = until.max(end);
        }
        let form = plan.workers(AppId(to_u16(app)));
        let count = to_u64(launches.iter().filter(|launch| launch.ctas_started > 0).count());
        let communication_cycles = form.map_or(0, |form| form.call_cycles * count);
        let compilation_cycles =
            form.map_or(0, |form| if count > 0 { form.compile_cycles } else { 0 });
        let busy = kernels + communication_cycles + compilation_cycles;
        HostTime {
            kernel_cycles: kernels,
            communication_cycles,
            compilation_cycles,
            waiting_cycles: ended.cycles().saturating_sub(busy),
        }
    }
}
