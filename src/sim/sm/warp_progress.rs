//! How a warp goes from event to event: intervals, waits, barriers, the end.

use gpumodel_core::units::to_usize;

use crate::gpu::shared_state::SharedState;
use crate::interval::StretchEnd;
use crate::sm::Sm;
use crate::sm::scheduler::NEVER;
use crate::sm::warp::{Blocked, IntervalEnd};

impl Sm {
    /// An interval of a scheduler may be complete.
    pub(crate) fn on_scheduler(&mut self, scheduler: u8, shared_state: &mut SharedState) {
        let now = shared_state.queue.now();
        let index = usize::from(scheduler);
        if self.warps.issue.schedulers[index].due != now {
            return;
        }
        self.warps.issue.schedulers[index].due = NEVER;
        self.warps.issue.advance(index, shared_state);
        let mut finished = std::mem::take(&mut self.finished);
        self.warps.issue.schedulers[index].completed(&mut finished, &mut shared_state.counts);
        for &(warp, early) in &finished {
            self.warps.charge_interval(warp, shared_state);
            self.go_on(warp, early, shared_state);
        }
        finished.clear();
        self.finished = finished;
        self.warps.issue.settle(index, shared_state);
    }

    /// A warp's wait is over, or its CTA has just come.
    pub(crate) fn on_wake(&mut self, warp: u16, shared_state: &mut SharedState) {
        let index = self.warps.issue.scheduler_of(warp);
        self.warps.issue.advance(index, shared_state);
        let resident = self.warps.resident(warp);
        resident.waking = false;
        let (blocked, cta) = (resident.blocked, usize::from(resident.cta));
        match blocked {
            Blocked::Stopped => {
                self.leave_if_quiet(cta, shared_state);
                return self.warps.issue.settle(index, shared_state);
            }
            Blocked::Draining | Blocked::Leaving => {
                self.warps.unblock(warp, shared_state);
                return self.end_warp(warp, shared_state);
            }
            Blocked::No => {}
            Blocked::Queue
            | Blocked::Load(_)
            | Blocked::Barrier(_)
            | Blocked::Fetch
            | Blocked::Fence
            | Blocked::Groups(_)
            | Blocked::Result
            | Blocked::Registers(_)
            | Blocked::Object => {
                self.warps.unblock(warp, shared_state);
                self.warps.resume(warp, true, shared_state);
            }
        }
        self.begin_interval(warp, 0.0, shared_state);
        self.warps.issue.settle(index, shared_state);
    }

    /// The next interval of a warp; those without cycles are passed through.
    pub(super) fn begin_interval(&mut self, warp: u16, ahead: f64, shared_state: &mut SharedState) {
        let index = self.warps.issue.scheduler_of(warp);
        let resident = self.warps.resident(warp);
        let kernel = resident.kernel;
        let now = shared_state.queue.now();
        let (profile, counts) = shared_state.profile_and_counts(kernel);
        let inner = self.fetch.is_some() || self.lsu.constants.is_some();
        let counted = inner.then_some((counts.fetch, counts.constant));
        let mut window = self.fetch.as_mut().map(|fetch| fetch.window(index, kernel, now));
        let interval = resident.gather(profile, counts, window.as_mut());
        resident.lead = self.params.lead.of(&interval);
        if interval.slots == 0 {
            return self.go_on(warp, ahead, shared_state);
        }
        self.counts.warp_instructions += u64::from(interval.slots);
        if let Some((fetch, constant)) = &counted {
            self.counts.fetch.grow(fetch, &counts.fetch);
            self.counts.constant.grow(constant, &counts.constant);
        }
        let age = resident.age;
        self.warps.issue.schedulers[index].start(warp, kernel, age, &interval, ahead, counts);
    }

    /// A warp has issued its interval, `ahead` cycles before now.
    pub(super) fn go_on(&mut self, warp: u16, ahead: f64, shared_state: &mut SharedState) {
        match self.warps.resident(warp).interval_end {
            IntervalEnd::More => self.begin_interval(warp, ahead, shared_state),
            IntervalEnd::Access { instruction, slot } => {
                if self.lsu.queue.takes_from(self.warps.issue.scheduler_of(warp)) {
                    self.issue_access(warp, instruction, slot, shared_state);
                    self.begin_interval(warp, ahead, shared_state);
                } else {
                    self.await_queue(warp);
                }
            }
            IntervalEnd::Stretch(end) => self.end_stretch(warp, end, ahead, shared_state),
            IntervalEnd::Missing(line) => self.await_code(warp, line, shared_state),
            IntervalEnd::Exit => self.exit(warp, shared_state),
        }
    }

    /// A warp waits for a place in the load/store queue. Where operand collectors limit, one that
    /// had something else to issue could not do so while others had memory instructions.
    fn await_queue(&mut self, warp: u16) {
        let first = self.params.collectors.is_some() && self.warps.resident(warp).only_access;
        self.lsu.queue.block(warp, first);
        self.warps.block(warp, Blocked::Queue);
    }

    /// A place in the load/store queue has become free for a waiting warp.
    pub(super) fn leave_queue(&mut self, warp: u16, shared_state: &mut SharedState) {
        let index = self.warps.issue.scheduler_of(warp);
        self.warps.issue.advance(index, shared_state);
        self.warps.unblock(warp, shared_state);
        let resident = self.warps.resident(warp);
        resident.lead = 0;
        if let IntervalEnd::Access { instruction, slot } = resident.interval_end {
            self.issue_access(warp, instruction, slot, shared_state);
        }
        self.begin_interval(warp, 0.0, shared_state);
        self.warps.issue.settle(index, shared_state);
    }

    fn end_stretch(
        &mut self,
        warp: u16,
        end: StretchEnd,
        ahead: f64,
        shared_state: &mut SharedState,
    ) {
        let now = shared_state.queue.now();
        let resident = self.warps.resident(warp);
        let (done, blocked) = match end {
            StretchEnd::Barrier(operands) => {
                let warps = &mut self.warps;
                if self.ctas.arrive_at_barrier(warp, operands, warps, shared_state) {
                    self.pass(warp, ahead, shared_state);
                }
                return;
            }
            StretchEnd::Registers(count) => {
                return self.set_registers(warp, count, ahead, shared_state);
            }
            StretchEnd::Segment | StretchEnd::AsyncCommit => {
                return self.pass(warp, ahead, shared_state);
            }
            StretchEnd::Load(slot) => (resident.ready_at(slot), Blocked::Load(slot)),
            StretchEnd::Fence => (resident.all_done_at(), Blocked::Fence),
            StretchEnd::Result(0) => return self.leave_active(warp, shared_state),
            StretchEnd::Result(cycles) => (Some(now + u64::from(cycles)), Blocked::Result),
            StretchEnd::ObjectWait => (self.ctas.object_ready_at(resident), Blocked::Object),
            StretchEnd::AsyncWait { allowed, known } => {
                let guessed = !known && resident.has_groups();
                let counts = &mut shared_state.counts[to_usize(resident.kernel)];
                counts.assumed_waits += u64::from(guessed);
                (resident.groups_done_at(allowed), Blocked::Groups(allowed))
            }
        };
        if done.is_some_and(|cycle| cycle <= now) {
            return self.pass(warp, ahead, shared_state);
        }
        let cta = usize::from(resident.cta);
        self.warps.block(warp, blocked);
        if let Some(cycle) = done {
            self.warps.wake_at(warp, cycle, shared_state);
        } else if blocked == Blocked::Object {
            self.ctas.release_objects(cta, &mut self.warps, shared_state);
        }
    }

    /// A warp wants `count` registers per thread: it goes on when it has them.
    fn set_registers(&mut self, warp: u16, count: u32, ahead: f64, shared_state: &mut SharedState) {
        if self.ctas.set_registers(warp, count, &mut self.warps, shared_state) {
            self.pass(warp, ahead, shared_state);
        } else {
            let cta = usize::from(self.warps.resident(warp).cta);
            self.warps.block(warp, Blocked::Registers(count));
            self.ctas.release_objects(cta, &mut self.warps, shared_state);
        }
    }

    /// A warp leaves the active ones and is ready for another place at once.
    fn leave_active(&mut self, warp: u16, shared_state: &mut SharedState) {
        self.warps.scheduler(warp).leave(warp, true);
        self.warps.resume(warp, true, shared_state);
        // What it is ahead of time it has at its pace alone, not at that of the busy unit.
        self.begin_interval(warp, 0.0, shared_state);
    }

    fn pass(&mut self, warp: u16, ahead: f64, shared_state: &mut SharedState) {
        self.warps.resume(warp, false, shared_state);
        self.begin_interval(warp, ahead, shared_state);
    }

    /// A warp waits for a line of code.
    fn await_code(&mut self, warp: u16, line: u32, shared_state: &mut SharedState) {
        let fetch = self.fetch.as_mut().expect("lines are missing where caches are");
        let resident = self.warps.resident(warp);
        resident.delivered = Some(line);
        let code = (resident.kernel, line);
        let sleeper = (warp, self.warps.issue.scheduler_of(warp));
        let ready = fetch.sleep(sleeper, code, &mut self.counts.fetch, shared_state);
        self.warps.block(warp, Blocked::Fetch);
        if let Some(cycle) = ready {
            fetch.set_alarm(cycle, shared_state);
        }
        fetch.send(self.lsu.constants.as_deref(), shared_state);
    }

    /// A warp has issued its last instruction: it ends when this has left the
    /// pipeline and its accesses are done, see [`crate::config::SmSpec::posted_stores`].
    fn exit(&mut self, warp: u16, shared_state: &mut SharedState) {
        let now = shared_state.queue.now();
        let leaves = now + self.params.exit_cycles;
        let resident = self.warps.resident(warp);
        let (drained, done) = (resident.drained_at().is_some(), resident.last_done);
        if drained && done.max(leaves) <= now {
            return self.end_warp(warp, shared_state);
        }
        let drains = !drained || done > leaves;
        resident.last_done = done.max(leaves);
        let cta = usize::from(resident.cta);
        self.warps.block(warp, if drains { Blocked::Draining } else { Blocked::Leaving });
        if drained {
            self.warps.wake_at(warp, done.max(leaves), shared_state);
        }
        self.ctas.open_barriers(cta, &mut self.warps, shared_state);
    }

    /// A warp has ended and its accesses are done.
    fn end_warp(&mut self, warp: u16, shared_state: &mut SharedState) {
        self.warps.charge(warp, shared_state);
        self.warps.scheduler(warp).leave(warp, false);
        let ended = self.warps.remove(warp).expect("only resident warps end");
        if ended.outstanding > 0 {
            shared_state.stores_left[to_usize(ended.kernel)] += ended.outstanding;
            self.lsu.leave_behind(warp, ended.kernel);
        }
        self.ctas.end_warp(&ended, &mut self.warps, shared_state);
        self.leave_if_quiet(usize::from(ended.cta), shared_state);
    }
}
