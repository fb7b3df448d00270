//! What leaves the L1 on its way to the slices.
//!
//! Evicted sectors wait in front of the SM's port. Nothing that sends passes
//! them, so what waits is bounded by the lines that one look-up, or the fills of
//! all outstanding misses, can evict.

use super::super::chip::Chip;
use super::super::event::Event;
use super::super::packet::{Ask, Origin, Packet};
use super::Sm;

impl Sm {
    /// Whether the SM's port takes another packet behind all evicted sectors.
    ///
    /// # Errors
    /// The cycle at which it will, or `None` when the SM will be woken.
    pub(super) fn port_room(&mut self, chip: &mut Chip) -> Result<(), Option<u64>> {
        self.send_evicted(chip)?;
        chip.fabric.port_room(self.id, chip.queue.now())
    }

    /// Sends evicted sectors while the port takes them.
    ///
    /// # Errors
    /// As [`Sm::port_room`].
    pub(super) fn send_evicted(&mut self, chip: &mut Chip) -> Result<(), Option<u64>> {
        while self.l1.has_leaving() {
            let now = chip.queue.now();
            chip.fabric.port_room(self.id, now)?;
            let Some(leaving) = self.l1.next_leaving() else { break };
            let address = chip.physical(leaving.address);
            chip.send(Packet {
                address,
                asked: leaving.address,
                ready: now + self.params.l1_latency,
                operation: 0,
                kernel: self.l1.kernel,
                bytes: leaving.bytes,
                sectors: self.l1.sectors_of(leaving.bytes),
                sm: self.id,
                slice: chip.fabric.slice_of(address),
                ask: Ask::WriteBack,
                fills_l1: false,
                origin: Origin::Sm,
            });
        }
        Ok(())
    }

    /// Stalls the load/store unit until its port takes packets again.
    pub(super) fn wait_for_port(&mut self, sent: Result<(), Option<u64>>, chip: &mut Chip) {
        let Err(at) = sent else { return };
        self.load_store.stalled = true;
        if let Some(at) = at {
            self.load_store.scheduled = at;
            chip.queue.schedule(at, Event::LoadStore { sm: self.id });
        }
    }
}
