//! One L2 slice: a sectored cache with its outstanding misses. Its sectors have 32 bytes or
//! are whole lines.
//!
//! Requests arrive after the slice's latency and are looked up in that order, one per L2
//! cycle or as many as the machine says.
//!
//! Sectors that CTAs outside a run keep in the L2 are hits whatever it holds
//! ([`PresumedL2Hits`]).

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{fixed_point, granule};
use crate::bits::bits;
use crate::cache::{Found, Mshr, TagArray, WriteBack, WriteRule, lowest};
use crate::config::{AddressMap, AllocatePolicy, Machine, RequestGranularity};
use crate::counters::CacheCounts;
use crate::memory::packet::{Leg, Packet};
use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_u32};

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
    /// None: a write that went on to the memory, whose line alone is fetched.
    packet: Option<u32>,
    /// Sectors of the line that it waits for, one bit each.
    sectors: u8,
    /// It writes; one with a packet changes the sectors when the data has arrived.
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
    pub(super) tags: TagArray,
    rule: WriteRule,
    outstanding: Mshr<Waiter>,
    /// Requests in front of the slice by their numbers, oldest first.
    pub(super) waiting: VecDeque<u32>,
    /// Requests from the other half of the L2, oldest first.
    pub(super) crossed: VecDeque<u32>,
    /// The first request was refused as a whole, and nothing has changed since.
    pub(super) is_stuck: bool,
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
        if spec.far_half_cycles > 0 {
            tags.report_evicted();
        }
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
            crossed: VecDeque::new(),
            is_stuck: false,
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
        let waiter = Waiter { packet: Some(number), sectors: asked, writes, looked_up: at };
        self.write_backs_at = at + 1;
        let mut counted = CacheCounts::default();
        let outcome = match (packet.leg, writes) {
            (Leg::Far, true) => self.pass_on(packet, asked),
            (Leg::Far, false) => self.read_copy(packet, asked, &mut counted),
            (_, true) => self.write(waiter, packet, &mut counted),
            (_, false) => self.read(waiter, packet, &mut counted),
        };
        let taken = asked & !outcome.refused;
        self.is_stuck = taken == 0 && !self.tags.refusal_counts();
        // A word changes where its home is.
        let more = if packet.leg == Leg::Far { 0 } else { more_turns(packet, taken) };
        let turns = self.interval * more;
        if taken != 0 {
            self.free_at = start + self.interval * u64::from(taken.count_ones()) + turns;
            counts.add(&counted, packet.sectors);
            self.counts.add(&counted, packet.sectors);
        }
        // What is fetched for a word leaves before the word changes.
        let at = if turns == 0 || outcome.answered == 0 { at } else { (start + turns) >> SHIFT };
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
        self.is_stuck = false;
        let turns = self.interval * more_turns(packet, asked);
        self.free_at = start + self.interval * number + turns;
        let mut counted = CacheCounts::default();
        let writes = packet.kind.carries_data();
        *(if writes { &mut counted.write_hits } else { &mut counted.read_hits }) += number;
        counts.add(&counted, packet.sectors);
        self.counts.add(&counted, packet.sectors);
        let at = ((start + turns) >> SHIFT) + 1;
        Outcome { answered: asked, at, ..Outcome::default() }
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

    /// Reads what the slice may have copied from its home in the other half of the L2. What it
    /// lacks is neither answered nor refused: it goes there, and is counted there.
    fn read_copy(&mut self, packet: &Packet, asked: u8, counts: &mut CacheCounts) -> Outcome {
        let Found { way, hit, .. } = self.tags.lookup(self.tags.line_of(packet.address), asked);
        if let Some(way) = way.filter(|_| hit != 0) {
            self.tags.touch(way);
            counts.read_hits += u64::from(hit.count_ones());
        }
        Outcome { answered: hit, ..Outcome::default() }
    }

    /// Lets a store or an atomic pass to its home in the other half of the L2. A store changes
    /// a copy here, an atomic ends it.
    fn pass_on(&mut self, packet: &Packet, asked: u8) -> Outcome {
        if packet.kind.modifies() {
            self.end_copy(packet.address, asked);
        }
        Outcome::default()
    }

    /// Ends the copy of sectors of the line at `address`, where there is one.
    pub(super) fn end_copy(&mut self, address: u64, sectors: u8) {
        self.is_stuck = false;
        if let Some(way) = self.tags.lookup(self.tags.line_of(address), sectors).way {
            self.tags.invalidate(way, sectors);
        }
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
        if sectors == 0 {
            return outcome;
        }
        let passes = self.rule.passes_misses() && !packet.kind.modifies();
        let of = waiter.packet.filter(|_| !passes);
        let waiter = Waiter { packet: of, sectors, ..waiter };
        self.wait(waiter, packet, stored.way, &mut outcome, counts);
        if passes {
            let sent = sectors & !outcome.refused;
            self.write_down(line, sent, packet.bytes);
            outcome.answered |= sent;
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
        let access = self.sectors_of_access(packet.address);
        let mut opened = lowest(parts & !(coming.open | coming.full), self.outstanding.room());
        let mut fetched = self.sectors_of_parts(access, opened);
        if opened != 0 && self.allocate == AllocatePolicy::OnMiss {
            way = self.tags.use_or_allocate(way, self.tags.line_of(packet.address));
            match way {
                Some(way) => self.tags.mark_pending(way, fetched),
                None => (opened, fetched) = (0, 0),
            }
        }
        let wanted = parts & coming.open | opened;
        let sectors = waiter.sectors & self.sectors_of_parts(access, wanted);
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

    /// The sectors of a line that parts of its entry hold, one bit each; `access`: those that the
    /// memory moves together.
    #[inline]
    fn sectors_of_parts(&self, access: u8, parts: u8) -> u8 {
        match self.sectors_per_part {
            0 if parts == 0 => 0,
            0 => access,
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
        let together = to_u32(self.granule / self.sector_bytes);
        (u8::MAX >> (u8::BITS - together)) << first
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
        self.is_stuck = false;
        self.write_backs_at = now + 1;
        if self.allocate == AllocatePolicy::OnFill && self.tags.lookup(line, sectors).way.is_none()
        {
            self.tags.allocate(line);
        }
        let way = self.tags.fill(line, sectors);
        let parts = self.parts(sectors);
        let access = self.sectors_of_access(address);
        let mut released = std::mem::take(&mut self.released);
        self.outstanding.arrive(address >> self.entry_shift, parts, &mut released);
        let mut written = 0;
        for (waiter, parts) in released.drain(..) {
            let sectors = waiter.sectors & self.sectors_of_parts(access, parts);
            let Some(packet) = waiter.packet else { continue };
            let changed = if waiter.writes { sectors & !written } else { 0 };
            written |= changed;
            if changed != 0 && self.rule.complete(&mut self.tags, way, changed) {
                self.write_down(line, changed, u32::MAX);
            }
            let at = now.max(waiter.looked_up) + 1;
            answers.push(Arrived { packet, sectors, at });
        }
        self.released = released;
    }

    /// Keeps a copy of sectors of the line at `address` that have come from the other half of
    /// the L2, one bit each, where a way is free.
    pub(super) fn keep_copy(&mut self, address: u64, sectors: u8, now: Cycle) {
        let line = self.tags.line_of(address);
        self.is_stuck = false;
        self.write_backs_at = now + 1;
        let way = self.tags.lookup(line, sectors).way.or_else(|| self.tags.allocate(line));
        if let Some(way) = way {
            self.tags.validate(way, sectors);
        }
    }

    /// The request to be looked up next: those from the other half of the L2 go first, as what
    /// they wait for does not wait for this slice.
    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        self.crossed.front().or_else(|| self.waiting.front()).copied()
    }

    /// The requests that come this way.
    #[inline]
    pub(super) fn queue_of(&mut self, leg: Leg) -> &mut VecDeque<u32> {
        if leg == Leg::Home { &mut self.crossed } else { &mut self.waiting }
    }

    /// Writes back all dirty sectors and invalidates all lines but those with outstanding
    /// misses.
    pub(super) fn flush(&mut self, now: Cycle) {
        self.is_stuck = false;
        self.write_backs_at = now + 1;
        self.tags.flush(|_| false);
        self.tags.invalidate_settled();
    }

    /// Puts a sector in without traffic, dirty where it `writes`; evicted dirty sectors are
    /// dropped.
    pub(super) fn put_in(&mut self, address: u64, writes: bool) {
        let (line, sector) = (self.tags.line_of(address), self.tags.sector_bit(address));
        let waiting = self.tags.write_backs();
        self.is_stuck = false;
        let way = self.tags.lookup(line, sector).way;
        if let Some(way) = self.tags.use_or_allocate(way, line) {
            self.tags.validate(way, sector);
            if writes && self.rule.writes_back() {
                self.tags.mark_dirty(way, sector);
            }
        }
        self.tags.drop_write_backs(waiting);
    }
}

/// Look-ups beyond one for each of the sectors `taken` of a request: lanes of an atomic that share
/// a word take turns, all with the lowest sector of the request.
#[inline]
fn more_turns(packet: &Packet, taken: u8) -> u64 {
    if packet.more_turns == 0 || taken == 0 {
        return 0;
    }
    let lowest = packet.mask == 0 || taken.trailing_zeros() == packet.mask.trailing_zeros();
    if lowest { u64::from(packet.more_turns) } else { 0 }
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
    use super::PresumedL2Hits;

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
