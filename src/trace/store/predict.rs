//! Where the next access of a warp should start.
//!
//! Per memory instruction and chunk an affine [`Model`] over the CTA's position
//! and the warp gives the first address; after that each warp's own accesses
//! give the next: the last one plus a step that changes when the same other
//! difference comes twice in a row. The writer and the cursor run the same
//! code, so only what differs from the prediction is stored.

use gpumodel_core::units::Dim3;

/// How lanes lie, with lists named by `L`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape<L> {
    /// A constant step in bytes between lanes.
    Stride(i64),
    /// A list of differences.
    List(L),
}

impl<L> Shape<L> {
    /// Bytes from lane 0 to lane `first`, the lowest active one. Lists start
    /// at the lowest active lane, whichever it is.
    #[inline]
    fn origin(&self, first: u32) -> u64 {
        match self {
            Self::Stride(step) => step.wrapping_mul(i64::from(first)).cast_unsigned(),
            Self::List(_) => 0,
        }
    }
}

/// The affine model of one memory instruction in one chunk, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Model {
    /// Address of lane 0 of warp 0 in CTA (0,0,0), modulo 2^64.
    pub(super) base: u64,
    /// Per CTA in x, y, z.
    pub(super) cta: [i64; 3],
    /// Per warp of the CTA.
    pub(super) warp: i64,
    /// From a warp's first access to its second.
    pub(super) step: i64,
    /// Between lanes.
    pub(super) stride: i64,
    /// The trace lists full addresses for this instruction.
    pub(super) full: bool,
}

impl Model {
    /// Lane 0's address in the first access of `warp` of the CTA at `cta`.
    #[inline]
    pub(super) fn first(&self, cta: Dim3, warp: u32) -> u64 {
        let [x, y, z] = [cta.x, cta.y, cta.z].map(i64::from);
        let offset = self.cta[0]
            .wrapping_mul(x)
            .wrapping_add(self.cta[1].wrapping_mul(y))
            .wrapping_add(self.cta[2].wrapping_mul(z))
            .wrapping_add(self.warp.wrapping_mul(i64::from(warp)));
        self.base.wrapping_add_signed(offset)
    }
}

/// What a warp's past says about one memory instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot<L> {
    lane0: u64,
    step: i64,
    last: i64,
    /// The shape of the last access.
    pub(super) shape: Shape<L>,
}

impl<L: Copy> Slot<L> {
    /// The slot before a warp's first access.
    #[inline]
    pub(super) fn new(model: &Model, cta: Dim3, warp: u32) -> Self {
        let before = model.first(cta, warp).wrapping_sub(model.step.cast_unsigned());
        let shape = Shape::Stride(model.stride);
        Self { lane0: before, step: model.step, last: model.step, shape }
    }

    /// The expected address of lane `first`, the lowest active one, in the
    /// current shape.
    #[inline]
    pub(super) fn expect(&self, first: u32) -> u64 {
        self.lane0.wrapping_add_signed(self.step).wrapping_add(self.shape.origin(first))
    }

    /// Passes an access whose lowest active lane `first` had address `base`, in
    /// the current shape.
    #[inline]
    pub(super) fn pass(&mut self, first: u32, base: u64) {
        let lane0 = base.wrapping_sub(self.shape.origin(first));
        let difference = lane0.wrapping_sub(self.lane0).cast_signed();
        if difference == self.last {
            self.step = difference;
        }
        self.last = difference;
        self.lane0 = lane0;
    }
}

#[cfg(test)]
mod tests {
    use super::{Model, Slot};
    use gpumodel_core::units::Dim3;

    #[test]
    fn a_step_survives_one_jump() {
        let model = Model { base: 100, warp: 1000, step: 4, stride: 4, ..Model::default() };
        let mut slot: Slot<u32> = Slot::new(&model, Dim3::new(3, 0, 0), 2);
        assert_eq!(slot.expect(0), 2100);
        assert_eq!(slot.expect(3), 2112);
        slot.pass(0, 2100);
        assert_eq!(slot.expect(0), 2104);
        slot.pass(0, 5000);
        assert_eq!(slot.expect(0), 5004);
        slot.pass(0, 5016);
        slot.pass(0, 5032);
        assert_eq!(slot.expect(0), 5048);
    }
}
