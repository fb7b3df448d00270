//! The plan in force, how plans come into force, and when the scheme behind them is asked
//! again.

use std::collections::VecDeque;

use crate::config::Machine;
use crate::gpu::app::{Running, State};
use crate::gpu::dispatch::{Dispatcher, Held};
use crate::gpu::event_queue::{Event, EventQueue};
use crate::gpu::hardware::Hardware;
use crate::gpu::shared_state::SharedState;
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
    turn: Option<AppId>,
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
pub(crate) const MIN_CHECK_CYCLES: Cycle = 64;

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

    /// Whether `plan` is the number of the last plan: the scheme has answered earlier ones.
    pub(crate) fn is_latest(&self, plan: u32) -> bool {
        plan == self.latest
    }

    /// Takes a plan from the scheme. It takes effect after its delay, or at once where none is in
    /// force: true.
    pub(crate) fn hand_in(&mut self, plan: Plan, queue: &mut EventQueue<Event>) -> bool {
        self.latest += 1;
        let delay = plan.delay();
        self.next = Some(plan);
        let at_once = delay == 0 || self.active.is_none();
        if !at_once {
            queue.schedule(queue.now() + delay, Event::Effect { plan: self.latest });
        }
        at_once
    }

    /// Puts the plan that was handed in into force, for so many applications; false where it is
    /// already.
    pub(crate) fn put_in_force(&mut self, apps: usize, hardware: &mut Hardware<'_>) -> bool {
        let Some(plan) = self.next.take() else { return false };
        let now = hardware.now();
        let sole = self.active().and_then(|active| active.sole);
        let sole = sole.filter(|_| plan.freed() == Freed::ToLast);
        self.in_force = self.latest;
        self.schedule_wakes(&plan, apps, &mut hardware.shared_state);
        let active = ActivePlan::new(plan, hardware.machine, sole);
        hardware.dispatcher.follow(&active, self.active(), now);
        self.active = Some(active);
        self.mark_ipc(hardware);
        true
    }

    /// Schedules the alarms, checks and time slices of a plan that takes effect.
    fn schedule_wakes(&mut self, plan: &Plan, apps: usize, shared_state: &mut SharedState) {
        let (number, skipped) = (self.in_force, shared_state.skipped);
        let queue = &mut shared_state.queue;
        let now = queue.now();
        self.ipc_watch = None;
        for wake in plan.wake() {
            match *wake {
                WakeOn::At(cycle) => {
                    queue.schedule(cycle.saturating_sub(skipped), Event::Alarm { plan: number });
                }
                WakeOn::IpcShift { fraction, sustained } => {
                    let marks = vec![(0.0, None); apps];
                    let sustained = sustained.max(1);
                    queue.schedule(now + sustained, Event::IpcCheck { plan: number });
                    self.ipc_watch = Some(IpcWatch { fraction, sustained, marks });
                }
                WakeOn::KernelBegin
                | WakeOn::KernelEnd
                | WakeOn::CtaDrained
                | WakeOn::LastTaskStarted => {}
            }
        }
        self.in_slice = plan.time_slice().is_some();
        if let Some(slice) = plan.time_slice() {
            queue.schedule(now + slice.cycles.max(1), Event::SliceEnd { plan: number });
        }
    }

    /// One application is left: it has everything, where the plan gives it what others free.
    pub(crate) fn leave_all_to(&mut self, last: AppId) {
        if let Some(active) = &mut self.active {
            active.sole = Some(last).filter(|_| active.plan.freed() == Freed::ToLast);
        }
    }

    /// Sends CTAs away that exceed their application's share; some leave at once.
    pub(crate) fn vacate(&self, apps: &mut [Running], hardware: &mut Hardware<'_>) {
        let now = hardware.now();
        for (app, running) in apps.iter_mut().enumerate() {
            let id = AppId(to_u16(app));
            for sm in 0..hardware.sms.len() {
                let excess = self.excess(id, sm, &hardware.dispatcher);
                if excess > 0 {
                    running.vacating_since.get_or_insert(now);
                }
                match self.plan().map_or(Vacate::Drain, Plan::vacate) {
                    Vacate::Drain => {}
                    Vacate::Flush => hardware.stop_ctas(sm, id, excess, Leave::Flush),
                    Vacate::Switch => hardware.stop_ctas(sm, id, excess, Leave::Switch),
                    Vacate::Hybrid => self.drain_or_switch(sm, id, excess, hardware),
                }
            }
        }
    }

    /// CTAs of an application on an SM beyond its quota.
    fn excess(&self, app: AppId, sm: usize, dispatcher: &Dispatcher) -> usize {
        let quota = self.quota(app, sm);
        to_usize(dispatcher.held[app.index()][sm].ctas.saturating_sub(quota))
    }

    /// Saves those CTAs beyond the quota that are not expected to end before the
    /// plan's next alarm, by the mean life of those of their launch that have ended.
    /// Where none has, a CTA is expected to live on for as long as it has lived.
    fn drain_or_switch(&self, sm: usize, app: AppId, excess: usize, hardware: &mut Hardware<'_>) {
        let now = hardware.now();
        let Some(deadline) = self.next_alarm(hardware.elapsed()) else { return };
        let deadline = deadline - hardware.shared_state.skipped;
        let grids = &hardware.dispatcher.grids;
        let late = |kernel: u32, started: Cycle| {
            let grid = &grids[to_usize(kernel)];
            let life = grid.mean_life().unwrap_or(2 * (now - started));
            grid.app == app && started + life > deadline
        };
        let residents = hardware.sms[sm].residents();
        let late = residents.filter(|&(_, kernel, started)| late(kernel, started)).count();
        let owns = |kernel: u32| grids[to_usize(kernel)].app == app;
        let leaving = hardware.sms[sm].leaving().filter(|&(_, kernel)| owns(kernel)).count();
        hardware.stop_ctas(sm, app, excess.min(leaving + late), Leave::Switch);
    }

    /// Wakes the scheme when an application has come down to its share everywhere.
    pub(crate) fn note_drained(&mut self, apps: &mut [Running], hardware: &Hardware<'_>) {
        for (app, running) in apps.iter_mut().enumerate() {
            let Some(since) = running.vacating_since else { continue };
            let id = AppId(to_u16(app));
            let excess = |sm| self.excess(id, sm, &hardware.dispatcher);
            if (0..hardware.sms.len()).all(|sm| excess(sm) == 0) {
                running.vacating_since = None;
                running.vacated_cycles += hardware.now() - since;
                self.wake_on(&WakeOn::CtaDrained, Wake::CtaDrained(id));
            }
        }
    }

    /// The application whose turn comes after the present one's, if any can take a turn:
    /// it is active and has a share. And whether the present one can.
    fn next_in_turn(&self, apps: &[Running]) -> (Option<AppId>, bool) {
        let turn = self.turn();
        let ids = (0..apps.len()).map(|app| AppId(to_u16(app)));
        let able: Vec<AppId> = ids
            .filter(|&app| {
                let active = apps[app.index()].state == State::Active;
                active && self.active().is_some() && !self.waits(app)
            })
            .collect();
        let next = able.iter().copied().find(|&app| turn.is_none_or(|turn| app > turn));
        let present = turn.is_some_and(|turn| able.contains(&turn));
        (next.or(able.first().copied()), present)
    }

    /// Gives the turn to an application that can use it, where the one that has it cannot; true
    /// where it does.
    pub(crate) fn pass_turn(&mut self, apps: &[Running], hardware: &mut Hardware<'_>) -> bool {
        let Some(slice) = self.time_slice() else { return false };
        let (next, present) = self.next_in_turn(apps);
        if present {
            return false;
        }
        if self.turn().is_some() {
            hardware.dispatcher.pause(hardware.now() + slice.switch_cycles);
        }
        self.give_turn(next);
        true
    }

    fn give_turn(&mut self, next: Option<AppId>) {
        if let Some(active) = &mut self.active {
            active.turn = next;
        }
    }

    /// A slice is over, or may begin: it does when no CTA is being switched, so that each slice
    /// has its length whatever the switch has cost. The cycles until the next such event, and
    /// whether the turn goes to another application.
    pub(crate) fn on_slice_end(
        &mut self,
        apps: &[Running],
        hardware: &mut Hardware<'_>,
    ) -> Option<(Cycle, bool)> {
        let slice = self.time_slice()?;
        if hardware.sms.iter().any(Sm::is_switching) {
            return Some((MIN_CHECK_CYCLES, false));
        }
        self.in_slice = !self.in_slice;
        if self.in_slice {
            return Some((slice.cycles.max(1), false));
        }
        let (next, _) = self.next_in_turn(apps);
        let passes = next != self.turn();
        if passes {
            hardware.dispatcher.pause(hardware.now() + slice.switch_cycles);
            self.give_turn(next);
        }
        Some((slice.switch_cycles.max(1), passes))
    }

    /// Schedules the next end or begin of a slice after `wait` cycles.
    pub(crate) fn schedule_slice(&self, wait: Cycle, queue: &mut EventQueue<Event>) {
        queue.schedule(queue.now() + wait, Event::SliceEnd { plan: self.in_force });
    }

    /// Notes where applications stand when a plan takes effect.
    fn mark_ipc(&mut self, hardware: &mut Hardware<'_>) {
        let Some(watch) = &mut self.ipc_watch else { return };
        hardware.account_stalls();
        for (app, mark) in watch.marks.iter_mut().enumerate() {
            mark.0 = hardware.issued(AppId(to_u16(app)));
        }
    }

    /// Wakes the scheme for applications whose IPC has shifted.
    pub(crate) fn on_ipc_check(&mut self, apps: &[Running], hardware: &mut Hardware<'_>) {
        let Some(watch) = &mut self.ipc_watch else { return };
        hardware.account_stalls();
        #[allow(clippy::cast_precision_loss, reason = "spans are below 2^53")]
        let span = watch.sustained as f64;
        let steady = apps.iter().all(|app| app.vacating_since.is_none());
        for (app, running) in apps.iter().enumerate() {
            let id = AppId(to_u16(app));
            let issued = hardware.issued(id);
            let (last, first) = &mut watch.marks[app];
            let ipc = (issued - std::mem::replace(last, issued)) / span;
            let moved = |first: f64| first > 0.0 && (ipc / first - 1.0).abs() > watch.fraction;
            if running.state == State::Active && first.is_some_and(moved) {
                self.wakes.push_back(Wake::IpcShift(id));
            }
            if steady {
                first.get_or_insert(ipc);
            }
        }
        let queue = &mut hardware.shared_state.queue;
        queue.schedule(queue.now() + watch.sustained, Event::IpcCheck { plan: self.latest });
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
