//! How plans come into force, and when the scheme behind them is asked again.

use gpumodel_core::contract::{Plan, TimeSlice, Vacate, Wake, WakeOn};
use gpumodel_core::units::{AppId, Cycle, to_u16, to_usize};

use crate::gpu::Gpu;
use crate::gpu::active_plan::ActivePlan;
use crate::gpu::error::MachineError;
use crate::gpu::event::Event;
use crate::gpu::load::State;
use crate::sm::{Leave, Sm};

/// Cycles between two looks at targets, at least.
const LEAST_GAUGE: Cycle = 64;

/// The watch over applications' IPC.
#[derive(Clone, Debug)]
pub(crate) struct IpcShift {
    fraction: f64,
    sustained: Cycle,
    /// By application: instructions at the last look, and the IPC of the first span.
    marks: Vec<(f64, Option<f64>)>,
}

impl Gpu<'_> {
    /// Hands the machine a plan: it takes effect after its delay; until then the one
    /// in force goes on.
    ///
    /// # Errors
    /// [`MachineError::Unsupported`] when the plan asks for what the machine lacks.
    pub fn follow(&mut self, plan: Plan) -> Result<(), MachineError> {
        self.refuse_unowned(&plan)?;
        self.plans += 1;
        let delay = plan.delay();
        self.coming = Some(plan);
        if delay == 0 || self.active_plan.is_none() {
            self.take_effect();
        } else {
            let at = self.shared_state.queue.now() + delay;
            self.shared_state.queue.schedule(at, Event::Effect { plan: self.plans });
        }
        Ok(())
    }

    /// The cycle has come at which the plan asked to be woken.
    pub(crate) fn on_alarm(&mut self) {
        self.wakes.push_back(Wake::At(self.shared_state.queue.now()));
    }

    pub(crate) fn take_effect(&mut self) {
        let Some(plan) = self.coming.take() else { return };
        let now = self.shared_state.queue.now();
        let sole = self.active_plan.as_ref().and_then(|active_plan| active_plan.sole);
        let sole = sole.filter(|_| plan.freed() == gpumodel_core::contract::Freed::ToLast);
        let number = self.plans;
        self.in_force = number;
        let queue = &mut self.shared_state.queue;
        self.shift = None;
        for wake in plan.wake() {
            match *wake {
                WakeOn::At(cycle) => queue.schedule(cycle.max(now), Event::Alarm { plan: number }),
                WakeOn::IpcShift { fraction, sustained } => {
                    let marks = vec![(0.0, None); self.apps.len()];
                    let sustained = sustained.max(1);
                    queue.schedule(now + sustained, Event::Wakeup { plan: number });
                    self.shift = Some(IpcShift { fraction, sustained, marks });
                }
                _ => {}
            }
        }
        self.in_slice = plan.time_slice().is_some();
        if let Some(slice) = plan.time_slice() {
            queue.schedule(now + slice.cycles.max(1), Event::Turn { plan: number });
        }
        let active_plan = ActivePlan::new(plan, self.machine, sole);
        self.dispatcher.follow(&active_plan, self.active_plan.as_ref(), now);
        self.active_plan = Some(active_plan);
        self.mark_shift();
        self.pass_turn();
        self.follow_channels();
        self.vacate();
        self.follow_with_workers();
        (0..self.apps.len()).for_each(|app| self.next_commands(app));
        self.dispatcher.schedule(&mut self.shared_state);
    }

    /// Tells the scheme of something that its plan asked for.
    pub(crate) fn wake_on(&mut self, on: &WakeOn, wake: Wake) {
        if self
            .active_plan
            .as_ref()
            .is_some_and(|active_plan| active_plan.plan().wake().contains(on))
        {
            self.wakes.push_back(wake);
        }
    }

    /// Sends CTAs away that are more than their application's share; some leave at
    /// once.
    fn vacate(&mut self) {
        for app in 0..self.apps.len() {
            let id = AppId(to_u16(app));
            for sm in 0..self.sms.len() {
                let excess = self.excess(id, sm);
                if excess > 0 && self.vacating[app].is_none() {
                    self.vacating[app] = Some(self.shared_state.queue.now());
                }
                self.send_away(sm, id, excess);
            }
        }
        (0..self.sms.len()).for_each(|sm| self.collect_departed(sm));
    }

    /// CTAs of an application on an SM beyond its quota.
    fn excess(&self, app: AppId, sm: usize) -> usize {
        let quota =
            self.active_plan.as_ref().map_or(u32::MAX, |active_plan| active_plan.quota(app, sm));
        to_usize(self.dispatcher.held[app.index()][sm].ctas.saturating_sub(quota))
    }

    fn send_away(&mut self, sm: usize, app: AppId, excess: usize) {
        let how = self
            .active_plan
            .as_ref()
            .map_or(Vacate::Drain, |active_plan| active_plan.plan().vacate());
        match how {
            Vacate::Drain => {}
            Vacate::Flush => self.stop_ctas(sm, app, excess, Leave::Flush),
            Vacate::Switch => self.stop_ctas(sm, app, excess, Leave::Switch),
            Vacate::Hybrid => self.drain_or_switch(sm, app, excess),
        }
    }

    /// Stops up to `count` CTAs of an application on an SM, those that came last
    /// first; CTAs that are leaving already count.
    pub(crate) fn stop_ctas(&mut self, sm: usize, app: AppId, count: usize, leave: Leave) {
        let grids = &self.dispatcher.grids;
        let owns = |kernel: u32| grids[to_usize(kernel)].app == app;
        let leaving: Vec<usize> = self.sms[sm]
            .leaving()
            .filter(|&(_, kernel)| owns(kernel))
            .map(|(slot, _)| slot)
            .collect();
        let mut slots: Vec<(Cycle, usize)> = Vec::new();
        for (slot, kernel, started) in self.sms[sm].residents() {
            if owns(kernel) {
                slots.push((started, slot));
            }
        }
        slots.sort_unstable_by(|one, other| other.cmp(one));
        slots.truncate(count.saturating_sub(leaving.len()));
        if leave == Leave::Halt {
            slots.extend(leaving.into_iter().map(|slot| (0, slot)));
        }
        for (_, slot) in slots {
            self.sms[sm].stop(slot, leave, &mut self.shared_state);
        }
    }

    /// Saves those CTAs beyond the quota that are not expected to end before the
    /// plan's next alarm, by the mean life of those of their launch that have ended.
    /// Where none has, a CTA is expected to live on for as long as it has lived.
    fn drain_or_switch(&mut self, sm: usize, app: AppId, excess: usize) {
        let now = self.shared_state.queue.now();
        let alarms = self.active_plan.iter().flat_map(|active_plan| active_plan.plan().wake());
        let cycles = alarms.filter_map(|wake| match wake {
            WakeOn::At(cycle) if *cycle > now => Some(*cycle),
            _ => None,
        });
        let Some(deadline) = cycles.min() else { return };
        let grids = &self.dispatcher.grids;
        let late = |kernel: u32, started: Cycle| {
            let grid = &grids[to_usize(kernel)];
            let life = grid.mean_life().unwrap_or(2 * (now - started));
            grid.app == app && started + life > deadline
        };
        let residents = self.sms[sm].residents();
        let late = residents.filter(|&(_, kernel, started)| late(kernel, started)).count();
        let owns = |kernel: u32| grids[to_usize(kernel)].app == app;
        let leaving = self.sms[sm].leaving().filter(|&(_, kernel)| owns(kernel)).count();
        self.stop_ctas(sm, app, excess.min(leaving + late), Leave::Switch);
    }

    /// Tells the scheme when an application has come down to its share everywhere.
    pub(crate) fn note_drained(&mut self) {
        for app in 0..self.apps.len() {
            let Some(since) = self.vacating[app] else { continue };
            let id = AppId(to_u16(app));
            if (0..self.sms.len()).all(|sm| self.excess(id, sm) == 0) {
                self.vacating[app] = None;
                self.apps[app].vacated_cycles += self.shared_state.queue.now() - since;
                self.wake_on(&WakeOn::CtaDrained, Wake::CtaDrained(id));
            }
        }
    }

    /// Cycles so far during which an application held more than its share somewhere.
    pub(crate) fn vacating_cycles(&self, app: usize) -> Cycle {
        let now = self.shared_state.queue.now();
        self.apps[app].vacated_cycles + self.vacating[app].map_or(0, |since| now - since)
    }

    /// Applications that take turns: active and with a share.
    fn in_turn(&self) -> Vec<AppId> {
        let ids = (0..self.apps.len()).map(|app| AppId(to_u16(app)));
        let active_plan = self.active_plan.as_ref();
        ids.filter(|&app| {
            let active = self.apps[app.index()].state == State::Active;
            active && active_plan.is_some_and(|active_plan| !active_plan.waits(app))
        })
        .collect()
    }

    fn time_slice(&self) -> Option<TimeSlice> {
        self.active_plan.as_ref().and_then(|active_plan| active_plan.plan().time_slice())
    }

    /// Gives the turn to somebody who can use it, where nobody has it.
    pub(crate) fn pass_turn(&mut self) {
        if self.time_slice().is_none() {
            return;
        }
        let (able, turn) =
            (self.in_turn(), self.active_plan.as_ref().and_then(|active_plan| active_plan.turn));
        if turn.is_none_or(|turn| !able.contains(&turn)) {
            if let (Some(slice), Some(_)) = (self.time_slice(), turn) {
                self.dispatcher.pause(self.shared_state.queue.now() + slice.switch_cycles);
            }
            let next = able.iter().copied().find(|&app| turn.is_none_or(|turn| app > turn));
            self.give_turn(next.or(able.first().copied()));
        }
    }

    /// A slice is over, or may begin: it does when CTAs are no longer on their way,
    /// so that each slice has its length whatever the switch has cost.
    pub(crate) fn on_turn(&mut self) {
        let Some(slice) = self.time_slice() else { return };
        let next = if self.sms.iter().any(Sm::is_switching) {
            LEAST_GAUGE
        } else if std::mem::replace(&mut self.in_slice, true) {
            self.in_slice = false;
            self.next_turn(slice.switch_cycles);
            slice.switch_cycles.max(1)
        } else {
            slice.cycles.max(1)
        };
        let at = self.shared_state.queue.now() + next;
        self.shared_state.queue.schedule(at, Event::Turn { plan: self.in_force });
    }

    /// The turn goes to the next application, if there is one; nobody starts CTAs for
    /// `switch_cycles`.
    fn next_turn(&mut self, switch_cycles: Cycle) {
        let (able, turn) =
            (self.in_turn(), self.active_plan.as_ref().and_then(|active_plan| active_plan.turn));
        let next = able.iter().copied().find(|&app| turn.is_none_or(|turn| app > turn));
        let next = next.or(able.first().copied());
        if next != turn {
            self.dispatcher.pause(self.shared_state.queue.now() + switch_cycles);
            self.give_turn(next);
        }
    }

    fn give_turn(&mut self, next: Option<AppId>) {
        if let Some(active_plan) = &mut self.active_plan {
            active_plan.turn = next;
        }
        self.vacate();
        self.dispatcher.ask_all(self.shared_state.queue.now(), &mut self.shared_state);
    }

    /// Notes where applications stand when a plan takes effect.
    fn mark_shift(&mut self) {
        if self.shift.is_some() {
            self.close_books();
        }
        let ids = (0..self.apps.len()).map(|app| AppId(to_u16(app)));
        let now: Vec<f64> = ids.map(|app| self.issued(app)).collect();
        if let Some(shift) = &mut self.shift {
            shift.marks.iter_mut().zip(now).for_each(|(mark, now)| mark.0 = now);
        }
    }

    pub(crate) fn check_ipc_shift(&mut self) {
        let Some(mut shift) = self.shift.take() else { return };
        self.close_books();
        #[allow(clippy::cast_precision_loss, reason = "spans are below 2^53")]
        let span = shift.sustained as f64;
        let steady = self.vacating.iter().all(Option::is_none);
        for app in 0..self.apps.len() {
            let id = AppId(to_u16(app));
            let issued = self.issued(id);
            let (last, first) = &mut shift.marks[app];
            let ipc = (issued - std::mem::replace(last, issued)) / span;
            let moved = |first: f64| first > 0.0 && (ipc / first - 1.0).abs() > shift.fraction;
            if self.apps[app].state == State::Active && first.is_some_and(moved) {
                self.wakes.push_back(Wake::IpcShift(id));
            }
            if steady {
                first.get_or_insert(ipc);
            }
        }
        let at = self.shared_state.queue.now() + shift.sustained;
        self.shared_state.queue.schedule(at, Event::Wakeup { plan: self.plans });
        self.shift = Some(shift);
    }

    /// When targets are looked at next: not after one can be reached.
    pub(crate) fn next_gauge(&self) -> Cycle {
        let slots = u32::from(self.machine.dispatch.sms) * self.machine.sm.schedulers;
        let peak = f64::from(slots * self.machine.sm.issue_width.max(1));
        let mut soonest = f64::INFINITY;
        for (app, running) in self.apps.iter().enumerate() {
            if let Some(target) = running.load.target.filter(|_| !running.reported) {
                let left = target - self.progress(AppId(to_u16(app)));
                soonest = soonest.min(left / peak);
            }
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a cast from a float stays within the range"
        )]
        let soonest = soonest as Cycle;
        self.shared_state.queue.now() + soonest.clamp(LEAST_GAUGE, 1 << 40)
    }

    pub(crate) fn on_counters_due(&mut self) {
        self.close_books();
        for app in 0..self.apps.len() {
            let target = self.apps[app].load.target.filter(|_| !self.apps[app].reported);
            if target.is_some_and(|target| self.progress(AppId(to_u16(app))) >= target) {
                self.halt(app);
            }
        }
        if self.apps.iter().any(|app| app.load.target.is_some() && !app.reported) {
            self.shared_state.queue.schedule(self.next_gauge(), Event::CountersDue);
        }
    }
}
