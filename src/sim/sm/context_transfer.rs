//! State of CTAs on its way between an SM and memory: one 128-byte line per memory
//! instruction of the switch, in the load/store queue before all warps, past the L1.

use gpumodel_core::units::{Cycle, to_u32, to_u64};

use super::lsu_queue::{Entry, Path};
use super::{Need, Sm};
use crate::memory::packet::{Operation, RequestKind, Target};
use crate::mmu::address_space::STATE_BASE;
use crate::sm::coalesce::{LINE_BYTES, LineRequest};

/// CTAs of one launch whose state has a place of its own.
const PLACES: u64 = 1 << 16;

/// Bytes of a register.
const REGISTER_BYTES: u64 = 4;

/// Lines of one CTA that are still to be moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContextTransfer {
    /// The CTA's slot.
    pub(super) cta: usize,
    /// The warp in whose name they move.
    warp: u16,
    kernel: u32,
    /// The next line.
    line: u64,
    left: u32,
    ask: RequestKind,
}

/// Lines of the state of a CTA of which `live` warps have not ended: their registers,
/// and the CTA's shared memory.
pub(super) fn lines(need: &Need, live: u32) -> u32 {
    let registers = u64::from(need.registers) * u64::from(live) / u64::from(need.warps.max(1));
    let bytes = registers * REGISTER_BYTES + u64::from(need.shared_bytes);
    to_u32(bytes.div_ceil(LINE_BYTES))
}

/// The first line of the state of CTA `ordinal` of a launch, in the address space
/// with this tag.
fn first_line(need: &Need, ordinal: u64, tag: u64) -> u64 {
    let span = to_u64(lines(need, need.warps)) * LINE_BYTES;
    (STATE_BASE + ordinal % PLACES * span) ^ tag
}

impl Sm {
    /// Begins to move a CTA's state, in the name of its warp `warp`; false where it
    /// has none.
    pub(super) fn begin_move(&mut self, cta: usize, warp: u16, ask: RequestKind, tag: u64) -> bool {
        let Some(moved) = self.ctas[cta].as_ref() else { return false };
        let left = lines(&moved.need, moved.live);
        let line = first_line(&moved.need, moved.ordinal, tag) / LINE_BYTES;
        if left > 0 {
            self.moves.push_back(ContextTransfer {
                cta,
                warp,
                kernel: moved.kernel,
                line,
                left,
                ask,
            });
            while self.load_store.has_room() && self.push_move() {}
        }
        left > 0
    }

    /// Queues the next line that moves, if there is one; the queue has room.
    pub(super) fn push_move(&mut self) -> bool {
        let Some(&ContextTransfer { warp, kernel, line, ask, .. }) = self.moves.front() else {
            return false;
        };
        let mut lines = self.load_store.list();
        let bytes = [u32::MAX; 4];
        lines.push(LineRequest { line, sectors: 0xf, translated: false, bytes });
        let target = Target::Nothing;
        let whole = Operation { warp, target, remaining: 0, served: false, latest: 0 };
        let operation = self.operations.insert(whole);
        self.warp(warp).outstanding += 1;
        // What is late is served when the unit is free.
        let issued = Cycle::MAX;
        self.load_store.push(Entry::new(operation, kernel, Path::Direct(ask), lines, issued));
        let first = &mut self.moves[0];
        first.line += 1;
        first.left -= 1;
        if first.left == 0 {
            self.moves.pop_front();
        }
        true
    }

    /// True while lines of a CTA are still to be queued.
    pub(super) fn moves(&self, cta: usize) -> bool {
        self.moves.iter().any(|one| one.cta == cta)
    }

    /// Forgets the lines of a CTA that have not been queued.
    pub(super) fn stop_moving(&mut self, cta: usize) {
        self.moves.retain(|one| one.cta != cta);
    }
}

#[cfg(test)]
mod tests {
    use super::{Need, lines};

    #[test]
    fn state_is_the_registers_of_live_warps_and_shared_memory() {
        let need = Need { warps: 4, registers: 4096, shared_bytes: 1000 };
        assert_eq!(lines(&need, 4), 128 + 8);
        assert_eq!(lines(&need, 1), 32 + 8);
    }
}
