//! What the CTAs of a cluster do together, as one SM sees it: the barrier of the cluster, the
//! shared memories of the others, and messages to their barrier objects.

use gpumodel_core::isa::ObjectStep;
use gpumodel_core::units::{Cycle, to_usize};

use crate::config::Machine;
use crate::gpu::clusters::{MessageKind, Seat};
use crate::gpu::shared_state::SharedState;
use crate::interval::BarrierOperands;
use crate::sm::Sm;
use crate::sm::lsu::queue::Route;
use crate::sm::warp::{Blocked, Warp};

/// Where the rank of a CTA begins in an address of a cluster's shared memories.
const RANK_BIT: u32 = 24;

/// Figures of [`crate::config::Cluster`], as the SM counts with them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClusterParams {
    /// Cycles that an access to another CTA's shared memory takes beyond one to the SM's own.
    pub(super) round_trip: Cycle,
    /// Bytes per cycle; 0: the machine has no clusters.
    bytes_per_cycle: u32,
}

impl ClusterParams {
    pub(super) fn new(machine: &Machine) -> Self {
        let Some(cluster) = &machine.cluster else { return Self::default() };
        let beyond = cluster.remote_cycles.saturating_sub(machine.shared.latency_cycles);
        Self {
            round_trip: u64::from(beyond),
            bytes_per_cycle: cluster.remote_bytes_per_cycle.max(1),
        }
    }

    /// Cycles in which so many bytes pass.
    pub(super) fn passes(&self, bytes: u32) -> u32 {
        bytes.checked_div(self.bytes_per_cycle).map_or(0, |_| bytes.div_ceil(self.bytes_per_cycle))
    }
}

/// The rank in an address of a barrier object, without the window of generic addresses.
fn rank_of(address: u64) -> u8 {
    address.to_le_bytes()[to_usize(RANK_BIT / 8)]
}

/// The same address in the shared memory of another rank.
fn at_rank(address: u64, rank: u8) -> u64 {
    (address & !(0xff << RANK_BIT)) | u64::from(rank) << RANK_BIT
}

impl Sm {
    /// The place of a warp's CTA in a cluster that runs.
    fn seat_of(&self, slot: usize) -> Option<Seat> {
        self.ctas[slot].as_ref().and_then(|cta| cta.seat)
    }

    /// A warp arrives at its cluster's barrier, or waits there. CTAs that run without their
    /// cluster pass.
    pub(super) fn step_at_cluster_barrier(
        &mut self,
        warp: u16,
        waits: bool,
        ahead: f64,
        shared_state: &mut SharedState,
    ) {
        let slot = usize::from(self.warp(warp).cta);
        if let Some(seat) = self.seat_of(slot) {
            let resident = self.warp(warp);
            resident.cluster_phases += u32::from(!waits);
            let phases = resident.cluster_phases;
            if !waits && shared_state.clusters.arrive(seat) {
                self.open_cluster(seat, shared_state);
            }
            if waits && !shared_state.clusters.passes(seat, phases) {
                self.block(warp, Blocked::Barrier(BarrierOperands::CLUSTER));
                return self.release_objects(slot, shared_state);
            }
        }
        self.pass(warp, ahead, shared_state);
    }

    /// The barrier of a cluster opens when the arrival has crossed and the news come back.
    fn open_cluster(&mut self, seat: Seat, shared_state: &mut SharedState) {
        let takes = self.params.barrier_cycles + self.params.cluster.round_trip;
        shared_state.open_cluster_at(seat, shared_state.queue.now() + takes);
    }

    /// A warp of a CTA in a cluster has ended.
    pub(super) fn leave_cluster_barrier(
        &mut self,
        seat: Seat,
        ended: &Warp,
        shared_state: &mut SharedState,
    ) {
        if shared_state.clusters.end_warp(seat, ended.cluster_phases) {
            self.open_cluster(seat, shared_state);
        }
    }

    /// Lets the warps of a CTA go that wait at its cluster's barrier and may pass.
    pub(crate) fn pass_cluster_barrier(&mut self, slot: u16, shared_state: &mut SharedState) {
        let slot = usize::from(slot);
        let Some(seat) = self.seat_of(slot) else { return };
        let at = Blocked::Barrier(BarrierOperands::CLUSTER);
        let count = self.ctas[slot].as_ref().map_or(0, |cta| cta.warps.len());
        for index in 0..count {
            let Some((warp, state)) = self.member(slot, index) else { continue };
            let (waits, phases) = (state.blocked == at, state.cluster_phases);
            if waits && shared_state.clusters.passes(seat, phases) {
                self.wake_at(warp, shared_state.queue.now(), shared_state);
            }
        }
    }

    /// Lanes of the access at hand, by generic addresses of shared memory, that go to another CTA
    /// of the warp's cluster.
    pub(super) fn remote_lanes(&mut self, warp: u16, shared_state: &SharedState) -> u32 {
        let resident = self.warp(warp);
        let (slot, kernel) = (usize::from(resident.cta), resident.kernel);
        let Some(seat) = self.seat_of(slot) else { return 0 };
        let (windows, own) = (shared_state.windows(kernel).generic, u64::from(seat.rank));
        let lanes = self.lsu.access.active();
        let remote = lanes.filter(|&(_, address)| windows.rank_of(address) != own);
        u32::try_from(remote.count()).unwrap_or(0)
    }

    /// The way of an access to shared memory of which so many bytes go to other CTAs.
    #[inline]
    pub(super) fn crossing(&self, route: Route, bytes: u32) -> Route {
        match route {
            Route::Shared { passes, .. } if bytes > 0 => {
                let passes = passes.max(self.params.cluster.passes(bytes));
                Route::Shared { passes, remote: true }
            }
            other => other,
        }
    }

    /// Sends a step at a barrier object to the CTA whose it is; false: it is the warp's own CTA's.
    pub(super) fn sends_step(
        &mut self,
        slot: usize,
        (step, address): (ObjectStep, Option<u64>),
        (lanes, value): (u32, Option<u64>),
        shared_state: &mut SharedState,
    ) -> bool {
        let Some((seat, address)) = self.seat_of(slot).zip(address) else { return false };
        let rank = rank_of(address);
        if rank == seat.rank || u32::from(rank) >= shared_state.clusters.size(seat) {
            return false;
        }
        let kind = MessageKind::Step { step, address, lanes, value };
        let at = shared_state.queue.now() + self.params.cluster.round_trip / 2;
        shared_state.send_in_cluster(seat, rank, kind, at);
        true
    }

    /// Tells the other CTAs that get the bytes of a bulk copy that they have come. Returns whether
    /// the CTA itself gets them.
    pub(super) fn spread_bulk_load(
        &mut self,
        slot: usize,
        (place, bytes, multicast): (u16, u32, u16),
        done: Cycle,
        shared_state: &mut SharedState,
    ) -> bool {
        let Some(seat) = self.seat_of(slot).filter(|_| multicast != 0) else { return true };
        let own = self.ctas[slot].as_ref().and_then(|cta| cta.objects.at(place));
        let Some(address) = own.map(|object| object.address) else { return true };
        for rank in (0..u16::BITS).filter(|rank| multicast >> rank & 1 == 1) {
            let rank = u8::try_from(rank).unwrap_or(u8::MAX);
            if rank != seat.rank && u32::from(rank) < shared_state.clusters.size(seat) {
                let kind = MessageKind::Bytes { address: at_rank(address, rank), bytes };
                let at = done.max(shared_state.queue.now());
                shared_state.send_in_cluster(seat, rank, kind, at);
            }
        }
        multicast >> seat.rank & 1 == 1
    }

    /// A message from another CTA of a cluster arrives.
    pub(crate) fn receive(
        &mut self,
        slot: usize,
        kind: MessageKind,
        shared_state: &mut SharedState,
    ) {
        let now = shared_state.queue.now();
        let Some(cta) = self.ctas[slot].as_mut() else { return };
        match kind {
            MessageKind::Step { step, address, lanes, value } => {
                let place = cta.objects.place(address);
                let at = now + self.params.barrier_cycles;
                cta.objects.step(place, step, lanes, value, at);
            }
            MessageKind::Bytes { address, bytes } => {
                let place = cta.objects.place(address);
                cta.objects.count_bytes(place, bytes, now);
            }
        }
        self.wake_at_objects(slot, shared_state);
        self.release_objects(slot, shared_state);
    }
}
