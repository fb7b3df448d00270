//! The L1 data cache of one SM: look-ups, policies, carve-out.

use crate::config::{AllocatePolicy, L1Spec, SharedSpec};
use gpumodel_core::units::{SECTOR_BYTES, to_u16};

use crate::cache::{Found, Merge, Mshr, Stored, TagArray, WriteBack, WriteRule};
use crate::counters::CacheCounts;
use crate::mmu::address_space::is_local;

/// What became of one sector's read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sm) enum Read {
    /// It is present.
    Hit,
    /// It comes with an outstanding miss.
    Merged,
    /// It must be fetched; entry and way are taken.
    Miss,
    /// No entry, no merge place or no way is free: try again later.
    Refused,
}

/// What became of the write of a sector or of a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sm) enum Write {
    /// The L1 holds it; nothing is sent.
    Kept,
    /// It goes down.
    Down,
    /// Its sector must be fetched to be completed; entry and way are taken.
    Fetch,
    /// No entry or no way is free: try again later.
    Refused,
}

/// One L1.
#[derive(Debug)]
pub(in crate::sm) struct L1 {
    spec: L1Spec,
    tags: TagArray,
    outstanding: Mshr<u32>,
    /// For global and for local memory.
    rules: [WriteRule; 2],
    writes_back: bool,
    /// The launch that what leaves is counted for.
    pub(in crate::sm) kernel: u32,
}

impl L1 {
    /// The L1 of an SM that no CTA has reached: without room for anything before
    /// [`L1::prepare`], so that idle SMs cost nothing.
    pub(in crate::sm) fn new(spec: &L1Spec) -> Self {
        let rules = [false, true].map(|local| WriteRule::new(&spec.cache, local));
        Self {
            tags: TagArray::unused(&spec.cache, spec.dirty_percent),
            outstanding: Mshr::new(0, spec.cache.mshr_merge),
            rules,
            writes_back: rules.iter().any(|rule| rule.writes_back()),
            kernel: 0,
            spec: spec.clone(),
        }
    }

    /// Leaves to shared memory the smallest selectable size that holds
    /// `shared_bytes`. Contents are dropped where the machine flushes or the
    /// size changes: what is dirty leaves, but for local memory, which has ended
    /// with its threads.
    pub(in crate::sm) fn prepare(&mut self, shared_bytes: u32, shared: &SharedSpec) {
        if self.tags.ways() == 0 {
            self.outstanding = Mshr::new(self.spec.cache.mshr_entries, self.spec.cache.mshr_merge);
        }
        let ways = ways_left_by(&self.spec, shared_bytes.min(shared.bytes));
        if self.spec.flushed_at_kernel_start || ways != self.tags.ways() {
            if self.writes_back {
                self.tags.flush(is_local);
            }
            self.tags.resize(ways);
        }
    }

    /// Sends what is dirty down and forgets everything; no miss may be outstanding.
    pub(in crate::sm) fn flush(&mut self) {
        self.tags.flush(|_| false);
        self.tags.resize(self.tags.ways());
    }

    /// True when a read of the sector sends nothing: it is present, or in flight.
    pub(in crate::sm) fn keeps(&self, address: u64) -> bool {
        let (line, sector) = self.place(address);
        matches!(self.tags.lookup(line, sector).0, Found::Hit | Found::Pending)
    }

    /// True when a write of the sector sends nothing and evicts nothing.
    pub(in crate::sm) fn absorbs(&self, address: u64) -> bool {
        let (line, sector) = self.place(address);
        self.writes_back && self.rule(address).absorbs(self.tags.lookup(line, sector).0)
    }

    /// Looks up a sector for reading; `operation` waits for it on a miss.
    pub(in crate::sm) fn read(
        &mut self,
        address: u64,
        operation: u32,
        counts: &mut CacheCounts,
    ) -> Read {
        let (line, sector) = self.place(address);
        let (found, way) = self.tags.lookup(line, sector);
        if let (Found::Hit, Some(way)) = (found, way) {
            self.tags.touch(way);
            counts.read_hits += 1;
            return Read::Hit;
        }
        match self.outstanding.merge(self.unit(address), operation) {
            Merge::Full => return Read::Refused,
            Merge::Merged => {
                counts.read_merges += 1;
                return Read::Merged;
            }
            Merge::Absent if self.outstanding.is_full() => return Read::Refused,
            Merge::Absent => {}
        }
        if self.spec.cache.allocate == AllocatePolicy::OnMiss
            && self.reserve(line, sector, way).is_none()
        {
            return Read::Refused;
        }
        self.outstanding.open(self.unit(address), operation);
        counts.read_misses += 1;
        Read::Miss
    }

    /// Keeps a way for a sector that is to come; `None` when none is free.
    fn reserve(&mut self, line: u64, sector: u32, way: Option<usize>) -> Option<usize> {
        let way = self.tags.use_or_allocate(way, line)?;
        self.tags.mark_pending(way, sector);
        Some(way)
    }

    /// Writes `bytes` (a bit for each 1/32) of a sector; `operation` waits for its rest
    /// where that is fetched.
    pub(in crate::sm) fn write(
        &mut self,
        address: u64,
        bytes: u32,
        operation: u32,
        counts: &mut CacheCounts,
    ) -> Write {
        let (line, sector) = self.place(address);
        let rule = self.rule(address);
        match rule.write(&mut self.tags, (line, sector), bytes, counts) {
            Stored::Kept => Write::Kept,
            Stored::Down => Write::Down,
            Stored::Pending(way) => {
                // It joins the bytes that come.
                counts.write_merges += 1;
                self.tags.mark_dirty(way, sector);
                Write::Kept
            }
            Stored::Fetch(way) => {
                if self.outstanding.is_full() {
                    return Write::Refused;
                }
                let Some(way) = self.reserve(line, sector, way) else { return Write::Refused };
                self.tags.mark_dirty(way, sector);
                self.outstanding.open(self.unit(address), operation);
                counts.write_misses += 1;
                Write::Fetch
            }
            Stored::Refused => Write::Refused,
        }
    }

    /// A sector has come: the operations that wait for it are appended to `out`.
    pub(in crate::sm) fn fill(&mut self, address: u64, out: &mut Vec<u32>) {
        let (line, sector) = self.place(address);
        if self.spec.cache.allocate == AllocatePolicy::OnFill
            && self.tags.lookup(line, sector).1.is_none()
        {
            self.tags.allocate(line);
        }
        self.tags.fill(line, sector);
        self.outstanding.close(self.unit(address), out);
    }

    /// True when dirty sectors are to be sent down.
    #[inline]
    pub(in crate::sm) fn has_leaving(&self) -> bool {
        self.tags.has_write_backs()
    }

    /// The next dirty sector to be sent down.
    pub(in crate::sm) fn next_leaving(&mut self) -> Option<WriteBack> {
        self.tags.next_write_back()
    }

    fn place(&self, address: u64) -> (u64, u32) {
        (self.tags.line_of(address), self.tags.sector_of(address))
    }

    /// The number of a sector of the cache, by which misses are known.
    fn unit(&self, address: u64) -> u64 {
        address >> self.spec.cache.sector_bytes.trailing_zeros()
    }

    /// Sectors of 32 bytes that a miss fetches.
    pub(in crate::sm) fn sectors_at_once(&self) -> u16 {
        to_u16(u64::from(self.spec.cache.sector_bytes) / SECTOR_BYTES)
    }

    /// Sectors of 32 bytes that hold `bytes` (a bit for each 1/32) of one of the cache.
    pub(in crate::sm) fn sectors_of(&self, bytes: u32) -> u16 {
        let all = u32::from(self.sectors_at_once());
        let bits = u32::BITS / all;
        let part = u32::MAX >> (u32::BITS - bits);
        to_u16((0..all).filter(|one| bytes >> (one * bits) & part != 0).count().max(1))
    }

    fn rule(&self, address: u64) -> WriteRule {
        self.rules[usize::from(is_local(address))]
    }
}

/// Ways that `shared_bytes` of shared memory leave in a unified array.
pub(in crate::sm) fn ways_left_by(spec: &L1Spec, shared_bytes: u32) -> u32 {
    let full = spec.cache.ways;
    if spec.unified_bytes == 0 || spec.carve_outs_bytes.is_empty() {
        return full;
    }
    let chosen = spec.carve_outs_bytes.iter().copied().find(|&size| size >= shared_bytes);
    let carved = chosen.unwrap_or(shared_bytes).min(spec.unified_bytes);
    let bytes = u64::from(spec.unified_bytes - carved);
    let way_bytes = u64::from(spec.cache.sets) * u64::from(spec.cache.line_bytes);
    let ways = u32::try_from(bytes / way_bytes).unwrap_or(full);
    ways.clamp(1, full)
}
