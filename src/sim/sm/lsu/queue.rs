//! The queues of the load/store unit of one SM: of memory instructions, which are served in order;
//! of sectors in the pipelines of the L1's banks, as far as these are held up; of what misses.

use std::collections::VecDeque;

use gpumodel_core::units::{Cycle, to_u32, to_usize};

use crate::config::Machine;
use crate::memory::packet::RequestKind;
use crate::sm::coalesce::{LineRequest, SectorRequest};

/// Where a queued instruction goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sm) enum Route {
    /// Shared memory, in this many passes over the banks or cycles of the way to another CTA's.
    Shared { passes: u32, remote: bool },
    /// Through the L1.
    Cached(RequestKind),
    /// Past the L1.
    Direct(RequestKind),
    /// Through the constant cache.
    Constant,
}

/// What the unit waits for before it serves its head again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sm) enum Stall {
    /// Room in the SM's port.
    Port,
    /// An entry or a way of the L1.
    Entry,
    /// Room to ask for a page.
    Page,
    /// An entry of the constant cache.
    Constant,
}

/// What has happened that a stalled unit may have waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freed {
    /// The SM's port takes packets again.
    Port,
    /// Sectors have filled the L1: the head may also find them there.
    Fill,
    /// A page has come, perhaps with instructions that go before the head.
    Page,
    /// Code or constants have come.
    Code,
    /// An answer has come that the L1 does not keep.
    Nothing,
}

impl Freed {
    /// True when a unit that is stalled so may go on; with `translates_first` what the L1 has
    /// does not spare the look-up of a page.
    fn ends(self, stall: Stall, translates_first: bool) -> bool {
        match (self, stall) {
            (Self::Port, Stall::Port) | (Self::Page, _) | (Self::Code, Stall::Constant) => true,
            (Self::Fill, Stall::Page) => !translates_first,
            (Self::Fill, Stall::Port | Stall::Entry | Stall::Constant) => true,
            (Self::Nothing, Stall::Constant) => true,
            (Self::Port | Self::Code | Self::Nothing, _) => false,
        }
    }
}

/// One queued memory instruction.
#[derive(Debug)]
pub(in crate::sm) struct Entry {
    pub(in crate::sm) operation: u32,
    pub(in crate::sm) kernel: u32,
    /// The scheduler that issued it; none for the lines of a CTA that moves.
    pub(in crate::sm) scheduler: Option<u8>,
    pub(in crate::sm) route: Route,
    pub(in crate::sm) lines: Vec<LineRequest>,
    /// Sectors already served.
    pub(in crate::sm) served: u32,
    /// Cycles of the banks that the served ones take, but for the last.
    pub(in crate::sm) cycle: u32,
    /// Banks that are taken in the last of them, one bit each.
    pub(in crate::sm) taken: u32,
    /// Passes over the banks of words that the data of hits take; 0 where they come by sector.
    pub(in crate::sm) passes: u32,
    /// A sector of it has hit the L1.
    pub(in crate::sm) hit: bool,
    /// The first line with sectors that are not.
    pub(in crate::sm) place: u32,
    /// When it issued; [`Cycle::MAX`] once it was refused: it continues when it can.
    pub(in crate::sm) issued: Cycle,
    /// Lines whose page has been looked up, on machines that translate.
    pub(in crate::sm) looked_up: u32,
    /// Cycles of the TLB's look-up that it still has to take.
    pub(in crate::sm) delay: u32,
    /// It was set aside until its pages came.
    pub(in crate::sm) returned: bool,
}

impl Entry {
    /// Whether a warp of this scheduler issued it.
    fn is_of(&self, scheduler: usize) -> bool {
        self.scheduler.is_some_and(|of| usize::from(of) == scheduler)
    }

    /// An instruction of which nothing has been served yet.
    pub(in crate::sm) fn new(
        operation: u32,
        kernel: u32,
        route: Route,
        lines: Vec<LineRequest>,
        issued: Cycle,
    ) -> Self {
        Self {
            operation,
            kernel,
            scheduler: None,
            route,
            lines,
            served: 0,
            cycle: 0,
            taken: 0,
            passes: 0,
            hit: false,
            place: 0,
            issued,
            looked_up: 0,
            delay: 0,
            returned: false,
        }
    }

    /// The same without its lines.
    pub(in crate::sm) fn bare(&self) -> Self {
        Self { lines: Vec::new(), ..*self }
    }

    /// The next sector lies in `bank`, which takes one per cycle: moves on to the
    /// next cycle where the bank is taken in this one.
    pub(in crate::sm) fn enter_bank(&mut self, bank: usize) {
        if self.taken >> bank & 1 == 1 {
            self.cycle += 1;
            self.taken = 0;
        }
        self.taken |= 1 << bank;
    }

    /// Its place in the turns of the banks, for [`Entry::go_back`].
    pub(in crate::sm) fn turn(&self) -> (u32, u32) {
        (self.cycle, self.taken)
    }

    /// Gives the last sector's place in its bank's turns back: it was refused.
    pub(in crate::sm) fn go_back(&mut self, turn: (u32, u32)) {
        (self.cycle, self.taken) = turn;
    }

    /// Its pages must be looked up again, but for those of lines that are served.
    pub(in crate::sm) fn forget_pages(&mut self) {
        self.looked_up = self.place;
        self.lines.iter_mut().for_each(|line| line.translated = false);
    }

    /// The instruction, to be kept elsewhere; what is left has no lines.
    pub(in crate::sm) fn take(&mut self) -> Self {
        Self { lines: std::mem::take(&mut self.lines), ..*self }
    }
}

/// The queue and its clock.
#[derive(Debug)]
pub(in crate::sm) struct LsuQueue {
    queue: VecDeque<Entry>,
    /// By scheduler: its instructions in the queue.
    waiting: Vec<u32>,
    /// See [`scheduler_limit`].
    scheduler_limit: u32,
    /// A scheduler's part of [`crate::config::Quirks::collector_queue`]; 0: no limit.
    collectors: u32,
    /// Instructions that were set aside and go before all others.
    pub(in crate::sm) returned: VecDeque<Entry>,
    limit: usize,
    /// When the port to the registers is free.
    pub(in crate::sm) returns_at: Cycle,
    /// When the unit can take the next instruction.
    pub(in crate::sm) free_at: Cycle,
    /// The cycle of the scheduled service; 0 without one.
    pub(in crate::sm) scheduled: Cycle,
    /// What the head waits for.
    pub(in crate::sm) stalled: Option<Stall>,
    /// It asks for nothing: memory channels are changing hands.
    pub(in crate::sm) resting: bool,
    /// Warps that wait for a place in the queue, oldest first.
    blocked: VecDeque<u16>,
    /// Those that go before them: they had nothing else to issue first.
    first: VecDeque<u16>,
    spare: Vec<Vec<LineRequest>>,
}

impl LsuQueue {
    /// An idle unit of an SM of `machine`.
    pub(in crate::sm) fn new(machine: &Machine) -> Self {
        let l1 = &machine.l1;
        Self {
            queue: VecDeque::new(),
            waiting: vec![0; to_usize(machine.sm.schedulers)],
            scheduler_limit: scheduler_limit(machine),
            collectors: machine.quirks.collector_queue.div_ceil(machine.sm.schedulers.max(1)),
            returned: VecDeque::new(),
            limit: to_usize(l1.queue.max(1)),
            returns_at: 0,
            free_at: 0,
            scheduled: 0,
            stalled: None,
            resting: false,
            blocked: VecDeque::new(),
            first: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// True when one more instruction may queue.
    pub(in crate::sm) fn has_room(&self) -> bool {
        self.queue.len() < self.limit
    }

    /// True when one more instruction of this scheduler may queue: where operand collectors
    /// limit, not while one of its instructions waits for a collector.
    pub(in crate::sm) fn takes_from(&self, scheduler: usize) -> bool {
        if !self.has_room() || self.waiting[scheduler] >= self.scheduler_limit {
            return false;
        }
        self.collectors == 0
            || !self.queue.iter().skip(self.collected()).any(|entry| entry.is_of(scheduler))
    }

    /// The first instruction in the queue that has no operand collector, since others of its
    /// scheduler have them all. None behind it has one: of the instructions in front of the
    /// collectors, GPGPU-Sim's `get_ready_reg_id` tries the oldest alone.
    fn collected(&self) -> usize {
        let mut counts = [0; MOST_SCHEDULERS];
        let has_none = |entry: &Entry| {
            entry.scheduler.is_some_and(|scheduler| {
                let count = &mut counts[usize::from(scheduler)];
                *count += 1;
                *count > self.collectors
            })
        };
        self.queue.iter().position(has_none).unwrap_or(self.queue.len())
    }

    /// Instructions of this scheduler that have operand collectors, or have left them.
    pub(in crate::sm) fn of_scheduler(&self, scheduler: usize) -> u32 {
        let collected = self.queue.iter().take(self.collected());
        to_u32(collected.filter(|entry| entry.is_of(scheduler)).count())
    }

    /// Lets a warp wait for a place, before all those that are not `first`.
    pub(in crate::sm) fn block(&mut self, warp: u16, first: bool) {
        if first { &mut self.first } else { &mut self.blocked }.push_back(warp);
    }

    /// A warp no longer waits for a place.
    pub(in crate::sm) fn unblock(&mut self, warp: u16) {
        self.first.retain(|&other| other != warp);
        self.blocked.retain(|&other| other != warp);
    }

    /// The warp that is next of those that wait and may queue now; `scheduler_of` a warp.
    pub(in crate::sm) fn admit(&mut self, scheduler_of: impl Fn(u16) -> usize) -> Option<u16> {
        let mut waiting = self.first.iter().chain(&self.blocked).copied();
        let warp = waiting.find(|&warp| self.takes_from(scheduler_of(warp)))?;
        self.unblock(warp);
        Some(warp)
    }

    /// An empty list of lines, used before where possible.
    pub(in crate::sm) fn list(&mut self) -> Vec<LineRequest> {
        self.spare.pop().unwrap_or_default()
    }

    /// Queues an instruction.
    pub(in crate::sm) fn push(&mut self, entry: Entry) {
        if let Some(scheduler) = entry.scheduler {
            self.waiting[usize::from(scheduler)] += 1;
        }
        self.queue.push_back(entry);
    }

    /// Ends its stall where `freed` may be what it waited for: true when it then has nothing
    /// scheduled and must be.
    pub(in crate::sm) fn wakes(&mut self, freed: Freed, translates_first: bool) -> bool {
        let ends = self.stalled.is_some_and(|stall| freed.ends(stall, translates_first));
        let wakes = ends && self.scheduled == 0;
        if wakes {
            self.stalled = None;
        }
        wakes
    }

    /// The instruction at the head, taken out while it is served.
    pub(in crate::sm) fn take(&mut self) -> Option<Entry> {
        if !self.returned.is_empty() {
            return self.returned.pop_front();
        }
        let entry = self.queue.pop_front();
        if let Some(scheduler) = entry.as_ref().and_then(|entry| entry.scheduler) {
            self.waiting[usize::from(scheduler)] -= 1;
        }
        entry
    }

    /// Puts an instruction back at the head.
    pub(in crate::sm) fn put_back(&mut self, entry: Entry) {
        if entry.returned {
            return self.returned.push_front(entry);
        }
        if let Some(scheduler) = entry.scheduler {
            self.waiting[usize::from(scheduler)] += 1;
        }
        self.queue.push_front(entry);
    }

    /// All pages must be looked up again.
    pub(in crate::sm) fn forget_pages(&mut self) {
        self.queue.iter_mut().chain(&mut self.returned).for_each(Entry::forget_pages);
    }

    /// Keeps a served instruction's list for the next one.
    pub(in crate::sm) fn recycle(&mut self, mut lines: Vec<LineRequest>) {
        lines.clear();
        self.spare.push(lines);
    }

    /// True when nothing waits.
    pub(in crate::sm) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.returned.is_empty()
    }
}

/// Schedulers of an SM at most.
const MOST_SCHEDULERS: usize = 64;

/// Instructions that one scheduler may queue: see [`crate::config::L1Spec::scheduler_queue`], or
/// its part of the registers around the operand collectors and of these.
fn scheduler_limit(machine: &Machine) -> u32 {
    let (l1, schedulers) = (&machine.l1, machine.sm.schedulers.max(1));
    match (l1.scheduler_queue, machine.quirks.collector_queue) {
        (0, 0) => u32::MAX,
        (0, _) => l1.queue.div_ceil(schedulers),
        (limit, _) => limit,
    }
}

/// One sector of an instruction.
#[derive(Debug)]
pub(in crate::sm) struct QueuedSector {
    /// Its instruction, without lines.
    pub(in crate::sm) entry: Entry,
    pub(in crate::sm) request: SectorRequest,
    /// When it reaches the end of the pipeline.
    pub(in crate::sm) ready: Cycle,
    /// It has been refused an entry, and waits for a fill.
    pub(in crate::sm) refused: bool,
}

/// The banks' pipelines, as far as they are held up.
#[derive(Debug)]
pub(in crate::sm) struct BankQueues {
    pub(in crate::sm) waiting: Vec<VecDeque<QueuedSector>>,
    /// Sectors in them.
    pub(in crate::sm) held: usize,
    /// By bank: when the last sectors left the pipeline, in order.
    pub(in crate::sm) departures: Vec<VecDeque<Cycle>>,
    /// The last cycle at which sectors have tried to leave.
    pub(in crate::sm) tried: Cycle,
}

impl BankQueues {
    /// The empty pipelines of so many banks.
    pub(in crate::sm) fn new(banks: u32) -> Self {
        let each = 0..banks;
        Self {
            waiting: each.clone().map(|_| VecDeque::new()).collect(),
            held: 0,
            departures: each.map(|_| VecDeque::new()).collect(),
            tried: 0,
        }
    }
}

/// The queue of what misses, between the L1's banks and the network, which takes one packet per
/// cycle: see [`crate::config::Quirks::miss_queue`].
#[derive(Debug)]
pub(in crate::sm) struct MissQueue {
    /// 0: there is none.
    places: u64,
    /// When the network can take the next packet.
    leaves: Cycle,
}

impl MissQueue {
    /// The empty queue of one SM of `machine`.
    pub(in crate::sm) fn new(machine: &Machine) -> Self {
        let in_order = machine.l1.bank_bytes > 0;
        let places = if in_order { u64::from(machine.quirks.miss_queue) } else { 0 };
        Self { places, leaves: 0 }
    }

    /// Whether the machine has one.
    pub(in crate::sm) fn exists(&self) -> bool {
        self.places > 0
    }

    /// Whether so many places are free at cycle `at`; an empty queue takes everything.
    pub(in crate::sm) fn has_places(&self, places: u64, at: Cycle) -> bool {
        let queued = self.leaves.saturating_sub(at);
        queued == 0 || queued + places <= self.places
    }

    /// Puts a packet into it at cycle `at`: when it leaves.
    pub(in crate::sm) fn leave(&mut self, at: Cycle) -> Cycle {
        if !self.exists() {
            return at;
        }
        let leaves = at.max(self.leaves);
        self.leaves = leaves + 1;
        leaves
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, LineRequest, LsuQueue, MissQueue, Route};

    #[test]
    fn misses_leave_one_per_cycle_and_wait_for_two_places() {
        let mut queue = MissQueue::new(&crate::testkit::named("accelsim-qv100", &[]).machine);
        let left = (0..15).map(|_| queue.leave(40)).last();
        assert_eq!(left, Some(54));
        assert!(queue.has_places(1, 40) && !queue.has_places(2, 40), "16 places");
        assert!(queue.has_places(2, 41));
        assert_eq!(queue.leave(90), 90);
        let none = MissQueue::new(&crate::testkit::named("v100", &[]).machine);
        assert!(!none.exists());
    }

    #[test]
    fn what_follows_an_instruction_without_a_collector_waits() {
        let mut queue = LsuQueue::new(&crate::testkit::named("accelsim-qv100", &[]).machine);
        let push = |queue: &mut LsuQueue, scheduler: u8| {
            let route = Route::Shared { passes: 1, remote: false };
            let entry = Entry::new(0, 0, route, Vec::new(), 0);
            queue.push(Entry { scheduler: Some(scheduler), ..entry });
        };
        for _ in 0..4 {
            push(&mut queue, 0);
        }
        assert!(queue.takes_from(1));
        push(&mut queue, 1);
        assert!(!queue.takes_from(1), "the fourth of scheduler 0 is older");
        assert_eq!([0, 1].map(|scheduler| queue.of_scheduler(scheduler)), [3, 0]);
        queue.take().unwrap();
        assert!(queue.takes_from(1));
        assert_eq!([0, 1].map(|scheduler| queue.of_scheduler(scheduler)), [3, 1]);
    }
    use crate::memory::packet::RequestKind;

    #[test]
    fn a_scheduler_queues_as_many_instructions_as_it_has_places() {
        let mut queue = LsuQueue::new(&crate::testkit::named("v100", &[]).machine);
        let route = Route::Shared { passes: 1, remote: false };
        let of = |scheduler| {
            let entry = Entry::new(0, 0, route, Vec::new(), 0);
            Entry { scheduler: Some(scheduler), ..entry }
        };
        let places =
            (0..9).take_while(|_| queue.takes_from(0).then(|| queue.push(of(0))).is_some());
        assert_eq!(places.count(), 5, "the sixth waits");
        [4, 8, 5].into_iter().for_each(|warp| queue.block(warp, false));
        let scheduler_of = |warp: u16| usize::from(warp % 4);
        assert_eq!(queue.admit(scheduler_of), Some(5), "another scheduler's warp");
        let head = queue.take().unwrap();
        assert_eq!(queue.admit(scheduler_of), Some(4));
        queue.put_back(head);
        assert_eq!(queue.admit(scheduler_of), None);
    }

    #[test]
    fn warps_with_nothing_else_to_issue_queue_first_and_in_turn() {
        let mut queue = LsuQueue::new(&crate::testkit::named("accelsim-qv100", &[]).machine);
        for (warp, first) in [(0, false), (4, true), (8, false), (12, true), (16, true)] {
            queue.block(warp, first);
        }
        queue.unblock(16);
        let mut next = || queue.admit(|_| 0);
        assert_eq!(
            [next(), next(), next(), next(), next()].map(|warp| warp.unwrap_or(99)),
            [4, 12, 0, 8, 99]
        );
    }

    #[test]
    fn schedulers_have_equal_parts_of_the_collectors_and_the_registers_around_them() {
        // Eight generic collectors, and four registers on either side of them.
        let mut queue = LsuQueue::new(&crate::testkit::named("accelsim-qv100", &[]).machine);
        let route = Route::Shared { passes: 1, remote: false };
        for _ in 0..4 {
            assert!(queue.takes_from(2));
            let entry = Entry::new(0, 0, route, Vec::new(), 0);
            queue.push(Entry { scheduler: Some(2), ..entry });
        }
        assert!(!queue.takes_from(2) && queue.takes_from(3));
        assert_eq!([2, 3].map(|scheduler| queue.of_scheduler(scheduler)), [3, 0]);
    }

    #[test]
    fn pages_of_lines_that_are_served_are_not_looked_up_again() {
        let line =
            |line| LineRequest { line, sectors: 0xf, translated: true, ..LineRequest::default() };
        let lines = (0..5).map(line).collect();
        let mut entry = Entry::new(0, 0, Route::Cached(RequestKind::Read), lines, 0);
        (entry.place, entry.looked_up) = (2, 5);
        entry.forget_pages();
        assert_eq!(entry.looked_up, 2);
        // A line that is left may lie in the page of one that is served.
        assert!(entry.lines.iter().all(|line| !line.translated));
    }
}
