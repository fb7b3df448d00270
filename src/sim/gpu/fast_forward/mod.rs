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

use crate::counters::{Cause, KernelCounts, StallStack, add_stalls, product};
use crate::dram::ChannelCounters;
use crate::gpu::Gpu;
use crate::gpu::error::MachineError;
use crate::gpu::event_queue::Event;
use crate::gpu::grid::Grid;
pub(crate) use readings::Readings;
use readings::{Rate, WINDOWS, Walked, add_all, grow_launch, steady};
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
/// of the cycles passed over (DXTC of UGPU), by 1.1 % in the mean.
const UNSEEN: f64 = 0.02;

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
    /// the change of its rate across it, 2 % of the cycles passed over, and 0.2 % of all.
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

/// The state of fast-forward.
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
    /// Counts of the stretches.
    passed: Readings,
    stretches: u32,
    cycles: Cycle,
    /// By application: variance of its cycles.
    variance: Vec<f64>,
}

impl FastForward {
    /// Nothing passed over of a run that has not begun.
    pub(crate) fn new(gpu: &Gpu<'_>) -> Self {
        let launches = gpu.dispatcher.grids.len();
        Self {
            measured: None,
            last: None,
            reach: FIRST_REACH,
            owed: vec![0.0; launches],
            touches: (0..launches).map(|_| None).collect(),
            walker: Walker::default(),
            passed: Readings::of(gpu).zero(),
            stretches: 0,
            cycles: 0,
            variance: vec![0.0; gpu.apps.len()],
        }
    }

    /// What was passed over of an application's run so far, `elapsed` cycles.
    pub(crate) fn passed(&self, app: usize, elapsed: Cycle) -> Passed {
        let unseen = UNSEEN * to_f64(self.cycles);
        let reordered = if self.stretches > 0 { REORDERED * to_f64(elapsed) } else { 0.0 };
        let interval = (T * self.variance[app].sqrt()).hypot(unseen).hypot(reordered);
        Passed { cycles: self.cycles, stretches: self.stretches, interval }
    }

    /// Adds the slot-cycles of an application on an SM.
    pub(crate) fn add_stalls(&self, app: AppId, sm: usize, stalls: &mut StallStack) {
        add_stalls(stalls, &self.passed.stalls[app.index()][sm], &StallStack::default(), 1.0);
    }

    /// Adds the counts of the channels.
    pub(crate) fn add_channels(&self, counts: &mut [ChannelCounters]) {
        add_all(counts, &self.passed.channels);
    }
}

impl Gpu<'_> {
    /// The counters of SMs, slices and channels, with those of stretches that were passed over.
    pub(crate) fn readings(&self) -> Readings {
        let mut readings = Readings::of(self);
        if let Some(state) = &self.fast_forward {
            readings.add_growth(&state.passed, &state.passed.zero(), 1.0);
        }
        readings
    }

    /// A window is over: it is measured, and a stretch is passed over where all is steady.
    ///
    /// # Errors
    /// When the source fails to open a CTA.
    pub(crate) fn on_window(&mut self) -> Result<(), MachineError> {
        let Some(mut state) = self.fast_forward.take() else { return Ok(()) };
        self.account_stalls();
        let measured = state.measured.take();
        let measured = match (measured, self.era()) {
            (Some(measured), Some(era)) if measured.era == era => Some(self.measure(measured)),
            (_, era) => {
                state.last = None;
                state.reach = FIRST_REACH;
                era.map(|era| self.begin_measurement(era, 1))
            }
        };
        state.measured = measured;
        let result = self.try_stretch(&mut state);
        let length = state.measured.as_ref().map_or(SHORTEST, |measured| measured.length);
        self.shared_state.queue.schedule(self.now() + length, Event::Window);
        self.fast_forward = Some(state);
        result
    }

    /// What has to stay the same; `None` where nothing may be passed over.
    fn era(&self) -> Option<Era> {
        let control = &self.plan_control;
        let launches: Vec<u32> =
            self.apps.iter().flat_map(|app| app.begun_launches.iter().copied()).collect();
        let shared = &self.shared_state;
        let whole = shared.hot.is_none() && shared.spans.is_none() && shared.link.is_none();
        let settled = control.in_force == control.latest && control.time_slice().is_none();
        let rests = self.channels.is_changing();
        let leaves = self.apps.iter().any(|app| app.vacating_since.is_some());
        let plain = |&kernel: &u32| {
            let grid = &self.dispatcher.grids[to_usize(kernel)];
            grid.worker_pool.is_none() && grid.saved == 0 && grid.again.is_empty()
        };
        let all = launches.iter().all(plain) && !launches.is_empty();
        let finished = self.apps.iter().filter(|app| app.reported).count();
        let era = Era { plan: control.in_force, launches, finished };
        (whole && settled && !rests && !leaves && all).then_some(era)
    }

    /// Begins to measure once each launch has retired `generations` times the CTAs that it has
    /// on the SMs.
    fn begin_measurement(&self, era: Era, generations: u64) -> Measurement {
        let grids = || era.launches.iter().map(|&kernel| &self.dispatcher.grids[to_usize(kernel)]);
        let due = grids().map(|grid| grid.retired + generations * grid.resident()).collect();
        let life = grids().filter_map(Grid::mean_life).max().unwrap_or(0);
        Measurement {
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

    /// Instructions of a launch by the issue slots that they took.
    fn issued_by(&self, kernel: u32) -> f64 {
        let stalls = &self.shared_state.counts[to_usize(kernel)].stalls;
        stalls[Cause::Issued as usize] * f64::from(self.machine.sm.issue_width.max(1))
    }

    /// Takes the window that is over into account.
    fn measure(&self, mut measured: Measurement) -> Measurement {
        let launches = measured.era.launches.clone();
        let issued = launches.iter().map(|&kernel| self.issued_by(kernel)).collect::<Vec<_>>();
        if measured.since.is_none() {
            let grids = launches.iter().map(|&kernel| &self.dispatcher.grids[to_usize(kernel)]);
            let due = grids.zip(&measured.due).all(|(grid, &due)| grid.retired >= due);
            if due {
                let life = launches
                    .iter()
                    .filter_map(|&kernel| self.dispatcher.grids[to_usize(kernel)].mean_life());
                let life = life.max().unwrap_or(0);
                measured.length = (life / WINDOWS_PER_LIFE).max(measured.length);
                measured.since = Some(self.now());
                measured.readings = Readings::of(self);
                measured.counts = self.shared_state.counts.clone();
                measured.issued = issued;
            }
            return measured;
        }
        let cycles = to_f64(measured.length);
        for (place, &now) in issued.iter().enumerate() {
            let before = std::mem::replace(&mut measured.issued[place], now);
            measured.rates[place].push((now - before) / cycles);
        }
        measured
    }

    /// Passes over a stretch where the last windows were steady.
    fn try_stretch(&mut self, state: &mut FastForward) -> Result<(), MachineError> {
        let Some(measured) = &mut state.measured else { return Ok(()) };
        let windows = measured.rates.first().map_or(0, Vec::len);
        if windows < WINDOWS {
            return Ok(());
        }
        let rates: Option<Vec<Rate>> = measured.rates.iter().map(|rates| steady(rates)).collect();
        let Some(rates) = rates else {
            let length = 2 * measured.length;
            let next = self.begin_measurement(measured.era.clone(), 0);
            state.measured = Some(self.measure(Measurement { length, ..next }));
            return Ok(());
        };
        let Some(measured) = state.measured.take() else { return Ok(()) };
        self.verify(&measured, &rates, state);
        let span = self.now() - measured.since.unwrap_or(self.now());
        let longest = self.longest_stretch(&measured, &rates, state);
        let cycles = longest.min(state.reach * span);
        if cycles < measured.length {
            let next = self.begin_measurement(measured.era, 0);
            state.measured = Some(self.measure(Measurement { length: measured.length, ..next }));
            return Ok(());
        }
        self.pass_over(cycles, &measured, &rates, state)?;
        state.last = Some(Stretch { cycles, rates });
        let mut next = self.begin_measurement(measured.era, 0);
        next.length = measured.length;
        state.measured = Some(next);
        Ok(())
    }

    /// Compares the rates with those before the last stretch: half of the change was missing
    /// there, and widens the interval.
    fn verify(&self, measured: &Measurement, rates: &[Rate], state: &mut FastForward) {
        let Some(last) = state.last.take() else { return };
        let mut same = true;
        for (place, (now, before)) in rates.iter().zip(&last.rates).enumerate() {
            let kernel = to_usize(measured.era.launches[place]);
            let change = now.mean - before.mean;
            let cycles = to_f64(last.cycles);
            state.owed[kernel] += change / 2.0 * cycles;
            let part = change / before.mean;
            same &= part.abs() <= SAME;
            let app = self.dispatcher.grids[kernel].app.index();
            state.variance[app] += (part * cycles).powi(2) / 12.0;
        }
        state.reach = if same { 2 * state.reach } else { state.reach / 2 };
        state.reach = state.reach.clamp(1, LONGEST_REACH);
    }

    /// Cycles until something is not steady any more.
    fn longest_stretch(
        &self,
        measured: &Measurement,
        rates: &[Rate],
        state: &FastForward,
    ) -> Cycle {
        let queue = &self.shared_state.queue;
        let clock = |event: &Event| event.is_of_the_clock() && *event != Event::TargetCheck;
        let mut longest = queue.first(clock).map_or(Cycle::MAX, |at| at - self.now());
        longest = longest.saturating_sub(measured.length);
        for (&kernel, rate) in measured.era.launches.iter().zip(rates) {
            let instructions = to_f64(self.spare_ctas(kernel)) * self.per_cta(kernel);
            longest = longest.min(floor(instructions / rate.mean));
        }
        for (app, running) in self.apps.iter().enumerate() {
            if let Some(target) = running.open_target() {
                let id = AppId(to_u16(app));
                let of_app = measured.era.launches.iter().zip(rates);
                let owns = |kernel: u32| self.dispatcher.grids[to_usize(kernel)].app == id;
                let rate = of_app.filter(|&(&kernel, _)| owns(kernel)).map(|(_, rate)| rate.mean);
                let passed = self.issued_with(id, state) - self.issued(id);
                let left = target - self.progress(id) - passed;
                let left = left / rate.sum::<f64>().max(f64::MIN_POSITIVE);
                longest = longest.min(floor(left).saturating_sub(measured.length));
            }
        }
        self.whole_ipc_checks(longest)
    }

    /// Passes over `cycles`.
    fn pass_over(
        &mut self,
        cycles: Cycle,
        measured: &Measurement,
        rates: &[Rate],
        state: &mut FastForward,
    ) -> Result<(), MachineError> {
        let now = Readings::of(self);
        let span = self.now() - measured.since.unwrap_or(self.now());
        let factor = to_f64(cycles) / to_f64(span);
        let before: Vec<f64> = self.app_ids().map(|app| self.issued_with(app, state)).collect();
        self.note_residency();
        for (&kernel, rate) in measured.era.launches.iter().zip(rates) {
            state.owed[to_usize(kernel)] += rate.mean * to_f64(cycles);
            let app = self.dispatcher.grids[to_usize(kernel)].app.index();
            state.variance[app] += (rate.error * to_f64(cycles)).powi(2);
        }
        let walked = self.walk_all(&measured.era.launches, state)?;
        for (&kernel, walked) in measured.era.launches.iter().zip(&walked) {
            let before = &measured.counts[to_usize(kernel)];
            let counts = &mut self.shared_state.counts[to_usize(kernel)];
            grow_launch(counts, before, factor, walked);
        }
        state.passed.add_growth(&now, &measured.readings, factor);
        state.stretches += 1;
        state.cycles += cycles;
        self.shared_state.skipped += cycles;
        self.shared_state.queue.bring_forward(cycles, Event::is_of_the_clock);
        let after: Vec<f64> = self.app_ids().map(|app| self.issued_with(app, state)).collect();
        self.pass_ipc_checks(after.iter().zip(before).map(|(after, before)| after - before));
        Ok(())
    }

    /// Warp instructions of a CTA of a launch, in the mean so far.
    fn per_cta(&self, kernel: u32) -> f64 {
        let counts = &self.shared_state.counts[to_usize(kernel)];
        to_f64(counts.warp_instructions) / to_f64(counts.ctas_started.max(1))
    }

    /// CTAs of a launch that may be walked through: a generation, at least one, is left to be
    /// simulated.
    fn spare_ctas(&self, kernel: u32) -> u64 {
        let grid = &self.dispatcher.grids[to_usize(kernel)];
        (grid.ctas - grid.started).saturating_sub(grid.resident().max(1))
    }

    fn app_ids(&self) -> impl Iterator<Item = AppId> + use<> {
        (0..to_u16(self.apps.len())).map(AppId)
    }

    /// What an application has issued, while `state` is taken out.
    fn issued_with(&self, app: AppId, state: &FastForward) -> f64 {
        let passed = state.passed.stalls[app.index()].iter();
        let passed: f64 = passed.map(|stalls| stalls[Cause::Issued as usize]).sum();
        self.issued(app) + passed * f64::from(self.machine.sm.issue_width.max(1))
    }

    /// Walks through the CTAs that launches owe, in turn: the one that owes most goes first.
    fn walk_all(
        &mut self,
        launches: &[u32],
        state: &mut FastForward,
    ) -> Result<Vec<Walked>, MachineError> {
        let owed: Vec<f64> =
            launches.iter().map(|&kernel| state.owed[to_usize(kernel)].max(1.0)).collect();
        let mut walked = vec![Walked::default(); launches.len()];
        loop {
            let wants = |&place: &usize| {
                let kernel = launches[place];
                let half = self.per_cta(kernel) / 2.0;
                state.owed[to_usize(kernel)] >= half && self.spare_ctas(kernel) > 0
            };
            let left = |&place: &usize| state.owed[to_usize(launches[place])] / owed[place];
            let places = (0..launches.len()).filter(wants);
            let Some(place) = places.max_by(|one, other| left(one).total_cmp(&left(other))) else {
                return Ok(walked);
            };
            let one = self.walk_next(launches[place], state)?;
            state.owed[to_usize(launches[place])] -= to_f64(one.warps);
            walked[place].ctas += one.ctas;
            walked[place].warps += one.warps;
            walked[place].threads += one.threads;
        }
    }

    /// Walks through the next CTA of a launch.
    fn walk_next(&mut self, kernel: u32, state: &mut FastForward) -> Result<Walked, MachineError> {
        let touches = state.touches[to_usize(kernel)]
            .get_or_insert_with(|| Touches::of(self.feed, kernel, &mut self.shared_state));
        let grid = &mut self.dispatcher.grids[to_usize(kernel)];
        let (ordinal, life) = (grid.next_new_cta(), grid.mean_life().unwrap_or(0));
        grid.retired += 1;
        grid.lives += life;
        state.walker.walk(self.feed, (kernel, ordinal), touches, &mut self.shared_state)
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
