//! The tag array of a sectored, set-associative cache: which line each way holds, the
//! states of its sectors, replacement and write-backs.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::bits::bits;
use crate::config::{AddressMap, Cache};
use gpumodel_core::units::{to_u32, to_usize};

use super::SetIndex;
use super::replacement::{Policy, Replacement};
use super::table::Table;

/// Initial room for write-backs: more than one look-up causes.
const WRITE_BACKS: usize = 16;

/// The states of the sectors of one way, one bit each.
#[derive(Clone, Copy, Debug)]
struct Line {
    valid: u8,
    pending: u8,
    dirty: u8,
    /// Some of its bytes were written without fetching the rest.
    partial: bool,
}

/// The sectors of a way without a line.
const EMPTY: Line = Line { valid: 0, pending: 0, dirty: 0, partial: false };

/// What a look-up of some sectors of a line found, one bit each; what is neither is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The way of the line, where it is present.
    pub(crate) way: Option<usize>,
    /// Sectors that are present.
    pub(crate) hit: u8,
    /// Sectors that are pending.
    pub(crate) pending: u8,
}

/// A sector that must be written to the next level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteBack {
    /// Byte address.
    pub(crate) address: u64,
    /// The written part of it, one bit for each 1/32.
    pub(crate) bytes: u32,
}

/// The lowest `room` bits of a mask.
#[inline]
pub(crate) fn lowest(mask: u8, room: u32) -> u8 {
    if mask.count_ones() <= room {
        return mask;
    }
    bits(mask).take(to_usize(room)).fold(0, |all, bit| all | 1 << bit)
}

/// The line number of a way without a line.
const INVALID: u64 = u64::MAX;

/// Up to so many ways a set is scanned: its numbers are contiguous, and a table would be
/// several times as large.
const SCANNED_WAYS: u32 = 32;

/// Bytes of a word of hints.
const HINTS: usize = 8;

/// The lowest bit of each byte of a word.
const ONES: u64 = 0x0101_0101_0101_0101;

/// Which line each way holds, set by set, and which way holds a line.
#[derive(Clone, Debug)]
struct WayTable {
    ways: usize,
    /// Lines with the largest number of ways.
    capacity: usize,
    numbers: Vec<u64>,
    /// A byte of each way's line, [`HINTS`] in a word, each set from a new word on: most
    /// ways of a set are ruled out together.
    hints: Vec<u64>,
    /// Words of hints of a set.
    hint_words: usize,
    /// Way of each line; `None` where sets are scanned.
    table: Option<Table>,
}

impl WayTable {
    /// For `sets` sets of at most `ways` ways; allocates nothing before [`WayTable::reset`].
    fn new(sets: u32, ways: u32) -> Self {
        Self {
            ways: 0,
            capacity: to_usize(sets) * to_usize(ways),
            numbers: Vec::new(),
            hints: Vec::new(),
            hint_words: 0,
            table: (ways > SCANNED_WAYS).then(|| Table::new(0)),
        }
    }

    /// Removes all lines and changes the number of ways.
    fn reset(&mut self, sets: u32, ways: u32) {
        self.ways = to_usize(ways);
        self.numbers.clear();
        self.numbers.resize(to_usize(sets) * self.ways, INVALID);
        self.hint_words = if self.table.is_none() { self.ways.div_ceil(HINTS) } else { 0 };
        self.hints.clear();
        self.hints.resize(to_usize(sets) * self.hint_words, 0);
        if let Some(table) = &mut self.table {
            table.reset(self.capacity);
        }
    }

    /// The way that holds `line`, whose set is `set()`.
    #[inline]
    fn find(&self, line: u64, set: impl FnOnce() -> u32) -> Option<usize> {
        if let Some(table) = &self.table {
            return table.get(line).map(to_usize);
        }
        let set = to_usize(set());
        let numbers = &self.numbers[set * self.ways..][..self.ways];
        let hints = &self.hints[set * self.hint_words..][..self.hint_words];
        let wanted = u64::from(hint(line)) * ONES;
        for (word, &hints) in hints.iter().enumerate() {
            let others = hints ^ wanted;
            // The highest bit of the bytes that are zero, and perhaps of some above them.
            let mut alike = others.wrapping_sub(ONES) & !others & (ONES << 7);
            while alike != 0 {
                let way = word * HINTS + alike.trailing_zeros() as usize / HINTS;
                if numbers.get(way) == Some(&line) {
                    return Some(set * self.ways + way);
                }
                alike &= alike - 1;
            }
        }
        None
    }

    /// Notes the line of a way in its hint.
    #[inline]
    fn note_hint(&mut self, way: usize, line: u64) {
        if self.hint_words == 0 {
            return;
        }
        let (set, place) = (way / self.ways, way % self.ways);
        let shift = 8 * (place % HINTS);
        let word = &mut self.hints[set * self.hint_words + place / HINTS];
        *word = *word & !(0xff << shift) | u64::from(hint(line)) << shift;
    }

    /// The line of a way that holds one.
    fn line(&self, way: usize) -> u64 {
        self.numbers[way]
    }

    /// Removes the line of a way.
    fn clear(&mut self, way: usize) {
        let old = std::mem::replace(&mut self.numbers[way], INVALID);
        if let Some(table) = self.table.as_mut().filter(|_| old != INVALID) {
            table.remove(old);
        }
    }

    /// Replaces the line of a way by `line`.
    fn put(&mut self, way: usize, line: u64) {
        let old = std::mem::replace(&mut self.numbers[way], line);
        self.note_hint(way, line);
        if let Some(table) = &mut self.table {
            if old != INVALID {
                table.remove(old);
            }
            table.insert(line, to_u32(way));
        }
    }
}

/// A byte of a line number that neighbours and lines of one set seldom share.
#[inline]
fn hint(line: u64) -> u8 {
    line.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]
}

/// Tags, sector states, replacement and write-backs of one cache.
#[derive(Clone, Debug)]
pub(crate) struct TagArray {
    index: SetIndex,
    sets: u32,
    ways: u32,
    line_shift: u32,
    lines: Vec<Line>,
    way_table: WayTable,
    replacement: Policy,
    /// Bytes of each sector that were written without fetching it; nothing before the first.
    written: Vec<u32>,
    /// Sectors to be written to the next level, oldest first.
    write_backs: VecDeque<WriteBack>,
    sectors: usize,
    sector_shift: u32,
    dirty_lines: u64,
    dirty_guard_percent: u64,
    /// Percent of the ways of a set that may be dirty at once, at least one way.
    dirty_percent: Option<u32>,
    /// Lines that were evicted, where that is asked for.
    evicted: Option<Vec<u64>>,
}

impl TagArray {
    /// An empty array with the geometry of `spec`. Dirty lines are spared while
    /// fewer than `dirty_guard_percent` of all lines are dirty.
    pub(crate) fn new(spec: &Cache, dirty_guard_percent: u32) -> Self {
        let mut array = Self::unused(spec, dirty_guard_percent);
        array.resize(spec.ways);
        array
    }

    /// The same without ways: it allocates nothing before [`TagArray::resize`].
    pub(crate) fn unused(spec: &Cache, dirty_guard_percent: u32) -> Self {
        Self {
            index: SetIndex::new(spec.sets, spec.hash, spec.line_bytes.trailing_zeros()),
            sets: spec.sets,
            ways: 0,
            line_shift: spec.line_bytes.trailing_zeros(),
            lines: Vec::new(),
            way_table: WayTable::new(spec.sets, spec.ways),
            replacement: Policy::new(spec.replacement),
            written: Vec::new(),
            write_backs: VecDeque::with_capacity(WRITE_BACKS),
            sectors: to_usize(spec.line_bytes / spec.sector_bytes),
            sector_shift: spec.sector_bytes.trailing_zeros(),
            dirty_lines: 0,
            dirty_guard_percent: u64::from(dirty_guard_percent),
            dirty_percent: spec.dirty_ways_percent,
            evicted: None,
        }
    }

    /// From now on, [`TagArray::next_evicted`] reports the lines that are evicted.
    pub(crate) fn report_evicted(&mut self) {
        self.evicted = Some(Vec::new());
    }

    /// The address of a line that was evicted, once.
    #[inline]
    pub(crate) fn next_evicted(&mut self) -> Option<u64> {
        self.evicted.as_mut()?.pop().map(|line| line << self.line_shift)
    }

    /// Indexes sets by the lines of one slice of `map`.
    pub(crate) fn index_within_slice(&mut self, map: Arc<AddressMap>) {
        self.index = self.index.clone().within_slice(map, self.line_shift);
    }

    /// Removes all contents and changes the number of ways, at most to that of the spec.
    pub(crate) fn resize(&mut self, ways: u32) {
        self.ways = ways;
        self.lines.clear();
        self.lines.resize(to_usize(self.sets) * to_usize(ways), EMPTY);
        self.replacement.reset(self.sets, ways);
        self.way_table.reset(self.sets, ways);
        self.written.clear();
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
        to_u32((address >> self.sector_shift) & (self.sectors as u64 - 1))
    }

    /// The sector of a byte address within its line, as one bit.
    #[inline]
    pub(crate) fn sector_bit(&self, address: u64) -> u8 {
        1 << self.sector_of(address)
    }

    /// The byte address of a sector of a line.
    pub(crate) fn address_of(&self, line: u64, sector: u32) -> u64 {
        (line << self.line_shift) + (u64::from(sector) << self.sector_shift)
    }

    /// Looks sectors of a line up, one bit each, without changing anything.
    #[inline]
    pub(crate) fn lookup(&self, line: u64, sectors: u8) -> Found {
        let way = self.find(line);
        let Some(entry) = way.map(|way| &self.lines[way]) else {
            return Found { way, hit: 0, pending: 0 };
        };
        let hit = sectors & entry.valid;
        Found { way, hit, pending: sectors & entry.pending & !hit }
    }

    /// Marks a way as just used.
    #[inline]
    pub(crate) fn touch(&mut self, way: usize) {
        self.replacement.used(way);
    }

    /// Touches the way of a line, or allocates one as [`TagArray::allocate`] does.
    #[inline]
    pub(crate) fn use_or_allocate(&mut self, way: Option<usize>, line: u64) -> Option<usize> {
        let Some(way) = way else { return self.allocate(line) };
        self.touch(way);
        Some(way)
    }

    /// Allocates a way for `line`, as used last. A line without a pending sector is evicted and
    /// its dirty sectors written back; `None` when every way of the set has pending sectors.
    pub(crate) fn allocate(&mut self, line: u64) -> Option<usize> {
        let way = self.victim(to_usize(self.index.of(line)))?;
        let old = self.lines[way];
        if old.dirty != 0 {
            self.dirty_lines -= 1;
            self.write_back_line(way);
        }
        if let Some(evicted) = &mut self.evicted {
            let line = self.way_table.line(way);
            evicted.extend((line != INVALID).then_some(line));
        }
        self.way_table.put(way, line);
        self.lines[way] = EMPTY;
        if old.partial {
            self.written[way * self.sectors..(way + 1) * self.sectors].fill(0);
        }
        self.replacement.filled(way);
        Some(way)
    }

    /// True when an allocation that finds no way changes those that follow.
    #[inline]
    pub(crate) fn refusal_counts(&self) -> bool {
        self.replacement.search_counts()
    }

    /// The way of a set to evict. Dirty lines are spared while few lines are dirty, unless the
    /// set has no other.
    fn victim(&mut self, set: usize) -> Option<usize> {
        let lines = &self.lines;
        let settled = |way: usize| lines[way].pending == 0;
        if self.dirty_lines * 100 < self.dirty_guard_percent * lines.len() as u64 {
            let clean = |way: usize| settled(way) && lines[way].dirty == 0;
            if let Some(way) = self.replacement.victim(set, clean) {
                return Some(way);
            }
        }
        self.replacement.victim(set, settled)
    }

    /// Writes the dirty sectors of a way back.
    fn write_back_line(&mut self, way: usize) {
        let Line { valid, dirty, .. } = self.lines[way];
        let number = self.way_table.line(way);
        for sector in 0..self.sectors {
            if dirty >> sector & 1 == 1 {
                let whole = valid >> sector & 1 == 1;
                let written = self.written.get(way * self.sectors + sector);
                let bytes = if whole { u32::MAX } else { written.copied().unwrap_or(0) };
                let inside = (sector as u64) << self.sector_shift;
                self.write_back((number << self.line_shift) + inside, bytes);
            }
        }
    }

    /// Writes `bytes` (one bit each) of the sector at `address` to the next level.
    pub(crate) fn write_back(&mut self, address: u64, bytes: u32) {
        self.write_backs.push_back(WriteBack { address, bytes });
    }

    /// The next sector to be written to the next level.
    #[inline]
    pub(crate) fn next_write_back(&mut self) -> Option<WriteBack> {
        self.write_backs.pop_front()
    }

    /// Drops the youngest sectors that are to be written, so that `left` stay.
    pub(crate) fn drop_write_backs(&mut self, left: usize) {
        self.write_backs.truncate(left);
    }

    /// Sectors to be written to the next level.
    pub(crate) fn write_backs(&self) -> usize {
        self.write_backs.len()
    }

    /// True when a sector is to be written to the next level.
    #[inline]
    pub(crate) fn has_write_backs(&self) -> bool {
        !self.write_backs.is_empty()
    }

    /// Writes back the dirty sectors of all lines but those whose data is `dead`, by their
    /// address; all lines are clean then.
    ///
    /// One way of every set after the other (assumed): neighbouring sets lie in several banks
    /// of the memory, but the lines of one set mostly in one bank, each in another row.
    pub(crate) fn flush(&mut self, dead: impl Fn(u64) -> bool) {
        let (sets, ways) = (to_usize(self.sets), to_usize(self.ways));
        for way in (0..ways).flat_map(|way| (0..sets).map(move |set| set * ways + way)) {
            if self.lines[way].dirty != 0 && !dead(self.way_table.line(way) << self.line_shift) {
                self.write_back_line(way);
            }
            self.lines[way].dirty = 0;
        }
        self.dirty_lines = 0;
    }

    /// Invalidates every line without a pending sector. None may be dirty.
    pub(crate) fn invalidate_settled(&mut self) {
        for way in 0..self.lines.len() {
            let Line { valid, pending, partial, .. } = self.lines[way];
            if pending == 0 && (valid != 0 || partial) {
                self.lines[way] = EMPTY;
                if partial {
                    self.written[way * self.sectors..(way + 1) * self.sectors].fill(0);
                }
                self.way_table.clear(way);
            }
        }
    }

    /// Marks sectors as pending.
    pub(crate) fn mark_pending(&mut self, way: usize, sectors: u8) {
        self.lines[way].pending |= sectors;
    }

    /// The data of sectors has arrived; returns the way of their line, if it is still present.
    pub(crate) fn fill(&mut self, line: u64, sectors: u8) -> Option<usize> {
        let way = self.find(line)?;
        let entry = &mut self.lines[way];
        entry.pending &= !sectors;
        entry.valid |= sectors;
        Some(way)
    }

    /// Marks sectors as readable.
    pub(crate) fn validate(&mut self, way: usize, sectors: u8) {
        self.lines[way].valid |= sectors;
    }

    /// Invalidates sectors, which are not dirty.
    pub(crate) fn invalidate(&mut self, way: usize, sectors: u8) {
        self.lines[way].valid &= !sectors;
    }

    /// Marks sectors as dirty.
    pub(crate) fn mark_dirty(&mut self, way: usize, sectors: u8) {
        let entry = &mut self.lines[way];
        let was_clean = entry.dirty == 0;
        entry.dirty |= sectors;
        self.dirty_lines += u64::from(was_clean);
        if let Some(percent) = self.dirty_percent.filter(|_| was_clean) {
            self.clean_one_beyond(self.ways * percent / 100, way);
        }
    }

    /// Writes one line of the set of `newest` back when more than `limit` are dirty; it stays
    /// as a clean line.
    fn clean_one_beyond(&mut self, limit: u32, newest: usize) {
        let ways = to_usize(self.ways);
        let set = newest / ways;
        let lines = &self.lines;
        let count = (set * ways..(set + 1) * ways).filter(|&way| lines[way].dirty != 0).count();
        if count <= to_usize(limit) {
            return;
        }
        let dirty = |way: &usize| *way != newest && lines[*way].dirty != 0;
        let first = self.replacement.victim(set, |way| dirty(&way)).filter(dirty);
        let mut all = set * ways..(set + 1) * ways;
        if let Some(way) = first.or_else(|| all.find(dirty)) {
            self.write_back_line(way);
            self.lines[way].dirty = 0;
            self.dirty_lines -= 1;
        }
    }

    /// Those of some sectors of which a part was written without fetching the rest.
    pub(crate) fn partial(&self, way: usize, sectors: u8) -> u8 {
        if !self.lines[way].partial {
            return 0;
        }
        let written = &self.written[way * self.sectors..];
        bits(sectors)
            .filter(|&sector| written[sector] != 0)
            .fold(0, |all, sector| all | 1 << sector)
    }

    /// Records that bytes (one bit each) of each of some sectors were written without fetching
    /// them; returns those of which all has been written.
    pub(crate) fn write_bytes(&mut self, way: usize, sectors: u8, bytes: u32) -> u8 {
        if self.written.is_empty() {
            self.written.resize(self.lines.len() * self.sectors, 0);
        }
        self.lines[way].partial = true;
        let mut whole = 0;
        for sector in bits(sectors) {
            let slot = &mut self.written[way * self.sectors + sector];
            *slot |= bytes;
            whole |= u8::from(*slot == u32::MAX) << sector;
        }
        whole
    }

    #[inline]
    fn find(&self, line: u64) -> Option<usize> {
        self.way_table.find(line, || self.index.of(line))
    }
}

#[cfg(test)]
mod tests {
    use super::{Found, TagArray, WriteBack};
    use crate::cache::naive::spec;
    use crate::config::Cache;

    #[test]
    fn a_sector_is_fetched_alone() {
        let mut tags = TagArray::new(&spec(4, 2), 0);
        let way = tags.allocate(8).unwrap();
        assert!(!tags.has_write_backs());
        tags.mark_pending(way, 0b10);
        let found = |hit, pending| Found { way: Some(way), hit, pending };
        assert_eq!(tags.lookup(8, 0b11), found(0, 0b10));
        assert_eq!(tags.fill(8, 0b10), Some(way));
        assert_eq!(tags.lookup(8, 0b11), found(0b10, 0));
        assert_eq!(tags.lookup(12, 0b1), Found { way: None, hit: 0, pending: 0 });
    }

    #[test]
    fn the_least_recently_used_line_leaves_with_its_dirty_sectors() {
        let mut tags = TagArray::new(&spec(1, 2), 0);
        let first = tags.allocate(1).unwrap();
        tags.validate(first, 0b1000);
        tags.mark_dirty(first, 0b1010);
        tags.write_bytes(first, 0b10, 0xff);
        let second = tags.allocate(2).unwrap();
        tags.touch(second);
        assert!(tags.allocate(3).is_some());
        let line = 128;
        assert_eq!(tags.next_write_back(), Some(WriteBack { address: line + 32, bytes: 0xff }));
        assert_eq!(tags.next_write_back(), Some(WriteBack { address: line + 96, bytes: u32::MAX }));
        assert_eq!(tags.next_write_back(), None);
    }

    #[test]
    fn lines_with_sectors_on_the_way_stay() {
        let mut tags = TagArray::new(&spec(1, 1), 0);
        let way = tags.allocate(1).unwrap();
        tags.mark_pending(way, 1);
        assert!(tags.allocate(2).is_none());
        tags.fill(1, 1);
        assert!(tags.allocate(2).is_some());
    }

    #[test]
    fn a_sector_written_in_parts_is_whole_after_all_its_bytes() {
        let mut tags = TagArray::new(&spec(1, 1), 0);
        let way = tags.allocate(1).unwrap();
        assert_eq!(tags.write_bytes(way, 0b11, 0xffff), 0);
        assert_eq!(tags.partial(way, 0b111), 0b11);
        assert_eq!(tags.write_bytes(way, 0b101, 0xffff_0000), 0b1);
    }

    #[test]
    fn a_flush_sends_what_is_alive_once() {
        let mut tags = TagArray::new(&spec(4, 2), 0);
        for line in [3, 9] {
            let way = tags.allocate(line).unwrap();
            tags.validate(way, 1);
            tags.mark_dirty(way, 1);
        }
        tags.flush(|address| address == 9 * 128);
        assert_eq!(tags.next_write_back(), Some(WriteBack { address: 3 * 128, bytes: u32::MAX }));
        tags.flush(|_| false);
        assert_eq!(tags.next_write_back(), None);
    }

    #[test]
    fn a_flush_takes_one_way_of_every_set_after_the_other() {
        let mut tags = TagArray::new(&spec(4, 2), 0);
        for line in [3, 7, 2] {
            let way = tags.allocate(line).unwrap();
            tags.validate(way, 1);
            tags.mark_dirty(way, 1);
        }
        tags.flush(|_| false);
        let left = std::iter::from_fn(|| tags.next_write_back())
            .map(|write_back| write_back.address / 128);
        assert_eq!(left.collect::<Vec<_>>(), [2, 3, 7], "the second way of set 3 is last");
    }

    #[test]
    fn beyond_the_limit_the_oldest_dirty_line_is_written_back_and_stays() {
        let limited = Cache { dirty_ways_percent: Some(50), ..spec(1, 4) };
        let mut tags = TagArray::new(&limited, 0);
        for line in 1..=3 {
            let way = tags.allocate(line).unwrap();
            tags.validate(way, 1);
            tags.mark_dirty(way, 1);
            tags.mark_dirty(way, 1);
        }
        assert_eq!(tags.next_write_back(), Some(WriteBack { address: 128, bytes: u32::MAX }));
        assert_eq!(tags.next_write_back(), None, "two may stay dirty");
        assert_eq!(tags.lookup(1, 1).hit, 1, "it is clean, not gone");
        let way = tags.lookup(1, 1).way.unwrap();
        tags.mark_dirty(way, 1);
        assert_eq!(tags.next_write_back(), Some(WriteBack { address: 256, bytes: u32::MAX }));
    }

    #[test]
    fn dirty_lines_are_spared_while_they_are_few() {
        let mut tags = TagArray::new(&spec(2, 2), 50);
        let way = tags.allocate(0).unwrap();
        tags.validate(way, 1);
        tags.mark_dirty(way, 1);
        tags.allocate(2).unwrap();
        tags.allocate(4).unwrap();
        assert_eq!(tags.lookup(0, 1).hit, 1, "one of four lines is dirty");
        let way = tags.lookup(4, 1).way.unwrap();
        tags.mark_dirty(way, 1);
        tags.allocate(6).unwrap();
        assert_eq!(tags.lookup(0, 1).way, None, "two of four are");
    }
}
