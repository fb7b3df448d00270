//! Fast-forward: stretches of a run in which all launches advance steadily are passed over.
//!
//! Windows of cycles are measured until the rate of every launch is steady ([`steady`]). Then so
//! many of its next CTAs are walked through ([`walk`]) as its rate gives in the cycles of the
//! stretch. The machine's clock stands still meanwhile: CTAs on SMs, requests on their way and
//! banks stay as they are, and the run goes on from this state, which is as likely in a steady
//! run as any other. What applications have done relative to each other in a stretch is thus
//! what they did in the last windows. Instructions of a stretch are counted exactly; all other
//! counters grow as in the windows.
//!
//! A stretch ends before anything that is not steady: a launch whose last CTAs are handed out, a
//! plan, an arrival, a target, the end of the run. Runs with time slices, workers, saved CTAs or
//! a link to the host are simulated in full while they have these.

mod readings;
mod walk;

use gpumodel_core::units::{AppId, Cycle, to_u16, to_usize};

use crate::counters::{Cause, KernelCounts, product};
use crate::gpu::app::Running;
use crate::gpu::error::MachineError;
use crate::gpu::event_queue::Event;
use crate::gpu::grid::Grid;
use crate::gpu::hardware::Hardware;
use crate::gpu::plan_control::PlanControl;
use crate::gpu::reallocation::ChannelControl;
use crate::gpu::timeline::ResidencyRecorder;
pub(crate) use readings::Readings;
use readings::{Rate, WINDOWS, Walked, grow_launch, steady};
use walk::{Touches, Walker};

/// Cycles of the shortest window.
const SHORTEST: Cycle = 1024;

/// A window is at least this part of the mean life of a CTA.
const WINDOWS_PER_LIFE: Cycle = 8;

/// The first stretch has this many times the cycles of the windows before it.
const FIRST_REACH: Cycle = 4;

/// No stretch has more.
const LONGEST_REACH: Cycle = 16;

/// A stretch doubles the next one where rates after it differ by no more than this.
const SAME: f64 = 0.02;

/// Student's t for 95 % on both sides, for the standard errors of windows.
const T: f64 = 2.365;

/// Half the 95 % interval of a stretch is this part of it at least: windows do not see all that
/// changes across one. Measured: six solo runs, whole and fast-forwarded, differ by up to 2.6 %
/// of the cycles passed over (DXTC of UGPU), by 1.1 % in the mean; a run whose SMs fall into step
/// at the crossbar over a million warp instructions (`accelsim-qv100`), by 2.6 %.
const UNSEEN: f64 = 0.03;

/// The same of all cycles of a run with stretches: behind one, requests come in another order.
/// Measured: co-runs of which 2 % were passed over differ by up to 0.15 %.
const REORDERED: f64 = 0.002;

/// What was passed over of an application's run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Passed {
    /// Cycles.
    pub cycles: Cycle,
    /// Stretches.
    pub stretches: u32,
    /// Half the 95 % interval of its cycles, from the spread of the windows before each stretch,
    /// the change of its rate across it, 3 % of the cycles passed over, and 0.2 % of all.
    pub interval: f64,
}

/// What has to stay the same while windows are measured.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Era {
    /// The plan in force.
    plan: u32,
    /// The launches that run.
    launches: Vec<u32>,
    /// Applications that have finished.
    finished: usize,
}

/// The windows since the last change.
#[derive(Debug)]
struct Measurement {
    era: Era,
    /// CTAs that each launch must have retired before a window counts.
    due: Vec<u64>,
    /// Cycles of a window.
    length: Cycle,
    /// The first window began.
    since: Option<Cycle>,
    readings: Readings,
    counts: Vec<KernelCounts>,
    /// By launch: instructions at the begin of the present window, and rates of the windows.
    issued: Vec<f64>,
    rates: Vec<Vec<f64>>,
}

/// The last stretch, until it is known how the rates went on.
#[derive(Debug)]
struct Stretch {
    cycles: Cycle,
    rates: Vec<Rate>,
}

/// The state of fast-forward. The counters of the stretches are [`Hardware::passed`].
#[derive(Debug)]
pub(crate) struct FastForward {
    measured: Option<Measurement>,
    last: Option<Stretch>,
    /// The next stretch has at most so many times the cycles of its windows.
    reach: Cycle,
    /// By launch: instructions that walks owe (below 0: have had in advance).
    owed: Vec<f64>,
    touches: Vec<Option<Touches>>,
    walker: Walker,
    stretches: u32,
    cycles: Cycle,
    /// By application: variance of its cycles.
    variance: Vec<f64>,
}

/// The parts of a run that fast-forward needs.
#[derive(Debug)]
pub(crate) struct WindowContext<'c, 'a> {
    pub(crate) hardware: &'c mut Hardware<'a>,
    pub(crate) apps: &'c [Running],
    pub(crate) plan_control: &'c mut PlanControl,
    pub(crate) channels: &'c ChannelControl,
    pub(crate) residency: Option<&'c mut ResidencyRecorder>,
}

impl WindowContext<'_, '_> {
    /// What has to stay the same; `None` where nothing may be passed over.
    fn era(&self) -> Option<Era> {
        let control = &self.plan_control;
        let launches: Vec<u32> =
            self.apps.iter().flat_map(|app| app.begun_launches.iter().copied()).collect();
        let shared = &self.hardware.shared_state;
        let whole = shared.hot.is_none() && shared.spans.is_none() && shared.link.is_none();
        let settled = control.in_force == control.latest && control.time_slice().is_none();
        let rests = self.channels.is_changing();
        let leaves = self.apps.iter().any(|app| app.vacating_since.is_some());
        let plain = |&kernel: &u32| {
            let grid = self.grid(kernel);
            grid.worker_pool.is_none() && grid.saved == 0 && grid.again.is_empty()
        };
        let all = launches.iter().all(plain) && !launches.is_empty();
        let finished = self.apps.iter().filter(|app| app.reported).count();
        let era = Era { plan: control.in_force, launches, finished };
        (whole && settled && !rests && !leaves && all).then_some(era)
    }

    fn grid(&self, kernel: u32) -> &Grid {
        &self.hardware.dispatcher.grids[to_usize(kernel)]
    }

    /// Instructions of a launch by the issue slots that they took.
    fn issued_by(&self, kernel: u32) -> f64 {
        let stalls = &self.hardware.shared_state.counts[to_usize(kernel)].stalls;
        self.hardware.instructions(stalls[Cause::Issued as usize])
    }

    /// Warp instructions of a CTA of a launch, in the mean so far.
    fn per_cta(&self, kernel: u32) -> f64 {
        let counts = &self.hardware.shared_state.counts[to_usize(kernel)];
        to_f64(counts.warp_instructions) / to_f64(counts.ctas_started.max(1))
    }

    /// CTAs of a launch that may be walked through: a generation, at least one, is left to be
    /// simulated.
    fn spare_ctas(&self, kernel: u32) -> u64 {
        let grid = self.grid(kernel);
        (grid.ctas - grid.started).saturating_sub(grid.resident().max(1))
    }

    /// What an application has issued, in simulated cycles and in the stretches so far.
    fn issued_in_all(&self, app: AppId) -> f64 {
        let hardware = &self.hardware;
        let passed = hardware.passed.iter().flat_map(|passed| &passed.stalls[app.index()]);
        let passed = passed.map(|stalls| stalls[Cause::Issued as usize]).sum();
        hardware.simulated(app) + hardware.instructions(passed)
    }

    /// The same of all applications.
    fn all_issued(&self) -> Vec<f64> {
        (0..to_u16(self.apps.len())).map(|app| self.issued_in_all(AppId(app))).collect()
    }

    /// Cycles until something is not steady any more.
    fn longest_stretch(&self, measured: &Measurement, rates: &[Rate]) -> Cycle {
        let hardware = &self.hardware;
        let clock = |event: &Event| event.is_of_the_clock() && *event != Event::TargetCheck;
        let first = hardware.shared_state.queue.first(clock);
        let mut longest = first.map_or(Cycle::MAX, |at| at - hardware.now());
        longest = longest.saturating_sub(measured.length);
        for (&kernel, rate) in measured.era.launches.iter().zip(rates) {
            let instructions = to_f64(self.spare_ctas(kernel)) * self.per_cta(kernel);
            longest = longest.min(floor(instructions / rate.mean));
        }
        for (app, running) in self.apps.iter().enumerate() {
            if let Some(target) = running.open_target() {
                let id = AppId(to_u16(app));
                let of_app = measured.era.launches.iter().zip(rates);
                let owns = |kernel: u32| self.grid(kernel).app == id;
                let rate = of_app.filter(|&(&kernel, _)| owns(kernel)).map(|(_, rate)| rate.mean);
                let simulated = hardware.simulated(id);
                let passed = self.issued_in_all(id) - simulated;
                let left = target - hardware.progress_by(id, simulated) - passed;
                let left = left / rate.sum::<f64>().max(f64::MIN_POSITIVE);
                longest = longest.min(floor(left).saturating_sub(measured.length));
            }
        }
        self.plan_control.whole_ipc_checks(longest)
    }
}

impl Measurement {
    /// Begins to measure once each launch has retired `generations` times the CTAs that it has
    /// on the SMs.
    fn begin(era: Era, generations: u64, context: &WindowContext<'_, '_>) -> Self {
        let grids = || era.launches.iter().map(|&kernel| context.grid(kernel));
        let due = grids().map(|grid| grid.retired + generations * grid.resident()).collect();
        let life = grids().filter_map(Grid::mean_life).max().unwrap_or(0);
        Self {
            due,
            length: (life / WINDOWS_PER_LIFE).max(SHORTEST),
            since: None,
            readings: Readings::default(),
            counts: Vec::new(),
            issued: Vec::new(),
            rates: vec![Vec::new(); era.launches.len()],
            era,
        }
    }

    /// Begins at once, with windows of `length` cycles.
    fn begin_now(era: Era, length: Cycle, context: &WindowContext<'_, '_>) -> Self {
        let mut measured = Self { length, ..Self::begin(era, 0, context) };
        measured.take(context);
        measured
    }

    /// Takes the window that is over into account.
    fn take(&mut self, context: &WindowContext<'_, '_>) {
        let launches = &self.era.launches;
        let grids = || launches.iter().map(|&kernel| context.grid(kernel));
        let issued: Vec<f64> = launches.iter().map(|&kernel| context.issued_by(kernel)).collect();
        if self.since.is_none() {
            if grids().zip(&self.due).all(|(grid, &due)| grid.retired >= due) {
                let life = grids().filter_map(Grid::mean_life).max().unwrap_or(0);
                self.length = (life / WINDOWS_PER_LIFE).max(self.length);
                self.since = Some(context.hardware.now());
                self.readings = Readings::of(context.hardware);
                self.counts = context.hardware.shared_state.counts.clone();
                self.issued = issued;
            }
            return;
        }
        let cycles = to_f64(self.length);
        for (place, &now) in issued.iter().enumerate() {
            let before = std::mem::replace(&mut self.issued[place], now);
            self.rates[place].push((now - before) / cycles);
        }
    }

    /// Cycles since the first window began.
    fn span(&self, now: Cycle) -> Cycle {
        now - self.since.unwrap_or(now)
    }
}

impl FastForward {
    /// Nothing passed over of a run of so many launches and applications that has not begun.
    pub(crate) fn new(launches: usize, apps: usize) -> Self {
        Self {
            measured: None,
            last: None,
            reach: FIRST_REACH,
            owed: vec![0.0; launches],
            touches: (0..launches).map(|_| None).collect(),
            walker: Walker::default(),
            stretches: 0,
            cycles: 0,
            variance: vec![0.0; apps],
        }
    }

    /// What was passed over of an application's run so far, `elapsed` cycles.
    pub(crate) fn passed(&self, app: usize, elapsed: Cycle) -> Passed {
        let unseen = UNSEEN * to_f64(self.cycles);
        let reordered = if self.stretches > 0 { REORDERED * to_f64(elapsed) } else { 0.0 };
        let interval = (T * self.variance[app].sqrt()).hypot(unseen).hypot(reordered);
        Passed { cycles: self.cycles, stretches: self.stretches, interval }
    }

    /// A window is over: it is measured, and a stretch is passed over where all is steady.
    ///
    /// # Errors
    /// When the source fails to open a CTA.
    pub(crate) fn on_window(
        &mut self,
        context: &mut WindowContext<'_, '_>,
    ) -> Result<(), MachineError> {
        context.hardware.account_stalls();
        match (&mut self.measured, context.era()) {
            (Some(measured), Some(era)) if measured.era == era => measured.take(context),
            (_, era) => {
                self.last = None;
                self.reach = FIRST_REACH;
                self.measured = era.map(|era| Measurement::begin(era, 1, context));
            }
        }
        let result = self.try_stretch(context);
        let length = self.measured.as_ref().map_or(SHORTEST, |measured| measured.length);
        let queue = &mut context.hardware.shared_state.queue;
        queue.schedule(queue.now() + length, Event::Window);
        result
    }

    /// Passes over a stretch where the last windows were steady.
    fn try_stretch(&mut self, context: &mut WindowContext<'_, '_>) -> Result<(), MachineError> {
        let enough =
            |measured: &mut Measurement| measured.rates.first().map_or(0, Vec::len) >= WINDOWS;
        let Some(measured) = self.measured.take_if(enough) else { return Ok(()) };
        let rates: Option<Vec<Rate>> = measured.rates.iter().map(|rates| steady(rates)).collect();
        let Some(rates) = rates else {
            let length = 2 * measured.length;
            self.measured = Some(Measurement::begin_now(measured.era, length, context));
            return Ok(());
        };
        self.verify(&measured, &rates, context);
        let span = measured.span(context.hardware.now());
        let cycles = context.longest_stretch(&measured, &rates).min(self.reach * span);
        let length = measured.length;
        if cycles < length {
            self.measured = Some(Measurement::begin_now(measured.era, length, context));
            return Ok(());
        }
        self.pass_over(cycles, &measured, &rates, context)?;
        self.last = Some(Stretch { cycles, rates });
        self.measured =
            Some(Measurement { length, ..Measurement::begin(measured.era, 0, context) });
        Ok(())
    }

    /// Compares the rates with those before the last stretch: half of the change was missing
    /// there, and widens the interval.
    fn verify(&mut self, measured: &Measurement, rates: &[Rate], context: &WindowContext<'_, '_>) {
        let Some(last) = self.last.take() else { return };
        let mut same = true;
        for (place, (now, before)) in rates.iter().zip(&last.rates).enumerate() {
            let kernel = measured.era.launches[place];
            let change = now.mean - before.mean;
            let cycles = to_f64(last.cycles);
            self.owed[to_usize(kernel)] += change / 2.0 * cycles;
            let part = change / before.mean;
            same &= part.abs() <= SAME;
            self.variance[context.grid(kernel).app.index()] += (part * cycles).powi(2) / 12.0;
        }
        self.reach = if same { 2 * self.reach } else { self.reach / 2 };
        self.reach = self.reach.clamp(1, LONGEST_REACH);
    }

    /// Passes over `cycles`.
    fn pass_over(
        &mut self,
        cycles: Cycle,
        measured: &Measurement,
        rates: &[Rate],
        context: &mut WindowContext<'_, '_>,
    ) -> Result<(), MachineError> {
        let now = Readings::of(context.hardware);
        let factor = to_f64(cycles) / to_f64(measured.span(context.hardware.now()));
        let before = context.all_issued();
        if let Some(residency) = &mut context.residency {
            residency.note(context.hardware.elapsed(), &context.hardware.dispatcher.held);
        }
        for (&kernel, rate) in measured.era.launches.iter().zip(rates) {
            self.owed[to_usize(kernel)] += rate.mean * to_f64(cycles);
            let app = context.grid(kernel).app.index();
            self.variance[app] += (rate.error * to_f64(cycles)).powi(2);
        }
        let walked = self.walk_all(&measured.era.launches, context)?;
        let Hardware { shared_state, passed, .. } = &mut *context.hardware;
        for (&kernel, walked) in measured.era.launches.iter().zip(&walked) {
            let before = &measured.counts[to_usize(kernel)];
            grow_launch(&mut shared_state.counts[to_usize(kernel)], before, factor, walked);
        }
        if let Some(passed) = passed {
            passed.add_growth(&now, &measured.readings, factor);
        }
        self.stretches += 1;
        self.cycles += cycles;
        shared_state.skipped += cycles;
        shared_state.queue.bring_forward(cycles, Event::is_of_the_clock);
        let after = context.all_issued().into_iter().zip(before);
        context.plan_control.pass_ipc_checks(after.map(|(after, before)| after - before));
        Ok(())
    }

    /// Walks through the CTAs that launches owe, in turn: the one that owes most goes first.
    fn walk_all(
        &mut self,
        launches: &[u32],
        context: &mut WindowContext<'_, '_>,
    ) -> Result<Vec<Walked>, MachineError> {
        let owed: Vec<f64> =
            launches.iter().map(|&kernel| self.owed[to_usize(kernel)].max(1.0)).collect();
        let mut walked = vec![Walked::default(); launches.len()];
        loop {
            let wants = |&place: &usize| {
                let kernel = launches[place];
                let half = context.per_cta(kernel) / 2.0;
                self.owed[to_usize(kernel)] >= half && context.spare_ctas(kernel) > 0
            };
            let left = |&place: &usize| self.owed[to_usize(launches[place])] / owed[place];
            let places = (0..launches.len()).filter(wants);
            let Some(place) = places.max_by(|one, other| left(one).total_cmp(&left(other))) else {
                return Ok(walked);
            };
            let one = self.walk_next(launches[place], context.hardware)?;
            self.owed[to_usize(launches[place])] -= to_f64(one.warps);
            walked[place].ctas += one.ctas;
            walked[place].warps += one.warps;
            walked[place].threads += one.threads;
        }
    }

    /// Walks through the next CTA of a launch.
    fn walk_next(
        &mut self,
        kernel: u32,
        hardware: &mut Hardware<'_>,
    ) -> Result<Walked, MachineError> {
        let Hardware { feed, dispatcher, shared_state, .. } = hardware;
        let touches = self.touches[to_usize(kernel)]
            .get_or_insert_with(|| Touches::of(*feed, kernel, shared_state));
        let grid = &mut dispatcher.grids[to_usize(kernel)];
        let (ordinal, life) = (grid.next_new_cta(), grid.mean_life().unwrap_or(0));
        grid.retired += 1;
        grid.lives += life;
        self.walker.walk(*feed, (kernel, ordinal), touches, shared_state)
    }
}

fn to_f64(count: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
    let count = count as f64;
    count
}

fn floor(cycles: f64) -> Cycle {
    product(1, cycles.clamp(0.0, 1e15).floor())
}
