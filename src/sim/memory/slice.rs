//! One L2 slice: a sectored cache with its outstanding misses. Its sectors are of 32
//! bytes or whole lines.
//!
//! Requests come when the slice's latency is over and are looked up in that
//! order, one (or as many as the machine says) per L2 cycle.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::config::{AddressMap, AllocatePolicy, Machine};
use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_usize};

use super::{fixed_point, granule_of};
use crate::cache::{Found, Leaving, Merge, Mshr, Stored, TagArray, WriteRule};
use crate::counters::CacheCounts;
use crate::memory::packet::{Packet, RequestKind};

const SHIFT: u32 = 8;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Its answer leaves at this cycle.
    Answer(Cycle),
    /// It waits for a sector on its way.
    Merged,
    /// Its sector must be fetched; the request leaves at this cycle.
    Fetch(Cycle),
    /// No entry, no merge place or no way is free.
    Refused,
}

/// A request that waits for its sector.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    packet: u32,
    /// Byte address of the sector.
    address: u64,
    /// It changes the sector when that has come.
    writes: bool,
    looked_up: Cycle,
}

/// One slice.
#[derive(Clone, Debug)]
pub(super) struct Slice {
    tags: TagArray,
    rule: WriteRule,
    outstanding: Mshr<Waiter>,
    /// Requests in front, oldest first.
    pub(super) waiting: VecDeque<Packet>,
    /// An event lets it go on when its answers have drained.
    pub(super) resting: bool,
    free_at: u64,
    interval: u64,
    /// Bytes that a miss fetches: what one access of the memory moves, at least a
    /// sector of the cache; outstanding misses are counted by them.
    granule: u64,
    /// Bytes of a sector of the cache.
    sector_bytes: u64,
    sectors: u64,
    allocate: AllocatePolicy,
    /// Requests of all launches.
    pub(super) counts: CacheCounts,
    /// When what leaves the array leaves the slice.
    leaves_at: Cycle,
    released: Vec<Waiter>,
}

impl Slice {
    /// An empty slice of `machine`, whose addresses lie as in `map`, before a memory
    /// that moves `access_bytes` at a time.
    pub(super) fn new(machine: &Machine, map: &Arc<AddressMap>, access_bytes: u32) -> Self {
        let spec = &machine.l2;
        let mut tags = TagArray::new(&spec.cache, 0);
        tags.lie_within_slice(Arc::clone(map));
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
            granule: granule_of(machine, access_bytes),
            sector_bytes: u64::from(spec.cache.sector_bytes),
            sectors: lines * u64::from(spec.cache.line_bytes) / SECTOR_BYTES,
            allocate: spec.cache.allocate,
            counts: CacheCounts::default(),
            leaves_at: 0,
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
        let writes =
            !matches!(packet.ask, RequestKind::Read | RequestKind::Code | RequestKind::Constant);
        let waiter = Waiter { packet: number, address: packet.address, writes, looked_up: at };
        self.leaves_at = at + 1;
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

    /// Answers a request as a hit whatever the array holds, which does not change:
    /// somebody outside the run has the sector there.
    pub(super) fn pass(
        &mut self,
        packet: &Packet,
        now: Cycle,
        counts: &mut CacheCounts,
    ) -> Outcome {
        let start = (now << SHIFT).max(self.free_at);
        self.free_at = start + self.interval;
        let mut counted = CacheCounts::default();
        match packet.ask {
            RequestKind::Read | RequestKind::Code | RequestKind::Constant => counted.read_hits += 1,
            _ => counted.write_hits += 1,
        }
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
        match self.outstanding.merge(packet.address / self.granule, waiter) {
            Merge::Full => Outcome::Refused,
            Merge::Merged => {
                counts.read_merges += 1;
                Outcome::Merged
            }
            Merge::Absent => {
                let outcome = self.fetch(waiter, packet, way);
                counts.read_misses += u64::from(outcome != Outcome::Refused);
                outcome
            }
        }
    }

    /// Opens a miss: an entry, and a way where the line is not there and the
    /// slice reserves one.
    fn fetch(&mut self, waiter: Waiter, packet: &Packet, way: Option<usize>) -> Outcome {
        if self.outstanding.is_full() {
            return Outcome::Refused;
        }
        if self.allocate == AllocatePolicy::OnMiss {
            let line = self.tags.line_of(packet.address);
            let Some(way) = self.tags.use_or_allocate(way, line) else {
                return Outcome::Refused;
            };
            for address in self.together(packet.address) {
                self.tags.expect(way, self.tags.sector_of(address));
            }
        }
        self.outstanding.open(packet.address / self.granule, waiter);
        Outcome::Fetch(waiter.looked_up + 1)
    }

    /// Writes, as the policies say, and read-modify-writes, whose sector must be
    /// there.
    fn write(&mut self, waiter: Waiter, packet: &Packet, counts: &mut CacheCounts) -> Outcome {
        let place = self.place(packet.address);
        let stored = if packet.ask.modifies() {
            self.rule.modify(&mut self.tags, place, counts)
        } else {
            self.rule.write(&mut self.tags, place, packet.bytes, counts)
        };
        match stored {
            Stored::Kept => Outcome::Answer(waiter.looked_up + 1),
            Stored::Down => {
                self.tags.send_down(packet.address, packet.bytes);
                Outcome::Answer(waiter.looked_up + 1)
            }
            Stored::Pending(way) => self.join(waiter, packet, Some(way), counts),
            Stored::Fetch(way) => self.join(waiter, packet, way, counts),
            Stored::Refused => Outcome::Refused,
        }
    }

    /// Lets a write wait for its sector, which is fetched unless it is on its way.
    fn join(
        &mut self,
        waiter: Waiter,
        packet: &Packet,
        way: Option<usize>,
        counts: &mut CacheCounts,
    ) -> Outcome {
        match self.outstanding.merge(packet.address / self.granule, waiter) {
            Merge::Full => Outcome::Refused,
            Merge::Merged => {
                counts.write_merges += 1;
                Outcome::Merged
            }
            Merge::Absent => {
                let outcome = self.fetch(waiter, packet, way);
                counts.write_misses += u64::from(outcome != Outcome::Refused);
                outcome
            }
        }
    }

    /// True when a sector is to be written to memory.
    #[inline]
    pub(super) fn has_leaving(&self) -> bool {
        self.tags.has_leaving()
    }

    /// The next sector to be written to memory, and when it leaves.
    pub(super) fn next_leaving(&mut self) -> Option<(Leaving, Cycle)> {
        let leaving = self.tags.next_leaving()?;
        Some((leaving, self.leaves_at))
    }

    /// The sectors that the memory moves together with the one at `address`.
    #[inline]
    fn together(&self, address: u64) -> impl Iterator<Item = u64> + use<> {
        let first = address / self.granule * self.granule;
        (first..first + self.granule).step_by(to_usize(self.sector_bytes))
    }

    /// An access's sectors have come: packets that waited for them are appended to
    /// `answers` with the cycle at which their answers leave.
    pub(super) fn fill(&mut self, address: u64, now: Cycle, answers: &mut Vec<(u32, Cycle)>) {
        let (line, sector) = self.place(address);
        self.leaves_at = now + 1;
        if self.allocate == AllocatePolicy::OnFill && self.tags.lookup(line, sector).1.is_none() {
            self.tags.allocate(line);
        }
        let mut way = None;
        for address in self.together(address) {
            way = self.tags.fill(line, self.tags.sector_of(address));
        }
        self.outstanding.close(address / self.granule, &mut self.released);
        let mut written = 0_u64;
        for waiter in self.released.drain(..) {
            let sector = self.tags.sector_of(waiter.address);
            if waiter.writes && written >> sector & 1 == 0 {
                written |= 1 << sector;
                if self.rule.complete(&mut self.tags, way, sector) {
                    self.tags.send_down(waiter.address, u32::MAX);
                }
            }
            answers.push((waiter.packet, now.max(waiter.looked_up) + 1));
        }
    }

    /// Sends what is dirty down and forgets all lines but those on their way.
    pub(super) fn flush(&mut self, now: Cycle) {
        self.leaves_at = now + 1;
        self.tags.flush(|_| false);
        self.tags.forget_settled();
    }

    /// Puts a sector in without traffic; what it evicts is dropped clean.
    pub(super) fn copy_in(&mut self, address: u64) {
        let (line, sector) = self.place(address);
        let way = self.tags.lookup(line, sector).1;
        let way = self.tags.use_or_allocate(way, line);
        while self.tags.next_leaving().is_some() {}
        if let Some(way) = way {
            self.tags.validate(way, sector);
        }
    }

    fn place(&self, address: u64) -> (u64, u32) {
        (self.tags.line_of(address), self.tags.sector_of(address))
    }
}
