//! A map from 64-bit keys to 32-bit numbers: open addressing, no iteration.

use crate::units::to_usize;

const EMPTY: u64 = u64::MAX;

/// The map. The key `u64::MAX` is not allowed.
#[derive(Debug)]
pub(crate) struct Table {
    keys: Vec<u64>,
    values: Vec<u32>,
    mask: usize,
}

impl Table {
    /// A map for up to `capacity` keys.
    pub(crate) fn new(capacity: usize) -> Self {
        let slots = capacity.max(1).next_power_of_two() * 2;
        Self { keys: vec![EMPTY; slots], values: vec![0; slots], mask: slots - 1 }
    }

    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        self.keys.fill(EMPTY);
    }

    /// The number of a key.
    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<u32> {
        self.find(key).map(|slot| self.values[slot])
    }

    /// Adds a key that is not there.
    pub(crate) fn insert(&mut self, key: u64, value: u32) {
        let mut slot = self.home(key);
        while self.keys[slot] != EMPTY {
            slot = (slot + 1) & self.mask;
        }
        self.keys[slot] = key;
        self.values[slot] = value;
    }

    /// Removes a key and closes the gap in its probe run.
    pub(crate) fn remove(&mut self, key: u64) -> Option<u32> {
        let mut hole = self.find(key)?;
        let value = self.values[hole];
        let mut slot = hole;
        loop {
            slot = (slot + 1) & self.mask;
            if self.keys[slot] == EMPTY {
                break;
            }
            let from_home = slot.wrapping_sub(self.home(self.keys[slot])) & self.mask;
            let from_hole = slot.wrapping_sub(hole) & self.mask;
            if from_home >= from_hole {
                self.keys[hole] = self.keys[slot];
                self.values[hole] = self.values[slot];
                hole = slot;
            }
        }
        self.keys[hole] = EMPTY;
        Some(value)
    }

    #[inline]
    fn home(&self, key: u64) -> usize {
        to_usize(key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) & self.mask
    }

    #[inline]
    fn find(&self, key: u64) -> Option<usize> {
        let mut slot = self.home(key);
        loop {
            match self.keys[slot] {
                found if found == key => return Some(slot),
                EMPTY => return None,
                _ => slot = (slot + 1) & self.mask,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Table;
    use std::collections::BTreeMap;

    #[test]
    fn agrees_with_a_map_under_random_traffic() {
        let mut table = Table::new(128);
        let mut model: BTreeMap<u64, u32> = BTreeMap::new();
        let mut state = 7_u64;
        for step in 0..50_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = (state >> 40) % 200;
            assert_eq!(table.get(key), model.get(&key).copied());
            if model.contains_key(&key) {
                assert_eq!(table.remove(key), model.remove(&key));
            } else if model.len() < 128 {
                table.insert(key, step);
                model.insert(key, step);
            }
        }
        table.clear();
        assert_eq!(table.get(1), None);
    }
}
