//! What the schemes that decide at the end of every epoch have in common.

use gpumodel_core::contract::{Facts, PlanDraft, ProbeResult, Vacate, View, WakeOn};
use gpumodel_core::units::{AppId, Cycle};

use super::super::shares::FreedSms;
use super::super::solve::float;
use super::super::{Parameter, Settings};
use super::algorithm::{Algorithm, Claim};
use super::demand::{Demand, SoloProfiles, Traffic};
use super::partition::Partition;

pub(super) const EPOCH: Parameter = Parameter::whole("epoch", 5_000_000, 1..=u64::MAX)
    .does("cycles of an epoch (published: section 3.3)");

/// A partition that changes at the end of an epoch, and the counters by which it does.
#[derive(Clone, Debug)]
pub(super) struct Epochs {
    length: Cycle,
    /// When the current epoch ends.
    end: Cycle,
    pub(super) solo_profiles: SoloProfiles,
    pub(super) partition: Partition,
    /// The counters of the current epoch. Those of a view restart at every decision, also in
    /// the middle of an epoch.
    current: EpochCounters,
    /// The counters of the epoch that has ended.
    last: EpochCounters,
    /// The partition before the last move and the throughput with it.
    pub(super) before: Option<(Partition, f64)>,
}

#[derive(Clone, Debug, Default)]
struct EpochCounters {
    cycles: Cycle,
    /// By [`AppId`].
    apps: Vec<Traffic>,
}

/// What a decision is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// An application has arrived or ended, so that others own SMs: an epoch begins.
    OwnersChanged,
    /// An epoch has ended with the same owners.
    EpochEnd,
    /// The epoch continues.
    Between,
}

impl Epochs {
    pub(super) fn new(settings: &Settings, owns_channels: bool) -> Self {
        Self {
            length: settings.whole(EPOCH.name),
            end: 0,
            solo_profiles: SoloProfiles::default(),
            partition: Partition::new(owns_channels, FreedSms::of(settings)),
            current: EpochCounters::default(),
            last: EpochCounters::default(),
            before: None,
        }
    }

    /// Begins the first epoch with the answers to the probes.
    pub(super) fn start(&mut self, facts: &Facts, probes: &[ProbeResult]) {
        self.solo_profiles = SoloProfiles::new(probes);
        self.partition.reset(facts);
        self.end = self.length;
    }

    /// Adds the counters of a view.
    pub(super) fn advance(&mut self, facts: &Facts, view: &View) -> Moment {
        self.current.cycles += view.now - view.since;
        self.current.apps.resize(view.apps.len(), Traffic::default());
        for (sum, seen) in self.current.apps.iter_mut().zip(&view.apps) {
            sum.add(&seen.into());
        }
        let changed = self.partition.update(facts, view);
        if !changed && view.now < self.end {
            // The epoch after a move is cut in two: its throughput cannot be compared.
            self.before = None;
            return Moment::Between;
        }
        self.end = view.now.saturating_add(self.length);
        self.last = std::mem::take(&mut self.current);
        if changed { Moment::OwnersChanged } else { Moment::EpochEnd }
    }

    /// The claims of those that run, by the counters of the epoch that has ended.
    pub(super) fn claims(&self, facts: &Facts, view: &View, algorithm: &Algorithm) -> Vec<Claim> {
        let claim = |app: AppId| {
            let traffic = *self.last.apps.get(app.index())?;
            let demand = Demand::new(facts, traffic, algorithm.b_mem)?;
            Some(algorithm.claim(facts, app, demand))
        };
        self.partition.running(view).into_iter().filter_map(claim).collect()
    }

    /// System throughput of the epoch that has ended: the sum over all applications of thread
    /// instructions per cycle against those of the solo run (eq. 3).
    pub(super) fn throughput(&self) -> f64 {
        let cycles = float(self.last.cycles.max(1));
        let progress = |(place, solo): (usize, f64)| {
            let executed = self.last.apps.get(place).map_or(0, |app| app.thread_instructions);
            if solo > 0.0 { float(executed) / cycles / solo } else { 0.0 }
        };
        self.solo_profiles.ipc().enumerate().map(progress).sum()
    }

    /// The plan of the partition, where `running` applications have not ended.
    pub(super) fn draft(&self, facts: &Facts, running: usize, reason: String) -> PlanDraft {
        let wake = (running > 1).then_some(WakeOn::At(self.end)).into_iter().collect();
        PlanDraft { vacate: Vacate::Hybrid, wake, reason, ..self.partition.draft(facts) }
    }
}
