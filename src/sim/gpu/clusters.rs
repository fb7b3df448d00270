//! The clusters that run: whose CTAs are where, their barrier, and the messages between them.
//!
//! The barrier (PTX ISA, `barrier.cluster`) opens when all warps of the cluster that have not ended
//! have arrived. A cluster of which a CTA is flushed, halted or switched is broken: its warps
//! pass the barrier from then on, as the CTA comes back alone.

use gpumodel_core::isa::ObjectStep;
use gpumodel_core::units::Cycle;

use crate::gpu::event_queue::Event;
use crate::gpu::shared_state::SharedState;
use crate::slab::Slab;
use crate::sm::Sm;

/// Most CTAs of a cluster (CUDA C++ Programming Guide, thread block clusters: 16 where a kernel
/// asks for it).
pub(crate) const MOST_CTAS: u32 = 16;

/// The place of a CTA in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    /// The cluster.
    pub(crate) cluster: u32,
    /// Its rank, below 16.
    pub(crate) rank: u8,
}

/// What one CTA of a cluster sends to another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MessageKind {
    /// A step at the barrier object at an address, by so many lanes, with a register's value.
    Step { step: ObjectStep, address: u64, lanes: u32, value: Option<u64> },
    /// So many bytes of a bulk copy have come, which the object at an address counts.
    Bytes { address: u64, bytes: u32 },
}

#[derive(Clone, Copy, Debug)]
struct Message {
    to: Seat,
    kind: MessageKind,
}

/// One cluster.
#[derive(Clone, Copy, Debug, Default)]
struct Cluster {
    /// By rank: SM and slot of the CTA.
    members: [Option<(u16, u16)>; MOST_CTAS as usize],
    size: u32,
    /// CTAs that have taken their seats.
    seated: u32,
    /// Warps that have not ended.
    live: u32,
    /// Warps that have arrived in the present phase.
    arrived: u32,
    /// Phases that all have arrived at, and those of them that the waiting warps know of.
    complete: u32,
    open: u32,
    /// Events that name it.
    events: u32,
    /// Messages on their way.
    messages: u32,
    broken: bool,
    checking: bool,
}

impl Cluster {
    /// Ends the phase if all have arrived.
    fn settle(&mut self) -> bool {
        let ends = self.live > 0 && self.arrived >= self.live;
        if ends {
            self.arrived = 0;
            self.complete += 1;
            self.events += 1;
        }
        ends
    }

    fn is_empty(&self) -> bool {
        let gone = self.seated == self.size && self.members.iter().all(Option::is_none);
        gone && self.events == 0 && self.messages == 0
    }
}

/// All clusters that run.
#[derive(Debug)]
pub(crate) struct Clusters {
    all: Slab<Cluster>,
    messages: Slab<Message>,
}

impl Default for Clusters {
    fn default() -> Self {
        Self { all: Slab::new(), messages: Slab::new() }
    }
}

impl Clusters {
    /// A cluster of `size` CTAs, which are still to be seated.
    pub(crate) fn begin(&mut self, size: u32) -> u32 {
        self.all.insert(Cluster { size, ..Cluster::default() })
    }

    /// CTAs of the cluster of a seat.
    pub(crate) fn size(&self, seat: Seat) -> u32 {
        self.all.get(seat.cluster).size
    }

    /// A CTA of `warps` warps takes its seat.
    pub(crate) fn seat(&mut self, seat: Seat, at: (u16, u16), warps: u32) {
        let cluster = self.all.get_mut(seat.cluster);
        cluster.members[usize::from(seat.rank)] = Some(at);
        cluster.seated += 1;
        cluster.live += warps;
    }

    /// The CTA of a seat is gone.
    fn stand_up(&mut self, seat: Seat) {
        self.all.get_mut(seat.cluster).members[usize::from(seat.rank)] = None;
        self.clear(seat.cluster);
    }

    /// Forgets a cluster that nothing names any more.
    fn clear(&mut self, cluster: u32) {
        if self.all.get(cluster).is_empty() {
            self.all.remove(cluster);
        }
    }

    /// A warp arrives; true when it is the last one, and the barrier is to be opened.
    pub(crate) fn arrive(&mut self, seat: Seat) -> bool {
        let cluster = self.all.get_mut(seat.cluster);
        cluster.arrived += 1;
        cluster.settle()
    }

    /// A warp that has arrived at so many phases ends; true when the others have all arrived.
    pub(crate) fn end_warp(&mut self, seat: Seat, phases: u32) -> bool {
        let cluster = self.all.get_mut(seat.cluster);
        cluster.live -= 1;
        cluster.arrived -= u32::from(phases > cluster.complete);
        cluster.settle()
    }

    /// Whether a warp that has arrived at so many phases may pass.
    pub(crate) fn passes(&self, seat: Seat, phases: u32) -> bool {
        let cluster = self.all.get(seat.cluster);
        cluster.broken || phases <= cluster.open
    }

    /// Warps that have not ended, and those that have arrived in the present phase.
    pub(crate) fn awaited(&self, seat: Seat) -> (u32, u32) {
        let cluster = self.all.get(seat.cluster);
        (cluster.live, cluster.arrived)
    }
}

impl SharedState {
    /// Breaks the cluster of a CTA that leaves before its end.
    pub(crate) fn break_cluster(&mut self, seat: Seat) {
        let cluster = self.clusters.all.get_mut(seat.cluster);
        cluster.broken = true;
        cluster.events += 1;
        let (now, cluster) = (self.queue.now(), seat.cluster);
        self.queue.schedule(now, Event::ClusterOpen { cluster });
        self.clusters.stand_up(seat);
    }

    /// The barrier of a cluster opens at a cycle.
    pub(crate) fn open_cluster_at(&mut self, seat: Seat, at: Cycle) {
        self.queue.schedule(at, Event::ClusterOpen { cluster: seat.cluster });
    }

    /// Sends a message to the CTA of another rank, where it arrives at a cycle.
    pub(crate) fn send_in_cluster(&mut self, seat: Seat, rank: u8, kind: MessageKind, at: Cycle) {
        let to = Seat { rank, ..seat };
        self.clusters.all.get_mut(seat.cluster).messages += 1;
        let message = self.clusters.messages.insert(Message { to, kind });
        self.queue.schedule(at, Event::ClusterMessage { message });
    }

    /// A CTA has ended: those of its cluster that are left may wait for it.
    pub(crate) fn leave_cluster(&mut self, seat: Seat) {
        self.check_cluster(seat);
        self.clusters.stand_up(seat);
    }

    /// All warps of a CTA wait: checks, when this cycle's events have come, whether its cluster does.
    pub(crate) fn check_cluster(&mut self, seat: Seat) {
        let cluster = self.clusters.all.get_mut(seat.cluster);
        if !std::mem::replace(&mut cluster.checking, true) {
            cluster.events += 1;
            let (at, cluster) = (self.queue.now() + 1, seat.cluster);
            self.queue.schedule(at, Event::ClusterCheck { cluster });
        }
    }

    /// The barrier of a cluster opens, for good where the cluster is broken.
    pub(crate) fn open_cluster(&mut self, number: u32, sms: &mut [Sm]) {
        let cluster = self.clusters.all.get_mut(number);
        cluster.events -= 1;
        cluster.open = cluster.complete;
        let members = cluster.members;
        for (sm, slot) in members.into_iter().flatten() {
            sms[usize::from(sm)].pass_cluster_barrier(slot, self);
        }
        self.clusters.clear(number);
    }

    /// A message arrives.
    pub(crate) fn deliver(&mut self, message: u32, sms: &mut [Sm]) {
        let Message { to, kind } = self.clusters.messages.remove(message);
        let cluster = self.clusters.all.get_mut(to.cluster);
        cluster.messages -= 1;
        if let Some((sm, slot)) = cluster.members[usize::from(to.rank)] {
            sms[usize::from(sm)].receive(usize::from(slot), kind, self);
        }
        self.clusters.clear(to.cluster);
    }

    /// Lets a cluster go on all of whose warps wait while nothing is on its way: the trace lacks
    /// what they wait for.
    pub(crate) fn on_cluster_check(&mut self, number: u32, sms: &mut [Sm]) {
        let cluster = self.clusters.all.get_mut(number);
        cluster.events -= 1;
        cluster.checking = false;
        let quiet = cluster.events == 0 && cluster.messages == 0;
        let members = cluster.members.iter().flatten();
        let members: Vec<(usize, usize)> =
            members.map(|&(sm, slot)| (usize::from(sm), usize::from(slot))).collect();
        if quiet && members.iter().all(|&(sm, slot)| sms[sm].stands_still(slot)) {
            for (sm, slot) in members {
                sms[sm].let_objects_go(slot, self);
            }
        }
        self.clusters.clear(number);
    }
}

#[cfg(test)]
mod tests {
    use super::{Clusters, Seat};

    #[test]
    fn a_warp_that_ends_is_not_waited_for() {
        let mut clusters = Clusters::default();
        let seat = Seat { cluster: clusters.begin(2), rank: 0 };
        clusters.seat(seat, (0, 0), 3);
        assert!(!clusters.arrive(seat), "one of three");
        assert!(!clusters.end_warp(seat, 0), "one of two");
        assert!(!clusters.end_warp(seat, 1), "its arrival went with it");
        assert_eq!(clusters.awaited(seat), (1, 0));
        assert!(clusters.arrive(seat));
        assert!(!clusters.passes(seat, 1), "before the barrier opens");
        assert!(clusters.passes(seat, 0));
    }
}
