//! How a warp goes from event to event: bursts, waits, barriers, the end.

use gpumodel_core::units::Cycle;

use super::super::chip::Chip;
use super::super::event::Event;
use super::super::profile::StretchEnd;
use super::Sm;
use super::ledger::Wait;
use super::scheduler::NEVER;
use super::warp::{Blocked, Meets};

impl Sm {
    /// A burst of a scheduler may be complete.
    pub(in super::super) fn on_scheduler(&mut self, scheduler: u8, chip: &mut Chip) {
        let now = chip.queue.now();
        let index = usize::from(scheduler);
        if self.schedulers[index].due != now {
            return;
        }
        self.schedulers[index].due = NEVER;
        self.schedulers[index].advance(now, &mut chip.counts);
        let mut finished = std::mem::take(&mut self.finished);
        self.schedulers[index].completed(&mut finished, &mut chip.counts);
        for &(warp, early) in &finished {
            self.go_on(warp, early, chip);
        }
        finished.clear();
        self.finished = finished;
        self.settle(index, chip);
    }

    /// A warp's wait is over, or its CTA has just come.
    pub(in super::super) fn on_wake(&mut self, warp: u16, chip: &mut Chip) {
        let now = chip.queue.now();
        let index = self.scheduler_of(warp);
        self.schedulers[index].advance(now, &mut chip.counts);
        let blocked = self.warp(warp).blocked;
        self.warp(warp).waking = false;
        if blocked == Blocked::Stopped {
            let place = usize::from(self.warp(warp).cta);
            self.leave_if_quiet(place, chip);
            return self.settle(index, chip);
        }
        if matches!(blocked, Blocked::Draining | Blocked::Leaving) {
            self.unblock(warp, blocked);
            return self.end_warp(warp, chip);
        }
        if blocked != Blocked::No {
            self.unblock(warp, blocked);
            let kernel = self.warp(warp).kernel;
            let profile = chip.profile(kernel);
            let resident =
                self.warps[usize::from(warp)].as_mut().expect("a woken warp is resident");
            resident.resume(profile, true);
        }
        self.begin_burst(warp, 0.0, chip);
        self.settle(index, chip);
    }

    /// Holds the schedulers while memory instructions have all operand collectors.
    #[inline]
    pub(super) fn hold_issue(&mut self, chip: &mut Chip) {
        let held = self.load_store.len() >= self.params.collectors;
        if held != self.issue_held {
            self.issue_held = held;
            for index in 0..self.schedulers.len() {
                self.schedulers[index].advance(chip.queue.now(), &mut chip.counts);
                self.schedulers[index].hold(held);
                self.settle(index, chip);
            }
        }
    }

    /// Settles what has changed for a scheduler.
    pub(super) fn settle(&mut self, index: usize, chip: &mut Chip) {
        if self.schedulers[index].is_stale() {
            self.divide_units(index, chip);
        }
        self.schedule_completion(index, chip);
    }

    /// Schedules the next completion of a scheduler, if it has changed.
    pub(super) fn schedule_completion(&mut self, index: usize, chip: &mut Chip) {
        let before = self.schedulers[index].due;
        let due = self.schedulers[index].settle(chip.queue.now());
        if due != NEVER && due != before {
            let scheduler = u8::try_from(index).expect("an SM has few schedulers");
            chip.queue.schedule(due, Event::Scheduler { sm: self.id, scheduler });
        }
    }

    /// The next burst of a warp; those without cycles are passed through.
    pub(super) fn begin_burst(&mut self, warp: u16, ahead: f64, chip: &mut Chip) {
        let index = self.scheduler_of(warp);
        let resident =
            self.warps[usize::from(warp)].as_mut().expect("only resident warps begin bursts");
        let kernel = resident.kernel;
        let now = chip.queue.now();
        let (profile, counts) = chip.profile_and_counts(kernel);
        let inner = self.fetch.is_some() || self.constants.is_some();
        let counted = inner.then_some((counts.fetch, counts.constant));
        let mut window = self.fetch.as_mut().map(|fetch| fetch.window(index, kernel, now));
        let burst = resident.gather(profile, counts, window.as_mut());
        resident.lead = self.params.lead.of(&burst);
        self.counts.warp_instructions += u64::from(burst.slots);
        if let Some((fetch, constant)) = &counted {
            self.counts.fetch.grow(fetch, &counts.fetch);
            self.counts.constant.grow(constant, &counts.constant);
        }
        if burst.slots == 0 {
            return self.go_on(warp, ahead, chip);
        }
        let age = resident.age;
        self.schedulers[index].start(warp, kernel, age, &burst, ahead, counts);
    }

    /// A warp has issued its burst, `ahead` cycles before now.
    pub(super) fn go_on(&mut self, warp: u16, ahead: f64, chip: &mut Chip) {
        match self.warp(warp).meets {
            Meets::More => self.begin_burst(warp, ahead, chip),
            Meets::Access { instruction, slot } => {
                if self.load_store.has_room() {
                    self.issue_access(warp, instruction, slot, chip);
                    self.begin_burst(warp, ahead, chip);
                } else {
                    self.load_store.blocked.push_back(warp);
                    self.block(warp, Blocked::Queue);
                }
            }
            Meets::Stretch(end) => self.meet(warp, end, ahead, chip),
            Meets::Missing(line) => self.await_code(warp, line, chip),
            Meets::Exit => self.exit(warp, chip),
        }
    }

    /// A place in the load/store queue has become free for a waiting warp.
    pub(super) fn leave_queue(&mut self, warp: u16, chip: &mut Chip) {
        let now = chip.queue.now();
        let index = self.scheduler_of(warp);
        self.schedulers[index].advance(now, &mut chip.counts);
        self.unblock(warp, Blocked::Queue);
        self.warp(warp).lead = 0;
        if let Meets::Access { instruction, slot } = self.warp(warp).meets {
            self.issue_access(warp, instruction, slot, chip);
        }
        self.begin_burst(warp, 0.0, chip);
        self.settle(index, chip);
    }

    fn meet(&mut self, warp: u16, end: StretchEnd, ahead: f64, chip: &mut Chip) {
        let resident = self.warp(warp);
        let (done, blocked) = match end {
            StretchEnd::Barrier(meeting) => {
                return self.meet_barrier(warp, meeting, ahead, chip);
            }
            StretchEnd::Segment | StretchEnd::AsyncCommit => return self.pass(warp, ahead, chip),
            StretchEnd::Load(slot) => (resident.ready_at(slot), Blocked::Load(slot)),
            StretchEnd::Fence => (resident.all_done_at(), Blocked::Fence),
            StretchEnd::AsyncWait { allowed, told } => {
                let guessed = !told && resident.has_groups();
                let done = resident.groups_done_at(allowed);
                let kernel = gpumodel_core::units::to_usize(resident.kernel);
                chip.counts[kernel].assumed_waits += u64::from(guessed);
                (done, Blocked::Groups(allowed))
            }
        };
        if done.is_some_and(|cycle| cycle <= chip.queue.now()) {
            return self.pass(warp, ahead, chip);
        }
        self.block(warp, blocked);
        if let Some(cycle) = done {
            self.wake_at(warp, cycle, chip);
        }
    }

    pub(super) fn pass(&mut self, warp: u16, ahead: f64, chip: &mut Chip) {
        let resident = self.warps[usize::from(warp)].as_mut().expect("only resident warps pass");
        resident.resume(chip.profile(resident.kernel), false);
        self.begin_burst(warp, ahead, chip);
    }

    /// A warp has issued its last instruction: it ends when this has left the
    /// pipeline and its accesses are done.
    fn exit(&mut self, warp: u16, chip: &mut Chip) {
        let now = chip.queue.now();
        let leaves = now + self.params.exit_cycles;
        let resident = self.warp(warp);
        let (outstanding, done) = (resident.outstanding, resident.last_done);
        if outstanding == 0 && done.max(leaves) <= now {
            return self.end_warp(warp, chip);
        }
        let drains = outstanding > 0 || done > leaves;
        resident.last_done = done.max(leaves);
        self.block(warp, if drains { Blocked::Draining } else { Blocked::Leaving });
        if outstanding == 0 {
            self.wake_at(warp, done.max(leaves), chip);
        }
        let place = usize::from(self.warp(warp).cta);
        self.open_barriers(place, chip);
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
    pub(super) fn wake_if_met(&mut self, warp: u16, chip: &mut Chip) {
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
                return self.leave_if_quiet(place, chip);
            }
        };
        if let Some(at) = met {
            self.wake_at(warp, at, chip);
        }
    }

    /// Schedules the end of a warp's wait, once.
    pub(super) fn wake_at(&mut self, warp: u16, cycle: Cycle, chip: &mut Chip) {
        let resident = self.warp(warp);
        if !resident.waking {
            resident.waking = true;
            chip.queue.schedule(cycle, Event::Wake { sm: self.id, warp });
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
