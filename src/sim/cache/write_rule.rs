//! What a write changes in the tag array, by the policies of its cache.

use crate::CacheCounts;
use crate::config::{Cache, WriteMiss, WritePolicy};

use super::tags::{Found, TagArray};

/// The policies of one cache for one kind of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteRule {
    hit: OnHit,
    miss: WriteMiss,
    fetchless_hits: bool,
}

/// What a write does to a present sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnHit {
    /// Dirty until it is evicted.
    Kept,
    /// Like the next level, which is written too.
    Updated,
    /// Invalid; the next level is written.
    Invalidated,
}

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// The array holds it; nothing goes to the next level.
    Kept,
    /// It goes to the next level.
    Down,
    /// It waits for its pending sector in this way.
    Pending(usize),
    /// Its sector must be fetched first; with the way when the line is present.
    Fetch(Option<usize>),
    /// No way is free: try again later.
    Refused,
}

impl WriteRule {
    /// The rule of `spec` for local memory or all else.
    pub(crate) fn new(spec: &Cache, local: bool) -> Self {
        let miss = spec.write_miss;
        let fetchless_hits = spec.fetchless_writes_hit;
        match (spec.write, local) {
            (WritePolicy::WriteBack, _) | (WritePolicy::LocalWriteBack, true) => {
                Self { hit: OnHit::Kept, miss, fetchless_hits }
            }
            (WritePolicy::WriteThrough, _) => Self { hit: OnHit::Updated, miss, fetchless_hits },
            (WritePolicy::WriteEvict, _) => Self { hit: OnHit::Invalidated, miss, fetchless_hits },
            (WritePolicy::LocalWriteBack, false) => {
                Self { hit: OnHit::Invalidated, miss: WriteMiss::Around, fetchless_hits }
            }
        }
    }

    /// True when the array may hold what the next level does not.
    pub(crate) fn writes_back(self) -> bool {
        self.hit == OnHit::Kept
    }

    /// True when a write to a sector found in this state sends nothing to the next level and
    /// allocates no way.
    pub(crate) fn absorbs(self, found: Found) -> bool {
        self.writes_back() && matches!(found, Found::Hit | Found::Pending)
    }

    /// Writes `bytes` (one bit each) of a sector. The caller counts `Pending` and `Fetch`.
    pub(crate) fn write(
        self,
        tags: &mut TagArray,
        (line, sector): (u64, u32),
        bytes: u32,
        counts: &mut CacheCounts,
    ) -> Stored {
        match tags.lookup(line, sector) {
            (Found::Hit, Some(way)) => self.hit(tags, way, sector, counts),
            (Found::Pending, Some(way)) if self.writes_back() => Stored::Pending(way),
            (Found::Pending, _) => {
                counts.write_merges += 1;
                Stored::Down
            }
            (_, way) => self.miss(tags, (line, sector), bytes, way, counts),
        }
    }

    /// A read-modify-write: like a write, but the sector must be present.
    pub(crate) fn modify(
        self,
        tags: &mut TagArray,
        (line, sector): (u64, u32),
        counts: &mut CacheCounts,
    ) -> Stored {
        match tags.lookup(line, sector) {
            (Found::Hit, Some(way)) => self.hit(tags, way, sector, counts),
            (Found::Pending, Some(way)) => Stored::Pending(way),
            (_, way) => Stored::Fetch(way),
        }
    }

    /// A sector that a write waited for has arrived in `way`, if its line is present; true when
    /// the write goes to the next level.
    pub(crate) fn complete(self, tags: &mut TagArray, way: Option<usize>, sector: u32) -> bool {
        match (self.hit, way) {
            (OnHit::Kept, Some(way)) => tags.mark_dirty(way, sector),
            (OnHit::Invalidated, Some(way)) => tags.invalidate(way, sector),
            (OnHit::Updated, _) | (_, None) => {}
        }
        self.hit != OnHit::Kept || way.is_none()
    }

    fn hit(self, tags: &mut TagArray, way: usize, sector: u32, counts: &mut CacheCounts) -> Stored {
        counts.write_hits += 1;
        tags.touch(way);
        match self.hit {
            OnHit::Kept => {
                tags.mark_dirty(way, sector);
                return Stored::Kept;
            }
            OnHit::Updated => {}
            OnHit::Invalidated => tags.invalidate(way, sector),
        }
        Stored::Down
    }

    fn miss(
        self,
        tags: &mut TagArray,
        (line, sector): (u64, u32),
        bytes: u32,
        way: Option<usize>,
        counts: &mut CacheCounts,
    ) -> Stored {
        let back = self.writes_back();
        if self.miss == WriteMiss::Fetch && bytes != u32::MAX {
            return Stored::Fetch(way);
        }
        let hit = self.fetchless_hits || way.is_some_and(|way| tags.is_partial(way, sector));
        let place = match self.miss {
            WriteMiss::Around => None,
            WriteMiss::Lazy | WriteMiss::Fetch => tags.use_or_allocate(way, line),
        };
        if place.is_none() && back && self.miss != WriteMiss::Around {
            return Stored::Refused;
        }
        counts.write_hits += u64::from(hit);
        counts.write_misses += u64::from(!hit);
        let Some(way) = place else { return Stored::Down };
        if back {
            tags.mark_dirty(way, sector);
        }
        if tags.write_bytes(way, sector, bytes) {
            tags.validate(way, sector);
        }
        if back { Stored::Kept } else { Stored::Down }
    }
}
