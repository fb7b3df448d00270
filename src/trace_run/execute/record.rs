//! What is recorded of an instruction.

use super::warp::Warp;

impl Warp {
    /// Records an execution of the instruction `number` by the lanes of `mask`.
    #[inline(always)]
    pub(crate) fn note(&mut self, number: usize, addressed: bool, mask: u32) {
        let Some(record) = &mut self.record else { return };
        record.push(u32::try_from(number).unwrap_or(u32::MAX), mask);
        if addressed {
            record.addresses(mask, &self.addresses);
        }
        if !self.fields.is_empty() {
            record.fields(&self.fields);
            self.fields.clear();
        }
    }
}
