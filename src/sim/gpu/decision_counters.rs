//! The counters a scheme sees: what has happened since its last decision.

use gpumodel_core::contract::{AppView, ChannelUse, View, Wake};
use gpumodel_core::units::{AppId, Cycle, SECTOR_BYTES, to_u16, to_usize};

use crate::counters::{Cause, StallStack};
use crate::dram::ChannelCounters;
use crate::gpu::app::{Running, State};
use crate::gpu::hardware::Hardware;
use crate::gpu::plan_control::PlanControl;

/// Counts of one application at one moment.
#[derive(Clone, Debug, Default)]
struct Mark {
    by_sm: Vec<StallStack>,
    blocked_by_sm: Vec<f64>,
    warps: u64,
    threads: u64,
    l1: (u64, u64),
    l2: (u64, u64),
    l2_merged: u64,
    dram_bytes: u64,
}

impl Mark {
    /// The counts of an application now.
    fn of(app: AppId, hardware: &Hardware<'_>) -> Self {
        let Hardware { sms, shared_state, .. } = hardware;
        let by_sm = (0..sms.len()).map(|sm| hardware.stalls_of(app, sm)).collect();
        let blocked_by_sm = sms.iter().map(|sm| sm.blocked_of(app)).collect();
        let mut mark = Self { by_sm, blocked_by_sm, ..Self::default() };
        for counts in shared_state.counts.iter().filter(|counts| counts.app == app) {
            mark.warps += counts.warp_instructions;
            mark.threads += counts.thread_instructions;
            mark.l1.0 += counts.l1.accesses();
            mark.l1.1 += counts.l1.misses();
            mark.l2.0 += counts.l2.accesses() - counts.state.accesses();
            mark.l2.1 += counts.l2.misses() - counts.state.misses();
            mark.l2_merged += counts.l2.merges() - counts.state.merges();
            mark.dram_bytes += (counts.dram_reads + counts.dram_writes) * SECTOR_BYTES;
        }
        mark
    }
}

/// The counts at the last decision.
#[derive(Debug)]
pub(crate) struct DecisionCounters {
    since: Cycle,
    marks: Vec<Mark>,
    /// By channel.
    channels: Vec<ChannelUse>,
}

/// Thread instructions of `issued` warp instructions, at the mean of the application
/// so far: plain counters note a whole interval when it begins.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are below 2^53 and not negative"
)]
fn threads(issued: f64, mark: &Mark) -> u64 {
    (issued * mark.threads as f64 / mark.warps.max(1) as f64).round() as u64
}

impl DecisionCounters {
    /// Nothing so far of `apps` applications on `sms` SMs.
    pub(crate) fn new(apps: usize, sms: usize) -> Self {
        let (by_sm, blocked_by_sm) = (vec![StallStack::default(); sms], vec![0.0; sms]);
        let mark = Mark { by_sm, blocked_by_sm, ..Mark::default() };
        Self { since: 0, marks: vec![mark; apps], channels: Vec::new() }
    }

    /// The view for a scheme; its counters restart from here.
    pub(crate) fn view(
        &mut self,
        wake: Wake,
        apps: &[Running],
        (plan_control, channel_owner): (&PlanControl, &[Option<AppId>]),
        hardware: &mut Hardware<'_>,
    ) -> View {
        hardware.account_stalls();
        let now = hardware.elapsed();
        let used = self.channels_since_decision(hardware);
        let views = apps.iter().enumerate().map(|(app, running)| {
            let owner = Some(AppId(to_u16(app)));
            let owns = channel_owner.contains(&owner);
            let serves = |channel: &usize| !owns || channel_owner[*channel] == owner;
            let channels = (0..used.len()).filter(serves).map(|channel| used[channel]).sum();
            AppView { channels, ..self.app_view(app, running, hardware) }
        });
        let views = views.collect();
        let since = std::mem::replace(&mut self.since, now);
        let waits = |&app: &usize| {
            let active = apps[app].state == State::Active;
            active && plan_control.waits(AppId(to_u16(app)))
        };
        let mut queue: Vec<usize> = (0..apps.len()).filter(waits).collect();
        queue.sort_by_key(|&app| apps[app].load.arrival);
        let queue = queue.into_iter().map(|app| AppId(to_u16(app))).collect();
        let channel_owner = channel_owner.to_vec();
        View { now, wake, since, apps: views, queue, channel_owner }
    }

    /// What each channel has done since the last decision, which is now.
    fn channels_since_decision(&mut self, hardware: &Hardware<'_>) -> Vec<ChannelUse> {
        let now = hardware.elapsed();
        let access_bytes = hardware.shared_state.memory_system.access_bytes();
        let count = |counters: &ChannelCounters| ChannelUse {
            bytes: (counters.reads + counters.writes) * access_bytes,
            waiting_cycles: counters.waiting_cycles,
            cycles: now,
        };
        let counts: Vec<ChannelUse> = hardware.channel_counts().iter().map(count).collect();
        let mut last = std::mem::replace(&mut self.channels, counts.clone());
        last.resize(counts.len(), ChannelUse::default());
        counts.into_iter().zip(last).map(|(now, last)| now.since(last)).collect()
    }

    /// The view of one application, without its channels.
    fn app_view(&mut self, app: usize, running: &Running, hardware: &Hardware<'_>) -> AppView {
        let id = AppId(to_u16(app));
        let last = std::mem::replace(&mut self.marks[app], Mark::of(id, hardware));
        let mark = &self.marks[app];
        let by_sm = |cause: Cause| {
            let spans = mark.by_sm.iter().zip(&last.by_sm);
            spans.map(move |(to, from)| to[cause as usize] - from[cause as usize])
        };
        let warps: Vec<f64> =
            by_sm(Cause::Issued).map(|slots| hardware.instructions(slots)).collect();
        let blocked = mark.blocked_by_sm.iter().zip(&last.blocked_by_sm);
        let since = |to: (u64, u64), from: (u64, u64)| (to.0 - from.0, to.1 - from.1);
        let Hardware { dispatcher, shared_state, .. } = hardware;
        let kernels = dispatcher.kernels_of(app);
        let memory = shared_state.memory_of(app);
        let begun = &running.begun_launches;
        let place = |&kernel: &u32| kernels.iter().position(|&own| own == to_usize(kernel));
        let left = |&kernel: &u32| dispatcher.grids[to_usize(kernel)].left();
        AppView {
            active: running.state == State::Active,
            finished: running.state == State::Finished,
            running: begun.iter().filter_map(place).collect(),
            ctas_by_sm: dispatcher.held[app].iter().map(|held| held.ctas).collect(),
            ctas_left: begun.iter().map(left).sum(),
            thread_instructions: threads(warps.iter().sum(), mark),
            warp_instructions_by_sm: warps,
            memory_stall_slots_by_sm: by_sm(Cause::LongMemoryLatency).collect(),
            load_store_stall_slots_by_sm: blocked.map(|(to, from)| to - from).collect(),
            l1: since(mark.l1, last.l1),
            l2: since(mark.l2, last.l2),
            l2_merged: mark.l2_merged - last.l2_merged,
            dram_bytes: mark.dram_bytes - last.dram_bytes,
            channels: ChannelUse::default(),
            pages: memory.pages,
            pages_moved: memory.pages_moved,
            moving_cycles: memory.moving_cycles,
            vacating_cycles: running.vacating_cycles(hardware.now()),
        }
    }
}
