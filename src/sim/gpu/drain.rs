//! The end of a run: what is on its way to memory arrives there and is counted. The run's
//! cycles stand before; dirty lines stay where they are.

use crate::counters::KernelCounts;
use crate::gpu::event_queue::{Event, EventQueue};
use crate::gpu::{Gpu, PATIENCE};
use crate::memory::MemorySystem;

impl Gpu<'_> {
    /// Drains what is on its way, so that a launch has the same traffic whatever follows. A run
    /// that cuts launches off stands as it is: what they have in flight is not theirs yet.
    pub(super) fn drain(&mut self) {
        if !self.dispatcher.grids.iter().all(|grid| grid.is_over()) {
            return;
        }
        let end = self.now();
        (0..self.sms.len()).for_each(|sm| self.send_evicted(sm));
        while self.shared_state.memory_system.is_busy() && self.now() - end < PATIENCE {
            let Some(event) = self.shared_state.queue.next() else { break };
            self.drain_event(event);
        }
    }

    /// Handles an event of the memory; SMs only send what their L1s have evicted.
    #[allow(clippy::too_many_lines, reason = "one match over all events")]
    fn drain_event(&mut self, event: Event) {
        match event {
            Event::Arrive { packet } => {
                self.drain_memory(|memory, queue, counts| memory.on_arrive(packet, queue, counts));
            }
            Event::Crossed { packet } => {
                self.drain_memory(|memory, queue, counts| memory.on_crossed(packet, queue, counts));
            }
            Event::ToChannel { transfer } => self.drain_memory(|memory, queue, counts| {
                let channel = memory.on_to_channel(transfer, queue, counts);
                memory.on_room(channel, queue, counts);
            }),
            Event::Channel { channel } => self.drain_memory(|memory, queue, counts| {
                memory.on_channel(channel, queue, counts);
                memory.on_room(u32::from(channel), queue, counts);
            }),
            Event::Slice { slice } => {
                self.drain_memory(|memory, queue, counts| memory.on_slice(slice, queue, counts));
            }
            Event::PageCopy { stack } => {
                self.drain_memory(|memory, queue, counts| {
                    memory.on_page_copy(stack, queue, counts);
                });
            }
            Event::Fill { transfer } => {
                self.drain_memory(|memory, queue, counts| memory.on_fill(transfer, queue, counts));
            }
            Event::Reply { packet } => {
                let now = self.now();
                self.shared_state.memory_system.on_reply(packet, now);
            }
            Event::LoadStore { sm } => self.send_evicted(usize::from(sm)),
            Event::Scheduler { .. }
            | Event::Wake { .. }
            | Event::Fetch { .. }
            | Event::LookUp { .. }
            | Event::Walk { .. }
            | Event::PageMove { .. }
            | Event::PageCopied { .. }
            | Event::Dispatch { .. }
            | Event::Launch { .. }
            | Event::Begin { .. }
            | Event::Instance { .. }
            | Event::Arrival { .. }
            | Event::Effect { .. }
            | Event::Alarm { .. }
            | Event::IpcCheck { .. }
            | Event::SliceEnd { .. }
            | Event::TargetCheck
            | Event::End => {}
        }
    }

    fn drain_memory(
        &mut self,
        act: impl FnOnce(&mut MemorySystem, &mut EventQueue<Event>, &mut [KernelCounts]),
    ) {
        let shared = &mut self.shared_state;
        act(&mut shared.memory_system, &mut shared.queue, &mut shared.counts);
        let mut woken = std::mem::take(&mut self.woken);
        self.shared_state.memory_system.take_woken(&mut woken);
        for sm in woken.drain(..) {
            self.send_evicted(usize::from(sm));
        }
        self.woken = woken;
    }

    /// Lets an SM send what its L1 has evicted, now and when its port has room again.
    fn send_evicted(&mut self, sm: usize) {
        if let Err(Some(at)) = self.sms[sm].send_evicted(&mut self.shared_state) {
            let sm = gpumodel_core::units::to_u16(sm);
            self.shared_state.queue.schedule(at, Event::LoadStore { sm });
        }
    }
}
