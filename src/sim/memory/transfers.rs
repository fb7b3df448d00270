//! What slices fetch from memory and write to it: the accesses that hold it, and where they lie.

use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_u8, to_u32, to_u64};

use super::channel::Transfer;
use super::{Events, LINE_BYTES, MemorySystem};
use crate::bits::bits;
use crate::cache::WriteBack;
use crate::memory::packet::Packet;

impl MemorySystem {
    /// Fetches the sectors, one bit each in their line, that a request lacks in its slice.
    pub(super) fn fetch(&mut self, packet: &Packet, sectors: u8, at: Cycle, events: &mut Events) {
        let number = (packet.slice, packet.kernel);
        if !self.by_line {
            let all = self.parts(u32::MAX);
            let transfer = self.transfer(packet.address, (all, sectors), number);
            return self.channels.send(transfer, at, events);
        }
        let line = packet.address / LINE_BYTES * LINE_BYTES;
        let each = to_u32(self.transfer_bytes / SECTOR_BYTES);
        let mut left = sectors;
        while left != 0 {
            let first = left.trailing_zeros() & !(each - 1);
            let block = sectors & (u8::MAX >> (8 - each) << first);
            left &= !block;
            let address = line + u64::from(first) * SECTOR_BYTES;
            let parts = bits(block).fold(0, |parts, sector| {
                parts | self.parts_at(to_u64(sector) * SECTOR_BYTES, u32::MAX)
            });
            let transfer = self.transfer(address, (parts, block), number);
            self.channels.send(transfer, at, events);
        }
    }

    /// The accesses of a block of transfers that hold `bytes` (a bit for each 1/32) of the sector
    /// at `address`, one bit each.
    fn parts_at(&self, address: u64, bytes: u32) -> u8 {
        let inside = address & (self.transfer_bytes - 1);
        if self.columns > 1 {
            return self.parts(bytes) << (to_u32(inside / SECTOR_BYTES) * self.columns);
        }
        1 << (inside / self.granule)
    }

    /// Sends what a slice writes to memory, in as few accesses as hold it, those of one block
    /// together.
    pub(super) fn write_back(&mut self, number: u16, kernel: u32, events: &mut Events) {
        let block = if self.by_line { self.transfer_bytes } else { self.granule };
        let mut open: Option<(u64, u8, Cycle)> = None;
        while let Some((write_back, at)) = self.slices[usize::from(number)].next_write_back() {
            let WriteBack { address, bytes } = write_back;
            let parts =
                if self.by_line { self.parts_at(address, bytes) } else { self.parts(bytes) };
            match &mut open {
                Some((first, written, _)) if *first / block == address / block => {
                    *written |= if self.by_line { parts } else { 0 };
                }
                _ => {
                    let next = Some((address, parts, at));
                    self.write(std::mem::replace(&mut open, next), (number, kernel), events);
                }
            }
        }
        self.write(open, (number, kernel), events);
    }

    /// Writes the accesses `parts` of the block of an address, where there is one.
    fn write(&mut self, block: Option<(u64, u8, Cycle)>, number: (u16, u32), events: &mut Events) {
        let Some((address, parts, at)) = block else { return };
        let transfer = self.transfer(address, (parts, 0), number);
        self.channels.send(Transfer { write: true, ..transfer }, at, events);
    }

    /// A read of the accesses `parts` of the block of `address`, which hold `sectors` of its line.
    fn transfer(
        &self,
        address: u64,
        (parts, sectors): (u8, u8),
        (slice, kernel): (u16, u32),
    ) -> Transfer {
        let mut place = self.instances.locate(&self.mapping, address);
        let columns = if self.by_line {
            to_u32(self.transfer_bytes / self.mapping.access_bytes())
        } else {
            self.columns
        };
        place.column &= !(columns.max(1) - 1);
        let remaining = to_u8(parts.count_ones());
        Transfer {
            address,
            place,
            parts,
            sectors,
            remaining,
            slice,
            kernel,
            write: false,
            flushes: 0,
        }
    }

    /// The accesses of the memory that hold `bytes` (a bit for each 1/32) of a sector of the
    /// caches, one bit each.
    pub(super) fn parts(&self, bytes: u32) -> u8 {
        let bits = u32::BITS / self.columns;
        let part = u32::MAX >> (u32::BITS - bits);
        let written = |column: &u32| bytes >> (column * bits) & part != 0;
        (0..self.columns).filter(written).fold(0, |parts, column| parts | 1 << column).max(1)
    }
}
