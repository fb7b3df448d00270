//! The load/store unit of one SM: a queue of memory instructions, served in order, one L1
//! look-up per sector; misses in flight, and their answers.
//!
//! Sectors evicted from the L1 wait in front of the SM's port. Nothing that sends passes
//! them, so what waits is bounded by the lines that one look-up, or the fills of
//! all outstanding misses, can evict.

pub(in crate::sm) mod access;
pub(in crate::sm) mod constants;
mod l1;
#[cfg(test)]
mod l1_tests;
pub(in crate::sm) mod queue;
mod translation;

use gpumodel_core::isa::Access;
use gpumodel_core::units::{Cycle, to_u16, to_usize};

use crate::config::Machine;
use crate::counters::CacheCounts;
use crate::gpu::event_queue::Event;
use crate::gpu::shared_state::SharedState;
use crate::memory::packet::{Leg, Operation, Origin, Packet, RequestKind, Target};
use crate::slab::Slab;
use crate::sm::Sm;
use crate::sm::coalesce::{Reach, SectorRequest};
use constants::Constants;
use l1::{L1, L1BankQueues, Read, Write};
use queue::{Entry, Freed, LsuQueue, Route, Stall};
use translation::{Pages, Translator};

/// The load/store unit of one SM.
#[derive(Debug)]
pub(in crate::sm) struct Lsu {
    pub(in crate::sm) queue: LsuQueue,
    pub(in crate::sm) l1: L1,
    banks: L1BankQueues,
    /// Absent on machines without translation.
    translator: Option<Box<Translator>>,
    /// The constant cache, where the machine has one.
    pub(in crate::sm) constants: Option<Box<Constants>>,
    /// Memory instructions in flight.
    pub(in crate::sm) operations: Slab<Operation>,
    /// The lanes' addresses of the instruction that issues.
    pub(in crate::sm) access: Access,
    /// Operations released by a fill.
    released: Vec<(u32, u8)>,
}

impl Lsu {
    /// The idle unit of an SM of `machine`.
    pub(in crate::sm) fn new(machine: &Machine) -> Self {
        Self {
            queue: LsuQueue::new(machine.l1.queue),
            l1: L1::new(&machine.l1, machine.interconnect.request_granularity),
            banks: L1BankQueues::new(machine.l1.banks.max(1)),
            translator: Translator::new(machine),
            constants: Constants::new(machine),
            operations: Slab::new(),
            access: Access::default(),
            released: Vec::new(),
        }
    }
}

/// What became of the sectors of one request.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sm) struct Outcome {
    /// When those that the L1 has answer; 0 without any.
    pub(in crate::sm) known: Cycle,
    /// Sectors of the caches whose answers are still to come.
    pub(in crate::sm) sent: u16,
    /// Those that must wait, as bits of [`SectorRequest::mask`].
    pub(in crate::sm) left: u8,
    /// What those wait for.
    pub(in crate::sm) wait: Option<Wait>,
}

/// What keeps a request from being served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sm) enum Wait {
    /// The L1 has no entry or way: it continues after a fill.
    Entry,
    /// The network takes no packet; `Some`: it will at that cycle.
    Port(Option<Cycle>),
}

impl Outcome {
    /// All of a request waits.
    pub(in crate::sm) fn waits(request: SectorRequest, wait: Wait) -> Self {
        Self { left: request.mask, wait: Some(wait), ..Self::default() }
    }
}

impl Sm {
    /// The load/store unit may continue.
    pub(crate) fn on_load_store(&mut self, shared_state: &mut SharedState) {
        let now = shared_state.queue.now();
        self.lsu.queue.scheduled = 0;
        if now < self.lsu.queue.free_at {
            return self.schedule_service(now, shared_state);
        }
        self.lsu.queue.stalled = None;
        self.retry_held(shared_state);
        let sent = self.send_evicted(shared_state);
        if self.lsu.queue.resting {
            return self.wait_for_port(sent, shared_state);
        }
        let Some(mut entry) = self.lsu.queue.take() else {
            return self.wait_for_port(sent, shared_state);
        };
        if self.lsu.translator.is_some() && entry.route != Route::Constant {
            match self.translate(&mut entry, now, shared_state) {
                Pages::Known => {}
                Pages::Asked => return self.go_on_serving(now, shared_state),
                Pages::Refused => return self.lsu.queue.put_back(entry),
            }
        }
        let begin = entry.issued.max(self.lsu.queue.free_at).min(now);
        if let Some(cycles) = self.serve(&mut entry, begin + self.params.memory_issue, shared_state)
        {
            self.lsu.queue.free_at = now + cycles;
            self.lsu.operations.get_mut(entry.operation).served = true;
            self.finish_if_done(entry.operation, shared_state);
            self.lsu.queue.recycle(entry.lines);
            self.admit_blocked(shared_state);
            self.hold_issue(shared_state);
        } else {
            self.lsu.queue.put_back(Entry { issued: Cycle::MAX, ..entry });
        }
        self.go_on_serving(now, shared_state);
    }

    /// Schedules the next service when something waits for it.
    pub(in crate::sm) fn go_on_serving(&mut self, now: Cycle, shared_state: &mut SharedState) {
        if !self.lsu.queue.is_empty() || self.lsu.l1.has_leaving() {
            self.schedule_service(now, shared_state);
        }
    }

    /// Lets warps issue that waited for a place in the queue.
    pub(in crate::sm) fn admit_blocked(&mut self, shared_state: &mut SharedState) {
        while self.lsu.queue.has_room() {
            if self.push_move() {
                continue;
            }
            let Some(warp) = self.lsu.queue.blocked.pop_front() else { return };
            self.leave_queue(warp, shared_state);
        }
    }

    /// Serves an entry as far as possible: the cycles it takes of the unit, or
    /// `None` when it must continue later.
    fn serve(
        &mut self,
        entry: &mut Entry,
        now: Cycle,
        shared_state: &mut SharedState,
    ) -> Option<Cycle> {
        let (passes, remote) = match entry.route {
            Route::Shared { passes, remote } => (passes, remote),
            Route::Constant => {
                let kernel = to_usize(entry.kernel);
                let counted = shared_state.counts[kernel].constant;
                let served = self.serve_constants(entry, now, shared_state);
                self.counts.constant.grow(&counted, &shared_state.counts[kernel].constant);
                return served;
            }
            Route::Cached(_) | Route::Direct(_) => {
                return self.serve_lines(entry, now, shared_state);
            }
        };
        let way = if remote { self.params.cluster.round_trip } else { 0 };
        let latency = u64::from(self.params.shared.latency_cycles) + way;
        let done = self.returned(now + u64::from(passes - 1), 1) + latency;
        shared_state.counts[to_usize(entry.kernel)].shared_passes += u64::from(passes);
        let operation = self.lsu.operations.get_mut(entry.operation);
        operation.latest = operation.latest.max(done);
        Some(u64::from(passes))
    }

    fn serve_lines(
        &mut self,
        entry: &mut Entry,
        now: Cycle,
        shared_state: &mut SharedState,
    ) -> Option<Cycle> {
        let kernel = to_usize(entry.kernel);
        let counted = shared_state.counts[kernel].l1;
        let whole = self.serve_sectors(entry, now, shared_state);
        self.counts.l1.grow(&counted, &shared_state.counts[kernel].l1);
        let tags =
            gpumodel_core::units::to_u32(entry.lines.len()).div_ceil(self.params.tags_per_cycle);
        let banks = match self.params.l1_bank_bytes {
            _ if entry.passes > 0 => {
                if entry.hit {
                    entry.passes
                } else {
                    1
                }
            }
            0 => entry.served.div_ceil(self.params.l1_banks),
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
        let (before, _) = self.tlb_delays(entry);
        let reach = self.reach(entry.route);
        while let Some(&line) = entry.lines.get(to_usize(entry.place)) {
            let tag_time = u64::from(entry.place / self.params.tags_per_cycle);
            let mut left = line.sectors;
            while left != 0 {
                let request = line.request(left, reach);
                let turn = entry.turn();
                let bank_time = self.bank_time(entry, request);
                let lookup = now + before + tag_time.max(bank_time);
                let mut outcome = self.banked_sector(entry, request, lookup, shared_state);
                if outcome.known != 0 && entry.passes > 0 {
                    entry.hit = true;
                    outcome.known += u64::from(entry.passes - 1);
                }
                self.note(entry.operation, &outcome, shared_state);
                let served = request.mask & !outcome.left;
                left &= !served;
                entry.served += self.units(served);
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

    /// What one request of an instruction asks for.
    fn reach(&self, route: Route) -> Reach {
        let alike = match route {
            Route::Cached(kind) | Route::Direct(kind) => kind.carries_data(),
            Route::Shared { .. } | Route::Constant => false,
        };
        match self.params.reach {
            Reach::Block { sectors, .. } => Reach::Block { sectors, alike },
            other @ (Reach::Sector | Reach::WholeLine) => other,
        }
    }

    /// Sectors of the caches that some bits of a line request stand for.
    #[inline]
    fn units(&self, sectors: u8) -> u32 {
        match self.params.reach {
            Reach::Block { .. } | Reach::Sector => sectors.count_ones(),
            Reach::WholeLine => u32::from(sectors != 0),
        }
    }

    /// Cycles of the banks before the next request of an entry: before its last sector.
    #[inline]
    fn bank_time(&self, entry: &mut Entry, request: SectorRequest) -> u64 {
        if entry.passes > 0 {
            return 0;
        }
        if self.params.l1_bank_bytes == 0 {
            let last = entry.served + self.units(request.mask) - 1;
            return u64::from(last / self.params.l1_banks);
        }
        entry.enter_bank(self.bank_of(request.address));
        u64::from(entry.cycle)
    }

    /// Cycles of the TLB's look-up in front of the L1, and behind it.
    fn tlb_delays(&self, entry: &Entry) -> (Cycle, Cycle) {
        let delay = u64::from(entry.delay);
        if self.params.translates_before_l1 { (delay, 0) } else { (0, delay) }
    }

    /// Books the outcome of a request.
    fn note(&mut self, operation: u32, outcome: &Outcome, shared_state: &mut SharedState) {
        let operation = self.lsu.operations.get_mut(operation);
        operation.latest = operation.latest.max(outcome.known);
        operation.remaining += outcome.sent;
        match outcome.wait {
            Some(Wait::Entry) => self.lsu.queue.stalled = Some(Stall::Entry),
            Some(Wait::Port(at)) => self.wait_for_port(Err(at), shared_state),
            None => {}
        }
    }

    pub(in crate::sm) fn sector(
        &mut self,
        entry: &Entry,
        request: SectorRequest,
        lookup: Cycle,
        shared_state: &mut SharedState,
    ) -> Outcome {
        if let Err(at) = self.port_room(shared_state)
            && !self.stays(entry.route, request)
        {
            return Outcome::waits(request, Wait::Port(at));
        }
        self.look_up(entry, request, lookup, shared_state)
    }

    /// Lets the scheduler of a warp know what the L1 did for it. What was refused is looked up
    /// again.
    fn note_l1(&mut self, operation: u32, read: &Read) {
        let warp = self.lsu.operations.get_mut(operation).warp;
        let scheduler = self.issue.scheduler_of(warp);
        for (sectors, found) in [(read.hit | read.merged, true), (read.miss, false)] {
            if sectors != 0 {
                self.issue.schedulers[scheduler].note_l1(warp, found);
            }
        }
    }

    /// The sectors of a request in their line of the L1, one bit each.
    #[inline]
    fn l1_sectors(&self, request: SectorRequest) -> u8 {
        match self.params.reach {
            Reach::Block { .. } => request.mask,
            Reach::Sector | Reach::WholeLine => self.lsu.l1.sector_bit(request.address),
        }
    }

    /// Looks a request up and sends what it needs, whether the port has room or not.
    pub(in crate::sm) fn look_up(
        &mut self,
        entry: &Entry,
        request: SectorRequest,
        lookup: Cycle,
        shared_state: &mut SharedState,
    ) -> Outcome {
        self.lsu.l1.kernel = entry.kernel;
        let (_, behind) = self.tlb_delays(entry);
        match entry.route {
            Route::Cached(RequestKind::Read) => {
                let read = self.read_l1(entry, request, shared_state);
                if self.issue.sees_l1 {
                    self.note_l1(entry.operation, &read);
                }
                self.after_read(
                    entry,
                    request,
                    &read,
                    lookup + self.params.l1_latency,
                    shared_state,
                )
            }
            Route::Cached(kind) => {
                let write = self.write_l1(entry, request, shared_state);
                let after = lookup + self.params.l1_latency;
                self.after_write((entry, kind), request, &write, after, shared_state)
            }
            Route::Direct(kind) => {
                let sent = self.units(request.mask);
                let leaves = lookup + 1 + behind;
                self.send_sectors(entry, request, (kind, leaves, false), shared_state);
                Outcome { sent: to_u16(sent), ..Outcome::default() }
            }
            Route::Shared { .. } | Route::Constant => {
                Outcome { known: lookup, ..Outcome::default() }
            }
        }
    }

    /// Sends what a read of the L1 lacks, which was done at cycle `after`.
    #[inline]
    fn after_read(
        &mut self,
        entry: &Entry,
        request: SectorRequest,
        read: &Read,
        after: Cycle,
        shared_state: &mut SharedState,
    ) -> Outcome {
        let Read { hit, merged, miss, refused } = *read;
        if miss != 0 {
            let leaves = after + self.tlb_delays(entry).1;
            let missed = self.part(request, miss);
            self.send_sectors(entry, missed, (RequestKind::Read, leaves, true), shared_state);
        }
        Outcome {
            known: if hit == 0 { 0 } else { after },
            sent: to_u16((merged | miss).count_ones()),
            left: self.part(request, refused).mask,
            wait: (refused != 0).then_some(Wait::Entry),
        }
    }

    /// Sends what a write of the L1 sends down or must fetch; it was done at cycle `after`.
    fn after_write(
        &mut self,
        (entry, kind): (&Entry, RequestKind),
        request: SectorRequest,
        write: &Write,
        after: Cycle,
        shared_state: &mut SharedState,
    ) -> Outcome {
        let Write { kept, down, fetch, refused } = *write;
        let leaves = after + self.tlb_delays(entry).1;
        if down != 0 {
            self.send_sectors(entry, self.part(request, down), (kind, leaves, false), shared_state);
        }
        if fetch != 0 {
            let fetched = self.part(request, fetch);
            self.send_sectors(entry, fetched, (RequestKind::Read, leaves, true), shared_state);
        }
        Outcome {
            known: if kept == 0 { 0 } else { after },
            sent: to_u16((down | fetch).count_ones()),
            left: self.part(request, refused).mask,
            wait: (refused != 0).then_some(Wait::Entry),
        }
    }

    /// The part of a request that stands for `sectors` of its line of the L1.
    #[inline]
    fn part(&self, request: SectorRequest, sectors: u8) -> SectorRequest {
        match self.params.reach {
            Reach::Block { .. } => request.part(sectors),
            Reach::Sector | Reach::WholeLine if sectors == 0 => {
                SectorRequest { mask: 0, ..request }
            }
            Reach::Sector | Reach::WholeLine => request,
        }
    }

    #[inline]
    fn read_l1(
        &mut self,
        entry: &Entry,
        request: SectorRequest,
        shared_state: &mut SharedState,
    ) -> Read {
        let mut counted = CacheCounts::default();
        let asked = self.l1_sectors(request);
        let read = self.lsu.l1.read(request.address, asked, entry.operation, &mut counted);
        let sectors = self.lsu.l1.sectors_at_once();
        shared_state.counts[to_usize(entry.kernel)].l1.add(&counted, sectors);
        if let Some(hot) = &mut shared_state.hot {
            hot.count_l1((self.id, entry.kernel, entry.operation), &counted, sectors);
        }
        read
    }

    #[inline]
    fn write_l1(
        &mut self,
        entry: &Entry,
        request: SectorRequest,
        shared_state: &mut SharedState,
    ) -> Write {
        let mut counted = CacheCounts::default();
        let place = (request.address, self.l1_sectors(request));
        let write = self.lsu.l1.write(place, request.bytes, entry.operation, &mut counted);
        let sectors = request.sectors;
        shared_state.counts[to_usize(entry.kernel)].l1.add(&counted, sectors);
        if let Some(hot) = &mut shared_state.hot {
            hot.count_l1((self.id, entry.kernel, entry.operation), &counted, sectors);
        }
        write
    }

    /// True when the look-up of a request sends nothing.
    fn stays(&self, route: Route, request: SectorRequest) -> bool {
        let sectors = self.l1_sectors(request);
        match route {
            Route::Cached(RequestKind::Read) => self.lsu.l1.keeps(request.address, sectors),
            Route::Cached(_) => self.lsu.l1.absorbs(request.address, sectors),
            Route::Shared { .. } | Route::Direct(_) | Route::Constant => false,
        }
    }

    /// Sends a request towards its slice: what to ask there, when it leaves, and
    /// whether the answer fills the L1, with whole sectors of it.
    #[inline]
    fn send_sectors(
        &mut self,
        entry: &Entry,
        request: SectorRequest,
        (kind, ready, fills_l1): (RequestKind, Cycle, bool),
        shared_state: &mut SharedState,
    ) {
        let SectorRequest { address: asked, bytes, mask, .. } = request;
        self.lsu.queue.in_flight += self.units(mask);
        let sectors = if fills_l1 { self.lsu.l1.sectors_at_once() } else { request.sectors };
        let address = shared_state.physical(asked);
        shared_state.send(Packet {
            address,
            virtual_address: asked,
            ready,
            operation: entry.operation,
            kernel: entry.kernel,
            bytes,
            sectors,
            mask: if self.params.by_line() { mask } else { 0 },
            sm: self.id,
            slice: shared_state.memory_system.slice_of(address),
            kind,
            fills_l1,
            origin: Origin::Sm,
            leg: Leg::Near,
        });
    }

    /// An answer has come.
    pub(crate) fn on_reply(
        &mut self,
        packet: &Packet,
        done: Cycle,
        shared_state: &mut SharedState,
    ) {
        let freed = if packet.kind == RequestKind::Code {
            self.on_code(packet, done, shared_state);
            Freed::Code
        } else if packet.kind == RequestKind::Constant {
            self.on_constant(packet, done, shared_state);
            Freed::Code
        } else if packet.fills_l1 {
            self.fill_l1(packet, done, shared_state);
            Freed::Fill
        } else {
            let sectors = packet.units();
            self.lsu.queue.in_flight -= sectors;
            let returns = matches!(packet.kind, RequestKind::Read | RequestKind::Atomic);
            let done = if returns { self.returned(done, sectors) } else { done };
            self.answered(packet.operation, sectors, done, shared_state);
            Freed::Nothing
        };
        if self.lsu.l1.has_leaving() {
            self.schedule_service(shared_state.queue.now(), shared_state);
        }
        self.retry(freed, shared_state);
    }

    /// Sectors have come for the L1 and what waits for them.
    fn fill_l1(&mut self, packet: &Packet, done: Cycle, shared_state: &mut SharedState) {
        self.lsu.queue.in_flight -= packet.units();
        let mut released = std::mem::take(&mut self.lsu.released);
        let address = packet.virtual_address;
        let came = if packet.mask == 0 { self.lsu.l1.sector_bit(address) } else { packet.mask };
        self.lsu.l1.fill(address, came, &mut released);
        self.retry_held(shared_state);
        for &(operation, sectors) in &released {
            let sectors = sectors.count_ones();
            let done = self.returned(done, sectors);
            self.answered(operation, sectors, done, shared_state);
        }
        released.clear();
        self.lsu.released = released;
    }

    /// Lets instruction fetch try again, and the load/store unit where it is stalled and may
    /// have waited for what is `freed`.
    pub(crate) fn retry(&mut self, freed: Freed, shared_state: &mut SharedState) {
        self.send_code(shared_state);
        // Evicted sectors leave before the head is served, whatever that waits for.
        let freed = if self.lsu.l1.has_leaving() { Freed::Page } else { freed };
        if self.lsu.queue.wakes(freed, self.params.translates_before_l1) {
            self.schedule_service(shared_state.queue.now(), shared_state);
        }
    }

    /// When results of so many sectors that arrive at `at` have passed the port to the registers.
    #[inline]
    fn returned(&mut self, at: Cycle, sectors: u32) -> Cycle {
        if self.params.return_time == 0 {
            return at;
        }
        let last =
            self.lsu.queue.returns_at.max(at) + self.params.return_time * u64::from(sectors - 1);
        self.lsu.queue.returns_at = last + self.params.return_time;
        last
    }

    pub(in crate::sm) fn answered(
        &mut self,
        number: u32,
        sectors: u32,
        done: Cycle,
        shared_state: &mut SharedState,
    ) {
        let operation = self.lsu.operations.get_mut(number);
        operation.remaining -= to_u16(sectors);
        operation.latest = operation.latest.max(done);
        self.finish_if_done(number, shared_state);
    }

    /// Ends an operation when all of its sectors are served and answered.
    fn finish_if_done(&mut self, number: u32, shared_state: &mut SharedState) {
        let operation = *self.lsu.operations.get(number);
        if !operation.served || operation.remaining > 0 {
            return;
        }
        self.lsu.operations.remove(number);
        let bulk_copy = self.params.bulk_copy;
        let warp = self.warp(operation.warp);
        warp.outstanding -= 1;
        warp.last_done = warp.last_done.max(operation.latest);
        match operation.target {
            Target::Slot(slot) => warp.loaded(slot, operation.latest),
            Target::Group(group) => warp.leave_group(group, operation.latest),
            Target::Object { place, bytes, multicast } => {
                let done = operation.latest + bulk_copy;
                warp.last_done = warp.last_done.max(done);
                let copy = (place, bytes, multicast);
                self.end_bulk_load(operation.warp, copy, done, shared_state);
            }
            Target::Nothing => {}
        }
        self.wake_if_met(operation.warp, shared_state);
    }

    /// Whether the SM's port takes another packet behind all evicted sectors.
    ///
    /// # Errors
    /// The cycle at which it will, or `None` when the SM will be woken.
    pub(in crate::sm) fn port_room(
        &mut self,
        shared_state: &mut SharedState,
    ) -> Result<(), Option<u64>> {
        self.send_evicted(shared_state)?;
        shared_state.memory_system.port_room(self.id, shared_state.queue.now())
    }

    /// Sends evicted sectors while the port takes them.
    ///
    /// # Errors
    /// As [`Sm::port_room`].
    pub(crate) fn send_evicted(
        &mut self,
        shared_state: &mut SharedState,
    ) -> Result<(), Option<u64>> {
        while self.lsu.l1.has_leaving() {
            let now = shared_state.queue.now();
            shared_state.memory_system.port_room(self.id, now)?;
            let Some(leaving) = self.lsu.l1.next_leaving() else { break };
            let address = shared_state.physical(leaving.address);
            shared_state.send(Packet {
                address,
                virtual_address: leaving.address,
                ready: now + self.params.l1_latency,
                operation: 0,
                kernel: self.lsu.l1.kernel,
                bytes: leaving.bytes,
                sectors: self.lsu.l1.written_sectors(leaving.bytes),
                mask: if self.params.by_line() { self.lsu.l1.sector_bit(address) } else { 0 },
                sm: self.id,
                slice: shared_state.memory_system.slice_of(address),
                kind: RequestKind::WriteBack,
                fills_l1: false,
                origin: Origin::Sm,
                leg: Leg::Near,
            });
        }
        Ok(())
    }

    /// Stalls the load/store unit until its port takes packets again.
    pub(in crate::sm) fn wait_for_port(
        &mut self,
        sent: Result<(), Option<u64>>,
        shared_state: &mut SharedState,
    ) {
        let Err(at) = sent else { return };
        self.lsu.queue.stalled = Some(Stall::Port);
        if let Some(at) = at {
            self.lsu.queue.scheduled = at;
            shared_state.queue.schedule(at, Event::LoadStore { sm: self.id });
        }
    }
}
