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

/// What became of the written sectors of a line, one bit each: every one is in one mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    /// The array holds them; nothing goes to the next level.
    pub(crate) kept: u8,
    /// They go to the next level.
    pub(crate) down: u8,
    /// They wait for their pending data.
    pub(crate) pending: u8,
    /// They must be fetched first.
    pub(crate) fetch: u8,
    /// No way is free: try again later.
    pub(crate) refused: u8,
    /// The way of the line, where it was present.
    pub(crate) way: Option<usize>,
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

    /// True when a write goes to the next level where it misses, also where its sectors are
    /// pending, and does not wait for those.
    pub(crate) fn passes_misses(self) -> bool {
        self.miss == WriteMiss::ThroughAndFetch
    }

    /// True when a write to `sectors` of a line, found in this state, sends nothing to the next
    /// level and allocates no way.
    pub(crate) fn absorbs(self, found: Found, sectors: u8) -> bool {
        self.writes_back() && found.hit | found.pending == sectors
    }

    /// Writes `bytes` (one bit each) of each of some sectors of a line. The caller counts those
    /// that are pending and those that are to be fetched.
    pub(crate) fn write(
        self,
        tags: &mut TagArray,
        (line, sectors): (u64, u8),
        bytes: u32,
        counts: &mut CacheCounts,
    ) -> Stored {
        let Found { way, hit, pending } = tags.lookup(line, sectors);
        let mut stored = Stored { way, ..Stored::default() };
        if let Some(way) = way.filter(|_| hit != 0) {
            self.hit(tags, way, hit, &mut stored, counts);
        }
        if self.writes_back() {
            stored.pending = pending;
        } else {
            counts.write_merges += number(pending);
            stored.down |= pending;
        }
        let absent = sectors & !(hit | pending);
        if absent != 0 {
            self.miss(tags, (line, absent), bytes, &mut stored, counts);
        }
        stored
    }

    /// A read-modify-write: like a write, but the sectors must be present.
    pub(crate) fn modify(
        self,
        tags: &mut TagArray,
        (line, sectors): (u64, u8),
        counts: &mut CacheCounts,
    ) -> Stored {
        let Found { way, hit, pending } = tags.lookup(line, sectors);
        let fetch = sectors & !(hit | pending);
        let mut stored = Stored { way, pending, fetch, ..Stored::default() };
        if let Some(way) = way.filter(|_| hit != 0) {
            self.hit(tags, way, hit, &mut stored, counts);
        }
        stored
    }

    /// Sectors that writes waited for have arrived in `way`, if their line is present; true when
    /// the writes go to the next level.
    pub(crate) fn complete(self, tags: &mut TagArray, way: Option<usize>, sectors: u8) -> bool {
        match (self.hit, way) {
            (OnHit::Kept, Some(way)) => tags.mark_dirty(way, sectors),
            (OnHit::Invalidated, Some(way)) => tags.invalidate(way, sectors),
            (OnHit::Updated, _) | (_, None) => {}
        }
        self.hit != OnHit::Kept || way.is_none()
    }

    fn hit(
        self,
        tags: &mut TagArray,
        way: usize,
        sectors: u8,
        stored: &mut Stored,
        counts: &mut CacheCounts,
    ) {
        counts.write_hits += number(sectors);
        tags.touch(way);
        match self.hit {
            OnHit::Kept => {
                tags.mark_dirty(way, sectors);
                stored.kept |= sectors;
                return;
            }
            OnHit::Updated => {}
            OnHit::Invalidated => tags.invalidate(way, sectors),
        }
        stored.down |= sectors;
    }

    fn miss(
        self,
        tags: &mut TagArray,
        (line, sectors): (u64, u8),
        bytes: u32,
        stored: &mut Stored,
        counts: &mut CacheCounts,
    ) {
        let back = self.writes_back();
        if self.passes_misses() || self.miss == WriteMiss::Fetch && bytes != u32::MAX {
            stored.fetch |= sectors;
            return;
        }
        let partial = stored.way.map_or(0, |way| tags.partial(way, sectors));
        let hits = if self.fetchless_hits { sectors } else { partial };
        let place = match self.miss {
            WriteMiss::Around => None,
            WriteMiss::Lazy | WriteMiss::Fetch | WriteMiss::ThroughAndFetch => {
                tags.use_or_allocate(stored.way, line)
            }
        };
        if place.is_none() && back && self.miss != WriteMiss::Around {
            stored.refused |= sectors;
            return;
        }
        counts.write_hits += number(hits);
        counts.write_misses += number(sectors & !hits);
        *(if back && place.is_some() { &mut stored.kept } else { &mut stored.down }) |= sectors;
        let Some(way) = place else { return };
        if back {
            tags.mark_dirty(way, sectors);
        }
        let whole = tags.write_bytes(way, sectors, bytes);
        tags.validate(way, whole);
    }
}

/// How many sectors a mask has.
#[inline]
fn number(sectors: u8) -> u64 {
    u64::from(sectors.count_ones())
}
