//! From the SMs to the memory pins: crossbar, L2 slices, channels, copies of pages.

mod channel;
mod controllers;
mod crossbar;
mod halves;
mod instances;
pub(crate) mod packet;
mod page_copy;
mod ports;
mod slice;
#[cfg(test)]
mod slice_tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::{AddressMap, Machine, MemoryStandard, RequestGranularity};
use gpumodel_core::contract::MemoryInstance;
use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_u16, to_u64, to_usize};

use crate::bits::bits;

use crate::counters::{CacheCounts, KernelCounts};
use crate::dram::ChannelCounters;
use crate::gpu::event_queue::{Event, EventQueue, MemoryEvent};
use crate::memory::packet::{Leg, Packet, RequestKind};
use crate::mmu::address_space::is_state;
use crate::slab::Slab;
use channel::{Channels, Transfer};
use crossbar::{Crossbar, Departure};
use halves::Halves;
use instances::Instances;
use page_copy::PageCopies;
pub use slice::PresumedL2Hits;
use slice::{Arrived, Outcome, Slice};

/// Bytes of a line of caches between which requests go by line.
const LINE_BYTES: u64 = 4 * SECTOR_BYTES;

/// The event queue of a run.
pub(crate) type Events = EventQueue<Event>;

/// The counters of all launches.
type Counts = [KernelCounts];

/// The path between SMs and memory.
#[derive(Debug)]
pub(crate) struct MemorySystem {
    crossbar: Crossbar,
    slices: Vec<Slice>,
    channels: Channels,
    mapping: Arc<AddressMap>,
    instances: Instances,
    slices_per_channel: u32,
    /// The halves of the L2, where it has two.
    halves: Option<Halves>,
    /// The channel behind each slice.
    channel_of: Vec<u32>,
    /// Bytes of a sector of the caches: 32, or those of a line.
    pub(crate) sector_bytes: u32,
    /// Bytes that one access of the memory moves, at least a sector of 32.
    granule: u64,
    /// Accesses of the memory that hold a sector of the caches.
    columns: u32,
    /// Requests go by line; else by sector.
    by_line: bool,
    /// Aligned blocks of so many bytes lie in one slice.
    block_bytes: u64,
    /// The block that was last located, and its slice.
    last_block: (u64, u16),
    /// Where requests go by line: aligned blocks of so many bytes lie side by side in one row.
    transfer_bytes: u64,
    /// Cycles from a request's arrival until its slice looks it up.
    latency: Cycle,
    packets: Slab<Packet>,
    answers: Vec<Arrived>,
    /// Packets that leave their ports while a slice works, with their arrival.
    departed: Vec<(Packet, Cycle)>,
    /// Answers that cross in a turn, with their arrival.
    answered: Vec<(u32, Cycle)>,
    /// The next cycle in which packets cross whose ports take turns, as scheduled.
    next_turn: Cycle,
    /// SMs whose ports may send again.
    woken: Vec<u16>,
    /// Sectors that CTAs outside the run keep in the slices.
    pub(crate) presumed_l2_hits: Option<PresumedL2Hits>,
    /// Sectors of reads that were found there.
    pub(crate) passed: u64,
}

impl MemorySystem {
    /// The memory system of `machine`, with nothing in flight.
    pub(crate) fn new(machine: &Machine, standard: &MemoryStandard, mapping: AddressMap) -> Self {
        let slices_per_channel = machine.l2.slices / machine.dram.channels;
        let page_bytes = machine.translation.as_ref().map(|spec| spec.page_bytes);
        let copies = page_bytes.and_then(|bytes| PageCopies::new(standard, &mapping, bytes));
        let mapping = Arc::new(mapping);
        let access_bytes = standard.bytes_per_access;
        // Clones of a slice share the tables of its set index.
        let slice = Slice::new(machine, &mapping, access_bytes);
        let blocks = [LINE_BYTES, LINE_BYTES / 2, SECTOR_BYTES];
        let largest = |whole: fn(&AddressMap, u64) -> bool| {
            blocks.into_iter().find(|&bytes| whole(&mapping, bytes)).unwrap_or(SECTOR_BYTES)
        };
        Self {
            crossbar: Crossbar::new(machine),
            slices: vec![slice; to_usize(machine.l2.slices)],
            channels: Channels::new(machine, standard, slices_per_channel, copies),
            mapping: Arc::clone(&mapping),
            instances: Instances::default(),
            slices_per_channel,
            halves: Halves::new(machine),
            channel_of: (0..machine.l2.slices).map(|slice| slice / slices_per_channel).collect(),
            sector_bytes: machine.l2.cache.sector_bytes,
            granule: granule(access_bytes),
            columns: (machine.l2.cache.sector_bytes / access_bytes).clamp(1, 4),
            by_line: machine.interconnect.request_granularity == RequestGranularity::Line,
            block_bytes: largest(AddressMap::keeps_in_slice),
            last_block: (u64::MAX, 0),
            transfer_bytes: largest(AddressMap::keeps_whole).max(granule(access_bytes)),
            latency: u64::from(machine.l2.latency_cycles),
            packets: Slab::new(),
            answers: Vec::new(),
            departed: Vec::new(),
            answered: Vec::new(),
            next_turn: Cycle::MAX,
            woken: Vec::new(),
            presumed_l2_hits: None,
            passed: 0,
        }
    }

    /// Moves the SMs whose ports may send again to `out`.
    #[inline]
    pub(crate) fn take_woken(&mut self, out: &mut Vec<u16>) {
        out.append(&mut self.woken);
    }

    /// Lets each application have its instance of `memory_slices` in all.
    pub(crate) fn divide(&mut self, instances: &[MemoryInstance], memory_slices: u32) {
        self.last_block = (u64::MAX, 0);
        self.instances = Instances::new(&self.mapping, instances, memory_slices);
    }

    /// The slice that holds an address.
    #[inline]
    pub(crate) fn slice_of(&mut self, address: u64) -> u16 {
        let block = address >> self.block_bytes.trailing_zeros();
        if block == self.last_block.0 {
            return self.last_block.1;
        }
        let (channel, slice) = self.instances.slice_of(&self.mapping, address);
        let slice = to_u16(channel * self.slices_per_channel + slice);
        if self.instances.is_empty() {
            self.last_block = (block, slice);
        }
        slice
    }

    /// Whether an SM's port accepts another packet.
    ///
    /// # Errors
    /// The cycle at which it will, or `None` when the SM will be woken.
    pub(crate) fn port_room(&mut self, sm: u16, now: Cycle) -> Result<(), Option<Cycle>> {
        self.crossbar.room(sm, now)
    }

    /// Sends a request towards its slice.
    #[inline]
    pub(crate) fn send(&mut self, mut packet: Packet, events: &mut Events) {
        let near = self.instances.is_near(packet.address);
        if let Some(halves) = self.halves.as_ref().filter(|_| !near) {
            halves.lead(&mut packet);
        }
        if let Departure::At(cycle) = self.crossbar.send(&packet, events.now()) {
            let number = self.packets.insert(packet);
            events.schedule(cycle + self.latency, MemoryEvent::Arrive { packet: number }.into());
        }
        self.schedule_turn(events);
    }

    /// Schedules the next cycle in which packets cross whose ports take turns.
    #[inline]
    fn schedule_turn(&mut self, events: &mut Events) {
        let Some(at) = self.crossbar.next_turn(events.now()) else { return };
        if at < self.next_turn {
            self.next_turn = at;
            events.schedule(at, MemoryEvent::Turn.into());
        }
    }

    /// Packets cross whose ports take turns.
    fn on_turn(&mut self, events: &mut Events) {
        let now = events.now();
        if self.next_turn == now {
            self.next_turn = Cycle::MAX;
        }
        let Self { crossbar, departed, answered, woken, .. } = self;
        crossbar.take_turns(now, departed, answered, woken);
        self.schedule_departed(events);
        for (number, cycle) in self.answered.drain(..) {
            events.schedule(cycle, Event::Reply { packet: number });
        }
        self.schedule_turn(events);
    }

    /// Schedules the arrivals of requests that have left their ports.
    fn schedule_departed(&mut self, events: &mut Events) {
        for (packet, cycle) in self.departed.drain(..) {
            let number = self.packets.insert(packet);
            events.schedule(cycle + self.latency, MemoryEvent::Arrive { packet: number }.into());
        }
    }

    /// Handles an event.
    #[inline(always)]
    pub(crate) fn on_event(
        &mut self,
        event: MemoryEvent,
        events: &mut Events,
        counts: &mut Counts,
    ) {
        match event {
            MemoryEvent::Turn => self.on_turn(events),
            MemoryEvent::Arrive { packet } => self.on_arrive(packet, events, counts),
            MemoryEvent::Crossed { packet } => self.on_crossed(packet, events, counts),
            MemoryEvent::ToChannel { transfer } => {
                let channel = self.on_to_channel(transfer, events, counts);
                self.on_room(channel, events, counts);
            }
            MemoryEvent::Channel { channel } => {
                self.on_channel(channel, events, counts);
                self.on_room(u32::from(channel), events, counts);
            }
            MemoryEvent::Slice { slice } => self.on_slice(slice, events, counts),
            MemoryEvent::PageCopy { stack } => self.on_page_copy(stack, events, counts),
            MemoryEvent::Fill { transfer } => self.on_fill(transfer, events, counts),
        }
    }

    /// A request has come through the pipeline in front of its slice.
    pub(crate) fn on_arrive(&mut self, number: u32, events: &mut Events, counts: &mut Counts) {
        let place = self.packets.get(number).slice;
        let slice = &mut self.slices[usize::from(place)];
        slice.waiting.push_back(number);
        if !slice.resting {
            self.work_slice(place, events, counts);
        }
    }

    /// Aligned blocks of so many bytes, a line at most, lie in one slice.
    pub(crate) fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Serves the requests in front of a slice until one must wait.
    fn work_slice(&mut self, slice: u16, events: &mut Events, counts: &mut Counts) {
        while let Some(number) = self.slices[usize::from(slice)].first() {
            let packet = *self.packets.get(number);
            if !self.may_serve(&packet, events) || self.slices[usize::from(slice)].is_stuck {
                break;
            }
            let all = self.slices[usize::from(slice)].sectors_of(&packet);
            let presumed = self.presumed_hits(&packet, all);
            let asked = if presumed == 0 { all } else { presumed };
            let request = (number, &packet);
            let outcome = self.look_up(request, (asked, presumed != 0), events.now(), counts);
            let refused = outcome.refused;
            if refused == asked {
                break;
            }
            let left = all & !asked | refused;
            self.follow(request, (asked, left), outcome, events);
            if self.slices[usize::from(slice)].has_write_backs() {
                self.write_back(slice, packet.kernel, events);
            }
            if packet.leg != Leg::Home {
                self.release(slice, (asked & !refused).count_ones(), events);
            }
            if refused != 0 {
                break;
            }
        }
    }

    /// Looks the sectors `asked` of a request up at its slice, or takes them as `presumed` hits.
    #[inline]
    fn look_up(
        &mut self,
        (number, packet): (u32, &Packet),
        (asked, presumed): (u8, bool),
        now: Cycle,
        counts: &mut Counts,
    ) -> Outcome {
        let launch = &mut counts[to_usize(packet.kernel)];
        let before = is_state(packet.virtual_address).then_some(launch.l2);
        let slice = &mut self.slices[usize::from(packet.slice)];
        let counters = launch.slice_counts(packet);
        let outcome = if presumed {
            let sectors = u64::from(asked.count_ones()) * u64::from(packet.sectors);
            self.passed += if packet.kind == RequestKind::Read { sectors } else { 0 };
            slice.pass(packet, asked, now, counters)
        } else {
            slice.serve(number, packet, asked, now, counters)
        };
        before.iter().for_each(|before| launch.count_state(before));
        if let Some(halves) = &self.halves
            && packet.leg == Leg::Near
            && packet.kind.carries_data()
        {
            let across = usize::from(halves.across(packet.slice));
            self.slices[across].end_copy(packet.address, asked & !outcome.refused);
        }
        if self.halves.is_some() {
            self.end_copies_of_evicted(packet.slice);
        }
        outcome
    }

    /// Sends what the look-up of a request leads to; its sectors `left` stay in front of the
    /// slice.
    #[inline]
    fn follow(
        &mut self,
        (number, packet): (u32, &Packet),
        (asked, left): (u8, u8),
        outcome: Outcome,
        events: &mut Events,
    ) {
        let Outcome { answered, fetched, refused, at } = outcome;
        let waits = asked & !(answered | refused);
        if waits != 0 {
            // It keeps its number, which its waiter was given.
            let part = packet.part(waits);
            *self.packets.get_mut(number) = part;
            if packet.leg == Leg::Far {
                self.cross(number, &part, at, events);
            }
        }
        if fetched != 0 {
            self.fetch(packet, fetched, at, events);
        }
        if answered != 0 && waits | left == 0 {
            self.answer(number, packet, at, events);
        } else if answered != 0 {
            let part = packet.part(answered);
            let number = self.packets.insert(part);
            self.answer(number, &part, at, events);
        }
        let queue = self.slices[usize::from(packet.slice)].queue_of(packet.leg);
        if left == 0 {
            queue.pop_front();
        } else if waits == 0 {
            *self.packets.get_mut(number) = packet.part(left);
        } else if let Some(first) = queue.front_mut() {
            *first = self.packets.insert(packet.part(left));
        }
    }

    /// Those of the sectors of a request that CTAs outside the run keep in the cache.
    fn presumed_hits(&self, packet: &Packet, asked: u8) -> u8 {
        let Some(set) = self.presumed_l2_hits.as_ref().filter(|_| packet.leg != Leg::Home) else {
            return 0;
        };
        let bytes = u64::from(self.sector_bytes);
        if packet.mask == 0 {
            let start = packet.address / bytes * bytes;
            return if set.holds(start, bytes) { asked } else { 0 };
        }
        let line = packet.address / LINE_BYTES * LINE_BYTES;
        let holds = |sector: &usize| set.holds(line + to_u64(*sector) * bytes, bytes);
        bits(asked).filter(holds).fold(0, |all, sector| all | 1 << sector)
    }

    /// Whether the ports behind a slice have room; otherwise it is woken later.
    fn may_serve(&mut self, packet: &Packet, events: &mut Events) -> bool {
        let number = packet.slice;
        let channel = self.channel_of[usize::from(number)];
        if !self.channels.has_room(channel) {
            self.channels.wait_for_room(channel, number);
            return false;
        }
        if packet.leg == Leg::Home {
            return true;
        }
        let Err(at) = self.crossbar.answer_room(number, events.now()) else { return true };
        let slice = &mut self.slices[usize::from(number)];
        if !slice.resting {
            slice.resting = true;
            events.schedule(at, MemoryEvent::Slice { slice: number }.into());
        }
        false
    }

    /// A slice's answers have drained.
    pub(crate) fn on_slice(&mut self, slice: u16, events: &mut Events, counts: &mut Counts) {
        self.slices[usize::from(slice)].resting = false;
        self.work_slice(slice, events, counts);
    }

    /// Frees places of so many sectors in front of a slice: ports that waited for them send.
    fn release(&mut self, slice: u16, sectors: u32, events: &mut Events) {
        let Self { crossbar, departed, woken, .. } = self;
        crossbar.release(slice, sectors, events.now(), departed, woken);
        self.schedule_departed(events);
        self.schedule_turn(events);
    }

    fn answer(&mut self, number: u32, packet: &Packet, at: Cycle, events: &mut Events) {
        if packet.kind == RequestKind::WriteBack {
            self.packets.remove(number);
            return;
        }
        if packet.leg == Leg::Home {
            return self.cross(number, packet, at, events);
        }
        match self.crossbar.answer(number, packet, at) {
            Some(cycle) => events.schedule(cycle, Event::Reply { packet: number }),
            None => self.schedule_turn(events),
        }
    }

    /// Sends a request to its home in the other half of the L2, or its answer back.
    fn cross(&mut self, number: u32, packet: &Packet, at: Cycle, events: &mut Events) {
        let Some(halves) = &self.halves else { return };
        events.schedule(halves.cross(packet, at), MemoryEvent::Crossed { packet: number }.into());
    }

    /// A request has come to its home from the other half of the L2, or its answer from there.
    pub(crate) fn on_crossed(&mut self, number: u32, events: &mut Events, counts: &mut Counts) {
        let Some(halves) = &self.halves else { return };
        let packet = halves.crossed(*self.packets.get(number));
        let slice = &mut self.slices[usize::from(packet.slice)];
        if packet.leg == Leg::Home {
            *self.packets.get_mut(number) = packet;
            slice.crossed.push_back(number);
            slice.is_stuck = false;
            if !slice.resting {
                self.work_slice(packet.slice, events, counts);
            }
            return;
        }
        if !packet.kind.carries_data() {
            let sectors = slice.sectors_of(&packet);
            slice.keep_copy(packet.address, sectors, events.now());
            if slice.has_write_backs() {
                self.write_back(packet.slice, packet.kernel, events);
            }
            self.end_copies_of_evicted(packet.slice);
        }
        *self.packets.get_mut(number) = packet;
        self.answer(number, &packet, events.now(), events);
    }

    /// An answer arrives at its SM: the packet and when its last flit is in.
    #[inline(always)]
    pub(crate) fn on_reply(&mut self, number: u32, now: Cycle) -> (Packet, Cycle) {
        let packet = self.packets.remove(number);
        (packet, self.crossbar.eject(&packet, now))
    }

    /// A transfer arrives at its channel, whose number is returned.
    pub(crate) fn on_to_channel(
        &mut self,
        transfer: u32,
        events: &mut Events,
        counts: &mut Counts,
    ) -> u32 {
        self.channels.on_arrive(transfer, events, counts)
    }

    /// The event of a channel.
    pub(crate) fn on_channel(&mut self, channel: u16, events: &mut Events, counts: &mut Counts) {
        self.channels.on_event(channel, events, counts);
    }

    /// Slices that waited for room of a channel go on.
    pub(crate) fn on_room(&mut self, channel: u32, events: &mut Events, counts: &mut Counts) {
        while self.channels.has_room(channel) {
            let Some(slice) = self.channels.next_waiting(channel) else { break };
            self.work_slice(slice, events, counts);
        }
    }

    /// The data of a read arrives at its slice from memory.
    pub(crate) fn on_fill(&mut self, transfer: u32, events: &mut Events, counts: &mut Counts) {
        let Transfer { address, sectors, slice, kernel, .. } = self.channels.remove(transfer);
        let mut answers = std::mem::take(&mut self.answers);
        self.slices[usize::from(slice)].fill(address, sectors, events.now(), &mut answers);
        for &Arrived { packet: number, sectors, at } in &answers {
            let packet = *self.packets.get(number);
            let left = packet.mask & !sectors;
            if left == 0 {
                self.answer(number, &packet, at, events);
            } else {
                *self.packets.get_mut(number) = packet.with_mask(left);
                let part = packet.with_mask(sectors);
                let number = self.packets.insert(part);
                self.answer(number, &part, at, events);
            }
        }
        answers.clear();
        self.answers = answers;
        if self.slices[usize::from(slice)].has_write_backs() {
            self.write_back(slice, kernel, events);
        }
        if self.slices[usize::from(slice)].first().is_some() {
            self.work_slice(slice, events, counts);
        }
    }

    /// Writes the dirty sectors of the slices of some channels to memory and invalidates all
    /// lines without outstanding misses; the launch given with a channel counts its writes.
    pub(crate) fn flush(&mut self, channels: &[(u32, u32)], events: &mut Events) {
        for slice in 0..to_u16(self.slices.len()) {
            let channel = self.channel_of[usize::from(slice)];
            let Some(&(_, kernel)) = channels.iter().find(|(one, _)| *one == channel) else {
                continue;
            };
            self.slices[usize::from(slice)].flush(events.now());
            self.write_back(slice, kernel, events);
        }
        for &(channel, _) in channels {
            self.channels.ports[to_usize(channel)].flush();
        }
    }

    /// True while a write that left the channel's slices before or with their last flush is
    /// not yet served.
    pub(crate) fn is_flushing(&self, channel: u32) -> bool {
        self.channels.ports[to_usize(channel)].flushed_writes > 0
    }

    /// Addresses written to memory since the last call.
    #[cfg(test)]
    pub(crate) fn take_written(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.channels.written)
    }

    /// Whether pages can be copied between channels by MIGRATION: the memory has that
    /// command, and the columns of a page stay in their stacks.
    pub(crate) fn can_copy_pages(&self) -> bool {
        self.channels.copies.is_some()
    }

    /// Copies the page of `bytes` bytes at `from` to `to`, whose channels belong to another
    /// group; [`Event::PageCopied`] reports the end. Any number of copies may be in progress.
    ///
    /// # Panics
    /// When [`MemorySystem::can_copy_pages`] is false.
    pub(crate) fn copy_page(
        &mut self,
        token: u32,
        [from, to]: [u64; 2],
        bytes: u32,
        events: &mut Events,
    ) {
        self.channels.keep_ahead(events.now());
        let copies = self.channels.copies.as_mut().expect("the caller checked can_copy_pages");
        copies.push(token, [from, to], bytes, &self.mapping, events);
    }

    /// Columns of pages may go from channel to channel of a stack.
    pub(crate) fn on_page_copy(&mut self, stack: u16, events: &mut Events, counts: &mut Counts) {
        for channel in page_copy::work(&mut self.channels, stack, events, counts) {
            self.on_room(channel, events, counts);
        }
    }

    /// The map of addresses.
    pub(crate) fn mapping(&self) -> &AddressMap {
        &self.mapping
    }

    /// Leaves the sectors of a host-to-device copy in the L2.
    pub(crate) fn copy_in(&mut self, destination: u64, bytes: u64) {
        let first = destination / SECTOR_BYTES;
        let last = destination.saturating_add(bytes).div_ceil(SECTOR_BYTES);
        // A copy larger than all slices leaves only its end: the sectors before are evicted
        // again, clean, and may be skipped.
        let capacity: u64 = self.slices.iter().map(Slice::sectors).sum();
        for sector in first.max(last.saturating_sub(2 * capacity))..last {
            self.put_in(sector * SECTOR_BYTES, false);
        }
    }

    /// Puts a sector into its slice without traffic, dirty where it `writes`. A copy in the other
    /// half of the L2 ends.
    pub(crate) fn put_in(&mut self, address: u64, writes: bool) {
        let slice = self.slice_of(address);
        self.slices[usize::from(slice)].put_in(address, writes);
        self.end_copies_of_evicted(slice);
        if let Some(halves) = &self.halves {
            let across = &mut self.slices[usize::from(halves.across(slice))];
            across.end_copy(address, across.tags.sector_bit(address));
        }
    }

    /// Requests of each slice.
    pub(crate) fn slice_counts(&self) -> Vec<CacheCounts> {
        self.slices.iter().map(|slice| slice.counts).collect()
    }

    /// The counters of each channel up to cycle `now`.
    pub(crate) fn channel_counts(&self, now: Cycle) -> Vec<ChannelCounters> {
        self.channels.counts(now)
    }

    /// Bytes that one access of a channel moves.
    pub(crate) fn access_bytes(&self) -> u64 {
        self.channels.access_bytes()
    }

    /// Whether a request or a transfer is in flight.
    pub(crate) fn is_busy(&self) -> bool {
        let waits = |slice: &Slice| !slice.waiting.is_empty() || !slice.crossed.is_empty();
        let on_the_way = self.packets.len() > 0 || self.crossbar.waiting_for_turns() > 0;
        on_the_way || self.channels.is_busy() || self.slices.iter().any(waits)
    }

    /// What is in flight, for the dump of a stuck run.
    pub(crate) fn describe(&self) -> String {
        let lengths = self.slices.iter().map(|slice| slice.waiting.len()).enumerate();
        let crossed: usize = self.slices.iter().map(|slice| slice.crossed.len()).sum();
        let waiting: BTreeMap<usize, usize> = lengths.filter(|(_, length)| *length > 0).collect();
        format!(
            "{} packets in flight; {} requests in the crossbar; \
             requests in front of slices: {waiting:?}; \
             from the other half {crossed}; {}",
            self.packets.len(),
            self.crossbar.waiting_for_turns(),
            self.channels.describe()
        )
    }
}

/// Bytes that one access of a memory moves, at least a sector.
fn granule(access_bytes: u32) -> u64 {
    u64::from(access_bytes).max(SECTOR_BYTES)
}

/// Frequency in kHz of a figure in MHz.
pub(crate) fn kilohertz(mhz: f64) -> u64 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clocks are checked to be positive"
    )]
    let khz = (mhz * 1000.0).round() as u64;
    khz
}

/// A duration of a part's cycles in 1/256 of SM cycles.
fn fixed_point(cycles: u32, part_mhz: f64, core_mhz: f64) -> u64 {
    let ratio = kilohertz(core_mhz) * 256;
    (u64::from(cycles) * ratio).div_ceil(kilohertz(part_mhz).max(1))
}

#[cfg(test)]
mod tests {
    use crate::memory::MemorySystem;
    use crate::testkit::{memory_of, named, sectored};

    #[test]
    fn a_line_written_in_part_goes_down_in_the_accesses_that_it_touches() {
        let parts = |resolved| {
            let (standard, map) = memory_of(&resolved);
            let memory_system = MemorySystem::new(&resolved.machine, &standard, map);
            [0x1, 0xffff, 0xffff_0000, 0x8000_0001].map(|bytes| memory_system.parts(bytes))
        };
        // UGPU: lines of 128 bytes in accesses of 64.
        assert_eq!(parts(named("ugpu", &[])), [0b01, 0b01, 0b10, 0b11]);
        assert_eq!(parts(sectored("ugpu", &[])), [1; 4]);
    }
}
