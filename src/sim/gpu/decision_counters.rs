//! The counters a scheme sees: what has happened since its last decision.

use gpumodel_core::contract::{AppView, ChannelUse, View, Wake};
use gpumodel_core::units::{AppId, Cycle, SECTOR_BYTES, to_u16, to_usize};

use crate::counters::{Cause, StallStack};
use crate::dram::ChannelCounters;
use crate::gpu::Gpu;
use crate::gpu::app::State;

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
}

impl Gpu<'_> {
    /// Warp instructions of an application so far, by the issue slots that they took, up to
    /// the last accounting of stalls; without those that have to issue again, and for
    /// workers without the part that their added code has so far.
    pub(crate) fn progress(&self, app: AppId) -> f64 {
        let grids = self.dispatcher.grids.iter().filter(|grid| grid.app == app);
        let issued = self.issued(app) - grids.map(|grid| grid.dropped).sum::<f64>();
        let counts = self.shared_state.counts.iter().filter(|counts| counts.app == app);
        let (all, added) = counts.fold((0, 0), |(all, added), counts| {
            (all + counts.warp_instructions, added + counts.added_instructions)
        });
        #[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
        let own = if added == 0 { 1.0 } else { 1.0 - added as f64 / all.max(1) as f64 };
        issued * own.max(0.0)
    }

    /// The same with all that have issued.
    pub(crate) fn issued(&self, app: AppId) -> f64 {
        let issued = (0..self.sms.len()).map(|sm| self.stalls_of(app, sm)[Cause::Issued as usize]);
        issued.sum::<f64>() * f64::from(self.machine.sm.issue_width.max(1))
    }

    /// Slot-cycles of an application on an SM by cause, up to the last accounting.
    fn stalls_of(&self, app: AppId, sm: usize) -> StallStack {
        let mut stalls = self.sms[sm].stalls_of(app);
        self.fast_forward.iter().for_each(|state| state.add_stalls(app, sm, &mut stalls));
        stalls
    }

    /// The view for a scheme; its counters restart from here.
    pub(crate) fn view(&mut self, wake: Wake) -> View {
        self.account_stalls();
        let now = self.elapsed();
        let channel_owner = self.channel_owners();
        let used = self.channels_since_decision();
        let apps = (0..self.apps.len()).map(|app| {
            let owner = Some(AppId(to_u16(app)));
            let owns = channel_owner.contains(&owner);
            let serves = |channel: &usize| !owns || channel_owner[*channel] == owner;
            let channels = (0..used.len()).filter(serves).map(|channel| used[channel]).sum();
            AppView { channels, ..self.app_view(app) }
        });
        let apps = apps.collect();
        let since = std::mem::replace(&mut self.decision_counters.since, now);
        let waits = |&app: &usize| {
            let id = AppId(to_u16(app));
            let active = self.apps[app].state == State::Active;
            active && self.plan_control.waits(id)
        };
        let mut queue: Vec<usize> = (0..self.apps.len()).filter(waits).collect();
        queue.sort_by_key(|&app| self.apps[app].load.arrival);
        let queue = queue.into_iter().map(|app| AppId(to_u16(app))).collect();
        View { now, wake, since, apps, queue, channel_owner }
    }

    /// What each channel has done since the last decision, which is now.
    fn channels_since_decision(&mut self) -> Vec<ChannelUse> {
        let (now, memory) = (self.elapsed(), &self.shared_state.memory_system);
        let access_bytes = memory.access_bytes();
        let count = |counters: &ChannelCounters| ChannelUse {
            bytes: (counters.reads + counters.writes) * access_bytes,
            waiting_cycles: counters.waiting_cycles,
            cycles: now,
        };
        let counts: Vec<ChannelUse> = self.channel_counts().iter().map(count).collect();
        let mut last = std::mem::replace(&mut self.decision_counters.channels, counts.clone());
        last.resize(counts.len(), ChannelUse::default());
        counts.into_iter().zip(last).map(|(now, last)| now.since(last)).collect()
    }

    /// The counters of each channel up to now.
    pub(crate) fn channel_counts(&self) -> Vec<ChannelCounters> {
        let mut counts = self.shared_state.memory_system.channel_counts(self.now());
        self.fast_forward.iter().for_each(|state| state.add_channels(&mut counts));
        counts
    }

    fn app_view(&mut self, app: usize) -> AppView {
        let id = AppId(to_u16(app));
        let mark = self.mark(app);
        let last = std::mem::replace(&mut self.decision_counters.marks[app], mark);
        let mark = &self.decision_counters.marks[app];
        let width = f64::from(self.machine.sm.issue_width.max(1));
        let by_sm = |cause: Cause, factor: f64| {
            let spans = mark.by_sm.iter().zip(&last.by_sm);
            spans.map(|(to, from)| factor * (to[cause as usize] - from[cause as usize])).collect()
        };
        let warps: Vec<f64> = by_sm(Cause::Issued, width);
        let blocked = mark.blocked_by_sm.iter().zip(&last.blocked_by_sm);
        let since = |to: (u64, u64), from: (u64, u64)| (to.0 - from.0, to.1 - from.1);
        let kernels = self.kernels_of(app);
        let memory = self.memory_of(app);
        let begun = &self.apps[app].begun_launches;
        let place = |&kernel: &u32| kernels.iter().position(|&own| own == to_usize(kernel));
        let left = |&kernel: &u32| self.dispatcher.grids[to_usize(kernel)].left();
        AppView {
            active: self.apps[app].state == State::Active,
            finished: self.apps[app].state == State::Finished,
            running: begun.iter().filter_map(place).collect(),
            ctas_by_sm: self.dispatcher.held[id.index()].iter().map(|held| held.ctas).collect(),
            ctas_left: begun.iter().map(left).sum(),
            thread_instructions: threads(warps.iter().sum(), mark),
            warp_instructions_by_sm: warps,
            memory_stall_slots_by_sm: by_sm(Cause::LongMemoryLatency, 1.0),
            load_store_stall_slots_by_sm: blocked.map(|(to, from)| to - from).collect(),
            l1: since(mark.l1, last.l1),
            l2: since(mark.l2, last.l2),
            l2_merged: mark.l2_merged - last.l2_merged,
            dram_bytes: mark.dram_bytes - last.dram_bytes,
            channels: ChannelUse::default(),
            pages: memory.pages,
            pages_moved: memory.pages_moved,
            moving_cycles: memory.moving_cycles,
            vacating_cycles: self.apps[app].vacating_cycles(self.now()),
        }
    }

    fn mark(&self, app: usize) -> Mark {
        let id = AppId(to_u16(app));
        let by_sm = (0..self.sms.len()).map(|sm| self.stalls_of(id, sm)).collect();
        let blocked_by_sm = self.sms.iter().map(|sm| sm.blocked_of(id)).collect();
        let mut mark = Mark { by_sm, blocked_by_sm, ..Mark::default() };
        for counts in self.shared_state.counts.iter().filter(|counts| counts.app == id) {
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
