//! What the CTAs of a cluster do together, as one SM sees it: the barrier of the cluster, the
//! shared memories of the others, and messages to their barrier objects.

use gpumodel_core::isa::{Access, ObjectStep};
use gpumodel_core::units::{Cycle, to_usize};

use crate::config::Machine;
use crate::gpu::clusters::{MessageKind, Seat};
use crate::gpu::shared_state::{SharedState, Windows};
use crate::interval::BarrierOperands;
use crate::sm::barrier_objects::ObjectAccess;
use crate::sm::cta::Cta;
use crate::sm::lsu::queue::Route;
use crate::sm::warp::{Blocked, Warp};
use crate::sm::warps::Warps;

/// Where the rank of a CTA begins in an address of a cluster's shared memories.
const RANK_BIT: u32 = 24;

/// The way from an SM to the other CTAs of a cluster, see [`crate::config::Cluster`].
#[derive(Clone, Copy, Debug)]
pub(super) struct ClusterLink {
    /// Cycles that an access to another CTA's shared memory takes beyond one to the SM's own.
    pub(super) round_trip: Cycle,
    /// Bytes per cycle; 0: the machine has no clusters.
    bytes_per_cycle: u32,
    /// See [`crate::config::SmSpec::barrier_cycles`].
    pub(super) barrier_cycles: Cycle,
}

/// The rank in an address of a barrier object, without the window of generic addresses.
fn rank_of(address: u64) -> u8 {
    address.to_le_bytes()[to_usize(RANK_BIT / 8)]
}

/// The same address in the shared memory of another rank.
fn at_rank(address: u64, rank: u8) -> u64 {
    (address & !(0xff << RANK_BIT)) | u64::from(rank) << RANK_BIT
}

/// Lanes of an access, by generic addresses of shared memory, that go to another CTA of the
/// cluster than the one at `seat`.
pub(super) fn remote_lanes(seat: Option<Seat>, access: &Access, windows: &Windows) -> u32 {
    let Some(seat) = seat else { return 0 };
    let own = u64::from(seat.rank);
    let remote = |&(_, address): &(_, u64)| windows.generic.rank_of(address) != own;
    u32::try_from(access.active().filter(remote).count()).unwrap_or(0)
}

/// Lets the warps of a CTA go that wait at its cluster's barrier and may pass.
pub(super) fn pass_barrier(cta: &Cta, warps: &mut Warps, shared_state: &mut SharedState) {
    let Some(seat) = cta.seat else { return };
    let at = Blocked::Barrier(BarrierOperands::CLUSTER);
    for index in 0..cta.warps.len() {
        let Some((warp, state)) = cta.member(index, warps) else { continue };
        let (waits, phases) = (state.blocked == at, state.cluster_phases);
        if waits && shared_state.clusters.passes(seat, phases) {
            warps.wake_at(warp, shared_state.queue.now(), shared_state);
        }
    }
}

/// Tells the other CTAs that get the bytes of a bulk copy that they have come. Returns whether
/// the CTA itself gets them.
pub(super) fn spread_bulk_load(
    cta: &Cta,
    (place, bytes, multicast): (u16, u32, u16),
    done: Cycle,
    shared_state: &mut SharedState,
) -> bool {
    let Some(seat) = cta.seat.filter(|_| multicast != 0) else { return true };
    let Some(address) = cta.objects.at(place).map(|object| object.address) else { return true };
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

impl ClusterLink {
    /// The way between the SMs of `machine`.
    pub(super) fn new(machine: &Machine) -> Self {
        let cluster = machine.cluster.as_ref();
        let beyond = |cycles: u32| cycles.saturating_sub(machine.shared.latency_cycles);
        Self {
            round_trip: cluster.map_or(0, |cluster| u64::from(beyond(cluster.remote_cycles))),
            bytes_per_cycle: cluster.map_or(0, |cluster| cluster.remote_bytes_per_cycle.max(1)),
            barrier_cycles: u64::from(machine.sm.barrier_cycles.max(1)),
        }
    }

    /// Cycles in which so many bytes pass.
    fn passes(&self, bytes: u32) -> u32 {
        bytes.checked_div(self.bytes_per_cycle).map_or(0, |_| bytes.div_ceil(self.bytes_per_cycle))
    }

    /// The way of an access to shared memory of which so many bytes go to other CTAs.
    #[inline]
    pub(super) fn crossing(&self, route: Route, bytes: u32) -> Route {
        match route {
            Route::Shared { passes, .. } if bytes > 0 => {
                let passes = passes.max(self.passes(bytes));
                Route::Shared { passes, remote: true }
            }
            other => other,
        }
    }

    /// A warp arrives at its cluster's barrier, or waits there; true when it goes on. CTAs that run
    /// without their cluster pass.
    pub(super) fn step_at_barrier(
        &self,
        warp: u16,
        waits: bool,
        cta: &Cta,
        warps: &mut Warps,
        shared_state: &mut SharedState,
    ) -> bool {
        let Some(seat) = cta.seat else { return true };
        let resident = warps.resident(warp);
        resident.cluster_phases += u32::from(!waits);
        let phases = resident.cluster_phases;
        if !waits && shared_state.clusters.arrive(seat) {
            self.open_barrier(seat, shared_state);
        }
        let goes_on = !waits || shared_state.clusters.passes(seat, phases);
        if !goes_on {
            warps.block(warp, Blocked::Barrier(BarrierOperands::CLUSTER));
        }
        goes_on
    }

    /// The barrier of a cluster opens when the arrival has crossed and the news come back.
    fn open_barrier(&self, seat: Seat, shared_state: &mut SharedState) {
        let takes = self.barrier_cycles + self.round_trip;
        shared_state.open_cluster_at(seat, shared_state.queue.now() + takes);
    }

    /// A warp of a CTA in a cluster has ended.
    pub(super) fn leave_barrier(&self, seat: Seat, ended: &Warp, shared_state: &mut SharedState) {
        if shared_state.clusters.end_warp(seat, ended.cluster_phases) {
            self.open_barrier(seat, shared_state);
        }
    }

    /// Sends a step at a barrier object to the CTA whose it is; false: it is the warp's own CTA's,
    /// which has this seat.
    pub(super) fn sends_step(
        &self,
        seat: Option<Seat>,
        access: ObjectAccess,
        shared_state: &mut SharedState,
    ) -> bool {
        let ObjectAccess { step, address, lanes, value } = access;
        let Some((seat, address)) = seat.zip(address) else { return false };
        let rank = rank_of(address);
        let own = rank == seat.rank || u32::from(rank) >= shared_state.clusters.size(seat);
        if own || step == ObjectStep::Wait {
            return false;
        }
        let kind = MessageKind::Step { step, address, lanes, value };
        let at = shared_state.queue.now() + self.round_trip / 2;
        shared_state.send_in_cluster(seat, rank, kind, at);
        true
    }

    /// A message from another CTA of a cluster arrives.
    pub(super) fn receive(
        &self,
        cta: &mut Cta,
        kind: MessageKind,
        warps: &mut Warps,
        shared_state: &mut SharedState,
    ) {
        let now = shared_state.queue.now();
        match kind {
            MessageKind::Step { step, address, lanes, value } => {
                let place = cta.objects.place(address);
                cta.objects.step(place, step, lanes, value, now + self.barrier_cycles);
            }
            MessageKind::Bytes { address, bytes } => {
                let place = cta.objects.place(address);
                cta.objects.count_bytes(place, bytes, now);
            }
        }
        cta.wake_at_objects(warps, shared_state);
        cta.release_objects(warps, shared_state);
    }
}
