//! From the SMs to the memory pins: crossbar, L2 slices, channels.

mod channel;
mod crossbar;
#[cfg(test)]
mod crossbar_tests;
pub(crate) mod packet;
mod page_copy;
#[cfg(test)]
mod page_copy_tests;
mod pages;
pub(crate) mod presumed_l2_hits;
mod slice;
#[cfg(test)]
mod slice_tests;
mod slots;
mod transfers;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::{AddressMap, Machine, MemoryStandard};
use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_u16, to_usize};

use crate::counters::{CacheCounts, KernelCounts};
use crate::dram::ChannelCounters;
use crate::gpu::event_queue::Event;
use crate::gpu::event_queue::EventQueue;
use crate::memory::packet::{Packet, RequestKind};
use crate::memory::presumed_l2_hits::PresumedL2Hits;
use crate::mmu::address_space::is_state;
use crate::slab::Slab;
use channel::Memory;
use crossbar::{Crossbar, Leave};
use page_copy::PageCopies;
use slice::{Outcome, Slice};
use transfers::{columns, granule, granule_of};

/// The way between SMs and memory.
#[derive(Debug)]
pub(crate) struct MemorySystem {
    crossbar: Crossbar,
    slices: Vec<Slice>,
    memory: Memory,
    mapping: Arc<AddressMap>,
    slices_per_channel: u32,
    /// The channel behind each slice.
    channels: Vec<u32>,
    /// Bytes of a sector of the caches.
    sector_bytes: u32,
    /// Bytes that one access of the memory moves, at least a sector of 32.
    granule: u64,
    /// Accesses of the memory that hold a sector of the caches.
    columns: u32,
    /// Cycles from a request's arrival until its slice looks it up.
    latency: Cycle,
    packets: Slab<Packet>,
    answers: Vec<(u32, Cycle)>,
    /// Packets that leave their ports, while a slice works.
    left: Vec<(Packet, Cycle)>,
    /// SMs whose ports may send again.
    woken: Vec<u16>,
    /// What CTAs outside the run keep in the slices.
    pub(crate) presumed_l2_hits: Option<PresumedL2Hits>,
    /// Sectors of reads that were found there.
    pub(crate) passed: u64,
}

impl MemorySystem {
    /// The memory system of `machine` with its memory.
    pub(crate) fn new(machine: &Machine, standard: &MemoryStandard, mapping: AddressMap) -> Self {
        let slices_per_channel = machine.l2.slices / machine.dram.channels;
        let pages = machine.translation.as_ref().map(|spec| spec.page_bytes);
        let copies = pages.and_then(|bytes| PageCopies::new(standard, &mapping, bytes));
        let mapping = Arc::new(mapping);
        // Copies share the tables of their set index.
        let slice = Slice::new(machine, &mapping, standard.bytes_per_access);
        Self {
            crossbar: Crossbar::new(machine),
            slices: vec![slice; to_usize(machine.l2.slices)],
            memory: Memory::new(machine, standard, slices_per_channel, copies),
            mapping,
            slices_per_channel,
            channels: (0..machine.l2.slices).map(|slice| slice / slices_per_channel).collect(),
            sector_bytes: machine.l2.cache.sector_bytes,
            granule: granule(standard.bytes_per_access),
            columns: columns(machine, standard.bytes_per_access),
            latency: u64::from(machine.l2.latency_cycles),
            packets: Slab::new(),
            answers: Vec::new(),
            left: Vec::new(),
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

    /// The slice that holds an address.
    pub(crate) fn slice_of(&self, address: u64) -> u16 {
        let place = self.mapping.locate(address);
        to_u16(place.channel * self.slices_per_channel + place.slice)
    }

    /// Whether an SM's port takes another packet.
    ///
    /// # Errors
    /// The cycle at which it will, or `None` when the SM will be woken.
    pub(crate) fn port_room(&mut self, sm: u16, now: Cycle) -> Result<(), Option<Cycle>> {
        self.crossbar.room(sm, now)
    }

    /// Sends a request towards its slice.
    pub(crate) fn send(&mut self, packet: Packet, queue: &mut EventQueue<Event>) {
        if let Leave::At(cycle) = self.crossbar.send(&packet, queue.now()) {
            let number = self.packets.insert(packet);
            queue.schedule(cycle + self.latency, Event::Arrive { packet: number });
        }
    }

    /// A request has come through the pipeline in front of its slice.
    pub(crate) fn on_arrive(
        &mut self,
        number: u32,
        queue: &mut EventQueue<Event>,
        counts: &mut [KernelCounts],
    ) {
        let packet = self.packets.remove(number);
        let target = &mut self.slices[usize::from(packet.slice)];
        target.waiting.push_back(packet);
        if !target.resting {
            self.work_slice(packet.slice, queue, counts);
        }
    }

    /// Serves the requests in front of a slice until one must wait.
    fn work_slice(
        &mut self,
        number: u16,
        queue: &mut EventQueue<Event>,
        counts: &mut [KernelCounts],
    ) {
        let now = queue.now();
        while let Some(&packet) = self.slices[usize::from(number)].waiting.front() {
            if !self.may_serve(number, queue) {
                break;
            }
            let launch = &mut counts[to_usize(packet.kernel)];
            let state = is_state(packet.asked).then_some(launch.l2);
            let counters = launch.slice_counts(&packet);
            let head = self.packets.insert(packet);
            let held = self.is_elsewhere(&packet);
            let read = held && packet.ask == RequestKind::Read;
            self.passed += u64::from(read) * u64::from(packet.sectors);
            let slice = &mut self.slices[usize::from(number)];
            let outcome = match held {
                true => slice.pass(&packet, now, counters),
                false => slice.serve(head, &packet, now, counters),
            };
            state.iter().for_each(|before| launch.note_state(before));
            match outcome {
                Outcome::Refused => {
                    self.packets.remove(head);
                    break;
                }
                Outcome::Answer(at) => self.answer(head, &packet, at, queue),
                Outcome::Merged => {}
                Outcome::Fetch(at) => self.fetch(&packet, at, queue),
            }
            let slice = &mut self.slices[usize::from(number)];
            slice.waiting.pop_front();
            if slice.has_leaving() {
                self.write_back(number, packet.kernel, queue);
            }
            self.release(number, now, queue);
        }
    }

    /// Whether CTAs outside the run keep what a request asks for: the sector of the
    /// cache in which it lies.
    fn is_elsewhere(&self, packet: &Packet) -> bool {
        let bytes = u64::from(self.sector_bytes);
        let start = packet.address / bytes * bytes;
        self.presumed_l2_hits.as_ref().is_some_and(|set| set.holds(start, bytes))
    }

    /// Whether the ways out of a slice have room; if not, it is woken later.
    fn may_serve(&mut self, number: u16, queue: &mut EventQueue<Event>) -> bool {
        let channel = self.channels[usize::from(number)];
        if !self.memory.has_room(channel) {
            self.memory.wait_for_room(channel, number);
            return false;
        }
        let Err(at) = self.crossbar.answer_room(number, queue.now()) else { return true };
        let slice = &mut self.slices[usize::from(number)];
        if !slice.resting {
            slice.resting = true;
            queue.schedule(at, Event::Slice { slice: number });
        }
        false
    }

    /// A slice's answers have drained.
    pub(crate) fn on_slice(
        &mut self,
        slice: u16,
        queue: &mut EventQueue<Event>,
        counts: &mut [KernelCounts],
    ) {
        self.slices[usize::from(slice)].resting = false;
        self.work_slice(slice, queue, counts);
    }

    /// Gives a place in front of a slice free: ports that waited for it send.
    fn release(&mut self, slice: u16, now: Cycle, queue: &mut EventQueue<Event>) {
        let Self { crossbar, packets, left, woken, latency, .. } = self;
        crossbar.release(slice, now, left, woken);
        for (packet, cycle) in left.drain(..) {
            let number = packets.insert(packet);
            queue.schedule(cycle + *latency, Event::Arrive { packet: number });
        }
    }

    /// Bytes of a sector of the caches: 32, or those of a line.
    pub(crate) fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    fn answer(&mut self, number: u32, packet: &Packet, at: Cycle, queue: &mut EventQueue<Event>) {
        if packet.ask == RequestKind::WriteBack {
            self.packets.remove(number);
            return;
        }
        let cycle = self.crossbar.answer(packet, at);
        queue.schedule(cycle, Event::Reply { packet: number });
    }

    /// An answer arrives at its SM: the packet and when its last flit is in.
    pub(crate) fn on_reply(&mut self, number: u32, now: Cycle) -> (Packet, Cycle) {
        let packet = self.packets.remove(number);
        (packet, self.crossbar.eject(&packet, now))
    }

    /// A transfer arrives at its channel.
    pub(crate) fn on_to_channel(
        &mut self,
        transfer: u32,
        queue: &mut EventQueue<Event>,
        counts: &mut [KernelCounts],
    ) -> u32 {
        self.memory.arrive(transfer, queue, counts)
    }

    /// A channel has something to do.
    pub(crate) fn on_channel(
        &mut self,
        channel: u16,
        queue: &mut EventQueue<Event>,
        counts: &mut [KernelCounts],
    ) {
        self.memory.work(channel, queue, counts);
    }

    /// Slices that waited for room of a channel go on.
    pub(crate) fn on_room(
        &mut self,
        channel: u32,
        queue: &mut EventQueue<Event>,
        counts: &mut [KernelCounts],
    ) {
        while self.memory.has_room(channel) {
            let Some(slice) = self.memory.next_waiting(channel) else { break };
            self.work_slice(slice, queue, counts);
        }
    }

    /// A sector arrives at its slice from memory.
    pub(crate) fn on_fill(
        &mut self,
        transfer: u32,
        queue: &mut EventQueue<Event>,
        counts: &mut [KernelCounts],
    ) {
        let transfer = self.memory.take(transfer);
        let now = queue.now();
        let mut answers = std::mem::take(&mut self.answers);
        self.slices[usize::from(transfer.slice)].fill(transfer.address, now, &mut answers);
        for &(number, at) in &answers {
            let packet = *self.packets.get(number);
            self.answer(number, &packet, at, queue);
        }
        answers.clear();
        self.answers = answers;
        if self.slices[usize::from(transfer.slice)].has_leaving() {
            self.write_back(transfer.slice, transfer.kernel, queue);
        }
        self.work_slice(transfer.slice, queue, counts);
    }

    /// The map of addresses.
    pub(crate) fn mapping(&self) -> &AddressMap {
        &self.mapping
    }

    /// Leaves the sectors of a host-to-device copy in the L2.
    pub(crate) fn copy_in(&mut self, destination: u64, bytes: u64) {
        let first = destination / SECTOR_BYTES;
        let last = destination.saturating_add(bytes).div_ceil(SECTOR_BYTES);
        // A copy larger than all slices leaves only its end: what comes before is
        // evicted again, clean, so it need not be looked at.
        let capacity: u64 = self.slices.iter().map(Slice::sectors).sum();
        for sector in first.max(last.saturating_sub(2 * capacity))..last {
            let address = sector * SECTOR_BYTES;
            let slice = self.slice_of(address);
            self.slices[usize::from(slice)].copy_in(address);
        }
    }

    /// Requests of each slice.
    pub(crate) fn slice_counts(&self) -> Vec<CacheCounts> {
        self.slices.iter().map(|slice| slice.counts).collect()
    }

    /// Commands of each channel.
    pub(crate) fn channel_counts(&self) -> Vec<ChannelCounters> {
        self.memory.counts()
    }

    /// What is still under way, for the dump of a stuck run.
    pub(crate) fn describe(&self) -> String {
        let mut waiting: BTreeMap<usize, usize> = BTreeMap::new();
        for (number, slice) in self.slices.iter().enumerate().filter(|(_, s)| !s.waiting.is_empty())
        {
            waiting.insert(number, slice.waiting.len());
        }
        format!(
            "{} packets under way; requests in front of slices: {waiting:?}; {}",
            self.packets.len(),
            self.memory.describe()
        )
    }
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

/// A length in flits; at least 1, and 1 when packets are not cut.
fn flits(bytes: u32, flit_bytes: u32) -> u32 {
    bytes.checked_div(flit_bytes).map_or(1, |_| bytes.div_ceil(flit_bytes).max(1))
}
