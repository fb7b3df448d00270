//! One resident warp: its stream, its place in the profile, what it waits for.

use std::collections::VecDeque;

use gpumodel_core::isa::{Effect, ObjectStep, Unit};
use gpumodel_core::units::{Cycle, to_usize};

use crate::counters::KernelCounts;
use crate::gpu::feed::WarpStream;
use crate::interval::{Profile, SlotId, StateId, Step, StepEnd, StretchEnd};
use crate::memory::packet::Target;
use crate::sm::fetch::Window;
use crate::sm::hot::IssueLog;
use crate::sm::scheduler::issue_bandwidth::{Claim, ISSUE};
use crate::sm::scheduler::issue_interval::{IssueInterval, Running};
use crate::sm::warp_path::Path;

/// Intervals without an event are cut here, so that counters never run far ahead
/// of time; see [`super::repeat`] for loops.
pub(super) const LONGEST_BURST: u32 = 1024;

/// What a warp meets at the end of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IntervalEnd {
    /// A memory instruction.
    Access { instruction: u32, slot: Option<SlotId> },
    /// The end of a stretch.
    Stretch(StretchEnd),
    /// More of the same.
    More,
    /// A line of code that its inner cache lacks.
    Missing(u32),
    /// The end of its path.
    Exit,
}

/// What keeps a warp from going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocked {
    /// It runs.
    No,
    /// The load/store queue is full.
    Queue,
    /// An outstanding load.
    Load(SlotId),
    /// Other warps of the CTA, at one of its barriers.
    Barrier(u8),
    /// Its next instructions.
    Fetch,
    /// All its accesses.
    Fence,
    /// Groups of asynchronous copies: at most this many may be pending.
    Groups(u32),
    /// A result of a unit of variable latency.
    Result,
    /// This many registers per thread, of its CTA.
    Registers(u32),
    /// A barrier object of the CTA, see [`Warp::object`].
    Object,
    /// It has ended; its accesses have not.
    Draining,
    /// It has ended; its last instruction is in the pipeline.
    Leaving,
    /// Its CTA leaves the SM before its end, or comes back.
    Stopped,
}

/// One load slot.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    pending: bool,
    /// The load is from shared memory, and its warp keeps its place among the active ones.
    short: bool,
    ready: Cycle,
}

/// One group of asynchronous copies.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    /// Copies whose end is not known yet.
    pending: u32,
    /// When the last of the others is done.
    done: Cycle,
}

/// One resident warp.
#[derive(Debug)]
pub(super) struct Warp {
    pub(super) stream: Path,
    pub(super) kernel: u32,
    pub(super) cta: u16,
    pub(super) age: u64,
    pub(super) blocked: Blocked,
    /// A wake-up is scheduled.
    pub(super) waking: bool,
    pub(super) interval_end: IntervalEnd,
    /// Cycles from the issue of the access that it meets to the interval's end.
    pub(super) lead: u32,
    /// It had nothing else to issue before that access.
    pub(super) only_access: bool,
    /// Operations in flight.
    pub(super) outstanding: u32,
    /// Those among them for which its end does not wait.
    pub(super) posted: u32,
    /// When the last of the finished operations was done.
    pub(super) last_done: Cycle,
    /// Barriers of the whole CTA at which it has arrived without waiting, one bit
    /// each.
    arrived: u16,
    /// Phases of its cluster's barrier at which it has arrived.
    pub(super) cluster_phases: u32,
    slots: Vec<Slot>,
    /// The barrier object that it waits for, by its place in the CTA, and the phase's parity;
    /// `None`: the trace does not have it.
    pub(super) object: (u16, Option<bool>),
    /// Registers per thread; `None`: those of the launch.
    pub(super) registers: Option<u32>,
    /// Groups that may not be done, oldest first; the last one is open.
    groups: VecDeque<Group>,
    first_group: u32,
    segment: u32,
    pub(super) stretch: u32,
    step: u32,
    /// Instructions of the present step that have already been handed out.
    handed: u32,
    /// Cycles of the tensor unit that multiplies of its group take beyond the interval in which
    /// they were issued.
    queued: u32,
    /// Instructions in earlier intervals.
    pub(super) issued: u64,
    /// The line of code that it waited for last: its instruction buffer has it,
    /// even when the cache has lost it meanwhile.
    pub(super) delivered: Option<u32>,
    /// How it continues, while it is stopped.
    pub(super) next: Next,
    /// What it issues, where stalls are attributed to instructions.
    pub(super) log: Option<Box<IssueLog>>,
}

impl Warp {
    /// A warp at the start of its stream; `None` when the stream is empty.
    pub(super) fn start(
        mut stream: Path,
        (kernel, cta): (u32, u16),
        age: u64,
        profile: &mut Profile,
        counts: &mut KernelCounts,
    ) -> Option<Self> {
        let segment = stream.next_segment()?;
        let mut warp = Self {
            stream,
            kernel,
            cta,
            age,
            blocked: Blocked::No,
            waking: false,
            interval_end: IntervalEnd::More,
            lead: 0,
            only_access: false,
            outstanding: 0,
            posted: 0,
            last_done: 0,
            arrived: 0,
            cluster_phases: 0,
            slots: Vec::new(),
            object: (0, None),
            registers: None,
            groups: VecDeque::from([Group::default()]),
            first_group: 0,
            segment,
            stretch: 0,
            step: 0,
            handed: 0,
            queued: 0,
            issued: 0,
            delivered: None,
            next: Next::IssueInterval,
            log: None,
        };
        warp.enter(profile, segment, 0, profile.fresh());
        warp.count_added(profile, counts);
        Some(warp)
    }

    fn enter(&mut self, profile: &mut Profile, segment: u32, offset: u32, state: StateId) {
        self.segment = segment;
        self.stretch = profile.enter(segment, offset, state);
        self.step = profile.stretch(self.stretch).first;
    }

    /// Counts the instructions of the segment that has just been entered where a
    /// worker's code has been added with it.
    #[inline]
    fn count_added(&self, profile: &Profile, counts: &mut KernelCounts) {
        if self.segment >= self.stream.added_from() {
            counts.added_instructions += u64::from(profile.length(self.segment));
        }
    }

    /// Goes on behind the end of a stretch; `settled` when the warp really waited.
    pub(super) fn resume(&mut self, profile: &mut Profile, settled: bool) {
        let stretch = *profile.stretch(self.stretch);
        let state = if settled { stretch.settled } else { stretch.ready };
        if settled {
            self.queued = 0;
        }
        self.enter(profile, self.segment, stretch.offset, state);
    }

    /// Collects instructions up to the next event into one interval, and notes what
    /// it meets there. Where the machine has instruction caches, `window` is the
    /// warp's view of them.
    pub(super) fn gather(
        &mut self,
        profile: &mut Profile,
        counts: &mut KernelCounts,
        mut window: Option<&mut Window<'_>>,
    ) -> IssueInterval {
        let mut interval = IssueInterval::default();
        if let Some(log) = &mut self.log {
            log.begin();
        }
        let mut mark = None;
        let interval_end = loop {
            if let Some(interval_end) =
                self.gather_steps(profile, counts, &mut interval, window.as_deref_mut())
            {
                break interval_end;
            }
            let stretch = *profile.stretch(self.stretch);
            match stretch.end {
                StretchEnd::Segment => {
                    let Some(segment) = self.stream.next_segment() else { break IntervalEnd::Exit };
                    let known = mark.filter(|_| segment == self.segment);
                    self.enter(profile, segment, 0, stretch.ready);
                    self.count_added(profile, counts);
                    mark = self.repeat(known, profile, &mut interval, counts);
                }
                StretchEnd::AsyncCommit => {
                    mark = None;
                    self.groups.push_back(Group::default());
                    self.enter(profile, self.segment, stretch.offset, stretch.ready);
                }
                end => break IntervalEnd::Stretch(end),
            }
            if interval.slots >= LONGEST_BURST {
                break IntervalEnd::More;
            }
        };
        counts.warp_instructions += u64::from(interval.slots);
        self.issued += u64::from(interval.slots);
        self.interval_end = interval_end;
        if profile.queues_multiplies() {
            self.queue_multiplies(profile, &mut interval);
        }
        interval
    }

    /// Leaves to later intervals what an interval that ends at a barrier object asks of the
    /// tensor unit beyond its own length: multiplies of a warp group do not hold their warp up
    /// there.
    fn queue_multiplies(&mut self, profile: &Profile, interval: &mut IssueInterval) {
        let at_wait =
            |instruction| profile.decoded(instruction).effect == Effect::Object(ObjectStep::Wait);
        let waits = matches!(self.interval_end,
            IntervalEnd::Access { instruction, .. } if at_wait(instruction));
        let asked = &mut interval.demand[Unit::Tensor.index()];
        *asked += std::mem::take(&mut self.queued);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cycles")]
        let length = interval.cycles.ceil() as u32;
        if waits {
            self.queued = asked.saturating_sub(length);
            *asked -= self.queued;
        }
    }

    /// Steps of the present stretch; stops behind one that carries addresses and
    /// where the interval is long enough.
    fn gather_steps(
        &mut self,
        profile: &Profile,
        counts: &mut KernelCounts,
        interval: &mut IssueInterval,
        mut window: Option<&mut Window<'_>>,
    ) -> Option<IntervalEnd> {
        let stretch = profile.stretch(self.stretch);
        while self.step < stretch.first + stretch.count {
            if interval.slots >= LONGEST_BURST {
                return Some(IntervalEnd::More);
            }
            let whole = profile.step(self.step);
            let end = window.as_deref_mut().map_or(whole.slots, |window| {
                let lines = profile.lines();
                let (handed, delivered) = (self.handed, self.delivered);
                window.reach(lines, whole, handed, delivered, interval.slots, &mut counts.fetch)
            });
            if end == self.handed {
                let line = profile.lines().of(whole.instruction + end);
                return Some(if interval.slots == 0 {
                    IntervalEnd::Missing(line)
                } else {
                    IntervalEnd::More
                });
            }
            let access = if self.handed == 0 && end == whole.slots {
                self.hand_out(whole, counts, interval)
            } else {
                let part = whole.part(self.handed, end);
                self.hand_out(&part, counts, interval)
            };
            self.handed = if end == whole.slots { 0 } else { end };
            self.step += u32::from(self.handed == 0);
            if access.is_some() {
                return access;
            }
        }
        None
    }

    /// Puts a step, or a part of one, into the interval; what carries addresses ends it.
    fn hand_out(
        &mut self,
        step: &Step,
        counts: &mut KernelCounts,
        interval: &mut IssueInterval,
    ) -> Option<IntervalEnd> {
        interval.add(step);
        if let Some(log) = &mut self.log {
            log.add(self.stretch, step);
        }
        for (sum, &n) in counts.by_unit.iter_mut().zip(&step.mix) {
            *sum += u64::from(n);
        }
        for (sum, &cycles) in counts.unit_cycles.iter_mut().zip(&step.demand) {
            *sum += u64::from(cycles);
        }
        counts.unknown_opcodes += u64::from(step.unknown);
        counts.constant.without_address += u64::from(step.constants);
        match step.end {
            StepEnd::Stretch => {
                counts.thread_instructions += self.stream.skip(step.slots);
                None
            }
            StepEnd::Access { instruction, slot } => {
                counts.thread_instructions += self.stream.skip(step.slots - 1);
                self.only_access = interval.slots == 1;
                interval.is_access = self.only_access;
                Some(IntervalEnd::Access { instruction, slot })
            }
        }
    }

    /// The instruction at which it stands: the load whose result it needs, the instruction that
    /// it could not issue, its last access while these end, else the last instruction that it
    /// issued, as a barrier. `None` without a log.
    pub(super) fn stands_at(&self, profile: &Profile) -> Option<u32> {
        let log = self.log.as_ref()?;
        match (self.blocked, self.interval_end) {
            (Blocked::Load(slot), _) => log.load_of(slot),
            (Blocked::Queue, IntervalEnd::Access { instruction, .. }) => Some(instruction),
            (Blocked::Fetch, _) => Some(profile.step(self.step).instruction + self.handed),
            (Blocked::Draining, _) => log.last_access().or(log.last()),
            (
                Blocked::No
                | Blocked::Queue
                | Blocked::Barrier(_)
                | Blocked::Fence
                | Blocked::Groups(_)
                | Blocked::Object
                | Blocked::Registers(_)
                | Blocked::Result
                | Blocked::Leaving
                | Blocked::Stopped,
                _,
            ) => log.last(),
        }
    }

    /// What waits for the memory instruction that it issues; the result of a load from shared
    /// memory is a `short` wait.
    #[inline]
    pub(super) fn target(
        &mut self,
        effect: Effect,
        slot: Option<SlotId>,
        short: bool,
        now: Cycle,
    ) -> Target {
        match (effect, slot) {
            (Effect::AsyncCopy, _) => Target::Group(self.join_group(now)),
            (_, Some(slot)) => {
                self.expect(slot, short);
                Target::Slot(slot.0)
            }
            (_, None) => Target::Nothing,
        }
    }

    /// An operation of it has ended at a cycle.
    pub(super) fn end_operation(&mut self, target: Target, at: Cycle) {
        self.outstanding -= 1;
        self.last_done = self.last_done.max(at);
        match target {
            Target::Slot(slot) => self.loaded(slot, at),
            Target::Group(group) => self.leave_group(group, at),
            Target::Object { .. } | Target::Nothing | Target::Launch(_) => {}
        }
    }

    /// When nothing is left for which its end waits; `None` while that is unknown.
    pub(super) fn drained_at(&self) -> Option<Cycle> {
        (self.outstanding == self.posted).then_some(self.last_done)
    }

    /// Marks a load slot as waiting for memory, shared memory where `short`.
    fn expect(&mut self, slot: SlotId, short: bool) {
        let place = usize::from(slot.0);
        if self.slots.len() <= place {
            self.slots.resize(place + 1, Slot::default());
        }
        self.slots[place] = Slot { pending: true, short, ready: 0 };
    }

    /// When the load of `slot` is done; `None` while that is unknown.
    pub(super) fn ready_at(&self, slot: SlotId) -> Option<Cycle> {
        let slot = self.slots.get(usize::from(slot.0)).copied().unwrap_or_default();
        (!slot.pending).then_some(slot.ready)
    }

    /// Notes that the load of `slot` is done at `cycle`.
    fn loaded(&mut self, slot: u8, cycle: Cycle) {
        let slot = &mut self.slots[usize::from(slot)];
        (slot.pending, slot.ready) = (false, cycle);
    }

    /// True when it waits for something that takes long: memory beyond the SM's
    /// shared one, other warps, its end.
    pub(super) fn waits_long(&self) -> bool {
        match self.blocked {
            Blocked::No | Blocked::Queue | Blocked::Fetch => false,
            Blocked::Load(slot) => !self.slots[usize::from(slot.0)].short,
            Blocked::Barrier(_)
            | Blocked::Fence
            | Blocked::Groups(_)
            | Blocked::Object
            | Blocked::Registers(_)
            | Blocked::Result
            | Blocked::Draining
            | Blocked::Leaving
            | Blocked::Stopped => true,
        }
    }

    /// True when it has issued its last instruction.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.blocked, Blocked::Draining | Blocked::Leaving)
    }

    /// Notes that it has arrived at a barrier without waiting: true when it had
    /// done so before.
    pub(super) fn arrive(&mut self, barrier: u8) -> bool {
        let before = self.has_arrived(barrier);
        self.arrived |= bit(barrier);
        before
    }

    /// True when it has arrived at a barrier without waiting.
    pub(super) fn has_arrived(&self, barrier: u8) -> bool {
        self.arrived & bit(barrier) != 0
    }

    /// The barrier has opened.
    pub(super) fn depart(&mut self, barrier: u8) {
        self.arrived &= !bit(barrier);
    }

    /// When all its accesses are done; `None` while that is unknown.
    pub(super) fn all_done_at(&self) -> Option<Cycle> {
        (self.outstanding == 0).then_some(self.last_done)
    }

    /// The number of the open group, to which an operation is added; groups that
    /// are done at `now` are forgotten.
    pub(super) fn join_group(&mut self, now: Cycle) -> u32 {
        let over = |group: &Group| group.pending == 0 && group.done <= now;
        while self.groups.len() > 1 && over(&self.groups[0]) {
            self.groups.pop_front();
            self.first_group += 1;
        }
        let open = self.groups.len() - 1;
        self.groups[open].pending += 1;
        self.first_group + gpumodel_core::units::to_u32(open)
    }

    /// Notes that an operation of a group is done at `cycle`.
    fn leave_group(&mut self, group: u32, cycle: Cycle) {
        let group = &mut self.groups[to_usize(group - self.first_group)];
        group.pending -= 1;
        group.done = group.done.max(cycle);
    }

    /// True when it has closed a group that may not be done.
    pub(super) fn has_groups(&self) -> bool {
        self.groups.len() > 1
    }

    /// When all closed groups but the last `allowed` are done; `None` while that
    /// is unknown.
    pub(super) fn groups_done_at(&self, allowed: u32) -> Option<Cycle> {
        let closed = self.groups.len() - 1;
        let must = closed.saturating_sub(to_usize(allowed));
        let mut groups = self.groups.iter().take(must);
        groups.try_fold(0, |at, group| (group.pending == 0).then(|| at.max(group.done)))
    }
}

/// The bit of a barrier; those without a number have none.
fn bit(barrier: u8) -> u16 {
    1_u16.checked_shl(u32::from(barrier)).unwrap_or(0)
}

/// How a stopped warp continues when its CTA is back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Next {
    /// It begins its next interval.
    #[default]
    IssueInterval,
    /// The rest of the interval that it was in.
    Rest(Running, Claim),
    /// What it met at the end of its interval, which it had to wait with.
    Meet,
    /// It had waited for something that has come meanwhile.
    Settled,
    /// It still waits at a barrier.
    Barrier(u8),
}

impl Next {
    /// Instructions of its interval that have not issued.
    pub(super) fn unissued(&self) -> f64 {
        match self {
            Self::Rest(running, claim) => running.left.max(0.0) * f64::from(claim.density[ISSUE]),
            _ => 0.0,
        }
    }
}
