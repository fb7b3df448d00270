//! The load/store unit at work: look-ups, misses on their way, answers.

use gpumodel_core::units::{Cycle, to_usize};

use super::super::chip::Chip;
use super::super::coalesce::Piece;
use super::super::counters::CacheCounts;
use super::super::packet::{Ask, Origin, Packet, Target};
use super::Sm;
use super::l1::{Read, Write};
use super::load_store::{Entry, Path};
use super::translate::Pages;

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
    pub(in super::super) fn on_load_store(&mut self, chip: &mut Chip) {
        let now = chip.queue.now();
        self.load_store.scheduled = 0;
        if now < self.load_store.free_at {
            return self.schedule_service(now, chip);
        }
        self.load_store.stalled = false;
        self.retry_held(chip);
        let sent = self.send_evicted(chip);
        if self.load_store.resting {
            return self.wait_for_port(sent, chip);
        }
        let Some(mut entry) = self.load_store.take() else {
            return self.wait_for_port(sent, chip);
        };
        if self.translator.is_some() && entry.path != Path::Constant {
            match self.translate(&mut entry, now, chip) {
                Pages::Known => {}
                Pages::Asked => return self.go_on_serving(now, chip),
                Pages::Refused => return self.load_store.put_back(entry),
            }
        }
        let begin = entry.issued.max(self.load_store.free_at).min(now);
        if let Some(cycles) = self.serve(&mut entry, begin + self.params.memory_issue, chip) {
            self.load_store.free_at = now + cycles;
            self.operations.get_mut(entry.operation).served = true;
            self.finish_if_done(entry.operation, chip);
            self.load_store.recycle(entry.lines);
            self.admit_blocked(chip);
            self.hold_issue(chip);
        } else {
            self.load_store.put_back(Entry { issued: Cycle::MAX, ..entry });
        }
        self.go_on_serving(now, chip);
    }

    /// Schedules the next service when something waits for it.
    pub(super) fn go_on_serving(&mut self, now: Cycle, chip: &mut Chip) {
        if !self.load_store.is_empty() || self.l1.has_leaving() {
            self.schedule_service(now, chip);
        }
    }

    /// Lets warps issue that waited for a place in the queue.
    pub(super) fn admit_blocked(&mut self, chip: &mut Chip) {
        while self.load_store.has_room() {
            if self.push_move() {
                continue;
            }
            let Some(warp) = self.load_store.blocked.pop_front() else { return };
            self.leave_queue(warp, chip);
        }
    }

    /// Serves an entry as far as possible: the cycles it takes of the unit, or
    /// `None` when it must go on later.
    fn serve(&mut self, entry: &mut Entry, now: Cycle, chip: &mut Chip) -> Option<Cycle> {
        let passes = match entry.path {
            Path::Shared { passes } => passes,
            Path::Constant => {
                let kernel = to_usize(entry.kernel);
                let counted = chip.counts[kernel].constant;
                let served = self.serve_constants(entry, now, chip);
                self.counts.constant.grow(&counted, &chip.counts[kernel].constant);
                return served;
            }
            _ => return self.serve_lines(entry, now, chip),
        };
        let latency = u64::from(self.params.shared.latency_cycles);
        let done = self.returned(now + u64::from(passes - 1)) + latency;
        chip.counts[to_usize(entry.kernel)].shared_passes += u64::from(passes);
        let operation = self.operations.get_mut(entry.operation);
        operation.latest = operation.latest.max(done);
        Some(u64::from(passes))
    }

    fn serve_lines(&mut self, entry: &mut Entry, now: Cycle, chip: &mut Chip) -> Option<Cycle> {
        let kernel = to_usize(entry.kernel);
        let counted = chip.counts[kernel].l1;
        let whole = self.serve_sectors(entry, now, chip);
        self.counts.l1.grow(&counted, &chip.counts[kernel].l1);
        let tags =
            gpumodel_core::units::to_u32(entry.lines.len()).div_ceil(self.params.tags_per_cycle);
        let banks = match self.params.l1_bank_bytes {
            0 => entry.served.div_ceil(self.params.l1_banks),
            _ => entry.cycle + 1,
        };
        whole.then_some(u64::from(tags.max(banks).max(1)))
    }

    /// Serves the sectors that are left; false when it must go on later.
    fn serve_sectors(&mut self, entry: &mut Entry, now: Cycle, chip: &mut Chip) -> bool {
        let (before, _) = self.tlb_delays(entry);
        while let Some(&line) = entry.lines.get(to_usize(entry.place)) {
            let tag_time = u64::from(entry.place / self.params.tags_per_cycle);
            let mut left = line.sectors;
            while left != 0 {
                let piece = line.piece(left, self.params.whole_lines);
                let turn = entry.turn();
                let bank_time = self.bank_time(entry, piece.address);
                let lookup = now + before + tag_time.max(bank_time);
                let outcome = self.banked_sector(entry, piece, lookup, chip);
                if !self.note(entry.operation, &outcome, chip) {
                    entry.lines[to_usize(entry.place)].sectors = left;
                    entry.go_back(turn);
                    return false;
                }
                entry.served += 1;
                left &= !piece.mask;
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
    fn note(&mut self, operation: u32, outcome: &Sector, chip: &mut Chip) -> bool {
        let operation = self.operations.get_mut(operation);
        match *outcome {
            Sector::Known(cycle) => operation.latest = operation.latest.max(cycle),
            Sector::Sent => operation.remaining += 1,
            Sector::NoEntry => self.load_store.stalled = true,
            Sector::NoPort(at) => self.wait_for_port(Err(at), chip),
        }
        matches!(outcome, Sector::Known(_) | Sector::Sent)
    }

    pub(super) fn sector(
        &mut self,
        entry: &Entry,
        piece: Piece,
        lookup: Cycle,
        chip: &mut Chip,
    ) -> Sector {
        if let Err(at) = self.port_room(chip)
            && !self.stays(entry.path, piece.address)
        {
            return Sector::NoPort(at);
        }
        self.look_up(entry, piece, lookup, chip)
    }

    /// Looks a sector up and sends what it needs, whether the port has room or not.
    pub(super) fn look_up(
        &mut self,
        entry: &Entry,
        piece: Piece,
        lookup: Cycle,
        chip: &mut Chip,
    ) -> Sector {
        self.l1.kernel = entry.kernel;
        let after = lookup + self.params.l1_latency;
        let (_, behind) = self.tlb_delays(entry);
        let leaves = after + behind;
        let (ask, ready, fills_l1) = match entry.path {
            Path::Cached(Ask::Read) => match self.read_l1(entry, piece, chip) {
                Read::Hit => return Sector::Known(after),
                Read::Merged => return Sector::Sent,
                Read::Refused => return Sector::NoEntry,
                Read::Miss => (Ask::Read, leaves, true),
            },
            Path::Cached(ask) => match self.write_l1(entry, piece, chip) {
                Write::Kept => return Sector::Known(after),
                Write::Refused => return Sector::NoEntry,
                Write::Fetch => (Ask::Read, leaves, true),
                Write::Down => (ask, leaves, false),
            },
            Path::Direct(ask) => (ask, lookup + 1 + behind, false),
            Path::Shared { .. } | Path::Constant => return Sector::Known(lookup),
        };
        self.send_sector(entry, piece, (ask, ready, fills_l1), chip);
        Sector::Sent
    }

    #[inline]
    fn read_l1(&mut self, entry: &Entry, piece: Piece, chip: &mut Chip) -> Read {
        let mut counted = CacheCounts::default();
        let read = self.l1.read(piece.address, entry.operation, &mut counted);
        chip.counts[to_usize(entry.kernel)].l1.add(&counted, self.l1.sectors_at_once());
        read
    }

    #[inline]
    fn write_l1(&mut self, entry: &Entry, piece: Piece, chip: &mut Chip) -> Write {
        let mut counted = CacheCounts::default();
        let write = self.l1.write(piece.address, piece.bytes, entry.operation, &mut counted);
        chip.counts[to_usize(entry.kernel)].l1.add(&counted, piece.sectors);
        write
    }

    /// True when a sector's look-up sends nothing.
    fn stays(&self, path: Path, address: u64) -> bool {
        match path {
            Path::Cached(Ask::Read) => self.l1.keeps(address),
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
        piece: Piece,
        (ask, ready, fills_l1): (Ask, Cycle, bool),
        chip: &mut Chip,
    ) {
        self.load_store.in_flight += 1;
        let (asked, bytes) = (piece.address, piece.bytes);
        let sectors = if fills_l1 { self.l1.sectors_at_once() } else { piece.sectors };
        let address = chip.physical(asked);
        chip.send(Packet {
            address,
            asked,
            ready,
            operation: entry.operation,
            kernel: entry.kernel,
            bytes,
            sectors,
            sm: self.id,
            slice: chip.fabric.slice_of(address),
            ask,
            fills_l1,
            origin: Origin::Sm,
        });
    }

    /// An answer has come.
    pub(in super::super) fn on_reply(&mut self, packet: &Packet, done: Cycle, chip: &mut Chip) {
        if packet.ask == Ask::Code {
            self.on_code(packet, done, chip);
        } else if packet.ask == Ask::Constant {
            self.on_constant(packet, done, chip);
        } else if packet.fills_l1 {
            self.load_store.in_flight -= 1;
            let mut released = std::mem::take(&mut self.released);
            self.l1.fill(packet.asked, &mut released);
            self.retry_held(chip);
            for &operation in &released {
                let done = self.returned(done);
                self.answered(operation, done, chip);
            }
            released.clear();
            self.released = released;
        } else {
            self.load_store.in_flight -= 1;
            let returns = matches!(packet.ask, Ask::Read | Ask::Atomic);
            let done = if returns { self.returned(done) } else { done };
            self.answered(packet.operation, done, chip);
        }
        if self.l1.has_leaving() {
            self.schedule_service(chip.queue.now(), chip);
        }
        self.retry(chip);
    }

    /// Lets a stalled load/store unit and instruction fetch try again.
    pub(in super::super) fn retry(&mut self, chip: &mut Chip) {
        self.send_code(chip);
        if self.load_store.stalled && self.load_store.scheduled == 0 {
            self.load_store.stalled = false;
            self.schedule_service(chip.queue.now(), chip);
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

    pub(super) fn answered(&mut self, number: u32, done: Cycle, chip: &mut Chip) {
        let operation = self.operations.get_mut(number);
        operation.remaining -= 1;
        operation.latest = operation.latest.max(done);
        self.finish_if_done(number, chip);
    }

    /// Ends an operation when all of its sectors are served and answered.
    fn finish_if_done(&mut self, number: u32, chip: &mut Chip) {
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
        self.wake_if_met(operation.warp, chip);
    }
}
