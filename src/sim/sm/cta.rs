//! One CTA on an SM, a block or a worker that runs one task of blocks after the other: its warps,
//! and those of them that wait at its barrier objects.

use gpumodel_core::isa::ObjectStep;
use gpumodel_core::units::{Cycle, WARP_LANES, to_u32, to_usize};

use crate::gpu::clusters::Seat;
use crate::gpu::feed::Stream;
use crate::gpu::shared_state::SharedState;
use crate::interval::BarrierOperands;
use crate::sm::barrier_objects::{BarrierObjects, ObjectAccess};
use crate::sm::barriers::Barrier;
use crate::sm::cta_resources::Place;
use crate::sm::vacate::Vacating;
use crate::sm::warp::{Blocked, Warp};
use crate::sm::warps::Warps;
use crate::sm::{Bounds, Need};

/// One resident CTA.
#[derive(Debug)]
pub(super) struct Cta {
    pub(super) kernel: u32,
    /// Its slot on the SM.
    pub(super) slot: u16,
    /// Which of the launch's CTAs it is, in order of their start.
    pub(super) ordinal: u64,
    /// It is a worker.
    pub(super) duty: Option<Duty>,
    pub(super) started: Cycle,
    /// Cycles that its state was in memory.
    pub(super) away: Cycle,
    pub(super) need: Need,
    pub(super) place: Place,
    /// Warp instructions of its warps that have ended.
    pub(super) issued: u64,
    /// It is about to leave before its end.
    pub(super) vacating: Option<Vacating>,
    /// Warps that have not ended.
    pub(super) live: u32,
    /// Its place in a cluster that runs.
    pub(super) seat: Option<Seat>,
    /// Barriers that its warps have met.
    pub(super) barriers: Vec<Barrier>,
    /// Barrier objects in its shared memory.
    pub(super) objects: BarrierObjects,
    /// Registers per thread that its warps have given back.
    pub(super) spare_registers: u32,
    pub(super) warps: Vec<u16>,
}

/// A CTA that comes to an SM.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) kernel: u32,
    pub(crate) need: Need,
    /// The part of the SM from which it takes.
    pub(crate) bounds: &'a Bounds,
    /// When its warps may issue.
    pub(crate) begin: Cycle,
    /// Its place in a cluster that runs.
    pub(crate) seat: Option<Seat>,
}

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

impl Cta {
    /// A warp by its place in the CTA, with its slot, unless it has ended.
    #[inline]
    pub(super) fn member<'a>(&self, index: usize, warps: &'a Warps) -> Option<(u16, &'a Warp)> {
        let slot = self.warps[index];
        let warp = warps.get(slot)?;
        (warp.cta == self.slot).then_some((slot, warp))
    }

    /// The warps that have not ended, with their slots.
    pub(super) fn members<'a>(&self, warps: &'a Warps) -> impl Iterator<Item = (u16, &'a Warp)> {
        (0..self.warps.len()).filter_map(|index| self.member(index, warps))
    }

    /// Gives a worker a block: to each of its warps its stream.
    pub(super) fn hand(&self, streams: &mut Vec<Stream>, warps: &mut Warps) {
        debug_assert_eq!(streams.len(), self.warps.len(), "a worker has as many warps as a block");
        for (&slot, stream) in self.warps.iter().zip(streams.drain(..)) {
            if let Some(warp) = warps.get_mut(slot) {
                warp.stream.push(stream);
            }
        }
    }

    /// True when it is being stopped or saved.
    pub(super) fn leaves(&self) -> bool {
        matches!(self.vacating, Some(Vacating::Stopping(_) | Vacating::Saving))
    }

    /// Arrivals that a barrier opens at: warps that have issued their last
    /// instruction count as ended, and at barriers of a block those that have done
    /// their part of it.
    pub(super) fn awaited(&self, barrier: &Barrier, warps: &Warps) -> u32 {
        let &Barrier { place: name, warps: counted, .. } = barrier;
        if counted > 0 {
            return counted;
        }
        let done = |warp: &Warp| {
            name != BarrierOperands::TASK && warp.blocked == Blocked::Barrier(BarrierOperands::TASK)
        };
        let gone = |warp: &Warp| done(warp) || warp.has_ended() && !warp.has_arrived(name);
        self.live - to_u32(self.members(warps).filter(|(_, warp)| gone(warp)).count())
    }

    /// A warp wants `count` registers per thread, none of them from elsewhere than its CTA; true
    /// when it has them, as always where the trace does not know the launch's.
    pub(super) fn set_registers(&mut self, warp: u16, count: u32, warps: &mut Warps) -> bool {
        let held = self.registers_of(warps.resident(warp));
        if self.need.registers == 0 {
            return true;
        }
        if count > held + self.spare_registers {
            return false;
        }
        self.spare_registers += held;
        self.spare_registers -= count;
        warps.resident(warp).registers = Some(count);
        true
    }

    /// Registers per thread of a warp.
    pub(super) fn registers_of(&self, warp: &Warp) -> u32 {
        let launched = self.need.registers / (to_u32(WARP_LANES) * self.need.warps.max(1));
        warp.registers.unwrap_or(launched)
    }

    /// Wakes the warps that can have the registers for which they wait, in the order of the CTA.
    pub(super) fn hand_registers(&mut self, warps: &mut Warps, shared_state: &mut SharedState) {
        let now = shared_state.queue.now();
        for index in 0..self.warps.len() {
            let Some((slot, warp)) = self.member(index, warps) else { continue };
            let Blocked::Registers(count) = warp.blocked else { continue };
            if !warp.waking && self.set_registers(slot, count, warps) {
                warps.wake_at(slot, now, shared_state);
            }
        }
    }

    /// A warp waits at a barrier object, or does a step there.
    pub(super) fn step_at_object(
        &mut self,
        warp: u16,
        access: ObjectAccess,
        at: Cycle,
        warps: &mut Warps,
        shared_state: &mut SharedState,
    ) {
        let counts = &mut shared_state.counts[to_usize(self.kernel)];
        if access.step == ObjectStep::Wait {
            let wait = self.objects.wait(access);
            counts.assumed_object_waits += u64::from(self.objects.is_assumed(wait));
            warps.resident(warp).object = wait;
            return;
        }
        let place = self.objects.place_of(access.address);
        self.objects.step(place, access.step, access.lanes, access.value, at);
        if matches!(access.step, ObjectStep::ArriveExpect | ObjectStep::Expect) {
            let bytes = access.value.unwrap_or(0) & 0xffff_ffff;
            counts.expected_bytes += bytes * u64::from(access.lanes);
        }
        self.wake_at_objects(warps, shared_state);
    }

    /// Wakes the warps whose waits at barrier objects are over.
    pub(super) fn wake_at_objects(&self, warps: &mut Warps, shared_state: &mut SharedState) {
        let now = shared_state.queue.now();
        for (warp, object) in self.waits_at_objects(warps) {
            if let Some(at) = self.objects.ready_at(object) {
                warps.wake_at(warp, at.max(now), shared_state);
            }
        }
    }

    /// The warps that wait at barrier objects, and for what.
    fn waits_at_objects(&self, warps: &Warps) -> Vec<(u16, (u16, Option<bool>))> {
        let waits = |warp: &Warp| warp.blocked == Blocked::Object && !warp.waking;
        let members = self.members(warps).filter(|(_, warp)| waits(warp));
        members.map(|(slot, warp)| (slot, warp.object)).collect()
    }

    /// Lets the warps of a CTA of a cluster go on when all wait and nothing of its own is left
    /// to end a phase: what they wait for comes from other CTAs. Where these are known, all of the
    /// cluster must wait.
    pub(super) fn release_objects(&mut self, warps: &mut Warps, shared_state: &mut SharedState) {
        let clustered = shared_state.windows(self.kernel).cluster > 1
            || shared_state.profile(self.kernel).in_cluster();
        if !clustered || !self.stands_still(warps) {
            return;
        }
        match self.seat {
            Some(seat) => shared_state.check_cluster(seat),
            None => self.let_objects_go(warps, shared_state),
        }
    }

    /// True when all warps wait and no copy is in flight that could end a phase.
    pub(super) fn stands_still(&self, warps: &Warps) -> bool {
        let stands = |blocked| {
            matches!(blocked, Blocked::Object | Blocked::Barrier(_) | Blocked::Registers(_))
        };
        !self.objects.has_copies()
            && self.members(warps).all(|(_, w)| stands(w.blocked) && !w.waking || w.has_ended())
    }

    /// Lets the warps go that wait at barrier objects: the trace lacks what would end the phases.
    pub(super) fn let_objects_go(&mut self, warps: &mut Warps, shared_state: &mut SharedState) {
        for (_, (place, _)) in self.waits_at_objects(warps) {
            self.objects.forget_counts(place);
            shared_state.counts[to_usize(self.kernel)].assumed_object_waits += 1;
        }
        self.wake_at_objects(warps, shared_state);
    }
}
