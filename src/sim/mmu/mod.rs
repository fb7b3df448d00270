//! Address translation behind the SMs' own TLBs: the L2 TLB that all share, the
//! page walkers, the page tables.
//!
//! An SM asks for a page that its L1 TLB lacks. The L2 TLB takes its requests per
//! cycle and knows after its latency; hits answer at once, whatever misses are
//! under way. A miss starts a walk, or joins the walk to its page. A walk reads
//! one entry per level through the crossbar, from a port of its own, out of the
//! L2 cache and, where that misses, memory. Its answer reaches every SM that
//! waits in the cycle in which the last entry is there. A page that is not in
//! memory costs the fault's cycles first, once.
//!
//! Where channels are owned, a page that its application has to move counts as a miss
//! of the L2 TLB: its walk ends when the page has moved (UGPU, section 4.4).

pub(crate) mod address_space;
mod frames;
#[cfg(test)]
mod frames_tests;
mod moves;
mod page_table;
#[cfg(test)]
mod shadow;
mod tenant;
mod tlb;
mod walker;

use crate::config::{Machine, PageChannels};
use gpumodel_core::contract::Migration;
use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_u16, to_usize};

use crate::cache::{Merge, Mshr};
use crate::counters::KernelCounts;
use crate::gpu::event_queue::Event;
use crate::gpu::event_queue::EventQueue;
use crate::memory::MemorySystem;
use crate::memory::packet::{Origin, Packet, RequestKind};
use crate::slab::Slab;
use frames::Frames;
use moves::{Moves, Wanted};
use page_table::PageTable;
pub(crate) use tlb::Tlb;
use walker::{Walk, Walkers};

/// An SM that waits for a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// The page: an address over the page size.
    pub(crate) page: u64,
    /// The launch that asked.
    pub(crate) kernel: u32,
    /// The SM.
    pub(crate) sm: u16,
}

/// The parts of a run that translation works on.
pub(crate) struct Around<'a> {
    /// Time.
    pub(crate) queue: &'a mut EventQueue<Event>,
    /// By launch.
    pub(crate) counts: &'a mut [KernelCounts],
    /// The way to the tables.
    pub(crate) memory_system: &'a mut MemorySystem,
}

/// The memory-management unit of the GPU.
#[derive(Debug)]
pub(crate) struct Mmu {
    tlb: Tlb,
    table: PageTable,
    walkers: Walkers,
    requests: Slab<Request>,
    /// Requests by the page whose walk they wait for.
    outstanding: Mshr<u32>,
    released: Vec<u32>,
    /// When the L2 TLB takes its next request, and how many it has taken then.
    free_at: Cycle,
    taken: u32,
    per_cycle: u32,
    latency: Cycle,
    fault_cycles: Cycle,
    /// The walkers' port, as the number of an SM.
    port: u16,
    /// Where pages lie, where channels can be owned.
    frames: Option<Frames>,
    moves: Moves,
    /// Pages may not set out: channels are changing hands, and caches are not flushed.
    holds: bool,
    /// Walks whose pages are to set out then.
    held: Vec<u32>,
    #[cfg(test)]
    shadow: shadow::Shadow,
}

/// What an application has of the memory, and what moving it has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppMemory {
    /// Pages that it has touched; 0 where channels were never owned.
    pub pages: u64,
    /// Pages that have moved.
    pub pages_moved: u64,
    /// Changes of its channels while it had pages.
    pub changes: u64,
    /// Cycles during which pages of it were under way.
    pub moving_cycles: Cycle,
}

impl Mmu {
    /// The unit of `machine` for `apps` applications, with nothing under way; `None`
    /// where addresses are physical. `channels` are the groups of channels that can be
    /// owned.
    pub(crate) fn new(
        machine: &Machine,
        channels: Option<PageChannels>,
        apps: usize,
    ) -> Option<Self> {
        let spec = machine.translation.as_ref()?;
        let page_bits = spec.page_bytes.trailing_zeros();
        let requests = u32::from(machine.dispatch.sms) * spec.l1_mshr_entries;
        let per_port = to_u16(machine.interconnect.sms_per_port);
        let port = machine.dispatch.sms.div_ceil(per_port) * per_port;
        let copiers = (1..=to_u16(spec.migration_ports)).map(|number| port + number * per_port);
        Some(Self {
            tlb: Tlb::new(spec.l2_entries, spec.l2_ways),
            table: PageTable::new(page_bits, spec.walk_levels, spec.demand_paging),
            walkers: Walkers::new(spec),
            requests: Slab::new(),
            outstanding: Mshr::new(requests, u32::MAX),
            released: Vec::new(),
            free_at: 0,
            taken: 0,
            per_cycle: spec.l2_requests_per_cycle,
            latency: u64::from(spec.l2_latency_cycles),
            fault_cycles: spec.fault_cycles,
            port,
            frames: channels.and_then(|channels| Frames::new(channels, apps, spec.migration_fill)),
            moves: Moves::new(spec, copiers.collect(), apps),
            holds: false,
            held: Vec::new(),
            #[cfg(test)]
            shadow: shadow::Shadow::default(),
        })
    }

    /// Where an address lies in memory: at the same place, which keeps what the trace
    /// says of channels and rows, until channels are owned. Slices and channels see
    /// nothing but what this returns.
    #[inline]
    pub(crate) fn physical(&self, address: u64) -> u64 {
        self.frames.as_ref().map_or(address, |frames| frames.physical(address))
    }

    /// True where channels can be owned.
    pub(crate) fn owns_channels(&self) -> bool {
        self.frames.is_some()
    }

    /// Gives an application the channels `channels`; none means all. The channels that
    /// it had, where its pages may have to follow.
    pub(crate) fn own(
        &mut self,
        app: usize,
        channels: &[u32],
        migration: Migration,
    ) -> Option<Vec<u32>> {
        let before = self.frames.as_mut()?.own(app, channels, migration);
        #[cfg(test)]
        self.check_frames();
        before
    }

    /// No page sets out until [`Mmu::let_pages_go`]; those under way go on.
    pub(crate) fn hold_pages(&mut self) {
        self.holds = true;
    }

    /// Pages set out again, those that were held first.
    pub(crate) fn let_pages_go(&mut self, queue: &mut EventQueue<Event>) {
        self.holds = false;
        self.held.drain(..).for_each(|walk| go_on(Some(walk), queue.now(), queue));
    }

    /// What an application has of the memory up to cycle `now`.
    pub(crate) fn memory_of(&self, app: usize, now: Cycle) -> AppMemory {
        let Some(frames) = &self.frames else { return AppMemory::default() };
        let tenant = frames.tenant(app);
        AppMemory {
            pages: if frames.is_owned() { tenant.pages() } else { 0 },
            pages_moved: tenant.moved,
            changes: tenant.changes,
            moving_cycles: self.moves.cycles(app, now),
        }
    }

    /// Bytes that a host-to-device copy has put into memory.
    pub(crate) fn copy_in(&mut self, first: u64, bytes: u64) {
        if let Some(more) = bytes.checked_sub(1) {
            let last = first.saturating_add(more);
            self.table.bring(self.table.page_of(first), self.table.page_of(last));
        }
    }

    /// Takes a request that arrives at the L2 TLB at cycle `at`.
    pub(crate) fn ask(&mut self, request: Request, at: Cycle, queue: &mut EventQueue<Event>) {
        let start = at.max(self.free_at);
        self.taken = if start > self.free_at { 1 } else { self.taken + 1 };
        self.free_at = start;
        if self.taken == self.per_cycle {
            (self.free_at, self.taken) = (start + 1, 0);
        }
        let request = self.requests.insert(request);
        queue.schedule(start + self.latency, Event::LookUp { request });
    }

    /// The L2 TLB has looked a page up; answers are appended to `answers`.
    pub(crate) fn on_look_up(
        &mut self,
        number: u32,
        around: &mut Around<'_>,
        answers: &mut Vec<Request>,
    ) {
        let request = *self.requests.get(number);
        let counts = &mut around.counts[to_usize(request.kernel)].translation.l2;
        let moves = self.frames.as_ref().and_then(|frames| frames.destination(request.page));
        if moves.is_some() {
            self.tlb.remove(request.page);
        }
        if self.tlb.lookup(request.page) {
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
    pub(crate) fn on_walk(
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
        if walk.faulted && !self.table.is_present(walk.page) {
            self.table.bring(walk.page, walk.page);
            self.frames.iter_mut().for_each(|frames| frames.place(walk.page));
        }
        if self.must_move(number, walk, around) {
            return;
        }
        self.tlb.insert(walk.page);
        self.outstanding.close(walk.page, &mut self.released);
        answers.extend(self.released.drain(..).map(|request| self.requests.remove(request)));
        go_on(self.walkers.end(number, &self.table), now, around.queue);
    }

    /// Whether the page of a walk has to move before it is used; the walk then waits
    /// without its walker, at first until pages may set out. One that need not is
    /// counted as used.
    fn must_move(&mut self, number: u32, walk: Walk, around: &mut Around<'_>) -> bool {
        let Some(frames) = &mut self.frames else { return false };
        frames.settle(walk.page);
        let Some(group) = frames.destination(walk.page) else {
            frames.touch(walk.page);
            return false;
        };
        if !walk.faulted {
            let next = self.walkers.fault(number, &self.table);
            go_on(next, around.queue.now(), around.queue);
        }
        if self.holds {
            self.held.push(number);
            return true;
        }
        let (to, addresses) = frames.begin(walk.page, group);
        let app = frames.parts(walk.page).0;
        let (Walk { page, kernel, .. }, how) = (walk, frames.migration());
        let wanted = Wanted { walk: number, page, app, kernel, how, to, addresses };
        #[cfg(test)]
        self.shadow.kept(page, addresses);
        self.moves.ask(wanted, around.queue);
        true
    }

    /// The driver has found a frame for a page, whose data moves from now on.
    pub(crate) fn on_page_move(&mut self, number: u32, around: &mut Around<'_>) {
        #[cfg(test)]
        if let Some(frame) = self.moves.leaves_inside(number, around.memory_system) {
            self.shadow.begins(frame);
        }
        self.moves.begin(number, around.memory_system, around.queue);
    }

    /// A sector of a page that is copied over the crossbar has come or is written.
    pub(crate) fn on_copy(
        &mut self,
        packet: &Packet,
        memory_system: &mut MemorySystem,
        queue: &mut EventQueue<Event>,
    ) {
        self.moves.on_answer(packet, memory_system, queue);
    }

    /// A page's data is in its new frame: its walk goes on.
    pub(crate) fn on_page_copied(&mut self, number: u32, queue: &mut EventQueue<Event>) {
        #[cfg(test)]
        let ends = self.moves.ends(number);
        let ended = self.moves.end(number, queue);
        #[cfg(test)]
        self.shadow.came(ended.page, ends);
        if let Some(frames) = &mut self.frames {
            frames.end(ended.page, ended.to);
        }
        go_on(Some(ended.walk), queue.now(), queue);
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
            sectors: 1,
            sm: self.port,
            slice: around.memory_system.slice_of(address),
            ask: RequestKind::Read,
            fills_l1: false,
            origin: Origin::Walk,
        };
        around.memory_system.send(packet, around.queue);
    }

    /// The entry that a walk has asked for is there at cycle `done`.
    pub(crate) fn on_read(&mut self, number: u32, done: Cycle, queue: &mut EventQueue<Event>) {
        self.walkers.has_read(number, &self.table);
        go_on(Some(number), done, queue);
    }

    /// What is under way, for the dump of a stuck run.
    pub(crate) fn describe(&self) -> String {
        let (requests, walks, held) = (self.requests.len(), self.walkers.len(), self.held.len());
        let moves = self.moves.len();
        format!("{requests} pages asked for, {walks} walks, {moves} pages move, {held} are to")
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
    use super::{Mmu, Request};
    use crate::config::Models;
    use crate::gpu::event_queue::Event;
    use crate::gpu::event_queue::EventQueue;

    #[test]
    fn the_l2_tlb_takes_one_request_per_cycle_and_knows_after_its_latency() {
        let machine = Models::builtin().machine("ugpu", &[]).unwrap().machine;
        let mut mmu = Mmu::new(&machine, None, 1).unwrap();
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
