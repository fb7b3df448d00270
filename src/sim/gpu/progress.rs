//! Whether a run still moves, and why it does not.

use gpumodel_core::units::{Cycle, KernelId};

use crate::gpu::error::{LostArrival, MachineError};
use crate::gpu::hardware::Hardware;
use crate::mmu::Mmu;
use crate::sm::{Sm, WaitingCta};

/// Cycles without an issued instruction after which a run counts as stuck.
pub(crate) const PATIENCE: Cycle = 1 << 26;

/// Events between two checks that instructions still issue.
const CHECK_EVERY: u64 = 1 << 20;

/// Checks now and then that instructions still issue.
#[derive(Debug, Default)]
pub(crate) struct ProgressCheck {
    events: u64,
    /// Warp instructions that have issued, and since when so many.
    last: (u64, Cycle),
}

impl ProgressCheck {
    /// One more event is handled; true when a check is due.
    #[inline]
    pub(crate) fn is_due(&mut self) -> bool {
        self.events += 1;
        self.events.is_multiple_of(CHECK_EVERY)
    }

    /// Warp instructions since the last check.
    ///
    /// # Errors
    /// When there have been none for too long.
    pub(crate) fn check(&mut self, hardware: &mut Hardware<'_>) -> Result<u64, MachineError> {
        let shared_state = &hardware.shared_state;
        let issued = shared_state.counts.iter().map(|counts| counts.warp_instructions).sum();
        let now = hardware.now();
        let (before, since) = self.last;
        let link_busy = shared_state.link.as_ref().is_some_and(|link| link.is_busy());
        if issued != before || link_busy {
            self.last = (issued, now);
        } else if now - since > PATIENCE {
            return Err(self.stuck(hardware));
        }
        Ok(issued - before)
    }

    /// Why nothing moves: a trace that lacks arrivals at a barrier, else a defect of ours.
    pub(crate) fn stuck(&self, hardware: &mut Hardware<'_>) -> MachineError {
        let Hardware { sms, shared_state, .. } = hardware;
        if let Some(waiting) = sms.iter().find_map(|sm| sm.waiting_cta(shared_state)) {
            return lost_arrival(waiting, hardware);
        }
        let mut lines: Vec<String> = sms.iter().filter_map(Sm::describe).take(8).collect();
        lines.push(shared_state.memory_system.describe());
        lines.extend(shared_state.mmu.as_ref().map(Mmu::describe));
        MachineError::Stuck { since: self.last.1, dump: lines.join("\n") }
    }
}

fn lost_arrival(waiting: WaitingCta, hardware: &Hardware<'_>) -> MachineError {
    let WaitingCta { kernel, ordinal, barriers } = waiting;
    let kernel = KernelId(kernel);
    let position = |ordinal| hardware.feed.open(kernel, ordinal, &mut Vec::new());
    let cta = match ordinal.map(position).transpose() {
        Ok(cta) => cta,
        Err(error) => return MachineError::Feed(error),
    };
    let kernel = hardware.feed.program(kernel).launch.name.clone();
    MachineError::LostArrival(Box::new(LostArrival { kernel, cta, barriers }))
}
