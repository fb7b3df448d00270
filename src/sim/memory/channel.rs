//! Memory channels on the SMs' clock: queues in front of the controllers, and their clock
//! domain.

use std::collections::VecDeque;

use crate::config::{ControllerOptions, Location, Machine, MemoryStandard, Refresh};
use gpumodel_core::units::{ClockRatio, Cycle, SECTOR_BYTES, to_u16, to_usize};

use super::page_copy::PageCopies;
use super::{Counts, Events, granule, kilohertz};
use crate::dram::{Block, Channel, ChannelCounters, Done, Request};
use crate::gpu::event_queue::MemoryEvent;
use crate::slab::Slab;

/// What a slice fetches or writes at once: a sector, as many as the memory moves at once, or
/// a line of several accesses in one row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) address: u64,
    /// Where its first access lies; the others are the next columns.
    pub(super) place: Location,
    /// Accesses that the controller has not accepted yet, one bit each.
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

/// One channel and its queue.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) controller: Channel,
    arrived: VecDeque<u32>,
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
    /// The cycle of the scheduled event; [`Cycle::MAX`] without one.
    due: Cycle,
    /// The controller's clock for which it was last scheduled.
    next: u64,
    /// Since when requests have been waiting; `None` while none waits.
    waits_since: Option<Cycle>,
    /// Cycles in which some waited, before that.
    waited: Cycle,
}

impl Port {
    fn new(controller: Channel) -> Self {
        Self {
            controller,
            arrived: VecDeque::new(),
            queued: 0,
            writes: 0,
            flushed_writes: 0,
            flushes: 0,
            waiting: VecDeque::new(),
            due: Cycle::MAX,
            next: u64::MAX,
            waits_since: None,
            waited: 0,
        }
    }

    /// Notes at cycle `now` whether requests wait.
    fn note_waiting(&mut self, now: Cycle) {
        let waits = self.queued > 0 || self.controller.waiting() > 0;
        match self.waits_since {
            None if waits => self.waits_since = Some(now),
            Some(since) if !waits => {
                self.waited += now - since;
                self.waits_since = None;
            }
            None | Some(_) => {}
        }
    }

    /// What was counted up to cycle `now`.
    fn counts(&self, now: Cycle) -> ChannelCounters {
        let waits = self.waits_since.map_or(0, |since| now - since);
        ChannelCounters { waiting_cycles: self.waited + waits, ..*self.controller.counters() }
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

/// All channels.
#[derive(Debug)]
pub(super) struct Channels {
    pub(super) ports: Vec<Port>,
    transfers: Slab<Transfer>,
    pub(super) clock: ClockRatio,
    latency: Cycle,
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
        let controller = Channel::new(standard, &options);
        let port = |_| Port::new(controller.clone());
        let khz = machine.clocks.dram_mhz.map_or(standard.clock_khz, kilohertz);
        Self {
            ports: (0..machine.dram.channels).map(port).collect(),
            transfers: Slab::new(),
            clock: ClockRatio::new(khz, kilohertz(machine.clocks.core_mhz)),
            latency: u64::from(machine.dram.latency_cycles),
            queue_limit: machine.l2.dram_queue.max(1) * slices_per_channel,
            sectors: granule(standard.bytes_per_access) / SECTOR_BYTES,
            done: Vec::new(),
            #[cfg(test)]
            written: Vec::new(),
            copies: copies.map(Box::new),
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
        let port = &mut self.ports[to_usize(transfer.place.channel)];
        port.writes += u32::from(transfer.write);
        let number = self.transfers.insert(Transfer { flushes: port.flushes, ..transfer });
        events.schedule(at + self.latency, MemoryEvent::ToChannel { transfer: number }.into());
    }

    /// A transfer arrives at its channel, whose number is returned.
    pub(super) fn on_arrive(
        &mut self,
        number: u32,
        events: &mut Events,
        counts: &mut Counts,
    ) -> u32 {
        let channel = self.transfers.get(number).place.channel;
        let port = &mut self.ports[to_usize(channel)];
        port.arrived.push_back(number);
        port.queued += 1;
        self.advance(channel, events, counts);
        channel
    }

    /// The event of a channel; an event that was replaced by an earlier one does nothing.
    pub(super) fn on_event(&mut self, channel: u16, events: &mut Events, counts: &mut Counts) {
        let port = &mut self.ports[usize::from(channel)];
        if port.due == events.now() {
            port.due = Cycle::MAX;
            self.advance(u32::from(channel), events, counts);
        }
    }

    /// Advances a channel to the present, gives it what has arrived, and schedules its next
    /// event.
    pub(super) fn advance(&mut self, channel: u32, events: &mut Events, counts: &mut Counts) {
        let edge = self.edge(events.now());
        let port = &mut self.ports[to_usize(channel)];
        port.controller.advance(edge, &mut self.done);
        while let Some(&number) = port.arrived.front() {
            let transfer = self.transfers.get_mut(number);
            if !port.controller.room(transfer.write) {
                break;
            }
            transfer.parts = port.controller.push_block(edge, block(number, transfer));
            if transfer.parts != 0 {
                break;
            }
            port.arrived.pop_front();
            port.queued -= 1;
        }
        port.note_waiting(events.now());
        if port.controller.take_ready_for_copy()
            && let Some(copies) = &mut self.copies
        {
            copies.bank_may_be_ready(channel, events);
        }
        self.schedule(channel, events);
        self.report_served(events, counts);
    }

    /// The last edge of the memory's clock that the cycle `now` has reached.
    pub(super) fn edge(&self, now: Cycle) -> u64 {
        self.clock.part_edge_at_or_after(now + 1) - 1
    }

    /// Schedules a channel's next event.
    pub(super) fn schedule(&mut self, channel: u32, events: &mut Events) {
        let port = &mut self.ports[to_usize(channel)];
        if let Some(clock) = port.controller.next_event()
            && (clock != port.next || port.due == Cycle::MAX)
        {
            port.next = clock;
            let due = self.clock.core_cycle_at_or_after(clock).max(events.now() + 1);
            if due < port.due {
                port.due = due;
                events.schedule(due, MemoryEvent::Channel { channel: to_u16(channel) }.into());
            }
        }
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
        self.ports.iter().map(|port| port.counts(now)).collect()
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

fn block(token: u32, transfer: &Transfer) -> Block {
    let Location { pseudo_channel, bank_group, bank, row, column, .. } = transfer.place;
    let write = transfer.write;
    let request = Request { token, write, pseudo_channel, bank_group, bank, row, column };
    Block { request, columns: transfer.parts }
}
