//! The hardware of a run: the SMs, what they share, the dispatcher that gives them CTAs, and the
//! counters of all of them.

use gpumodel_core::units::{AppId, Cycle};

use crate::config::Machine;
use crate::counters::{Cause, StallStack, add_stalls};
use crate::dram::ChannelCounters;
use crate::gpu::dispatch::{Dispatcher, HandOut};
use crate::gpu::fast_forward::Readings;
use crate::gpu::feed::{Feed, Stream};
use crate::gpu::plan_control::ActivePlan;
use crate::gpu::shared_state::SharedState;
use crate::sm::Sm;

/// The parts that run CTAs.
#[derive(Debug)]
pub(crate) struct Hardware<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) feed: &'a dyn Feed,
    pub(crate) sms: Vec<Sm>,
    pub(crate) shared_state: SharedState,
    pub(crate) dispatcher: Dispatcher,
    /// Counters of the stretches that were passed over; absent where every cycle is simulated.
    pub(crate) passed: Option<Box<Readings>>,
    /// Scratch for the streams of a CTA's warps.
    streams: Vec<Stream>,
}

impl<'a> Hardware<'a> {
    /// Idle SMs of `machine`, which run what `feed` has.
    pub(crate) fn new(
        machine: &'a Machine,
        feed: &'a dyn Feed,
        dispatcher: Dispatcher,
        shared_state: SharedState,
    ) -> Self {
        let block_bytes = shared_state.memory_system.block_bytes();
        let sm = |id| Sm::new(id, machine, block_bytes);
        let sms = (0..machine.dispatch.sms).map(sm).collect();
        Self { machine, feed, sms, shared_state, dispatcher, passed: None, streams: Vec::new() }
    }

    /// The present cycle.
    pub(crate) fn now(&self) -> Cycle {
        self.shared_state.queue.now()
    }

    /// The present cycle of the run, with those that were passed over.
    pub(crate) fn elapsed(&self) -> Cycle {
        self.shared_state.elapsed()
    }

    /// The dispatcher, and what it needs to hand out CTAs under a plan.
    pub(crate) fn hand_out<'h>(
        &'h mut self,
        active_plan: &'h ActivePlan,
    ) -> (&'h mut Dispatcher, HandOut<'h>) {
        let Self { feed, sms, shared_state, dispatcher, streams, .. } = self;
        (dispatcher, HandOut { feed: *feed, active_plan, sms, streams, shared_state })
    }

    /// Accounts the slot-cycles of all SMs up to now.
    pub(crate) fn account_stalls(&mut self) {
        for sm in &mut self.sms {
            sm.account_stalls(&mut self.shared_state);
        }
    }

    /// Slot-cycles of an application on an SM by cause, up to the last accounting.
    pub(crate) fn stalls_of(&self, app: AppId, sm: usize) -> StallStack {
        let mut stalls = self.sms[sm].stalls_of(app);
        if let Some(passed) = &self.passed {
            let passed = &passed.stalls[app.index()][sm];
            add_stalls(&mut stalls, passed, &StallStack::default(), 1.0);
        }
        stalls
    }

    /// Warp instructions that take so many issue slots.
    pub(crate) fn instructions(&self, slots: f64) -> f64 {
        slots * f64::from(self.machine.sm.issue_width.max(1))
    }

    /// Warp instructions of an application so far, by the issue slots that they took, up to
    /// the last accounting of stalls.
    pub(crate) fn issued(&self, app: AppId) -> f64 {
        let issued = (0..self.sms.len()).map(|sm| self.stalls_of(app, sm)[Cause::Issued as usize]);
        self.instructions(issued.sum())
    }

    /// The same in simulated cycles alone.
    pub(crate) fn simulated(&self, app: AppId) -> f64 {
        let issued = self.sms.iter().map(|sm| sm.stalls_of(app)[Cause::Issued as usize]);
        self.instructions(issued.sum())
    }

    /// How far an application has come: what it has issued without what has to issue again, and
    /// for workers without the part that their added code has so far.
    pub(crate) fn progress(&self, app: AppId) -> f64 {
        self.progress_by(app, self.issued(app))
    }

    /// The same of an application that has issued `issued` warp instructions.
    pub(crate) fn progress_by(&self, app: AppId, issued: f64) -> f64 {
        let grids = self.dispatcher.grids.iter().filter(|grid| grid.app == app);
        let issued = issued - grids.map(|grid| grid.dropped).sum::<f64>();
        let counts = self.shared_state.counts.iter().filter(|counts| counts.app == app);
        let (all, added) = counts.fold((0, 0), |(all, added), counts| {
            (all + counts.warp_instructions, added + counts.added_instructions)
        });
        #[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
        let own = if added == 0 { 1.0 } else { 1.0 - added as f64 / all.max(1) as f64 };
        issued * own.max(0.0)
    }

    /// The counters of SMs, slices and channels, with those of stretches that were passed over.
    pub(crate) fn readings(&self) -> Readings {
        let mut readings = Readings::of(self);
        if let Some(passed) = &self.passed {
            readings.add_growth(passed, &passed.zero(), 1.0);
        }
        readings
    }

    /// The counters of each channel up to now.
    pub(crate) fn channel_counts(&self) -> Vec<ChannelCounters> {
        let mut counts = self.shared_state.memory_system.channel_counts(self.now());
        if let Some(passed) = &self.passed {
            passed.add_channels_to(&mut counts);
        }
        counts
    }
}
