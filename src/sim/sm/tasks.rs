//! Workers: CTAs that stay and run one task of blocks after the other.

use std::sync::Arc;

use gpumodel_core::units::{Cycle, to_usize};

use super::{Bounds, Departure, Need, Path, Sm, WorkerPath};
use crate::gpu::feed::Stream;
use crate::gpu::shared_state::SharedState;
use crate::gpu::workers::Worker;

/// What makes a CTA a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Duty {
    /// Its number among the launch's workers on the SM.
    pub(crate) number: u32,
    /// Tasks that it has taken.
    pub(crate) tasks: u64,
    /// Blocks of the present one.
    pub(crate) blocks: u64,
}

impl Sm {
    /// Takes a worker with this number in; one without only finds out that it is not
    /// wanted. The caller has asked [`Sm::holds`].
    #[allow(clippy::too_many_arguments, reason = "the parts of one machine")]
    pub(crate) fn admit_worker(
        &mut self,
        (kernel, worker): (u32, &Arc<Worker>),
        number: Option<u32>,
        need: Need,
        bounds: &Bounds,
        begin: Cycle,
        shared_state: &mut SharedState,
    ) {
        let counts = &mut shared_state.counts[to_usize(kernel)];
        counts.workers += 1;
        let ordinal = counts.workers;
        let at = (kernel, self.id);
        let paths = (0..need.warps).map(|warp| {
            Path::Worker(Box::new(WorkerPath::new(worker, at, warp == 0, number.is_none())))
        });
        let duty = Duty { number: number.unwrap_or(0), ..Duty::default() };
        self.take_in((kernel, ordinal, Some(duty)), need, bounds, paths, begin, shared_state);
    }

    /// The warps of a worker wait for a task.
    pub(super) fn ask(&mut self, slot: usize) {
        if let Some(cta) = &self.ctas[slot] {
            self.departed.push(Departure::Asks { kernel: cta.kernel, slot });
        }
    }

    /// The duty of the worker in a slot.
    pub(crate) fn duty(&mut self, slot: usize) -> Option<&mut Duty> {
        self.ctas[slot].as_mut().and_then(|cta| cta.duty.as_mut())
    }

    /// Gives a worker a block: to each of its warps its stream.
    pub(crate) fn hand(&mut self, slot: usize, streams: &mut Vec<Stream>) {
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
