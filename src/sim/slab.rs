//! Records in flight, addressed by number; freed places are used again.

use gpumodel_core::units::{to_u32, to_usize};

/// A table of records whose numbers stay valid until they are taken out.
#[derive(Debug)]
pub(super) struct Slab<T> {
    records: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    pub(super) fn new() -> Self {
        Self { records: Vec::new(), free: Vec::new() }
    }

    /// Puts a record in and gives its number.
    pub(super) fn insert(&mut self, record: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.records[to_usize(number)] = record;
            return number;
        }
        self.records.push(record);
        to_u32(self.records.len() - 1)
    }

    pub(super) fn get(&self, number: u32) -> &T {
        &self.records[to_usize(number)]
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut T {
        &mut self.records[to_usize(number)]
    }

    /// Takes a record out.
    pub(super) fn remove(&mut self, number: u32) -> T {
        self.free.push(number);
        self.records[to_usize(number)]
    }

    /// Records in the table.
    pub(super) fn len(&self) -> usize {
        self.records.len() - self.free.len()
    }
}
