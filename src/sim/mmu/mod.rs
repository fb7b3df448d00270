//! Address translation behind the SMs' L1 TLBs: the shared L2 TLB, the page walkers, the
//! page tables.
//!
//! An SM requests the pages that its L1 TLB lacks. The L2 TLB accepts a number of requests per
//! cycle and answers hits after its latency, also under misses. A miss starts a walk or
//! joins the walk of its page. A walk reads one entry per level over the crossbar, from a
//! separate port, out of the L2 cache or memory. Every SM that waits gets the answer in the
//! cycle in which the last entry arrives. A page that is not in memory costs the cycles of a
//! fault first, once.
//!
//! Where channels are owned, a page that has to move counts as a miss of the L2 TLB: its walk
//! ends when the page has moved (UGPU, section 4.4).

pub(crate) mod address_space;
mod app_pages;
#[cfg(test)]
mod frame_checker;
mod frames;
mod moves;
pub(crate) mod page_table;
mod tlb;
mod walker;

use crate::config::{Machine, PageChannels};
use gpumodel_core::contract::Migration;
use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_u16, to_usize};

use crate::cache::{Merge, Mshr};
use crate::counters::KernelCounts;
use crate::gpu::event_queue::Event;
use crate::memory::packet::{Leg, Origin, Packet, RequestKind};
use crate::memory::{Events, MemorySystem};
use crate::slab::Slab;
use frames::Frames;
use moves::{Move, Moves};
use page_table::PageTable;
pub(crate) use tlb::Tlb;
use walker::{Walk, Walkers};

/// A request of an SM for a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// The page: an address over the page size.
    pub(crate) page: u64,
    /// The launch that needs it.
    pub(crate) kernel: u32,
    /// The SM.
    pub(crate) sm: u16,
}

/// The parts of a run that translation needs.
pub(crate) struct MmuContext<'a> {
    /// Time.
    pub(crate) queue: &'a mut Events,
    /// By launch.
    pub(crate) counts: &'a mut [KernelCounts],
    /// Where the tables are.
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
    /// When the L2 TLB accepts its next request, and how many it has accepted in that cycle.
    free_at: Cycle,
    accepted: u32,
    per_cycle: u32,
    latency: Cycle,
    fault_cycles: Cycle,
    /// The walkers' port, as the number of an SM.
    port: u16,
    /// Where pages lie; `None` where channels cannot be owned.
    frames: Option<Frames>,
    moves: Moves,
    /// No page may begin to move: channels are changing owners and caches are not yet flushed.
    moves_held: bool,
    /// Walks whose pages will move then.
    held_walks: Vec<u32>,
    #[cfg(test)]
    checker: frame_checker::FrameChecker,
}

/// An application's pages, and the cost of moving them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppMemory {
    /// Pages of its data in memory, copied there or touched; 0 where channels were never owned.
    pub pages: u64,
    /// Pages that have moved.
    pub pages_moved: u64,
    /// Changes of its channels while it had pages.
    pub changes: u64,
    /// Cycles during which pages of it were moving.
    pub moving_cycles: Cycle,
}

impl Mmu {
    /// The unit of `machine` for `apps` applications; `None` where addresses are physical.
    /// `channels` are the groups of channels that can be owned.
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
            accepted: 0,
            per_cycle: spec.l2_requests_per_cycle,
            latency: u64::from(spec.l2_latency_cycles),
            fault_cycles: spec.fault_cycles,
            port,
            frames: channels.and_then(|channels| Frames::new(channels, apps, spec.migration_fill)),
            moves: Moves::new(spec, copiers.collect(), apps),
            moves_held: false,
            held_walks: Vec::new(),
            #[cfg(test)]
            checker: frame_checker::FrameChecker::default(),
        })
    }

    /// Where an address lies in memory: at the same place, with the trace's channels and rows,
    /// until channels are owned. Slices and channels see only the result.
    #[inline]
    pub(crate) fn physical(&self, address: u64) -> u64 {
        self.frames.as_ref().map_or(address, |frames| frames.physical(address))
    }

    /// True where channels can be owned.
    pub(crate) fn owns_channels(&self) -> bool {
        self.frames.is_some()
    }

    /// Gives an application the channels `channels`; none means all. Returns its former channels
    /// where its pages may have to move.
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

    /// No page begins to move until [`Mmu::resume_moves`]; moves in progress go on.
    pub(crate) fn hold_moves(&mut self) {
        self.moves_held = true;
    }

    /// Pages move again, the held ones first.
    pub(crate) fn resume_moves(&mut self, events: &mut Events) {
        self.moves_held = false;
        self.held_walks.drain(..).for_each(|walk| go_on(Some(walk), events.now(), events));
    }

    /// An application's pages and moves up to cycle `now`.
    pub(crate) fn memory_of(&self, app: usize, now: Cycle) -> AppMemory {
        let Some(frames) = &self.frames else { return AppMemory::default() };
        let pages = frames.app(app);
        AppMemory {
            pages: if frames.owned { pages.pages() } else { 0 },
            pages_moved: pages.moved,
            changes: pages.changes,
            moving_cycles: self.moves.cycles(app, now),
        }
    }

    /// A host-to-device copy has put `bytes` bytes into memory.
    pub(crate) fn copy_in(&mut self, first: u64, bytes: u64) {
        if let Some(more) = bytes.checked_sub(1) {
            let last = first.saturating_add(more);
            let (first, last) = (self.table.page_of(first), self.table.page_of(last));
            self.table.bring(first, last);
            self.frames.iter_mut().for_each(|frames| frames.add_resident(first, last));
        }
    }

    /// The page of an address is used without time: it is in memory, in the place where it
    /// belongs, and known to the L2 TLB. A page that a walk is under way for is left to it.
    pub(crate) fn pass(&mut self, address: u64) {
        let page = self.table.page_of(address);
        let known = self.tlb.lookup(page);
        let moves = self.frames.as_ref().is_some_and(|frames| frames.destination(page).is_some());
        if (known && !moves) || self.outstanding.holds(page) {
            return;
        }
        if !self.table.is_present(page) {
            self.table.bring(page, page);
            self.frames.iter_mut().for_each(|frames| frames.lay_out(page));
        }
        if let Some(frames) = &mut self.frames {
            frames.lay_out_other(page);
            if let Some(group) = frames.destination(page) {
                let (to, addresses) = frames.begin_move(page, group);
                #[cfg(test)]
                self.checker.allocated(page, addresses);
                #[cfg(test)]
                self.checker.moved(page, addresses);
                let _ = addresses;
                frames.end_move(page, to);
            }
            frames.touch(page);
        }
        self.tlb.insert(page);
    }

    /// A request arrives at the L2 TLB at cycle `at`.
    pub(crate) fn request(&mut self, request: Request, at: Cycle, events: &mut Events) {
        let start = at.max(self.free_at);
        self.accepted = if start > self.free_at { 1 } else { self.accepted + 1 };
        self.free_at = start;
        if self.accepted == self.per_cycle {
            (self.free_at, self.accepted) = (start + 1, 0);
        }
        let request = self.requests.insert(request);
        events.schedule(start + self.latency, Event::LookUp { request });
    }

    /// The look-up of a page in the L2 TLB ends; answers are appended to `answers`.
    pub(crate) fn on_look_up(
        &mut self,
        number: u32,
        context: &mut MmuContext<'_>,
        answers: &mut Vec<Request>,
    ) {
        let request = *self.requests.get(number);
        let counts = &mut context.counts[to_usize(request.kernel)].translation.l2;
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
            let begun = self.walkers.add(request.page, request.kernel, &self.table);
            go_on(begun, context.queue.now(), context.queue);
        }
    }

    /// The next step of a walk: it reads an entry, or its page is found or absent.
    pub(crate) fn on_walk(
        &mut self,
        number: u32,
        context: &mut MmuContext<'_>,
        answers: &mut Vec<Request>,
    ) {
        let walk = self.walkers.walk(number);
        let now = context.queue.now();
        if walk.level < self.table.levels {
            return self.read(number, context);
        }
        if !walk.faulted && !self.table.is_present(walk.page) {
            context.counts[to_usize(walk.kernel)].translation.faults += 1;
            go_on(self.walkers.fault(number, &self.table), now, context.queue);
            return go_on(Some(number), now + self.fault_cycles, context.queue);
        }
        if walk.faulted && !self.table.is_present(walk.page) {
            self.table.bring(walk.page, walk.page);
            self.frames.iter_mut().for_each(|frames| frames.lay_out(walk.page));
        }
        if self.must_move(number, walk, context) {
            return;
        }
        self.tlb.insert(walk.page);
        self.outstanding.close(walk.page, &mut self.released);
        answers.extend(self.released.drain(..).map(|request| self.requests.remove(request)));
        go_on(self.walkers.end(number, &self.table), now, context.queue);
    }

    /// Whether the page of a walk has to move before it is used; the walk then waits without its
    /// walker, first until pages may move. Other pages are counted as used.
    fn must_move(&mut self, number: u32, walk: Walk, context: &mut MmuContext<'_>) -> bool {
        let Some(frames) = &mut self.frames else { return false };
        frames.lay_out_other(walk.page);
        let Some(group) = frames.destination(walk.page) else {
            frames.touch(walk.page);
            return false;
        };
        if !walk.faulted {
            let next = self.walkers.fault(number, &self.table);
            go_on(next, context.queue.now(), context.queue);
        }
        if self.moves_held {
            self.held_walks.push(number);
            return true;
        }
        let (to, addresses) = frames.begin_move(walk.page, group);
        let app = frames.app_and_number(walk.page).0;
        let (Walk { page, kernel, .. }, how) = (walk, frames.migration);
        let one = Move { walk: number, page, app, kernel, how, to, addresses, remaining: 0 };
        #[cfg(test)]
        self.checker.allocated(page, addresses);
        self.moves.add(one, context.queue);
        if how == Migration::PageMove {
            context.memory_system.expect_copies();
        }
        true
    }

    /// The driver's work for a page is done: its data moves from now on.
    pub(crate) fn on_page_move(&mut self, number: u32, context: &mut MmuContext<'_>) {
        #[cfg(test)]
        if let Some(frame) = self.moves.copied_in_memory(number, context.memory_system) {
            self.checker.copy_begins(frame);
        }
        self.moves.begin(number, context.memory_system, context.queue);
    }

    /// A sector of a page that moves over the crossbar was read or written.
    pub(crate) fn on_copy(
        &mut self,
        packet: &Packet,
        memory_system: &mut MemorySystem,
        events: &mut Events,
    ) {
        self.moves.on_answer(packet, memory_system, events);
    }

    /// A page's data is in its new frame: its walk goes on.
    pub(crate) fn on_page_copied(&mut self, number: u32, events: &mut Events) {
        #[cfg(test)]
        let ends = self.moves.ends(number);
        let ended = self.moves.end(number, events);
        #[cfg(test)]
        self.checker.moved(ended.page, ends);
        if let Some(frames) = &mut self.frames {
            frames.end_move(ended.page, ended.to);
        }
        go_on(Some(ended.walk), events.now(), events);
    }

    /// Sends the read of a walk's next entry.
    fn read(&mut self, number: u32, context: &mut MmuContext<'_>) {
        let walk = self.walkers.walk(number);
        let entry = self.table.entry_address(walk.page, walk.level);
        let address = entry / SECTOR_BYTES * SECTOR_BYTES;
        let packet = Packet {
            address,
            virtual_address: address,
            ready: context.queue.now(),
            operation: number,
            kernel: walk.kernel,
            bytes: 0,
            sectors: 1,
            mask: 0,
            more_turns: 0,
            sm: self.port,
            slice: context.memory_system.slice_of(address),
            kind: RequestKind::Read,
            fills_l1: false,
            origin: Origin::Walk,
            leg: Leg::Near,
        };
        context.memory_system.send(packet, context.queue);
    }

    /// The entry that a walk reads arrives at cycle `done`.
    pub(crate) fn on_read(&mut self, number: u32, done: Cycle, events: &mut Events) {
        self.walkers.on_entry(number, &self.table);
        go_on(Some(number), done, events);
    }

    /// What is in progress, for the dump of a stuck run.
    pub(crate) fn describe(&self) -> String {
        let (requests, walks) = (self.requests.len(), self.walkers.len());
        let (moves, held) = (self.moves.len(), self.held_walks.len());
        format!("{requests} page requests, {walks} walks, {moves} pages moving, {held} held")
    }
}

/// Schedules the next step of a walk, if there is one.
fn go_on(walk: Option<u32>, at: Cycle, events: &mut Events) {
    if let Some(walk) = walk {
        events.schedule(at, Event::Walk { walk });
    }
}

#[cfg(test)]
mod tests {
    use super::{Mmu, Request};
    use crate::config::Models;
    use crate::gpu::event_queue::{Event, EventQueue};

    #[test]
    fn the_l2_tlb_takes_its_requests_per_cycle_and_knows_after_its_latency() {
        assert_eq!(looked_up("1"), [(0, 25), (1, 26), (2, 27), (3, 120)]);
        assert_eq!(looked_up("2"), [(0, 25), (1, 25), (2, 26), (3, 120)]);
    }

    /// When four SMs know of a page, of which three ask at once.
    fn looked_up(per_cycle: &str) -> Vec<(u16, u64)> {
        let set = [("translation.l2_requests_per_cycle".to_owned(), per_cycle.to_owned())];
        let machine = Models::builtin().machine("ugpu", &set).unwrap().machine;
        let mut mmu = Mmu::new(&machine, None, 1).unwrap();
        let mut queue = EventQueue::new();
        for (sm, at) in [(0, 5), (1, 5), (2, 5), (3, 100)] {
            mmu.request(Request { page: 7, kernel: 0, sm }, at, &mut queue);
        }
        let mut known = Vec::new();
        while let Some(Event::LookUp { request }) = queue.next() {
            known.push((mmu.requests.get(request).sm, queue.now()));
        }
        known
    }
}
