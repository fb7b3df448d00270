//! The two halves of an L2 (A100 and later data centre GPUs), each near half of the SMs.
//!
//! An address has its home in one half: there it is written, and read from memory. An SM asks
//! the slice of its own half. Where that is not the home, the slice keeps a copy of what its
//! SMs read, and asks the home for what it lacks; stores and atomics go on to the home. So data
//! that all SMs read takes room in both halves.
//!
//! Sources: A100 whitepaper, "A100 L2 cache" (two partitions, each for the SMs of the GPCs that
//! are connected to it); the sizes up to which a pointer chase finds the near half
//! (te42kyfo/gpu-benches: 18 to 20 MB of 40 on A100s, 22 of 50 on an H100) and its cycles beyond.
//!
//! Assumed: a store changes the copy in its own half and ends the one in the other, both at no
//! cost; so does the eviction of a line from its home (where A100s read chunks of 30 MB, a quarter
//! of their bandwidth is gone, and copies that outlive their homes would let them fit); TPCs
//! (pairs of SMs) belong to the halves in turn; any number of bytes cross at once.

use crate::config::Machine;
use gpumodel_core::units::{Cycle, to_u16};

use super::MemorySystem;
use crate::memory::packet::{Leg, Origin, Packet};

/// SMs of a TPC.
const SMS_PER_TPC: u16 = 2;

/// The halves of the L2 of a machine that has them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Halves {
    /// Slices of one half.
    slices: u16,
    /// Cycles from one half to the other, and back.
    out: Cycle,
    back: Cycle,
}

impl Halves {
    /// The halves of `machine`, if its L2 has any.
    pub(super) fn new(machine: &Machine) -> Option<Self> {
        let cycles = u64::from(machine.l2.far_half_cycles);
        let slices = to_u16(machine.l2.slices / 2);
        (cycles > 0).then(|| Self { slices, out: cycles / 2, back: cycles - cycles / 2 })
    }

    /// The slice of the other half that stands for the same addresses.
    #[inline]
    pub(super) fn across(&self, slice: u16) -> u16 {
        if slice < self.slices { slice + self.slices } else { slice - self.slices }
    }

    /// Sends an SM's request for a home slice by way of the slice of the SM's own half.
    #[inline]
    pub(super) fn lead(&self, packet: &mut Packet) {
        let side = packet.sm / SMS_PER_TPC % 2;
        let home = u16::from(packet.slice >= self.slices);
        if packet.origin == Origin::Sm && side != home {
            packet.slice = self.across(packet.slice);
            packet.leg = Leg::Far;
        }
    }

    /// When a packet that leaves its slice at cycle `at` is in the other half: at its home, or
    /// back from there.
    #[inline]
    pub(super) fn cross(&self, packet: &Packet, at: Cycle) -> Cycle {
        at + if packet.leg == Leg::Home { self.back } else { self.out }
    }

    /// A packet that has come from the other half.
    #[inline]
    pub(super) fn crossed(&self, packet: Packet) -> Packet {
        let leg = if packet.leg == Leg::Home { Leg::Far } else { Leg::Home };
        Packet { slice: self.across(packet.slice), leg, ..packet }
    }
}

impl MemorySystem {
    /// The copies of lines that a slice is the home of and has evicted end.
    #[inline]
    pub(super) fn end_copies_of_evicted(&mut self, slice: u16) {
        let Some(halves) = &self.halves else { return };
        let across = usize::from(halves.across(slice));
        while let Some(address) = self.slices[usize::from(slice)].tags.next_evicted() {
            if self.slice_of(address) == slice {
                self.slices[across].end_copy(address, u8::MAX);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Halves;
    use crate::config::Models;
    use crate::memory::packet::{Leg, Origin, Packet, RequestKind};

    fn packet(sm: u16, slice: u16) -> Packet {
        Packet {
            address: 0x1060,
            virtual_address: 0x1060,
            ready: 0,
            operation: 0,
            kernel: 0,
            bytes: 0,
            sectors: 1,
            mask: 0b1000,
            more_turns: 0,
            sm,
            slice,
            kind: RequestKind::Read,
            fills_l1: true,
            origin: Origin::Sm,
            leg: Leg::Near,
        }
    }

    fn halves() -> Halves {
        let mut machine = Models::builtin().machine("a100", &[]).unwrap().machine;
        machine.l2.far_half_cycles = 131;
        Halves::new(&machine).unwrap()
    }

    #[test]
    fn an_sm_asks_the_slice_of_its_half() {
        let led = |sm, slice| {
            let mut packet = packet(sm, slice);
            halves().lead(&mut packet);
            (packet.slice, packet.leg)
        };
        assert_eq!([led(0, 7), led(1, 7)], [(7, Leg::Near); 2]);
        assert_eq!([led(2, 7), led(3, 7)], [(47, Leg::Far); 2]);
        assert_eq!(led(2, 47), (47, Leg::Near));
        assert_eq!(led(4, 47), (7, Leg::Far));
        let walk = &mut Packet { origin: Origin::Walk, ..packet(2, 7) };
        halves().lead(walk);
        assert_eq!((walk.slice, walk.leg), (7, Leg::Near));
    }

    #[test]
    fn what_goes_to_the_home_comes_back() {
        let halves = halves();
        let mut asked = packet(2, 7);
        halves.lead(&mut asked);
        let there = halves.crossed(asked);
        assert_eq!((there.slice, there.leg), (7, Leg::Home));
        let back = halves.crossed(there);
        assert_eq!((back.slice, back.leg), (47, Leg::Far));
        assert_eq!(halves.cross(&there, halves.cross(&asked, 1000)), 1131);
    }

    #[test]
    fn an_l2_of_one_piece_has_no_halves() {
        let machine = Models::builtin().machine("v100", &[]).unwrap().machine;
        assert!(Halves::new(&machine).is_none());
    }
}
