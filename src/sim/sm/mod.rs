//! One streaming multiprocessor: resident CTAs and warps, schedulers, load/store unit, L1;
//! and how a warp goes from event to event: intervals, waits, barriers, the end.

mod barrier_objects;
mod cluster;
pub(crate) mod coalesce;
mod cta;
mod cta_resources;
mod fetch;
pub(crate) mod hot;
mod line_cache;
mod lost_arrival;
mod lsu;
mod params;
mod repeat;
mod scheduler;
mod vacate;
mod warp;
mod warp_path;

use std::collections::VecDeque;

use gpumodel_core::units::{AppId, Cycle};

use crate::config::Machine;
use crate::counters::{SmCounts, StallStack};
use crate::gpu::event_queue::Event;
use crate::gpu::shared_state::SharedState;
use crate::interval::StretchEnd;
pub use coalesce::{access_sectors, bank_conflicts};
use cta::Cta;
pub(crate) use cta::{Arrival, Duty};
pub(crate) use cta_resources::Bounds;
use cta_resources::CtaResources;
pub use cta_resources::{Limit, Need};
use fetch::Fetch;
pub(crate) use lost_arrival::WaitingCta;
use lsu::Lsu;
pub(crate) use lsu::queue::Freed;
use params::Params;
use scheduler::NEVER;
use scheduler::issue_stage::IssueStage;
pub use scheduler::policy::SchedulerPolicy;
use scheduler::stall_accounting::Wait;
use vacate::ContextTransfer;
pub(crate) use vacate::{Departure, Leave, Saved};
use warp::{Blocked, IntervalEnd, Warp};
pub(crate) use warp_path::{Path, WorkerPath};

/// One SM.
#[derive(Debug)]
pub(crate) struct Sm {
    id: u16,
    params: Params,
    issue: IssueStage,
    /// By warp slot; empty before the first CTA.
    warps: Vec<Option<Warp>>,
    ctas: Vec<Option<Cta>>,
    resources: CtaResources,
    lsu: Lsu,
    /// Instruction caches, where the machine has them.
    fetch: Option<Fetch>,
    /// When the barriers have taken all arrivals so far.
    barriers_free: Cycle,
    counts: SmCounts,
    started: u64,
    /// Intervals that have just completed: warp and cycles ahead.
    finished: Vec<(u16, f64)>,
    /// Warps whose instructions have come.
    woken: Vec<u16>,
    /// CTAs that have left and are still to be reported.
    departed: Vec<Departure>,
    /// State of CTAs that is being saved or restored.
    transfers: VecDeque<ContextTransfer>,
}

impl Sm {
    /// An empty SM number `id` of `machine`, in front of a memory system that keeps aligned
    /// blocks of `block_bytes` in one slice.
    pub(crate) fn new(id: u16, machine: &Machine, block_bytes: u64) -> Self {
        Self {
            id,
            params: Params::new(machine, block_bytes),
            issue: IssueStage::new(id, machine),
            warps: Vec::new(),
            ctas: (0..machine.sm.max_ctas).map(|_| None).collect(),
            resources: CtaResources::whole(machine),
            lsu: Lsu::new(machine),
            fetch: machine.fetch.as_ref().map(|spec| Fetch::new(spec, machine)),
            barriers_free: 0,
            counts: SmCounts::default(),
            started: 0,
            finished: Vec::new(),
            woken: Vec::new(),
            departed: Vec::new(),
            transfers: VecDeque::new(),
        }
    }

    fn warp(&mut self, warp: u16) -> &mut Warp {
        self.warps[usize::from(warp)].as_mut().expect("an event names a resident warp")
    }

    /// Free warp slots, for the dispatcher.
    pub(crate) fn free_warps(&self) -> u32 {
        self.resources.free_warps()
    }

    /// True when a CTA has left since [`Sm::take_departed`] was called last.
    #[inline]
    pub(crate) fn has_departed(&self) -> bool {
        !self.departed.is_empty()
    }

    /// CTAs that have left since the last call.
    pub(crate) fn take_departed(&mut self, out: &mut Vec<Departure>) {
        out.append(&mut self.departed);
    }

    /// What it has counted so far.
    pub(crate) fn counts(&self) -> SmCounts {
        let mut counts = self.counts.clone();
        self.issue.add_stalls(None, &mut counts.stalls);
        counts
    }

    /// Slot-cycles of one application by cause, up to the last accounting.
    pub(crate) fn stalls_of(&self, app: AppId) -> StallStack {
        let mut stalls = StallStack::default();
        self.issue.add_stalls(Some(app), &mut stalls);
        stalls
    }

    /// Those of them that a full load/store queue or active set takes.
    pub(crate) fn blocked_of(&self, app: AppId) -> f64 {
        self.issue.blocked(app)
    }

    /// Accounts the slot-cycles of all schedulers up to now.
    pub(crate) fn account_stalls(&mut self, shared_state: &mut SharedState) {
        self.issue.account(shared_state);
    }

    /// One line on what is resident, for the dump of a stuck run.
    pub(crate) fn describe(&self) -> Option<String> {
        let ctas = self.ctas.iter().flatten().count();
        let waits: Vec<String> = self
            .warps
            .iter()
            .enumerate()
            .filter_map(|(slot, warp)| Some(format!("{slot}:{:?}", warp.as_ref()?.blocked)))
            .take(8)
            .collect();
        let stalled = self.lsu.queue.stalled;
        (ctas > 0).then(|| {
            format!(
                "SM {}: {ctas} CTAs, load/store waits for {stalled:?}, warps {}",
                self.id,
                waits.join(" ")
            )
        })
    }

    /// An interval of a scheduler may be complete.
    pub(crate) fn on_scheduler(&mut self, scheduler: u8, shared_state: &mut SharedState) {
        let now = shared_state.queue.now();
        let index = usize::from(scheduler);
        if self.issue.schedulers[index].due != now {
            return;
        }
        self.issue.schedulers[index].due = NEVER;
        self.issue.advance(index, shared_state);
        let mut finished = std::mem::take(&mut self.finished);
        self.issue.schedulers[index].completed(&mut finished, &mut shared_state.counts);
        for &(warp, early) in &finished {
            self.charge_interval(warp, shared_state);
            self.go_on(warp, early, shared_state);
        }
        finished.clear();
        self.finished = finished;
        self.issue.settle(index, shared_state);
    }

    /// A warp's wait is over, or its CTA has just come.
    pub(crate) fn on_wake(&mut self, warp: u16, shared_state: &mut SharedState) {
        let index = self.issue.scheduler_of(warp);
        self.issue.advance(index, shared_state);
        let blocked = self.warp(warp).blocked;
        self.warp(warp).waking = false;
        if blocked == Blocked::Stopped {
            let place = usize::from(self.warp(warp).cta);
            self.leave_if_quiet(place, shared_state);
            return self.issue.settle(index, shared_state);
        }
        if matches!(blocked, Blocked::Draining | Blocked::Leaving) {
            self.unblock(warp, shared_state);
            return self.end_warp(warp, shared_state);
        }
        if blocked != Blocked::No {
            self.unblock(warp, shared_state);
            let kernel = self.warp(warp).kernel;
            let profile = shared_state.profile(kernel);
            let resident =
                self.warps[usize::from(warp)].as_mut().expect("a woken warp is resident");
            resident.resume(profile, true);
        }
        self.begin_interval(warp, 0.0, shared_state);
        self.issue.settle(index, shared_state);
    }

    /// Holds the schedulers while memory instructions have all operand collectors.
    #[inline]
    fn hold_issue(&mut self, shared_state: &mut SharedState) {
        self.issue.hold(self.lsu.queue.len() >= self.params.collectors, shared_state);
    }

    /// The next interval of a warp; those without cycles are passed through.
    fn begin_interval(&mut self, warp: u16, ahead: f64, shared_state: &mut SharedState) {
        let index = self.issue.scheduler_of(warp);
        let resident =
            self.warps[usize::from(warp)].as_mut().expect("only resident warps begin intervals");
        let kernel = resident.kernel;
        let now = shared_state.queue.now();
        let (profile, counts) = shared_state.profile_and_counts(kernel);
        let inner = self.fetch.is_some() || self.lsu.constants.is_some();
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
        self.issue.schedulers[index].start(warp, kernel, age, &interval, ahead, counts);
    }

    /// A warp has issued its interval, `ahead` cycles before now.
    fn go_on(&mut self, warp: u16, ahead: f64, shared_state: &mut SharedState) {
        match self.warp(warp).interval_end {
            IntervalEnd::More => self.begin_interval(warp, ahead, shared_state),
            IntervalEnd::Access { instruction, slot } => {
                if self.lsu.queue.has_room() {
                    self.issue_access(warp, instruction, slot, shared_state);
                    self.begin_interval(warp, ahead, shared_state);
                } else {
                    self.lsu.queue.blocked.push_back(warp);
                    self.block(warp, Blocked::Queue);
                }
            }
            IntervalEnd::Stretch(end) => self.end_stretch(warp, end, ahead, shared_state),
            IntervalEnd::Missing(line) => self.await_code(warp, line, shared_state),
            IntervalEnd::Exit => self.exit(warp, shared_state),
        }
    }

    /// A place in the load/store queue has become free for a waiting warp.
    fn leave_queue(&mut self, warp: u16, shared_state: &mut SharedState) {
        let index = self.issue.scheduler_of(warp);
        self.issue.advance(index, shared_state);
        self.unblock(warp, shared_state);
        self.warp(warp).lead = 0;
        if let IntervalEnd::Access { instruction, slot } = self.warp(warp).interval_end {
            self.issue_access(warp, instruction, slot, shared_state);
        }
        self.begin_interval(warp, 0.0, shared_state);
        self.issue.settle(index, shared_state);
    }

    fn end_stretch(
        &mut self,
        warp: u16,
        end: StretchEnd,
        ahead: f64,
        shared_state: &mut SharedState,
    ) {
        let resident = self.warp(warp);
        let (done, blocked) = match end {
            StretchEnd::Barrier(operands) => {
                return self.arrive_at_barrier(warp, operands, ahead, shared_state);
            }
            StretchEnd::Segment | StretchEnd::AsyncCommit => {
                return self.pass(warp, ahead, shared_state);
            }
            StretchEnd::Load(slot) => (resident.ready_at(slot), Blocked::Load(slot)),
            StretchEnd::Fence => (resident.all_done_at(), Blocked::Fence),
            StretchEnd::Result(0) => return self.leave_active(warp, shared_state),
            StretchEnd::Result(cycles) => {
                (Some(shared_state.queue.now() + u64::from(cycles)), Blocked::Result)
            }
            StretchEnd::ObjectWait => (self.object_ready_at(warp), Blocked::Object),
            StretchEnd::AsyncWait { allowed, known } => {
                let guessed = !known && resident.has_groups();
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
        } else if blocked == Blocked::Object {
            let place = usize::from(self.warp(warp).cta);
            self.release_objects(place, shared_state);
        }
    }

    /// A warp leaves the active ones and is ready for another place at once.
    fn leave_active(&mut self, warp: u16, shared_state: &mut SharedState) {
        let index = self.issue.scheduler_of(warp);
        self.issue.schedulers[index].leave(warp, true);
        let resident = self.warps[usize::from(warp)].as_mut().expect("only resident warps leave");
        resident.resume(shared_state.profile(resident.kernel), true);
        // What it is ahead of time it has at its pace alone, not at that of the busy unit.
        self.begin_interval(warp, 0.0, shared_state);
    }

    fn pass(&mut self, warp: u16, ahead: f64, shared_state: &mut SharedState) {
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

    fn block(&mut self, warp: u16, blocked: Blocked) {
        let index = self.issue.scheduler_of(warp);
        let resident = self.warp(warp);
        resident.blocked = blocked;
        let kernel = resident.kernel;
        let (long, wait) = (resident.waits_long(), cause(resident));
        self.issue.schedulers[index].note_wait(warp, kernel, wait, true);
        if long {
            self.issue.schedulers[index].leave(warp, false);
        }
    }

    fn unblock(&mut self, warp: u16, shared_state: &mut SharedState) {
        self.charge(warp, shared_state);
        let index = self.issue.scheduler_of(warp);
        let resident = self.warp(warp);
        let (kernel, wait) = (resident.kernel, cause(resident));
        resident.blocked = Blocked::No;
        self.issue.schedulers[index].note_wait(warp, kernel, wait, false);
    }

    /// A warp's access is done: wakes the warp when that was what it waited for.
    fn wake_if_met(&mut self, warp: u16, shared_state: &mut SharedState) {
        let resident = self.warp(warp);
        let met = match resident.blocked {
            Blocked::Load(slot) => resident.ready_at(slot),
            Blocked::Fence | Blocked::Draining => resident.all_done_at(),
            Blocked::Groups(allowed) => resident.groups_done_at(allowed),
            Blocked::No
            | Blocked::Queue
            | Blocked::Barrier(_)
            | Blocked::Object
            | Blocked::Result
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
    fn wake_at(&mut self, warp: u16, cycle: Cycle, shared_state: &mut SharedState) {
        let resident = self.warp(warp);
        if !resident.waking {
            resident.waking = true;
            shared_state.queue.schedule(cycle, Event::Wake { sm: self.id, warp });
        }
    }
}

/// Why `warp` waits. A load from its SM's shared memory is a short wait, as in GPGPU-Sim, whose
/// long operations are loads of other spaces (`Scoreboard::reserveRegister`).
fn cause(warp: &Warp) -> Wait {
    match warp.blocked {
        Blocked::Load(_) if !warp.waits_long() => Wait::Result,
        Blocked::Queue => Wait::Resource,
        Blocked::Barrier(_) | Blocked::Object => Wait::Barrier,
        Blocked::Result => Wait::Result,
        Blocked::Fetch | Blocked::Leaving => Wait::Fetch,
        Blocked::No
        | Blocked::Load(_)
        | Blocked::Fence
        | Blocked::Groups(_)
        | Blocked::Draining
        | Blocked::Stopped => Wait::Memory,
    }
}
