//! Counters of the machine's parts at one moment, how they grow in stretches that are passed
//! over, and when a rate counts as steady: a test over the last windows.

use crate::counters::{
    CacheCounts, KernelCounts, SmCounts, StallStack, Sums, TlbCounts, add_stalls,
};
use crate::dram::ChannelCounters;
use crate::gpu::hardware::Hardware;
use crate::sm::Sm;
use gpumodel_core::units::{AppId, to_u16};

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
    pub(crate) fn of(hardware: &Hardware<'_>) -> Self {
        let Hardware { sms, shared_state, dispatcher, .. } = hardware;
        let ids = (0..dispatcher.held.len()).map(|app| AppId(to_u16(app)));
        let by_sm = |app: AppId| sms.iter().map(|sm| sm.stalls_of(app)).collect();
        let memory = &shared_state.memory_system;
        Self {
            stalls: ids.map(by_sm).collect(),
            sms: sms.iter().map(Sm::counts).collect(),
            tlbs: sms.iter().filter_map(Sm::tlb_counts).collect(),
            slices: memory.slice_counts(),
            channels: memory.channel_counts(hardware.now()),
        }
    }

    /// The same counters at 0.
    pub(crate) fn zero(&self) -> Self {
        Self {
            stalls: self.stalls.iter().map(|sms| vec![StallStack::default(); sms.len()]).collect(),
            sms: vec![SmCounts::default(); self.sms.len()],
            tlbs: vec![TlbCounts::default(); self.tlbs.len()],
            slices: vec![CacheCounts::default(); self.slices.len()],
            channels: vec![ChannelCounters::default(); self.channels.len()],
        }
    }

    /// Adds `factor` times what `now` has more than `before`.
    pub(crate) fn add_growth(&mut self, now: &Self, before: &Self, factor: f64) {
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

    /// Adds those of the channels to `counts`.
    pub(crate) fn add_channels_to(&self, counts: &mut [ChannelCounters]) {
        for (own, more) in counts.iter_mut().zip(&self.channels) {
            own.add_growth(more, &ChannelCounters::default(), 1.0);
        }
    }
}

fn grow<T: Sums>(own: &mut [T], now: &[T], before: &[T], factor: f64) {
    for (own, (now, before)) in own.iter_mut().zip(now.iter().zip(before)) {
        own.add_growth(now, before, factor);
    }
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

/// Windows that a test looks at.
pub(super) const WINDOWS: usize = 8;

/// Student's t for 95 % on both sides, for the mean of [`WINDOWS`] windows.
const T_MEAN: f64 = 2.365;

/// The same for the slope of a line through them.
const T_SLOPE: f64 = 2.447;

/// Half the interval of a steady rate, as a part of it, at most.
const WIDEST: f64 = 0.03;

/// A steady rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rate {
    /// Instructions per cycle.
    pub(super) mean: f64,
    /// The standard error of that, as a part of it.
    pub(super) error: f64,
}

/// The rate of the last windows, where it is steady: its 95 % interval is at most 3 % to either
/// side, and a line through the windows does not rise or fall (Student's t at 95 %) by more than
/// that either. `rates` has one rate per window, [`WINDOWS`] at least.
pub(super) fn steady(rates: &[f64]) -> Option<Rate> {
    let rates = &rates[rates.len().checked_sub(WINDOWS)?..];
    let count = WINDOWS as f64;
    let mean = rates.iter().sum::<f64>() / count;
    if mean <= 0.0 {
        return None;
    }
    let middle = (count - 1.0) / 2.0;
    let places = || (0..WINDOWS).map(|place| place as f64 - middle);
    let spread = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>();
    let square = places().map(|x| x * x).sum::<f64>();
    let slope = places().zip(rates).map(|(x, rate)| x * rate).sum::<f64>() / square;
    let residue = (spread - slope * slope * square).max(0.0);
    let slope_error = (residue / (count - 2.0) / square).sqrt();
    let error = (spread / (count - 1.0) / count).sqrt() / mean;
    let rises = slope.abs() > T_SLOPE * slope_error && slope.abs() * count > WIDEST * mean;
    (T_MEAN * error <= WIDEST && !rises).then_some(Rate { mean, error })
}

#[cfg(test)]
mod tests {
    use super::steady;

    #[test]
    fn a_constant_rate_is_steady_and_known_exactly() {
        let rate = steady(&[2.0; 8]).unwrap();
        assert!((rate.mean - 2.0).abs() < 1e-12 && rate.error < 1e-12);
    }

    #[test]
    fn noise_is_steady_while_its_mean_is_known() {
        let noisy = |part: f64| -> Vec<f64> {
            [1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0].map(|sign| 1.0 + part * sign).into()
        };
        assert!(steady(&noisy(0.01)).is_some());
        assert_eq!(steady(&noisy(0.05)), None);
    }

    #[test]
    fn a_rate_that_rises_is_not_steady() {
        let rates: Vec<f64> = (0..8).map(|place| 1.0 + 0.005 * f64::from(place)).collect();
        assert_eq!(steady(&rates), None);
        assert!(steady(&rates[..4]).is_none(), "too few windows");
    }
}
