//! The warps of one SM: their slots, what blocks and wakes them, and the stage that issues them.

use gpumodel_core::units::{Cycle, to_u16, to_u32, to_usize};

use crate::config::{Machine, WarpPlacement};
use crate::gpu::event_queue::Event;
use crate::gpu::shared_state::SharedState;
use crate::sm::Path;
use crate::sm::hot::charge;
use crate::sm::scheduler::Scheduler;
use crate::sm::scheduler::issue_stage::IssueStage;
use crate::sm::scheduler::stall_accounting::Wait;
use crate::sm::warp::{Blocked, Warp};

/// The warps of one SM.
#[derive(Debug)]
pub(super) struct Warps {
    sm: u16,
    pub(super) issue: IssueStage,
    /// By warp slot; empty before the first CTA.
    slots: Vec<Option<Warp>>,
    /// Slots of the SM.
    most: u32,
    placement: WarpPlacement,
    /// The scheduler that the next CTA begins at, where it matters.
    next_scheduler: usize,
    /// Warps that have come so far: the age of the youngest.
    started: u64,
}

impl Warps {
    /// No warps on SM `sm` of `machine`.
    pub(super) fn new(sm: u16, machine: &Machine) -> Self {
        Self {
            sm,
            issue: IssueStage::new(sm, machine),
            slots: Vec::new(),
            most: machine.sm.max_warps,
            placement: machine.sm.warp_placement,
            next_scheduler: 0,
            started: 0,
        }
    }

    /// The warp in a slot, if there is one.
    #[inline]
    pub(super) fn get(&self, warp: u16) -> Option<&Warp> {
        self.slots[usize::from(warp)].as_ref()
    }

    /// The same, to be changed.
    #[inline]
    pub(super) fn get_mut(&mut self, warp: u16) -> Option<&mut Warp> {
        self.slots[usize::from(warp)].as_mut()
    }

    /// The warp that an event, an operation or a CTA names.
    #[inline]
    pub(super) fn resident(&mut self, warp: u16) -> &mut Warp {
        self.get_mut(warp).expect("what names a warp ends before it")
    }

    /// The warps with their slots.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, &Warp)> {
        self.slots.iter().enumerate().filter_map(|(slot, warp)| Some((slot, warp.as_ref()?)))
    }

    /// The scheduler of a warp.
    #[inline]
    pub(super) fn scheduler(&mut self, warp: u16) -> &mut Scheduler {
        let index = self.issue.scheduler_of(warp);
        &mut self.issue.schedulers[index]
    }

    /// Makes the slots of an SM that has had no CTA yet.
    pub(super) fn make_slots(&mut self) {
        if self.slots.is_empty() {
            self.slots.resize_with(to_usize(self.most), || None);
        }
    }

    /// Starts the warps of a CTA, in the order of their paths, and returns their slots; those
    /// without instructions take none.
    pub(super) fn start(
        &mut self,
        (kernel, cta): (u32, u16),
        paths: impl Iterator<Item = Path>,
        shared_state: &mut SharedState,
    ) -> Vec<u16> {
        let mut warps = Vec::with_capacity(paths.size_hint().0);
        self.make_slots();
        let first = (self.placement != WarpPlacement::Slots).then_some(self.next_scheduler);
        let mut turns = 0;
        for path in paths {
            let slot = self.free_slot(first.map(|first| first + turns));
            turns += 1;
            self.started += 1;
            let (profile, counts) = shared_state.profile_and_counts(kernel);
            let warp = Warp::start(path, (kernel, cta), self.started, profile, counts);
            if let Some(mut warp) = warp {
                warp.log = shared_state.hot.as_ref().map(|_| Box::default());
                self.slots[slot] = Some(warp);
                warps.push(to_u16(slot));
            }
        }
        self.go_on(turns);
        warps
    }

    /// Takes back a warp that comes with its CTA, as the youngest, and returns its slot.
    pub(super) fn restore(&mut self, mut warp: Warp, cta: u16) -> u16 {
        let slot = self.free_slot(None);
        self.started += 1;
        (warp.cta, warp.age) = (cta, self.started);
        self.slots[slot] = Some(warp);
        to_u16(slot)
    }

    /// Takes a warp out of its slot.
    pub(super) fn remove(&mut self, warp: u16) -> Option<Warp> {
        self.slots[usize::from(warp)].take()
    }

    /// Chooses the scheduler of the next CTA after one of so many warps.
    fn go_on(&mut self, warps: usize) {
        let schedulers = self.issue.schedulers.len();
        let on = match self.placement {
            WarpPlacement::Slots => 0,
            WarpPlacement::Rotating => 1,
            WarpPlacement::Alternating if warps.is_multiple_of(schedulers) => schedulers / 2,
            WarpPlacement::Alternating => warps,
        };
        self.next_scheduler = (self.next_scheduler + on) % schedulers;
    }

    /// The lowest free slot, of the given scheduler (modulo their number) if it has one, else of
    /// the next that does.
    fn free_slot(&self, scheduler: Option<usize>) -> usize {
        let count = self.issue.schedulers.len();
        let free = |&slot: &usize| self.slots[slot].is_none();
        let slots = 0..self.slots.len();
        let found = match scheduler {
            None => slots.clone().find(free),
            Some(wanted) => (wanted..wanted + count)
                .find_map(|s| slots.clone().skip(s % count).step_by(count).find(free)),
        };
        found.expect("the room counts warp slots")
    }

    /// A warp goes on behind the end of a stretch; `settled` when it really waited.
    #[inline]
    pub(super) fn resume(&mut self, warp: u16, settled: bool, shared_state: &mut SharedState) {
        let resident = self.resident(warp);
        resident.resume(shared_state.profile(resident.kernel), settled);
    }

    /// A warp begins to wait.
    pub(super) fn block(&mut self, warp: u16, blocked: Blocked) {
        let resident = self.resident(warp);
        resident.blocked = blocked;
        let kernel = resident.kernel;
        let (long, wait) = (resident.waits_long(), cause(resident));
        let scheduler = self.scheduler(warp);
        scheduler.note_wait(warp, kernel, wait, true);
        if long {
            scheduler.leave(warp, false);
        }
    }

    /// A warp waits no longer.
    pub(super) fn unblock(&mut self, warp: u16, shared_state: &mut SharedState) {
        self.charge(warp, shared_state);
        let resident = self.resident(warp);
        let (kernel, wait) = (resident.kernel, cause(resident));
        resident.blocked = Blocked::No;
        self.scheduler(warp).note_wait(warp, kernel, wait, false);
    }

    /// Schedules the end of a warp's wait, once.
    pub(super) fn wake_at(&mut self, warp: u16, cycle: Cycle, shared_state: &mut SharedState) {
        let sm = self.sm;
        let resident = self.resident(warp);
        if !resident.waking {
            resident.waking = true;
            shared_state.queue.schedule(cycle, Event::Wake { sm, warp });
        }
    }

    /// A warp's access is done: wakes the warp when that was what it waited for. Returns the slot
    /// of its CTA where the warp is stopped: the CTA may have waited for this access.
    pub(super) fn wake_if_met(
        &mut self,
        warp: u16,
        shared_state: &mut SharedState,
    ) -> Option<usize> {
        let resident = self.resident(warp);
        let met = match resident.blocked {
            Blocked::Load(slot) => resident.ready_at(slot),
            Blocked::Fence => resident.all_done_at(),
            Blocked::Draining => resident.drained_at(),
            Blocked::Groups(allowed) => resident.groups_done_at(allowed),
            Blocked::No
            | Blocked::Queue
            | Blocked::Barrier(_)
            | Blocked::Object
            | Blocked::Registers(_)
            | Blocked::Result
            | Blocked::Fetch
            | Blocked::Leaving => None,
            Blocked::Stopped => return Some(usize::from(resident.cta)),
        };
        if let Some(at) = met {
            self.wake_at(warp, at, shared_state);
        }
        None
    }

    /// Charges what a warp has lost up to the last accounting to what it does since its last
    /// event: before that changes. See [`super::hot`].
    #[inline]
    pub(super) fn charge(&mut self, warp: u16, shared_state: &mut SharedState) {
        if shared_state.hot.is_some() {
            self.charge_losses(warp, true, shared_state);
        }
    }

    /// The same at the end of a warp's interval.
    #[inline]
    pub(super) fn charge_interval(&mut self, warp: u16, shared_state: &mut SharedState) {
        if shared_state.hot.is_some() {
            self.charge_losses(warp, false, shared_state);
        }
    }

    #[cold]
    fn charge_losses(&mut self, warp: u16, rest: bool, shared_state: &mut SharedState) {
        let lost = self.scheduler(warp).take_losses(warp, rest);
        charge(self.resident(warp), &lost, shared_state);
    }

    /// Charges what all resident warps have lost.
    pub(super) fn charge_all(&mut self, shared_state: &mut SharedState) {
        for warp in (0..to_u32(self.slots.len())).filter_map(|warp| u16::try_from(warp).ok()) {
            if self.get(warp).is_some() {
                self.charge(warp, shared_state);
            }
        }
    }
}

/// Why `warp` waits. A load from its SM's shared memory is a short wait, as in GPGPU-Sim, whose
/// long operations are loads of other spaces (`Scoreboard::reserveRegister`).
fn cause(warp: &Warp) -> Wait {
    match warp.blocked {
        Blocked::Load(_) if !warp.waits_long() => Wait::Result,
        Blocked::Queue | Blocked::Registers(_) => Wait::Resource,
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
