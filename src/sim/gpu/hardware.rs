//! The hardware of a run: the SMs, what they share, the dispatcher that gives them CTAs, and the
//! counters of all of them.

use gpumodel_core::memory_copy::{CopyDirection, MemoryCopy};
use gpumodel_core::units::{AppId, Cycle, to_u16, to_usize};

use crate::config::Machine;
use crate::counters::{Cause, StallStack, add_stalls};
use crate::dram::ChannelCounters;
use crate::gpu::app::Launches;
use crate::gpu::dispatch::{Dispatcher, HandOut};
use crate::gpu::error::MachineError;
use crate::gpu::event_queue::Event;
use crate::gpu::fast_forward::Readings;
use crate::gpu::feed::{Feed, Stream};
use crate::gpu::grid::Grid;
use crate::gpu::link::CopyInFlight;
use crate::gpu::plan_control::ActivePlan;
use crate::gpu::shared_state::SharedState;
use crate::gpu::timeline::Totals;
use crate::mmu::address_space;
use crate::sm::{Leave, Sm};

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

    /// Stops up to `count` CTAs of an application on an SM, those that came last
    /// first; CTAs that are leaving already count.
    pub(crate) fn stop_ctas(&mut self, sm: usize, app: AppId, count: usize, leave: Leave) {
        let grids = &self.dispatcher.grids;
        let owns = |kernel: u32| grids[to_usize(kernel)].app == app;
        let sm = &mut self.sms[sm];
        let leaving = sm.leaving().filter(|&(_, kernel)| owns(kernel));
        let leaving: Vec<usize> = leaving.map(|(slot, _)| slot).collect();
        let residents = sm.residents().filter(|&(_, kernel, _)| owns(kernel));
        let mut slots: Vec<(Cycle, usize)> =
            residents.map(|(slot, _, started)| (started, slot)).collect();
        slots.sort_unstable_by(|one, other| other.cmp(one));
        slots.truncate(count.saturating_sub(leaving.len()));
        if leave == Leave::Halt {
            slots.extend(leaving.into_iter().map(|slot| (0, slot)));
        }
        for (_, slot) in slots {
            sm.stop(slot, leave, &mut self.shared_state);
        }
    }

    /// A copy of an application begins; where copies take no time it is over too.
    pub(crate) fn begin_copy(&mut self, app: usize, copy: MemoryCopy, launches: &Launches) {
        let SharedState { link, queue, .. } = &mut self.shared_state;
        match link.as_mut().filter(|link| link.times_copies) {
            Some(link) => {
                link.begin(CopyInFlight { app, number: launches.last_copy(), copy }, queue);
            }
            None => self.copy_in(app, copy),
        }
    }

    /// A copy of an application has put its data into memory: its pages exist then, and on some
    /// machines the L2 has its data.
    pub(crate) fn copy_in(&mut self, app: usize, copy: MemoryCopy) {
        if copy.direction == CopyDirection::DeviceToHost {
            return;
        }
        let (first, bytes) = (copy.address ^ address_space::tag(to_u16(app)), copy.bytes);
        if let Some(link) = &mut self.shared_state.link {
            link.bring(first, bytes);
        }
        if let Some(mmu) = &mut self.shared_state.mmu {
            mmu.copy_in(first, bytes);
        }
        if self.machine.dispatch.memcpy_fills_l2 {
            self.shared_state.memory_system.copy_in(first, bytes);
        }
    }

    /// A launch is made: it begins after its latency.
    pub(crate) fn launch(&mut self, kernel: u32) {
        let latency = self.machine.dispatch.kernel_launch_cycles;
        let (begin, elapsed) = (self.now() + latency, self.elapsed());
        let counts = &mut self.shared_state.counts[to_usize(kernel)];
        counts.start = elapsed;
        counts.first_cta = elapsed + latency;
        self.shared_state.queue.schedule(begin, Event::Begin { kernel });
    }

    /// Notes the end of a launch in its counters.
    pub(crate) fn close_launch(&mut self, kernel: u32) {
        self.account_stalls();
        let elapsed = self.elapsed();
        let counts = &mut self.shared_state.counts[to_usize(kernel)];
        counts.end = elapsed;
        let schedulers =
            f64::from(u32::from(self.machine.dispatch.sms) * self.machine.sm.schedulers);
        #[allow(clippy::cast_precision_loss, reason = "spans are below 2^53")]
        let span = (counts.end - counts.first_cta.min(counts.end)) as f64;
        counts.slot_cycles += span * schedulers;
        let grid = &self.dispatcher.grids[to_usize(kernel)];
        #[allow(clippy::cast_precision_loss, reason = "spans are below 2^53")]
        let held = grid.held as f64;
        counts.held_slots = held * f64::from(self.machine.sm.schedulers);
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

    /// Activity so far.
    pub(crate) fn totals(&self) -> Totals {
        let resident_ctas = self.dispatcher.grids.iter().map(Grid::resident).sum();
        let mut totals = Totals { resident_ctas, ..Totals::default() };
        for counts in &self.shared_state.counts {
            totals.warp_instructions += counts.warp_instructions;
            totals.dram_sectors += counts.dram_reads + counts.dram_writes;
        }
        totals
    }

    /// By launch: CTAs on SMs times cycles so far.
    pub(crate) fn cta_cycles(&self) -> Vec<u64> {
        let now = self.elapsed();
        self.dispatcher.grids.iter().map(|grid| grid.cta_cycles(now)).collect()
    }

    /// Checks that each CTA has been started and retired once, is under way, or was dropped.
    ///
    /// # Errors
    /// [`MachineError::Lost`] when those of a launch do not add up.
    pub(crate) fn check_ctas(&self) -> Result<(), MachineError> {
        for (launch, grid) in self.dispatcher.grids.iter().enumerate() {
            let whole = grid.started == grid.ctas || self.shared_state.counts[launch].end == 0;
            if !grid.adds_up() || !(whole || grid.lost > 0 || grid.left() > 0) {
                let (ctas, started, retired) = (grid.ctas, grid.started, grid.retired);
                return Err(MachineError::Lost { launch, ctas, started, retired, lost: grid.lost });
            }
        }
        Ok(())
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
