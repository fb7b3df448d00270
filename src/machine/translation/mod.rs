//! Address translation behind the SMs' own TLBs: the L2 TLB that all share, the
//! page walkers, the page tables.
//!
//! An SM asks for a page that its L1 TLB lacks. The L2 TLB takes one request per
//! cycle and knows after its latency; hits answer at once, whatever misses are
//! under way. A miss starts a walk, or joins the walk to its page. A walk reads
//! one entry per level through the crossbar, from a port of its own, out of the
//! L2 cache and, where that misses, memory. Its answer reaches every SM that
//! waits in the cycle in which the last entry is there. A page that is not in
//! memory costs the fault's cycles first, once.

mod page_table;
mod tlb;
mod walker;

use crate::spec::Machine;
use crate::units::{Cycle, SECTOR_BYTES, to_u16, to_usize};

use super::cache::{Merge, Mshr};
use super::counters::KernelCounts;
use super::event::Event;
use super::fabric::Fabric;
use super::packet::{Ask, Packet};
use super::queue::EventQueue;
use super::slab::Slab;
use page_table::PageTable;
pub(super) use tlb::Tlb;
use walker::Walkers;

/// An SM that waits for a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// The page: an address over the page size.
    pub(super) page: u64,
    /// The launch that asked.
    pub(super) kernel: u32,
    /// The SM.
    pub(super) sm: u16,
}

/// The parts of a run that translation works on.
pub(super) struct Around<'a> {
    /// Time.
    pub(super) queue: &'a mut EventQueue<Event>,
    /// By launch.
    pub(super) counts: &'a mut [KernelCounts],
    /// The way to the tables.
    pub(super) fabric: &'a mut Fabric,
}

/// The memory-management unit of the GPU.
#[derive(Debug)]
pub(super) struct Mmu {
    tlb: Tlb,
    table: PageTable,
    walkers: Walkers,
    requests: Slab<Request>,
    /// Requests by the page whose walk they wait for.
    outstanding: Mshr<u32>,
    released: Vec<u32>,
    /// When the L2 TLB takes its next request.
    free_at: Cycle,
    latency: Cycle,
    fault_cycles: Cycle,
    /// The walkers' port, as the number of an SM.
    port: u16,
}

impl Mmu {
    /// The unit of `machine`, with nothing under way; `None` where addresses are
    /// physical.
    pub(super) fn new(machine: &Machine) -> Option<Self> {
        let spec = machine.translation.as_ref()?;
        let page_bits = spec.page_bytes.trailing_zeros();
        let requests = u32::from(machine.dispatch.sms) * spec.l1_mshr_entries;
        let per_port = to_u16(machine.interconnect.sms_per_port);
        Some(Self {
            tlb: Tlb::new(spec.l2_entries, spec.l2_ways),
            table: PageTable::new(page_bits, spec.walk_levels, spec.demand_paging),
            walkers: Walkers::new(spec),
            requests: Slab::new(),
            outstanding: Mshr::new(requests, u32::MAX),
            released: Vec::new(),
            free_at: 0,
            latency: u64::from(spec.l2_latency_cycles),
            fault_cycles: spec.fault_cycles,
            port: machine.dispatch.sms.div_ceil(per_port) * per_port,
        })
    }

    /// Where an address lies in memory.
    pub(super) fn physical(&self, address: u64) -> u64 {
        self.table.physical(address)
    }

    /// Bytes that a host-to-device copy has put into memory.
    pub(super) fn copy_in(&mut self, first: u64, bytes: u64) {
        if let Some(more) = bytes.checked_sub(1) {
            let last = first.saturating_add(more);
            self.table.bring(self.table.page_of(first), self.table.page_of(last));
        }
    }

    /// Takes a request that arrives at the L2 TLB at cycle `at`.
    pub(super) fn ask(&mut self, request: Request, at: Cycle, queue: &mut EventQueue<Event>) {
        let start = at.max(self.free_at);
        self.free_at = start + 1;
        let request = self.requests.insert(request);
        queue.schedule(start + self.latency, Event::LookUp { request });
    }

    /// The L2 TLB has looked a page up; answers are appended to `answers`.
    pub(super) fn on_look_up(
        &mut self,
        number: u32,
        around: &mut Around<'_>,
        answers: &mut Vec<Request>,
    ) {
        let request = *self.requests.get(number);
        let counts = &mut around.counts[to_usize(request.kernel)].translation.l2;
        if self.tlb.look(request.page) {
            counts.hits += 1;
            answers.push(self.requests.remove(number));
        } else if self.outstanding.merge(request.page, number) == Merge::Merged {
            counts.merges += 1;
        } else {
            counts.misses += 1;
            self.outstanding.open(request.page, number);
            let begun = self.walkers.ask(request.page, request.kernel, &self.table);
            go_on(begun, around.queue.now(), around.queue);
        }
    }

    /// A walk goes on: it reads the next entry, or its page is known, or absent.
    pub(super) fn on_walk(
        &mut self,
        number: u32,
        around: &mut Around<'_>,
        answers: &mut Vec<Request>,
    ) {
        let walk = self.walkers.walk(number);
        let now = around.queue.now();
        if walk.level < self.table.levels() {
            return self.read(number, around);
        }
        if !walk.faulted && !self.table.is_present(walk.page) {
            around.counts[to_usize(walk.kernel)].translation.faults += 1;
            go_on(self.walkers.fault(number, &self.table), now, around.queue);
            return go_on(Some(number), now + self.fault_cycles, around.queue);
        }
        if walk.faulted {
            self.table.bring(walk.page, walk.page);
        }
        self.tlb.insert(walk.page);
        self.outstanding.close(walk.page, &mut self.released);
        answers.extend(self.released.drain(..).map(|request| self.requests.remove(request)));
        go_on(self.walkers.end(number, &self.table), now, around.queue);
    }

    /// Sends the read of a walk's next entry.
    fn read(&mut self, number: u32, around: &mut Around<'_>) {
        let walk = self.walkers.walk(number);
        let entry = self.table.entry_address(walk.page, walk.level);
        let address = entry / SECTOR_BYTES * SECTOR_BYTES;
        let packet = Packet {
            address,
            asked: address,
            ready: around.queue.now(),
            operation: number,
            kernel: walk.kernel,
            bytes: 0,
            sm: self.port,
            slice: around.fabric.slice_of(address),
            ask: Ask::Read,
            fills_l1: false,
            walks: true,
        };
        around.fabric.send(packet, around.queue);
    }

    /// The entry that a walk has asked for is there at cycle `done`.
    pub(super) fn on_read(&mut self, number: u32, done: Cycle, queue: &mut EventQueue<Event>) {
        self.walkers.has_read(number, &self.table);
        go_on(Some(number), done, queue);
    }

    /// What is under way, for the dump of a stuck run.
    pub(super) fn describe(&self) -> String {
        let (requests, walks) = (self.requests.len(), self.walkers.len());
        format!("{requests} pages asked for, {walks} walks")
    }
}

/// Schedules the next step of a walk, if there is one.
fn go_on(walk: Option<u32>, at: Cycle, queue: &mut EventQueue<Event>) {
    if let Some(walk) = walk {
        queue.schedule(at, Event::Walk { walk });
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::Event;
    use super::super::queue::EventQueue;
    use super::{Mmu, Request};
    use crate::spec::Models;

    #[test]
    fn the_l2_tlb_takes_one_request_per_cycle_and_knows_after_its_latency() {
        let machine = Models::builtin().machine("ugpu", &[]).unwrap().machine;
        let mut mmu = Mmu::new(&machine).unwrap();
        let mut queue = EventQueue::new();
        for (sm, at) in [(0, 5), (1, 5), (2, 5), (3, 100)] {
            mmu.ask(Request { page: 7, kernel: 0, sm }, at, &mut queue);
        }
        let mut known = Vec::new();
        while let Some(Event::LookUp { request }) = queue.next() {
            known.push((mmu.requests.get(request).sm, queue.now()));
        }
        assert_eq!(known, [(0, 25), (1, 26), (2, 27), (3, 120)]);
    }
}
