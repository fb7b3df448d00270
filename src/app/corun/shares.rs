//! The shares of the machine that plans gave an application, and where its time went.

use gpumodel_core::contract::{KernelFacts, Plan, Share, Wake};
use gpumodel_core::units::{AppId, Cycle, to_u16, to_u32, to_u64};
use gpumodel_report::results::{HostTime, WorkersRecord};
use gpumodel_sim::{AppOutcome, KernelCounts, Outcome};

use super::MixRunner;
use super::runner::Decision;

impl MixRunner<'_> {
    /// SMs, CTAs per SM and channels of an application when it ended, or earlier if it had
    /// released them because no CTA was left to start.
    pub(crate) fn share(
        &self,
        app: usize,
        ended: &AppOutcome,
        decisions: &[Decision],
    ) -> (u64, u64, u64) {
        let id = AppId(to_u16(app));
        let before = decisions.partition_point(|decision| decision.cycle <= ended.end);
        let holds = |decision: &&Decision| self.sms(&decision.plan, id) > 0;
        let last = in_force(decisions, ended.end).filter(|plan| !is_waiting(plan, id));
        let held = || decisions[..before].iter().rev().find(holds).map(|one| &one.plan);
        let Some(plan) = last.or_else(held) else { return (0, 0, 0) };
        let quotas = (0..usize::from(self.facts.sms)).map(|sm| plan.quota(id, sm));
        let formed = self.formed(app, Some(plan));
        let fits = formed.iter().map(|kernel| kernel.ctas_per_sm).max();
        let most = quotas.max().unwrap_or(0).min(fits.unwrap_or(0));
        (self.sms(plan, id), most.into(), self.channels(plan, id))
    }

    /// Mean SMs and channels of an application over its reported run; nothing counts while it
    /// waits. `None` if the run has no length, or if applications take turns on the whole
    /// machine.
    pub(crate) fn mean_share(
        &self,
        app: usize,
        ended: &AppOutcome,
        decisions: &[Decision],
    ) -> Option<(f64, f64)> {
        let id = AppId(to_u16(app));
        let mut sums = (0, 0);
        if decisions.iter().any(|decision| decision.plan.time_slice().is_some()) {
            return None;
        }
        for (from, to, plan) in periods(decisions) {
            if is_waiting(plan, id) {
                continue;
            }
            let cycles = to.min(ended.end).saturating_sub(from.max(ended.arrival));
            sums.0 += u128::from(cycles) * u128::from(self.sms(plan, id));
            sums.1 += u128::from(cycles) * u128::from(self.channels(plan, id));
        }
        let mean = |sum: u128| sum as f64 / ended.cycles() as f64;
        (ended.cycles() > 0).then(|| (mean(sums.0), mean(sums.1)))
    }

    /// SMs on which a plan lets an application have CTAs.
    fn sms(&self, plan: &Plan, app: AppId) -> u64 {
        let sms = 0..usize::from(self.facts.sms);
        to_u64(sms.filter(|&sm| plan.quota(app, sm) > 0).count())
    }

    /// Its channels: all, if no application owns any.
    fn channels(&self, plan: &Plan, app: AppId) -> u64 {
        if let (Some(one), Some(mig)) = (plan.instances().get(app.index()), &self.facts.mig) {
            return (one.slices * (self.facts.channels / mig.memory_slices.max(1))).into();
        }
        let own = plan.channels().get(app.index());
        own.map_or(self.facts.channels, |own| to_u32(own.len())).into()
    }
}

/// Whether a plan gives an application nothing.
fn is_waiting(plan: &Plan, app: AppId) -> bool {
    matches!(plan.shares().get(app.index()), Some(Share::Waiting) | None)
}

/// Plans with the cycles in which they are in force. A plan with a delay takes effect after it,
/// unless the scheme decided again before; the first plan takes effect at once.
fn periods(decisions: &[Decision]) -> Vec<(Cycle, Cycle, &Plan)> {
    let next = decisions.iter().skip(1).map(Some).chain([None]);
    let all = decisions.iter().zip(next).enumerate();
    let effective = all.filter_map(|(index, (decision, next))| {
        let effect = decision.cycle.saturating_add(decision.plan.delay());
        // A wake that a plan requested comes when the plan is in force, or later.
        let last = |next: &Decision| match &next.view {
            Some(view) if matches!(view.wake, Wake::At(_)) => next.cycle,
            _ => next.cycle.saturating_sub(1),
        };
        let in_time = next.is_none_or(|next| effect <= last(next));
        let comes = index == 0 || in_time || decision.cycle == effect;
        comes.then_some((if index == 0 { 0 } else { effect }, &decision.plan))
    });
    let effective: Vec<(Cycle, &Plan)> = effective.collect();
    let ends = effective.iter().skip(1).map(|next| next.0).chain([Cycle::MAX]);
    effective.iter().zip(ends).map(|(&(from, plan), to)| (from, to, plan)).collect()
}

/// The plan in force just before `cycle`.
fn in_force(decisions: &[Decision], cycle: Cycle) -> Option<&Plan> {
    let periods = periods(decisions);
    let begun = periods.iter().rposition(|span| span.0 < cycle).unwrap_or(0);
    periods.get(begun).map(|span| span.2)
}

impl MixRunner<'_> {
    /// The kernels of an application, in worker form if the plan sets one.
    pub(crate) fn formed(&self, app: usize, plan: Option<&Plan>) -> Vec<KernelFacts> {
        let kernels = &self.facts.apps[app].kernels;
        let form = plan.and_then(|plan| plan.workers(AppId(to_u16(app))));
        let formed = form.map(|form| kernels.iter().map(|kernel| form.of(kernel, &self.facts)));
        formed.map_or_else(|| kernels.clone(), Iterator::collect)
    }

    /// The worker form of an application's kernels, if the plan sets one.
    pub(crate) fn workers(
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

    /// The host's view of an application's time. A call starts when the previous launch ends, so
    /// waiting time during a call counts as communication.
    pub(crate) fn host(
        &self,
        app: usize,
        plan: &Plan,
        ended: &AppOutcome,
        outcome: &Outcome,
    ) -> HostTime {
        let launches = &outcome.kernels[self.mix.launches(app)];
        let begun = launches.iter().filter(|launch| launch.ctas_started > 0);
        let mut periods: Vec<(Cycle, Cycle)> = begun
            .map(|launch| (launch.start, if launch.end > 0 { launch.end } else { ended.end }))
            .collect();
        periods.sort_unstable();
        let form = plan.workers(AppId(to_u16(app)));
        let (call, mut compile) =
            form.map_or((0, 0), |form| (form.call_cycles, form.compile_cycles));
        let (mut time, mut until) = (HostTime::default(), ended.arrival);
        for (start, end) in periods {
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

#[cfg(test)]
mod tests {
    use gpumodel_core::contract::{Facts, Plan, PlanDraft, View, Wake, WakeOn};

    use super::{Cycle, Decision, in_force, periods};

    fn decision(cycle: Cycle, delay: Cycle, reason: &str) -> Decision {
        let facts = Facts {
            sms: 1,
            max_ctas_per_sm: 1,
            max_warps_per_sm: 1,
            registers_per_sm: 1,
            shared_bytes_per_sm: 1,
            register_unit: 1,
            shared_unit_bytes: 1,
            shared_reserved_bytes: 0,
            channels: 1,
            channel_groups: vec![],
            channel_bytes: 1 << 29,
            page_bytes: 0,
            pages_follow: false,
            core_mhz: 1.0,
            peak_dram_gb_per_s: 1.0,
            peak_l2_gb_per_s: 1.0,
            peak_sm_port_gb_per_s: 1.0,
            peak_ipc_per_sm: 1.0,
            schedulers_per_sm: 1,
            mig: None,
            apps: Vec::new(),
        };
        let wake = vec![WakeOn::KernelEnd];
        let draft = PlanDraft { delay, wake, reason: reason.into(), ..PlanDraft::default() };
        Decision { cycle, view: None, plan: Plan::new(&facts, draft).unwrap() }
    }

    #[test]
    fn a_plan_with_a_delay_is_in_force_when_that_is_over() {
        let decisions = [
            decision(0, 10, "first"),
            decision(100, 50, "late"),
            decision(300, 500, "never"),
            decision(400, 0, "last"),
        ];
        let reason = |cycle| in_force(&decisions, cycle).unwrap().reason();
        let reasons: Vec<_> = [0, 140, 151, 399, 900].into_iter().map(reason).collect();
        assert_eq!(reasons, ["first", "first", "late", "late", "last"]);
        assert_eq!(in_force(&[], 5), None);
        let found: Vec<_> =
            periods(&decisions).iter().map(|span| (span.0, span.1, span.2.reason())).collect();
        let expected = [(0, 150, "first"), (150, 400, "late"), (400, u64::MAX, "last")];
        assert_eq!(found, expected, "the third never took effect");
    }

    #[test]
    fn a_look_waits_for_the_plan_that_asked_for_it() {
        let view = View {
            now: 150,
            wake: Wake::At(120),
            since: 100,
            apps: Vec::new(),
            queue: Vec::new(),
            channel_owner: Vec::new(),
        };
        let asked = Decision { view: Some(Box::new(view)), ..decision(150, 0, "asked") };
        let other = [decision(0, 0, "first"), decision(100, 50, "late"), asked];
        let found: Vec<_> = periods(&other).iter().map(|span| (span.0, span.1)).collect();
        assert_eq!(found, [(0, 150), (150, 150), (150, u64::MAX)]);
    }
}
