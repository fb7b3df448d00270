//! What is recorded of an instruction.

use gpumodel_core::isa::Access;

use super::warp::Warp;
use crate::sass::Decoded;

impl Warp {
    /// Records an execution of the instruction `number` by the lanes of `mask`.
    #[inline]
    pub(crate) fn note(&mut self, number: usize, instruction: &Decoded, mask: u32) {
        let Some(record) = &mut self.record else { return };
        record.push(u32::try_from(number).unwrap_or(u32::MAX), mask);
        if instruction.row.width > 0 {
            let access: &mut Access = &mut self.access;
            access.set(mask, &self.addresses);
            record.access(access);
        }
    }
}
