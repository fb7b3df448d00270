//! The lane addresses of one dynamic memory instruction, and what asynchronous instructions of
//! Hopper carry beyond these and registers: bulk copies and barrier objects in shared memory.

use crate::units::WARP_LANES;

/// How a trace line lists its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddressMode {
    /// One full address per active lane (0).
    List,
    /// Base and a constant step between active lanes (1).
    Stride,
    /// Base and one difference per further active lane (2).
    Delta,
}

impl AddressMode {
    /// Its number in trace lines.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::List => 0,
            Self::Stride => 1,
            Self::Delta => 2,
        }
    }

    /// The mode of that number.
    #[must_use]
    pub const fn of_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::List),
            1 => Some(Self::Stride),
            2 => Some(Self::Delta),
            _ => None,
        }
    }
}

/// One dynamic memory instruction: active lanes and their byte addresses.
///
/// A reused buffer: [`Access::lanes`] is meaningful only for active lanes and
/// only when [`Access::mode`] is not [`AddressMode::Stride`]; use
/// [`Access::active`] when the mode does not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Active lanes, bit 0 is lane 0.
    pub mask: u32,
    /// How the addresses are held (and were listed).
    pub mode: AddressMode,
    /// Address of the lowest active lane; 0 without active lanes.
    pub base: u64,
    /// For [`AddressMode::Stride`]: bytes from one active lane to the next.
    pub stride: i64,
    /// For the other modes: the address of each active lane.
    pub lanes: [u64; WARP_LANES],
}

impl Default for Access {
    fn default() -> Self {
        Self { mask: 0, mode: AddressMode::Stride, base: 0, stride: 0, lanes: [0; WARP_LANES] }
    }
}

impl Access {
    /// Fills the access from one address per active lane, choosing the mode by
    /// the Accel-Sim tracer's rule: no lane: stride mode with base and stride 0;
    /// one lane: differences, none listed; contiguous lanes at one step: stride;
    /// else differences.
    pub fn set(&mut self, mask: u32, lanes: &[u64; WARP_LANES]) {
        self.mask = mask;
        self.lanes = *lanes;
        self.stride = 0;
        self.base = 0;
        self.mode = AddressMode::Stride;
        if mask == 0 {
            return;
        }
        let first = crate::units::to_usize(mask.trailing_zeros());
        let count = crate::units::to_usize(mask.count_ones());
        self.base = lanes[first];
        self.mode = AddressMode::Delta;
        if count < 2 || u64::from(mask) >> first != (1 << count) - 1 {
            return;
        }
        let run = &lanes[first..first + count];
        let step = run[1].wrapping_sub(run[0]);
        if run.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) == step) {
            self.mode = AddressMode::Stride;
            self.stride = step.cast_signed();
        }
    }

    /// Whether an active lane is at address 0.
    #[must_use]
    pub fn has_null(&self) -> bool {
        if self.mode != AddressMode::Stride {
            return self.active().any(|(_, address)| address == 0);
        }
        let (step, lanes) = (self.stride.unsigned_abs(), u64::from(self.mask.count_ones()));
        let falls = self.stride < 0 && self.base.is_multiple_of(step) && self.base / step < lanes;
        lanes > 0 && (self.base == 0 || falls)
    }

    /// The number of active lanes at address 0.
    #[must_use]
    pub fn null_lanes(&self) -> u32 {
        self.active().fold(0, |null, (_, address)| null + u32::from(address == 0))
    }

    /// Takes the lanes at address 0 out of the active ones; returns how many.
    pub fn drop_null(&mut self) -> u32 {
        let mut lanes = [0; WARP_LANES];
        let mut null = 0;
        for (lane, address) in self.active() {
            lanes[lane] = address;
            null |= u32::from(address == 0) << lane;
        }
        self.set(self.mask & !null, &lanes);
        null.count_ones()
    }

    /// Iterates over `(lane, address)` of the active lanes in lane order.
    ///
    /// In stride mode the k-th *active* lane has `base + k * stride`, which for
    /// contiguous masks (the only ones tracers compress so) is the lane's own.
    pub fn active(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let mut rest = self.mask;
        let mut next = self.base;
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let lane = crate::units::to_usize(rest.trailing_zeros());
            rest &= rest - 1;
            if self.mode == AddressMode::Stride {
                let address = next;
                next = next.wrapping_add_signed(self.stride);
                return Some((lane, address));
            }
            Some((lane, self.lanes[lane]))
        })
    }
}

/// A bulk copy between global and shared memory, as far as the trace has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BulkCopy {
    /// Shared-memory address of the barrier object that counts its bytes; `None`: not in the
    /// trace.
    pub barrier: Option<u64>,
    /// Bytes that it counts there: those of its box, out of bounds included.
    pub bytes: u64,
    /// Global addresses of its pieces.
    pub pieces: Vec<u64>,
    /// Bytes of each piece.
    pub piece_bytes: u64,
    /// CTAs of the cluster that get the bytes, one bit per rank; 0: the CTA that asks.
    pub multicast: u16,
}

/// What a step at a barrier object (PTX ISA, `mbarrier`) does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ObjectStep {
    /// Sets the number of arrivals of a phase.
    Init,
    /// Arrives, and expects bytes by its register.
    ArriveExpect,
    /// Arrives.
    Arrive,
    /// Arrives as often as its register says.
    ArriveTimes,
    /// Arrives so, once where the register is 0, and is not expected in later phases.
    Leave,
    /// Expects bytes by its register.
    Expect,
    /// Takes bytes by its register as come.
    Complete,
    /// Arrives when the asynchronous copies so far are done.
    ArriveAfterCopies,
    /// Waits for the end of the phase whose parity its register has.
    Wait,
}

/// What a trace has of one asynchronous instruction beyond its lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AsyncFields {
    /// Of a bulk copy.
    Copy(BulkCopy),
    /// The values of the source registers in the lowest active lane, in the order of the
    /// operands.
    Values(Vec<u64>),
}

#[cfg(test)]
mod tests {
    use super::{Access, AddressMode};

    #[test]
    fn lanes_at_null_are_found_and_dropped() {
        let stride = |base, stride| Access { mask: 0xf, base, stride, ..Access::default() };
        let mut lists = stride(64, 0);
        lists.mode = AddressMode::List;
        lists.lanes[..4].copy_from_slice(&[64, 0, 0, 128]);
        for (access, null) in [
            (stride(0, 0), 0xf),
            (stride(0, 4), 1),
            (stride(8, -4), 4),
            (stride(16, -4), 0),
            (stride(9, -4), 0),
            (stride(4, 4), 0),
            (stride(64, 0), 0),
            (lists, 6),
            (Access::default(), 0_u32),
        ] {
            assert_eq!(access.has_null(), null != 0, "{access:?}");
            let left = |one: &Access| one.active().filter(|(_, at)| *at != 0).collect::<Vec<_>>();
            let mut dropped = access.clone();
            assert_eq!(dropped.drop_null(), null.count_ones());
            assert_eq!(dropped.mask, access.mask & !null);
            assert_eq!(left(&dropped), left(&access));
        }
    }

    #[test]
    fn the_mode_follows_the_tracers_rule() {
        let mut access = Access::default();
        let lanes = std::array::from_fn(|lane| 1000 - 4 * lane as u64);
        for (mask, mode, base, stride) in [
            (0, AddressMode::Stride, 0, 0),
            (0b100, AddressMode::Delta, 992, 0),
            (0b1100, AddressMode::Stride, 992, -4),
            (0b1010, AddressMode::Delta, 996, 0),
            (u32::MAX, AddressMode::Stride, 1000, -4),
        ] {
            access.set(mask, &lanes);
            assert_eq!((access.mode, access.base, access.stride), (mode, base, stride), "{mask:x}");
            assert!(access.active().all(|(lane, address)| address == lanes[lane]));
        }
        let mut bent = lanes;
        bent[31] = 0;
        access.set(u32::MAX, &bent);
        assert_eq!(access.mode, AddressMode::Delta);
    }

    #[test]
    fn stride_counts_active_lanes() {
        let access = Access { mask: 0b1101, base: 100, stride: -4, ..Access::default() };
        assert_eq!(access.active().collect::<Vec<_>>(), [(0, 100), (2, 96), (3, 92)]);
        let mut list = Access { mask: 0b11, mode: AddressMode::List, ..Access::default() };
        list.lanes[..2].copy_from_slice(&[7, 9]);
        assert_eq!(list.active().collect::<Vec<_>>(), [(0, 7), (1, 9)]);
    }
}
