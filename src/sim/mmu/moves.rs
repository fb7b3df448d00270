//! Pages that move from one frame to another.
//!
//! The driver needs some cycles per page and works on as many pages at a time as the machine
//! says, in order. Then the memory copies the page itself (PageMove), or every sector is read
//! and written over the crossbar from separate ports.

use std::collections::VecDeque;

use crate::config::Translation;
use gpumodel_core::contract::Migration;
use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_u8, to_u32};

use crate::gpu::event_queue::Event;
use crate::memory::packet::{Leg, Origin, Packet, RequestKind};
use crate::memory::{Events, MemorySystem};
use crate::slab::Slab;

/// One page that moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    /// The walk that waits for it.
    pub(super) walk: u32,
    pub(super) page: u64,
    pub(super) app: usize,
    /// The launch that touched the page.
    pub(super) kernel: u32,
    /// How it moves: as the plan said at the begin of the move.
    pub(super) how: Migration,
    /// The frame allocated for it.
    pub(super) to: (u64, u32),
    /// Addresses of the old and the new frame.
    pub(super) addresses: [u64; 2],
    /// Sectors that are not written yet, where they go over the crossbar.
    pub(super) remaining: u32,
}

/// All moves, and how long each application has had some.
#[derive(Debug)]
pub(super) struct Moves {
    moves: Slab<Move>,
    /// Pages that the driver works on.
    busy: u32,
    parallel: u32,
    waiting: VecDeque<u32>,
    driver_cycles: Cycle,
    copy_cycles: Cycle,
    page_bytes: u32,
    /// The ports of the copies, as numbers of SMs.
    ports: Vec<u16>,
    /// By application: moving pages, since when there are some, cycles before that.
    spans: Vec<(u32, Cycle, Cycle)>,
}

impl Moves {
    /// No moves of `apps` applications.
    pub(super) fn new(spec: &Translation, ports: Vec<u16>, apps: usize) -> Self {
        Self {
            moves: Slab::new(),
            busy: 0,
            parallel: spec.migration_parallel,
            waiting: VecDeque::new(),
            driver_cycles: spec.migration_driver_cycles,
            copy_cycles: spec.migration_copy_cycles,
            page_bytes: spec.page_bytes,
            ports,
            spans: vec![(0, 0, 0); apps],
        }
    }

    /// Pages that move or wait for the driver.
    pub(super) fn len(&self) -> usize {
        self.moves.len()
    }

    /// Cycles up to now during which pages of an application were moving.
    pub(super) fn cycles(&self, app: usize, now: Cycle) -> Cycle {
        let (moving, since, before) = self.spans[app];
        before + if moving > 0 { now - since } else { 0 }
    }

    /// Addresses of a page's old and new frame.
    #[cfg(test)]
    pub(super) fn ends(&self, number: u32) -> [u64; 2] {
        self.moves.get(number).addresses
    }

    /// The old frame of a page that is copied inside the memory.
    #[cfg(test)]
    pub(super) fn copied_in_memory(&self, number: u32, memory: &MemorySystem) -> Option<u64> {
        let Move { how, addresses, .. } = *self.moves.get(number);
        (how == Migration::PageMove && memory.can_copy_pages()).then_some(addresses[0])
    }

    /// Bytes of a page.
    #[cfg(test)]
    pub(super) fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// Adds a move, which waits for the driver.
    pub(super) fn add(&mut self, one: Move, events: &mut Events) {
        let number = self.moves.insert(one);
        let (moving, since, _) = &mut self.spans[one.app];
        if *moving == 0 {
            *since = events.now();
        }
        *moving += 1;
        if self.busy == self.parallel {
            self.waiting.push_back(number);
        } else {
            self.busy += 1;
            events.schedule(events.now() + self.driver_cycles, Event::PageMove { number });
        }
    }

    /// The driver's work is done: the data begins to move.
    pub(super) fn begin(&mut self, number: u32, memory: &mut MemorySystem, events: &mut Events) {
        let Move { how, addresses: ends, .. } = *self.moves.get(number);
        if how != Migration::PageMove {
            return self.read_all(number, memory, events);
        }
        if memory.can_copy_pages() {
            return memory.copy_page(number, ends, self.page_bytes, events);
        }
        events.schedule(events.now() + self.copy_cycles, Event::PageCopied { token: number });
    }

    /// Reads every sector (of the caches) of a page.
    fn read_all(&mut self, number: u32, memory: &mut MemorySystem, events: &mut Events) {
        let sectors = self.page_bytes / memory.sector_bytes;
        let copied = self.moves.get_mut(number);
        copied.remaining = sectors;
        let copied = *copied;
        for (sector, &port) in (0..sectors).zip(self.ports.iter().cycle()) {
            let inside = u64::from(sector) * u64::from(memory.sector_bytes);
            let address = copied.addresses[0] + inside;
            send((number, copied.kernel, port), address, RequestKind::Read, memory, events);
        }
    }

    /// A sector has been read, or written.
    pub(super) fn on_answer(
        &mut self,
        packet: &Packet,
        memory: &mut MemorySystem,
        events: &mut Events,
    ) {
        let number = packet.operation;
        let copied = self.moves.get_mut(number);
        if packet.kind == RequestKind::Read {
            let [from, to] = copied.addresses;
            let address = to + (packet.address - from);
            let sender = (number, packet.kernel, packet.sm);
            return send(sender, address, RequestKind::Write, memory, events);
        }
        copied.remaining -= 1;
        if copied.remaining == 0 {
            events.schedule(events.now(), Event::PageCopied { token: number });
        }
    }

    /// A page's data has moved; returns the move.
    pub(super) fn end(&mut self, number: u32, events: &mut Events) -> Move {
        let ended = self.moves.remove(number);
        let (moving, since, before) = &mut self.spans[ended.app];
        *moving -= 1;
        if *moving == 0 {
            *before += events.now() - *since;
        }
        match self.waiting.pop_front() {
            Some(next) => {
                events
                    .schedule(events.now() + self.driver_cycles, Event::PageMove { number: next });
            }
            None => self.busy -= 1,
        }
        ended
    }
}

/// Sends a request for one sector of the move `operation` from a port.
fn send(
    (operation, kernel, port): (u32, u32, u16),
    address: u64,
    kind: RequestKind,
    memory: &mut MemorySystem,
    events: &mut Events,
) {
    let packet = Packet {
        address,
        virtual_address: address,
        ready: events.now(),
        operation,
        kernel,
        bytes: if kind == RequestKind::Write { u32::MAX } else { 0 },
        sectors: to_u8(memory.sector_bytes / to_u32(SECTOR_BYTES)),
        mask: 0,
        more_turns: 0,
        sm: port,
        slice: memory.slice_of(address),
        kind,
        fills_l1: false,
        origin: Origin::Copy,
        leg: Leg::Near,
    };
    memory.send(packet, events);
}
