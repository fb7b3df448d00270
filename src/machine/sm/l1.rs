//! The L1 data cache of one SM: look-ups, policies, carve-out.

use crate::spec::{AllocatePolicy, L1Spec, SharedSpec, WritePolicy};
use crate::units::SECTOR_BYTES;

use super::super::cache::{Found, Merge, Mshr, TagArray};
use super::super::counters::CacheCounts;

/// What became of one sector's read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// It is there.
    Hit,
    /// It comes with an outstanding miss.
    Merged,
    /// It must be fetched; entry and way are taken.
    Miss,
    /// No entry, no merge place or no way is free: try again later.
    Refused,
}

/// One L1.
#[derive(Debug)]
pub(super) struct L1 {
    spec: L1Spec,
    tags: TagArray,
    outstanding: Mshr<u32>,
}

impl L1 {
    /// An empty L1 at its largest size.
    pub(super) fn new(spec: &L1Spec) -> Self {
        Self {
            tags: TagArray::new(&spec.cache, spec.dirty_percent),
            outstanding: Mshr::new(spec.cache.mshr_entries, spec.cache.mshr_merge),
            spec: spec.clone(),
        }
    }

    /// Leaves to shared memory the smallest selectable size that holds
    /// `shared_bytes`. Contents are dropped where the machine flushes or the
    /// size changes.
    pub(super) fn prepare(&mut self, shared_bytes: u32, shared: &SharedSpec) {
        let ways = ways_beside(&self.spec, shared_bytes.min(shared.bytes));
        if self.spec.flushed_at_kernel_start || ways != self.tags.ways() {
            self.tags.resize(ways);
        }
    }

    /// True when a read of the sector sends nothing: it is there, or on its way.
    pub(super) fn keeps(&self, address: u64) -> bool {
        let (line, sector) = (self.tags.line_of(address), self.tags.sector_of(address));
        matches!(self.tags.look(line, sector).0, Found::Hit | Found::Pending)
    }

    /// Looks up a sector for reading; `operation` waits for it on a miss.
    pub(super) fn read(&mut self, address: u64, operation: u32, counts: &mut CacheCounts) -> Read {
        let (line, sector) = (self.tags.line_of(address), self.tags.sector_of(address));
        let (found, way) = self.tags.look(line, sector);
        if let (Found::Hit, Some(way)) = (found, way) {
            self.tags.touch(way);
            counts.read_hits += 1;
            return Read::Hit;
        }
        match self.outstanding.merge(address / SECTOR_BYTES, operation) {
            Merge::Full => return Read::Refused,
            Merge::Merged => {
                counts.read_merges += 1;
                return Read::Merged;
            }
            Merge::Absent if self.outstanding.is_full() => return Read::Refused,
            Merge::Absent => {}
        }
        if self.spec.cache.allocate == AllocatePolicy::OnMiss {
            let Some(way) = way.or_else(|| self.take_way(line)) else { return Read::Refused };
            self.tags.touch(way);
            self.tags.expect(way, sector);
        }
        self.outstanding.open(address / SECTOR_BYTES, operation);
        counts.read_misses += 1;
        Read::Miss
    }

    fn take_way(&mut self, line: u64) -> Option<usize> {
        // Nothing dirty leaves: every write has already gone down.
        self.tags.allocate(line).map(|(way, _)| way)
    }

    /// Notes a write of `bytes` (one bit each) of a sector, which goes down in
    /// any case.
    pub(super) fn write(&mut self, address: u64, bytes: u32, counts: &mut CacheCounts) {
        let (line, sector) = (self.tags.line_of(address), self.tags.sector_of(address));
        let (found, way) = self.tags.look(line, sector);
        match (found, way) {
            (Found::Hit, Some(way)) => {
                counts.write_hits += 1;
                self.tags.touch(way);
                if self.spec.cache.write == WritePolicy::WriteEvict {
                    self.tags.invalidate(way, sector);
                }
            }
            (Found::Pending, _) => counts.write_merges += 1,
            (_, way) => self.write_absent(line, sector, bytes, way, counts),
        }
    }

    fn write_absent(
        &mut self,
        line: u64,
        sector: u32,
        bytes: u32,
        way: Option<usize>,
        counts: &mut CacheCounts,
    ) {
        let again = way.is_some_and(|way| self.tags.partly_written(way, sector));
        counts.write_hits += u64::from(again);
        counts.write_misses += u64::from(!again);
        if !self.spec.write_allocate {
            return;
        }
        let Some(way) = way.or_else(|| self.take_way(line)) else { return };
        self.tags.touch(way);
        if self.tags.write_bytes(way, sector, bytes) {
            self.tags.validate(way, sector);
        }
    }

    /// A sector has come: the operations that wait for it are appended to `out`.
    pub(super) fn fill(&mut self, address: u64, out: &mut Vec<u32>) {
        let (line, sector) = (self.tags.line_of(address), self.tags.sector_of(address));
        if self.spec.cache.allocate == AllocatePolicy::OnFill
            && self.tags.look(line, sector).1.is_none()
        {
            self.take_way(line);
        }
        self.tags.fill(line, sector);
        self.outstanding.close(address / SECTOR_BYTES, out);
    }
}

/// Ways that remain beside `shared_bytes` of shared memory in a unified array.
fn ways_beside(spec: &L1Spec, shared_bytes: u32) -> u32 {
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

#[cfg(test)]
mod tests {
    use super::{L1, Read, ways_beside};
    use crate::machine::CacheCounts;
    use crate::spec::{
        AllocatePolicy, BankConflicts, Cache, L1Spec, SetHash, SharedSpec, WritePolicy,
    };

    fn spec() -> L1Spec {
        L1Spec {
            caches_global: true,
            cache: Cache {
                sets: 4,
                ways: 256,
                line_bytes: 128,
                hash: SetHash::Linear,
                mshr_entries: 8,
                mshr_merge: 4,
                write: WritePolicy::WriteThrough,
                allocate: AllocatePolicy::OnMiss,
            },
            unified_bytes: 128 * 1024,
            carve_outs_bytes: vec![0, 8 * 1024, 16 * 1024, 32 * 1024, 64 * 1024, 96 * 1024],
            latency_cycles: 28,
            banks: 4,
            tags_per_cycle: 4,
            write_allocate: false,
            dirty_percent: 0,
            queue: 8,
            flushed_at_kernel_start: true,
        }
    }

    #[test]
    fn the_carve_out_takes_the_smallest_size_that_holds_the_kernel() {
        assert_eq!(ways_beside(&spec(), 0), 256);
        assert_eq!(ways_beside(&spec(), 1), 240);
        assert_eq!(ways_beside(&spec(), 40 * 1024), 128);
        assert_eq!(ways_beside(&spec(), 96 * 1024), 64);
    }

    #[test]
    fn an_l1_that_is_not_flushed_keeps_its_lines_while_its_size_stays() {
        let shared = SharedSpec {
            bytes: 96 * 1024,
            unit_bytes: 256,
            reserved_bytes_per_cta: 0,
            latency_cycles: 1,
            banks: 32,
            bank_bytes: 4,
            conflicts: BankConflicts::AllWords,
        };
        let mut l1 = L1::new(&L1Spec { flushed_at_kernel_start: false, ..spec() });
        let read = |l1: &mut L1| l1.read(0x1000, 0, &mut CacheCounts::default());
        assert_eq!(read(&mut l1), Read::Miss);
        l1.fill(0x1000, &mut Vec::new());
        l1.prepare(0, &shared);
        assert_eq!(read(&mut l1), Read::Hit);
        l1.prepare(1, &shared);
        assert_eq!(read(&mut l1), Read::Miss);
    }
}
