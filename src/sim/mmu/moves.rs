//! Pages on their way from one frame to another.
//!
//! The driver takes a page up after its cycles, as many at a time as the machine
//! says, the others in order. Then the memory copies the page itself (PageMove), or
//! every sector is read and written through the crossbar, from ports of its own.

use std::collections::VecDeque;

use crate::config::Translation;
use gpumodel_core::contract::Migration;
use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_u16, to_u32, to_usize};

use crate::gpu::event_queue::Event;
use crate::gpu::event_queue::EventQueue;
use crate::memory::MemorySystem;
use crate::memory::packet::{Origin, Packet, RequestKind};
use crate::slab::Slab;

/// One page on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    /// The walk that waits for it.
    pub(super) walk: u32,
    pub(super) page: u64,
    pub(super) app: usize,
    /// The launch that touched the page.
    kernel: u32,
    /// How it moves: as when it set out, whatever plan comes meanwhile.
    how: Migration,
    /// The frame that is kept for it.
    pub(super) to: (u64, u32),
    /// Address of its data, and where that goes.
    addresses: [u64; 2],
    /// Sectors that are still to be written.
    left: u32,
}

/// What a page on its way needs to be known by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) walk: u32,
    pub(super) page: u64,
    pub(super) app: usize,
    pub(super) kernel: u32,
    pub(super) how: Migration,
    pub(super) to: (u64, u32),
    pub(super) addresses: [u64; 2],
}

/// All of them, and how long each application has had some.
#[derive(Debug)]
pub(super) struct Moves {
    moves: Slab<Move>,
    busy: u32,
    most: u32,
    waiting: VecDeque<u32>,
    driver_cycles: Cycle,
    copy_cycles: Cycle,
    page_bytes: u32,
    /// The ports of the copies, as numbers of SMs.
    ports: Vec<u16>,
    /// By application: pages under way, since when there are some, cycles before that.
    spans: Vec<(u32, Cycle, Cycle)>,
}

impl Moves {
    /// None under way, of `apps` applications.
    pub(super) fn new(spec: &Translation, ports: Vec<u16>, apps: usize) -> Self {
        Self {
            moves: Slab::new(),
            busy: 0,
            most: spec.migration_parallel,
            waiting: VecDeque::new(),
            driver_cycles: spec.migration_driver_cycles,
            copy_cycles: spec.migration_copy_cycles,
            page_bytes: spec.page_bytes,
            ports,
            spans: vec![(0, 0, 0); apps],
        }
    }

    /// Pages under way or waiting for the driver.
    pub(super) fn len(&self) -> usize {
        self.moves.len()
    }

    /// Cycles up to now during which pages of an application were under way.
    pub(super) fn cycles(&self, app: usize, now: Cycle) -> Cycle {
        let (under_way, since, before) = self.spans[app];
        before + if under_way > 0 { now - since } else { 0 }
    }

    /// Where a page's data lies and where it goes.
    #[cfg(test)]
    pub(super) fn ends(&self, number: u32) -> [u64; 2] {
        self.moves.get(number).addresses
    }

    /// The frame of a page that is copied inside the memory.
    #[cfg(test)]
    pub(super) fn leaves_inside(&self, number: u32, memory_system: &MemorySystem) -> Option<u64> {
        let Move { how, addresses, .. } = *self.moves.get(number);
        (how == Migration::PageMove && memory_system.can_copy_pages()).then_some(addresses[0])
    }

    /// Bytes of a page.
    #[cfg(test)]
    pub(super) fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// Takes a page in.
    pub(super) fn ask(&mut self, wanted: Wanted, queue: &mut EventQueue<Event>) {
        let Wanted { walk, page, app, kernel, how, to, addresses } = wanted;
        let one = Move { walk, page, app, kernel, how, to, addresses, left: 0 };
        let number = self.moves.insert(one);
        let (under_way, since, _) = &mut self.spans[app];
        if *under_way == 0 {
            *since = queue.now();
        }
        *under_way += 1;
        if self.busy == self.most {
            self.waiting.push_back(number);
        } else {
            self.busy += 1;
            queue.schedule(queue.now() + self.driver_cycles, Event::PageMove { number });
        }
    }

    /// The driver has found a frame: the data begins to move.
    pub(super) fn begin(
        &mut self,
        number: u32,
        memory_system: &mut MemorySystem,
        queue: &mut EventQueue<Event>,
    ) {
        let Move { how, addresses: [from, to], .. } = *self.moves.get(number);
        if how != Migration::PageMove {
            return self.read_all(number, memory_system, queue);
        }
        if memory_system.can_copy_pages() {
            return memory_system.copy_page(number, from, to, self.page_bytes, queue);
        }
        queue.schedule(queue.now() + self.copy_cycles, Event::PageCopied { token: number });
    }

    /// Asks for every sector (of the caches) of a page.
    fn read_all(
        &mut self,
        number: u32,
        memory_system: &mut MemorySystem,
        queue: &mut EventQueue<Event>,
    ) {
        let sectors = self.page_bytes / memory_system.sector_bytes();
        let copied = self.moves.get_mut(number);
        copied.left = sectors;
        let copied = *copied;
        for (sector, &port) in (0..sectors).zip(self.ports.iter().cycle()) {
            let inside = u64::from(sector) * u64::from(memory_system.sector_bytes());
            let address = copied.addresses[0] + inside;
            send((number, copied.kernel, port), address, RequestKind::Read, memory_system, queue);
        }
    }

    /// A sector has been read, or written.
    pub(super) fn on_answer(
        &mut self,
        packet: &Packet,
        memory_system: &mut MemorySystem,
        queue: &mut EventQueue<Event>,
    ) {
        let number = packet.operation;
        let copied = self.moves.get_mut(number);
        if packet.ask == RequestKind::Read {
            let [from, to] = copied.addresses;
            let address = to + (packet.address - from);
            let sender = (number, packet.kernel, packet.sm);
            return send(sender, address, RequestKind::Write, memory_system, queue);
        }
        copied.left -= 1;
        if copied.left == 0 {
            queue.schedule(queue.now(), Event::PageCopied { token: number });
        }
    }

    /// A page's data has moved: what is known of it.
    pub(super) fn end(&mut self, number: u32, queue: &mut EventQueue<Event>) -> Move {
        let ended = self.moves.remove(number);
        let (under_way, since, before) = &mut self.spans[to_usize(ended.app)];
        *under_way -= 1;
        if *under_way == 0 {
            *before += queue.now() - *since;
        }
        match self.waiting.pop_front() {
            Some(next) => {
                queue.schedule(queue.now() + self.driver_cycles, Event::PageMove { number: next });
            }
            None => self.busy -= 1,
        }
        ended
    }
}

/// Sends a request for one sector of move `operation` from a port.
fn send(
    (operation, kernel, port): (u32, u32, u16),
    address: u64,
    ask: RequestKind,
    memory_system: &mut MemorySystem,
    queue: &mut EventQueue<Event>,
) {
    let packet = Packet {
        address,
        asked: address,
        ready: queue.now(),
        operation,
        kernel,
        bytes: if ask == RequestKind::Write { u32::MAX } else { 0 },
        sectors: to_u16(memory_system.sector_bytes() / to_u32(SECTOR_BYTES)),
        sm: port,
        slice: memory_system.slice_of(address),
        ask,
        fills_l1: false,
        origin: Origin::Copy,
    };
    memory_system.send(packet, queue);
}
