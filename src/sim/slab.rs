//! Records in flight, addressed by number; freed numbers are used again.

use gpumodel_core::units::{to_u32, to_usize};

/// A table of records whose numbers stay valid until they are removed.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    records: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    pub(crate) fn new() -> Self {
        Self { records: Vec::new(), free: Vec::new() }
    }

    /// Adds a record and returns its number.
    pub(crate) fn insert(&mut self, record: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.records[to_usize(number)] = record;
            return number;
        }
        self.records.push(record);
        to_u32(self.records.len() - 1)
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> &T {
        &self.records[to_usize(number)]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> &mut T {
        &mut self.records[to_usize(number)]
    }

    /// All records, and what was last in the places of removed ones.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.records.iter_mut()
    }

    /// Removes a record.
    #[inline]
    pub(crate) fn remove(&mut self, number: u32) -> T {
        self.free.push(number);
        self.records[to_usize(number)]
    }

    /// Records in the table.
    pub(crate) fn len(&self) -> usize {
        self.records.len() - self.free.len()
    }
}
