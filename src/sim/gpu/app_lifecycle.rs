//! The lifecycle of applications: they arrive, launch, end, restart, or are stopped.

use gpumodel_core::contract::{Wake, WakeOn};
use gpumodel_core::units::{AppId, Cycle, KernelId, to_u16, to_u32, to_usize};

use crate::gpu::Gpu;
use crate::gpu::app::{AppOutcome, Command, End, Load, Running, State};
use crate::gpu::event_queue::Event;
use crate::gpu::grid::Grid;
use crate::gpu::hardware::Hardware;
use crate::gpu::link::CopyInFlight;
use crate::gpu::plan_control::MIN_CHECK_CYCLES;
use crate::sm::{Departure, Leave};

/// Runs of one application after which another that has not begun counts as starved.
const RUNS_OF_OTHERS: u64 = 64;

/// When the run ends, and whether it has.
#[derive(Debug)]
pub(crate) struct RunEnd {
    end: End,
    /// The first applications have been let in.
    pub(crate) begun: bool,
    /// Applications whose outcome does not stand yet.
    open: usize,
    pub(crate) over: bool,
    /// An application without a share while others restart.
    pub(crate) starved: Option<AppId>,
}

impl RunEnd {
    /// The end of a run of `apps`, as `end` says.
    pub(crate) fn new(end: End, apps: &[Load]) -> Self {
        let open = apps.iter().filter(|load| !load.absent).count();
        Self { end, begun: false, open, over: false, starved: None }
    }

    /// The outcome of one more application stands.
    fn note_reported(&mut self, finished: bool) {
        self.open -= 1;
        self.over |= self.open == 0 || (finished && self.end.first);
    }

    /// Ends the run when application `app` restarts again and again while another active one
    /// never gets to its first instruction; not where they have it in `turns`.
    fn check_for_starved(
        &mut self,
        app: usize,
        apps: &mut [Running],
        turns: bool,
        hardware: &mut Hardware<'_>,
    ) {
        let runs = apps[app].outcome.runs;
        if apps.iter().any(|other| !other.reported && other.launches.is_copying()) {
            apps[app].runs_beside_copies = runs;
        }
        let runs = runs - apps[app].runs_beside_copies;
        if runs < RUNS_OF_OTHERS || self.end.at.is_some() || turns {
            return;
        }
        hardware.account_stalls();
        let mut others = (0..to_u16(apps.len())).map(AppId).zip(apps);
        let starved = others.find(|(other, app)| {
            let waits = app.state == State::Active && !app.reported;
            waits && hardware.progress(*other) <= 0.0
        });
        self.starved = starved.map(|(other, _)| other);
        self.over |= self.starved.is_some();
    }
}

impl Gpu<'_> {
    /// Lets the applications arrive, and sets when the run ends.
    pub(super) fn begin_all(&mut self) {
        for app in 0..self.apps.len() {
            match self.apps[app].load.arrival {
                _ if self.apps[app].load.absent => {}
                0 => self.arrive(app),
                at => self.schedule(at, Event::Arrival { app: to_u16(app) }),
            }
        }
        if let Some(at) = self.run_end.end.at {
            self.schedule(at, Event::End);
        }
        if self.apps.iter().any(|app| app.load.target.is_some()) {
            self.schedule_target_check();
        }
    }

    fn schedule(&mut self, at: Cycle, event: Event) {
        self.hardware.shared_state.queue.schedule(at, event);
    }

    /// An application arrives, unless it has been stopped before.
    pub(super) fn arrive(&mut self, app: usize) {
        if self.apps[app].state == State::Finished {
            return;
        }
        self.apps[app].state = State::Active;
        self.apps[app].free_since = self.now();
        self.pass_turn();
        if self.now() > 0 {
            self.plan_control.wakes.push_back(Wake::Arrival(AppId(to_u16(app))));
        }
        self.next_commands(app);
    }

    /// Begins what an application's list allows now: nothing while it waits for a
    /// share of the machine. With nothing left it has ended, whatever it waits for.
    pub(super) fn next_commands(&mut self, app: usize) {
        let id = AppId(to_u16(app));
        let done = self.apps[app].launches.is_done();
        if self.plan_control.waits(id) && !done || self.apps[app].state != State::Active {
            return;
        }
        let restarts = self.apps[app].begun;
        while let Some(command) = self.apps[app].launches.next() {
            match command {
                Command::Copy(copy) => {
                    self.hardware.begin_copy(app, copy, &self.apps[app].launches);
                }
                Command::Launch { kernel, .. } => {
                    self.apps[app].begun = true;
                    let at = self.launch_cycle(app, kernel.0, !restarts);
                    self.schedule(at, Event::Launch { kernel: kernel.0 });
                }
            }
        }
        if self.apps[app].launches.is_done() {
            self.app_done(app);
        }
    }

    /// A copy has ended: what waited for it goes on.
    pub(super) fn copy_ended(&mut self, copy: u32) {
        let now = self.now();
        let Some(link) = &mut self.hardware.shared_state.link else { return };
        let CopyInFlight { app, number, copy } = link.end(copy, now);
        self.hardware.copy_in(app, copy);
        if self.apps[app].state == State::Active {
            self.apps[app].launches.copied(number);
            self.apps[app].after_copy = true;
            self.next_commands(app);
            self.apps[app].after_copy = false;
        }
    }

    /// When a launch that may begin now does, the first of its application or a later one.
    fn launch_cycle(&self, app: usize, kernel: u32, first: bool) -> Cycle {
        // Behind a copy no kernel retires.
        let gap = if first || self.apps[app].after_copy {
            0
        } else {
            self.hardware.machine.dispatch.kernel_retire_cycles
        };
        let called = self.apps[app].free_since + self.grid(kernel).call_cycles(first);
        (self.now() + gap).max(called)
    }

    fn grid(&self, kernel: u32) -> &Grid {
        &self.hardware.dispatcher.grids[to_usize(kernel)]
    }

    /// A launch may start CTAs.
    pub(super) fn begin(&mut self, kernel: u32) {
        let now = self.now();
        let app = self.grid(kernel).app;
        if self.apps[app.index()].state == State::Finished {
            return;
        }
        if self.grid(kernel).ctas == 0 {
            return self.end(kernel);
        }
        let Hardware { dispatcher, shared_state, .. } = &mut self.hardware;
        dispatcher.begin(kernel);
        let grid = &mut dispatcher.grids[to_usize(kernel)];
        grid.launch_workers(&self.plan_control, shared_state.mmu.as_mut());
        dispatcher.ask(app, now, shared_state);
        self.apps[app.index()].begun_launches.push(kernel);
        self.plan_control.wake_on(&WakeOn::KernelBegin, Wake::KernelBegin(app));
    }

    /// Takes note of CTAs that have left an SM.
    #[inline]
    pub(super) fn collect_departed(&mut self, sm: usize) {
        if self.hardware.sms[sm].has_departed() {
            self.note_departed(sm);
        }
    }

    /// The same for all SMs.
    pub(super) fn collect_all_departed(&mut self) {
        (0..self.hardware.sms.len()).for_each(|sm| self.collect_departed(sm));
    }

    fn note_departed(&mut self, sm: usize) {
        let now = self.now();
        self.note_residency();
        let mut departed = std::mem::take(&mut self.departed);
        self.hardware.sms[sm].take_departed(&mut departed);
        for departure in departed.drain(..) {
            let kernel = departure.kernel();
            if let Departure::Stored { .. } = departure {
                self.end_if_over(kernel);
                continue;
            }
            self.hardware.dispatcher.ask_after_departure(kernel, sm, now + 1);
            if let Departure::Asks { slot, .. } = departure {
                self.next_task(kernel, (sm, slot));
                continue;
            }
            self.hardware.dispatcher.departed(sm, departure, &self.hardware.shared_state);
            if !self.end_if_over(kernel) {
                let Hardware { dispatcher, shared_state, .. } = &mut self.hardware;
                let grid = &mut dispatcher.grids[to_usize(kernel)];
                grid.note_gone(&self.plan_control, &mut shared_state.queue);
            }
        }
        self.departed = departed;
        self.plan_control.note_drained(&mut self.apps, &self.hardware);
        self.hardware.dispatcher.schedule(&mut self.hardware.shared_state);
    }

    /// Ends a launch whose CTAs have all ended once their stores are done: false where there is
    /// more to come of it.
    fn end_if_over(&mut self, kernel: u32) -> bool {
        let Hardware { dispatcher, shared_state, .. } = &self.hardware;
        let grid = &dispatcher.grids[to_usize(kernel)];
        if !grid.is_over() || self.apps[grid.app.index()].state == State::Finished {
            return false;
        }
        if shared_state.stores_left[to_usize(kernel)] == 0 {
            self.end(kernel);
        }
        true
    }

    /// A worker of a launch has done its task.
    fn next_task(&mut self, kernel: u32, place: (usize, usize)) {
        let Some(active_plan) = self.plan_control.active() else { return };
        let (dispatcher, mut machine) = self.hardware.hand_out(active_plan);
        let grid = &mut dispatcher.grids[to_usize(kernel)];
        let app = grid.app;
        match grid.next_task(kernel, place, &mut machine) {
            Ok(true) => {
                self.plan_control.wake_on(&WakeOn::LastTaskStarted, Wake::LastTaskStarted(app));
            }
            Ok(false) => {}
            Err(error) => self.failed = Some(error),
        }
    }

    /// Whether the application of a launch that has ended waits for a plan before it launches
    /// again: the scheme answers to the launch's end.
    fn asks_first(&self, kernel: u32) -> bool {
        let asked = self.plan_control.wakes_on(&WakeOn::KernelEnd);
        asked && self.grid(kernel).worker_pool.is_some()
    }

    /// A launch has ended.
    fn end(&mut self, kernel: u32) {
        self.hardware.close_launch(kernel);
        self.hardware.dispatcher.close_workers(kernel);
        let now = self.now();
        let app = self.grid(kernel).app;
        let running = &mut self.apps[app.index()];
        running.begun_launches.retain(|&begun| begun != kernel);
        running.launches.ended(KernelId(kernel));
        running.free_since = now;
        let done = running.launches.is_done();
        self.plan_control.wake_on(&WakeOn::KernelEnd, Wake::KernelEnd(app));
        if done || !self.asks_first(kernel) {
            self.next_commands(app.index());
        }
    }

    /// An application has come to the end of its commands.
    fn app_done(&mut self, app: usize) {
        self.apps[app].outcome.runs += 1;
        self.report(app, true);
        let launches = self.hardware.dispatcher.kernels_of(app);
        if self.run_end.over || !self.apps[app].load.relaunches || launches.is_empty() {
            return self.release(app);
        }
        let turns = self.plan_control.time_slice().is_some();
        self.run_end.check_for_starved(app, &mut self.apps, turns, &mut self.hardware);
        for &kernel in &launches {
            let counts = &self.hardware.shared_state.counts[kernel];
            self.first_runs[kernel].get_or_insert_with(|| Box::new(counts.clone()));
            self.hardware.dispatcher.grids[kernel].rewind();
        }
        self.apps[app].relaunch(self.hardware.machine);
        if !launches.first().is_some_and(|&kernel| self.asks_first(to_u32(kernel))) {
            self.next_commands(app);
        }
    }

    /// Lets an application's outcome stand as it is now.
    fn report(&mut self, app: usize, finished: bool) {
        if std::mem::replace(&mut self.apps[app].reported, true) {
            return;
        }
        self.hardware.account_stalls();
        let (now, elapsed) = (self.now(), self.elapsed());
        let shared_state = &self.hardware.shared_state;
        let link = shared_state.link.as_ref().map(|link| link.used(app, now));
        let running = &mut self.apps[app];
        running.outcome = AppOutcome {
            end: elapsed,
            finished,
            progress: self.hardware.progress(AppId(to_u16(app))),
            memory: shared_state.memory_of(app),
            resting_cycles: self.channels.resting_cycles(app, now),
            vacating_cycles: running.vacating_cycles(now),
            link: link.unwrap_or_default(),
            passed: self.fast_forward.as_ref().map(|state| state.passed(app, elapsed)),
            ..running.outcome
        };
        self.run_end.note_reported(finished);
    }

    /// An application releases its share; the scheme decides for the others.
    fn release(&mut self, app: usize) {
        self.apps[app].state = State::Finished;
        let others = self.apps.iter().enumerate();
        let mut others = others.filter(|(_, app)| app.state != State::Finished);
        let (next, more) = (others.next().map(|(app, _)| AppId(to_u16(app))), others.next());
        if self.run_end.over || next.is_none() {
            return;
        }
        if let Some(last) = next.filter(|_| more.is_none()) {
            self.plan_control.leave_all_to(last);
        }
        let now = self.now();
        let active = self.plan_control.active();
        if let Some((active, sole)) = active.and_then(|active| Some((active, active.sole?))) {
            self.hardware.dispatcher.follow(active, None, now);
            self.next_commands(sole.index());
        }
        self.pass_turn();
        self.hardware.dispatcher.ask(AppId(to_u16(app)), now, &mut self.hardware.shared_state);
        self.plan_control.wakes.push_back(Wake::AppEnd(AppId(to_u16(app))));
    }

    /// Stops an application for good where it is.
    fn halt(&mut self, app: usize) {
        self.report(app, true);
        let id = AppId(to_u16(app));
        self.hardware.dispatcher.cancel(id);
        for kernel in std::mem::take(&mut self.apps[app].begun_launches) {
            self.hardware.close_launch(kernel);
        }
        self.release(app);
        for sm in 0..self.hardware.sms.len() {
            self.hardware.stop_ctas(sm, id, usize::MAX, Leave::Halt);
        }
    }

    /// The run is over whatever is under way.
    pub(super) fn break_off(&mut self) {
        for app in 0..self.apps.len() {
            if self.apps[app].load.absent {
                continue;
            }
            let begun = std::mem::take(&mut self.apps[app].begun_launches);
            begun.into_iter().for_each(|kernel| self.hardware.close_launch(kernel));
            self.report(app, false);
        }
        self.run_end.over = true;
    }

    /// Schedules the next check of targets: not after one can be reached.
    fn schedule_target_check(&mut self) {
        let machine = self.hardware.machine;
        let slots = u32::from(machine.dispatch.sms) * machine.sm.schedulers;
        let peak = f64::from(slots * machine.sm.issue_width.max(1));
        let mut soonest = f64::INFINITY;
        for (app, running) in self.apps.iter().enumerate() {
            if let Some(target) = running.open_target() {
                let left = target - self.hardware.progress(AppId(to_u16(app)));
                soonest = soonest.min(left / peak);
            }
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a cast from a float stays within the range"
        )]
        let soonest = soonest as Cycle;
        let at = self.now() + soonest.clamp(MIN_CHECK_CYCLES, 1 << 40);
        self.schedule(at, Event::TargetCheck);
    }

    /// Stops applications that have reached their targets.
    pub(super) fn on_target_check(&mut self) {
        self.hardware.account_stalls();
        for app in 0..self.apps.len() {
            let reached = |target| self.hardware.progress(AppId(to_u16(app))) >= target;
            if self.apps[app].open_target().is_some_and(reached) {
                self.halt(app);
            }
        }
        if self.apps.iter().any(|app| app.open_target().is_some()) {
            self.schedule_target_check();
        }
    }
}
