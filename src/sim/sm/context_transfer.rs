//! The state of CTAs that leave an SM or come back, on its way to memory or from there.
//!
//! State moves as one 128-byte line per memory instruction of the switch, in the
//! load/store queue before all warps, past the L1.

use std::collections::VecDeque;

use gpumodel_core::units::{Cycle, to_u32, to_u64};

use crate::memory::packet::{Operation, RequestKind, Target};
use crate::mmu::address_space::STATE_BASE;
use crate::sm::Need;
use crate::sm::coalesce::{LINE_BYTES, LineRequest};
use crate::sm::cta::Cta;
use crate::sm::lsu::Lsu;
use crate::sm::warps::Warps;

/// CTAs of one launch whose states have different places.
const PLACES: u64 = 1 << 16;

/// Bytes of a register.
const REGISTER_BYTES: u64 = 4;

/// Lines of one CTA that are still to be moved.
#[derive(Clone, Copy, Debug)]
struct ContextTransfer {
    /// The CTA's slot.
    cta: u16,
    /// The warp in whose name they move.
    warp: u16,
    kernel: u32,
    /// The next line.
    line: u64,
    left: u32,
    ask: RequestKind,
}

/// The states of CTAs that are being saved or restored, oldest first.
#[derive(Debug, Default)]
pub(super) struct ContextTransfers(VecDeque<ContextTransfer>);

impl ContextTransfers {
    /// Begins to move a CTA's state, in the name of its warp `warp`, in the address space with this
    /// tag, and queues what lines the load/store unit takes; false where the CTA has no state.
    pub(super) fn begin(
        &mut self,
        cta: &Cta,
        (warp, ask): (u16, RequestKind),
        tag: u64,
        lsu: &mut Lsu,
        warps: &mut Warps,
    ) -> bool {
        let left = lines_of(&cta.need, cta.live);
        if left > 0 {
            let line = first_line(&cta.need, cta.ordinal, tag) / LINE_BYTES;
            let (cta, kernel) = (cta.slot, cta.kernel);
            self.0.push_back(ContextTransfer { cta, warp, kernel, line, left, ask });
            while lsu.queue.has_room() && self.push_next(lsu, warps) {}
        }
        left > 0
    }

    /// Queues the next line that moves, if there is one; the queue of the load/store unit has room.
    pub(super) fn push_next(&mut self, lsu: &mut Lsu, warps: &mut Warps) -> bool {
        let Some(first) = self.0.front_mut() else { return false };
        let &mut ContextTransfer { warp, kernel, line, ask, .. } = first;
        let operation = (Operation::new(warp, Target::Nothing, 0), kernel);
        // What is late is served when the unit is free.
        let issued = Cycle::MAX;
        let bytes = [u32::MAX; 4];
        let moved = LineRequest { line, sectors: 0xf, bytes, ..LineRequest::default() };
        lsu.move_lines(operation, ask, issued, |lines| lines.push(moved));
        warps.resident(warp).outstanding += 1;
        first.line += 1;
        first.left -= 1;
        if first.left == 0 {
            self.0.pop_front();
        }
        true
    }

    /// True while lines of the CTA in a slot are still to be queued.
    pub(super) fn concern(&self, cta: usize) -> bool {
        self.0.iter().any(|one| usize::from(one.cta) == cta)
    }

    /// Forgets the lines of the CTA in a slot that have not been queued.
    pub(super) fn stop(&mut self, cta: usize) {
        self.0.retain(|one| usize::from(one.cta) != cta);
    }
}

/// Lines of the state of a CTA of which `live` warps have not ended: their registers,
/// and the CTA's shared memory.
fn lines_of(need: &Need, live: u32) -> u32 {
    let registers = u64::from(need.registers) * u64::from(live) / u64::from(need.warps.max(1));
    let bytes = registers * REGISTER_BYTES + u64::from(need.shared_bytes);
    to_u32(bytes.div_ceil(LINE_BYTES))
}

/// The first line of the state of CTA `ordinal` of a launch, in the address space
/// with this tag.
fn first_line(need: &Need, ordinal: u64, tag: u64) -> u64 {
    let span = to_u64(lines_of(need, need.warps)) * LINE_BYTES;
    (STATE_BASE + ordinal % PLACES * span) ^ tag
}

#[cfg(test)]
mod tests {
    use super::{Need, lines_of};

    #[test]
    fn state_is_the_registers_of_live_warps_and_shared_memory() {
        let need = Need { warps: 4, registers: 4096, shared_bytes: 1000 };
        assert_eq!(lines_of(&need, 4), 128 + 8);
        assert_eq!(lines_of(&need, 1), 32 + 8);
    }
}
