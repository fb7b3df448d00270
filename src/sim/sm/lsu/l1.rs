//! The L1 data cache of one SM: look-ups, policies, carve-out.

use crate::cache::{Coming, Found, Mshr, Stored, TagArray, WriteBack, WriteRule, lowest};
use crate::config::{AllocatePolicy, L1Spec, RequestGranularity, SharedSpec};
use crate::counters::CacheCounts;
use crate::mmu::address_space::is_local;
use gpumodel_core::units::{SECTOR_BYTES, to_u8};

/// What became of a read of sectors of one line, one bit each: every one is in one mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::sm) struct Read {
    /// They are present.
    pub(in crate::sm) hit: u8,
    /// They come with an outstanding miss.
    pub(in crate::sm) merged: u8,
    /// They must be fetched; entry and way are taken.
    pub(in crate::sm) miss: u8,
    /// No entry, no merge place or no way is free: try again later.
    pub(in crate::sm) refused: u8,
}

/// What became of a write of sectors of one line or of parts of them, one bit each: every one is
/// in one mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::sm) struct Write {
    /// The L1 holds them; nothing is sent.
    pub(in crate::sm) kept: u8,
    /// They go down.
    pub(in crate::sm) down: u8,
    /// They must be fetched to be completed; entry and way are taken.
    pub(in crate::sm) fetch: u8,
    /// No entry or no way is free: try again later.
    pub(in crate::sm) refused: u8,
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
    /// Misses are outstanding by line, with its sectors as parts; else by sector.
    by_line: bool,
    /// The launch that what leaves is counted for.
    pub(in crate::sm) kernel: u32,
}

impl L1 {
    /// The L1 of an SM that no CTA has reached: without room for anything before
    /// [`L1::prepare`], so that idle SMs cost nothing.
    pub(in crate::sm) fn new(spec: &L1Spec, granularity: RequestGranularity) -> Self {
        let rules = [false, true].map(|local| WriteRule::new(&spec.cache, local));
        Self {
            tags: TagArray::unused(&spec.cache, spec.dirty_percent),
            outstanding: Mshr::new(0, spec.cache.mshr_merge),
            rules,
            writes_back: rules.iter().any(|rule| rule.writes_back()),
            by_line: granularity == RequestGranularity::Line,
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

    /// True when a read of the sectors sends nothing: they are present, or in flight.
    pub(in crate::sm) fn keeps(&self, address: u64, sectors: u8) -> bool {
        let Found { hit, pending, .. } = self.tags.lookup(self.tags.line_of(address), sectors);
        hit | pending == sectors
    }

    /// True when a read of the sectors finds all of them.
    pub(in crate::sm) fn hits(&self, address: u64, sectors: u8) -> bool {
        self.tags.lookup(self.tags.line_of(address), sectors).hit == sectors
    }

    /// True when a write of the sectors sends nothing and evicts nothing.
    pub(in crate::sm) fn absorbs(&self, address: u64, sectors: u8) -> bool {
        let found = self.tags.lookup(self.tags.line_of(address), sectors);
        self.writes_back && self.rule(address).absorbs(found, sectors)
    }

    /// The sector of the cache in which an address lies, as one bit of its line.
    #[inline]
    pub(in crate::sm) fn sector_bit(&self, address: u64) -> u8 {
        self.tags.sector_bit(address)
    }

    /// Looks up sectors of the line of an address for reading; `operation` waits for those that
    /// miss.
    pub(in crate::sm) fn read(
        &mut self,
        address: u64,
        sectors: u8,
        operation: u32,
        counts: &mut CacheCounts,
    ) -> Read {
        let line = self.tags.line_of(address);
        let Found { way, hit, .. } = self.tags.lookup(line, sectors);
        if let Some(way) = way.filter(|_| hit != 0) {
            self.tags.touch(way);
            counts.read_hits += u64::from(hit.count_ones());
        }
        let wanted = sectors & !hit;
        if wanted == 0 {
            return Read { hit, ..Read::default() };
        }
        let (key, coming) = self.coming(address);
        let merged = self.sectors_of(wanted, coming.open);
        let absent = wanted & !self.sectors_of(wanted, coming.open | coming.full);
        let mut miss = self.within_room(absent);
        if miss != 0
            && self.spec.cache.allocate == AllocatePolicy::OnMiss
            && self.reserve(line, miss, way).is_none()
        {
            miss = 0;
        }
        let (parts, opened) = (self.parts(merged | miss), self.parts(miss));
        if parts != 0 {
            self.outstanding.join(key, coming, parts, opened, operation);
        }
        counts.read_merges += u64::from(merged.count_ones());
        counts.read_misses += u64::from(miss.count_ones());
        Read { hit, merged, miss, refused: wanted & !(merged | miss) }
    }

    /// The key of the outstanding misses of an address, and what is outstanding of it.
    #[inline]
    fn coming(&self, address: u64) -> (u64, Coming) {
        let key = self.key(address);
        (key, self.outstanding.coming(key))
    }

    /// The key of the outstanding misses of an address.
    #[inline]
    fn key(&self, address: u64) -> u64 {
        let cache = &self.spec.cache;
        let bytes = if self.by_line { cache.line_bytes } else { cache.sector_bytes };
        address >> bytes.trailing_zeros()
    }

    /// The parts of an outstanding miss that stand for sectors of its line.
    #[inline]
    fn parts(&self, sectors: u8) -> u8 {
        if self.by_line { sectors } else { u8::from(sectors != 0) }
    }

    /// Those of some sectors for which parts of an outstanding miss stand.
    #[inline]
    fn sectors_of(&self, sectors: u8, parts: u8) -> u8 {
        match self.by_line {
            true => sectors & parts,
            false if parts == 0 => 0,
            false => sectors,
        }
    }

    /// The lowest of some sectors, as many as may become outstanding.
    #[inline]
    fn within_room(&self, sectors: u8) -> u8 {
        lowest(sectors, self.outstanding.room())
    }

    /// Keeps a way for sectors that are to come; `None` when none is free.
    fn reserve(&mut self, line: u64, sectors: u8, way: Option<usize>) -> Option<usize> {
        let way = self.tags.use_or_allocate(way, line)?;
        self.tags.mark_pending(way, sectors);
        Some(way)
    }

    /// Writes `bytes` (a bit for each 1/32) of each of some sectors of the line of an address;
    /// `operation` waits for the rest of those that are fetched.
    pub(in crate::sm) fn write(
        &mut self,
        (address, sectors): (u64, u8),
        bytes: u32,
        operation: u32,
        counts: &mut CacheCounts,
    ) -> Write {
        let line = self.tags.line_of(address);
        let rule = self.rule(address);
        let Stored { mut kept, down, pending, fetch, mut refused, way } =
            rule.write(&mut self.tags, (line, sectors), bytes, counts);
        if let Some(way) = way.filter(|_| pending != 0) {
            // It joins the bytes that come.
            counts.write_merges += u64::from(pending.count_ones());
            self.tags.mark_dirty(way, pending);
            kept |= pending;
        }
        let fetched = if fetch == 0 { 0 } else { self.fetch((address, fetch), way, operation) };
        counts.write_misses += u64::from(fetched.count_ones());
        refused |= fetch & !fetched;
        Write { kept, down, fetch: fetched, refused }
    }

    /// Takes entries and a way for written sectors that must be completed: as many of them as
    /// there are entries for, or none without a way.
    fn fetch(&mut self, (address, sectors): (u64, u8), way: Option<usize>, operation: u32) -> u8 {
        let sectors = self.within_room(sectors);
        if sectors == 0 {
            return 0;
        }
        let Some(way) = self.reserve(self.tags.line_of(address), sectors, way) else { return 0 };
        self.tags.mark_dirty(way, sectors);
        let (key, coming) = self.coming(address);
        let parts = self.parts(sectors);
        self.outstanding.join(key, coming, parts, parts, operation);
        sectors
    }

    /// Sectors of the line of an address have come: the operations that wait for any of them are
    /// appended to `out`, with a bit for each.
    pub(in crate::sm) fn fill(&mut self, address: u64, sectors: u8, out: &mut Vec<(u32, u8)>) {
        let line = self.tags.line_of(address);
        if self.spec.cache.allocate == AllocatePolicy::OnFill
            && self.tags.lookup(line, sectors).way.is_none()
        {
            self.tags.allocate(line);
        }
        self.tags.fill(line, sectors);
        self.outstanding.arrive(self.key(address), self.parts(sectors), out);
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

    /// Sectors of 32 bytes that a miss fetches.
    pub(in crate::sm) fn sectors_at_once(&self) -> u8 {
        to_u8(u64::from(self.spec.cache.sector_bytes) / SECTOR_BYTES)
    }

    /// Sectors of 32 bytes that hold `bytes` (a bit for each 1/32) of one of the cache.
    pub(in crate::sm) fn written_sectors(&self, bytes: u32) -> u8 {
        let all = u32::from(self.sectors_at_once());
        let bits = u32::BITS / all;
        let part = u32::MAX >> (u32::BITS - bits);
        to_u8((0..all).filter(|one| bytes >> (one * bits) & part != 0).count().max(1))
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
