//! How a warp goes from event to event: intervals, waits, barriers, the end.

use gpumodel_core::units::Cycle;

use super::Sm;
use super::scheduler::NEVER;
use super::stall_accounting::Wait;
use super::warp::{Blocked, Meets};
use crate::gpu::event_queue::Event;
use crate::gpu::shared_state::SharedState;
use crate::interval::StretchEnd;

impl Sm {
    /// An interval of a scheduler may be complete.
    pub(crate) fn on_scheduler(&mut self, scheduler: u8, shared_state: &mut SharedState) {
        let now = shared_state.queue.now();
        let index = usize::from(scheduler);
        if self.schedulers[index].due != now {
            return;
        }
        self.schedulers[index].due = NEVER;
        self.schedulers[index].advance(now, &mut shared_state.counts);
        let mut finished = std::mem::take(&mut self.finished);
        self.schedulers[index].completed(&mut finished, &mut shared_state.counts);
        for &(warp, early) in &finished {
            self.go_on(warp, early, shared_state);
        }
        finished.clear();
        self.finished = finished;
        self.settle(index, shared_state);
    }

    /// A warp's wait is over, or its CTA has just come.
    pub(crate) fn on_wake(&mut self, warp: u16, shared_state: &mut SharedState) {
        let now = shared_state.queue.now();
        let index = self.scheduler_of(warp);
        self.schedulers[index].advance(now, &mut shared_state.counts);
        let blocked = self.warp(warp).blocked;
        self.warp(warp).waking = false;
        if blocked == Blocked::Stopped {
            let place = usize::from(self.warp(warp).cta);
            self.leave_if_quiet(place, shared_state);
            return self.settle(index, shared_state);
        }
        if matches!(blocked, Blocked::Draining | Blocked::Leaving) {
            self.unblock(warp, blocked);
            return self.end_warp(warp, shared_state);
        }
        if blocked != Blocked::No {
            self.unblock(warp, blocked);
            let kernel = self.warp(warp).kernel;
            let profile = shared_state.profile(kernel);
            let resident =
                self.warps[usize::from(warp)].as_mut().expect("a woken warp is resident");
            resident.resume(profile, true);
        }
        self.begin_interval(warp, 0.0, shared_state);
        self.settle(index, shared_state);
    }

    /// Holds the schedulers while memory instructions have all operand collectors.
    #[inline]
    pub(super) fn hold_issue(&mut self, shared_state: &mut SharedState) {
        let held = self.load_store.len() >= self.params.collectors;
        if held != self.issue_held {
            self.issue_held = held;
            for index in 0..self.schedulers.len() {
                self.schedulers[index].advance(shared_state.queue.now(), &mut shared_state.counts);
                self.schedulers[index].hold(held);
                self.settle(index, shared_state);
            }
        }
    }

    /// Settles what has changed for a scheduler.
    pub(super) fn settle(&mut self, index: usize, shared_state: &mut SharedState) {
        if self.schedulers[index].is_stale() {
            self.divide_units(index, shared_state);
        }
        self.schedule_completion(index, shared_state);
    }

    /// Schedules the next completion of a scheduler, if it has changed.
    pub(super) fn schedule_completion(&mut self, index: usize, shared_state: &mut SharedState) {
        let before = self.schedulers[index].due;
        let due = self.schedulers[index].settle(shared_state.queue.now());
        if due != NEVER && due != before {
            let scheduler = u8::try_from(index).expect("an SM has few schedulers");
            shared_state.queue.schedule(due, Event::Scheduler { sm: self.id, scheduler });
        }
    }

    /// The next interval of a warp; those without cycles are passed through.
    pub(super) fn begin_interval(&mut self, warp: u16, ahead: f64, shared_state: &mut SharedState) {
        let index = self.scheduler_of(warp);
        let resident =
            self.warps[usize::from(warp)].as_mut().expect("only resident warps begin intervals");
        let kernel = resident.kernel;
        let now = shared_state.queue.now();
        let (profile, counts) = shared_state.profile_and_counts(kernel);
        let inner = self.fetch.is_some() || self.constants.is_some();
        let counted = inner.then_some((counts.fetch, counts.constant));
        let mut window = self.fetch.as_mut().map(|fetch| fetch.window(index, kernel, now));
        let interval = resident.gather(profile, counts, window.as_mut());
        resident.lead = self.params.lead.of(&interval);
        self.counts.warp_instructions += u64::from(interval.slots);
        if let Some((fetch, constant)) = &counted {
            self.counts.fetch.grow(fetch, &counts.fetch);
            self.counts.constant.grow(constant, &counts.constant);
        }
        if interval.slots == 0 {
            return self.go_on(warp, ahead, shared_state);
        }
        let age = resident.age;
        self.schedulers[index].start(warp, kernel, age, &interval, ahead, counts);
    }

    /// A warp has issued its interval, `ahead` cycles before now.
    pub(super) fn go_on(&mut self, warp: u16, ahead: f64, shared_state: &mut SharedState) {
        match self.warp(warp).meets {
            Meets::More => self.begin_interval(warp, ahead, shared_state),
            Meets::Access { instruction, slot } => {
                if self.load_store.has_room() {
                    self.issue_access(warp, instruction, slot, shared_state);
                    self.begin_interval(warp, ahead, shared_state);
                } else {
                    self.load_store.blocked.push_back(warp);
                    self.block(warp, Blocked::Queue);
                }
            }
            Meets::Stretch(end) => self.meet(warp, end, ahead, shared_state),
            Meets::Missing(line) => self.await_code(warp, line, shared_state),
            Meets::Exit => self.exit(warp, shared_state),
        }
    }

    /// A place in the load/store queue has become free for a waiting warp.
    pub(super) fn leave_queue(&mut self, warp: u16, shared_state: &mut SharedState) {
        let now = shared_state.queue.now();
        let index = self.scheduler_of(warp);
        self.schedulers[index].advance(now, &mut shared_state.counts);
        self.unblock(warp, Blocked::Queue);
        self.warp(warp).lead = 0;
        if let Meets::Access { instruction, slot } = self.warp(warp).meets {
            self.issue_access(warp, instruction, slot, shared_state);
        }
        self.begin_interval(warp, 0.0, shared_state);
        self.settle(index, shared_state);
    }

    fn meet(&mut self, warp: u16, end: StretchEnd, ahead: f64, shared_state: &mut SharedState) {
        let resident = self.warp(warp);
        let (done, blocked) = match end {
            StretchEnd::Barrier(operands) => {
                return self.meet_barrier(warp, operands, ahead, shared_state);
            }
            StretchEnd::Segment | StretchEnd::AsyncCommit => {
                return self.pass(warp, ahead, shared_state);
            }
            StretchEnd::Load(slot) => (resident.ready_at(slot), Blocked::Load(slot)),
            StretchEnd::Fence => (resident.all_done_at(), Blocked::Fence),
            StretchEnd::AsyncWait { allowed, told } => {
                let guessed = !told && resident.has_groups();
                let done = resident.groups_done_at(allowed);
                let kernel = gpumodel_core::units::to_usize(resident.kernel);
                shared_state.counts[kernel].assumed_waits += u64::from(guessed);
                (done, Blocked::Groups(allowed))
            }
        };
        if done.is_some_and(|cycle| cycle <= shared_state.queue.now()) {
            return self.pass(warp, ahead, shared_state);
        }
        self.block(warp, blocked);
        if let Some(cycle) = done {
            self.wake_at(warp, cycle, shared_state);
        }
    }

    pub(super) fn pass(&mut self, warp: u16, ahead: f64, shared_state: &mut SharedState) {
        let resident = self.warps[usize::from(warp)].as_mut().expect("only resident warps pass");
        resident.resume(shared_state.profile(resident.kernel), false);
        self.begin_interval(warp, ahead, shared_state);
    }

    /// A warp has issued its last instruction: it ends when this has left the
    /// pipeline and its accesses are done.
    fn exit(&mut self, warp: u16, shared_state: &mut SharedState) {
        let now = shared_state.queue.now();
        let leaves = now + self.params.exit_cycles;
        let resident = self.warp(warp);
        let (outstanding, done) = (resident.outstanding, resident.last_done);
        if outstanding == 0 && done.max(leaves) <= now {
            return self.end_warp(warp, shared_state);
        }
        let drains = outstanding > 0 || done > leaves;
        resident.last_done = done.max(leaves);
        self.block(warp, if drains { Blocked::Draining } else { Blocked::Leaving });
        if outstanding == 0 {
            self.wake_at(warp, done.max(leaves), shared_state);
        }
        let place = usize::from(self.warp(warp).cta);
        self.open_barriers(place, shared_state);
    }

    pub(super) fn block(&mut self, warp: u16, blocked: Blocked) {
        let index = self.scheduler_of(warp);
        let resident = self.warp(warp);
        resident.blocked = blocked;
        let kernel = resident.kernel;
        let long = resident.waits_long();
        self.schedulers[index].note_wait(kernel, cause(blocked), true);
        if long {
            self.schedulers[index].leave(warp);
        }
    }

    pub(super) fn unblock(&mut self, warp: u16, blocked: Blocked) {
        let index = self.scheduler_of(warp);
        let resident = self.warp(warp);
        resident.blocked = Blocked::No;
        let kernel = resident.kernel;
        self.schedulers[index].note_wait(kernel, cause(blocked), false);
    }

    /// A warp's access is done: wakes the warp when that was what it waited for.
    pub(super) fn wake_if_met(&mut self, warp: u16, shared_state: &mut SharedState) {
        let resident = self.warp(warp);
        let met = match resident.blocked {
            Blocked::Load(slot) => resident.ready_at(slot),
            Blocked::Fence | Blocked::Draining => resident.all_done_at(),
            Blocked::Groups(allowed) => resident.groups_done_at(allowed),
            Blocked::No
            | Blocked::Queue
            | Blocked::Barrier(_)
            | Blocked::Fetch
            | Blocked::Leaving => None,
            Blocked::Stopped => {
                let place = usize::from(resident.cta);
                return self.leave_if_quiet(place, shared_state);
            }
        };
        if let Some(at) = met {
            self.wake_at(warp, at, shared_state);
        }
    }

    /// Schedules the end of a warp's wait, once.
    pub(super) fn wake_at(&mut self, warp: u16, cycle: Cycle, shared_state: &mut SharedState) {
        let resident = self.warp(warp);
        if !resident.waking {
            resident.waking = true;
            shared_state.queue.schedule(cycle, Event::Wake { sm: self.id, warp });
        }
    }
}

fn cause(blocked: Blocked) -> Wait {
    match blocked {
        Blocked::Queue => Wait::Resource,
        Blocked::Barrier(_) => Wait::Barrier,
        Blocked::Fetch | Blocked::Leaving => Wait::Fetch,
        _ => Wait::Memory,
    }
}
