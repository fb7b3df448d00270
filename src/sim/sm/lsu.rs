//! The load/store unit at work: look-ups, misses on their way, answers.

use gpumodel_core::units::{Cycle, to_usize};

use super::Sm;
use super::l1::{Read, Write};
use super::lsu_queue::{Entry, Path};
use super::translate::Pages;
use crate::counters::CacheCounts;
use crate::gpu::shared_state::SharedState;
use crate::memory::packet::{Origin, Packet, RequestKind, Target};
use crate::sm::coalesce::SectorRequest;

/// What became of one sector of an entry.
pub(super) enum Sector {
    /// Looked up; the answer is there at this cycle.
    Known(Cycle),
    /// On its way.
    Sent,
    /// The L1 has no entry or way: goes on after a fill.
    NoEntry,
    /// The network takes no packet; `Some`: it will at that cycle.
    NoPort(Option<Cycle>),
}

impl Sm {
    /// The load/store unit may go on.
    pub(crate) fn on_load_store(&mut self, shared_state: &mut SharedState) {
        let now = shared_state.queue.now();
        self.load_store.scheduled = 0;
        if now < self.load_store.free_at {
            return self.schedule_service(now, shared_state);
        }
        self.load_store.stalled = false;
        self.retry_held(shared_state);
        let sent = self.send_evicted(shared_state);
        if self.load_store.resting {
            return self.wait_for_port(sent, shared_state);
        }
        let Some(mut entry) = self.load_store.take() else {
            return self.wait_for_port(sent, shared_state);
        };
        if self.translator.is_some() && entry.path != Path::Constant {
            match self.translate(&mut entry, now, shared_state) {
                Pages::Known => {}
                Pages::Asked => return self.go_on_serving(now, shared_state),
                Pages::Refused => return self.load_store.put_back(entry),
            }
        }
        let begin = entry.issued.max(self.load_store.free_at).min(now);
        if let Some(cycles) = self.serve(&mut entry, begin + self.params.memory_issue, shared_state)
        {
            self.load_store.free_at = now + cycles;
            self.operations.get_mut(entry.operation).served = true;
            self.finish_if_done(entry.operation, shared_state);
            self.load_store.recycle(entry.lines);
            self.admit_blocked(shared_state);
            self.hold_issue(shared_state);
        } else {
            self.load_store.put_back(Entry { issued: Cycle::MAX, ..entry });
        }
        self.go_on_serving(now, shared_state);
    }

    /// Schedules the next service when something waits for it.
    pub(super) fn go_on_serving(&mut self, now: Cycle, shared_state: &mut SharedState) {
        if !self.load_store.is_empty() || self.l1.has_leaving() {
            self.schedule_service(now, shared_state);
        }
    }

    /// Lets warps issue that waited for a place in the queue.
    pub(super) fn admit_blocked(&mut self, shared_state: &mut SharedState) {
        while self.load_store.has_room() {
            if self.push_move() {
                continue;
            }
            let Some(warp) = self.load_store.blocked.pop_front() else { return };
            self.leave_queue(warp, shared_state);
        }
    }

    /// Serves an entry as far as possible: the cycles it takes of the unit, or
    /// `None` when it must go on later.
    fn serve(
        &mut self,
        entry: &mut Entry,
        now: Cycle,
        shared_state: &mut SharedState,
    ) -> Option<Cycle> {
        let passes = match entry.path {
            Path::Shared { passes } => passes,
            Path::Constant => {
                let kernel = to_usize(entry.kernel);
                let counted = shared_state.counts[kernel].constant;
                let served = self.serve_constants(entry, now, shared_state);
                self.counts.constant.grow(&counted, &shared_state.counts[kernel].constant);
                return served;
            }
            _ => return self.serve_lines(entry, now, shared_state),
        };
        let latency = u64::from(self.params.shared.latency_cycles);
        let done = self.returned(now + u64::from(passes - 1)) + latency;
        shared_state.counts[to_usize(entry.kernel)].shared_passes += u64::from(passes);
        let operation = self.operations.get_mut(entry.operation);
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

    /// Serves the sectors that are left; false when it must go on later.
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
        let operation = self.operations.get_mut(operation);
        match *outcome {
            Sector::Known(cycle) => operation.latest = operation.latest.max(cycle),
            Sector::Sent => operation.remaining += 1,
            Sector::NoEntry => self.load_store.stalled = true,
            Sector::NoPort(at) => self.wait_for_port(Err(at), shared_state),
        }
        matches!(outcome, Sector::Known(_) | Sector::Sent)
    }

    pub(super) fn sector(
        &mut self,
        entry: &Entry,
        sector_request: SectorRequest,
        lookup: Cycle,
        shared_state: &mut SharedState,
    ) -> Sector {
        if let Err(at) = self.port_room(shared_state)
            && !self.stays(entry.path, sector_request.address)
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
        let warp = self.operations.get_mut(operation).warp;
        let scheduler = self.scheduler_of(warp);
        self.schedulers[scheduler].note_l1(warp, found);
    }

    /// Looks a sector up and sends what it needs, whether the port has room or not.
    pub(super) fn look_up(
        &mut self,
        entry: &Entry,
        sector_request: SectorRequest,
        lookup: Cycle,
        shared_state: &mut SharedState,
    ) -> Sector {
        self.l1.kernel = entry.kernel;
        let after = lookup + self.params.l1_latency;
        let (_, behind) = self.tlb_delays(entry);
        let leaves = after + behind;
        let (ask, ready, fills_l1) = match entry.path {
            Path::Cached(RequestKind::Read) => {
                let read = self.read_l1(entry, sector_request, shared_state);
                if self.sees_l1 {
                    self.note_l1(entry.operation, &read);
                }
                match read {
                    Read::Hit => return Sector::Known(after),
                    Read::Merged => return Sector::Sent,
                    Read::Refused => return Sector::NoEntry,
                    Read::Miss => (RequestKind::Read, leaves, true),
                }
            }
            Path::Cached(ask) => match self.write_l1(entry, sector_request, shared_state) {
                Write::Kept => return Sector::Known(after),
                Write::Refused => return Sector::NoEntry,
                Write::Fetch => (RequestKind::Read, leaves, true),
                Write::Down => (ask, leaves, false),
            },
            Path::Direct(ask) => (ask, lookup + 1 + behind, false),
            Path::Shared { .. } | Path::Constant => return Sector::Known(lookup),
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
        let read = self.l1.read(sector_request.address, entry.operation, &mut counted);
        shared_state.counts[to_usize(entry.kernel)].l1.add(&counted, self.l1.sectors_at_once());
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
        let write = self.l1.write(
            sector_request.address,
            sector_request.bytes,
            entry.operation,
            &mut counted,
        );
        shared_state.counts[to_usize(entry.kernel)].l1.add(&counted, sector_request.sectors);
        write
    }

    /// True when a sector's look-up sends nothing.
    fn stays(&self, path: Path, address: u64) -> bool {
        match path {
            Path::Cached(RequestKind::Read) => self.l1.keeps(address),
            Path::Cached(_) => self.l1.absorbs(address),
            _ => false,
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
        self.load_store.in_flight += 1;
        let (asked, bytes) = (sector_request.address, sector_request.bytes);
        let sectors = if fills_l1 { self.l1.sectors_at_once() } else { sector_request.sectors };
        let address = shared_state.physical(asked);
        shared_state.send(Packet {
            address,
            asked,
            ready,
            operation: entry.operation,
            kernel: entry.kernel,
            bytes,
            sectors,
            sm: self.id,
            slice: shared_state.memory_system.slice_of(address),
            ask,
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
        if packet.ask == RequestKind::Code {
            self.on_code(packet, done, shared_state);
        } else if packet.ask == RequestKind::Constant {
            self.on_constant(packet, done, shared_state);
        } else if packet.fills_l1 {
            self.load_store.in_flight -= 1;
            let mut released = std::mem::take(&mut self.released);
            self.l1.fill(packet.asked, &mut released);
            self.retry_held(shared_state);
            for &operation in &released {
                let done = self.returned(done);
                self.answered(operation, done, shared_state);
            }
            released.clear();
            self.released = released;
        } else {
            self.load_store.in_flight -= 1;
            let returns = matches!(packet.ask, RequestKind::Read | RequestKind::Atomic);
            let done = if returns { self.returned(done) } else { done };
            self.answered(packet.operation, done, shared_state);
        }
        if self.l1.has_leaving() {
            self.schedule_service(shared_state.queue.now(), shared_state);
        }
        self.retry(shared_state);
    }

    /// Lets a stalled load/store unit and instruction fetch try again.
    pub(crate) fn retry(&mut self, shared_state: &mut SharedState) {
        self.send_code(shared_state);
        if self.load_store.stalled && self.load_store.scheduled == 0 {
            self.load_store.stalled = false;
            self.schedule_service(shared_state.queue.now(), shared_state);
        }
    }

    /// When a result that is there at `at` has passed the port to the registers.
    #[inline]
    fn returned(&mut self, at: Cycle) -> Cycle {
        if self.params.return_time == 0 {
            return at;
        }
        let free = self.load_store.returns_at.max(at);
        self.load_store.returns_at = free + self.params.return_time;
        free
    }

    pub(super) fn answered(&mut self, number: u32, done: Cycle, shared_state: &mut SharedState) {
        let operation = self.operations.get_mut(number);
        operation.remaining -= 1;
        operation.latest = operation.latest.max(done);
        self.finish_if_done(number, shared_state);
    }

    /// Ends an operation when all of its sectors are served and answered.
    fn finish_if_done(&mut self, number: u32, shared_state: &mut SharedState) {
        let operation = *self.operations.get(number);
        if !operation.served || operation.remaining > 0 {
            return;
        }
        self.operations.remove(number);
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
}
