//! The whole machine: wiring and the event loop. Who rules it is not known here.

use crate::epoch::Plan;
use crate::spec::Machine;
use crate::units::{Cycle, KernelId, to_u16, to_usize};

use super::chip::Chip;
use super::dispatch::Dispatcher;
use super::error::MachineError;
use super::event::Event;
use super::fabric::Fabric;
use super::feed::Feed;
use super::launches::{Command, Launches};
use super::outcome::Outcome;
use super::profile::ProfileImage;
use super::setup::{self, Setup};
use super::sm::Sm;
use super::space;
use super::timeline::{Timeline, Totals};
use super::translation::{Mmu, Request};

/// Cycles without an issued instruction after which a run counts as stuck.
const PATIENCE: Cycle = 1 << 26;

/// Events between two looks at whether instructions still issue.
const LOOK_EVERY: u64 = 1 << 20;

/// One run of one machine.
#[derive(Debug)]
pub struct Gpu<'a, F: Feed> {
    machine: &'a Machine,
    feed: &'a F,
    sms: Vec<Sm<F::Warp>>,
    chip: Chip,
    dispatcher: Dispatcher,
    launches: Vec<Launches>,
    /// Applications that have not finished.
    running: usize,
    app_ends: Vec<Cycle>,
    timeline: Timeline,
    streams: Vec<F::Warp>,
    retired: Vec<u32>,
    /// SMs whose ports may send again.
    woken: Vec<u16>,
    /// Pages that have just become known, with the SMs that asked.
    pages: Vec<Request>,
    last_progress: (u64, Cycle),
}

impl<'a, F: Feed> Gpu<'a, F> {
    /// An idle machine with its applications at their first commands.
    ///
    /// # Errors
    /// [`MachineError::CtaTooLarge`] when a launch can never start.
    pub fn new(setup: Setup<'a>, feed: &'a F) -> Result<Self, MachineError> {
        let machine = setup.machine;
        let app_of = setup::app_of_kernels(&setup.apps);
        let grids = setup::grids(machine, feed, &app_of)?;
        let mut fabric = Fabric::new(machine, setup.standard, setup.mapping);
        let pace = setup.part.as_ref().map_or(1, |part| part.pace);
        let part = setup.part.is_some();
        fabric.elsewhere = setup.part.map(|part| part.elsewhere).filter(|set| !set.is_empty());
        let mut chip = setup::chip(machine, feed, &app_of, fabric);
        chip.spans = part.then(Vec::new);
        let serial = machine.quirks.serial_kernels;
        Ok(Self {
            machine,
            feed,
            sms: (0..machine.dispatch.sms).map(|id| Sm::new(id, machine)).collect(),
            chip,
            dispatcher: Dispatcher::new(machine, grids, pace),
            running: setup.apps.len(),
            app_ends: vec![0; setup.apps.len()],
            launches: setup.apps.into_iter().map(|list| Launches::new(list, serial)).collect(),
            timeline: Timeline::new(),
            streams: Vec::new(),
            retired: Vec::new(),
            woken: Vec::new(),
            pages: Vec::new(),
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

    /// Runs every application once to its end under one plan; `watch` is told now
    /// and then how many warp instructions have issued since it was told last.
    ///
    /// # Errors
    /// When the source fails, the plan asks for what the machine lacks, or
    /// nothing moves any more.
    pub fn run(mut self, plan: &Plan, watch: &mut dyn FnMut(u64)) -> Result<Outcome, MachineError> {
        setup::refuse_unknown_mechanisms(plan)?;
        for app in 0..self.launches.len() {
            self.next_commands(app);
        }
        let mut events = 0_u64;
        while let Some(event) = self.chip.queue.next() {
            if self.chip.queue.now() >= self.timeline.due() {
                self.note_activity();
            }
            self.handle(event, plan)?;
            events += 1;
            if events.is_multiple_of(LOOK_EVERY) {
                watch(self.look_for_progress()?);
            }
            if self.running == 0 {
                break;
            }
        }
        if self.running > 0 {
            return Err(self.stuck());
        }
        Ok(self.finish())
    }

    fn handle(&mut self, event: Event, plan: &Plan) -> Result<(), MachineError> {
        let chip = &mut self.chip;
        match event {
            Event::Scheduler { sm, scheduler } => {
                self.sms[usize::from(sm)].on_scheduler(scheduler, chip)
            }
            Event::Wake { sm, warp } => self.sms[usize::from(sm)].on_wake(warp, chip),
            Event::LoadStore { sm } => self.sms[usize::from(sm)].on_load_store(chip),
            Event::Fetch { sm } => self.sms[usize::from(sm)].on_fetch(chip),
            Event::Reply { packet } => {
                let (packet, done) = chip.fabric.on_reply(packet, chip.queue.now());
                if packet.walks {
                    chip.on_walk_read(packet.operation, done);
                    return Ok(());
                }
                self.sms[usize::from(packet.sm)].on_reply(&packet, done, chip);
            }
            Event::Arrive { .. }
            | Event::ToChannel { .. }
            | Event::Channel { .. }
            | Event::Slice { .. }
            | Event::Fill { .. } => {
                self.handle_memory(event);
            }
            Event::LookUp { .. } | Event::Walk { .. } => self.handle_translation(event),
            Event::Dispatch => {
                let (sms, streams) = (&mut self.sms, &mut self.streams);
                self.dispatcher.on_dispatch(self.feed, plan, sms, streams, chip)?;
                // A CTA without instructions retires as it comes.
                (0..self.sms.len()).for_each(|sm| self.collect_retired(sm));
            }
            Event::Launch { kernel } => self.launch(kernel),
            Event::Begin { kernel } => self.begin(kernel),
        }
        if let Event::Scheduler { sm, .. }
        | Event::Wake { sm, .. }
        | Event::LoadStore { sm }
        | Event::Fetch { sm } = event
        {
            self.collect_retired(usize::from(sm));
        }
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
            _ => {}
        }
        fabric.take_woken(&mut self.woken);
        for sm in self.woken.drain(..) {
            self.sms[usize::from(sm)].retry(&mut self.chip);
        }
    }

    /// Kept out of [`Gpu::handle`], which most machines run without it.
    #[inline(never)]
    fn handle_translation(&mut self, event: Event) {
        let mut pages = std::mem::take(&mut self.pages);
        self.chip.on_translation(event, &mut pages);
        for request in pages.drain(..) {
            self.sms[usize::from(request.sm)].on_page(request.page, &mut self.chip);
        }
        self.pages = pages;
    }

    /// Begins what an application's list allows now.
    fn next_commands(&mut self, app: usize) {
        let now = self.chip.queue.now();
        while let Some(command) = self.launches[app].next() {
            match command {
                Command::Copy { destination, bytes } => {
                    let first = destination ^ space::tag(to_u16(app));
                    if let Some(mmu) = &mut self.chip.mmu {
                        mmu.copy_in(first, bytes);
                    }
                    if self.machine.dispatch.memcpy_fills_l2 {
                        self.chip.fabric.copy_in(first, bytes);
                    }
                }
                Command::Launch { kernel, .. } => {
                    let gap = if now == 0 { 0 } else { self.machine.dispatch.kernel_retire_cycles };
                    self.chip.queue.schedule(now + gap, Event::Launch { kernel: kernel.0 });
                }
            }
        }
        if self.launches[app].is_done() {
            self.app_ends[app] = now;
            self.running -= 1;
        }
    }

    fn launch(&mut self, kernel: u32) {
        let now = self.chip.queue.now();
        let begin = now + self.machine.dispatch.kernel_launch_cycles;
        let counts = &mut self.chip.counts[to_usize(kernel)];
        counts.start = now;
        counts.first_cta = begin;
        self.chip.queue.schedule(begin, Event::Begin { kernel });
    }

    fn begin(&mut self, kernel: u32) {
        let now = self.chip.queue.now();
        if self.dispatcher.grids[to_usize(kernel)].ctas == 0 {
            return self.end(kernel);
        }
        self.dispatcher.begin(kernel);
        self.dispatcher.schedule(now, &mut self.chip);
    }

    fn collect_retired(&mut self, sm: usize) {
        if !self.sms[sm].has_retired() {
            return;
        }
        self.sms[sm].take_retired(&mut self.retired);
        let now = self.chip.queue.now();
        for kernel in std::mem::take(&mut self.retired) {
            let grid = &mut self.dispatcher.grids[to_usize(kernel)];
            grid.left(sm, now);
            if grid.retired == grid.ctas {
                self.end(kernel);
            }
        }
        self.dispatcher.schedule(now + 1, &mut self.chip);
    }

    fn end(&mut self, kernel: u32) {
        for sm in &mut self.sms {
            sm.close_books(&mut self.chip);
        }
        let counts = &mut self.chip.counts[to_usize(kernel)];
        counts.end = self.chip.queue.now();
        let schedulers =
            f64::from(u32::from(self.machine.dispatch.sms) * self.machine.sm.schedulers);
        #[allow(clippy::cast_precision_loss, reason = "spans are below 2^53")]
        let span = (counts.end - counts.first_cta) as f64;
        counts.slot_cycles = span * schedulers;
        let grid = &self.dispatcher.grids[to_usize(kernel)];
        #[allow(clippy::cast_precision_loss, reason = "spans are below 2^53")]
        let held = grid.held as f64;
        counts.held_slots = held * f64::from(self.machine.sm.schedulers);
        let app = grid.app.index();
        self.launches[app].ended(KernelId(kernel));
        self.next_commands(app);
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
        self.dispatcher.grids.iter().map(|grid| grid.started - grid.retired).sum()
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

    fn finish(mut self) -> Outcome {
        self.note_activity();
        Outcome {
            cycles: self.app_ends.iter().copied().max().unwrap_or(0),
            app_ends: self.app_ends,
            timeline: self.timeline.into_samples(),
            tlbs: self.sms.iter().filter_map(Sm::tlb_counts).collect(),
            sms: self.sms.iter().map(Sm::counts).collect(),
            slices: self.chip.fabric.slice_counts(),
            channels: self.chip.fabric.channel_counts(),
            profiles: self.chip.images(),
            kernels: self.chip.counts,
            spans: self.chip.spans.unwrap_or_default(),
            passed: self.chip.fabric.passed,
        }
    }
}
