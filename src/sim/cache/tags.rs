//! The tag array of a sectored, set-associative cache.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::config::{AddressMap, Cache};
use gpumodel_core::units::{to_u32, to_usize};

use super::SetIndex;
use super::places::Places;
use super::replacement::{Replacement, Replacing};

/// Places for leaving sectors at first: more than one look-up makes leave.
const FEW: usize = 16;

/// The states of the sectors of one way, one bit each.
#[derive(Clone, Copy, Debug)]
struct Line {
    valid: u8,
    pending: u8,
    dirty: u8,
    /// Some of its bytes were written without fetching the rest.
    parted: bool,
}

/// A way that holds nothing.
const EMPTY: Line = Line { valid: 0, pending: 0, dirty: 0, parted: false };

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

/// A sector that must be written to the next level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaving {
    /// Byte address.
    pub(crate) address: u64,
    /// What is written of it, one bit for each 1/32.
    pub(crate) bytes: u32,
}

/// Tags, sector states and replacement of one cache, and what leaves it.
#[derive(Clone, Debug)]
pub(crate) struct TagArray {
    index: SetIndex,
    sets: u32,
    ways: u32,
    line_shift: u32,
    lines: Vec<Line>,
    places: Places,
    replacing: Replacing,
    /// Bytes of each sector that were written without fetching it.
    written: Vec<u32>,
    /// Written sectors on their way out, oldest first.
    leaving: VecDeque<Leaving>,
    sectors: usize,
    sector_shift: u32,
    dirty_lines: u64,
    dirty_guard_percent: u64,
    /// Percent of the ways of a set that may be dirty at once; at least one may.
    dirty_percent: Option<u32>,
}

impl TagArray {
    /// An empty array with the geometry of `spec`. Dirty lines are spared while
    /// fewer than `dirty_guard_percent` of all lines are dirty.
    pub(crate) fn new(spec: &Cache, dirty_guard_percent: u32) -> Self {
        let mut array = Self::unused(spec, dirty_guard_percent);
        array.resize(spec.ways);
        array
    }

    /// The same without ways: it takes no room before [`TagArray::resize`].
    pub(crate) fn unused(spec: &Cache, dirty_guard_percent: u32) -> Self {
        Self {
            index: SetIndex::new(spec.sets, spec.hash),
            sets: spec.sets,
            ways: 0,
            line_shift: spec.line_bytes.trailing_zeros(),
            lines: Vec::new(),
            places: Places::new(spec.sets, spec.ways),
            replacing: Replacing::new(spec.replacement),
            written: Vec::new(),
            leaving: VecDeque::with_capacity(FEW),
            sectors: to_usize(spec.line_bytes / spec.sector_bytes),
            sector_shift: spec.sector_bytes.trailing_zeros(),
            dirty_lines: 0,
            dirty_guard_percent: u64::from(dirty_guard_percent),
            dirty_percent: spec.dirty_ways_percent,
        }
    }

    /// Looks sets up as lines of one slice of `map`.
    pub(crate) fn lie_within_slice(&mut self, map: Arc<AddressMap>) {
        self.index = self.index.clone().within_slice(map, self.line_shift);
    }

    /// Forgets all contents and changes the number of ways, at most to that at first.
    pub(crate) fn resize(&mut self, ways: u32) {
        self.ways = ways;
        self.lines.clear();
        self.lines.resize(to_usize(self.sets) * to_usize(ways), EMPTY);
        self.replacing.reset(self.sets, ways);
        self.places.reset(self.sets, ways);
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
        to_u32((address >> self.sector_shift) & (self.sectors as u64 - 1))
    }

    /// Looks a sector up without changing anything; the way is given when the
    /// line is there.
    pub(crate) fn lookup(&self, line: u64, sector: u32) -> (Found, Option<usize>) {
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
    #[inline]
    pub(crate) fn touch(&mut self, way: usize) {
        self.replacing.used(way);
    }

    /// Uses the way of a line, or takes one for it as [`TagArray::allocate`] does.
    #[inline]
    pub(crate) fn use_or_allocate(&mut self, way: Option<usize>, line: u64) -> Option<usize> {
        let Some(way) = way else { return self.allocate(line) };
        self.touch(way);
        Some(way)
    }

    /// Takes a way for `line`, which is thereby used; a line without a pending
    /// sector makes room, whose dirty sectors leave. `None` when every way of the set has pending sectors.
    pub(crate) fn allocate(&mut self, line: u64) -> Option<usize> {
        let way = self.victim(to_usize(self.index.of(line)))?;
        let old = self.lines[way];
        if old.dirty != 0 {
            self.dirty_lines -= 1;
            self.leave(way);
        }
        self.places.put(way, line);
        self.lines[way] = EMPTY;
        if old.parted {
            self.written[way * self.sectors..(way + 1) * self.sectors].fill(0);
        }
        self.replacing.filled(way);
        Some(way)
    }

    /// The way of a set that makes room. Dirty lines are spared while few lines
    /// are dirty, unless the set has nothing else.
    fn victim(&mut self, set: usize) -> Option<usize> {
        let lines = &self.lines;
        let settled = |way: usize| lines[way].pending == 0;
        if self.dirty_lines * 100 < self.dirty_guard_percent * lines.len() as u64 {
            let clean = |way: usize| settled(way) && lines[way].dirty == 0;
            if let Some(way) = self.replacing.victim(set, clean) {
                return Some(way);
            }
        }
        self.replacing.victim(set, settled)
    }

    /// Sends the dirty sectors of a way down.
    fn leave(&mut self, way: usize) {
        let Line { valid, dirty, .. } = self.lines[way];
        let number = self.places.line(way);
        for sector in 0..self.sectors {
            if dirty >> sector & 1 == 1 {
                let whole = valid >> sector & 1 == 1;
                let written = self.written[way * self.sectors + sector];
                let bytes = if whole { u32::MAX } else { written };
                let inside = (sector as u64) << self.sector_shift;
                self.send_down((number << self.line_shift) + inside, bytes);
            }
        }
    }

    /// Sends `bytes` (one bit each) of the sector at `address` down.
    pub(crate) fn send_down(&mut self, address: u64, bytes: u32) {
        self.leaving.push_back(Leaving { address, bytes });
    }

    /// The next sector to be written to the next level.
    #[inline]
    pub(crate) fn next_leaving(&mut self) -> Option<Leaving> {
        self.leaving.pop_front()
    }

    /// True when a sector is to be written to the next level.
    #[inline]
    pub(crate) fn has_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Sends the dirty sectors of all lines down but of those whose data is
    /// `dead`, by their address; they are clean then.
    ///
    /// One way of every set after the other (assumed): neighbouring sets lie in several
    /// banks of the memory, and the lines of one set mostly in one, each in a row of its
    /// own, so that set by set a row would be opened after the other.
    pub(crate) fn flush(&mut self, dead: impl Fn(u64) -> bool) {
        let (sets, ways) = (to_usize(self.sets), to_usize(self.ways));
        for way in (0..ways).flat_map(|way| (0..sets).map(move |set| set * ways + way)) {
            if self.lines[way].dirty != 0 && !dead(self.places.line(way) << self.line_shift) {
                self.leave(way);
            }
            self.lines[way].dirty = 0;
        }
        self.dirty_lines = 0;
    }

    /// Forgets every line without a pending sector. None may be dirty.
    pub(crate) fn forget_settled(&mut self) {
        for way in 0..self.lines.len() {
            let Line { valid, pending, parted, .. } = self.lines[way];
            if pending == 0 && (valid != 0 || parted) {
                self.lines[way] = EMPTY;
                self.written[way * self.sectors..(way + 1) * self.sectors].fill(0);
                self.places.clear(way);
            }
        }
    }

    /// Marks a sector as on its way.
    pub(crate) fn expect(&mut self, way: usize, sector: u32) {
        self.lines[way].pending |= 1 << sector;
    }

    /// A sector's data has come: the way of its line. Nothing happens when the
    /// line is gone.
    pub(crate) fn fill(&mut self, line: u64, sector: u32) -> Option<usize> {
        let way = self.find(line)?;
        let entry = &mut self.lines[way];
        entry.pending &= !(1 << sector);
        entry.valid |= 1 << sector;
        Some(way)
    }

    /// Marks a sector as readable.
    pub(crate) fn validate(&mut self, way: usize, sector: u32) {
        self.lines[way].valid |= 1 << sector;
    }

    /// Marks a sector as no longer there. It is not dirty.
    pub(crate) fn invalidate(&mut self, way: usize, sector: u32) {
        self.lines[way].valid &= !(1 << sector);
    }

    /// Marks a sector as dirty.
    pub(crate) fn soil(&mut self, way: usize, sector: u32) {
        let entry = &mut self.lines[way];
        let fresh = entry.dirty == 0;
        entry.dirty |= 1 << sector;
        self.dirty_lines += u64::from(fresh);
        if let Some(percent) = self.dirty_percent.filter(|_| fresh) {
            self.clean_one_beyond(self.ways * percent / 100, way);
        }
    }

    /// Writes one line of the set of `newest` back when more than `limit` are
    /// dirty; it stays, clean.
    fn clean_one_beyond(&mut self, limit: u32, newest: usize) {
        let ways = to_usize(self.ways);
        let set = newest / ways;
        let lines = &self.lines;
        let soiled = (set * ways..(set + 1) * ways).filter(|&way| lines[way].dirty != 0).count();
        if soiled <= to_usize(limit) {
            return;
        }
        let dirty = |way: &usize| *way != newest && lines[*way].dirty != 0;
        let first = self.replacing.victim(set, |way| dirty(&way)).filter(dirty);
        let mut all = set * ways..(set + 1) * ways;
        if let Some(way) = first.or_else(|| all.find(dirty)) {
            self.leave(way);
            self.lines[way].dirty = 0;
            self.dirty_lines -= 1;
        }
    }

    /// True when part of the sector was written without fetching the rest.
    pub(crate) fn partly_written(&self, way: usize, sector: u32) -> bool {
        self.lines[way].parted && self.written[way * self.sectors + to_usize(sector)] != 0
    }

    /// Records that bytes (one bit each) of a sector were written without
    /// fetching it; true when the whole sector has been.
    pub(crate) fn write_bytes(&mut self, way: usize, sector: u32, bytes: u32) -> bool {
        self.lines[way].parted = true;
        let slot = &mut self.written[way * self.sectors + to_usize(sector)];
        *slot |= bytes;
        *slot == u32::MAX
    }

    #[inline]
    fn find(&self, line: u64) -> Option<usize> {
        self.places.find(line, || self.index.of(line))
    }
}
