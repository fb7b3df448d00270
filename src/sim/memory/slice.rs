//! One L2 slice: a sectored cache with its outstanding misses. Its sectors have 32 bytes or
//! are whole lines.
//!
//! Requests arrive after the slice's latency and are looked up in that order, one per L2
//! cycle or as many as the machine says.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::config::{AddressMap, AllocatePolicy, Machine};
use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_usize};

use super::{fixed_point, granule};
use crate::cache::{Found, Merge, Mshr, Stored, TagArray, WriteBack, WriteRule};
use crate::counters::CacheCounts;
use crate::memory::packet::Packet;

/// Fixed-point shift of the slice's time: 1/256 SM cycle.
const SHIFT: u32 = 8;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Its answer leaves at this cycle.
    Answer(Cycle),
    /// It waits for a pending sector.
    Merged,
    /// Its sector must be fetched; the request leaves at this cycle.
    Fetch(Cycle),
    /// No MSHR entry, merge place or way is free.
    Refused,
}

/// A request that waits for its sector.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    packet: u32,
    /// Byte address of the sector.
    address: u64,
    /// It changes the sector when the data has arrived.
    writes: bool,
    looked_up: Cycle,
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
    /// Bytes of a sector of the cache.
    sector_bytes: u64,
    sectors: u64,
    allocate: AllocatePolicy,
    /// Requests of all launches.
    pub(super) counts: CacheCounts,
    /// When write-backs of the array leave the slice.
    write_backs_at: Cycle,
    released: Vec<Waiter>,
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
        Self {
            tags,
            rule: WriteRule::new(&spec.cache, false),
            outstanding: Mshr::new(spec.cache.mshr_entries, spec.cache.mshr_merge),
            waiting: VecDeque::new(),
            resting: false,
            free_at: 0,
            interval: interval / u64::from(spec.accesses_per_cycle.max(1)),
            granule: granule(access_bytes.max(spec.cache.sector_bytes)),
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

    /// Looks a request up.
    pub(super) fn serve(
        &mut self,
        number: u32,
        packet: &Packet,
        now: Cycle,
        counts: &mut CacheCounts,
    ) -> Outcome {
        let start = (now << SHIFT).max(self.free_at);
        let at = start >> SHIFT;
        let writes = packet.kind.carries_data();
        let waiter = Waiter { packet: number, address: packet.address, writes, looked_up: at };
        self.write_backs_at = at + 1;
        let mut counted = CacheCounts::default();
        let outcome = if writes {
            self.write(waiter, packet, &mut counted)
        } else {
            self.read(waiter, packet, &mut counted)
        };
        if outcome != Outcome::Refused {
            self.free_at = start + self.interval;
            counts.add(&counted, packet.sectors);
            self.counts.add(&counted, packet.sectors);
        }
        outcome
    }

    /// Answers a request as a hit whatever the array holds, which does not change: CTAs
    /// outside the run keep the sector in the cache.
    pub(super) fn pass(
        &mut self,
        packet: &Packet,
        now: Cycle,
        counts: &mut CacheCounts,
    ) -> Outcome {
        let start = (now << SHIFT).max(self.free_at);
        self.free_at = start + self.interval;
        let mut counted = CacheCounts::default();
        let writes = packet.kind.carries_data();
        *(if writes { &mut counted.write_hits } else { &mut counted.read_hits }) += 1;
        counts.add(&counted, packet.sectors);
        self.counts.add(&counted, packet.sectors);
        Outcome::Answer((start >> SHIFT) + 1)
    }

    fn read(&mut self, waiter: Waiter, packet: &Packet, counts: &mut CacheCounts) -> Outcome {
        let (line, sector) = self.place(packet.address);
        let (found, way) = self.tags.lookup(line, sector);
        if let (Found::Hit, Some(way)) = (found, way) {
            self.tags.touch(way);
            counts.read_hits += 1;
            return Outcome::Answer(waiter.looked_up + 1);
        }
        self.wait_for_sector(waiter, packet, way, counts)
    }

    /// Opens a miss: an MSHR entry, and a way where the line is absent and the slice allocates
    /// on a miss.
    fn fetch(&mut self, waiter: Waiter, packet: &Packet, way: Option<usize>) -> Outcome {
        if self.outstanding.is_full() {
            return Outcome::Refused;
        }
        if self.allocate == AllocatePolicy::OnMiss {
            let line = self.tags.line_of(packet.address);
            let Some(way) = self.tags.use_or_allocate(way, line) else {
                return Outcome::Refused;
            };
            for address in self.sectors_of_access(packet.address) {
                self.tags.mark_pending(way, self.tags.sector_of(address));
            }
        }
        self.outstanding.open(packet.address / self.granule, waiter);
        Outcome::Fetch(waiter.looked_up + 1)
    }

    /// Writes as the policies say, and read-modify-writes, whose sector must be present.
    fn write(&mut self, waiter: Waiter, packet: &Packet, counts: &mut CacheCounts) -> Outcome {
        let place = self.place(packet.address);
        let stored = if packet.kind.modifies() {
            self.rule.modify(&mut self.tags, place, counts)
        } else {
            self.rule.write(&mut self.tags, place, packet.bytes, counts)
        };
        match stored {
            Stored::Kept => Outcome::Answer(waiter.looked_up + 1),
            Stored::Down => {
                self.tags.write_back(packet.address, packet.bytes);
                Outcome::Answer(waiter.looked_up + 1)
            }
            Stored::Pending(way) => self.wait_for_sector(waiter, packet, Some(way), counts),
            Stored::Fetch(way) => self.wait_for_sector(waiter, packet, way, counts),
            Stored::Refused => Outcome::Refused,
        }
    }

    /// Lets a request wait for its sector, which is fetched unless it is pending.
    fn wait_for_sector(
        &mut self,
        waiter: Waiter,
        packet: &Packet,
        way: Option<usize>,
        counts: &mut CacheCounts,
    ) -> Outcome {
        let outcome = match self.outstanding.merge(packet.address / self.granule, waiter) {
            Merge::Full => Outcome::Refused,
            Merge::Merged => Outcome::Merged,
            Merge::Absent => self.fetch(waiter, packet, way),
        };
        let (merges, misses) = match waiter.writes {
            true => (&mut counts.write_merges, &mut counts.write_misses),
            false => (&mut counts.read_merges, &mut counts.read_misses),
        };
        *merges += u64::from(outcome == Outcome::Merged);
        *misses += u64::from(matches!(outcome, Outcome::Fetch(_)));
        outcome
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

    /// The sectors that the memory moves together with the one at `address`.
    #[inline]
    fn sectors_of_access(&self, address: u64) -> impl Iterator<Item = u64> + use<> {
        let first = address / self.granule * self.granule;
        (first..first + self.granule).step_by(to_usize(self.sector_bytes))
    }

    /// The sectors of an access have arrived: packets that waited for them are appended to
    /// `answers` with the cycle at which their answers leave.
    pub(super) fn fill(&mut self, address: u64, now: Cycle, answers: &mut Vec<(u32, Cycle)>) {
        let (line, sector) = self.place(address);
        self.write_backs_at = now + 1;
        if self.allocate == AllocatePolicy::OnFill && self.tags.lookup(line, sector).1.is_none() {
            self.tags.allocate(line);
        }
        let mut way = None;
        for address in self.sectors_of_access(address) {
            way = self.tags.fill(line, self.tags.sector_of(address));
        }
        self.outstanding.close(address / self.granule, &mut self.released);
        let mut written = 0_u64;
        for waiter in self.released.drain(..) {
            let sector = self.tags.sector_of(waiter.address);
            if waiter.writes && written >> sector & 1 == 0 {
                written |= 1 << sector;
                if self.rule.complete(&mut self.tags, way, sector) {
                    self.tags.write_back(waiter.address, u32::MAX);
                }
            }
            answers.push((waiter.packet, now.max(waiter.looked_up) + 1));
        }
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
        let (line, sector) = self.place(address);
        let way = self.tags.lookup(line, sector).1;
        let way = self.tags.use_or_allocate(way, line);
        while self.tags.next_write_back().is_some() {}
        if let Some(way) = way {
            self.tags.validate(way, sector);
        }
    }

    fn place(&self, address: u64) -> (u64, u32) {
        (self.tags.line_of(address), self.tags.sector_of(address))
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

    use super::{Outcome, PresumedL2Hits, Slice};
    use crate::CacheCounts;
    use crate::cache::naive::{Did, Naive, caches, sector_start, written_bytes};
    use crate::config::{AddressMap, AllocatePolicy, Cache, Machine, Mapping, Models, WritePolicy};
    use crate::memory::packet::{Origin, Packet, RequestKind};

    /// The outcome of a request without its time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Plainly {
        Answer,
        Merged,
        Fetch,
        Refused,
    }

    impl From<Outcome> for Plainly {
        fn from(outcome: Outcome) -> Self {
            match outcome {
                Outcome::Answer(_) => Self::Answer,
                Outcome::Merged => Self::Merged,
                Outcome::Fetch(_) => Self::Fetch,
                Outcome::Refused => Self::Refused,
            }
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
        Request(RequestKind, u64, u32),
        /// The data of one of the outstanding misses arrives.
        Fill(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let address = (0..40_u64, 0..8_u64).prop_map(|(line, sector)| line * 256 + sector * 32);
        let kind = prop::sample::select(vec![
            RequestKind::Read,
            RequestKind::Read,
            RequestKind::Write,
            RequestKind::WriteBack,
            RequestKind::Atomic,
            RequestKind::Reduction,
        ]);
        let request = (kind, address, written_bytes());
        let request =
            request.prop_map(|(kind, address, bytes)| Step::Request(kind, address, bytes));
        let step = prop_oneof![3 => request, 1 => any::<usize>().prop_map(Step::Fill)];
        prop::collection::vec(step, 1..300)
    }

    fn machine(cache: Cache) -> Machine {
        let mut machine = Models::builtin().machine("accelsim-qv100", &[]).unwrap().machine;
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
            sm: 0,
            slice: 0,
            kind,
            fills_l1: false,
            origin: Origin::Sm,
        }
    }

    fn check(cache: Cache, steps: &[Step]) {
        let mut plain =
            Plain { cache: Naive::new(&cache, 0), spec: cache.clone(), waiting: vec![] };
        let mut slice = Slice::new(&machine(cache.clone()), &whole(), 32);
        let mut counts = CacheCounts::default();
        for (number, step) in (0_u32..).zip(steps) {
            match *step {
                Step::Request(kind, address, bytes) => {
                    let packet = packet(kind, sector_start(&cache, address), bytes);
                    let outcome = slice.serve(number, &packet, u64::from(number), &mut counts);
                    assert_eq!(Plainly::from(outcome), plain.serve(number, &packet), "{packet:?}");
                }
                Step::Fill(which) if !plain.waiting.is_empty() => {
                    let (address, _) = plain.waiting[which % plain.waiting.len()];
                    let mut answers = Vec::new();
                    slice.fill(address, u64::from(number), &mut answers);
                    let answered: Vec<u32> =
                        answers.into_iter().map(|(number, _)| number).collect();
                    assert_eq!(answered, plain.fill(address));
                }
                Step::Fill(_) => {}
            }
            assert_eq!(counts, plain.cache.counts);
            let written = std::iter::from_fn(|| slice.next_write_back());
            let written: Vec<(u64, u32)> = written.map(|(l, _)| (l.address, l.bytes)).collect();
            assert_eq!(written, std::mem::take(&mut plain.cache.written_back));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn the_slice_does_what_a_plain_one_does(cache in caches(), steps in steps()) {
            check(cache, &steps);
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
