//! Where pages lie in memory on machines whose channels can be owned.
//!
//! Footprints are resident at start (UGPU, section 5): a page lies where it would if
//! its application's pages had been laid out over the groups of channels that it
//! owned first, in turn. With all groups that is the address itself. Pages that move
//! go to frames that others have left, oldest first, else to fresh ones behind all
//! that programs use.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::config::{MigrationFill, PageChannels};
use gpumodel_core::contract::Migration;
use gpumodel_core::units::{to_u32, to_u64, to_usize};

use super::tenant::Tenant;
use crate::mmu::address_space::{VIRTUAL_BITS, is_footprint};

/// The address bit that is set where pages were laid out over some groups, and in fresh
/// frames: never in a program's address.
const LAID_BIT: u32 = 62;

/// The address bit from which fresh frames lie.
const FRESH_BIT: u32 = 44;

/// A page frame: its number in the group, and the group.
pub(super) type Frame = (u64, u32);

/// The frames of all applications.
#[derive(Debug)]
pub(super) struct Frames {
    channels: PageChannels,
    /// Bits of a page number that are the application's own.
    own_bits: u32,
    /// [`LAID_BIT`] in the number of a frame. The number of the application lies below
    /// it; the last one stands for fresh frames.
    laid: u64,
    tenants: Vec<Tenant>,
    migration: Migration,
    /// Channels have been owned: addresses are put together anew from then on.
    owned: bool,
    moved: FxHashMap<u64, Frame>,
    /// By group: frames that pages have left, oldest first.
    free: Vec<VecDeque<u64>>,
    /// By group: fresh frames handed out.
    fresh: Vec<u64>,
}

impl Frames {
    /// The frames of `apps` applications, all of which own everything; `None` where
    /// they are too many to be told apart.
    pub(super) fn new(channels: PageChannels, apps: usize, fill: MigrationFill) -> Option<Self> {
        let groups = channels.groups().len();
        let tenant = || Tenant::new(to_u32(groups), fill);
        let own_bits = VIRTUAL_BITS - channels.page_bits();
        let laid = 1 << (LAID_BIT - channels.page_bits() - to_u32(groups).ilog2());
        (to_u64(apps) < (laid >> own_bits)).then(|| Self {
            own_bits,
            laid,
            tenants: (0..apps).map(|_| tenant()).collect(),
            migration: Migration::Stay,
            owned: false,
            moved: FxHashMap::default(),
            free: vec![VecDeque::new(); groups],
            fresh: vec![0; groups],
            channels,
        })
    }

    /// The groups that a list of channels makes up.
    fn groups_of(&self, channels: &[u32]) -> Vec<u32> {
        let groups = (0_u32..).zip(self.channels.groups());
        let owns = |group: &[u32]| group.first().is_some_and(|first| channels.contains(first));
        groups.filter(|(_, group)| owns(group)).map(|(number, _)| number).collect()
    }

    /// Gives an application the channels `channels`, whole groups; none means all.
    /// The channels that it had, where pages may have to follow.
    pub(super) fn own(
        &mut self,
        app: usize,
        channels: &[u32],
        migration: Migration,
    ) -> Option<Vec<u32>> {
        self.migration = migration;
        self.owned |= !channels.is_empty();
        let groups = match channels.is_empty() {
            true => (0..to_u32(self.free.len())).collect(),
            false => self.groups_of(channels),
        };
        let before = self.tenants[app].owned().to_vec();
        let follows = self.tenants[app].own(groups) && migration != Migration::Stay;
        let channels = |&group: &u32| self.channels.groups()[to_usize(group)].clone();
        follows.then(|| before.iter().flat_map(channels).collect())
    }

    /// True once channels have been owned.
    pub(super) fn is_owned(&self) -> bool {
        self.owned
    }

    /// How pages that set out now move.
    pub(super) fn migration(&self) -> Migration {
        self.migration
    }

    /// An application's part.
    pub(super) fn tenant(&self, app: usize) -> &Tenant {
        &self.tenants[app]
    }

    /// The application of a page, and the page's number in it.
    pub(super) fn parts(&self, page: u64) -> (usize, u64) {
        (to_usize(page >> self.own_bits), page & ((1 << self.own_bits) - 1))
    }

    /// The frame of a page.
    fn frame_of(&self, page: u64) -> Frame {
        if let Some(frame) = self.moved.get(&page) {
            return *frame;
        }
        let (app, own) = self.parts(page);
        if self.tenants[app].is_at_home_everywhere() {
            return self.channels.apart(page << self.channels.page_bits());
        }
        let (rest, group) = self.channels.apart(own << self.channels.page_bits());
        let number = rest * to_u64(self.free.len()) + u64::from(group);
        let (place, group) = self.tenants[app].home_of(number);
        (self.laid | to_u64(app) << self.own_bits | place, group)
    }

    fn address_of(&self, (frame, group): Frame) -> u64 {
        self.channels.together(frame, group)
    }

    /// Where an address lies in memory.
    pub(super) fn physical(&self, address: u64) -> u64 {
        if !self.owned {
            return address;
        }
        let bits = self.channels.page_bits();
        self.address_of(self.frame_of(address >> bits)) | address & ((1 << bits) - 1)
    }

    /// Lays out a page that nobody has touched and that is no part of the footprint,
    /// local memory or the saved state of CTAs: there is nothing to move.
    pub(super) fn settle(&mut self, page: u64) {
        let footprint = is_footprint(page << self.channels.page_bits());
        let app = self.parts(page).0;
        if self.owned && !footprint && !self.tenants[app].has_beside(page) {
            self.place(page);
            self.touch(page);
        }
    }

    /// True where a page lies in channels of its application.
    #[cfg(test)]
    pub(super) fn is_in_its_own(&self, page: u64) -> bool {
        let tenant = &self.tenants[self.parts(page).0];
        !self.owned || tenant.owned().contains(&self.frame_of(page).1)
    }

    /// True where no two pages of anybody have the same frame.
    #[cfg(test)]
    pub(super) fn each_page_is_alone(&self) -> bool {
        let mut frames = rustc_hash::FxHashSet::default();
        let mut pages = self.tenants.iter().flat_map(Tenant::all_pages);
        pages.all(|page| frames.insert(self.frame_of(page)))
    }

    /// Where a page has to move before it is used, if it has to.
    pub(super) fn destination(&self, page: u64) -> Option<u32> {
        if !self.owned {
            return None;
        }
        let tenant = &self.tenants[self.parts(page).0];
        match self.migration {
            Migration::Stay => None,
            Migration::Traditional => tenant.renewal(page, self.frame_of(page).1),
            Migration::PageMove | Migration::Software => {
                tenant.destination(page, self.frame_of(page).1)
            }
        }
    }

    /// Counts a page that is used, whether channels are owned by then or later.
    pub(super) fn touch(&mut self, page: u64) {
        let (app, group) = (self.parts(page).0, self.frame_of(page).1);
        if is_footprint(page << self.channels.page_bits()) {
            self.tenants[app].touch(page, group);
        } else {
            self.tenants[app].lay_beside(page, group);
        }
    }

    /// Takes a frame of a group.
    fn take(&mut self, group: u32) -> Frame {
        let at = to_usize(group);
        let frame = self.free[at].pop_front().unwrap_or_else(|| {
            let bits = self.channels.page_bits() + to_u32(self.free.len()).ilog2();
            let number = 1 << (FRESH_BIT - bits) | self.fresh[at];
            self.fresh[at] += 1;
            (2 * self.laid - (1 << self.own_bits)) | number
        });
        (frame, group)
    }

    /// Takes a frame for a page that moves to `group`: where its data lies, and where
    /// it comes to lie.
    pub(super) fn begin(&mut self, page: u64, group: u32) -> (Frame, [u64; 2]) {
        let (frame, from) = (self.take(group), self.frame_of(page));
        let app = self.parts(page).0;
        self.tenants[app].sets_out(page, from.1, group);
        (frame, [self.address_of(from), self.address_of(frame)])
    }

    /// A page's data is in its new frame; the old one is free.
    pub(super) fn end(&mut self, page: u64, to: Frame) {
        let (frame, group) = self.frame_of(page);
        self.moved.insert(page, to);
        self.free[to_usize(group)].push_back(frame);
        let app = self.parts(page).0;
        self.tenants[app].has_moved(page, group, to.1);
    }

    /// Lays out a page that comes into memory only now, in the least used group of its
    /// application.
    pub(super) fn place(&mut self, page: u64) {
        let least = self.tenants[self.parts(page).0].least_used();
        if let (true, Some(group)) = (self.owned && !self.moved.contains_key(&page), least) {
            let frame = self.take(group);
            self.moved.insert(page, frame);
        }
    }
}
