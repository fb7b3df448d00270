//! The plan in force, how plans come into force, and when the scheme behind them is asked
//! again.

use std::collections::VecDeque;

use crate::config::Machine;
use crate::gpu::Gpu;
use crate::gpu::app::State;
use crate::gpu::dispatch::Held;
use crate::gpu::error::MachineError;
use crate::gpu::event_queue::Event;
use crate::gpu::hardware::Hardware;
use crate::gpu::reallocation::refuse_unowned;
use crate::sm::{Bounds, Leave, Need, Sm};
use gpumodel_core::contract::{
    DispatchOrder, Freed, Plan, Region, Share, TimeSlice, Vacate, Wake, WakeOn,
};
use gpumodel_core::units::{AppId, Cycle, to_u16, to_usize};

/// The plan in force, as the dispatcher asks it.
#[derive(Debug)]
pub(crate) struct ActivePlan {
    plan: Plan,
    whole: Bounds,
    max_ctas: u32,
    /// Whose turn it is, under time slices.
    pub(crate) turn: Option<AppId>,
    /// The application that is left and has everything.
    pub(crate) sole: Option<AppId>,
}

impl ActivePlan {
    /// `plan` on `machine`, with everything for `sole`.
    pub(crate) fn new(plan: Plan, machine: &Machine, sole: Option<AppId>) -> Self {
        let whole = Bounds::whole(machine);
        Self { plan, whole, max_ctas: machine.sm.max_ctas, turn: None, sole }
    }

    /// The plan.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// All of an SM.
    pub(crate) fn whole(&self) -> &Bounds {
        &self.whole
    }

    /// CTAs that an application may have on an SM now.
    pub(crate) fn quota(&self, app: AppId, sm: usize) -> u32 {
        if self.sole == Some(app) {
            return self.max_ctas;
        }
        match self.turn {
            Some(turn) if turn != app => 0,
            _ => self.plan.quota(app, sm),
        }
    }

    /// Whether an application's CTAs may come to an SM, now or when it has the turn.
    pub(crate) fn may_come(&self, app: AppId, sm: usize) -> bool {
        self.sole == Some(app) || self.plan.quota(app, sm) > 0
    }

    /// Whether an application may start the same CTAs under another plan.
    pub(crate) fn gives_as(&self, other: &Self, app: AppId) -> bool {
        let of = |active_plan: &Self| {
            let Self { plan, sole, .. } = active_plan;
            let region = plan.regions().get(app.index()).copied();
            (plan.shares().get(app.index()).cloned(), region, plan.order().clone(), *sole)
        };
        of(self) == of(other)
    }

    /// True when the plan gives an application no share.
    pub(crate) fn waits(&self, app: AppId) -> bool {
        self.sole != Some(app)
            && matches!(self.plan.shares().get(app.index()), Some(Share::Waiting))
    }

    fn region(&self, app: AppId) -> Option<&Region> {
        if self.sole == Some(app) { None } else { self.plan.regions().get(app.index()) }
    }

    /// Whether one more CTA is within an application's share of an SM, where it has
    /// `held`; whether there is room is another question.
    pub(crate) fn allows(&self, app: AppId, sm: usize, held: Held, need: &Need) -> bool {
        let within =
            |region: &Region| held.ctas < region.ctas && held.warps + need.warps <= region.warps;
        held.ctas < self.quota(app, sm) && self.region(app).is_none_or(within)
    }

    /// The part of an SM that an application's CTAs take from.
    pub(crate) fn bounds(&self, app: AppId) -> Bounds {
        self.region(app).map_or_else(
            || self.whole.clone(),
            |region| Bounds {
                registers: region.first_register..region.first_register + region.registers,
                shared_bytes: region.first_shared_byte
                    ..region.first_shared_byte + region.shared_bytes,
            },
        )
    }

    /// The order of launches.
    pub(crate) fn order(&self) -> &DispatchOrder {
        self.plan.order()
    }

    /// True when a launch whose CTA does not fit an SM keeps others from it.
    pub(crate) fn is_strict(&self) -> bool {
        *self.plan.order() != DispatchOrder::RoundRobin && self.plan.regions().is_empty()
    }
}

/// Cycles between two checks of targets, or of CTAs under way, at least.
const MIN_CHECK_CYCLES: Cycle = 64;

/// Watches the applications' IPC for a change.
#[derive(Clone, Debug)]
struct IpcWatch {
    fraction: f64,
    sustained: Cycle,
    /// By application: instructions at the last check, and the IPC of the first span.
    marks: Vec<(f64, Option<f64>)>,
}

/// The plan in force, the next one, and what the scheme has not answered yet.
#[derive(Debug, Default)]
pub(crate) struct PlanControl {
    active: Option<ActivePlan>,
    /// A plan that has not taken effect.
    next: Option<Plan>,
    /// Number of the last plan handed in: alarms and checks of earlier ones are void, as
    /// the scheme has answered.
    pub(crate) latest: u32,
    /// Number of the plan in force: its time slices continue until the next takes effect.
    pub(crate) in_force: u32,
    /// Wakes that the scheme has not seen yet.
    pub(crate) wakes: VecDeque<Wake>,
    ipc_watch: Option<IpcWatch>,
    /// A time slice has begun and is not over.
    in_slice: bool,
}

impl PlanControl {
    /// The plan in force, as the dispatcher asks it.
    pub(crate) fn active(&self) -> Option<&ActivePlan> {
        self.active.as_ref()
    }

    /// The same, to be changed.
    pub(crate) fn active_mut(&mut self) -> Option<&mut ActivePlan> {
        self.active.as_mut()
    }

    /// The plan in force as the scheme made it.
    pub(crate) fn plan(&self) -> Option<&Plan> {
        self.active.as_ref().map(ActivePlan::plan)
    }

    /// CTAs that an application may have on an SM now.
    pub(crate) fn quota(&self, app: AppId, sm: usize) -> u32 {
        self.active.as_ref().map_or(0, |active| active.quota(app, sm))
    }

    /// True when the plan gives an application no share.
    pub(crate) fn waits(&self, app: AppId) -> bool {
        self.active.as_ref().is_some_and(|active| active.waits(app))
    }

    /// Whose turn it is, under time slices.
    fn turn(&self) -> Option<AppId> {
        self.active.as_ref().and_then(|active| active.turn)
    }

    /// The time slices of the plan in force.
    pub(crate) fn time_slice(&self) -> Option<TimeSlice> {
        self.plan().and_then(Plan::time_slice)
    }

    /// Whether the plan asks to be woken on something.
    pub(crate) fn wakes_on(&self, on: &WakeOn) -> bool {
        self.plan().is_some_and(|plan| plan.wake().contains(on))
    }

    /// Wakes the scheme for something if its plan asked for that.
    pub(crate) fn wake_on(&mut self, on: &WakeOn, wake: Wake) {
        if self.wakes_on(on) {
            self.wakes.push_back(wake);
        }
    }

    /// The first cycle after `now` at which the plan wants to be woken.
    fn next_alarm(&self, now: Cycle) -> Option<Cycle> {
        let wakes = self.plan().into_iter().flat_map(Plan::wake);
        let cycles = wakes.filter_map(|wake| match wake {
            WakeOn::At(cycle) if *cycle > now => Some(*cycle),
            _ => None,
        });
        cycles.min()
    }

    /// The most cycles up to `longest` that are whole spans between two checks of IPC, where there
    /// are such checks.
    pub(crate) fn whole_ipc_checks(&self, longest: Cycle) -> Cycle {
        let watch = self.ipc_watch.as_ref();
        watch.map_or(longest, |watch| longest - longest % watch.sustained)
    }

    /// Checks of IPC are passed over during which applications have issued `issued`, at the rate
    /// of the spans around them.
    pub(crate) fn pass_ipc_checks(&mut self, issued: impl Iterator<Item = f64>) {
        if let Some(watch) = &mut self.ipc_watch {
            watch.marks.iter_mut().zip(issued).for_each(|((last, _), issued)| *last += issued);
        }
    }
}

impl Gpu<'_> {
    /// Hands the machine a plan: it takes effect after its delay; until then the one
    /// in force continues.
    ///
    /// # Errors
    /// [`MachineError::Unsupported`] when the plan asks for what the machine lacks.
    pub fn follow(&mut self, plan: Plan) -> Result<(), MachineError> {
        refuse_unowned(&plan, &self.hardware)?;
        let control = &mut self.plan_control;
        control.latest += 1;
        let delay = plan.delay();
        control.next = Some(plan);
        if delay == 0 || control.active.is_none() {
            self.take_effect();
        } else {
            let event = Event::Effect { plan: control.latest };
            self.hardware.shared_state.queue.schedule(self.now() + delay, event);
        }
        Ok(())
    }

    /// The cycle has come at which the plan asked to be woken.
    pub(crate) fn on_alarm(&mut self) {
        self.plan_control.wakes.push_back(Wake::At(self.elapsed()));
    }

    pub(crate) fn take_effect(&mut self) {
        let Some(plan) = self.plan_control.next.take() else { return };
        let now = self.now();
        let sole = self.plan_control.active().and_then(|active| active.sole);
        let sole = sole.filter(|_| plan.freed() == Freed::ToLast);
        self.plan_control.in_force = self.plan_control.latest;
        self.schedule_wakes(&plan);
        let active = ActivePlan::new(plan, self.hardware.machine, sole);
        self.hardware.dispatcher.follow(&active, self.plan_control.active(), now);
        self.plan_control.active = Some(active);
        self.mark_ipc();
        self.pass_turn();
        if let Some(plan) = self.plan_control.plan() {
            self.channels.follow(plan, &mut self.hardware);
        }
        self.vacate();
        let Hardware { dispatcher, shared_state, .. } = &mut self.hardware;
        for &kernel in self.apps.iter().flat_map(|app| &app.begun_launches) {
            let grid = &mut dispatcher.grids[to_usize(kernel)];
            grid.follow(&self.plan_control, &mut shared_state.queue);
        }
        (0..self.apps.len()).for_each(|app| self.next_commands(app));
        self.hardware.dispatcher.schedule(&mut self.hardware.shared_state);
    }

    /// Schedules the alarms, checks and time slices of a plan that takes effect.
    fn schedule_wakes(&mut self, plan: &Plan) {
        let (now, number) = (self.now(), self.plan_control.in_force);
        let skipped = self.hardware.shared_state.skipped;
        let queue = &mut self.hardware.shared_state.queue;
        self.plan_control.ipc_watch = None;
        for wake in plan.wake() {
            match *wake {
                WakeOn::At(cycle) => {
                    queue.schedule(cycle.saturating_sub(skipped), Event::Alarm { plan: number });
                }
                WakeOn::IpcShift { fraction, sustained } => {
                    let marks = vec![(0.0, None); self.apps.len()];
                    let sustained = sustained.max(1);
                    queue.schedule(now + sustained, Event::IpcCheck { plan: number });
                    self.plan_control.ipc_watch = Some(IpcWatch { fraction, sustained, marks });
                }
                WakeOn::KernelBegin
                | WakeOn::KernelEnd
                | WakeOn::CtaDrained
                | WakeOn::LastTaskStarted => {}
            }
        }
        self.plan_control.in_slice = plan.time_slice().is_some();
        if let Some(slice) = plan.time_slice() {
            queue.schedule(now + slice.cycles.max(1), Event::SliceEnd { plan: number });
        }
    }

    /// Sends CTAs away that exceed their application's share; some leave at once.
    fn vacate(&mut self) {
        for app in 0..self.apps.len() {
            let id = AppId(to_u16(app));
            for sm in 0..self.hardware.sms.len() {
                let excess = self.excess(id, sm);
                if excess > 0 && self.apps[app].vacating_since.is_none() {
                    self.apps[app].vacating_since = Some(self.now());
                }
                match self.plan_control.plan().map_or(Vacate::Drain, Plan::vacate) {
                    Vacate::Drain => {}
                    Vacate::Flush => self.stop_ctas(sm, id, excess, Leave::Flush),
                    Vacate::Switch => self.stop_ctas(sm, id, excess, Leave::Switch),
                    Vacate::Hybrid => self.drain_or_switch(sm, id, excess),
                }
            }
        }
        self.collect_all_departed();
    }

    /// CTAs of an application on an SM beyond its quota.
    fn excess(&self, app: AppId, sm: usize) -> usize {
        let quota = self.plan_control.quota(app, sm);
        to_usize(self.hardware.dispatcher.held[app.index()][sm].ctas.saturating_sub(quota))
    }

    /// Stops up to `count` CTAs of an application on an SM, those that came last
    /// first; CTAs that are leaving already count.
    pub(crate) fn stop_ctas(&mut self, sm: usize, app: AppId, count: usize, leave: Leave) {
        let grids = &self.hardware.dispatcher.grids;
        let owns = |kernel: u32| grids[to_usize(kernel)].app == app;
        let leaving: Vec<usize> = self.hardware.sms[sm]
            .leaving()
            .filter(|&(_, kernel)| owns(kernel))
            .map(|(slot, _)| slot)
            .collect();
        let residents = self.hardware.sms[sm].residents().filter(|&(_, kernel, _)| owns(kernel));
        let mut slots: Vec<(Cycle, usize)> =
            residents.map(|(slot, _, started)| (started, slot)).collect();
        slots.sort_unstable_by(|one, other| other.cmp(one));
        slots.truncate(count.saturating_sub(leaving.len()));
        if leave == Leave::Halt {
            slots.extend(leaving.into_iter().map(|slot| (0, slot)));
        }
        for (_, slot) in slots {
            self.hardware.sms[sm].stop(slot, leave, &mut self.hardware.shared_state);
        }
    }

    /// Saves those CTAs beyond the quota that are not expected to end before the
    /// plan's next alarm, by the mean life of those of their launch that have ended.
    /// Where none has, a CTA is expected to live on for as long as it has lived.
    fn drain_or_switch(&mut self, sm: usize, app: AppId, excess: usize) {
        let now = self.now();
        let Some(deadline) = self.plan_control.next_alarm(self.elapsed()) else { return };
        let deadline = deadline - self.hardware.shared_state.skipped;
        let grids = &self.hardware.dispatcher.grids;
        let late = |kernel: u32, started: Cycle| {
            let grid = &grids[to_usize(kernel)];
            let life = grid.mean_life().unwrap_or(2 * (now - started));
            grid.app == app && started + life > deadline
        };
        let residents = self.hardware.sms[sm].residents();
        let late = residents.filter(|&(_, kernel, started)| late(kernel, started)).count();
        let owns = |kernel: u32| grids[to_usize(kernel)].app == app;
        let leaving = self.hardware.sms[sm].leaving().filter(|&(_, kernel)| owns(kernel)).count();
        self.stop_ctas(sm, app, excess.min(leaving + late), Leave::Switch);
    }

    /// Wakes the scheme when an application has come down to its share everywhere.
    pub(crate) fn note_drained(&mut self) {
        for app in 0..self.apps.len() {
            let Some(since) = self.apps[app].vacating_since else { continue };
            let id = AppId(to_u16(app));
            if (0..self.hardware.sms.len()).all(|sm| self.excess(id, sm) == 0) {
                self.apps[app].vacating_since = None;
                self.apps[app].vacated_cycles += self.now() - since;
                self.plan_control.wake_on(&WakeOn::CtaDrained, Wake::CtaDrained(id));
            }
        }
    }

    /// The application whose turn comes after the present one's, if any can take a turn:
    /// it is active and has a share. And whether the present one can.
    fn next_in_turn(&self) -> (Option<AppId>, bool) {
        let turn = self.plan_control.turn();
        let ids = (0..self.apps.len()).map(|app| AppId(to_u16(app)));
        let able: Vec<AppId> = ids
            .filter(|&app| {
                let active = self.apps[app.index()].state == State::Active;
                let control = &self.plan_control;
                active && control.active().is_some() && !control.waits(app)
            })
            .collect();
        let next = able.iter().copied().find(|&app| turn.is_none_or(|turn| app > turn));
        let present = turn.is_some_and(|turn| able.contains(&turn));
        (next.or(able.first().copied()), present)
    }

    /// Gives the turn to an application that can use it, where the one that has it cannot.
    pub(crate) fn pass_turn(&mut self) {
        let Some(slice) = self.plan_control.time_slice() else { return };
        let (next, present) = self.next_in_turn();
        if present {
            return;
        }
        if self.plan_control.turn().is_some() {
            self.hardware.dispatcher.pause(self.now() + slice.switch_cycles);
        }
        self.give_turn(next);
    }

    /// A slice is over, or may begin: it does when no CTA is being switched,
    /// so that each slice has its length whatever the switch has cost.
    pub(crate) fn on_slice_end(&mut self) {
        let Some(slice) = self.plan_control.time_slice() else { return };
        let wait = if self.hardware.sms.iter().any(Sm::is_switching) {
            MIN_CHECK_CYCLES
        } else if std::mem::replace(&mut self.plan_control.in_slice, true) {
            self.plan_control.in_slice = false;
            self.next_turn(slice.switch_cycles);
            slice.switch_cycles.max(1)
        } else {
            slice.cycles.max(1)
        };
        let event = Event::SliceEnd { plan: self.plan_control.in_force };
        self.hardware.shared_state.queue.schedule(self.now() + wait, event);
    }

    /// The turn goes to the next application, if there is one; no CTA starts for
    /// `switch_cycles`.
    fn next_turn(&mut self, switch_cycles: Cycle) {
        let (next, _) = self.next_in_turn();
        if next != self.plan_control.turn() {
            self.hardware.dispatcher.pause(self.now() + switch_cycles);
            self.give_turn(next);
        }
    }

    fn give_turn(&mut self, next: Option<AppId>) {
        if let Some(active) = self.plan_control.active_mut() {
            active.turn = next;
        }
        self.vacate();
        self.hardware.dispatcher.ask_all(self.now(), &mut self.hardware.shared_state);
    }

    /// Notes where applications stand when a plan takes effect.
    fn mark_ipc(&mut self) {
        let Some(mut watch) = self.plan_control.ipc_watch.take() else { return };
        self.hardware.account_stalls();
        for (app, mark) in watch.marks.iter_mut().enumerate() {
            mark.0 = self.hardware.issued(AppId(to_u16(app)));
        }
        self.plan_control.ipc_watch = Some(watch);
    }

    pub(crate) fn on_ipc_check(&mut self) {
        let Some(mut watch) = self.plan_control.ipc_watch.take() else { return };
        self.hardware.account_stalls();
        #[allow(clippy::cast_precision_loss, reason = "spans are below 2^53")]
        let span = watch.sustained as f64;
        let steady = self.apps.iter().all(|app| app.vacating_since.is_none());
        for app in 0..self.apps.len() {
            let id = AppId(to_u16(app));
            let issued = self.hardware.issued(id);
            let (last, first) = &mut watch.marks[app];
            let ipc = (issued - std::mem::replace(last, issued)) / span;
            let moved = |first: f64| first > 0.0 && (ipc / first - 1.0).abs() > watch.fraction;
            if self.apps[app].state == State::Active && first.is_some_and(moved) {
                self.plan_control.wakes.push_back(Wake::IpcShift(id));
            }
            if steady {
                first.get_or_insert(ipc);
            }
        }
        let event = Event::IpcCheck { plan: self.plan_control.latest };
        self.hardware.shared_state.queue.schedule(self.now() + watch.sustained, event);
        self.plan_control.ipc_watch = Some(watch);
    }

    /// When targets are checked next: not after one can be reached.
    pub(crate) fn next_target_check(&self) -> Cycle {
        let slots =
            u32::from(self.hardware.machine.dispatch.sms) * self.hardware.machine.sm.schedulers;
        let peak = f64::from(slots * self.hardware.machine.sm.issue_width.max(1));
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
        self.now() + soonest.clamp(MIN_CHECK_CYCLES, 1 << 40)
    }

    pub(crate) fn on_target_check(&mut self) {
        self.hardware.account_stalls();
        for app in 0..self.apps.len() {
            let target = self.apps[app].open_target();
            if target.is_some_and(|target| self.hardware.progress(AppId(to_u16(app))) >= target) {
                self.halt(app);
            }
        }
        if self.apps.iter().any(|app| app.open_target().is_some()) {
            self.hardware.shared_state.queue.schedule(self.next_target_check(), Event::TargetCheck);
        }
    }
}
