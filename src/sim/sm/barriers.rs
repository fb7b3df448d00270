//! Barriers of a CTA: numbered ones, each with its own count of arrivals, of the
//! whole CTA or of so many warps.
//!
//! A barrier of the whole CTA opens when all warps that have not ended have
//! arrived (CUDA C++ Programming Guide, compute capability 7.x: all non-exited
//! threads); a counted one only by arrivals.

use gpumodel_core::units::to_u32;

use super::Sm;
use super::warp::Next;
use super::warp::{Blocked, Warp};
use crate::gpu::shared_state::SharedState;
use crate::interval::BarrierOperands;

/// One barrier of a CTA at which warps have arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Barrier {
    /// Which one.
    place: u8,
    /// Arrivals since it opened last.
    arrived: u32,
    /// Warps that must arrive; 0: all of the CTA.
    warps: u32,
    /// Warps that have arrived and gone on.
    ahead: u32,
}

impl Barrier {
    /// The barrier that the operands name, made when it is met first.
    fn find(barriers: &mut Vec<Self>, operands: BarrierOperands) -> &mut Self {
        let place = barriers.iter().position(|barrier| barrier.place == operands.place);
        let place = place.unwrap_or_else(|| {
            barriers.push(Self { place: operands.place, arrived: 0, warps: 0, ahead: 0 });
            barriers.len() - 1
        });
        barriers[place].warps = u32::from(operands.warps);
        &mut barriers[place]
    }
}

impl Sm {
    /// A warp has issued a barrier instruction, `ahead` cycles before now.
    pub(super) fn meet_barrier(
        &mut self,
        warp: u16,
        operands: BarrierOperands,
        ahead: f64,
        shared_state: &mut SharedState,
    ) {
        if operands.waits {
            self.block(warp, Blocked::Barrier(operands.place));
        }
        let resident = self.warp(warp);
        let (kernel, cta) = (resident.kernel, usize::from(resident.cta));
        let passes = !operands.waits && operands.warps == 0;
        let again = passes && resident.arrive(operands.place);
        shared_state.counts[gpumodel_core::units::to_usize(kernel)].assumed_barriers +=
            u64::from(operands.assumed);
        if let Some(cta) = self.ctas[cta].as_mut().filter(|_| !again) {
            let barrier = Barrier::find(&mut cta.barriers, operands);
            barrier.arrived += 1;
            barrier.ahead += u32::from(passes);
        }
        self.open_barriers(cta, shared_state);
        if !operands.waits {
            self.pass(warp, ahead, shared_state);
        }
    }

    /// A warp has ended: it no longer counts where it had arrived without waiting.
    pub(super) fn withdraw(&mut self, ended: &Warp) {
        let Some(cta) = self.ctas[usize::from(ended.cta)].as_mut() else { return };
        for barrier in &mut cta.barriers {
            if barrier.warps == 0 && ended.has_arrived(barrier.place) {
                barrier.arrived -= 1;
                barrier.ahead -= 1;
            }
        }
    }

    /// Opens what barriers of a CTA can open.
    pub(super) fn open_barriers(&mut self, cta: usize, shared_state: &mut SharedState) {
        let count = self.ctas[cta].as_ref().map_or(0, |cta| cta.barriers.len());
        for place in 0..count {
            self.open_barrier(cta, place, shared_state);
        }
    }

    /// Lets the waiting warps go when all have arrived that must.
    fn open_barrier(&mut self, place: usize, barrier: usize, shared_state: &mut SharedState) {
        let Some(cta) = self.ctas[place].as_ref() else { return };
        let Barrier { place: name, arrived, warps, ahead } = cta.barriers[barrier];
        if arrived == 0 || arrived < self.awaited(place, name, warps) {
            return;
        }
        let left = if warps > 0 { arrived - warps } else { 0 };
        let next = shared_state.queue.now() + 1;
        for index in 0..self.ctas[place].as_ref().map_or(0, |cta| cta.warps.len()) {
            let Some((slot, warp)) = self.member(place, index) else { continue };
            let waits = warp.blocked == Blocked::Barrier(name);
            let stopped = warp.blocked == Blocked::Stopped;
            let stopped = stopped && matches!(warp.next, Next::Barrier(at) if at == name);
            if ahead > 0 {
                self.warp(slot).depart(name);
            }
            if stopped {
                self.warp(slot).next = Next::Settled;
            }
            if waits {
                self.wake_at(slot, next, shared_state);
            }
        }
        if name == BarrierOperands::TASK {
            self.ask(place);
        }
        if let Some(cta) = self.ctas[place].as_mut() {
            cta.barriers[barrier] = Barrier { arrived: left, ahead: 0, ..cta.barriers[barrier] };
        }
    }

    /// Arrivals that a barrier opens at: warps that have issued their last
    /// instruction count as ended, and at barriers of a block those that have done
    /// their part of it.
    fn awaited(&self, place: usize, name: u8, warps: u32) -> u32 {
        if warps > 0 {
            return warps;
        }
        let Some(cta) = self.ctas[place].as_ref() else { return 0 };
        let members = (0..cta.warps.len()).filter_map(|index| self.member(place, index));
        let done = |warp: &Warp| {
            name != BarrierOperands::TASK && warp.blocked == Blocked::Barrier(BarrierOperands::TASK)
        };
        let gone =
            members.filter(|(_, warp)| done(warp) || warp.has_ended() && !warp.has_arrived(name));
        cta.live - to_u32(gone.count())
    }

    /// A warp of a CTA by its place in it, unless it has ended.
    pub(super) fn member(&self, place: usize, index: usize) -> Option<(u16, &Warp)> {
        let slot = self.ctas[place].as_ref()?.warps[index];
        let warp = self.warps[usize::from(slot)].as_ref()?;
        (usize::from(warp.cta) == place).then_some((slot, warp))
    }
}
