//! What channels that change hands ask of the memory system: pages that are copied, slices
//! that are flushed.

use gpumodel_core::units::{to_u16, to_usize};

use super::MemorySystem;
use crate::counters::KernelCounts;
use crate::gpu::event_queue::Event;
use crate::gpu::event_queue::EventQueue;

impl MemorySystem {
    /// Sends what is dirty in the slices of some channels to memory and forgets what
    /// they hold, but for lines on their way; each channel's is written for a launch.
    pub(crate) fn flush(&mut self, channels: &[(u32, u32)], queue: &mut EventQueue<Event>) {
        for slice in 0..to_u16(self.slices.len()) {
            let channel = self.channels[usize::from(slice)];
            let Some(&(_, kernel)) = channels.iter().find(|(one, _)| *one == channel) else {
                continue;
            };
            self.slices[usize::from(slice)].flush(queue.now());
            self.write_back(slice, kernel, queue);
        }
        for &(channel, _) in channels {
            self.memory.ports[to_usize(channel)].flush();
        }
    }

    /// True while something that had left the slices of the channel when they were
    /// flushed last is not yet written there.
    pub(crate) fn is_flushing(&self, channel: u32) -> bool {
        self.memory.ports[to_usize(channel)].flushed > 0
    }

    /// Addresses of what was written to memory since this was asked last.
    #[cfg(test)]
    pub(crate) fn take_written(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.memory.written)
    }

    /// Whether pages can be copied from channel to channel by MIGRATION: the memory
    /// has that command, and a page's pieces stay in their stacks.
    pub(crate) fn can_copy_pages(&self) -> bool {
        self.memory.copies.is_some()
    }

    /// Copies the page of `bytes` bytes at `from` to `to`, whose channels belong to
    /// another group; [`Event::PageCopied`] says when the page is there. Any number
    /// may be under way.
    ///
    /// # Panics
    /// When [`MemorySystem::can_copy_pages`] is false.
    pub(crate) fn copy_page(
        &mut self,
        token: u32,
        from: u64,
        to: u64,
        bytes: u32,
        queue: &mut EventQueue<Event>,
    ) {
        let copies = self.memory.copies.as_mut().expect("who copies pages asked whether one can");
        copies.push(token, [from, to], bytes, &self.mapping, queue);
    }

    /// Columns of pages may go from channel to channel of a stack.
    pub(crate) fn on_page_copy(
        &mut self,
        stack: u16,
        queue: &mut EventQueue<Event>,
        counts: &mut [KernelCounts],
    ) {
        for channel in self.memory.copy_pages(stack, queue, counts) {
            self.on_room(channel, queue, counts);
        }
    }
}
