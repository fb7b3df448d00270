//! What the parts of one run share: time, counters, profiles, the way to memory.

use gpumodel_core::isa::AddressWindows;
use gpumodel_core::units::{AppId, Cycle, to_usize};

use crate::counters::KernelCounts;
use crate::gpu::clusters::Clusters;
use crate::gpu::event_queue::{Event, EventQueue};
use crate::gpu::link::HostLink;
use crate::gpu::timeline::CtaSpan;
use crate::interval::{Profile, ProfileImage};
use crate::memory::MemorySystem;
use crate::memory::packet::{Packet, RequestKind};
use crate::mmu::{AppMemory, Mmu, Request};
use crate::sm::hot::{HotSpots, InstructionCounts};

/// The generic addresses of a launch, and what tells the application's addresses from others'.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Windows {
    pub(crate) generic: AddressWindows,
    /// CTAs of a cluster; 1: no clusters.
    pub(crate) cluster: u32,
    /// See [`crate::mmu::address_space::tag`].
    pub(crate) tag: u64,
}

/// The shared side of a run.
#[derive(Debug)]
pub(crate) struct SharedState {
    pub(crate) queue: EventQueue<Event>,
    /// Cycles of the run that were passed over: the machine's clock lacks them.
    pub(crate) skipped: Cycle,
    /// By launch.
    pub(crate) counts: Vec<KernelCounts>,
    /// By launch: stores in flight of warps that have ended.
    pub(crate) stores_left: Vec<u32>,
    pub(crate) memory_system: MemorySystem,
    /// Absent on machines without translation.
    pub(crate) mmu: Option<Mmu>,
    /// Absent where copies and page faults take no time.
    pub(crate) link: Option<Box<HostLink>>,
    /// The clusters that run.
    pub(crate) clusters: Clusters,
    profiles: Vec<Profile>,
    /// By launch: its profile.
    profile_of: Vec<u32>,
    windows: Vec<Windows>,
    /// Lives of CTAs that have ended, where they are wanted.
    pub(crate) spans: Option<Vec<CtaSpan>>,
    /// Counts by instruction, where they are wanted.
    pub(crate) hot: Option<Box<HotSpots>>,
}

impl SharedState {
    /// The shared state at cycle 0; `profile_of` and `windows` are by launch.
    pub(crate) fn new(
        memory_system: MemorySystem,
        mmu: Option<Mmu>,
        profiles: Vec<Profile>,
        profile_of: Vec<u32>,
        windows: Vec<Windows>,
        app_of: &[AppId],
    ) -> Self {
        let counts = app_of.iter().map(|&app| KernelCounts { app, ..Default::default() });
        let counts = counts.collect();
        let stores_left = vec![0; app_of.len()];
        let queue = EventQueue::new();
        let (spans, hot, link) = (None, None, None);
        Self {
            queue,
            skipped: 0,
            counts,
            stores_left,
            memory_system,
            mmu,
            link,
            clusters: Clusters::default(),
            profiles,
            profile_of,
            windows,
            spans,
            hot,
        }
    }

    /// The present cycle of the run, with those that were passed over.
    pub(crate) fn elapsed(&self) -> Cycle {
        self.queue.now() + self.skipped
    }

    /// Counts by instruction on `sms` SMs from now on; before anything ran.
    pub(crate) fn count_instructions(&mut self, sms: usize) {
        self.hot = Some(Box::new(HotSpots::new(self.counts.len(), sms)));
        self.profiles.iter_mut().for_each(Profile::keep_gaps);
    }

    /// The counts of a launch by instruction, where they are wanted, and its profile.
    pub(crate) fn hot_rows(&mut self, kernel: u32) -> Option<(&mut [InstructionCounts], &Profile)> {
        let profile = &self.profiles[to_usize(self.profile_of[to_usize(kernel)])];
        let rows = self.hot.as_mut()?.rows(kernel, profile.instructions());
        Some((rows, profile))
    }

    /// The profile of a launch's code.
    pub(crate) fn profile(&mut self, kernel: u32) -> &mut Profile {
        &mut self.profiles[to_usize(self.profile_of[to_usize(kernel)])]
    }

    /// The profile of a launch's code and the launch's counters.
    pub(crate) fn profile_and_counts(&mut self, kernel: u32) -> (&mut Profile, &mut KernelCounts) {
        let number = to_usize(self.profile_of[to_usize(kernel)]);
        (&mut self.profiles[number], &mut self.counts[to_usize(kernel)])
    }

    /// What has been found of each code, where anything new has.
    pub(crate) fn images(&self) -> Vec<ProfileImage> {
        if self.profiles.iter().any(Profile::has_grown) {
            return self.profiles.iter().map(Profile::image).collect();
        }
        Vec::new()
    }

    /// Takes in what an earlier run has found of each code.
    pub(crate) fn take_in(&mut self, images: &[ProfileImage]) {
        if images.len() == self.profiles.len() {
            self.profiles.iter_mut().zip(images).for_each(|(profile, one)| profile.load(one));
        }
    }

    /// One past the last line of all code.
    pub(crate) fn code_end(&self) -> u32 {
        self.profiles.last().map_or(0, |profile| profile.lines().end())
    }

    /// The windows of generic addresses of a launch.
    pub(crate) fn windows(&self, kernel: u32) -> Windows {
        self.windows[to_usize(kernel)]
    }

    /// Where an address lies in memory.
    pub(crate) fn physical(&self, address: u64) -> u64 {
        self.mmu.as_ref().map_or(address, |mmu| mmu.physical(address))
    }

    /// What an application has of the memory so far.
    pub(crate) fn memory_of(&self, app: usize) -> AppMemory {
        let now = self.queue.now();
        self.mmu.as_ref().map_or_else(AppMemory::default, |mmu| mmu.memory_of(app, now))
    }

    /// Checks, where debug assertions are on, that data comes from the frame in which its
    /// page lies; tests keep a second page table for that.
    #[inline]
    pub(crate) fn check_answer(&mut self, packet: &Packet) {
        if matches!(packet.kind, RequestKind::Code | RequestKind::Constant) {
            return;
        }
        let lies = || self.physical(packet.virtual_address);
        debug_assert_eq!(lies(), packet.address, "an answer from a frame that the page has left");
        #[cfg(test)]
        if let Some(mmu) = &mut self.mmu {
            mmu.check_answer(packet.virtual_address, packet.address);
        }
    }

    /// Checks that what has come to memory belongs there.
    #[cfg(test)]
    pub(crate) fn check_written(&mut self) {
        let written = self.memory_system.take_written();
        if let Some(mmu) = &self.mmu {
            written.into_iter().for_each(|address| mmu.check_write(address));
        }
    }

    /// Asks the L2 TLB for a page; the request arrives there after `way` cycles.
    pub(crate) fn ask_page(&mut self, request: Request, way: Cycle) {
        let at = self.queue.now() + way;
        let mmu = self.mmu.as_mut().expect("only machines that translate ask for pages");
        mmu.request(request, at, &mut self.queue);
    }

    /// An entry of a page table has come for a walk.
    #[inline(never)]
    pub(crate) fn on_walk_read(&mut self, walk: u32, done: Cycle) {
        if let Some(mmu) = &mut self.mmu {
            mmu.on_read(walk, done, &mut self.queue);
        }
    }

    /// A sector of a page that is copied over the crossbar has come or is written.
    #[inline(never)]
    pub(crate) fn on_copy(&mut self, packet: &Packet) {
        if let Some(mmu) = &mut self.mmu {
            mmu.on_copy(packet, &mut self.memory_system, &mut self.queue);
        }
    }

    /// Sends a request towards its slice, as soon as its page is in the device's memory.
    #[inline]
    pub(crate) fn send(&mut self, packet: Packet) {
        if let Some(link) = &mut self.link {
            let app = self.counts[to_usize(packet.kernel)].app.index();
            let there = link.hold(packet, app, &mut self.queue);
            there.into_iter().for_each(|packet| self.memory_system.send(packet, &mut self.queue));
            return;
        }
        self.memory_system.send(packet, &mut self.queue);
    }

    /// A page of managed memory has come.
    pub(crate) fn bring_page(&mut self, place: u32) {
        let Some(link) = &mut self.link else { return };
        for mut packet in link.brought(place, self.queue.now()) {
            // Its frame may be another one since it was asked for.
            packet.address = self.physical(packet.virtual_address);
            packet.slice = self.memory_system.slice_of(packet.address);
            self.memory_system.send(packet, &mut self.queue);
        }
    }

    /// Whether requests are on their way to memory.
    pub(crate) fn is_draining(&self) -> bool {
        self.memory_system.is_busy() || self.link.as_ref().is_some_and(|link| link.awaits_pages())
    }
}
