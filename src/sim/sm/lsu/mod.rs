//! The load/store unit of one SM: a queue of memory instructions, served in order, one L1
//! look-up by line or by sector; misses in flight, and their answers.
//!
//! The unit returns the operations that have ended; the SM lets their warps and CTAs go on.

pub(in crate::sm) mod access;
pub(in crate::sm) mod constants;
mod l1;
mod l1_pipeline;
#[cfg(test)]
mod l1_tests;
pub(in crate::sm) mod queue;
mod translation;

use gpumodel_core::units::{Cycle, to_u16, to_u32, to_usize};

use crate::config::Machine;
use crate::counters::{SmCounts, TlbCounts};
use crate::gpu::event_queue::Event;
use crate::gpu::shared_state::SharedState;
use crate::interval::SlotId;
use crate::memory::packet::{Operation, Packet, RequestKind, Target};
use crate::slab::Slab;
use crate::sm::coalesce::{LINE_BYTES, LineRequest};
use crate::sm::fetch::Fetch;
use crate::sm::scheduler::issue_stage::IssueStage;
use crate::sm::warp::Warp;
use access::{AddressUnit, Resolved};
use constants::{ConstantWay, Constants};
use l1_pipeline::{L1Pipeline, Outcome, Wait};
use queue::{Entry, Freed, LsuQueue, Route, Stall};
use translation::{Pages, Translator};

/// Cycles after which sectors that wait for the miss queue try again, or after the L1's latency,
/// by which their look-ups are ahead of the time at which they leave.
const RETRY: Cycle = 8;

/// The load/store unit of one SM.
#[derive(Debug)]
pub(in crate::sm) struct Lsu {
    sm: u16,
    pub(in crate::sm) queue: LsuQueue,
    pub(in crate::sm) addresses: AddressUnit,
    pub(in crate::sm) data: L1Pipeline,
    /// Absent on machines without translation.
    translator: Option<Box<Translator>>,
    /// The constant cache, where the machine has one.
    pub(in crate::sm) constants: Option<Box<Constants>>,
    /// Memory instructions in flight.
    operations: Slab<Operation>,
    /// See [`crate::config::SmSpec::memory_issue_cycles`].
    memory_issue: u64,
    /// Cycles of a sector at the port to the registers.
    return_time: u64,
}

/// How far the unit has come with the instruction at the head of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sm) enum Served {
    /// It has none, or waits for what starts it again.
    Nothing,
    /// It continues with it later.
    Part,
    /// It is set aside until its pages have come.
    Aside,
    /// It is done with this operation.
    Whole(u32),
}

impl Lsu {
    /// The idle unit of SM `sm` of `machine`, whose schedulers may see what the L1 does.
    ///
    /// `block_bytes`: see [`crate::memory::MemorySystem::block_bytes`].
    pub(in crate::sm) fn new(sm: u16, machine: &Machine, block_bytes: u64, seen: bool) -> Self {
        Self {
            sm,
            queue: LsuQueue::new(machine),
            addresses: AddressUnit::new(sm, machine),
            data: L1Pipeline::new(sm, machine, block_bytes, seen),
            translator: Translator::new(machine),
            constants: Constants::new(sm, machine),
            operations: Slab::new(),
            memory_issue: u64::from(machine.sm.memory_issue_cycles),
            return_time: u64::from(machine.l1.returns_per_cycle > 0),
        }
    }

    /// Chooses the carve-out of an SM without CTAs for kernels that use `shared_bytes` together,
    /// and flushes its L1.
    pub(in crate::sm) fn prepare(&mut self, shared_bytes: u32) {
        self.data.l1.prepare(shared_bytes, &self.addresses.shared);
    }

    /// Queues the memory instruction of the warp in slot `warp` of which the lanes' addresses have
    /// just been taken; the queue has room.
    pub(in crate::sm) fn issue(
        &mut self,
        (warp, resident, scheduler): (u16, &mut Warp, usize),
        (instruction, slot): (u32, Option<SlotId>),
        access: &Resolved,
        shared_state: &mut SharedState,
    ) {
        let now = shared_state.queue.now();
        let kernel = resident.kernel;
        let target = resident.target(access.kind.effect, slot, access.short, now);
        resident.outstanding += 1;
        let operation = self.operations.insert(Operation::new(warp, target, now));
        let issued = now.saturating_sub(u64::from(resident.lead));
        let mut lines = self.queue.list();
        let route = self.addresses.route(access, warp, &mut lines);
        if shared_state.hot.is_some() {
            let (of, at) = ((operation, resident), (instruction, slot));
            let way = (route, access.kind.shared_width());
            self.addresses.note_request(of, at, way, &lines, shared_state);
        }
        let tag = shared_state.windows(kernel).tag;
        if tag != 0 {
            lines.iter_mut().for_each(|line| line.line ^= tag / LINE_BYTES);
        }
        let passes = self.addresses.data_passes(route, access);
        let scheduler = u8::try_from(scheduler).ok();
        let entry = Entry::new(operation, kernel, route, lines, issued);
        let entry = Entry { passes, scheduler, ..entry };
        self.queue.push(entry);
        self.schedule_service(now, shared_state);
    }

    /// Queues an operation that moves lines past the L1, for a warp and its kernel: `fill` puts the
    /// lines into an empty list. The queue has room.
    pub(in crate::sm) fn move_lines(
        &mut self,
        (operation, kernel): (Operation, u32),
        kind: RequestKind,
        issued: Cycle,
        fill: impl FnOnce(&mut Vec<LineRequest>),
    ) {
        let mut lines = self.queue.list();
        fill(&mut lines);
        let operation = self.operations.insert(operation);
        self.queue.push(Entry::new(operation, kernel, Route::Direct(kind), lines, issued));
    }

    /// Schedules the unit for `cycle` or as soon as it is free.
    pub(in crate::sm) fn schedule_service(&mut self, cycle: u64, shared_state: &mut SharedState) {
        let at = self.before_held(cycle.max(self.queue.free_at), shared_state);
        if self.queue.scheduled == 0 && self.queue.stalled.is_none() {
            self.queue.scheduled = at.max(1);
            shared_state.queue.schedule(at, Event::LoadStore { sm: self.sm });
        }
    }

    /// The cycle at which the unit continues that would at cycle `at`: before sectors that wait
    /// for the miss queue come too late to be sent in time.
    fn before_held(&self, at: Cycle, shared_state: &SharedState) -> Cycle {
        if self.data.polls() {
            at.min(shared_state.queue.now() + self.data.reach_ahead().clamp(1, RETRY))
        } else {
            at
        }
    }

    /// Schedules the next service when something waits for it.
    pub(in crate::sm) fn go_on_serving(&mut self, shared_state: &mut SharedState) {
        if !self.queue.is_empty() || self.data.l1.has_leaving() {
            self.schedule_service(shared_state.queue.now(), shared_state);
        }
    }

    /// Stalls until the SM's port takes packets again.
    fn wait_for_port(&mut self, sent: Result<(), Option<u64>>, shared_state: &mut SharedState) {
        let Err(at) = sent else { return };
        self.queue.stalled = Some(Stall::Port);
        if let Some(at) = at {
            let at = self.before_held(at, shared_state);
            self.queue.scheduled = at;
            shared_state.queue.schedule(at, Event::LoadStore { sm: self.sm });
        }
    }

    /// Goes on soon where sectors wait for the miss queue.
    pub(in crate::sm) fn poll(&mut self, shared_state: &mut SharedState) {
        let now = shared_state.queue.now();
        if self.queue.scheduled == 0 && self.queue.stalled.is_none() && self.data.polls() {
            self.queue.scheduled = now + 1;
            shared_state.queue.schedule(now + 1, Event::LoadStore { sm: self.sm });
        }
    }

    /// Stalls with the instruction at the head.
    fn stall(&mut self, wait: Wait, shared_state: &mut SharedState) {
        let now = shared_state.queue.now();
        match wait {
            Wait::Entry if self.data.polls() => {
                self.wait_for_port(Err(Some(now + 1)), shared_state)
            }
            Wait::Entry => self.queue.stalled = Some(Stall::Entry),
            Wait::Constant => self.queue.stalled = Some(Stall::Constant),
            Wait::Port(at) => self.wait_for_port(Err(at), shared_state),
        }
    }

    /// The scheduled service begins: true when the unit is free for it, else it is scheduled again.
    pub(in crate::sm) fn begin_service(&mut self, shared_state: &mut SharedState) -> bool {
        let now = shared_state.queue.now();
        self.queue.scheduled = 0;
        if now < self.queue.free_at {
            self.schedule_service(now, shared_state);
            return false;
        }
        self.queue.stalled = None;
        true
    }

    /// Serves the instruction at the head of the queue as far as possible. Constants may come from
    /// the outer cache of `fetch`.
    pub(in crate::sm) fn serve_head(
        &mut self,
        fetch: Option<&mut Fetch>,
        sm_counts: &mut SmCounts,
        shared_state: &mut SharedState,
    ) -> Served {
        let now = shared_state.queue.now();
        let sent = self.data.send_evicted(shared_state);
        let head = if self.queue.resting { None } else { self.queue.take() };
        let Some(mut entry) = head else {
            self.wait_for_port(sent, shared_state);
            return Served::Nothing;
        };
        if self.translator.is_some() && entry.route != Route::Constant {
            match self.translate(&mut entry, shared_state) {
                Pages::Known => {}
                Pages::Asked => return Served::Aside,
                Pages::Refused => {
                    self.queue.put_back(entry);
                    return Served::Nothing;
                }
            }
        }
        let begin = entry.issued.max(self.queue.free_at).min(now) + self.memory_issue;
        let Some(cycles) = self.serve(&mut entry, begin, fetch, sm_counts, shared_state) else {
            self.queue.put_back(Entry { issued: Cycle::MAX, ..entry });
            return Served::Part;
        };
        self.queue.free_at = now + cycles;
        self.operations.get_mut(entry.operation).served = true;
        self.queue.recycle(entry.lines);
        Served::Whole(entry.operation)
    }

    /// Looks up the pages of an instruction that have not been yet. With
    /// [`Pages::Asked`] it is set aside, with [`Pages::Refused`] the unit stalls
    /// with it.
    #[inline(never)]
    fn translate(&mut self, entry: &mut Entry, shared_state: &mut SharedState) -> Pages {
        let unit = self.translator.as_mut().expect("the caller asked whether there is one");
        let lines = to_u32(entry.lines.len());
        let pages = unit.translate(entry, self.sm, &self.data.l1, shared_state);
        match pages {
            Pages::Known => {}
            Pages::Asked => {
                let tags = lines.div_ceil(self.data.figures.tags_per_cycle);
                self.queue.free_at = shared_state.queue.now() + u64::from(tags);
            }
            Pages::Refused => self.queue.stalled = Some(Stall::Page),
        }
        pages
    }

    /// Serves an entry as far as possible: the cycles it takes of the unit, or
    /// `None` when it must continue later.
    fn serve(
        &mut self,
        entry: &mut Entry,
        now: Cycle,
        fetch: Option<&mut Fetch>,
        sm_counts: &mut SmCounts,
        shared_state: &mut SharedState,
    ) -> Option<Cycle> {
        let (passes, remote) = match entry.route {
            Route::Shared { passes, remote } => (passes, remote),
            Route::Constant => {
                return self.serve_constants(entry, now, fetch, sm_counts, shared_state);
            }
            Route::Cached(_) | Route::Direct(_) => {
                return self.serve_lines(entry, now, sm_counts, shared_state);
            }
        };
        let way = if remote { self.addresses.cluster.round_trip } else { 0 };
        let latency = u64::from(self.addresses.shared.latency_cycles) + way;
        let done = self.returned(now + u64::from(passes - 1), 1) + latency;
        shared_state.counts[to_usize(entry.kernel)].shared_passes += u64::from(passes);
        let operation = self.operations.get_mut(entry.operation);
        operation.latest = operation.latest.max(done);
        Some(u64::from(passes))
    }

    fn serve_constants(
        &mut self,
        entry: &mut Entry,
        now: Cycle,
        fetch: Option<&mut Fetch>,
        sm_counts: &mut SmCounts,
        shared_state: &mut SharedState,
    ) -> Option<Cycle> {
        let kernel = to_usize(entry.kernel);
        let counted = shared_state.counts[kernel].constant;
        let constants = self.constants.as_mut().expect("the route leads to a constant cache");
        let operation = self.operations.get_mut(entry.operation);
        let mut way = ConstantWay { fetch, port: &mut self.data };
        let served = constants.serve(entry, operation, now, &mut way, shared_state);
        sm_counts.constant.grow(&counted, &shared_state.counts[kernel].constant);
        served.map_err(|wait| self.stall(wait, shared_state)).ok()
    }

    fn serve_lines(
        &mut self,
        entry: &mut Entry,
        now: Cycle,
        sm_counts: &mut SmCounts,
        shared_state: &mut SharedState,
    ) -> Option<Cycle> {
        let kernel = to_usize(entry.kernel);
        let whole = if matches!(entry.route, Route::Cached(_)) {
            let counted = shared_state.counts[kernel].l1;
            let whole = self.serve_sectors(entry, now, shared_state);
            sm_counts.l1.grow(&counted, &shared_state.counts[kernel].l1);
            whole
        } else {
            self.serve_sectors(entry, now, shared_state)
        };
        let figures = &self.data.figures;
        let tags = to_u32(entry.lines.len()).div_ceil(figures.tags_per_cycle);
        let banks = match figures.bank_bytes {
            _ if entry.passes > 0 => {
                if entry.hit {
                    entry.passes
                } else {
                    1
                }
            }
            0 => entry.served.div_ceil(figures.banks),
            _ => entry.cycle + 1,
        };
        whole.then_some(u64::from(tags.max(banks).max(1)))
    }

    /// Serves the sectors that are left; false when it must continue later.
    fn serve_sectors(
        &mut self,
        entry: &mut Entry,
        now: Cycle,
        shared_state: &mut SharedState,
    ) -> bool {
        let (before, _) = self.data.tlb_delays(entry);
        let reach = self.data.reach(entry.route);
        while let Some(&line) = entry.lines.get(to_usize(entry.place)) {
            let tag_time = u64::from(entry.place / self.data.figures.tags_per_cycle);
            let mut left = line.sectors;
            while left != 0 {
                let request = line.request(left, reach);
                let turn = entry.turn();
                let bank_time = self.data.bank_time(entry, request);
                let lookup = now + before + tag_time.max(bank_time);
                let mut outcome = self.data.serve(entry, request, lookup, shared_state);
                if outcome.known != 0 && entry.passes > 0 {
                    entry.hit = true;
                    outcome.known += u64::from(entry.passes - 1);
                }
                self.note(entry.operation, &outcome, shared_state);
                let served = request.mask & !outcome.left;
                left &= !served;
                entry.served += self.data.units(served);
                if outcome.left != 0 {
                    entry.lines[to_usize(entry.place)].sectors = left;
                    entry.go_back(turn);
                    return false;
                }
            }
            entry.place += 1;
        }
        true
    }

    /// Books the outcome of a request.
    fn note(&mut self, operation: u32, outcome: &Outcome, shared_state: &mut SharedState) {
        let operation = self.operations.get_mut(operation);
        operation.latest = operation.latest.max(outcome.known);
        operation.remaining += outcome.sent;
        if let Some(wait) = outcome.wait {
            self.stall(wait, shared_state);
        }
    }

    /// Informs the schedulers what the L1 has done for loads, where they see it.
    #[inline]
    pub(in crate::sm) fn inform(&mut self, issue: &mut IssueStage) {
        let Some(found) = &mut self.data.found else { return };
        for (operation, there) in found.drain(..) {
            let warp = self.operations.get(operation).warp;
            let scheduler = issue.scheduler_of(warp);
            issue.schedulers[scheduler].note_l1(warp, there);
        }
    }

    /// When results of so many sectors that arrive at `at` have passed the port to the registers.
    #[inline]
    pub(in crate::sm) fn returned(&mut self, at: Cycle, sectors: u32) -> Cycle {
        if self.return_time == 0 {
            return at;
        }
        let last = self.queue.returns_at.max(at) + self.return_time * u64::from(sectors - 1);
        self.queue.returns_at = last + self.return_time;
        last
    }

    /// Sectors of an operation have come at `done`: the operation, when it has ended with them.
    pub(in crate::sm) fn answered(
        &mut self,
        number: u32,
        sectors: u32,
        done: Cycle,
    ) -> Option<Operation> {
        let operation = self.operations.get_mut(number);
        operation.remaining -= to_u16(sectors);
        operation.latest = operation.latest.max(done);
        self.end_if_done(number)
    }

    /// Takes an operation out when all of its sectors are served and answered.
    #[inline]
    pub(in crate::sm) fn end_if_done(&mut self, number: u32) -> Option<Operation> {
        let operation = *self.operations.get(number);
        if !operation.served || operation.remaining > 0 {
            return None;
        }
        // What is left in its place belongs to no warp.
        self.operations.get_mut(number).posted = false;
        self.operations.remove(number);
        Some(operation)
    }

    /// The warp of an operation that is on its way, one that brings it nothing, need not wait for
    /// it to end: its slot. `None`: it has to.
    pub(in crate::sm) fn post(&mut self, number: u32) -> Option<u16> {
        let operation = self.operations.get_mut(number);
        operation.posted = operation.target == Target::Nothing;
        operation.posted.then_some(operation.warp)
    }

    /// A warp has ended before what it has posted: the launch waits for that.
    pub(in crate::sm) fn leave_behind(&mut self, warp: u16, kernel: u32) {
        for operation in self.operations.all_mut() {
            if operation.posted && operation.warp == warp {
                (operation.posted, operation.target) = (false, Target::Launch(kernel));
            }
        }
    }

    /// An answer has come that the L1 does not keep: its operation, when it has ended with it.
    pub(in crate::sm) fn on_answer(&mut self, packet: &Packet, done: Cycle) -> Option<Operation> {
        let sectors = packet.units();
        self.data.in_flight -= sectors;
        let returns = matches!(packet.kind, RequestKind::Read | RequestKind::Atomic);
        let done = if returns { self.returned(done, sectors) } else { done };
        self.answered(packet.operation, sectors, done)
    }

    /// Goes on where the unit is stalled and may have waited for what is `freed`.
    pub(in crate::sm) fn retry(&mut self, freed: Freed, shared_state: &mut SharedState) {
        // Evicted sectors leave before the head is served, whatever that waits for.
        let freed = if self.data.l1.has_leaving() { Freed::Page } else { freed };
        if self.queue.wakes(freed, self.data.figures.translates_before) {
            self.schedule_service(shared_state.queue.now(), shared_state);
        }
    }

    /// A page has come that this unit asked for.
    pub(in crate::sm) fn on_page(&mut self, page: u64) {
        let unit = self.translator.as_mut().expect("only an SM that translates asks for pages");
        unit.arrive(page, &mut self.queue.returned);
    }

    /// The TLB is flushed: the pages of all waiting instructions are looked up again.
    pub(in crate::sm) fn forget_pages(&mut self) {
        let Some(unit) = &mut self.translator else { return };
        unit.forget_pages();
        self.queue.forget_pages();
    }

    /// Flushes the L1 and continues behind a rest.
    pub(in crate::sm) fn ask_again(&mut self, shared_state: &mut SharedState) {
        self.data.l1.flush();
        self.queue.resting = false;
        self.go_on_serving(shared_state);
    }

    /// Look-ups in the TLB, where there is one.
    pub(in crate::sm) fn tlb_counts(&self) -> Option<TlbCounts> {
        self.translator.as_ref().map(|unit| unit.counts)
    }
}
