//! The whole machine: wiring and the event loop. Who rules it is not known here.

pub(crate) mod active_plan;
pub(crate) mod app_lifecycle;
pub(crate) mod cta_span;
pub(crate) mod decision_counters;
pub(crate) mod dispatch;
pub(crate) mod dispatch_groups;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod event_queue;
pub(crate) mod feed;
pub(crate) mod grid;
pub(crate) mod launches;
pub(crate) mod load;
pub(crate) mod outcome;
pub(crate) mod plan_control;
pub(crate) mod reallocation;
pub(crate) mod residency;
pub(crate) mod setup;
pub(crate) mod shared_state;
pub(crate) mod timeline;
pub(crate) mod worker;
pub(crate) mod worker_pool;
pub(crate) mod worker_tasks;

use std::collections::VecDeque;

use crate::config::Machine;
use gpumodel_core::contract::{Plan, View, Wake};
use gpumodel_core::units::{AppId, Cycle};

use crate::counters::KernelCounts;
use crate::gpu::active_plan::ActivePlan;
use crate::gpu::decision_counters::DecisionCounters;
use crate::gpu::dispatch::Dispatcher;
use crate::gpu::error::MachineError;
use crate::gpu::event::Event;
use crate::gpu::event_queue::EventQueue;
use crate::gpu::feed::{Feed, Stream};
use crate::gpu::grid::Grid;
use crate::gpu::load::{End, Running};
use crate::gpu::outcome::Outcome;
use crate::gpu::plan_control::IpcShift;
use crate::gpu::reallocation::Reallocation;
use crate::gpu::residency::Recorder;
use crate::gpu::setup::Setup;
use crate::gpu::shared_state::SharedState;
use crate::gpu::timeline::{Timeline, Totals};
use crate::interval::ProfileImage;
use crate::memory::MemorySystem;
use crate::memory::packet::Origin;
use crate::mmu::{Around, Mmu, Request};
use crate::sm::{Departure, Sm};

/// Cycles without an issued instruction after which a run counts as stuck.
const PATIENCE: Cycle = 1 << 26;

/// Events between two looks at whether instructions still issue.
const PROGRESS_CHECK_EVERY: u64 = 1 << 20;

/// Where [`Gpu::advance`] stops.
#[derive(Clone, Debug, PartialEq)]
pub enum Pause {
    /// The plan asked to be woken, or something happened that always asks: answer
    /// with [`Gpu::follow`], or go on under the plan in force.
    Decide(Box<View>),
    /// The run is over.
    Over,
}

/// One run of one machine.
#[derive(Debug)]
pub struct Gpu<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) feed: &'a dyn Feed,
    pub(crate) sms: Vec<Sm>,
    pub(crate) shared_state: SharedState,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) apps: Vec<Running>,
    /// Applications whose outcome does not stand yet.
    pub(crate) open: usize,
    pub(crate) end: End,
    pub(crate) over: bool,
    /// An application without a share while others restart.
    pub(crate) starved: Option<AppId>,
    begun: bool,
    pub(crate) active_plan: Option<ActivePlan>,
    /// A plan that has not taken effect.
    pub(crate) coming: Option<Plan>,
    /// Number of the last plan: alarms and looks of those before are void, as the
    /// scheme has answered.
    pub(crate) plans: u32,
    /// Number of the plan in force: its turns go on until the next takes effect.
    pub(crate) in_force: u32,
    /// Wakes that the scheme has not seen yet.
    pub(crate) wakes: VecDeque<Wake>,
    /// By application: since when it holds more than its share somewhere.
    pub(crate) vacating: Vec<Option<Cycle>>,
    pub(crate) shift: Option<IpcShift>,
    /// SMs come to rest before channels change hands.
    pub(crate) reallocation: Option<Reallocation>,
    /// Whose each memory channel was under the plan in force; empty before the first.
    pub(crate) owners: Vec<Option<AppId>>,
    /// A time slice has begun and is not over.
    pub(crate) in_slice: bool,
    pub(crate) decision_counters: DecisionCounters,
    timeline: Timeline,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) streams: Vec<Stream>,
    pub(crate) departed: Vec<Departure>,
    /// Why a block could not be opened for a worker.
    pub(crate) failed: Option<MachineError>,
    /// SMs whose ports may send again.
    woken: Vec<u16>,
    /// Pages that have just become known, with the SMs that asked.
    pages: Vec<Request>,
    events: u64,
    last_progress: (u64, Cycle),
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
        Ok(Self {
            machine,
            feed,
            sms: (0..machine.dispatch.sms).map(|id| Sm::new(id, machine)).collect(),
            shared_state,
            decision_counters: DecisionCounters::new(count, sms, grids.len()),
            dispatcher: Dispatcher::new(machine, grids, count, part.map_or(1, |part| part.pace)),
            open: apps.iter().filter(|load| !load.absent).count(),
            apps: apps.into_iter().map(|load| Running::new(load, machine)).collect(),
            end,
            over: false,
            starved: None,
            begun: false,
            active_plan: None,
            coming: None,
            plans: 0,
            in_force: 0,
            wakes: VecDeque::new(),
            vacating: vec![None; count],
            shift: None,
            reallocation: None,
            owners: Vec::new(),
            in_slice: false,
            timeline: Timeline::new(),
            recorder: (count > 1).then(|| Recorder::new(count, sms)),
            streams: Vec::new(),
            departed: Vec::new(),
            failed: None,
            woken: Vec::new(),
            pages: Vec::new(),
            events: 0,
            last_progress: (0, 0),
        })
    }

    /// With what an earlier run of the same launches on the same machine found of
    /// their code: the result is the same, a little sooner.
    #[must_use]
    pub fn with_profiles(mut self, images: &[ProfileImage]) -> Self {
        self.shared_state.take_in(images);
        self
    }

    /// Runs to the end under one plan; `watch` hears now and then how many warp
    /// instructions have issued since the last call.
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
        if !std::mem::replace(&mut self.begun, true) {
            self.begin_all();
        }
        loop {
            if self.over {
                self.break_off();
                return Ok(Pause::Over);
            }
            if let Some(wake) = self.wakes.pop_front() {
                return Ok(Pause::Decide(Box::new(self.view(wake))));
            }
            let Some(event) = self.shared_state.queue.next() else { return Err(self.stuck()) };
            if self.shared_state.queue.now() >= self.timeline.due() {
                self.note_activity();
            }
            self.handle(event)?;
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            self.events += 1;
            if self.events.is_multiple_of(PROGRESS_CHECK_EVERY) {
                watch(self.check_progress()?);
            }
        }
    }

    /// The present cycle.
    pub fn now(&self) -> Cycle {
        self.shared_state.queue.now()
    }

    #[allow(clippy::too_many_lines, reason = "the one match over all events")]
    fn handle(&mut self, event: Event) -> Result<(), MachineError> {
        match event {
            Event::Scheduler { sm, scheduler } => {
                self.on_sm(sm, |state, shared| state.on_scheduler(scheduler, shared));
            }
            Event::Wake { sm, warp } => self.on_sm(sm, |state, shared| state.on_wake(warp, shared)),
            Event::LoadStore { sm } => self.on_sm(sm, Sm::on_load_store),
            Event::Fetch { sm } => self.on_sm(sm, Sm::on_fetch),
            Event::Reply { packet } => self.handle_reply(packet),
            Event::Arrive { packet } => {
                self.on_memory(|memory, queue, counts| memory.on_arrive(packet, queue, counts));
            }
            Event::ToChannel { transfer } => self.on_memory(|memory, queue, counts| {
                let channel = memory.on_to_channel(transfer, queue, counts);
                memory.on_room(channel, queue, counts);
            }),
            Event::Channel { channel } => self.on_memory(|memory, queue, counts| {
                memory.on_channel(channel, queue, counts);
                memory.on_room(u32::from(channel), queue, counts);
            }),
            Event::Slice { slice } => {
                self.on_memory(|memory, queue, counts| memory.on_slice(slice, queue, counts));
            }
            Event::PageCopy { stack } => {
                self.on_memory(|memory, queue, counts| memory.on_page_copy(stack, queue, counts));
            }
            Event::Fill { transfer } => {
                self.on_memory(|memory, queue, counts| memory.on_fill(transfer, queue, counts));
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
            Event::Launch { kernel } => self.launch(kernel),
            Event::Begin { kernel } => self.begin(kernel),
            Event::Instance { kernel } => self.restart_workers(kernel),
            Event::Arrival { app } => self.on_control(true, |gpu| gpu.arrive(usize::from(app))),
            Event::Effect { plan } => self.on_control(plan == self.plans, Self::take_effect),
            Event::Alarm { plan } => self.on_control(plan == self.plans, Self::on_alarm),
            Event::Wakeup { plan } => self.on_control(plan == self.plans, Self::check_ipc_shift),
            Event::Turn { plan } => self.on_control(plan == self.in_force, Self::on_turn),
            Event::CountersDue => self.on_control(true, Self::on_counters_due),
            Event::Horizon => self.on_control(true, Self::break_off),
        }
        Ok(())
    }

    #[inline]
    fn on_sm(&mut self, sm: u16, act: impl FnOnce(&mut Sm, &mut SharedState)) {
        let sm = usize::from(sm);
        act(&mut self.sms[sm], &mut self.shared_state);
        self.collect_departed(sm);
    }

    #[inline]
    fn handle_reply(&mut self, packet: u32) {
        let shared_state = &mut self.shared_state;
        let (packet, done) = shared_state.memory_system.on_reply(packet, shared_state.queue.now());
        match packet.origin {
            Origin::Sm => {}
            Origin::Walk => return shared_state.on_walk_read(packet.operation, done),
            Origin::Copy => return shared_state.on_copy(&packet),
        }
        shared_state.check_answer(&packet);
        self.sms[usize::from(packet.sm)].on_reply(&packet, done, shared_state);
        self.collect_departed(usize::from(packet.sm));
        if self.reallocation.is_some() {
            self.note_quiet(usize::from(packet.sm));
        }
    }

    fn hand_out(&mut self, group: u16) -> Result<(), MachineError> {
        let now = self.shared_state.queue.now();
        if let Some(recorder) = &mut self.recorder {
            recorder.note(now, &self.dispatcher.held);
        }
        let Some(active_plan) = &self.active_plan else { return Ok(()) };
        let (sms, streams) = (&mut self.sms, &mut self.streams);
        self.dispatcher.on_dispatch(
            group,
            self.feed,
            active_plan,
            sms,
            streams,
            &mut self.shared_state,
        )?;
        // A CTA without instructions retires as it comes.
        (0..self.sms.len()).for_each(|sm| self.collect_departed(sm));
        Ok(())
    }

    /// Lets the memory act; SMs whose ports may send again then do.
    #[inline]
    fn on_memory(
        &mut self,
        act: impl FnOnce(&mut MemorySystem, &mut EventQueue<Event>, &mut [KernelCounts]),
    ) {
        let SharedState { queue, counts, memory_system, .. } = &mut self.shared_state;
        act(memory_system, queue, counts);
        memory_system.take_woken(&mut self.woken);
        let woken = std::mem::take(&mut self.woken);
        for &sm in &woken {
            self.sms[usize::from(sm)].retry(&mut self.shared_state);
            self.collect_departed(usize::from(sm));
        }
        self.woken = woken;
        self.woken.clear();
        self.note_written();
    }

    /// Lets the MMU act, where the machine translates; SMs hear of the pages that are known
    /// then. Kept out of [`Gpu::handle`], which most machines run without it.
    #[inline(never)]
    fn on_translation(&mut self, act: impl FnOnce(&mut Mmu, &mut Around<'_>, &mut Vec<Request>)) {
        let mut pages = std::mem::take(&mut self.pages);
        let SharedState { queue, counts, memory_system, mmu, .. } = &mut self.shared_state;
        if let Some(mmu) = mmu {
            act(mmu, &mut Around { queue, counts, memory_system }, &mut pages);
        }
        for request in pages.drain(..) {
            self.sms[usize::from(request.sm)].on_page(request.page, &mut self.shared_state);
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
        (0..self.sms.len()).for_each(|sm| self.collect_departed(sm));
    }

    fn note_activity(&mut self) {
        let mut totals = Totals { resident_ctas: self.resident_ctas(), ..Totals::default() };
        for counts in &self.shared_state.counts {
            totals.warp_instructions += counts.warp_instructions;
            totals.dram_sectors += counts.dram_reads + counts.dram_writes;
        }
        self.timeline.note(self.shared_state.queue.now(), totals);
    }

    fn resident_ctas(&self) -> u64 {
        self.dispatcher.grids.iter().map(Grid::resident).sum()
    }

    /// Warp instructions since the last look; an error when there have been none
    /// for too long.
    fn check_progress(&mut self) -> Result<u64, MachineError> {
        let issued = self.shared_state.counts.iter().map(|c| c.warp_instructions).sum();
        let now = self.shared_state.queue.now();
        let (before, since) = self.last_progress;
        if issued != before {
            self.last_progress = (issued, now);
        } else if now - since > PATIENCE {
            return Err(self.stuck());
        }
        Ok(issued - before)
    }

    fn stuck(&self) -> MachineError {
        let mut lines: Vec<String> = self.sms.iter().filter_map(Sm::describe).take(8).collect();
        lines.push(self.shared_state.memory_system.describe());
        lines.extend(self.shared_state.mmu.as_ref().map(Mmu::describe));
        MachineError::Stuck { since: self.last_progress.1, dump: lines.join("\n") }
    }

    /// What the run leaves.
    ///
    /// # Errors
    /// [`MachineError::Lost`] when the CTAs of a launch do not add up,
    /// [`MachineError::Starved`] when the run would never have ended.
    pub fn finish(mut self) -> Result<Outcome, MachineError> {
        self.note_activity();
        if let Some(app) = self.starved {
            return Err(MachineError::Starved { app: app.index() });
        }
        self.check_ctas()?;
        let now = self.shared_state.queue.now();
        if let Some(recorder) = &mut self.recorder {
            recorder.note(now, &self.dispatcher.held);
        }
        let moved = (0..self.apps.len()).map(|app| self.moved(app)).collect();
        let totals = self.shared_state.counts.clone();
        for (counts, first) in
            self.shared_state.counts.iter_mut().zip(self.decision_counters.first_runs)
        {
            if let Some(first) = first {
                *counts = *first;
            }
        }
        let apps: Vec<_> = self.apps.iter().map(|app| app.outcome).collect();
        Ok(Outcome {
            cycles: apps.iter().map(|app| app.end).max().unwrap_or(0),
            totals,
            cta_cycles: self.dispatcher.grids.iter().map(|grid| grid.cta_cycles(now)).collect(),
            apps,
            moved,
            residency: self.recorder.map(Recorder::into_residency),
            timeline: self.timeline.into_samples(),
            tlbs: self.sms.iter().filter_map(Sm::tlb_counts).collect(),
            sms: self.sms.iter().map(Sm::counts).collect(),
            slices: self.shared_state.memory_system.slice_counts(),
            channels: self.shared_state.memory_system.channel_counts(),
            profiles: self.shared_state.images(),
            kernels: self.shared_state.counts,
            spans: self.shared_state.spans.unwrap_or_default(),
            passed: self.shared_state.memory_system.passed,
        })
    }

    /// Each CTA has been started and retired once, is under way, or was dropped.
    fn check_ctas(&self) -> Result<(), MachineError> {
        let grids = self.dispatcher.grids.iter().enumerate();
        for (launch, grid) in grids {
            let whole = grid.started == grid.ctas || self.shared_state.counts[launch].end == 0;
            if !grid.adds_up() || !(whole || grid.lost > 0 || grid.left() > 0) {
                let (ctas, started, retired) = (grid.ctas, grid.started, grid.retired);
                return Err(MachineError::Lost { launch, ctas, started, retired, lost: grid.lost });
            }
        }
        Ok(())
    }
}
