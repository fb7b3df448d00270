//! What leaves the L1 on its way to the slices.
//!
//! Evicted sectors wait in front of the SM's port. Nothing that sends passes
//! them, so what waits is bounded by the lines that one look-up, or the fills of
//! all outstanding misses, can evict.

use super::Sm;
use crate::gpu::event_queue::Event;
use crate::gpu::shared_state::SharedState;
use crate::memory::packet::{Origin, Packet, RequestKind};

impl Sm {
    /// Whether the SM's port takes another packet behind all evicted sectors.
    ///
    /// # Errors
    /// The cycle at which it will, or `None` when the SM will be woken.
    pub(super) fn port_room(&mut self, shared_state: &mut SharedState) -> Result<(), Option<u64>> {
        self.send_evicted(shared_state)?;
        shared_state.memory_system.port_room(self.id, shared_state.queue.now())
    }

    /// Sends evicted sectors while the port takes them.
    ///
    /// # Errors
    /// As [`Sm::port_room`].
    pub(super) fn send_evicted(
        &mut self,
        shared_state: &mut SharedState,
    ) -> Result<(), Option<u64>> {
        while self.l1.has_leaving() {
            let now = shared_state.queue.now();
            shared_state.memory_system.port_room(self.id, now)?;
            let Some(leaving) = self.l1.next_leaving() else { break };
            let address = shared_state.physical(leaving.address);
            shared_state.send(Packet {
                address,
                asked: leaving.address,
                ready: now + self.params.l1_latency,
                operation: 0,
                kernel: self.l1.kernel,
                bytes: leaving.bytes,
                sectors: self.l1.sectors_of(leaving.bytes),
                sm: self.id,
                slice: shared_state.memory_system.slice_of(address),
                ask: RequestKind::WriteBack,
                fills_l1: false,
                origin: Origin::Sm,
            });
        }
        Ok(())
    }

    /// Stalls the load/store unit until its port takes packets again.
    pub(super) fn wait_for_port(
        &mut self,
        sent: Result<(), Option<u64>>,
        shared_state: &mut SharedState,
    ) {
        let Err(at) = sent else { return };
        self.load_store.stalled = true;
        if let Some(at) = at {
            self.load_store.scheduled = at;
            shared_state.queue.schedule(at, Event::LoadStore { sm: self.id });
        }
    }
}
