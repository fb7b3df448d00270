//! Memory channels: transfers on their way there and back, rooms in front of the controllers, these
//! on the SMs' clock, and what slices fetch and write.

use std::collections::VecDeque;

use crate::config::{ControllerOptions, Location, Machine, MemoryStandard, Refresh};
use gpumodel_core::units::{
    ClockRatio, Cycle, SECTOR_BYTES, to_u8, to_u16, to_u32, to_u64, to_usize,
};

use super::controllers::LookAhead;
use super::page_copy::PageCopies;
use super::{Counts, Events, LINE_BYTES, MemorySystem, granule, kilohertz};
use crate::bits::bits;
use crate::cache::WriteBack;
use crate::dram::{Block, Channel, ChannelCounters, Done, Request};
use crate::gpu::event_queue::MemoryEvent;
use crate::memory::packet::Packet;
use crate::slab::Slab;

/// What a slice fetches or writes at once: a sector, as many as the memory moves at once, or
/// a line of several accesses in one row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) address: u64,
    /// Where its first access lies; the others are the next columns.
    pub(super) place: Location,
    /// Its accesses, one bit each.
    pub(super) parts: u8,
    /// Accesses that are not served yet.
    pub(super) remaining: u8,
    /// Sectors of the line at `address` that a read brings, one bit each.
    pub(super) sectors: u8,
    pub(super) slice: u16,
    pub(super) kernel: u32,
    pub(super) write: bool,
    /// Flushes of its channel before it left its slice.
    pub(super) flushes: u32,
}

/// Cycles to a channel from which on windows of half of them are worth a start.
const LEAST_LATENCY: Cycle = 16;

/// What slices see of a channel.
#[derive(Debug, Default)]
pub(super) struct Port {
    /// Arrived transfers that the controller has not accepted yet.
    queued: u32,
    /// Unserved writes that left their slices since the last flush.
    writes: u32,
    /// Unserved writes that left their slices before or with the last flush.
    pub(super) flushed_writes: u32,
    /// Flushes so far.
    flushes: u32,
    /// Slices that wait for room.
    waiting: VecDeque<u16>,
    /// Since when requests have been waiting; `None` while none waits.
    waits_since: Option<Cycle>,
    /// Cycles in which some waited, before that.
    waited: Cycle,
}

impl Port {
    /// Notes at cycle `now` whether requests wait.
    fn note_waiting(&mut self, waits: bool, now: Cycle) {
        match self.waits_since {
            None if waits => self.waits_since = Some(now),
            Some(since) if !waits => {
                self.waited += now - since;
                self.waits_since = None;
            }
            None | Some(_) => {}
        }
    }

    /// Cycles up to `now` in which requests waited.
    fn waiting_cycles(&self, now: Cycle) -> Cycle {
        self.waited + self.waits_since.map_or(0, |since| now - since)
    }

    /// Counts all writes that have left the slices by now as part of a flush.
    pub(super) fn flush(&mut self) {
        self.flushes += 1;
        self.flushed_writes += std::mem::take(&mut self.writes);
    }

    /// A write that left its slice after `flushes` flushes is served.
    fn write_served(&mut self, flushes: u32) {
        let before = flushes < self.flushes;
        *(if before { &mut self.flushed_writes } else { &mut self.writes }) -= 1;
    }
}

/// A controller, what has arrived at its channel, and its next event.
#[derive(Clone, Debug)]
pub(super) struct Controller {
    pub(super) channel: Channel,
    clock: ClockRatio,
    /// Blocks that are not accepted yet; of the first one perhaps a part is.
    arrived: VecDeque<Block>,
    /// The cycle of the scheduled event; [`Cycle::MAX`] without one.
    pub(super) due: Cycle,
    /// The controller's clock for which it was last scheduled.
    next: u64,
}

/// What an advance of a controller gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Advanced {
    /// The cycle of an event that is to be scheduled; [`Cycle::MAX`] without one.
    pub(super) event: Cycle,
    /// Arrived blocks that are not accepted yet.
    pub(super) queued: u32,
    /// Accesses that were served.
    pub(super) served: u16,
    /// Requests wait at or in the controller.
    pub(super) waits: bool,
    /// A bank may have become ready for its copy.
    pub(super) copies: bool,
}

impl Controller {
    /// The controller of an idle channel, whose clock runs at `clock`.
    pub(super) fn new(channel: Channel, clock: ClockRatio) -> Self {
        Self { channel, clock, arrived: VecDeque::new(), due: Cycle::MAX, next: u64::MAX }
    }

    /// A block arrives.
    pub(super) fn arrive(&mut self, block: Block) {
        self.arrived.push_back(block);
    }

    /// Whether an event at cycle `now` is the scheduled one, and not one that was replaced by an
    /// earlier event.
    pub(super) fn takes_event(&mut self, now: Cycle) -> bool {
        takes(&mut self.due, now)
    }

    /// Advances the channel to cycle `now` and gives it what has arrived; adds what it has served
    /// to `done`.
    pub(super) fn advance(&mut self, now: Cycle, done: &mut Vec<Done>) -> Advanced {
        let (edge, before) = (edge(self.clock, now), done.len());
        self.channel.advance(edge, done);
        while let Some(block) = self.arrived.front_mut() {
            if !self.channel.room(block.request.write) {
                break;
            }
            block.columns = self.channel.push_block(edge, *block);
            if block.columns != 0 {
                break;
            }
            self.arrived.pop_front();
        }
        Advanced {
            event: self.schedule(now).unwrap_or(Cycle::MAX),
            queued: to_u32(self.arrived.len()),
            served: to_u16(done.len() - before),
            waits: !self.arrived.is_empty() || self.channel.waiting() > 0,
            copies: self.channel.take_ready_for_copy(),
        }
    }

    /// The cycle of the next event after `now`, where it is to be scheduled.
    pub(super) fn schedule(&mut self, now: Cycle) -> Option<Cycle> {
        let clock = self.channel.next_event()?;
        if clock == self.next && self.due != Cycle::MAX {
            return None;
        }
        self.next = clock;
        let due = self.clock.core_cycle_at_or_after(clock).max(now + 1);
        if due >= self.due {
            return None;
        }
        self.due = due;
        Some(due)
    }

    /// Requests at and in it.
    pub(super) fn load(&self) -> usize {
        self.arrived.len() + to_usize(self.channel.waiting())
    }
}

/// Whether the event at `now` is the one that is `due`, which then is none.
pub(super) fn takes(due: &mut Cycle, now: Cycle) -> bool {
    let takes = *due == now;
    if takes {
        *due = Cycle::MAX;
    }
    takes
}

/// The last edge of the memory's clock that the cycle `now` has reached.
fn edge(clock: ClockRatio, now: Cycle) -> u64 {
    clock.part_edge_at_or_after(now + 1) - 1
}

/// All channels.
#[derive(Debug)]
pub(super) struct Channels {
    pub(super) ports: Vec<Port>,
    /// By channel; empty while they are ahead.
    pub(super) controllers: Vec<Controller>,
    /// The controllers while they are ahead of the machine.
    ahead: Option<Box<LookAhead>>,
    transfers: Slab<Transfer>,
    pub(super) clock: ClockRatio,
    /// Cycles from a slice to its channel.
    pub(super) latency: Cycle,
    /// Transfers that may queue in front of a controller.
    queue_limit: u32,
    /// Sectors that one access moves.
    sectors: u64,
    done: Vec<Done>,
    /// Addresses of served writes.
    #[cfg(test)]
    pub(super) written: Vec<u64>,
    /// `None` where pages cannot be copied between channels.
    pub(super) copies: Option<Box<PageCopies>>,
}

impl Channels {
    /// The idle channels of `machine`; `copies` go on between them.
    pub(super) fn new(
        machine: &Machine,
        standard: &MemoryStandard,
        slices_per_channel: u32,
        copies: Option<PageCopies>,
    ) -> Self {
        let mut options =
            ControllerOptions { read_queue: machine.dram.queue, ..standard.controller.clone() };
        if machine.quirks.no_refresh {
            options.refresh = Refresh::None;
        }
        // All are alike, and reading the standard's gaps takes longer than a copy.
        let khz = machine.clocks.dram_mhz.map_or(standard.clock_khz, kilohertz);
        let clock = ClockRatio::new(khz, kilohertz(machine.clocks.core_mhz));
        let controller = Controller::new(Channel::new(standard, &options), clock);
        let channels = to_usize(machine.dram.channels);
        Self {
            ports: (0..channels).map(|_| Port::default()).collect(),
            controllers: vec![controller; channels],
            ahead: None,
            transfers: Slab::new(),
            clock,
            latency: u64::from(machine.dram.latency_cycles),
            queue_limit: machine.l2.dram_queue.max(1) * slices_per_channel,
            sectors: granule(standard.bytes_per_access) / SECTOR_BYTES,
            done: Vec::new(),
            #[cfg(test)]
            written: Vec::new(),
            copies: copies.map(Box::new),
        }
    }

    /// Lets the controllers go ahead of the machine, before anything has happened.
    pub(super) fn look_ahead(&mut self, threads: usize) {
        debug_assert!(self.ahead.is_none() && !self.is_busy());
        let controllers = std::mem::take(&mut self.controllers);
        self.ahead = Some(Box::new(LookAhead::new(controllers, self.latency, threads)));
    }

    /// The controllers go no further ahead: in as many cycles as a transfer takes to its channel,
    /// they are where the machine is.
    pub(super) fn end_look_ahead(&mut self) {
        self.ahead.iter_mut().for_each(|ahead| ahead.end());
    }

    /// Lets controllers that are ahead go on where nothing is known of the cycle `now`.
    #[inline]
    pub(super) fn keep_ahead(&mut self, now: Cycle) {
        if self.ahead.as_ref().is_some_and(|ahead| ahead.is_behind(now)) {
            self.go_on(now);
        }
    }

    #[cold]
    fn go_on(&mut self, now: Cycle) {
        if let Some(controllers) = self.ahead.as_mut().and_then(|ahead| ahead.go_on(now)) {
            self.controllers = controllers;
            self.ahead = None;
        }
    }

    /// True when a slice may send to the channel. Transfers in flight and a line's write-back
    /// may exceed the limit.
    pub(super) fn has_room(&self, channel: u32) -> bool {
        self.ports[to_usize(channel)].queued < self.queue_limit
    }

    /// Records that a slice waits for room.
    pub(super) fn wait_for_room(&mut self, channel: u32, slice: u16) {
        let waiting = &mut self.ports[to_usize(channel)].waiting;
        if !waiting.contains(&slice) {
            waiting.push_back(slice);
        }
    }

    /// The next slice that waits for room.
    pub(super) fn next_waiting(&mut self, channel: u32) -> Option<u16> {
        self.ports[to_usize(channel)].waiting.pop_front()
    }

    /// Sends a transfer that leaves its slice at cycle `at`.
    pub(super) fn send(&mut self, transfer: Transfer, at: Cycle, events: &mut Events) {
        let channel = transfer.place.channel;
        let port = &mut self.ports[to_usize(channel)];
        port.writes += u32::from(transfer.write);
        let number = self.transfers.insert(Transfer { flushes: port.flushes, ..transfer });
        let at = at + self.latency;
        if let Some(ahead) = &mut self.ahead {
            ahead.send(channel, block(number, &transfer), at);
        }
        events.schedule(at, MemoryEvent::ToChannel { transfer: number }.into());
    }

    /// A transfer arrives at its channel, whose number is returned.
    pub(super) fn on_arrive(
        &mut self,
        number: u32,
        events: &mut Events,
        counts: &mut Counts,
    ) -> u32 {
        self.keep_ahead(events.now());
        let transfer = self.transfers.get(number);
        let channel = transfer.place.channel;
        if self.ahead.is_none() {
            self.controllers[to_usize(channel)].arrive(block(number, transfer));
        }
        self.advance(channel, events, counts);
        channel
    }

    /// The event of a channel; an event that was replaced by an earlier one does nothing.
    pub(super) fn on_event(&mut self, channel: u16, events: &mut Events, counts: &mut Counts) {
        let now = events.now();
        self.keep_ahead(now);
        let takes = match &mut self.ahead {
            Some(ahead) => ahead.takes_event(channel.into(), now),
            None => self.controllers[usize::from(channel)].takes_event(now),
        };
        if takes {
            self.advance(u32::from(channel), events, counts);
        }
    }

    /// Advances a channel to the present, gives it what has arrived, and schedules its next
    /// event.
    pub(super) fn advance(&mut self, channel: u32, events: &mut Events, counts: &mut Counts) {
        let now = events.now();
        let advanced = match &mut self.ahead {
            Some(ahead) => ahead.advance(channel, now, &mut self.done),
            None => self.controllers[to_usize(channel)].advance(now, &mut self.done),
        };
        let Advanced { event, queued, waits, copies, .. } = advanced;
        let port = &mut self.ports[to_usize(channel)];
        port.queued = queued;
        port.note_waiting(waits, now);
        if copies && let Some(copies) = &mut self.copies {
            copies.bank_may_be_ready(channel, events);
        }
        schedule(channel, event, events);
        self.report_served(events, counts);
    }

    /// The last edge of the memory's clock that the cycle `now` has reached.
    pub(super) fn edge(&self, now: Cycle) -> u64 {
        edge(self.clock, now)
    }

    /// Schedules the next event of a channel that is not ahead.
    pub(super) fn schedule(&mut self, channel: u32, events: &mut Events) {
        let event = self.controllers[to_usize(channel)].schedule(events.now());
        schedule(channel, event.unwrap_or(Cycle::MAX), events);
    }

    /// Counts the served accesses and schedules the fills of reads for their last data beat.
    fn report_served(&mut self, events: &mut Events, counts: &mut Counts) {
        for done in self.done.drain(..) {
            let transfer = self.transfers.get_mut(done.token);
            transfer.remaining -= 1;
            let (write, ended) = (transfer.write, transfer.remaining == 0);
            let (channel, flushes) = (to_usize(transfer.place.channel), transfer.flushes);
            let counts = &mut counts[to_usize(transfer.kernel)];
            *(if write { &mut counts.dram_writes } else { &mut counts.dram_reads }) += self.sectors;
            if ended && write {
                self.ports[channel].write_served(flushes);
                #[cfg(test)]
                self.written.push(transfer.address);
                self.transfers.remove(done.token);
            } else if ended {
                let at = self.clock.core_cycle_at_or_after(done.clock);
                events.schedule(at, MemoryEvent::Fill { transfer: done.token }.into());
            }
            counts.row_hits += u64::from(done.row_hit);
            counts.row_misses += u64::from(!done.row_hit);
        }
    }

    /// Removes a finished read.
    pub(super) fn remove(&mut self, number: u32) -> Transfer {
        self.transfers.remove(number)
    }

    /// The counters of each channel up to cycle `now`.
    pub(super) fn counts(&self, now: Cycle) -> Vec<ChannelCounters> {
        let of = |(channel, port): (usize, &Port)| {
            let counters = match &self.ahead {
                Some(ahead) => ahead.counters(channel),
                None => self.controllers[channel].channel.counters(),
            };
            ChannelCounters { waiting_cycles: port.waiting_cycles(now), ..*counters }
        };
        self.ports.iter().enumerate().map(of).collect()
    }

    /// Bytes that one access moves.
    pub(super) fn access_bytes(&self) -> u64 {
        self.sectors * SECTOR_BYTES
    }

    /// Whether a transfer is in flight.
    pub(super) fn is_busy(&self) -> bool {
        self.transfers.len() > 0
    }

    /// What still queues, for the dump of a stuck run.
    pub(super) fn describe(&self) -> String {
        let queued = self.ports.iter().enumerate().filter(|(_, port)| port.queued > 0);
        let queued = queued.map(|(channel, port)| format!("{channel}:{}", port.queued));
        let copies = self.copies.as_ref().map_or(0, |copies| copies.pages());
        format!(
            "{} transfers in flight; queued by channel: {}; {copies} pages being copied",
            self.transfers.len(),
            queued.collect::<Vec<String>>().join(" ")
        )
    }
}

/// Schedules the event of a channel at cycle `at`, unless that is [`Cycle::MAX`].
fn schedule(channel: u32, at: Cycle, events: &mut Events) {
    if at != Cycle::MAX {
        events.schedule(at, MemoryEvent::Channel { channel: to_u16(channel) }.into());
    }
}

fn block(token: u32, transfer: &Transfer) -> Block {
    let Location { pseudo_channel, bank_group, bank, row, column, .. } = transfer.place;
    let write = transfer.write;
    let request = Request { token, write, pseudo_channel, bank_group, bank, row, column };
    Block { request, columns: transfer.parts }
}

impl MemorySystem {
    /// Lets the memory controllers go ahead of the rest of the machine on `threads` threads, from
    /// the start of a run on; no result changes. Not where copies of pages may begin earlier after
    /// [`MemorySystem::expect_copies`] than controllers can stop for them.
    pub(crate) fn look_ahead(&mut self, threads: usize, soonest_copy: Cycle) {
        let latency = self.channels.latency;
        if latency >= LEAST_LATENCY && (!self.can_copy_pages() || soonest_copy >= latency) {
            self.channels.look_ahead(threads);
        }
    }

    /// A page will be copied by [`MemorySystem::copy_page`]: from then on controllers depend on
    /// each other and go ahead no more.
    pub(crate) fn expect_copies(&mut self) {
        if self.can_copy_pages() {
            self.channels.end_look_ahead();
        }
    }

    /// Fetches the sectors, one bit each in their line, that a request lacks in its slice.
    pub(super) fn fetch(&mut self, packet: &Packet, sectors: u8, at: Cycle, events: &mut Events) {
        let number = (packet.slice, packet.kernel);
        if !self.by_line {
            let all = self.parts(u32::MAX);
            let transfer = self.transfer(packet.address, (all, sectors), number);
            return self.channels.send(transfer, at, events);
        }
        let line = packet.address / LINE_BYTES * LINE_BYTES;
        let each = to_u32(self.transfer_bytes / SECTOR_BYTES);
        let mut left = sectors;
        while left != 0 {
            let first = left.trailing_zeros() & !(each - 1);
            let block = sectors & (u8::MAX >> (8 - each) << first);
            left &= !block;
            let address = line + u64::from(first) * SECTOR_BYTES;
            let parts = bits(block).fold(0, |parts, sector| {
                parts | self.parts_at(to_u64(sector) * SECTOR_BYTES, u32::MAX)
            });
            let transfer = self.transfer(address, (parts, block), number);
            self.channels.send(transfer, at, events);
        }
    }

    /// The accesses of a block of transfers that hold `bytes` (a bit for each 1/32) of the sector
    /// at `address`, one bit each.
    fn parts_at(&self, address: u64, bytes: u32) -> u8 {
        let inside = address & (self.transfer_bytes - 1);
        if self.columns > 1 {
            return self.parts(bytes) << (to_u32(inside / SECTOR_BYTES) * self.columns);
        }
        1 << (inside / self.granule)
    }

    /// Sends what a slice writes to memory, in as few accesses as hold it, those of one block
    /// together.
    pub(super) fn write_back(&mut self, number: u16, kernel: u32, events: &mut Events) {
        let block = if self.by_line { self.transfer_bytes } else { self.granule };
        let mut open: Option<(u64, u8, Cycle)> = None;
        while let Some((write_back, at)) = self.slices[usize::from(number)].next_write_back() {
            let WriteBack { address, bytes } = write_back;
            let parts =
                if self.by_line { self.parts_at(address, bytes) } else { self.parts(bytes) };
            match &mut open {
                Some((first, written, _)) if *first / block == address / block => {
                    *written |= if self.by_line { parts } else { 0 };
                }
                _ => {
                    let next = Some((address, parts, at));
                    self.write(std::mem::replace(&mut open, next), (number, kernel), events);
                }
            }
        }
        self.write(open, (number, kernel), events);
    }

    /// Writes the accesses `parts` of the block of an address, where there is one.
    fn write(&mut self, block: Option<(u64, u8, Cycle)>, number: (u16, u32), events: &mut Events) {
        let Some((address, parts, at)) = block else { return };
        let transfer = self.transfer(address, (parts, 0), number);
        self.channels.send(Transfer { write: true, ..transfer }, at, events);
    }

    /// A read of the accesses `parts` of the block of `address`, which hold `sectors` of its line.
    fn transfer(
        &self,
        address: u64,
        (parts, sectors): (u8, u8),
        (slice, kernel): (u16, u32),
    ) -> Transfer {
        let mut place = self.instances.locate(&self.mapping, address);
        let columns = if self.by_line {
            to_u32(self.transfer_bytes / self.mapping.access_bytes())
        } else {
            self.columns
        };
        place.column &= !(columns.max(1) - 1);
        let remaining = to_u8(parts.count_ones());
        Transfer {
            address,
            place,
            parts,
            sectors,
            remaining,
            slice,
            kernel,
            write: false,
            flushes: 0,
        }
    }

    /// The accesses of the memory that hold `bytes` (a bit for each 1/32) of a sector of the
    /// caches, one bit each.
    pub(super) fn parts(&self, bytes: u32) -> u8 {
        let bits = u32::BITS / self.columns;
        let part = u32::MAX >> (u32::BITS - bits);
        let written = |column: &u32| bytes >> (column * bits) & part != 0;
        (0..self.columns).filter(written).fold(0, |parts, column| parts | 1 << column).max(1)
    }
}
