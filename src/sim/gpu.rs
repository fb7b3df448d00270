//! The whole machine: wiring and the event loop. Who rules it is not known here.

use std::collections::VecDeque;

use crate::config::Machine;
use gpumodel_core::contract::{Plan, View, Wake};
use gpumodel_core::units::{AppId, Cycle};

use super::chip::Chip;
use super::dispatch::Dispatcher;
use super::error::MachineError;
use super::event::Event;
use super::feed::{Feed, Stream};
use super::gauge::Gauge;
use super::grid::Grid;
use super::load::{End, Running};
use super::outcome::Outcome;
use super::packet::Origin;
use super::profile::ProfileImage;
use super::reallocation::Reallocation;
use super::residency::Recorder;
use super::rule::Rule;
use super::ruling::Shift;
use super::setup::{self, Setup};
use super::sm::{Departure, Sm};
use super::timeline::{Timeline, Totals};
use super::translation::{Mmu, Request};

/// Cycles without an issued instruction after which a run counts as stuck.
const PATIENCE: Cycle = 1 << 26;

/// Events between two looks at whether instructions still issue.
const LOOK_EVERY: u64 = 1 << 20;

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
    pub(super) machine: &'a Machine,
    pub(super) feed: &'a dyn Feed,
    pub(super) sms: Vec<Sm>,
    pub(super) chip: Chip,
    pub(super) dispatcher: Dispatcher,
    pub(super) apps: Vec<Running>,
    /// Applications whose outcome does not stand yet.
    pub(super) open: usize,
    pub(super) end: End,
    pub(super) over: bool,
    /// Who gets no share while others begin anew.
    pub(super) starved: Option<AppId>,
    begun: bool,
    pub(super) rule: Option<Rule>,
    /// A plan that has not taken effect.
    pub(super) coming: Option<Plan>,
    /// Number of the last plan: alarms and looks of those before are void, as the
    /// scheme has answered.
    pub(super) plans: u32,
    /// Number of the plan in force: its turns go on until the next takes effect.
    pub(super) in_force: u32,
    /// What the scheme is still to be told.
    pub(super) wakes: VecDeque<Wake>,
    /// By application: since when it holds more than its share somewhere.
    pub(super) vacating: Vec<Option<Cycle>>,
    pub(super) shift: Option<Shift>,
    /// SMs come to rest before channels change hands.
    pub(super) reallocation: Option<Reallocation>,
    /// Whose each memory channel was under the plan in force; empty before the first.
    pub(super) owners: Vec<Option<AppId>>,
    /// A time slice has begun and is not over.
    pub(super) in_slice: bool,
    pub(super) gauge: Gauge,
    timeline: Timeline,
    pub(super) recorder: Option<Recorder>,
    pub(super) streams: Vec<Stream>,
    pub(super) departed: Vec<Departure>,
    /// Why a block could not be opened for a worker.
    pub(super) failed: Option<MachineError>,
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
        let chip = setup::chip(machine, feed, (count, &app_of), (standard, mapping), part.as_ref());
        Ok(Self {
            machine,
            feed,
            sms: (0..machine.dispatch.sms).map(|id| Sm::new(id, machine)).collect(),
            chip,
            gauge: Gauge::new(count, sms, grids.len()),
            dispatcher: Dispatcher::new(machine, grids, count, part.map_or(1, |part| part.pace)),
            open: apps.iter().filter(|load| !load.absent).count(),
            apps: apps.into_iter().map(|load| Running::new(load, machine)).collect(),
            end,
            over: false,
            starved: None,
            begun: false,
            rule: None,
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
        self.chip.take_in(images);
        self
    }

    /// Runs to the end under one plan; `watch` is told now and then how many warp
    /// instructions have issued since it was told last.
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
            let Some(event) = self.chip.queue.next() else { return Err(self.stuck()) };
            if self.chip.queue.now() >= self.timeline.due() {
                self.note_activity();
            }
            self.handle(event)?;
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            self.events += 1;
            if self.events.is_multiple_of(LOOK_EVERY) {
                watch(self.look_for_progress()?);
            }
        }
    }

    /// The present cycle.
    pub fn now(&self) -> Cycle {
        self.chip.queue.now()
    }

    fn handle(&mut self, event: Event) -> Result<(), MachineError> {
        match event {
            Event::Scheduler { sm, .. }
            | Event::Wake { sm, .. }
            | Event::LoadStore { sm }
            | Event::Fetch { sm } => self.handle_sm(usize::from(sm), event),
            Event::Reply { packet } => self.handle_reply(packet),
            Event::Arrive { .. }
            | Event::ToChannel { .. }
            | Event::Channel { .. }
            | Event::Slice { .. }
            | Event::PageCopy { .. }
            | Event::Fill { .. } => self.handle_memory(event),
            Event::LookUp { .. }
            | Event::Walk { .. }
            | Event::PageMove { .. }
            | Event::PageCopied { .. } => self.handle_translation(event),
            Event::Dispatch { line } => self.hand_out(line)?,
            Event::Launch { kernel } => self.launch(kernel),
            Event::Begin { kernel } => self.begin(kernel),
            Event::Instance { kernel } => self.staff_anew(kernel),
            Event::Arrival { .. }
            | Event::Effect { .. }
            | Event::Alarm { .. }
            | Event::Look { .. }
            | Event::Turn { .. }
            | Event::Gauge
            | Event::Horizon => self.handle_ruling(event),
        }
        Ok(())
    }

    #[inline]
    fn handle_sm(&mut self, sm: usize, event: Event) {
        let (state, chip) = (&mut self.sms[sm], &mut self.chip);
        match event {
            Event::Scheduler { scheduler, .. } => state.on_scheduler(scheduler, chip),
            Event::Wake { warp, .. } => state.on_wake(warp, chip),
            Event::LoadStore { .. } => state.on_load_store(chip),
            _ => state.on_fetch(chip),
        }
        self.collect_departed(sm);
    }

    #[inline]
    fn handle_reply(&mut self, packet: u32) {
        let chip = &mut self.chip;
        let (packet, done) = chip.fabric.on_reply(packet, chip.queue.now());
        match packet.origin {
            Origin::Sm => {}
            Origin::Walk => return chip.on_walk_read(packet.operation, done),
            Origin::Copy => return chip.on_copy(&packet),
        }
        chip.check_answer(&packet);
        self.sms[usize::from(packet.sm)].on_reply(&packet, done, chip);
        self.collect_departed(usize::from(packet.sm));
        if self.reallocation.is_some() {
            self.note_quiet(usize::from(packet.sm));
        }
    }

    fn hand_out(&mut self, line: u16) -> Result<(), MachineError> {
        let now = self.chip.queue.now();
        if let Some(recorder) = &mut self.recorder {
            recorder.note(now, &self.dispatcher.held);
        }
        let Some(rule) = &self.rule else { return Ok(()) };
        let (sms, streams) = (&mut self.sms, &mut self.streams);
        self.dispatcher.on_dispatch(line, self.feed, rule, sms, streams, &mut self.chip)?;
        // A CTA without instructions retires as it comes.
        (0..self.sms.len()).for_each(|sm| self.collect_departed(sm));
        Ok(())
    }

    fn handle_memory(&mut self, event: Event) {
        let Chip { queue, counts, fabric, .. } = &mut self.chip;
        match event {
            Event::Arrive { packet } => fabric.on_arrive(packet, queue, counts),
            Event::ToChannel { transfer } => {
                let channel = fabric.on_to_channel(transfer, queue, counts);
                fabric.on_room(channel, queue, counts);
            }
            Event::Channel { channel } => {
                fabric.on_channel(channel, queue, counts);
                fabric.on_room(u32::from(channel), queue, counts);
            }
            Event::Fill { transfer } => fabric.on_fill(transfer, queue, counts),
            Event::Slice { slice } => fabric.on_slice(slice, queue, counts),
            Event::PageCopy { stack } => fabric.on_page_copy(stack, queue, counts),
            _ => {}
        }
        fabric.take_woken(&mut self.woken);
        let woken = std::mem::take(&mut self.woken);
        for &sm in &woken {
            self.sms[usize::from(sm)].retry(&mut self.chip);
            self.collect_departed(usize::from(sm));
        }
        self.woken = woken;
        self.woken.clear();
        self.note_written();
    }

    /// Kept out of [`Gpu::handle`], which most machines run without it.
    #[inline(never)]
    fn handle_translation(&mut self, event: Event) {
        let mut pages = std::mem::take(&mut self.pages);
        self.chip.on_translation(event, &mut pages);
        for request in pages.drain(..) {
            self.sms[usize::from(request.sm)].on_page(request.page, &mut self.chip);
            self.collect_departed(usize::from(request.sm));
        }
        self.pages = pages;
    }

    fn note_activity(&mut self) {
        let mut totals = Totals { resident_ctas: self.resident_ctas(), ..Totals::default() };
        for counts in &self.chip.counts {
            totals.warp_instructions += counts.warp_instructions;
            totals.dram_sectors += counts.dram_reads + counts.dram_writes;
        }
        self.timeline.note(self.chip.queue.now(), totals);
    }

    fn resident_ctas(&self) -> u64 {
        self.dispatcher.grids.iter().map(Grid::resident).sum()
    }

    /// Warp instructions since the last look; an error when there have been none
    /// for too long.
    fn look_for_progress(&mut self) -> Result<u64, MachineError> {
        let issued = self.chip.counts.iter().map(|c| c.warp_instructions).sum();
        let now = self.chip.queue.now();
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
        lines.push(self.chip.fabric.describe());
        lines.extend(self.chip.mmu.as_ref().map(Mmu::describe));
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
        let now = self.chip.queue.now();
        if let Some(recorder) = &mut self.recorder {
            recorder.note(now, &self.dispatcher.held);
        }
        let moved = (0..self.apps.len()).map(|app| self.moved(app)).collect();
        let totals = self.chip.counts.clone();
        for (counts, first) in self.chip.counts.iter_mut().zip(self.gauge.first_runs) {
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
            slices: self.chip.fabric.slice_counts(),
            channels: self.chip.fabric.channel_counts(),
            profiles: self.chip.images(),
            kernels: self.chip.counts,
            spans: self.chip.spans.unwrap_or_default(),
            passed: self.chip.fabric.passed,
        })
    }

    /// Each CTA has been started and retired once, is under way, or was dropped.
    fn check_ctas(&self) -> Result<(), MachineError> {
        let grids = self.dispatcher.grids.iter().enumerate();
        for (launch, grid) in grids {
            let whole = grid.started == grid.ctas || self.chip.counts[launch].end == 0;
            if !grid.adds_up() || !(whole || grid.lost > 0 || grid.left() > 0) {
                let (ctas, started, retired) = (grid.ctas, grid.started, grid.retired);
                return Err(MachineError::Lost { launch, ctas, started, retired, lost: grid.lost });
            }
        }
        Ok(())
    }
}
