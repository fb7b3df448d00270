//! What slices fetch from memory and write to it: in accesses of the memory, one or
//! several for a sector of the caches, or several sectors at once.

use crate::config::Machine;
use gpumodel_core::units::{Cycle, SECTOR_BYTES};

use super::MemorySystem;
use super::channel::Transfer;
use crate::cache::Leaving;
use crate::gpu::event_queue::Event;
use crate::gpu::event_queue::EventQueue;
use crate::memory::packet::Packet;

impl MemorySystem {
    /// Sends for what a request lacks in its slice.
    pub(super) fn fetch(&mut self, packet: &Packet, at: Cycle, queue: &mut EventQueue<Event>) {
        let all = self.parts(u32::MAX);
        let transfer = self.transfer(packet.address, all, (packet.slice, packet.kernel));
        self.memory.send(transfer, at, queue);
    }

    /// Sends down what a slice has written to memory, in as few accesses as hold it.
    pub(super) fn write_back(&mut self, number: u16, kernel: u32, queue: &mut EventQueue<Event>) {
        let mut sent = u64::MAX;
        while let Some((leaving, at)) = self.slices[usize::from(number)].next_leaving() {
            let Leaving { address, bytes } = leaving;
            if address / self.granule != sent {
                sent = address / self.granule;
                let parts = self.parts(bytes);
                let transfer = self.transfer(address, parts, (number, kernel));
                self.memory.send(Transfer { write: true, ..transfer }, at, queue);
            }
        }
    }

    /// A read of the accesses `parts` from `address` on.
    fn transfer(&self, address: u64, parts: u8, (slice, kernel): (u16, u32)) -> Transfer {
        let mut place = self.mapping.locate(address);
        if self.columns > 1 {
            place.column &= !(self.columns - 1);
        }
        let left = u8::try_from(parts.count_ones()).unwrap_or(u8::MAX);
        Transfer { address, place, parts, left, slice, kernel, write: false, flushes: 0 }
    }

    /// The accesses of the memory that hold `bytes` (a bit for each 1/32) of a sector
    /// of the caches, one bit each.
    fn parts(&self, bytes: u32) -> u8 {
        let bits = u32::BITS / self.columns;
        let part = u32::MAX >> (u32::BITS - bits);
        let held = |column: &u32| bytes >> (column * bits) & part != 0;
        (0..self.columns).filter(held).fold(0, |parts, column| parts | 1 << column).max(1)
    }
}

/// Accesses of the memory that hold a sector of the caches.
pub(super) fn columns(machine: &Machine, access_bytes: u32) -> u32 {
    (machine.l2.cache.sector_bytes / access_bytes).clamp(1, 4)
}

/// Bytes that one access of a memory moves, at least a sector.
pub(super) fn granule(access_bytes: u32) -> u64 {
    u64::from(access_bytes).max(SECTOR_BYTES)
}

/// Bytes that a slice fetches at once: an access of the memory, and at least a sector
/// of the caches.
pub(super) fn granule_of(machine: &Machine, access_bytes: u32) -> u64 {
    granule(access_bytes.max(machine.l2.cache.sector_bytes))
}

#[cfg(test)]
mod tests {
    use crate::memory::MemorySystem;
    use crate::testkit::fixture::{memory_of, named, sectored};

    #[test]
    fn a_line_written_in_part_goes_down_in_the_accesses_that_it_touches() {
        let parts = |resolved| {
            let (standard, map) = memory_of(&resolved);
            let memory_system = MemorySystem::new(&resolved.machine, &standard, map);
            [0x1, 0xffff, 0xffff_0000, 0x8000_0001].map(|bytes| memory_system.parts(bytes))
        };
        // UGPU: lines of 128 bytes in accesses of 64.
        assert_eq!(parts(named("ugpu", &[])), [0b01, 0b01, 0b10, 0b11]);
        assert_eq!(parts(sectored("ugpu", &[])), [1; 4]);
    }
}
