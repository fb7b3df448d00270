//! The lane addresses of one dynamic memory instruction.

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

/// One dynamic memory instruction: active lanes and their byte addresses.
///
/// A reused buffer: [`Access::lanes`] is meaningful only for active lanes and
/// only when [`Access::mode`] is not [`AddressMode::Stride`]; use
/// [`Access::address`] when the mode does not matter.
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

#[cfg(test)]
mod tests {
    use super::{Access, AddressMode};

    #[test]
    fn stride_counts_active_lanes() {
        let access = Access { mask: 0b1101, base: 100, stride: -4, ..Access::default() };
        assert_eq!(access.active().collect::<Vec<_>>(), [(0, 100), (2, 96), (3, 92)]);
        let mut list = Access { mask: 0b11, mode: AddressMode::List, ..Access::default() };
        list.lanes[..2].copy_from_slice(&[7, 9]);
        assert_eq!(list.active().collect::<Vec<_>>(), [(0, 7), (1, 9)]);
    }
}
