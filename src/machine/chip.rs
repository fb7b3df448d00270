//! What the parts of one run share: time, counters, profiles, the way to memory.

use crate::units::to_usize;

use super::counters::KernelCounts;
use super::event::Event;
use super::fabric::Fabric;
use super::packet::Packet;
use super::profile::Profile;
use super::queue::EventQueue;

/// Start of the windows of shared and local memory in generic addresses; 0 when
/// unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Windows {
    pub(super) shared: u64,
    pub(super) local: u64,
}

/// The shared side of a run.
#[derive(Debug)]
pub(super) struct Chip {
    pub(super) queue: EventQueue<Event>,
    /// By launch.
    pub(super) counts: Vec<KernelCounts>,
    pub(super) fabric: Fabric,
    profiles: Vec<Profile>,
    /// By launch: its profile.
    profile_of: Vec<u32>,
    windows: Vec<Windows>,
}

impl Chip {
    /// A chip at cycle 0; `profile_of` and `windows` are by launch.
    pub(super) fn new(
        fabric: Fabric,
        profiles: Vec<Profile>,
        profile_of: Vec<u32>,
        windows: Vec<Windows>,
    ) -> Self {
        let counts = vec![KernelCounts::default(); profile_of.len()];
        let queue = EventQueue::new();
        Self { queue, counts, fabric, profiles, profile_of, windows }
    }

    /// The profile of a launch's code.
    pub(super) fn profile(&mut self, kernel: u32) -> &mut Profile {
        &mut self.profiles[to_usize(self.profile_of[to_usize(kernel)])]
    }

    /// The profile of a launch's code and the launch's counters.
    pub(super) fn profile_and_counts(&mut self, kernel: u32) -> (&mut Profile, &mut KernelCounts) {
        let number = to_usize(self.profile_of[to_usize(kernel)]);
        (&mut self.profiles[number], &mut self.counts[to_usize(kernel)])
    }

    /// The windows of generic addresses of a launch.
    pub(super) fn windows(&self, kernel: u32) -> Windows {
        self.windows[to_usize(kernel)]
    }

    /// Sends a request towards its slice.
    pub(super) fn send(&mut self, packet: Packet) {
        self.fabric.send(packet, &mut self.queue);
    }
}
