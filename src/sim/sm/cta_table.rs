//! The CTAs of one SM: which slots and resources they have, how they meet at barriers and barrier
//! objects, and which have left.

use gpumodel_core::units::{Cycle, to_u16, to_u32, to_usize};

use crate::config::Machine;
use crate::gpu::clusters::{MessageKind, Seat};
use crate::gpu::shared_state::SharedState;
use crate::gpu::timeline::CtaSpan;
use crate::interval::BarrierOperands;
use crate::sm::barrier_objects::ObjectAccess;
use crate::sm::barriers::{BarrierUnit, withdraw};
use crate::sm::cluster::{ClusterLink, pass_barrier, spread_bulk_load};
use crate::sm::cta::Cta;
use crate::sm::cta_resources::{CtaResources, Place};
use crate::sm::warp::Warp;
use crate::sm::warps::Warps;
use crate::sm::{Bounds, Departure, Need};

/// The CTAs of one SM.
#[derive(Debug)]
pub(super) struct CtaTable {
    sm: u16,
    slots: Vec<Option<Cta>>,
    resources: CtaResources,
    barrier_unit: BarrierUnit,
    cluster: ClusterLink,
    /// CTAs that have left and are still to be reported.
    pub(super) departed: Vec<Departure>,
}

impl CtaTable {
    /// No CTAs on SM `sm` of `machine`.
    pub(super) fn new(sm: u16, machine: &Machine) -> Self {
        Self {
            sm,
            slots: (0..machine.sm.max_ctas).map(|_| None).collect(),
            resources: CtaResources::whole(machine),
            barrier_unit: BarrierUnit::new(machine),
            cluster: ClusterLink::new(machine),
            departed: Vec::new(),
        }
    }

    /// The CTA in a slot, if there is one.
    #[inline]
    pub(super) fn get(&self, slot: usize) -> Option<&Cta> {
        self.slots[slot].as_ref()
    }

    /// The same, to be changed.
    #[inline]
    pub(super) fn get_mut(&mut self, slot: usize) -> Option<&mut Cta> {
        self.slots[slot].as_mut()
    }

    /// The CTAs, by slot.
    pub(super) fn all(&self) -> impl Iterator<Item = &Cta> {
        self.slots.iter().flatten()
    }

    /// The place of a CTA in a cluster that runs.
    #[inline]
    pub(super) fn seat_of(&self, slot: u16) -> Option<Seat> {
        self.get(usize::from(slot)).and_then(|cta| cta.seat)
    }

    /// Free warp slots.
    pub(super) fn free_warps(&self) -> u32 {
        self.resources.free_warps()
    }

    /// True when a CTA fits now, within `bounds` of the SM.
    pub(super) fn holds(&self, need: &Need, bounds: &Bounds) -> bool {
        self.resources.place(need, bounds).is_some()
    }

    /// CTAs of `need` that fit now within `bounds` of the SM, at most `most`.
    pub(super) fn takes(&self, need: &Need, bounds: &Bounds, most: u32) -> u32 {
        let mut resources = self.resources.clone();
        let more = |_: &u32| {
            let place = resources.place(need, bounds);
            place.inspect(|&place| resources.take(need, place)).is_some()
        };
        to_u32((0..most).take_while(more).count())
    }

    /// Takes the resources of a CTA that fits, and the lowest free slot.
    pub(super) fn reserve(&mut self, need: &Need, bounds: &Bounds) -> (u16, Place) {
        let place = self.resources.place(need, bounds).expect("the dispatcher has asked for room");
        self.resources.take(need, place);
        let slot = self.slots.iter().position(Option::is_none);
        (to_u16(slot.expect("the room counts CTA slots")), place)
    }

    /// A CTA is in the slot reserved for it.
    pub(super) fn seat(&mut self, cta: Cta, shared_state: &mut SharedState) {
        let (slot, seat, live) = (cta.slot, cta.seat, cta.live);
        self.slots[usize::from(slot)] = Some(cta);
        if let Some(seat) = seat {
            shared_state.clusters.seat(seat, (self.sm, slot), live);
        }
    }

    /// Takes a CTA out, with its resources.
    pub(super) fn remove(&mut self, slot: usize) -> Cta {
        let cta = self.slots[slot].take().expect("only resident CTAs leave");
        self.resources.give_back(&cta.need, cta.place);
        cta
    }

    /// A store of a warp that has ended is done.
    pub(super) fn end_store(&mut self, kernel: u32, shared_state: &mut SharedState) {
        let left = &mut shared_state.stores_left[to_usize(kernel)];
        *left -= 1;
        if *left == 0 {
            self.departed.push(Departure::Stored { kernel });
        }
    }

    /// A CTA has ended.
    pub(super) fn retire(&mut self, slot: usize, shared_state: &mut SharedState) {
        let cta = self.remove(slot);
        if let Some(seat) = cta.seat {
            shared_state.leave_cluster(seat);
        }
        let (kernel, started) = (cta.kernel, cta.started + cta.away);
        self.departed.push(Departure::Retired { kernel, started });
        shared_state.counts[to_usize(kernel)].ctas_retired += u64::from(cta.duty.is_none());
        if let Some(spans) = &mut shared_state.spans {
            let (kernel, ordinal, start) = (cta.kernel, cta.ordinal, cta.started);
            let end = shared_state.queue.now();
            spans.push(CtaSpan { kernel, ordinal, sm: self.sm, start, end });
        }
    }

    /// A warp of a CTA has ended and its accesses are done: so has the CTA with its last one.
    pub(super) fn end_warp(
        &mut self,
        ended: &Warp,
        warps: &mut Warps,
        shared_state: &mut SharedState,
    ) {
        let slot = usize::from(ended.cta);
        let cta = self.slots[slot].as_mut().expect("a warp's CTA is resident");
        withdraw(&mut cta.barriers, ended);
        cta.live -= 1;
        cta.issued += ended.issued;
        let (seat, live) = (cta.seat, cta.live);
        if let Some(seat) = seat {
            self.cluster.leave_barrier(seat, ended, shared_state);
        }
        if live == 0 {
            self.retire(slot, shared_state);
        } else {
            self.open_barriers(slot, warps, shared_state);
            self.release_objects(slot, warps, shared_state);
        }
    }

    /// A warp has issued a barrier instruction; true when it goes on at once.
    pub(super) fn arrive_at_barrier(
        &mut self,
        warp: u16,
        operands: BarrierOperands,
        warps: &mut Warps,
        shared_state: &mut SharedState,
    ) -> bool {
        let slot = usize::from(warps.resident(warp).cta);
        let cta = self.slots[slot].as_mut().expect("a warp's CTA is resident");
        let goes_on = if operands.place == BarrierOperands::CLUSTER {
            self.cluster.step_at_barrier(warp, operands.waits, cta, warps, shared_state)
        } else {
            self.barrier_unit.arrive(warp, operands, cta, warps, shared_state);
            self.open_barriers(slot, warps, shared_state);
            !operands.waits
        };
        if !goes_on {
            self.release_objects(slot, warps, shared_state);
        }
        goes_on
    }

    /// A warp wants `count` registers per thread; true when it has them and goes on. What it gives
    /// back goes to the warps of its CTA that wait.
    pub(super) fn set_registers(
        &mut self,
        warp: u16,
        count: u32,
        warps: &mut Warps,
        shared_state: &mut SharedState,
    ) -> bool {
        let slot = usize::from(warps.resident(warp).cta);
        let cta = self.slots[slot].as_mut().expect("a warp's CTA is resident");
        let has = cta.set_registers(warp, count, warps);
        if has {
            cta.hand_registers(warps, shared_state);
        }
        has
    }

    /// Opens what barriers of a CTA can open.
    pub(super) fn open_barriers(
        &mut self,
        slot: usize,
        warps: &mut Warps,
        shared_state: &mut SharedState,
    ) {
        let Some(cta) = self.slots[slot].as_mut() else { return };
        if self.barrier_unit.open(cta, warps, shared_state) {
            self.departed.push(Departure::Asks { kernel: cta.kernel, slot });
        }
    }

    /// Lets the warps of a CTA go that wait at its cluster's barrier and may pass.
    pub(super) fn pass_cluster_barrier(
        &self,
        slot: u16,
        warps: &mut Warps,
        shared_state: &mut SharedState,
    ) {
        if let Some(cta) = self.get(usize::from(slot)) {
            pass_barrier(cta, warps, shared_state);
        }
    }

    /// A message from another CTA of its cluster arrives at a CTA.
    pub(super) fn receive(
        &mut self,
        slot: usize,
        kind: MessageKind,
        warps: &mut Warps,
        shared_state: &mut SharedState,
    ) {
        if let Some(cta) = self.slots[slot].as_mut() {
            self.cluster.receive(cta, kind, warps, shared_state);
        }
    }

    /// A warp waits at a barrier object, or does a step there, of its own CTA or another one of
    /// the cluster.
    pub(super) fn step_at_object(
        &mut self,
        warp: u16,
        access: ObjectAccess,
        warps: &mut Warps,
        shared_state: &mut SharedState,
    ) {
        let slot = warps.resident(warp).cta;
        let at = shared_state.queue.now() + self.cluster.barrier_cycles;
        if self.cluster.sends_step(self.seat_of(slot), access, shared_state) {
            return;
        }
        if let Some(cta) = self.get_mut(usize::from(slot)) {
            cta.step_at_object(warp, access, at, warps, shared_state);
        }
    }

    /// A bulk copy of a warp of the CTA has no bytes in the trace.
    pub(super) fn miss_bulk_load(
        &mut self,
        slot: usize,
        warps: &mut Warps,
        shared_state: &mut SharedState,
    ) {
        if let Some(cta) = self.get_mut(slot) {
            cta.objects.miss_copy(shared_state.queue.now());
            cta.wake_at_objects(warps, shared_state);
        }
    }

    /// A bulk copy of a warp of the CTA has ended at a cycle.
    pub(super) fn end_bulk_load(
        &mut self,
        slot: usize,
        (place, bytes, multicast): (u16, u32, u16),
        at: Cycle,
        warps: &mut Warps,
        shared_state: &mut SharedState,
    ) {
        let Some(cta) = self.get_mut(slot) else { return };
        let own = spread_bulk_load(cta, (place, bytes, multicast), at, shared_state);
        cta.objects.end_copy(place, if own { bytes } else { 0 }, at);
        cta.wake_at_objects(warps, shared_state);
        cta.release_objects(warps, shared_state);
    }

    /// When the wait of a warp at a barrier object is over; `None`: not yet known.
    pub(super) fn object_ready_at(&self, warp: &Warp) -> Option<Cycle> {
        let cta = self.get(usize::from(warp.cta));
        cta.map_or(Some(0), |cta| cta.objects.ready_at(warp.object))
    }

    /// Lets the warps of a CTA of a cluster go on where nothing of its own is left to wait for.
    pub(super) fn release_objects(
        &mut self,
        slot: usize,
        warps: &mut Warps,
        shared_state: &mut SharedState,
    ) {
        if let Some(cta) = self.get_mut(slot) {
            cta.release_objects(warps, shared_state);
        }
    }
}
