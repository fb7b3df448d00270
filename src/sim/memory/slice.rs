//! One L2 slice: a sectored cache with its outstanding misses. Its sectors have 32 bytes or
//! are whole lines.
//!
//! Requests arrive after the slice's latency and are looked up in that order, one per L2
//! cycle or as many as the machine says.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::config::{AddressMap, AllocatePolicy, Machine, RequestGranularity};
use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_u32};

use super::{fixed_point, granule};
use crate::cache::{Found, Mshr, TagArray, WriteBack, WriteRule, bits, lowest};
use crate::counters::CacheCounts;
use crate::memory::packet::Packet;

/// Fixed-point shift of the slice's time: 1/256 SM cycle.
const SHIFT: u32 = 8;

/// What becomes of the sectors of a request, one bit each. What is in no mask waits for sectors
/// that are pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Their answer leaves at `at`.
    pub(super) answered: u8,
    /// Must be fetched for it, with what the memory moves together with them; the request
    /// leaves at `at`.
    pub(super) fetched: u8,
    /// No MSHR entry, merge place or way is free for them.
    pub(super) refused: u8,
    pub(super) at: Cycle,
}

/// A request that waits for its sectors.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    packet: u32,
    /// Sectors of the line that it waits for, one bit each.
    sectors: u8,
    /// It changes the sectors when the data has arrived.
    writes: bool,
    looked_up: Cycle,
}

/// Sectors that a request waited for and that have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrived {
    pub(super) packet: u32,
    /// One bit each.
    pub(super) sectors: u8,
    /// When their answer leaves.
    pub(super) at: Cycle,
}

/// One slice.
#[derive(Clone, Debug)]
pub(super) struct Slice {
    tags: TagArray,
    rule: WriteRule,
    outstanding: Mshr<Waiter>,
    /// Requests in front of the slice, oldest first.
    pub(super) waiting: VecDeque<Packet>,
    /// An event resumes it when its answers have drained.
    pub(super) resting: bool,
    free_at: u64,
    interval: u64,
    /// Bytes that a miss fetches: those of one access of the memory, at least a sector of the
    /// cache. Each outstanding miss has so many.
    granule: u64,
    /// An entry of outstanding misses has two to this many bytes: a line's, or the granule's
    /// where requests go by sector.
    entry_shift: u32,
    /// Sectors of a granule, the part of an entry; 0 where an entry is one granule.
    sectors_per_part: u32,
    /// Bytes of a sector of the cache.
    sector_bytes: u64,
    sectors: u64,
    allocate: AllocatePolicy,
    /// Requests of all launches.
    pub(super) counts: CacheCounts,
    /// When write-backs of the array leave the slice.
    write_backs_at: Cycle,
    released: Vec<(Waiter, u8)>,
}

impl Slice {
    /// An empty slice of `machine` for the addresses of `map`, in front of a memory that moves
    /// `access_bytes` at a time.
    pub(super) fn new(machine: &Machine, map: &Arc<AddressMap>, access_bytes: u32) -> Self {
        let spec = &machine.l2;
        let mut tags = TagArray::new(&spec.cache, 0);
        tags.index_within_slice(Arc::clone(map));
        let interval = fixed_point(1, machine.clocks.l2_mhz, machine.clocks.core_mhz);
        let lines = u64::from(spec.cache.sets) * u64::from(spec.cache.ways);
        let granule = granule(access_bytes.max(spec.cache.sector_bytes));
        let entry_bytes = match machine.interconnect.request_granularity {
            RequestGranularity::Sector => granule,
            RequestGranularity::Line => u64::from(spec.cache.line_bytes),
        };
        Self {
            tags,
            rule: WriteRule::new(&spec.cache, false),
            outstanding: Mshr::new(spec.cache.mshr_entries, spec.cache.mshr_merge),
            waiting: VecDeque::new(),
            resting: false,
            free_at: 0,
            interval: interval / u64::from(spec.accesses_per_cycle.max(1)),
            granule,
            entry_shift: entry_bytes.trailing_zeros(),
            sectors_per_part: match entry_bytes == granule {
                true => 0,
                false => to_u32(granule) / spec.cache.sector_bytes,
            },
            sector_bytes: u64::from(spec.cache.sector_bytes),
            sectors: lines * u64::from(spec.cache.line_bytes) / SECTOR_BYTES,
            allocate: spec.cache.allocate,
            counts: CacheCounts::default(),
            write_backs_at: 0,
            released: Vec::new(),
        }
    }

    /// Sectors that the slice holds.
    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    /// The sectors of a request, one bit each in its line.
    #[inline]
    pub(super) fn sectors_of(&self, packet: &Packet) -> u8 {
        if packet.mask == 0 { self.tags.sector_bit(packet.address) } else { packet.mask }
    }

    /// Looks the sectors `asked` of a request up, each in its turn.
    pub(super) fn serve(
        &mut self,
        number: u32,
        packet: &Packet,
        asked: u8,
        now: Cycle,
        counts: &mut CacheCounts,
    ) -> Outcome {
        let start = (now << SHIFT).max(self.free_at);
        let at = start >> SHIFT;
        let writes = packet.kind.carries_data();
        let waiter = Waiter { packet: number, sectors: asked, writes, looked_up: at };
        self.write_backs_at = at + 1;
        let mut counted = CacheCounts::default();
        let outcome = if writes {
            self.write(waiter, packet, &mut counted)
        } else {
            self.read(waiter, packet, &mut counted)
        };
        let taken = asked & !outcome.refused;
        if taken != 0 {
            self.free_at = start + self.interval * u64::from(taken.count_ones());
            counts.add(&counted, packet.sectors);
            self.counts.add(&counted, packet.sectors);
        }
        Outcome { at: at + 1, ..outcome }
    }

    /// Answers sectors of a request as hits whatever the array holds, which does not change:
    /// CTAs outside the run keep them in the cache.
    pub(super) fn pass(
        &mut self,
        packet: &Packet,
        asked: u8,
        now: Cycle,
        counts: &mut CacheCounts,
    ) -> Outcome {
        let start = (now << SHIFT).max(self.free_at);
        let number = u64::from(asked.count_ones());
        self.free_at = start + self.interval * number;
        let mut counted = CacheCounts::default();
        let writes = packet.kind.carries_data();
        *(if writes { &mut counted.write_hits } else { &mut counted.read_hits }) += number;
        counts.add(&counted, packet.sectors);
        self.counts.add(&counted, packet.sectors);
        Outcome { answered: asked, at: (start >> SHIFT) + 1, ..Outcome::default() }
    }

    fn read(&mut self, waiter: Waiter, packet: &Packet, counts: &mut CacheCounts) -> Outcome {
        let Found { way, hit, .. } =
            self.tags.lookup(self.tags.line_of(packet.address), waiter.sectors);
        if let Some(way) = way.filter(|_| hit != 0) {
            self.tags.touch(way);
            counts.read_hits += u64::from(hit.count_ones());
        }
        let mut outcome = Outcome { answered: hit, ..Outcome::default() };
        let sectors = waiter.sectors & !hit;
        if sectors != 0 {
            self.wait(Waiter { sectors, ..waiter }, packet, way, &mut outcome, counts);
        }
        outcome
    }

    /// Writes as the policies say, and read-modify-writes, whose sectors must be present.
    fn write(&mut self, waiter: Waiter, packet: &Packet, counts: &mut CacheCounts) -> Outcome {
        let line = self.tags.line_of(packet.address);
        let place = (line, waiter.sectors);
        let stored = if packet.kind.modifies() {
            self.rule.modify(&mut self.tags, place, counts)
        } else {
            self.rule.write(&mut self.tags, place, packet.bytes, counts)
        };
        self.write_down(line, stored.down, packet.bytes);
        let (answered, refused) = (stored.kept | stored.down, stored.refused);
        let mut outcome = Outcome { answered, refused, ..Outcome::default() };
        let sectors = stored.pending | stored.fetch;
        if sectors != 0 {
            self.wait(Waiter { sectors, ..waiter }, packet, stored.way, &mut outcome, counts);
        }
        outcome
    }

    /// Writes `bytes` (one bit for each 1/32) of each of some sectors of a line to memory.
    fn write_down(&mut self, line: u64, sectors: u8, bytes: u32) {
        for sector in bits(sectors) {
            let address = self.tags.address_of(line, to_u32(sector));
            self.tags.write_back(address, bytes);
        }
    }

    /// Lets a request wait for its sectors: those that are not pending are fetched, where an
    /// MSHR entry is free, and a way where the line is absent and the slice allocates on a miss.
    fn wait(
        &mut self,
        waiter: Waiter,
        packet: &Packet,
        mut way: Option<usize>,
        outcome: &mut Outcome,
        counts: &mut CacheCounts,
    ) {
        let key = packet.address >> self.entry_shift;
        let coming = self.outstanding.coming(key);
        let parts = self.parts(waiter.sectors);
        let mut opened = lowest(parts & !(coming.open | coming.full), self.outstanding.room());
        let mut fetched = self.sectors_of_parts(packet.address, opened);
        if opened != 0 && self.allocate == AllocatePolicy::OnMiss {
            way = self.tags.use_or_allocate(way, self.tags.line_of(packet.address));
            match way {
                Some(way) => self.tags.mark_pending(way, fetched),
                None => (opened, fetched) = (0, 0),
            }
        }
        let wanted = parts & coming.open | opened;
        let sectors = waiter.sectors & self.sectors_of_parts(packet.address, wanted);
        outcome.refused |= waiter.sectors & !sectors;
        outcome.fetched = fetched;
        if wanted == 0 {
            return;
        }
        self.outstanding.join(key, coming, wanted, opened, Waiter { sectors, ..waiter });
        let (merges, misses) = match waiter.writes {
            true => (&mut counts.write_merges, &mut counts.write_misses),
            false => (&mut counts.read_merges, &mut counts.read_misses),
        };
        let missed = u64::from(opened.count_ones());
        *misses += missed;
        *merges += u64::from(sectors.count_ones()) - missed;
    }

    /// The parts of an entry that hold `sectors` of a line, one bit each.
    #[inline]
    fn parts(&self, sectors: u8) -> u8 {
        match self.sectors_per_part {
            0 => 1,
            1 => sectors,
            each => bits(sectors).fold(0, |parts, sector| parts | 1 << (to_u32(sector) / each)),
        }
    }

    /// The sectors of the line at `address` that parts of its entry hold, one bit each.
    #[inline]
    fn sectors_of_parts(&self, address: u64, parts: u8) -> u8 {
        match self.sectors_per_part {
            0 if parts == 0 => 0,
            0 => self.sectors_of_access(address),
            1 => parts,
            each => {
                let part = (1_u8 << each) - 1;
                bits(parts).fold(0, |all, one| all | part << (to_u32(one) * each))
            }
        }
    }

    /// True when a sector is to be written to memory.
    #[inline]
    pub(super) fn has_write_backs(&self) -> bool {
        self.tags.has_write_backs()
    }

    /// The next sector to be written to memory, and when it leaves.
    pub(super) fn next_write_back(&mut self) -> Option<(WriteBack, Cycle)> {
        Some((self.tags.next_write_back()?, self.write_backs_at))
    }

    /// The sectors of its line that the memory moves together with the one at `address`, one
    /// bit each.
    #[inline]
    pub(super) fn sectors_of_access(&self, address: u64) -> u8 {
        if self.granule == self.sector_bytes {
            return self.tags.sector_bit(address);
        }
        let first = self.tags.sector_of(address / self.granule * self.granule);
        ((1 << (self.granule / self.sector_bytes)) - 1) << first
    }

    /// Sectors of the line at `address` have arrived, one bit each: what requests waited for is
    /// appended to `answers`.
    pub(super) fn fill(
        &mut self,
        address: u64,
        sectors: u8,
        now: Cycle,
        answers: &mut Vec<Arrived>,
    ) {
        let line = self.tags.line_of(address);
        self.write_backs_at = now + 1;
        if self.allocate == AllocatePolicy::OnFill && self.tags.lookup(line, sectors).way.is_none()
        {
            self.tags.allocate(line);
        }
        let way = self.tags.fill(line, sectors);
        let parts = self.parts(sectors);
        let mut released = std::mem::take(&mut self.released);
        self.outstanding.arrive(address >> self.entry_shift, parts, &mut released);
        let mut written = 0;
        for (waiter, parts) in released.drain(..) {
            let sectors = waiter.sectors & self.sectors_of_parts(address, parts);
            let changed = if waiter.writes { sectors & !written } else { 0 };
            written |= changed;
            if changed != 0 && self.rule.complete(&mut self.tags, way, changed) {
                self.write_down(line, changed, u32::MAX);
            }
            let at = now.max(waiter.looked_up) + 1;
            answers.push(Arrived { packet: waiter.packet, sectors, at });
        }
        self.released = released;
    }

    /// Writes back all dirty sectors and invalidates all lines but those with outstanding
    /// misses.
    pub(super) fn flush(&mut self, now: Cycle) {
        self.write_backs_at = now + 1;
        self.tags.flush(|_| false);
        self.tags.invalidate_settled();
    }

    /// Puts a sector in without traffic; evicted dirty sectors are dropped.
    pub(super) fn copy_in(&mut self, address: u64) {
        let (line, sector) = (self.tags.line_of(address), self.tags.sector_bit(address));
        let way = self.tags.lookup(line, sector).way;
        let way = self.tags.use_or_allocate(way, line);
        while self.tags.next_write_back().is_some() {}
        if let Some(way) = way {
            self.tags.validate(way, sector);
        }
    }
}

/// Sectors of one page of the set: a bit each.
const PAGE_SECTORS: u64 = 128;

/// Sectors whose miss belongs to CTAs outside the run: of the same grid or of earlier
/// launches. A request for one of them is a hit whatever the slice holds, and occupies no
/// room in it: a run of part of a kernel on part of a machine has its share of the room.
#[derive(Clone, Debug, Default)]
pub struct PresumedL2Hits {
    pages: FxHashMap<u64, u128>,
}

impl PresumedL2Hits {
    /// Adds the sector with the number `sector` (byte address over 32).
    pub fn add(&mut self, sector: u64) {
        *self.pages.entry(sector / PAGE_SECTORS).or_default() |= 1 << (sector % PAGE_SECTORS);
    }

    /// Whether the set has a sector of the `bytes` from a byte address on, which must lie in
    /// one aligned line of 128.
    #[must_use]
    #[inline]
    pub fn holds(&self, address: u64, bytes: u64) -> bool {
        let sector = address / SECTOR_BYTES;
        let page = self.pages.get(&(sector / PAGE_SECTORS));
        let mask = (1 << bytes.div_ceil(SECTOR_BYTES)) - 1;
        page.is_some_and(|bits| bits >> (sector % PAGE_SECTORS) & mask != 0)
    }

    /// True when the set has no sector.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::{Arrived, Outcome, PresumedL2Hits, Slice};
    use crate::CacheCounts;
    use crate::cache::naive::{Did, Naive, caches, written_bytes};
    use crate::config::{
        AddressMap, AllocatePolicy, Cache, Machine, Mapping, Models, RequestGranularity,
        WritePolicy,
    };
    use crate::memory::packet::{Origin, Packet, RequestKind};

    /// The outcome of a request without its time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Plainly {
        Answer,
        Merged,
        Fetch,
        Refused,
    }

    /// What became of one sector of those that a request asked for.
    fn plainly(outcome: Outcome, asked: u8, sector: u8) -> Plainly {
        let Outcome { answered, fetched, refused, .. } = outcome;
        assert_eq!(answered & (fetched | refused) | fetched & refused, 0, "one outcome each");
        assert_eq!((answered | fetched | refused) & !asked, 0, "none that was not asked for");
        match sector {
            _ if answered & sector != 0 => Plainly::Answer,
            _ if fetched & sector != 0 => Plainly::Fetch,
            _ if refused & sector != 0 => Plainly::Refused,
            _ => Plainly::Merged,
        }
    }

    /// A simple slice: lines, and a list of misses with the requests that wait and whether they
    /// write.
    struct Plain {
        cache: Naive,
        spec: Cache,
        waiting: Vec<(u64, Vec<(u32, bool)>)>,
    }

    impl Plain {
        fn serve(&mut self, number: u32, packet: &Packet) -> Plainly {
            let here = self.cache.sector(packet.address).here;
            match packet.kind {
                RequestKind::Read | RequestKind::Code | RequestKind::Constant if here => {
                    self.cache.counts.read_hits += 1;
                    self.cache.use_line(packet.address);
                    Plainly::Answer
                }
                RequestKind::Read | RequestKind::Code | RequestKind::Constant => {
                    self.wait(packet.address, (number, false))
                }
                RequestKind::Atomic | RequestKind::Reduction if here => {
                    self.cache.counts.write_hits += 1;
                    self.cache.use_line(packet.address);
                    self.change(packet.address, packet.bytes);
                    Plainly::Answer
                }
                RequestKind::Atomic | RequestKind::Reduction => {
                    self.wait(packet.address, (number, true))
                }
                RequestKind::Write | RequestKind::WriteBack => {
                    match self.cache.write(packet.address, packet.bytes, false) {
                        Did::Kept => Plainly::Answer,
                        Did::Down => {
                            self.cache.written_back.push((packet.address, packet.bytes));
                            Plainly::Answer
                        }
                        Did::NoWay => Plainly::Refused,
                        Did::Pending | Did::Fetch => self.wait(packet.address, (number, true)),
                    }
                }
            }
        }

        /// Changes a present sector, and memory where the policy writes it.
        fn change(&mut self, address: u64, bytes: u32) {
            let policy = self.spec.write;
            let (kept, evicts) =
                (policy == WritePolicy::WriteBack, policy == WritePolicy::WriteEvict);
            let present = self.cache.has_line(address);
            if present {
                self.cache.change(address, |s| (s.dirty, s.here) = (s.dirty || kept, !evicts));
            }
            if !kept || !present {
                self.cache.written_back.push((address, bytes));
            }
        }

        fn wait(&mut self, address: u64, waiter: (u32, bool)) -> Plainly {
            let limit = self.spec.mshr_merge as usize;
            if let Some((_, waiters)) = self.waiting.iter_mut().find(|(a, _)| *a == address) {
                if waiters.len() == limit {
                    return Plainly::Refused;
                }
                waiters.push(waiter);
                let counts = &mut self.cache.counts;
                *(if waiter.1 { &mut counts.write_merges } else { &mut counts.read_merges }) += 1;
                return Plainly::Merged;
            }
            if self.waiting.len() == self.spec.mshr_entries as usize {
                return Plainly::Refused;
            }
            if self.spec.allocate == AllocatePolicy::OnMiss {
                if !self.cache.allocate(address) {
                    return Plainly::Refused;
                }
                self.cache.change(address, |s| s.coming = true);
            }
            self.waiting.push((address, vec![waiter]));
            let counts = &mut self.cache.counts;
            *(if waiter.1 { &mut counts.write_misses } else { &mut counts.read_misses }) += 1;
            Plainly::Fetch
        }

        fn fill(&mut self, address: u64) -> Vec<u32> {
            if self.spec.allocate == AllocatePolicy::OnFill && !self.cache.has_line(address) {
                self.cache.allocate(address);
            }
            if self.cache.has_line(address) {
                self.cache.change(address, |s| (s.here, s.coming) = (true, false));
            }
            let place = self.waiting.iter().position(|(a, _)| *a == address).unwrap();
            let (_, waiters) = self.waiting.remove(place);
            if waiters.iter().any(|&(_, writes)| writes) {
                self.change(address, u32::MAX);
            }
            waiters.into_iter().map(|(number, _)| number).collect()
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// For sectors of a line, one bit each.
        Request(RequestKind, u64, u8, u32),
        /// The data of some outstanding misses of a line arrives.
        Fill(usize, u8),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let kind = prop::sample::select(vec![
            RequestKind::Read,
            RequestKind::Read,
            RequestKind::Write,
            RequestKind::WriteBack,
            RequestKind::Atomic,
            RequestKind::Reduction,
        ]);
        let request =
            (kind, 0..40_u64, 1_u8.., written_bytes()).prop_map(|(kind, line, sectors, bytes)| {
                Step::Request(kind, line * 256, sectors, bytes)
            });
        let fill = any::<(usize, u8)>().prop_map(|(which, sectors)| Step::Fill(which, sectors));
        prop::collection::vec(prop_oneof![3 => request, 1 => fill], 1..300)
    }

    fn machine(cache: Cache, by_line: bool) -> Machine {
        let mut machine = Models::builtin().machine("accelsim-qv100", &[]).unwrap().machine;
        if by_line {
            machine.interconnect.request_granularity = RequestGranularity::Line;
        }
        machine.l2.cache = cache;
        machine
    }

    /// Addresses that all lie in one slice.
    fn whole() -> Arc<AddressMap> {
        Arc::new(
            Mapping::load("volta", &gpumodel_models::builtin()).unwrap().for_machine(1, 1).unwrap(),
        )
    }

    fn packet(kind: RequestKind, address: u64, bytes: u32) -> Packet {
        Packet {
            address,
            virtual_address: address,
            ready: 0,
            operation: 0,
            kernel: 0,
            bytes,
            sectors: 1,
            mask: 0,
            sm: 0,
            slice: 0,
            kind,
            fills_l1: false,
            origin: Origin::Sm,
        }
    }

    /// A slice and a simple one, which takes the sectors of a request one after the other.
    struct Pair {
        slice: Slice,
        plain: Plain,
        by_line: bool,
        counts: CacheCounts,
    }

    impl Pair {
        /// The addresses of sectors of a line.
        fn addresses(&self, line: u64, sectors: u8) -> Vec<u64> {
            let bytes = u64::from(self.plain.spec.sector_bytes);
            let number = u64::from(self.plain.spec.line_bytes) / bytes;
            let line = line / (number * bytes) * number * bytes;
            let asked = (0..number).filter(|one| sectors >> one & 1 == 1);
            asked.map(|one| line + one * bytes).collect()
        }

        /// Masks of the sectors at addresses of one line, as the slice is asked for them.
        fn requests(&self, addresses: &[u64]) -> Vec<(u64, u8)> {
            let bit = |address: &u64| (*address, self.slice.tags.sector_bit(*address));
            let each: Vec<(u64, u8)> = addresses.iter().map(bit).collect();
            match (self.by_line, each.first()) {
                (true, Some(&(first, _))) => {
                    vec![(first, each.iter().fold(0, |all, (_, sector)| all | sector))]
                }
                _ => each,
            }
        }

        fn request(&mut self, number: u32, kind: RequestKind, addresses: &[u64], bytes: u32) {
            for (first, asked) in self.requests(addresses) {
                let packet = packet(kind, first, bytes);
                let now = u64::from(number);
                let outcome = self.slice.serve(number, &packet, asked, now, &mut self.counts);
                for &address in addresses {
                    let sector = self.slice.tags.sector_bit(address);
                    if asked & sector != 0 {
                        let packet = Packet { address, ..packet };
                        let plain = self.plain.serve(number, &packet);
                        assert_eq!(plainly(outcome, asked, sector), plain, "{packet:?}");
                    }
                }
            }
        }

        /// Data arrives: the written back sectors of both are then compared in any order.
        fn fill(&mut self, number: u32, addresses: &[u64]) {
            let mut answered = Vec::new();
            for (first, sectors) in self.requests(addresses) {
                let mut answers = Vec::new();
                self.slice.fill(first, sectors, u64::from(number), &mut answers);
                answered.extend(answers.into_iter().flat_map(
                    |Arrived { packet, sectors, .. }| vec![packet; sectors.count_ones() as usize],
                ));
            }
            let mut plain: Vec<u32> = addresses.iter().flat_map(|a| self.plain.fill(*a)).collect();
            if self.by_line {
                answered.sort_unstable();
                plain.sort_unstable();
            }
            assert_eq!(answered, plain);
        }

        fn compare(&mut self, sorted: bool) {
            assert_eq!(self.counts, self.plain.cache.counts);
            let written = std::iter::from_fn(|| self.slice.next_write_back());
            let mut written: Vec<(u64, u32)> = written.map(|(l, _)| (l.address, l.bytes)).collect();
            let mut plain = std::mem::take(&mut self.plain.cache.written_back);
            if sorted {
                written.sort_unstable();
                plain.sort_unstable();
            }
            assert_eq!(written, plain);
        }
    }

    fn check(cache: Cache, by_line: bool, steps: &[Step]) {
        let plain = Plain { cache: Naive::new(&cache, 0), spec: cache.clone(), waiting: vec![] };
        let by_line = by_line && cache.sector_bytes == 32 && cache.line_bytes <= 128;
        let slice = Slice::new(&machine(cache, by_line), &whole(), 32);
        let mut pair = Pair { slice, plain, by_line, counts: CacheCounts::default() };
        for (number, step) in (0_u32..).zip(steps) {
            let waiting = &pair.plain.waiting;
            match *step {
                Step::Request(kind, line, sectors, bytes) => {
                    pair.request(number, kind, &pair.addresses(line, sectors), bytes);
                }
                Step::Fill(which, sectors) if !waiting.is_empty() => {
                    let (address, _) = waiting[which % waiting.len()];
                    let wanted = sectors | pair.slice.tags.sector_bit(address);
                    let waits = |one: &u64| waiting.iter().any(|(a, _)| a == one);
                    let came = pair.addresses(address, wanted).into_iter().filter(waits);
                    pair.fill(number, &came.collect::<Vec<_>>());
                }
                Step::Fill(..) => {}
            }
            pair.compare(pair.by_line);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn the_slice_does_what_a_plain_one_does(
            cache in caches(),
            by_line in any::<bool>(),
            steps in steps(),
        ) {
            check(cache, by_line, &steps);
        }
    }

    #[test]
    fn it_holds_what_was_added_and_no_neighbour() {
        let mut set = PresumedL2Hits::default();
        assert!(set.is_empty() && !set.holds(0, 32));
        set.add(127);
        set.add(128);
        assert!(set.holds(127 * 32, 32) && set.holds(127 * 32 + 31, 1) && set.holds(128 * 32, 32));
        assert!(!set.holds(126 * 32 + 31, 1) && !set.holds(129 * 32, 32));
        assert!(set.holds(124 * 32, 128) && !set.holds(120 * 32, 128));
    }
}
