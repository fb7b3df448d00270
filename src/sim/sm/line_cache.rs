//! A set-associative cache of whole lines with LRU replacement. Lines have
//! small numbers, so that presence is one bit per line.

use gpumodel_core::units::to_usize;

use crate::cache::LineOrder;

const NONE: u32 = u32::MAX;

/// The cache.
#[derive(Debug)]
pub(super) struct LineCache {
    sets: u32,
    ways: usize,
    /// The line in each way, set by set.
    lines: Vec<u32>,
    order: LineOrder,
    /// One bit per line: it is present.
    there: Vec<u64>,
    /// A line has had to leave: from now on the order of use matters.
    crowded: bool,
}

impl LineCache {
    /// An empty cache of `bytes` in `ways`.
    pub(super) fn new(bytes: u32, ways: u32, line_bytes: u32) -> Self {
        let sets = bytes / line_bytes / ways;
        Self {
            sets,
            ways: to_usize(ways),
            lines: vec![NONE; to_usize(sets) * to_usize(ways)],
            order: LineOrder::new(sets, ways),
            there: Vec::new(),
            crowded: false,
        }
    }

    /// True when the line is present.
    pub(super) fn holds(&self, line: u32) -> bool {
        self.there.get(to_usize(line / 64)).is_some_and(|word| word >> (line % 64) & 1 == 1)
    }

    /// True when all lines from `first` to `last` are present.
    pub(super) fn holds_all(&self, first: u32, last: u32) -> bool {
        let (word, length) = (first / 64, last.wrapping_sub(first));
        if word != last / 64 || length >= 64 {
            return (first..=last).all(|line| self.holds(line));
        }
        let mask = (u64::MAX >> (63 - length)) << (first % 64);
        self.there.get(to_usize(word)).is_some_and(|bits| bits & mask == mask)
    }

    /// Notes that the lines from `first` to `last`, which are present, are used.
    pub(super) fn touch(&mut self, first: u32, last: u32) {
        if !self.crowded {
            return;
        }
        for line in first..=last {
            let start = self.set(line) * self.ways;
            let ways = &self.lines[start..start + self.ways];
            if let Some(way) = ways.iter().position(|&other| other == line) {
                self.order.move_to_youngest(start + way);
            }
        }
    }

    /// Puts a line in; the least recently used one of its set makes room.
    pub(super) fn fill(&mut self, line: u32) {
        if self.holds(line) {
            return;
        }
        let way = self.order.oldest(self.set(line), |_| true).expect("a set has ways");
        self.order.move_to_youngest(way);
        let old = std::mem::replace(&mut self.lines[way], line);
        if old != NONE {
            self.crowded = true;
            self.there[to_usize(old / 64)] &= !(1 << (old % 64));
        }
        let word = to_usize(line / 64);
        if self.there.len() <= word {
            self.there.resize(word + 1, 0);
        }
        self.there[word] |= 1 << (line % 64);
    }

    fn set(&self, line: u32) -> usize {
        to_usize(line % self.sets)
    }
}

#[cfg(test)]
mod tests {
    use super::LineCache;

    #[test]
    fn the_least_recently_used_line_of_a_full_set_leaves() {
        let mut cache = LineCache::new(512, 2, 128);
        for line in [0, 2, 1, 4] {
            cache.fill(line);
        }
        assert!(!cache.holds(0) && cache.holds(1) && cache.holds(2) && cache.holds(4));
        cache.touch(2, 2);
        cache.fill(6);
        assert!(cache.holds(2) && !cache.holds(4) && cache.holds(6));
    }

    #[test]
    fn a_run_of_lines_is_there_when_each_of_them_is() {
        let mut cache = LineCache::new(256 * 128, 256, 128);
        (60..70).chain(128..192).for_each(|line| cache.fill(line));
        assert!(cache.holds_all(60, 69) && cache.holds_all(128, 191) && cache.holds_all(61, 61));
        assert!(!cache.holds_all(59, 60) && !cache.holds_all(69, 70));
        assert!(!cache.holds_all(128, 192) && !cache.holds_all(4000, 4000));
    }
}
