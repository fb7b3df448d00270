//! Which line each way holds, and where a line is.

use gpumodel_core::units::{to_u32, to_usize};

use super::table::Table;

/// The number of a line that is not there.
const INVALID: u64 = u64::MAX;

/// Ways of a set up to which it is read through: its numbers lie side by side,
/// and a table would be several times as large.
const SCANNED: u32 = 32;

/// The lines of all ways, set by set.
#[derive(Clone, Debug)]
pub(super) struct Places {
    ways: usize,
    /// Lines that fit with the most ways.
    most: usize,
    numbers: Vec<u64>,
    /// Way of each line; absent where sets are read through.
    table: Option<Table>,
}

impl Places {
    /// For `sets` sets of at most `ways` ways; takes no room before
    /// [`Places::reset`].
    pub(super) fn new(sets: u32, ways: u32) -> Self {
        Self {
            ways: 0,
            most: to_usize(sets) * to_usize(ways),
            numbers: Vec::new(),
            table: (ways > SCANNED).then(|| Table::new(0)),
        }
    }

    /// Forgets all lines and changes the number of ways.
    pub(super) fn reset(&mut self, sets: u32, ways: u32) {
        self.ways = to_usize(ways);
        self.numbers.clear();
        self.numbers.resize(to_usize(sets) * self.ways, INVALID);
        if let Some(table) = &mut self.table {
            table.reset(self.most);
        }
    }

    /// The way that holds `line`, which belongs to the set that `set` tells.
    #[inline]
    pub(super) fn find(&self, line: u64, set: impl FnOnce() -> u32) -> Option<usize> {
        if let Some(table) = &self.table {
            return table.get(line).map(to_usize);
        }
        let first = to_usize(set()) * self.ways;
        let numbers = &self.numbers[first..first + self.ways];
        numbers.iter().position(|&number| number == line).map(|way| first + way)
    }

    /// The line of a way that holds one.
    pub(super) fn line(&self, way: usize) -> u64 {
        self.numbers[way]
    }

    /// A way holds nothing any more.
    pub(super) fn clear(&mut self, way: usize) {
        let old = std::mem::replace(&mut self.numbers[way], INVALID);
        if let Some(table) = self.table.as_mut().filter(|_| old != INVALID) {
            table.remove(old);
        }
    }

    /// Puts `line` into a way in place of what it held.
    pub(super) fn put(&mut self, way: usize, line: u64) {
        let old = std::mem::replace(&mut self.numbers[way], line);
        if let Some(table) = &mut self.table {
            if old != INVALID {
                table.remove(old);
            }
            table.insert(line, to_u32(way));
        }
    }
}
