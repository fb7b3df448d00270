//! One L2 slice: a sectored write-back cache with its outstanding misses.
//!
//! Requests are looked up in order of arrival; the time at which the look-up
//! counts is the arrival plus the slice's latency, one (or as many as the
//! machine says) per L2 cycle.

use std::collections::VecDeque;

use crate::spec::Machine;
use crate::units::{Cycle, SECTOR_BYTES};

use super::super::cache::{Evicted, Found, Merge, Mshr, TagArray};
use super::super::counters::CacheCounts;
use super::super::packet::{Ask, Packet};
use super::fixed_point;

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

/// One slice.
#[derive(Debug)]
pub(super) struct Slice {
    tags: TagArray,
    /// Waiting packets, with the cycle of their look-up.
    outstanding: Mshr<(u32, Cycle)>,
    /// Requests in front, oldest first.
    pub(super) waiting: VecDeque<u32>,
    /// An event lets it go on when its answers have drained.
    pub(super) resting: bool,
    free_at: u64,
    interval: u64,
    latency: Cycle,
    line_bytes: u64,
    sectors: u64,
    lazy_fetch: bool,
    evicted: Option<(Evicted, Cycle)>,
    released: Vec<(u32, Cycle)>,
}

impl Slice {
    /// An empty slice of `machine`.
    pub(super) fn new(machine: &Machine) -> Self {
        let spec = &machine.l2;
        let interval = fixed_point(1, machine.clocks.l2_mhz, machine.clocks.core_mhz);
        let lines = u64::from(spec.cache.sets) * u64::from(spec.cache.ways);
        Self {
            tags: TagArray::new(&spec.cache, 0),
            outstanding: Mshr::new(spec.cache.mshr_entries, spec.cache.mshr_merge),
            waiting: VecDeque::new(),
            resting: false,
            free_at: 0,
            interval: interval / u64::from(spec.accesses_per_cycle.max(1)),
            latency: u64::from(spec.latency_cycles),
            line_bytes: u64::from(spec.cache.line_bytes),
            sectors: lines * u64::from(spec.cache.line_bytes) / SECTOR_BYTES,
            lazy_fetch: machine.quirks.lazy_fetch_on_read,
            evicted: None,
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
        let start = ((packet.ready + self.latency).max(now) << SHIFT).max(self.free_at);
        let at = start >> SHIFT;
        let outcome = if packet.ask == Ask::Read {
            self.read(number, packet, at, counts)
        } else {
            self.write(number, packet, at, counts)
        };
        if outcome != Outcome::Refused {
            self.free_at = start + self.interval;
        }
        outcome
    }

    fn read(
        &mut self,
        number: u32,
        packet: &Packet,
        at: Cycle,
        counts: &mut CacheCounts,
    ) -> Outcome {
        let (line, sector) =
            (self.tags.line_of(packet.address), self.tags.sector_of(packet.address));
        let (found, way) = self.tags.look(line, sector);
        if let (Found::Hit, Some(way)) = (found, way) {
            self.tags.touch(way);
            counts.read_hits += 1;
            return Outcome::Answer(at + 1);
        }
        match self.outstanding.merge(packet.address / SECTOR_BYTES, (number, at)) {
            Merge::Full => Outcome::Refused,
            Merge::Merged => {
                counts.read_merges += 1;
                Outcome::Merged
            }
            Merge::Absent => {
                let outcome = self.fetch(number, packet, way, at);
                counts.read_misses += u64::from(outcome != Outcome::Refused);
                outcome
            }
        }
    }

    /// Opens a miss: an entry, and a way where the line is not there.
    fn fetch(&mut self, number: u32, packet: &Packet, way: Option<usize>, at: Cycle) -> Outcome {
        if self.outstanding.is_full() {
            return Outcome::Refused;
        }
        let (line, sector) =
            (self.tags.line_of(packet.address), self.tags.sector_of(packet.address));
        let Some(way) = way.or_else(|| self.take_way(line, at)) else { return Outcome::Refused };
        self.tags.touch(way);
        self.tags.expect(way, sector);
        self.outstanding.open(packet.address / SECTOR_BYTES, (number, at));
        Outcome::Fetch(at + 1)
    }

    fn take_way(&mut self, line: u64, at: Cycle) -> Option<usize> {
        let (way, evicted) = self.tags.allocate(line)?;
        if let Some(evicted) = evicted {
            self.evicted = Some((evicted, at));
        }
        Some(way)
    }

    /// Writes and read-modify-writes. A whole sector needs no fetch; a part is
    /// kept with its bytes marked (lazy fetch), or fetched to be completed.
    fn write(
        &mut self,
        number: u32,
        packet: &Packet,
        at: Cycle,
        counts: &mut CacheCounts,
    ) -> Outcome {
        let (line, sector) =
            (self.tags.line_of(packet.address), self.tags.sector_of(packet.address));
        let (found, way) = self.tags.look(line, sector);
        let whole = packet.bytes == u32::MAX && packet.ask == Ask::Write;
        let modifies = packet.ask != Ask::Write;
        match (found, way) {
            (Found::Hit, Some(way)) => {
                counts.write_hits += 1;
                self.tags.touch(way);
                self.tags.soil(way, sector);
                Outcome::Answer(at + 1)
            }
            (Found::Pending, Some(way)) => {
                let sector_number = packet.address / SECTOR_BYTES;
                if self.outstanding.merge(sector_number, (number, at)) == Merge::Full {
                    return Outcome::Refused;
                }
                counts.write_merges += 1;
                self.tags.soil(way, sector);
                Outcome::Merged
            }
            (_, way) if whole || (self.lazy_fetch && !modifies) => {
                self.write_without_fetch(packet, line, sector, way, at, counts)
            }
            (_, way) => self.write_with_fetch(number, packet, way, at, counts),
        }
    }

    fn write_with_fetch(
        &mut self,
        number: u32,
        packet: &Packet,
        way: Option<usize>,
        at: Cycle,
        counts: &mut CacheCounts,
    ) -> Outcome {
        let outcome = self.fetch(number, packet, way, at);
        counts.write_misses += u64::from(outcome != Outcome::Refused);
        let (line, sector) =
            (self.tags.line_of(packet.address), self.tags.sector_of(packet.address));
        if let (Outcome::Fetch(_), (_, Some(way))) = (outcome, self.tags.look(line, sector)) {
            self.tags.soil(way, sector);
        }
        outcome
    }

    fn write_without_fetch(
        &mut self,
        packet: &Packet,
        line: u64,
        sector: u32,
        way: Option<usize>,
        at: Cycle,
        counts: &mut CacheCounts,
    ) -> Outcome {
        let again = way.is_some_and(|way| self.tags.partly_written(way, sector));
        let Some(way) = way.or_else(|| self.take_way(line, at)) else { return Outcome::Refused };
        counts.write_hits += u64::from(again);
        counts.write_misses += u64::from(!again);
        self.tags.touch(way);
        self.tags.soil(way, sector);
        if self.tags.write_bytes(way, sector, packet.bytes) {
            self.tags.validate(way, sector);
        }
        Outcome::Answer(at + 1)
    }

    /// The evicted line that must be written down: address of its first sector,
    /// dirty sectors, and when it leaves.
    pub(super) fn take_evicted(&mut self) -> Option<(u64, u8, Cycle)> {
        let (evicted, at) = self.evicted.take()?;
        Some((evicted.line * self.line_bytes, evicted.dirty, at + 1))
    }

    /// A sector has come: packets that waited for it are appended to `answers`
    /// with the cycle at which their answers leave.
    pub(super) fn fill(&mut self, address: u64, now: Cycle, answers: &mut Vec<(u32, Cycle)>) {
        self.tags.fill(self.tags.line_of(address), self.tags.sector_of(address));
        self.outstanding.close(address / SECTOR_BYTES, &mut self.released);
        let answer = |(number, looked_up): (u32, Cycle)| (number, now.max(looked_up) + 1);
        answers.extend(self.released.drain(..).map(answer));
    }

    /// Puts a sector in without traffic; what it evicts is dropped clean.
    pub(super) fn copy_in(&mut self, address: u64) {
        let (line, sector) = (self.tags.line_of(address), self.tags.sector_of(address));
        let way =
            self.tags.look(line, sector).1.or_else(|| self.tags.allocate(line).map(|(way, _)| way));
        if let Some(way) = way {
            self.tags.touch(way);
            self.tags.validate(way, sector);
        }
    }
}
