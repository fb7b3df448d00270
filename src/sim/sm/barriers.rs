//! The barriers of CTAs, and the unit of the SM that takes their arrivals in turn.
//!
//! Barriers are numbered, each with its own count of arrivals, of the whole CTA or of so
//! many warps. A barrier of the whole CTA opens when all warps that have not ended have
//! arrived (CUDA C++ Programming Guide, compute capability 7.x: all non-exited
//! threads); a counted one only by arrivals.

use gpumodel_core::units::{Cycle, to_usize};

use crate::config::Machine;
use crate::gpu::shared_state::SharedState;
use crate::interval::BarrierOperands;
use crate::sm::cta::Cta;
use crate::sm::warp::{Blocked, Next, Warp};
use crate::sm::warps::Warps;

/// One barrier of a CTA at which warps have arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Barrier {
    /// Which one.
    pub(super) place: u8,
    /// Arrivals since it opened last.
    pub(super) arrived: u32,
    /// Warps that must arrive; 0: all of the CTA.
    pub(super) warps: u32,
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

/// A warp of a CTA has ended: it no longer counts where it had arrived without waiting.
pub(super) fn withdraw(barriers: &mut [Barrier], ended: &Warp) {
    for barrier in barriers {
        if barrier.warps == 0 && ended.has_arrived(barrier.place) {
            barrier.arrived -= 1;
            barrier.ahead -= 1;
        }
    }
}

/// The barrier unit of one SM.
#[derive(Debug)]
pub(super) struct BarrierUnit {
    /// When it has taken all arrivals so far.
    free: Cycle,
    /// See [`crate::config::SmSpec::barrier_cycles`].
    cycles: Cycle,
    /// See [`crate::config::SmSpec::barrier_arrival_cycles`].
    arrival: Cycle,
}

impl BarrierUnit {
    /// The idle unit of an SM of `machine`.
    pub(super) fn new(machine: &Machine) -> Self {
        Self {
            free: 0,
            cycles: u64::from(machine.sm.barrier_cycles.max(1)),
            arrival: u64::from(machine.sm.barrier_arrival_cycles),
        }
    }

    /// A warp of a CTA arrives at a barrier, where it waits if the operands say so.
    pub(super) fn arrive(
        &mut self,
        warp: u16,
        operands: BarrierOperands,
        cta: &mut Cta,
        warps: &mut Warps,
        shared_state: &mut SharedState,
    ) {
        if operands.waits {
            warps.block(warp, Blocked::Barrier(operands.place));
        }
        let begin = self.free.max(shared_state.queue.now());
        self.free = begin + self.arrival;
        let passes = !operands.waits && operands.warps == 0;
        let again = passes && warps.resident(warp).arrive(operands.place);
        let counts = &mut shared_state.counts[to_usize(cta.kernel)];
        counts.assumed_barriers += u64::from(operands.assumed);
        if !again {
            let barrier = Barrier::find(&mut cta.barriers, operands);
            barrier.arrived += 1;
            barrier.ahead += u32::from(passes);
        }
    }

    /// Opens what barriers of a CTA can open; true when its warps then wait for a task.
    pub(super) fn open(
        &self,
        cta: &mut Cta,
        warps: &mut Warps,
        shared_state: &mut SharedState,
    ) -> bool {
        let mut asks = false;
        for place in 0..cta.barriers.len() {
            let barrier = cta.barriers[place];
            if barrier.arrived == 0 || barrier.arrived < cta.awaited(&barrier, warps) {
                continue;
            }
            self.release(cta, &barrier, warps, shared_state);
            asks |= barrier.place == BarrierOperands::TASK;
            let left = if barrier.warps > 0 { barrier.arrived - barrier.warps } else { 0 };
            cta.barriers[place] = Barrier { arrived: left, ahead: 0, ..barrier };
        }
        asks
    }

    /// Lets the warps of a CTA go that wait at a barrier: all have arrived that must.
    fn release(
        &self,
        cta: &Cta,
        barrier: &Barrier,
        warps: &mut Warps,
        shared_state: &mut SharedState,
    ) {
        let name = barrier.place;
        let arrival = self.free.saturating_sub(self.arrival);
        let next = arrival.max(shared_state.queue.now()) + self.cycles;
        for index in 0..cta.warps.len() {
            let Some((slot, warp)) = cta.member(index, warps) else { continue };
            let waits = warp.blocked == Blocked::Barrier(name);
            let stopped = warp.blocked == Blocked::Stopped;
            let stopped = stopped && matches!(warp.next, Next::Barrier(at) if at == name);
            if barrier.ahead > 0 {
                warps.resident(slot).depart(name);
            }
            if stopped {
                warps.resident(slot).next = Next::Settled;
            }
            if waits {
                warps.wake_at(slot, next, shared_state);
            }
        }
    }
}
