//! The way of requests through the L1 of one SM: their look-ups, what these send through the SM's
//! port, and the sectors that wait at the end of a bank's pipeline.
//!
//! Where the L1's banks work in order, a sector for which there is no entry stays
//! at the end of its bank's pipeline, which fills up behind it; other banks continue. So does one
//! that misses while the queue to the network is full ([`MissQueue`]): look-ups are done a latency
//! before their time, so that those of all banks up to a cycle are known when one gets a place.
//!
//! Sectors evicted from the L1 wait in front of the SM's port. Nothing that sends passes
//! them, so what waits is bounded by the lines that one look-up, or the fills of
//! all outstanding misses, can evict.

use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_u16, to_u32, to_usize};

use crate::config::{Machine, RequestGranularity};
use crate::counters::CacheCounts;
use crate::gpu::shared_state::SharedState;
use crate::memory::packet::{Leg, Origin, Packet, RequestKind};
use crate::sm::coalesce::{LINE_BYTES, Reach, SectorRequest};
use crate::sm::lsu::l1::{L1, Read, Write};
use crate::sm::lsu::queue::{BankQueues, Entry, MissQueue, QueuedSector, Route};

/// What became of the sectors of one request.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sm) struct Outcome {
    /// When those that the L1 has answer; 0 without any.
    pub(in crate::sm) known: Cycle,
    /// Sectors of the caches whose answers are still to come.
    pub(in crate::sm) sent: u16,
    /// Those that must wait, as bits of [`SectorRequest::mask`].
    pub(in crate::sm) left: u8,
    /// What those wait for.
    pub(in crate::sm) wait: Option<Wait>,
}

/// What keeps a request from being served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sm) enum Wait {
    /// The L1 has no entry or way: it continues after a fill.
    Entry,
    /// The constant cache has no entry: it continues after an answer.
    Constant,
    /// The network takes no packet; `Some`: it will at that cycle.
    Port(Option<Cycle>),
}

impl Outcome {
    /// All of a request waits.
    pub(in crate::sm) fn waits(request: SectorRequest, wait: Wait) -> Self {
        Self { left: request.mask, wait: Some(wait), ..Self::default() }
    }
}

/// Figures of the L1, see [`crate::config::L1Spec`].
#[derive(Clone, Copy, Debug)]
pub(in crate::sm) struct L1Figures {
    latency: u64,
    pub(in crate::sm) banks: u32,
    pub(in crate::sm) bank_bytes: u64,
    pub(in crate::sm) tags_per_cycle: u32,
    /// What one request asks for.
    reach: Reach,
    /// See [`crate::config::Translation::before_l1`].
    pub(in crate::sm) translates_before: bool,
}

impl L1Figures {
    fn new(machine: &Machine, block_bytes: u64) -> Self {
        let sectors = to_u32(block_bytes / SECTOR_BYTES);
        let reach = match machine.interconnect.request_granularity {
            RequestGranularity::Line => Reach::Block { sectors, alike: false },
            RequestGranularity::Sector
                if u64::from(machine.l1.cache.sector_bytes) == LINE_BYTES =>
            {
                Reach::WholeLine
            }
            RequestGranularity::Sector => Reach::Sector,
        };
        Self {
            latency: u64::from(machine.l1.latency_cycles),
            banks: machine.l1.banks.max(1),
            bank_bytes: u64::from(machine.l1.bank_bytes),
            tags_per_cycle: machine.l1.tags_per_cycle.max(1),
            reach,
            translates_before: machine.translation.as_ref().is_some_and(|t| t.before_l1),
        }
    }
}

/// The L1 of one SM, its pipelines, and the SM's port behind it.
#[derive(Debug)]
pub(in crate::sm) struct L1Pipeline {
    sm: u16,
    pub(in crate::sm) figures: L1Figures,
    pub(in crate::sm) l1: L1,
    banks: BankQueues,
    miss_queue: MissQueue,
    /// What sectors have found that had waited in pipelines.
    pub(in crate::sm) held_counts: CacheCounts,
    /// Sectors whose answers are still to come.
    pub(in crate::sm) in_flight: u32,
    /// What loads have found since the schedulers were last informed: the operation of each, and
    /// whether a sector of it was in the L1 or under way. `None`: no scheduler sees the L1.
    pub(in crate::sm) found: Option<Vec<(u32, bool)>>,
}

impl L1Pipeline {
    /// The empty L1 of SM `sm` of `machine`, whose schedulers may see what it does.
    ///
    /// `block_bytes`: see [`crate::memory::MemorySystem::block_bytes`].
    pub(in crate::sm) fn new(sm: u16, machine: &Machine, block_bytes: u64, seen: bool) -> Self {
        let figures = L1Figures::new(machine, block_bytes);
        Self {
            sm,
            figures,
            l1: L1::new(&machine.l1, machine.interconnect.request_granularity),
            banks: BankQueues::new(figures.banks),
            miss_queue: MissQueue::new(machine),
            held_counts: CacheCounts::default(),
            in_flight: 0,
            found: seen.then(Vec::new),
        }
    }

    /// What one request of an instruction asks for.
    pub(in crate::sm) fn reach(&self, route: Route) -> Reach {
        let alike = match route {
            Route::Cached(kind) | Route::Direct(kind) => kind.carries_data(),
            Route::Shared { .. } | Route::Constant => false,
        };
        match self.figures.reach {
            Reach::Block { sectors, .. } => Reach::Block { sectors, alike },
            other @ (Reach::Sector | Reach::WholeLine) => other,
        }
    }

    /// Sectors of the caches that some bits of a line request stand for.
    #[inline]
    pub(in crate::sm) fn units(&self, sectors: u8) -> u32 {
        match self.figures.reach {
            Reach::Block { .. } | Reach::Sector => sectors.count_ones(),
            Reach::WholeLine => u32::from(sectors != 0),
        }
    }

    /// Whether requests go by line.
    #[inline]
    fn by_line(&self) -> bool {
        matches!(self.figures.reach, Reach::Block { .. })
    }

    /// Cycles of the banks before the next request of an entry: before its last sector.
    #[inline]
    pub(in crate::sm) fn bank_time(&self, entry: &mut Entry, request: SectorRequest) -> u64 {
        if entry.passes > 0 {
            return 0;
        }
        if self.figures.bank_bytes == 0 {
            let last = entry.served + self.units(request.mask) - 1;
            return u64::from(last / self.figures.banks);
        }
        entry.enter_bank(self.bank_of(request.address));
        u64::from(entry.cycle)
    }

    /// The bank of the L1 that holds an address.
    fn bank_of(&self, address: u64) -> usize {
        let bank = address / self.figures.bank_bytes % u64::from(self.figures.banks);
        to_usize(bank)
    }

    /// Cycles of the TLB's look-up in front of the L1, and behind it.
    pub(in crate::sm) fn tlb_delays(&self, entry: &Entry) -> (Cycle, Cycle) {
        let delay = u64::from(entry.delay);
        if self.figures.translates_before { (delay, 0) } else { (0, delay) }
    }

    /// Looks a request up, or lets it wait in its bank's pipeline.
    pub(in crate::sm) fn serve(
        &mut self,
        entry: &Entry,
        request: SectorRequest,
        lookup: Cycle,
        shared_state: &mut SharedState,
    ) -> Outcome {
        if self.figures.bank_bytes == 0 || !matches!(entry.route, Route::Cached(_)) {
            return self.enter(entry, request, lookup, shared_state);
        }
        if self.miss_queue.exists() {
            return self.serve_in_order(entry, request, lookup, shared_state);
        }
        let bank = self.bank_of(request.address);
        if self.banks.waiting[bank].is_empty() {
            let outcome = self.enter(entry, request, lookup, shared_state);
            if outcome.wait != Some(Wait::Entry) {
                return outcome;
            }
        }
        if self.banks.waiting[bank].len() as u64 >= self.figures.latency {
            return Outcome::waits(request, Wait::Entry);
        }
        self.hold(bank, entry, request, (lookup, true));
        Outcome { sent: 1, ..Outcome::default() }
    }

    /// Lets a sector wait in the pipeline of its bank; `refused`: for an entry.
    fn hold(
        &mut self,
        bank: usize,
        entry: &Entry,
        request: SectorRequest,
        (lookup, refused): (Cycle, bool),
    ) {
        let ready = lookup + self.figures.latency;
        self.banks.held += 1;
        self.banks.waiting[bank].push_back(QueuedSector {
            entry: entry.bare(),
            request,
            ready,
            refused,
        });
    }

    /// As [`L1Pipeline::serve`], where what misses needs a place in the queue behind the banks.
    fn serve_in_order(
        &mut self,
        entry: &Entry,
        request: SectorRequest,
        lookup: Cycle,
        shared_state: &mut SharedState,
    ) -> Outcome {
        let bank = self.bank_of(request.address);
        let now = shared_state.queue.now();
        if let Some(wait) = self.full(bank, lookup, now) {
            return Outcome::waits(request, wait);
        }
        let ready = lookup + self.figures.latency;
        let mut refused = false;
        if self.banks.waiting[bank].is_empty()
            && !self.polls()
            && self.follows(bank, ready)
            && self.takes(ready, entry.route, request)
        {
            let outcome = self.enter(entry, request, lookup, shared_state);
            if outcome.wait != Some(Wait::Entry) {
                if outcome.wait.is_none() {
                    self.note_departure(bank, ready);
                }
                return outcome;
            }
            refused = true;
        }
        self.hold(bank, entry, request, (lookup, refused));
        Outcome { sent: 1, ..Outcome::default() }
    }

    /// What a sector waits for that would enter the pipeline of a bank.
    fn full(&self, bank: usize, lookup: Cycle, now: Cycle) -> Option<Wait> {
        let waiting = &self.banks.waiting[bank];
        let stages = to_usize(self.figures.latency.max(1));
        if waiting.len() >= stages {
            let refused = waiting.front().is_some_and(|head| head.refused);
            return Some(if refused { Wait::Entry } else { Wait::Port(Some(now + 1)) });
        }
        let departures = &self.banks.departures[bank];
        let place = (departures.len() + waiting.len()).checked_sub(stages)?;
        let at = *departures.get(place)?;
        (at > lookup).then(|| Wait::Port(Some(now + (at - lookup))))
    }

    /// A sector leaves the end of the pipeline of a bank.
    fn note_departure(&mut self, bank: usize, at: Cycle) {
        let departures = &mut self.banks.departures[bank];
        departures.push_back(at);
        if departures.len() as u64 > self.figures.latency.max(1) {
            departures.pop_front();
        }
    }

    /// Whether a sector may leave the pipeline of a bank at a cycle: behind those before it.
    fn follows(&self, bank: usize, at: Cycle) -> bool {
        self.banks.departures[bank].back().is_none_or(|&last| last < at)
    }

    /// Sectors in the pipelines of banks that are held up.
    pub(in crate::sm) fn held(&self) -> usize {
        self.banks.held
    }

    /// Cycles by which look-ups are ahead of the time at which their sectors leave.
    pub(in crate::sm) fn reach_ahead(&self) -> Cycle {
        self.figures.latency
    }

    /// Some sector waits for a place in the miss queue.
    pub(in crate::sm) fn polls(&self) -> bool {
        self.miss_queue.exists()
            && self.banks.held > 0
            && self.banks.waiting.iter().any(|q| q.front().is_some_and(|head| !head.refused))
    }

    /// Whether the miss queue takes at cycle `at` what the look-up may send.
    fn takes(&self, at: Cycle, route: Route, request: SectorRequest) -> bool {
        match route {
            // GPGPU-Sim's `rd_miss_base` asks for two places, also for what merges.
            Route::Cached(RequestKind::Read) => {
                self.miss_queue.has_places(2, at)
                    || self.l1.hits(request.address, self.sectors_of(request))
            }
            _ => self.miss_queue.has_places(1, at) || self.stays(route, request),
        }
    }

    /// Where the trials of held sectors begin; `filled`: after a fill.
    pub(in crate::sm) fn begin_retry(&mut self, filled: bool, now: Cycle) -> (Cycle, usize) {
        if filled {
            for queue in &mut self.banks.waiting {
                if let Some(head) = queue.front_mut()
                    && head.refused
                {
                    head.refused = false;
                    head.ready = head.ready.max(now);
                }
            }
            return (now, 0);
        }
        (now.max(self.banks.tried + 1), 0)
    }

    /// Lets the sectors at the ends of the pipelines from a bank on try again, until one has its
    /// answer: its operation, and when.
    pub(in crate::sm) fn retry_held(
        &mut self,
        (at, bank): &mut (Cycle, usize),
        shared_state: &mut SharedState,
    ) -> Option<(u32, Cycle)> {
        if self.banks.held == 0 {
            return None;
        }
        if !self.miss_queue.exists() {
            return self.retry_all(bank, shared_state);
        }
        let last = shared_state.queue.now() + self.figures.latency;
        while *at <= last && self.polls() {
            while *bank < self.banks.waiting.len() {
                *bank += 1;
                let answer = self.retry_at(*at, *bank - 1, shared_state);
                if answer.is_some() {
                    return answer;
                }
            }
            (*at, *bank) = (*at + 1, 0);
        }
        self.banks.tried = self.banks.tried.max(last);
        None
    }

    /// Lets the sector at the end of the pipeline of a bank try again at cycle `at`.
    fn retry_at(
        &mut self,
        at: Cycle,
        bank: usize,
        shared_state: &mut SharedState,
    ) -> Option<(u32, Cycle)> {
        let head = self.banks.waiting[bank].front()?;
        if head.refused
            || head.ready > at
            || !self.follows(bank, at)
            || !self.takes(at, head.entry.route, head.request)
        {
            return None;
        }
        let mut held = self.banks.waiting[bank].pop_front()?;
        let lookup = at.saturating_sub(self.figures.latency);
        let outcome = self.look_up_held(&held, lookup, shared_state);
        if outcome.wait.is_some() {
            held.refused = true;
            self.banks.waiting[bank].push_front(held);
            return None;
        }
        self.banks.held -= 1;
        self.note_departure(bank, at);
        (outcome.known != 0).then_some((held.entry.operation, outcome.known))
    }

    /// As [`L1Pipeline::retry_held`], without a miss queue.
    fn retry_all(
        &mut self,
        bank: &mut usize,
        shared_state: &mut SharedState,
    ) -> Option<(u32, Cycle)> {
        // They have passed the pipeline.
        let lookup = shared_state.queue.now().saturating_sub(self.figures.latency);
        while *bank < self.banks.waiting.len() {
            let Some(held) = self.banks.waiting[*bank].pop_front() else {
                *bank += 1;
                continue;
            };
            let outcome = self.look_up_held(&held, lookup, shared_state);
            if outcome.wait.is_some() {
                self.banks.waiting[*bank].push_front(held);
                *bank += 1;
                continue;
            }
            self.banks.held -= 1;
            if outcome.known != 0 {
                return Some((held.entry.operation, outcome.known));
            }
        }
        None
    }

    /// Looks up a sector that has waited, of whose instruction the unit is done.
    fn look_up_held(
        &mut self,
        held: &QueuedSector,
        lookup: Cycle,
        shared_state: &mut SharedState,
    ) -> Outcome {
        let kernel = to_usize(held.entry.kernel);
        let counted = shared_state.counts[kernel].l1;
        let outcome = self.look_up(&held.entry, held.request, lookup, shared_state);
        self.held_counts.grow(&counted, &shared_state.counts[kernel].l1);
        outcome
    }

    /// Looks a request up where the port has room for what it may send.
    #[inline]
    fn enter(
        &mut self,
        entry: &Entry,
        request: SectorRequest,
        lookup: Cycle,
        shared_state: &mut SharedState,
    ) -> Outcome {
        if let Err(at) = self.port_room(shared_state)
            && !self.stays(entry.route, request)
        {
            return Outcome::waits(request, Wait::Port(at));
        }
        self.look_up(entry, request, lookup, shared_state)
    }

    /// True when the look-up of a request sends nothing.
    fn stays(&self, route: Route, request: SectorRequest) -> bool {
        let sectors = self.sectors_of(request);
        match route {
            Route::Cached(RequestKind::Read) => self.l1.keeps(request.address, sectors),
            Route::Cached(_) => self.l1.absorbs(request.address, sectors),
            Route::Shared { .. } | Route::Direct(_) | Route::Constant => false,
        }
    }

    /// The sectors of a request in their line of the L1, one bit each.
    #[inline]
    fn sectors_of(&self, request: SectorRequest) -> u8 {
        match self.figures.reach {
            Reach::Block { .. } => request.mask,
            Reach::Sector | Reach::WholeLine => self.l1.sector_bit(request.address),
        }
    }

    /// Looks a request up and sends what it needs, whether the port has room or not.
    #[inline]
    fn look_up(
        &mut self,
        entry: &Entry,
        request: SectorRequest,
        lookup: Cycle,
        shared_state: &mut SharedState,
    ) -> Outcome {
        self.l1.kernel = entry.kernel;
        let (_, behind) = self.tlb_delays(entry);
        match entry.route {
            Route::Cached(RequestKind::Read) => {
                let read = self.read_l1(entry, request, shared_state);
                let after = lookup + self.figures.latency;
                self.after_read(entry, request, &read, after, shared_state)
            }
            Route::Cached(kind) => {
                let write = self.write_l1(entry, request, shared_state);
                let after = lookup + self.figures.latency;
                self.after_write((entry, kind), request, &write, after, shared_state)
            }
            Route::Direct(kind) => {
                let sent = self.units(request.mask);
                let leaves = lookup + 1 + behind;
                self.send_sectors(entry, request, (kind, leaves, false), shared_state);
                Outcome { sent: to_u16(sent), ..Outcome::default() }
            }
            Route::Shared { .. } | Route::Constant => {
                Outcome { known: lookup, ..Outcome::default() }
            }
        }
    }

    #[inline]
    fn read_l1(
        &mut self,
        entry: &Entry,
        request: SectorRequest,
        shared_state: &mut SharedState,
    ) -> Read {
        let mut counted = CacheCounts::default();
        let asked = self.sectors_of(request);
        let read = self.l1.read(request.address, asked, entry.operation, &mut counted);
        let sectors = self.l1.sectors_at_once();
        shared_state.counts[to_usize(entry.kernel)].l1.add(&counted, sectors);
        if let Some(hot) = &mut shared_state.hot {
            hot.count_l1((self.sm, entry.kernel, entry.operation), &counted, sectors);
        }
        if let Some(found) = &mut self.found {
            // What was refused is looked up again.
            for (sectors, there) in [(read.hit | read.merged, true), (read.miss, false)] {
                if sectors != 0 {
                    found.push((entry.operation, there));
                }
            }
        }
        read
    }

    #[inline]
    fn write_l1(
        &mut self,
        entry: &Entry,
        request: SectorRequest,
        shared_state: &mut SharedState,
    ) -> Write {
        let mut counted = CacheCounts::default();
        let place = (request.address, self.sectors_of(request));
        let write = self.l1.write(place, request.bytes, entry.operation, &mut counted);
        let sectors = request.sectors;
        shared_state.counts[to_usize(entry.kernel)].l1.add(&counted, sectors);
        if let Some(hot) = &mut shared_state.hot {
            hot.count_l1((self.sm, entry.kernel, entry.operation), &counted, sectors);
        }
        write
    }

    /// Sends what a read of the L1 lacks, which was done at cycle `after`.
    #[inline]
    fn after_read(
        &mut self,
        entry: &Entry,
        request: SectorRequest,
        read: &Read,
        after: Cycle,
        shared_state: &mut SharedState,
    ) -> Outcome {
        let Read { hit, merged, miss, refused } = *read;
        if miss != 0 {
            let leaves = self.miss_queue.leave(after + self.tlb_delays(entry).1);
            let missed = self.part(request, miss);
            self.send_sectors(entry, missed, (RequestKind::Read, leaves, true), shared_state);
        }
        Outcome {
            known: if hit == 0 { 0 } else { after },
            sent: to_u16((merged | miss).count_ones()),
            left: self.part(request, refused).mask,
            wait: (refused != 0).then_some(Wait::Entry),
        }
    }

    /// Sends what a write of the L1 sends down or must fetch; it was done at cycle `after`.
    fn after_write(
        &mut self,
        (entry, kind): (&Entry, RequestKind),
        request: SectorRequest,
        write: &Write,
        after: Cycle,
        shared_state: &mut SharedState,
    ) -> Outcome {
        let Write { kept, down, fetch, refused } = *write;
        let leaves = after + self.tlb_delays(entry).1;
        if down != 0 {
            let leaves = self.miss_queue.leave(leaves);
            self.send_sectors(entry, self.part(request, down), (kind, leaves, false), shared_state);
        }
        if fetch != 0 {
            let leaves = self.miss_queue.leave(leaves);
            let fetched = self.part(request, fetch);
            self.send_sectors(entry, fetched, (RequestKind::Read, leaves, true), shared_state);
        }
        Outcome {
            known: if kept == 0 { 0 } else { after },
            sent: to_u16((down | fetch).count_ones()),
            left: self.part(request, refused).mask,
            wait: (refused != 0).then_some(Wait::Entry),
        }
    }

    /// The part of a request that stands for `sectors` of its line of the L1.
    #[inline]
    fn part(&self, request: SectorRequest, sectors: u8) -> SectorRequest {
        match self.figures.reach {
            Reach::Block { .. } => request.part(sectors),
            Reach::Sector | Reach::WholeLine if sectors == 0 => {
                SectorRequest { mask: 0, ..request }
            }
            Reach::Sector | Reach::WholeLine => request,
        }
    }

    /// Sends a request towards its slice: what to ask there, when it leaves, and
    /// whether the answer fills the L1, with whole sectors of it.
    #[inline]
    fn send_sectors(
        &mut self,
        entry: &Entry,
        request: SectorRequest,
        (kind, ready, fills_l1): (RequestKind, Cycle, bool),
        shared_state: &mut SharedState,
    ) {
        let SectorRequest { address: asked, bytes, mask, more_turns, .. } = request;
        self.in_flight += self.units(mask);
        let sectors = if fills_l1 { self.l1.sectors_at_once() } else { request.sectors };
        let address = shared_state.physical(asked);
        let slice = shared_state.memory_system.slice_of(address);
        shared_state.send(Packet {
            address,
            virtual_address: asked,
            ready,
            operation: entry.operation,
            kernel: entry.kernel,
            bytes,
            sectors,
            mask: if self.by_line() { mask } else { 0 },
            more_turns,
            sm: self.sm,
            slice,
            kind,
            fills_l1,
            origin: Origin::Sm,
            leg: Leg::Near,
        });
    }

    /// Sectors have come for the L1: the operations that wait for them are appended to `out`.
    pub(in crate::sm) fn fill(&mut self, packet: &Packet, out: &mut Vec<(u32, u8)>) {
        self.in_flight -= packet.units();
        let address = packet.virtual_address;
        let came = if packet.mask == 0 { self.l1.sector_bit(address) } else { packet.mask };
        self.l1.fill(address, came, out);
    }

    /// Whether the SM's port takes another packet behind all evicted sectors.
    ///
    /// # Errors
    /// The cycle at which it will, or `None` when the SM will be woken.
    #[inline]
    pub(in crate::sm) fn port_room(
        &mut self,
        shared_state: &mut SharedState,
    ) -> Result<(), Option<u64>> {
        self.send_evicted(shared_state)?;
        shared_state.memory_system.port_room(self.sm, shared_state.queue.now())
    }

    /// Sends evicted sectors while the port takes them.
    ///
    /// # Errors
    /// As [`L1Pipeline::port_room`].
    pub(in crate::sm) fn send_evicted(
        &mut self,
        shared_state: &mut SharedState,
    ) -> Result<(), Option<u64>> {
        while self.l1.has_leaving() {
            let now = shared_state.queue.now();
            shared_state.memory_system.port_room(self.sm, now)?;
            let Some(leaving) = self.l1.next_leaving() else { break };
            let address = shared_state.physical(leaving.address);
            let slice = shared_state.memory_system.slice_of(address);
            shared_state.send(Packet {
                address,
                virtual_address: leaving.address,
                ready: now + self.figures.latency,
                operation: 0,
                kernel: self.l1.kernel,
                bytes: leaving.bytes,
                sectors: self.l1.written_sectors(leaving.bytes),
                mask: if self.by_line() { self.l1.sector_bit(address) } else { 0 },
                more_turns: 0,
                sm: self.sm,
                slice,
                kind: RequestKind::WriteBack,
                fills_l1: false,
                origin: Origin::Sm,
                leg: Leg::Near,
            });
        }
        Ok(())
    }
}
