//! What the parts of one run share: time, counters, profiles, the way to memory.

use gpumodel_core::units::{AppId, Cycle, to_usize};

use super::counters::KernelCounts;
use super::event::Event;
use super::fabric::Fabric;
use super::packet::{Ask, Packet};
use super::profile::{Profile, ProfileImage};
use super::queue::EventQueue;
use super::span::CtaSpan;
use super::translation::{Around, Mmu, Request};

/// Start of the windows of shared and local memory in generic addresses; 0 when
/// unknown. And what tells the application's addresses from others'.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Windows {
    pub(super) shared: u64,
    pub(super) local: u64,
    /// See [`super::space::tag`].
    pub(super) tag: u64,
}

/// The shared side of a run.
#[derive(Debug)]
pub(super) struct Chip {
    pub(super) queue: EventQueue<Event>,
    /// By launch.
    pub(super) counts: Vec<KernelCounts>,
    pub(super) fabric: Fabric,
    /// Absent on machines without translation.
    pub(super) mmu: Option<Mmu>,
    profiles: Vec<Profile>,
    /// By launch: its profile.
    profile_of: Vec<u32>,
    windows: Vec<Windows>,
    /// Lives of CTAs that have ended, where they are wanted.
    pub(super) spans: Option<Vec<CtaSpan>>,
}

impl Chip {
    /// A chip at cycle 0; `profile_of` and `windows` are by launch.
    pub(super) fn new(
        fabric: Fabric,
        mmu: Option<Mmu>,
        profiles: Vec<Profile>,
        profile_of: Vec<u32>,
        windows: Vec<Windows>,
        app_of: &[AppId],
    ) -> Self {
        let counts = app_of.iter().map(|&app| KernelCounts { app, ..Default::default() });
        let counts = counts.collect();
        let queue = EventQueue::new();
        Self { queue, counts, fabric, mmu, profiles, profile_of, windows, spans: None }
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

    /// What has been found of each code, where anything new has.
    pub(super) fn images(&self) -> Vec<ProfileImage> {
        if self.profiles.iter().any(Profile::has_grown) {
            return self.profiles.iter().map(Profile::image).collect();
        }
        Vec::new()
    }

    /// Takes in what an earlier run has found of each code.
    pub(super) fn take_in(&mut self, images: &[ProfileImage]) {
        if images.len() == self.profiles.len() {
            self.profiles.iter_mut().zip(images).for_each(|(profile, one)| profile.take_in(one));
        }
    }

    /// One past the last line of all code.
    pub(super) fn code_end(&self) -> u32 {
        self.profiles.last().map_or(0, |profile| profile.lines().end())
    }

    /// The windows of generic addresses of a launch.
    pub(super) fn windows(&self, kernel: u32) -> Windows {
        self.windows[to_usize(kernel)]
    }

    /// Where an address lies in memory.
    pub(super) fn physical(&self, address: u64) -> u64 {
        self.mmu.as_ref().map_or(address, |mmu| mmu.physical(address))
    }

    /// Checks, where debug assertions are on, that data comes from the frame in which its
    /// page lies; tests keep a page table of their own beside.
    #[inline]
    pub(super) fn check_answer(&mut self, packet: &Packet) {
        if matches!(packet.ask, Ask::Code | Ask::Constant) {
            return;
        }
        let lies = || self.physical(packet.asked);
        debug_assert_eq!(lies(), packet.address, "an answer from a frame that the page has left");
        #[cfg(test)]
        if let Some(mmu) = &mut self.mmu {
            mmu.check_answer(packet.asked, packet.address);
        }
    }

    /// Checks that what has come to memory belongs there.
    #[cfg(test)]
    pub(super) fn check_written(&mut self) {
        let written = self.fabric.take_written();
        if let Some(mmu) = &self.mmu {
            written.into_iter().for_each(|address| mmu.check_write(address));
        }
    }

    /// Asks the L2 TLB for a page; the request arrives there after `way` cycles.
    pub(super) fn ask_page(&mut self, request: Request, way: Cycle) {
        let at = self.queue.now() + way;
        let mmu = self.mmu.as_mut().expect("who asks for pages is on a machine that translates");
        mmu.ask(request, at, &mut self.queue);
    }

    /// An event of the MMU: the pages that are now known are appended to
    /// `answers`.
    pub(super) fn on_translation(&mut self, event: Event, answers: &mut Vec<Request>) {
        let Self { queue, counts, fabric, mmu: Some(mmu), .. } = self else { return };
        let mut around = Around { queue, counts, fabric };
        match event {
            Event::LookUp { request } => mmu.on_look_up(request, &mut around, answers),
            Event::Walk { walk } => mmu.on_walk(walk, &mut around, answers),
            Event::PageMove { number } => mmu.on_page_move(number, &mut around),
            Event::PageCopied { token } => mmu.on_page_copied(token, queue),
            _ => {}
        }
    }

    /// An entry of a page table has come for a walk.
    #[inline(never)]
    pub(super) fn on_walk_read(&mut self, walk: u32, done: Cycle) {
        if let Some(mmu) = &mut self.mmu {
            mmu.on_read(walk, done, &mut self.queue);
        }
    }

    /// A sector of a page that is copied over the crossbar has come or is written.
    #[inline(never)]
    pub(super) fn on_copy(&mut self, packet: &Packet) {
        if let Some(mmu) = &mut self.mmu {
            mmu.on_copy(packet, &mut self.fabric, &mut self.queue);
        }
    }

    /// Sends a request towards its slice.
    pub(super) fn send(&mut self, packet: Packet) {
        self.fabric.send(packet, &mut self.queue);
    }
}
