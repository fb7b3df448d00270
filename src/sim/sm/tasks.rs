//! Workers: CTAs that stay and run one task of blocks after the other.

use std::sync::Arc;

use gpumodel_core::units::{Cycle, to_usize};

use super::super::chip::Chip;
use super::super::feed::Stream;
use super::super::worker::Worker;
use super::{Bounds, Departure, Errand, Need, Path, Sm};

/// What makes a CTA a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Duty {
    /// Its number among the launch's workers on the SM.
    pub(in super::super) number: u32,
    /// Tasks that it has taken.
    pub(in super::super) tasks: u64,
    /// Blocks of the present one.
    pub(in super::super) blocks: u64,
}

impl Sm {
    /// Takes a worker with this number in; one without only finds out that it is not
    /// wanted. The caller has asked [`Sm::holds`].
    #[allow(clippy::too_many_arguments, reason = "the parts of one machine")]
    pub(in super::super) fn employ(
        &mut self,
        (kernel, worker): (u32, &Arc<Worker>),
        number: Option<u32>,
        need: Need,
        bounds: &Bounds,
        begin: Cycle,
        chip: &mut Chip,
    ) {
        let counts = &mut chip.counts[to_usize(kernel)];
        counts.workers += 1;
        let ordinal = counts.workers;
        let at = (kernel, self.id);
        let paths = (0..need.warps).map(|warp| {
            Path::Worker(Box::new(Errand::new(worker, at, warp == 0, number.is_none())))
        });
        let duty = Duty { number: number.unwrap_or(0), ..Duty::default() };
        self.take_in((kernel, ordinal, Some(duty)), need, bounds, paths, begin, chip);
    }

    /// The warps of a worker wait for a task.
    pub(super) fn ask(&mut self, slot: usize) {
        if let Some(cta) = &self.ctas[slot] {
            self.departed.push(Departure::Asks { kernel: cta.kernel, slot });
        }
    }

    /// The duty of the worker in a slot.
    pub(in super::super) fn duty(&mut self, slot: usize) -> Option<&mut Duty> {
        self.ctas[slot].as_mut().and_then(|cta| cta.duty.as_mut())
    }

    /// Gives a worker a block: to each of its warps its stream.
    pub(in super::super) fn hand(&mut self, slot: usize, streams: &mut Vec<Stream>) {
        let warps = self.ctas[slot].as_ref().map_or(0, |cta| cta.warps.len());
        debug_assert_eq!(streams.len(), warps, "a worker has as many warps as a block");
        for (index, stream) in streams.drain(..).enumerate() {
            let member = self.ctas[slot].as_ref().and_then(|cta| cta.warps.get(index)).copied();
            if let Some(warp) = member.and_then(|warp| self.warps[usize::from(warp)].as_mut()) {
                warp.stream.push(stream);
            }
        }
    }
}
