//! A map from 64-bit keys to 32-bit numbers: open addressing, no iteration.

use gpumodel_core::units::to_usize;

const EMPTY: u64 = u64::MAX;

/// A key next to its number, so that both lie in one line of the host's cache.
#[derive(Clone, Copy, Debug)]
struct Slot {
    key: u64,
    value: u32,
}

const FREE: Slot = Slot { key: EMPTY, value: 0 };

/// The map. The key `u64::MAX` is not allowed.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    slots: Vec<Slot>,
    mask: usize,
}

impl Table {
    /// A map for up to `capacity` keys.
    pub(crate) fn new(capacity: usize) -> Self {
        let slots = slots(capacity);
        Self { slots: vec![FREE; slots], mask: slots - 1 }
    }

    /// Removes all keys and makes room for up to `capacity` of them.
    pub(crate) fn reset(&mut self, capacity: usize) {
        let slots = slots(capacity);
        self.slots.clear();
        self.slots.resize(slots, FREE);
        self.mask = slots - 1;
    }

    /// The number of a key.
    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<u32> {
        self.find(key).map(|slot| self.slots[slot].value)
    }

    /// Adds a key that the map does not have.
    pub(crate) fn insert(&mut self, key: u64, value: u32) {
        let mut slot = self.home(key);
        while self.slots[slot].key != EMPTY {
            slot = (slot + 1) & self.mask;
        }
        self.slots[slot] = Slot { key, value };
    }

    /// Removes a key and closes the gap in its probe run.
    pub(crate) fn remove(&mut self, key: u64) -> Option<u32> {
        let mut hole = self.find(key)?;
        let value = self.slots[hole].value;
        let mut slot = hole;
        loop {
            slot = (slot + 1) & self.mask;
            let next = self.slots[slot];
            if next.key == EMPTY {
                break;
            }
            let from_home = slot.wrapping_sub(self.home(next.key)) & self.mask;
            let from_hole = slot.wrapping_sub(hole) & self.mask;
            if from_home >= from_hole {
                self.slots[hole] = next;
                hole = slot;
            }
        }
        self.slots[hole] = FREE;
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
            match self.slots[slot].key {
                found if found == key => return Some(slot),
                EMPTY => return None,
                _ => slot = (slot + 1) & self.mask,
            }
        }
    }
}

/// Slots for `capacity` keys: at most half of them are used.
fn slots(capacity: usize) -> usize {
    capacity.max(1).next_power_of_two() * 2
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
        table.reset(64);
        assert_eq!(table.get(1), None);
    }
}
