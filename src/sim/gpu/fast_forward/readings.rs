//! Counters of the machine's parts at one moment, and how they grow in stretches that are
//! passed over.

use gpumodel_core::units::AppId;

use crate::counters::{
    CacheCounts, KernelCounts, SmCounts, StallStack, Sums, TlbCounts, add_stalls,
};
use crate::dram::ChannelCounters;
use crate::gpu::Gpu;
use crate::sm::Sm;

/// The counters of SMs, slices and channels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readings {
    /// By application and SM.
    pub(crate) stalls: Vec<Vec<StallStack>>,
    pub(crate) sms: Vec<SmCounts>,
    pub(crate) tlbs: Vec<TlbCounts>,
    pub(crate) slices: Vec<CacheCounts>,
    pub(crate) channels: Vec<ChannelCounters>,
}

impl Readings {
    /// What the machine has counted in simulated cycles.
    pub(super) fn of(gpu: &Gpu<'_>) -> Self {
        let ids = (0..gpu.apps.len()).map(|app| AppId(gpumodel_core::units::to_u16(app)));
        let by_sm = |app: AppId| gpu.sms.iter().map(|sm| sm.stalls_of(app)).collect();
        let memory = &gpu.shared_state.memory_system;
        Self {
            stalls: ids.map(by_sm).collect(),
            sms: gpu.sms.iter().map(Sm::counts).collect(),
            tlbs: gpu.sms.iter().filter_map(Sm::tlb_counts).collect(),
            slices: memory.slice_counts(),
            channels: memory.channel_counts(gpu.now()),
        }
    }

    /// The same counters at 0.
    pub(super) fn zero(&self) -> Self {
        Self {
            stalls: self.stalls.iter().map(|sms| vec![StallStack::default(); sms.len()]).collect(),
            sms: vec![SmCounts::default(); self.sms.len()],
            tlbs: vec![TlbCounts::default(); self.tlbs.len()],
            slices: vec![CacheCounts::default(); self.slices.len()],
            channels: vec![ChannelCounters::default(); self.channels.len()],
        }
    }

    /// Adds `factor` times what `now` has more than `before`.
    pub(super) fn add_growth(&mut self, now: &Self, before: &Self, factor: f64) {
        let stalls = now.stalls.iter().flatten().zip(before.stalls.iter().flatten());
        for (own, (now, before)) in self.stalls.iter_mut().flatten().zip(stalls) {
            add_stalls(own, now, before, factor);
        }
        for (own, (now, before)) in self.sms.iter_mut().zip(now.sms.iter().zip(&before.sms)) {
            add_stalls(&mut own.stalls, &now.stalls, &before.stalls, factor);
        }
        grow(&mut self.sms, &now.sms, &before.sms, factor);
        grow(&mut self.tlbs, &now.tlbs, &before.tlbs, factor);
        grow(&mut self.slices, &now.slices, &before.slices, factor);
        grow(&mut self.channels, &now.channels, &before.channels, factor);
    }
}

fn grow<T: Sums>(own: &mut [T], now: &[T], before: &[T], factor: f64) {
    for (own, (now, before)) in own.iter_mut().zip(now.iter().zip(before)) {
        own.add_growth(now, before, factor);
    }
}

/// Adds all of `more`.
pub(super) fn add_all<T: Sums + Default>(own: &mut [T], more: &[T]) {
    own.iter_mut().zip(more).for_each(|(own, more)| own.add_growth(more, &T::default(), 1.0));
}

/// Lets the counts of a launch grow by `factor` times what they have more than `before`, except
/// those of CTAs and instructions, which are known: `walked` of each.
pub(super) fn grow_launch(
    counts: &mut KernelCounts,
    before: &KernelCounts,
    factor: f64,
    walked: &Walked,
) {
    let now = counts.clone();
    counts.add_growth(&now, before, factor);
    add_stalls(&mut counts.stalls, &now.stalls, &before.stalls, factor);
    counts.ctas_started = now.ctas_started + walked.ctas;
    counts.ctas_retired = now.ctas_retired + walked.ctas;
    let threads = now.thread_instructions + walked.threads;
    counts.set_instructions(now.warp_instructions + walked.warps, threads);
}

/// What was walked through of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Walked {
    pub(super) ctas: u64,
    /// Warp instructions.
    pub(super) warps: u64,
    /// Thread instructions.
    pub(super) threads: u64,
}
