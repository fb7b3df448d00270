//! Sectors that CTAs outside a run keep in the L2.

use gpumodel_core::units::SECTOR_BYTES;
use rustc_hash::FxHashMap;

/// Sectors of one page of the set: a bit each.
const PAGE_SECTORS: u64 = 128;

/// Sectors whose miss belongs to CTAs outside the run: of the same grid or of earlier
/// launches. A request for one of them is a hit whatever the slice holds, and occupies no
/// room in it: a run of part of a kernel on part of a machine has its share of the room.
#[derive(Clone, Debug, Default)]
pub struct PresumedL2Hits {
    pages: FxHashMap<u64, u128>,
}

impl PresumedL2Hits {
    /// Adds the sector with the number `sector` (byte address over 32).
    pub fn add(&mut self, sector: u64) {
        *self.pages.entry(sector / PAGE_SECTORS).or_default() |= 1 << (sector % PAGE_SECTORS);
    }

    /// Whether the set has a sector of the `bytes` from a byte address on, which must lie in
    /// one aligned line of 128.
    #[must_use]
    #[inline]
    pub fn holds(&self, address: u64, bytes: u64) -> bool {
        let sector = address / SECTOR_BYTES;
        let page = self.pages.get(&(sector / PAGE_SECTORS));
        let mask = (1 << bytes.div_ceil(SECTOR_BYTES)) - 1;
        page.is_some_and(|bits| bits >> (sector % PAGE_SECTORS) & mask != 0)
    }

    /// True when the set has no sector.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::PresumedL2Hits;

    #[test]
    fn it_holds_what_was_added_and_no_neighbour() {
        let mut set = PresumedL2Hits::default();
        assert!(set.is_empty() && !set.holds(0, 32));
        set.add(127);
        set.add(128);
        assert!(set.holds(127 * 32, 32) && set.holds(127 * 32 + 31, 1) && set.holds(128 * 32, 32));
        assert!(!set.holds(126 * 32 + 31, 1) && !set.holds(129 * 32, 32));
        assert!(set.holds(124 * 32, 128) && !set.holds(120 * 32, 128));
    }
}
