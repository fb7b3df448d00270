//! The load/store unit of one SM: a queue of memory instructions, served in order, one L1
//! look-up per sector; misses in flight, and their answers.
//!
//! Sectors evicted from the L1 wait in front of the SM's port. Nothing that sends passes
//! them, so what waits is bounded by the lines that one look-up, or the fills of
//! all outstanding misses, can evict.

pub(in crate::sm) mod access;
mod bank_queue;
pub(in crate::sm) mod constants;
mod l1;
#[cfg(test)]
mod l1_tests;
pub(in crate::sm) mod queue;
mod translation;

use gpumodel_core::isa::Access;
use gpumodel_core::units::{Cycle, to_usize};

use crate::config::Machine;
use crate::counters::CacheCounts;
use crate::gpu::event_queue::Event;
use crate::gpu::shared_state::SharedState;
use crate::memory::packet::{Operation, Origin, Packet, RequestKind, Target};
use crate::slab::Slab;
use crate::sm::Sm;
use crate::sm::coalesce::SectorRequest;
use bank_queue::L1BankQueues;
use constants::Constants;
use l1::{L1, Read, Write};
use queue::{Entry, LsuQueue, Route};
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
    released: Vec<u32>,
}

impl Lsu {
    /// The idle unit of an SM of `machine`.
    pub(in crate::sm) fn new(machine: &Machine) -> Self {
        Self {
            queue: LsuQueue::new(machine.l1.queue),
            l1: L1::new(&machine.l1),
            banks: L1BankQueues::new(machine.l1.banks.max(1)),
            translator: Translator::new(machine),
            constants: Constants::new(machine),
            operations: Slab::new(),
            access: Access::default(),
            released: Vec::new(),
        }
    }
}

/// What became of one sector of an entry.
pub(in crate::sm) enum Sector {
    /// Looked up; the answer arrives at this cycle.
    Known(Cycle),
    /// In flight.
    Sent,
    /// The L1 has no entry or way: continues after a fill.
    NoEntry,
    /// The network takes no packet; `Some`: it will at that cycle.
    NoPort(Option<Cycle>),
}

impl Sm {
    /// The load/store unit may continue.
    pub(crate) fn on_load_store(&mut self, shared_state: &mut SharedState) {
        let now = shared_state.queue.now();
        self.lsu.queue.scheduled = 0;
        if now < self.lsu.queue.free_at {
            return self.schedule_service(now, shared_state);
        }
        self.lsu.queue.stalled = false;
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
        let passes = match entry.route {
            Route::Shared { passes } => passes,
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
        let latency = u64::from(self.params.shared.latency_cycles);
        let done = self.returned(now + u64::from(passes - 1)) + latency;
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
        while let Some(&line) = entry.lines.get(to_usize(entry.place)) {
            let tag_time = u64::from(entry.place / self.params.tags_per_cycle);
            let mut left = line.sectors;
            while left != 0 {
                let sector_request = line.sector_request(left, self.params.whole_lines);
                let turn = entry.turn();
                let bank_time = self.bank_time(entry, sector_request.address);
                let lookup = now + before + tag_time.max(bank_time);
                let outcome = self.banked_sector(entry, sector_request, lookup, shared_state);
                if !self.note(entry.operation, &outcome, shared_state) {
                    entry.lines[to_usize(entry.place)].sectors = left;
                    entry.go_back(turn);
                    return false;
                }
                entry.served += 1;
                left &= !sector_request.mask;
            }
            entry.place += 1;
        }
        true
    }

    /// Cycles of the banks before the next sector of an entry.
    #[inline]
    fn bank_time(&self, entry: &mut Entry, address: u64) -> u64 {
        if self.params.l1_bank_bytes == 0 {
            return u64::from(entry.served / self.params.l1_banks);
        }
        entry.enter_bank(self.bank_of(address));
        u64::from(entry.cycle)
    }

    /// Cycles of the TLB's look-up in front of the L1, and behind it.
    fn tlb_delays(&self, entry: &Entry) -> (Cycle, Cycle) {
        let delay = u64::from(entry.delay);
        if self.params.translates_before_l1 { (delay, 0) } else { (0, delay) }
    }

    /// Books a sector's outcome; false when the entry must wait.
    fn note(&mut self, operation: u32, outcome: &Sector, shared_state: &mut SharedState) -> bool {
        let operation = self.lsu.operations.get_mut(operation);
        match *outcome {
            Sector::Known(cycle) => operation.latest = operation.latest.max(cycle),
            Sector::Sent => operation.remaining += 1,
            Sector::NoEntry => self.lsu.queue.stalled = true,
            Sector::NoPort(at) => self.wait_for_port(Err(at), shared_state),
        }
        matches!(outcome, Sector::Known(_) | Sector::Sent)
    }

    pub(in crate::sm) fn sector(
        &mut self,
        entry: &Entry,
        sector_request: SectorRequest,
        lookup: Cycle,
        shared_state: &mut SharedState,
    ) -> Sector {
        if let Err(at) = self.port_room(shared_state)
            && !self.stays(entry.route, sector_request.address)
        {
            return Sector::NoPort(at);
        }
        self.look_up(entry, sector_request, lookup, shared_state)
    }

    /// Lets the scheduler of a warp know what the L1 did for it.
    fn note_l1(&mut self, operation: u32, read: &Read) {
        let found = match read {
            Read::Hit | Read::Merged => true,
            Read::Miss => false,
            // It is looked up again.
            Read::Refused => return,
        };
        let warp = self.lsu.operations.get_mut(operation).warp;
        let scheduler = self.issue.scheduler_of(warp);
        self.issue.schedulers[scheduler].note_l1(warp, found);
    }

    /// Looks a sector up and sends what it needs, whether the port has room or not.
    pub(in crate::sm) fn look_up(
        &mut self,
        entry: &Entry,
        sector_request: SectorRequest,
        lookup: Cycle,
        shared_state: &mut SharedState,
    ) -> Sector {
        self.lsu.l1.kernel = entry.kernel;
        let after = lookup + self.params.l1_latency;
        let (_, behind) = self.tlb_delays(entry);
        let leaves = after + behind;
        let (ask, ready, fills_l1) = match entry.route {
            Route::Cached(RequestKind::Read) => {
                let read = self.read_l1(entry, sector_request, shared_state);
                if self.issue.sees_l1 {
                    self.note_l1(entry.operation, &read);
                }
                match read {
                    Read::Hit => return Sector::Known(after),
                    Read::Merged => return Sector::Sent,
                    Read::Refused => return Sector::NoEntry,
                    Read::Miss => (RequestKind::Read, leaves, true),
                }
            }
            Route::Cached(ask) => match self.write_l1(entry, sector_request, shared_state) {
                Write::Kept => return Sector::Known(after),
                Write::Refused => return Sector::NoEntry,
                Write::Fetch => (RequestKind::Read, leaves, true),
                Write::Down => (ask, leaves, false),
            },
            Route::Direct(ask) => (ask, lookup + 1 + behind, false),
            Route::Shared { .. } | Route::Constant => return Sector::Known(lookup),
        };
        self.send_sector(entry, sector_request, (ask, ready, fills_l1), shared_state);
        Sector::Sent
    }

    #[inline]
    fn read_l1(
        &mut self,
        entry: &Entry,
        sector_request: SectorRequest,
        shared_state: &mut SharedState,
    ) -> Read {
        let mut counted = CacheCounts::default();
        let read = self.lsu.l1.read(sector_request.address, entry.operation, &mut counted);
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
        sector_request: SectorRequest,
        shared_state: &mut SharedState,
    ) -> Write {
        let mut counted = CacheCounts::default();
        let write = self.lsu.l1.write(
            sector_request.address,
            sector_request.bytes,
            entry.operation,
            &mut counted,
        );
        let sectors = sector_request.sectors;
        shared_state.counts[to_usize(entry.kernel)].l1.add(&counted, sectors);
        if let Some(hot) = &mut shared_state.hot {
            hot.count_l1((self.id, entry.kernel, entry.operation), &counted, sectors);
        }
        write
    }

    /// True when a sector's look-up sends nothing.
    fn stays(&self, route: Route, address: u64) -> bool {
        match route {
            Route::Cached(RequestKind::Read) => self.lsu.l1.keeps(address),
            Route::Cached(_) => self.lsu.l1.absorbs(address),
            Route::Shared { .. } | Route::Direct(_) | Route::Constant => false,
        }
    }

    /// Sends a request towards its slice: what to ask there, when it leaves, and
    /// whether the answer fills the L1, with a whole sector of it.
    #[inline]
    fn send_sector(
        &mut self,
        entry: &Entry,
        sector_request: SectorRequest,
        (ask, ready, fills_l1): (RequestKind, Cycle, bool),
        shared_state: &mut SharedState,
    ) {
        self.lsu.queue.in_flight += 1;
        let (asked, bytes) = (sector_request.address, sector_request.bytes);
        let sectors = if fills_l1 { self.lsu.l1.sectors_at_once() } else { sector_request.sectors };
        let address = shared_state.physical(asked);
        shared_state.send(Packet {
            address,
            virtual_address: asked,
            ready,
            operation: entry.operation,
            kernel: entry.kernel,
            bytes,
            sectors,
            sm: self.id,
            slice: shared_state.memory_system.slice_of(address),
            kind: ask,
            fills_l1,
            origin: Origin::Sm,
        });
    }

    /// An answer has come.
    pub(crate) fn on_reply(
        &mut self,
        packet: &Packet,
        done: Cycle,
        shared_state: &mut SharedState,
    ) {
        if packet.kind == RequestKind::Code {
            self.on_code(packet, done, shared_state);
        } else if packet.kind == RequestKind::Constant {
            self.on_constant(packet, done, shared_state);
        } else if packet.fills_l1 {
            self.lsu.queue.in_flight -= 1;
            let mut released = std::mem::take(&mut self.lsu.released);
            self.lsu.l1.fill(packet.virtual_address, &mut released);
            self.retry_held(shared_state);
            for &operation in &released {
                let done = self.returned(done);
                self.answered(operation, done, shared_state);
            }
            released.clear();
            self.lsu.released = released;
        } else {
            self.lsu.queue.in_flight -= 1;
            let returns = matches!(packet.kind, RequestKind::Read | RequestKind::Atomic);
            let done = if returns { self.returned(done) } else { done };
            self.answered(packet.operation, done, shared_state);
        }
        if self.lsu.l1.has_leaving() {
            self.schedule_service(shared_state.queue.now(), shared_state);
        }
        self.retry(shared_state);
    }

    /// Lets a stalled load/store unit and instruction fetch try again.
    pub(crate) fn retry(&mut self, shared_state: &mut SharedState) {
        self.send_code(shared_state);
        if self.lsu.queue.stalled && self.lsu.queue.scheduled == 0 {
            self.lsu.queue.stalled = false;
            self.schedule_service(shared_state.queue.now(), shared_state);
        }
    }

    /// When a result that arrives at `at` has passed the port to the registers.
    #[inline]
    fn returned(&mut self, at: Cycle) -> Cycle {
        if self.params.return_time == 0 {
            return at;
        }
        let free = self.lsu.queue.returns_at.max(at);
        self.lsu.queue.returns_at = free + self.params.return_time;
        free
    }

    pub(in crate::sm) fn answered(
        &mut self,
        number: u32,
        done: Cycle,
        shared_state: &mut SharedState,
    ) {
        let operation = self.lsu.operations.get_mut(number);
        operation.remaining -= 1;
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
        let warp = self.warp(operation.warp);
        warp.outstanding -= 1;
        warp.last_done = warp.last_done.max(operation.latest);
        match operation.target {
            Target::Slot(slot) => warp.loaded(slot, operation.latest),
            Target::Group(group) => warp.leave_group(group, operation.latest),
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
    pub(in crate::sm) fn send_evicted(
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
                sectors: self.lsu.l1.sectors_of(leaving.bytes),
                sm: self.id,
                slice: shared_state.memory_system.slice_of(address),
                kind: RequestKind::WriteBack,
                fills_l1: false,
                origin: Origin::Sm,
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
        self.lsu.queue.stalled = true;
        if let Some(at) = at {
            self.lsu.queue.scheduled = at;
            shared_state.queue.schedule(at, Event::LoadStore { sm: self.id });
        }
    }
}
