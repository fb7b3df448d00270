//! The whole machine: wiring and the event loop. It does not know which scheme decides.
//!
//! | part of a run | has |
//! |---|---|
//! | [`Hardware`] | the SMs, what they share, the dispatcher, and their counters |
//! | [`Running`], [`RunEnd`] | the applications, and when the run is over |
//! | [`PlanControl`] | the plan in force, its wakes and time slices |
//! | [`ChannelControl`] | owners of memory channels, and their change |
//! | [`DecisionCounters`] | what a scheme sees of all that |
//! | [`FastForward`] | what passes over steady stretches |
//!
//! A part gets the others that it needs as arguments. What goes on from part to part is [`Gpu`]'s:
//! the events (this file), what follows when CTAs, launches and applications end
//! (`app_lifecycle.rs`), and what follows when a plan takes effect (`plan_effect.rs`).

pub(crate) mod app;
pub(crate) mod app_lifecycle;
pub(crate) mod clusters;
pub(crate) mod decision_counters;
pub(crate) mod dispatch;
pub(crate) mod dispatch_groups;
pub(crate) mod error;
pub(crate) mod event_queue;
pub(crate) mod fast_forward;
pub(crate) mod feed;
pub(crate) mod grid;
pub(crate) mod hardware;
pub(crate) mod link;
pub(crate) mod outcome;
pub(crate) mod plan_control;
mod plan_effect;
pub(crate) mod progress;
pub(crate) mod reallocation;
pub(crate) mod setup;
pub(crate) mod shared_state;
pub(crate) mod timeline;
pub(crate) mod workers;

use gpumodel_core::contract::{Plan, View, Wake};
use gpumodel_core::units::Cycle;

use crate::counters::KernelCounts;
use crate::gpu::app::{AppMoved, Running};
use crate::gpu::app_lifecycle::RunEnd;
use crate::gpu::decision_counters::DecisionCounters;
use crate::gpu::dispatch::Dispatcher;
use crate::gpu::error::MachineError;
use crate::gpu::event_queue::{Event, EventQueue};
use crate::gpu::fast_forward::{FastForward, Readings, WindowContext};
use crate::gpu::feed::Feed;
use crate::gpu::hardware::Hardware;
use crate::gpu::outcome::{Drain, Outcome};
use crate::gpu::plan_control::PlanControl;
use crate::gpu::progress::ProgressCheck;
use crate::gpu::reallocation::ChannelControl;
use crate::gpu::setup::Setup;
use crate::gpu::shared_state::SharedState;
use crate::gpu::timeline::{ResidencyRecorder, Timeline};
use crate::interval::ProfileImage;
use crate::memory::MemorySystem;
use crate::memory::packet::Origin;
use crate::mmu::{Mmu, MmuContext, Request};
use crate::sm::{Departure, Freed, Sm};

/// Where [`Gpu::advance`] stops.
#[derive(Clone, Debug, PartialEq)]
pub enum Pause {
    /// The plan asked to be woken, or something happened that always asks: answer
    /// with [`Gpu::follow`], or continue under the plan in force.
    Decide(Box<View>),
    /// The run is over.
    Over,
}

/// One run of one machine.
#[derive(Debug)]
pub struct Gpu<'a> {
    hardware: Hardware<'a>,
    apps: Vec<Running>,
    run_end: RunEnd,
    plan_control: PlanControl,
    channels: ChannelControl,
    decision_counters: DecisionCounters,
    /// By launch: its counts at the end of its application's first run, where that restarted;
    /// without what it still had on its way to memory then.
    first_runs: Vec<Option<Box<KernelCounts>>>,
    timeline: Timeline,
    /// Absent where every cycle is simulated.
    fast_forward: Option<Box<FastForward>>,
    residency: Option<ResidencyRecorder>,
    departed: Vec<Departure>,
    /// Why a block could not be opened for a worker.
    failed: Option<MachineError>,
    /// SMs whose ports may send again.
    woken: Vec<u16>,
    /// Pages that have just become known, with the SMs that asked.
    pages: Vec<Request>,
    progress_check: ProgressCheck,
}

impl<'a> Gpu<'a> {
    /// An idle machine with its applications at their first commands.
    ///
    /// # Errors
    /// [`MachineError::CtaTooLarge`] when a launch can never start.
    pub fn new(setup: Setup<'a>, feed: &'a dyn Feed) -> Result<Self, MachineError> {
        let Setup { machine, standard, mapping, apps, end, part } = setup;
        let app_of = setup::app_of_kernels(&apps);
        let grids = setup::grids(machine, feed, &app_of)?;
        let (count, sms) = (apps.len(), usize::from(machine.dispatch.sms));
        let memory = (standard, mapping);
        let shared_state =
            setup::shared_state(machine, feed, (count, &app_of), memory, part.as_ref());
        let first_runs = vec![None; grids.len()];
        let dispatcher = Dispatcher::new(machine, grids, count, part.map_or(1, |part| part.pace));
        Ok(Self {
            hardware: Hardware::new(machine, feed, dispatcher, shared_state),
            decision_counters: DecisionCounters::new(count, sms),
            first_runs,
            run_end: RunEnd::new(end, &apps),
            apps: apps.into_iter().map(|load| Running::new(load, machine)).collect(),
            plan_control: PlanControl::default(),
            channels: ChannelControl::new(machine, count),
            timeline: Timeline::new(),
            fast_forward: None,
            residency: (count > 1).then(|| ResidencyRecorder::new(count, sms)),
            departed: Vec::new(),
            failed: None,
            woken: Vec::new(),
            pages: Vec::new(),
            progress_check: ProgressCheck::default(),
        })
    }

    /// With the profiles of the code that an earlier run of the same launches on the same
    /// machine left: the result is the same, a little sooner.
    #[must_use]
    pub fn with_profiles(mut self, images: &[ProfileImage]) -> Self {
        self.hardware.shared_state.take_in(images);
        self
    }

    /// Counting stalls, cache look-ups and bank conflicts by instruction: no cycle moves. Without
    /// profiles of earlier runs, which do not say where in an interval a warp waits.
    #[must_use]
    pub fn with_hot_spots(mut self) -> Self {
        self.hardware.shared_state.count_instructions(self.hardware.sms.len());
        self.hardware.sms.iter_mut().for_each(Sm::attribute_stalls);
        self
    }

    /// Passing over stretches in which all launches advance steadily; see
    /// [`Passed`](fast_forward::Passed). Needs all of the run, and neither spans of CTAs nor hot
    /// spots.
    #[must_use]
    pub fn with_fast_forward(mut self) -> Self {
        let (launches, apps) = (self.hardware.dispatcher.grids.len(), self.apps.len());
        self.fast_forward = Some(Box::new(FastForward::new(launches, apps)));
        self.hardware.passed = Some(Box::new(Readings::of(&self.hardware).zero()));
        self.hardware.shared_state.queue.schedule(1, Event::Window);
        self
    }

    /// On all threads of the present pool: where it has more than one, the memory controllers are
    /// simulated ahead of the rest of the machine. The result is the same.
    #[must_use]
    pub fn with_all_threads(mut self) -> Self {
        let machine = self.hardware.machine;
        let soonest_copy = machine.translation.as_ref().map(|spec| spec.migration_driver_cycles);
        let threads = rayon::current_num_threads();
        let memory_system = &mut self.hardware.shared_state.memory_system;
        if threads > 1 {
            memory_system.look_ahead(threads, soonest_copy.unwrap_or(Cycle::MAX));
        }
        self
    }

    /// Keeping the lives of all CTAs that retire.
    #[must_use]
    pub fn with_cta_spans(mut self) -> Self {
        self.hardware.shared_state.spans.get_or_insert_default();
        self
    }

    /// Runs to the end under one plan; `watch` gets now and then the number of warp
    /// instructions issued since its last call.
    ///
    /// # Errors
    /// As [`Gpu::follow`], [`Gpu::advance`] and [`Gpu::finish`].
    pub fn run(mut self, plan: &Plan, watch: &mut dyn FnMut(u64)) -> Result<Outcome, MachineError> {
        self.follow(plan.clone())?;
        while self.advance(watch)? != Pause::Over {}
        self.finish()
    }

    /// Runs on under the plan in force until the scheme is to be asked or the run is
    /// over.
    ///
    /// # Errors
    /// When the source fails, or nothing moves any more.
    pub fn advance(&mut self, watch: &mut dyn FnMut(u64)) -> Result<Pause, MachineError> {
        if !std::mem::replace(&mut self.run_end.begun, true) {
            self.begin_all();
        }
        loop {
            if self.run_end.over {
                self.break_off();
                return Ok(Pause::Over);
            }
            if let Some(wake) = self.plan_control.wakes.pop_front() {
                return Ok(Pause::Decide(Box::new(self.view(wake))));
            }
            let Some(event) = self.hardware.shared_state.queue.next() else {
                return Err(self.progress_check.stuck(&mut self.hardware));
            };
            if self.elapsed() >= self.timeline.due() {
                self.note_activity();
            }
            self.handle(event)?;
            if self.failed.is_some() {
                return self.failed.take().map_or(Ok(Pause::Over), Err);
            }
            if self.progress_check.is_due() {
                watch(self.progress_check.check(&mut self.hardware)?);
            }
        }
    }

    /// The view for a scheme; its counters restart from here.
    fn view(&mut self, wake: Wake) -> View {
        let control = (&self.plan_control, self.channels.owners());
        self.decision_counters.view(wake, &self.apps, control, &mut self.hardware)
    }

    /// The present cycle.
    pub fn now(&self) -> Cycle {
        self.hardware.now()
    }

    /// The present cycle of the run, with those that were passed over.
    fn elapsed(&self) -> Cycle {
        self.hardware.elapsed()
    }

    // Part of the loop over all events: a call for each would save and restore all registers.
    #[inline(always)]
    #[allow(clippy::too_many_lines, reason = "the one match over all events")]
    fn handle(&mut self, event: Event) -> Result<(), MachineError> {
        let Hardware { sms, shared_state, dispatcher, .. } = &mut self.hardware;
        match event {
            Event::Scheduler { sm, scheduler } => {
                self.on_sm(sm, |state, shared| state.on_scheduler(scheduler, shared));
            }
            Event::Wake { sm, warp } => self.on_sm(sm, |state, shared| state.on_wake(warp, shared)),
            Event::LoadStore { sm } => self.on_sm(sm, Sm::on_load_store),
            Event::Fetch { sm } => self.on_sm(sm, Sm::on_fetch),
            Event::Reply { packet } => self.handle_reply(packet),
            Event::ClusterOpen { cluster } => shared_state.open_cluster(cluster, sms),
            Event::ClusterMessage { message } => shared_state.deliver(message, sms),
            Event::ClusterCheck { cluster } => shared_state.on_cluster_check(cluster, sms),
            Event::Memory(event) => {
                self.on_memory(|memory, queue, counts| memory.on_event(event, queue, counts));
            }
            Event::LookUp { request } => {
                self.on_translation(|mmu, around, known| mmu.on_look_up(request, around, known));
            }
            Event::Walk { walk } => {
                self.on_translation(|mmu, around, known| mmu.on_walk(walk, around, known));
            }
            Event::PageMove { number } => {
                self.on_translation(|mmu, around, _| mmu.on_page_move(number, around));
            }
            Event::PageCopied { token } => {
                self.on_translation(|mmu, around, _| mmu.on_page_copied(token, around.queue));
            }
            Event::Dispatch { group } => self.hand_out(group)?,
            Event::Launch { kernel } => self.hardware.launch(kernel),
            Event::Begin { kernel } => self.begin(kernel),
            Event::Instance { kernel } => {
                dispatcher.restart_workers(kernel, &self.plan_control, shared_state);
            }
            Event::Copied { copy } => self.on_control(true, |gpu| gpu.copy_ended(copy)),
            Event::PageBrought { place } => shared_state.bring_page(place),
            Event::Arrival { app } => self.on_control(true, |gpu| gpu.arrive(usize::from(app))),
            Event::Effect { plan } => {
                self.on_control(self.plan_control.is_latest(plan), Self::take_effect);
            }
            Event::Alarm { plan } => self.on_control(self.plan_control.is_latest(plan), |gpu| {
                gpu.plan_control.wakes.push_back(Wake::At(gpu.elapsed()));
            }),
            Event::IpcCheck { plan } => self.on_control(self.plan_control.is_latest(plan), |gpu| {
                gpu.plan_control.on_ipc_check(&gpu.apps, &mut gpu.hardware);
            }),
            Event::SliceEnd { plan } => {
                self.on_control(plan == self.plan_control.in_force, Self::on_slice_end);
            }
            Event::TargetCheck => self.on_control(true, Self::on_target_check),
            Event::Window => self.on_window()?,
            Event::End => self.on_control(true, Self::break_off),
        }
        Ok(())
    }

    #[inline]
    fn on_sm(&mut self, sm: u16, act: impl FnOnce(&mut Sm, &mut SharedState)) {
        let sm = usize::from(sm);
        act(&mut self.hardware.sms[sm], &mut self.hardware.shared_state);
        self.collect_departed(sm);
    }

    #[inline]
    fn handle_reply(&mut self, packet: u32) {
        let shared_state = &mut self.hardware.shared_state;
        let (packet, done) = shared_state.memory_system.on_reply(packet, shared_state.queue.now());
        match packet.origin {
            Origin::Sm => {}
            Origin::Walk => return shared_state.on_walk_read(packet.operation, done),
            Origin::Copy => return shared_state.on_copy(&packet),
        }
        shared_state.check_answer(&packet);
        self.hardware.sms[usize::from(packet.sm)].on_reply(&packet, done, shared_state);
        self.collect_departed(usize::from(packet.sm));
        if self.channels.is_changing() {
            self.channels.note_quiet(usize::from(packet.sm), &mut self.hardware);
        }
    }

    fn on_window(&mut self) -> Result<(), MachineError> {
        let Some(fast_forward) = &mut self.fast_forward else { return Ok(()) };
        fast_forward.on_window(&mut WindowContext {
            hardware: &mut self.hardware,
            apps: &self.apps,
            plan_control: &mut self.plan_control,
            channels: &self.channels,
            residency: self.residency.as_mut(),
        })
    }

    fn hand_out(&mut self, group: u16) -> Result<(), MachineError> {
        self.note_residency();
        let Some(active_plan) = self.plan_control.active() else { return Ok(()) };
        let (dispatcher, mut machine) = self.hardware.hand_out(active_plan);
        dispatcher.on_dispatch(group, &mut machine)?;
        // A CTA without instructions retires as it comes.
        self.collect_all_departed();
        Ok(())
    }

    /// Lets the memory act; then SMs whose ports have room again send.
    #[inline]
    fn on_memory(
        &mut self,
        act: impl FnOnce(&mut MemorySystem, &mut EventQueue<Event>, &mut [KernelCounts]),
    ) {
        let SharedState { queue, counts, memory_system, .. } = &mut self.hardware.shared_state;
        act(memory_system, queue, counts);
        memory_system.take_woken(&mut self.woken);
        let woken = std::mem::take(&mut self.woken);
        for &sm in &woken {
            self.hardware.sms[usize::from(sm)].retry(Freed::Port, &mut self.hardware.shared_state);
            self.collect_departed(usize::from(sm));
        }
        self.woken = woken;
        self.woken.clear();
        #[cfg(test)]
        self.hardware.shared_state.check_written();
        if self.channels.is_flushing() {
            self.channels.go_on_at_rest(&mut self.hardware);
        }
    }

    /// Lets the MMU act, where the machine translates; SMs then get the pages that are known.
    /// Kept out of [`Gpu::handle`], which most machines run without it.
    #[inline(never)]
    fn on_translation(
        &mut self,
        act: impl FnOnce(&mut Mmu, &mut MmuContext<'_>, &mut Vec<Request>),
    ) {
        let mut pages = std::mem::take(&mut self.pages);
        let SharedState { queue, counts, memory_system, mmu, .. } = &mut self.hardware.shared_state;
        if let Some(mmu) = mmu {
            act(mmu, &mut MmuContext { queue, counts, memory_system }, &mut pages);
        }
        for request in pages.drain(..) {
            self.hardware.sms[usize::from(request.sm)]
                .on_page(request.page, &mut self.hardware.shared_state);
            self.collect_departed(usize::from(request.sm));
        }
        self.pages = pages;
    }

    /// Acts on an event of plan control that is not void; CTAs that it stopped may leave at
    /// once.
    fn on_control(&mut self, valid: bool, act: impl FnOnce(&mut Self)) {
        if valid {
            act(self);
        }
        self.collect_all_departed();
    }

    /// Notes what each application has had on the SMs; before that changes.
    fn note_residency(&mut self) {
        let now = self.elapsed();
        if let Some(recorder) = &mut self.residency {
            recorder.note(now, &self.hardware.dispatcher.held);
        }
    }

    fn note_activity(&mut self) {
        self.timeline.note(self.hardware.elapsed(), self.hardware.totals());
    }

    /// What the run leaves.
    ///
    /// # Errors
    /// [`MachineError::Lost`] when the CTAs of a launch do not add up,
    /// [`MachineError::Starved`] when the run would never have ended.
    pub fn finish(mut self) -> Result<Outcome, MachineError> {
        self.note_activity();
        if let Some(app) = self.run_end.starved {
            return Err(MachineError::Starved { app: app.index() });
        }
        self.hardware.check_ctas()?;
        self.hardware.sms.iter_mut().for_each(|sm| sm.charge_all(&mut self.hardware.shared_state));
        self.note_residency();
        let moved = (0..self.apps.len()).map(|app| self.moved(app)).collect();
        let cta_cycles = self.hardware.cta_cycles();
        Drain::run(&mut self.hardware);
        let totals = self.hardware.shared_state.counts.clone();
        let Readings { sms, tlbs, slices, channels, .. } = self.hardware.readings();
        for (counts, first) in self.hardware.shared_state.counts.iter_mut().zip(self.first_runs) {
            if let Some(first) = first {
                *counts = *first;
            }
        }
        let apps: Vec<_> = self.apps.iter().map(|app| app.outcome).collect();
        Ok(Outcome {
            cycles: apps.iter().map(|app| app.end).max().unwrap_or(0),
            totals,
            cta_cycles,
            apps,
            moved,
            residency: self.residency.map(ResidencyRecorder::into_residency),
            timeline: self.timeline.into_samples(),
            tlbs,
            sms,
            slices,
            channels,
            profiles: self.hardware.shared_state.images(),
            kernels: self.hardware.shared_state.counts,
            spans: self.hardware.shared_state.spans.unwrap_or_default(),
            hot: self.hardware.shared_state.hot.map_or_else(Vec::new, |hot| hot.into_launches()),
            passed: self.hardware.shared_state.memory_system.passed,
        })
    }

    /// What an application's changes have cost so far.
    fn moved(&self, app: usize) -> AppMoved {
        let memory = self.hardware.shared_state.memory_of(app);
        AppMoved {
            pages: memory.pages_moved,
            moving_cycles: memory.moving_cycles,
            vacating_cycles: self.apps[app].vacating_cycles(self.now()),
        }
    }
}
