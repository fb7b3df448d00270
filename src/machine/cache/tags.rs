//! The tag array of a sectored, set-associative cache with LRU replacement.

use crate::spec::Cache;
use crate::units::{SECTOR_BYTES, to_u32, to_usize};

use super::SetIndex;
use super::table::Table;

const INVALID: u64 = u64::MAX;

/// One way: a tag with the states of its sectors, one bit each.
#[derive(Clone, Copy, Debug)]
struct Line {
    number: u64,
    /// Neighbours in the set's order of use: the next older, the next younger.
    older: u32,
    younger: u32,
    valid: u8,
    pending: u8,
    dirty: u8,
}

const NONE: u32 = u32::MAX;

/// What a look-up found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The sector is there.
    Hit,
    /// The line is there and its sector is on the way.
    Pending,
    /// The line is there, the sector is not.
    SectorMiss,
    /// No such line.
    LineMiss,
}

/// A line that made room: the dirty sectors must be written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Evicted {
    /// Line number.
    pub(crate) line: u64,
    /// Dirty sectors, bit 0 is the lowest address.
    pub(crate) dirty: u8,
}

/// Tags, sector states and replacement of one cache.
#[derive(Debug)]
pub(crate) struct TagArray {
    index: SetIndex,
    sets: u32,
    ways: u32,
    line_shift: u32,
    lines: Vec<Line>,
    /// Way of each line that is there.
    places: Table,
    /// By set: the least and the most recently used way.
    ends: Vec<(u32, u32)>,
    /// Bytes of each sector that were written without fetching it.
    written: Vec<u32>,
    sectors: usize,
    dirty_lines: u64,
    dirty_guard_percent: u64,
}

impl TagArray {
    /// An empty array with the geometry of `spec`. Dirty lines are spared while
    /// fewer than `dirty_guard_percent` of all lines are dirty.
    pub(crate) fn new(spec: &Cache, dirty_guard_percent: u32) -> Self {
        let mut array = Self {
            index: SetIndex::new(spec.sets, spec.hash),
            sets: spec.sets,
            ways: spec.ways,
            line_shift: spec.line_bytes.trailing_zeros(),
            lines: Vec::new(),
            places: Table::new(to_usize(spec.sets) * to_usize(spec.ways)),
            ends: Vec::new(),
            written: Vec::new(),
            sectors: to_usize(u64::from(spec.line_bytes) / SECTOR_BYTES),
            dirty_lines: 0,
            dirty_guard_percent: u64::from(dirty_guard_percent),
        };
        array.resize(spec.ways);
        array
    }

    /// Drops all contents and changes the number of ways, at most to that at first.
    pub(crate) fn resize(&mut self, ways: u32) {
        self.ways = ways;
        let last = ways - 1;
        let way = |number: u32| {
            let (set, place) = (number / ways * ways, number % ways);
            Line {
                number: INVALID,
                older: if place == 0 { NONE } else { set + place - 1 },
                younger: if place == last { NONE } else { set + place + 1 },
                valid: 0,
                pending: 0,
                dirty: 0,
            }
        };
        self.lines.clear();
        self.lines.extend((0..self.sets * ways).map(way));
        self.ends.clear();
        self.ends.extend((0..self.sets).map(|set| (set * ways, set * ways + last)));
        self.places.clear();
        self.written.clear();
        self.written.resize(self.lines.len() * self.sectors, 0);
        self.dirty_lines = 0;
    }

    /// The number of ways now.
    pub(crate) fn ways(&self) -> u32 {
        self.ways
    }

    /// The line number of a byte address.
    pub(crate) fn line_of(&self, address: u64) -> u64 {
        address >> self.line_shift
    }

    /// The sector of a byte address within its line.
    pub(crate) fn sector_of(&self, address: u64) -> u32 {
        to_u32((address / SECTOR_BYTES) & (self.sectors as u64 - 1))
    }

    /// Looks a sector up without changing anything; the way is given when the
    /// line is there.
    pub(crate) fn look(&self, line: u64, sector: u32) -> (Found, Option<usize>) {
        let Some(way) = self.find(line) else { return (Found::LineMiss, None) };
        let entry = &self.lines[way];
        let bit = 1_u8 << sector;
        let found = if entry.valid & bit != 0 {
            Found::Hit
        } else if entry.pending & bit != 0 {
            Found::Pending
        } else {
            Found::SectorMiss
        };
        (found, Some(way))
    }

    /// Marks a way as just used.
    pub(crate) fn touch(&mut self, way: usize) {
        let number = to_u32(way);
        let set = way / to_usize(self.ways);
        let (oldest, youngest) = self.ends[set];
        if youngest == number {
            return;
        }
        let Line { older, younger, .. } = self.lines[way];
        self.lines[to_usize(younger)].older = older;
        if oldest == number {
            self.ends[set].0 = younger;
        } else {
            self.lines[to_usize(older)].younger = younger;
        }
        self.lines[to_usize(youngest)].younger = number;
        self.ends[set].1 = number;
        let line = &mut self.lines[way];
        (line.older, line.younger) = (youngest, NONE);
    }

    /// Takes a way for `line`; the least recently used line without a pending
    /// sector makes room. `None` when every way of the set has pending sectors.
    pub(crate) fn allocate(&mut self, line: u64) -> Option<(usize, Option<Evicted>)> {
        let guard = self.dirty_lines * 100 < self.dirty_guard_percent * self.lines.len() as u64;
        let way = self.victim(to_usize(self.index.of(line)), guard)?;
        let old = self.lines[way];
        let evicted = (old.number != INVALID && old.dirty != 0)
            .then_some(Evicted { line: old.number, dirty: old.dirty });
        self.dirty_lines -= u64::from(old.dirty != 0);
        if old.number != INVALID {
            self.places.remove(old.number);
        }
        self.places.insert(line, to_u32(way));
        self.lines[way] = Line { number: line, valid: 0, pending: 0, dirty: 0, ..old };
        self.written[way * self.sectors..(way + 1) * self.sectors].fill(0);
        self.touch(way);
        Some((way, evicted))
    }

    /// Marks a sector as on its way.
    pub(crate) fn expect(&mut self, way: usize, sector: u32) {
        self.lines[way].pending |= 1 << sector;
    }

    /// A sector's data has come; nothing happens when its line is gone.
    pub(crate) fn fill(&mut self, line: u64, sector: u32) {
        if let Some(way) = self.find(line) {
            let entry = &mut self.lines[way];
            entry.pending &= !(1 << sector);
            entry.valid |= 1 << sector;
        }
    }

    /// Marks a sector as readable.
    pub(crate) fn validate(&mut self, way: usize, sector: u32) {
        self.lines[way].valid |= 1 << sector;
    }

    /// Marks a sector as no longer there.
    pub(crate) fn invalidate(&mut self, way: usize, sector: u32) {
        self.lines[way].valid &= !(1 << sector);
    }

    /// Marks a sector as dirty.
    pub(crate) fn soil(&mut self, way: usize, sector: u32) {
        let entry = &mut self.lines[way];
        self.dirty_lines += u64::from(entry.dirty == 0);
        entry.dirty |= 1 << sector;
    }

    /// True when part of the sector was written without fetching the rest.
    pub(crate) fn partly_written(&self, way: usize, sector: u32) -> bool {
        self.written[way * self.sectors + to_usize(sector)] != 0
    }

    /// Records that bytes (one bit each) of a sector were written without
    /// fetching it; true when the whole sector has been.
    pub(crate) fn write_bytes(&mut self, way: usize, sector: u32, bytes: u32) -> bool {
        let slot = &mut self.written[way * self.sectors + to_usize(sector)];
        *slot |= bytes;
        *slot == u32::MAX
    }

    /// The least recently used way of a set that may be replaced.
    fn victim(&self, set: usize, spare_dirty: bool) -> Option<usize> {
        let mut way = self.ends[set].0;
        while way != NONE {
            let line = &self.lines[to_usize(way)];
            if line.pending == 0 && !(spare_dirty && line.dirty != 0) {
                return Some(to_usize(way));
            }
            way = line.younger;
        }
        None
    }

    #[inline]
    fn find(&self, line: u64) -> Option<usize> {
        self.places.get(line).map(to_usize)
    }
}

#[cfg(test)]
mod tests {
    use super::{Evicted, Found, TagArray};
    use crate::spec::{AllocatePolicy, Cache, SetHash, WritePolicy};

    fn spec(sets: u32, ways: u32) -> Cache {
        Cache {
            sets,
            ways,
            line_bytes: 128,
            hash: SetHash::Linear,
            mshr_entries: 4,
            mshr_merge: 4,
            write: WritePolicy::WriteBack,
            allocate: AllocatePolicy::OnMiss,
        }
    }

    #[test]
    fn a_sector_is_fetched_alone() {
        let mut tags = TagArray::new(&spec(4, 2), 0);
        let (way, evicted) = tags.allocate(8).unwrap();
        assert_eq!(evicted, None);
        tags.expect(way, 1);
        assert_eq!(tags.look(8, 1).0, Found::Pending);
        tags.fill(8, 1);
        assert_eq!(tags.look(8, 1).0, Found::Hit);
        assert_eq!(tags.look(8, 0).0, Found::SectorMiss);
        assert_eq!(tags.look(12, 0).0, Found::LineMiss);
    }

    #[test]
    fn the_least_recently_used_line_leaves_with_its_dirty_sectors() {
        let mut tags = TagArray::new(&spec(1, 2), 0);
        let (first, _) = tags.allocate(1).unwrap();
        tags.validate(first, 3);
        tags.soil(first, 3);
        let (second, _) = tags.allocate(2).unwrap();
        tags.touch(second);
        assert_eq!(tags.allocate(3).unwrap().1, Some(Evicted { line: 1, dirty: 0b1000 }));
    }

    #[test]
    fn lines_with_sectors_on_the_way_stay() {
        let mut tags = TagArray::new(&spec(1, 1), 0);
        let (way, _) = tags.allocate(1).unwrap();
        tags.expect(way, 0);
        assert!(tags.allocate(2).is_none());
        tags.fill(1, 0);
        assert!(tags.allocate(2).is_some());
    }

    #[test]
    fn a_sector_written_in_parts_is_whole_after_all_its_bytes() {
        let mut tags = TagArray::new(&spec(1, 1), 0);
        let (way, _) = tags.allocate(1).unwrap();
        assert!(!tags.write_bytes(way, 0, 0xffff));
        assert!(tags.partly_written(way, 0));
        assert!(tags.write_bytes(way, 0, 0xffff_0000));
    }
}
