//! Where pages lie in memory on machines whose applications can own channels.
//!
//! Footprints are resident at start (UGPU, section 5): a page lies where it would if its
//! application's pages had been laid out round robin over the groups of channels that it
//! owned first. With all groups that is the address itself. Pages that move go to frames that
//! other pages have left, oldest first, otherwise to fresh ones beyond all addresses of
//! programs.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::config::{MigrationFill, PageChannels};
use gpumodel_core::contract::Migration;
use gpumodel_core::units::{to_u32, to_u64, to_usize};

use super::app_pages::AppPages;
use crate::mmu::address_space::{VIRTUAL_BITS, is_footprint};

/// The address bit that is set where pages were laid out over some groups and in fresh frames,
/// and in no address of a program.
const LAID_OUT_BIT: u32 = 62;

/// The address bit that is set in all fresh frames.
const FRESH_BIT: u32 = 44;

/// The most pages that are counted of one copy: 256 GiB of 4 KiB pages, more than any memory.
const MOST_COPIED: u64 = 1 << 26;

/// A page frame: its number in the group, and the group.
pub(super) type Frame = (u64, u32);

/// The frames of all applications.
#[derive(Debug)]
pub(super) struct Frames {
    channels: PageChannels,
    /// Bits of a page number below the application's number.
    number_bits: u32,
    /// [`LAID_OUT_BIT`] in the number of a frame. The number of the application lies below
    /// it; the last one stands for fresh frames.
    laid_out: u64,
    apps: Vec<AppPages>,
    /// How pages move that begin to move now.
    pub(super) migration: Migration,
    /// Channels have been owned: addresses are translated from then on.
    pub(super) owned: bool,
    moved: FxHashMap<u64, Frame>,
    /// By group: frames that pages have left, oldest first.
    free: Vec<VecDeque<u64>>,
    /// By group: fresh frames handed out.
    fresh: Vec<u64>,
}

impl Frames {
    /// The frames of `apps` applications, which all own all channels; `None` for more
    /// applications than a frame number can distinguish.
    pub(super) fn new(channels: PageChannels, apps: usize, fill: MigrationFill) -> Option<Self> {
        let groups = channels.groups().len();
        let app = |_| AppPages::new(to_u32(groups), fill);
        let number_bits = VIRTUAL_BITS - channels.page_bits();
        let laid_out = 1 << (LAID_OUT_BIT - channels.page_bits() - to_u32(groups).ilog2());
        (to_u64(apps) < (laid_out >> number_bits)).then(|| Self {
            number_bits,
            laid_out,
            apps: (0..apps).map(app).collect(),
            migration: Migration::Stay,
            owned: false,
            moved: FxHashMap::default(),
            free: vec![VecDeque::new(); groups],
            fresh: vec![0; groups],
            channels,
        })
    }

    /// The groups that a list of channels consists of.
    fn groups_of(&self, channels: &[u32]) -> Vec<u32> {
        let groups = (0_u32..).zip(self.channels.groups());
        let owns = |group: &[u32]| group.first().is_some_and(|first| channels.contains(first));
        groups.filter(|(_, group)| owns(group)).map(|(number, _)| number).collect()
    }

    /// Gives an application the channels `channels`, whole groups; none means all. Returns its
    /// former channels where pages may have to move.
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
        let before = self.apps[app].owned.clone();
        let follows = self.apps[app].own(groups) && migration != Migration::Stay;
        for (first, last) in self.apps[app].uncount() {
            self.add_resident(first, last);
        }
        let channels = |&group: &u32| self.channels.groups()[to_usize(group)].clone();
        follows.then(|| before.iter().flat_map(channels).collect())
    }

    /// An application's pages.
    pub(super) fn app(&self, app: usize) -> &AppPages {
        &self.apps[app]
    }

    /// The application of a page, and the page's number in it.
    pub(super) fn app_and_number(&self, page: u64) -> (usize, u64) {
        (to_usize(page >> self.number_bits), page & ((1 << self.number_bits) - 1))
    }

    /// The frame of a page.
    fn frame_of(&self, page: u64) -> Frame {
        if let Some(frame) = self.moved.get(&page) {
            return *frame;
        }
        let (app, in_app) = self.app_and_number(page);
        if self.apps[app].is_laid_out_over_all() {
            return self.channels.apart(page << self.channels.page_bits());
        }
        let (rest, group) = self.channels.apart(in_app << self.channels.page_bits());
        let number = rest * to_u64(self.free.len()) + u64::from(group);
        let (place, group) = self.apps[app].initial_place(number);
        (self.laid_out | to_u64(app) << self.number_bits | place, group)
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

    /// Lays out an untouched page outside the footprint (local memory, the saved state of CTAs)
    /// when it is first used: it has no data to move.
    pub(super) fn lay_out_other(&mut self, page: u64) {
        let footprint = is_footprint(page << self.channels.page_bits());
        let app = self.app_and_number(page).0;
        if self.owned && !footprint && !self.apps[app].has_other(page) {
            self.lay_out(page);
            self.touch(page);
        }
    }

    /// True when a page lies in channels of its application.
    #[cfg(test)]
    pub(super) fn is_in_own_channels(&self, page: u64) -> bool {
        let app = &self.apps[self.app_and_number(page).0];
        !self.owned || app.owned.contains(&self.frame_of(page).1)
    }

    /// True when no two pages have the same frame.
    #[cfg(test)]
    pub(super) fn frames_are_distinct(&self) -> bool {
        let mut frames = rustc_hash::FxHashSet::default();
        let mut pages = self.apps.iter().flat_map(AppPages::all_pages);
        pages.all(|page| frames.insert(self.frame_of(page)))
    }

    /// The group to which a page has to move before it is used, if it has to.
    pub(super) fn destination(&self, page: u64) -> Option<u32> {
        if !self.owned {
            return None;
        }
        let app = &self.apps[self.app_and_number(page).0];
        match self.migration {
            Migration::Stay => None,
            Migration::Traditional => app.traditional_destination(page, self.frame_of(page).1),
            Migration::PageMove | Migration::Software => {
                app.destination(page, self.frame_of(page).1)
            }
        }
    }

    /// Counts the pages from `first` to `last` of one application, which were copied into memory:
    /// the first [`MOST_COPIED`] of them.
    pub(super) fn add_resident(&mut self, first: u64, last: u64) {
        let app = self.app_and_number(first).0;
        let Some(pages) = self.apps.get(app) else { return };
        let last = last.min(first.saturating_add(MOST_COPIED));
        let mut more_in = vec![0; self.free.len()];
        let footprint = |&page: &u64| is_footprint(page << self.channels.page_bits());
        for page in (first..=last).take_while(footprint).filter(|&page| !pages.counts(page)) {
            more_in[to_usize(self.frame_of(page).1)] += 1;
        }
        self.apps[app].add_resident(first, last, &more_in);
    }

    /// Counts a used page, whether channels are owned yet or not.
    pub(super) fn touch(&mut self, page: u64) {
        let (app, group) = (self.app_and_number(page).0, self.frame_of(page).1);
        if is_footprint(page << self.channels.page_bits()) {
            self.apps[app].touch(page, group);
        } else {
            self.apps[app].add_other(page, group);
        }
    }

    /// Allocates a frame of a group.
    fn allocate(&mut self, group: u32) -> Frame {
        let at = to_usize(group);
        let frame = self.free[at].pop_front().unwrap_or_else(|| {
            let bits = self.channels.page_bits() + to_u32(self.free.len()).ilog2();
            let number = 1 << (FRESH_BIT - bits) | self.fresh[at];
            self.fresh[at] += 1;
            (2 * self.laid_out - (1 << self.number_bits)) | number
        });
        (frame, group)
    }

    /// Allocates a frame for a page that moves to `group`; also returns the addresses of the old
    /// and the new frame.
    pub(super) fn begin_move(&mut self, page: u64, group: u32) -> (Frame, [u64; 2]) {
        let (frame, from) = (self.allocate(group), self.frame_of(page));
        let app = self.app_and_number(page).0;
        self.apps[app].begin_move(page, from.1, group);
        (frame, [self.address_of(from), self.address_of(frame)])
    }

    /// A page's data is in its new frame; the old one is free.
    pub(super) fn end_move(&mut self, page: u64, to: Frame) {
        let (frame, group) = self.frame_of(page);
        self.moved.insert(page, to);
        self.free[to_usize(group)].push_back(frame);
        let app = self.app_and_number(page).0;
        self.apps[app].end_move(page, group, to.1);
    }

    /// Lays out a page that is new in memory, in the least used group of its application.
    pub(super) fn lay_out(&mut self, page: u64) {
        let least = self.apps[self.app_and_number(page).0].least_used();
        if let (true, Some(group)) = (self.owned && !self.moved.contains_key(&page), least) {
            let frame = self.allocate(group);
            self.moved.insert(page, frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};

    use proptest::prelude::*;

    use super::{Frame, Frames};
    use crate::config::{Mapping, MigrationFill, PageChannels};
    use crate::mmu::address_space;
    use gpumodel_core::contract::Migration;
    use gpumodel_core::units::to_usize;

    fn frames(apps: usize) -> Frames {
        let map =
            Mapping::load("ugpu", &gpumodel_models::builtin()).unwrap().for_machine(32, 2).unwrap();
        Frames::new(PageChannels::of(&map, 4096).unwrap(), apps, MigrationFill::First).unwrap()
    }

    fn channels(groups: &[u32]) -> Vec<u32> {
        groups.iter().flat_map(|group| 4 * group..4 * group + 4).collect()
    }

    #[test]
    fn pages_lie_where_addresses_say_for_applications_that_own_all_channels() {
        let mut frames = frames(3);
        for address in [0x7f12_3456_7000, address_space::tag(1) ^ 0x7f12_3456_7000] {
            assert_eq!(frames.physical(address), address);
        }
        frames.own(2, &channels(&[2]), Migration::Stay);
        for address in [0x7f12_3456_7010, address_space::tag(1) ^ 0x7f12_3456_7010] {
            assert_eq!(frames.physical(address), address, "while others own some");
        }
    }

    #[test]
    fn pages_lie_in_channels_of_their_application_only() {
        let map =
            Mapping::load("ugpu", &gpumodel_models::builtin()).unwrap().for_machine(32, 2).unwrap();
        let mut frames = frames(2);
        frames.own(0, &channels(&[0, 1, 2]), Migration::PageMove);
        frames.own(1, &channels(&[3, 4, 5, 6, 7]), Migration::PageMove);
        for page in 0..1000_u64 {
            for app in [0, 1] {
                let address = frames.physical(address_space::tag(app) ^ (page * 4096 + 128));
                assert_eq!(map.locate(address).channel / 4 > 2, app == 1);
            }
        }
    }

    #[test]
    fn pages_that_were_used_before_channels_are_owned_stay_until_they_move() {
        let mut frames = frames(1);
        (0..16).for_each(|page| frames.touch(page));
        assert!(frames.own(0, &channels(&[0, 1]), Migration::PageMove).is_some());
        for page in 0..16_u64 {
            assert_eq!(frames.physical(page << 12), page << 12);
            assert_eq!(frames.destination(page).is_some(), page % 8 > 1, "page {page}");
        }
    }

    #[test]
    fn saved_state_and_local_memory_are_laid_out_in_the_least_used_groups_and_stay() {
        let mut frames = frames(1);
        frames.own(0, &channels(&[0, 1, 2, 3]), Migration::PageMove);
        (0..8).for_each(|page| frames.touch(page));
        frames.own(0, &channels(&[0, 1]), Migration::PageMove);
        for address in [0xe_u64 << 44, 1 << 48] {
            for page in (address >> 12..).take(8) {
                frames.lay_out_other(page);
                assert_eq!(frames.destination(page), None);
                assert!(frames.physical(page << 12) >> 12 & 7 < 2);
            }
        }
        // Data that the program has had since before it ran moves.
        frames.lay_out_other(10);
        assert!(frames.destination(10).is_some());
    }

    #[test]
    fn a_page_that_comes_into_memory_lies_in_the_least_used_channels_of_its_application() {
        let mut frames = frames(1);
        frames.own(0, &channels(&[0, 1, 2, 3]), Migration::PageMove);
        [0, 1, 2, 8, 9, 16].into_iter().for_each(|page| frames.touch(page));
        let group = |frames: &Frames, page: u64| frames.physical(page << 12) >> 12 & 7;
        let held = [0, 1, 2, 8, 9, 16].map(|page| group(&frames, page));
        let mut counts = [0, 1, 2, 3].map(|own| held.iter().filter(|&&held| held == own).count());
        for page in 100..120 {
            let least = *counts.iter().min().unwrap();
            frames.lay_out(page);
            frames.touch(page);
            let found = to_usize(group(&frames, page));
            assert_eq!(counts[found], least, "page {page}: {counts:?}");
            counts[found] += 1;
        }
        assert_eq!((counts.iter().sum::<usize>(), counts.iter().max()), (26, Some(&7)));
    }

    /// What happens to the frames of three applications.
    #[derive(Clone, Debug)]
    enum Step {
        Own(Vec<u32>, Migration),
        Use(u16, u64),
        /// The oldest move ends.
        Arrive,
    }

    /// Moving pages with their new frames and the addresses of both frames.
    type Moving = VecDeque<(u64, Frame, [u64; 2])>;

    /// What a walk does with a page: it is used, or begins to move.
    fn walk(frames: &mut Frames, page: u64, moving: &mut Moving) {
        if let Some(group) = frames.destination(page) {
            let (frame, ends) = frames.begin_move(page, group);
            moving.push_back((page, frame, ends));
        } else {
            frames.touch(page);
        }
    }

    /// By frame, the one page that lies there or moves there.
    #[derive(Default)]
    struct Holders(BTreeMap<u64, u64>);

    impl Holders {
        fn take(&mut self, address: u64, page: u64) {
            let before = self.0.insert(address, page);
            assert!(before.is_none_or(|other| other == page), "two in one frame");
        }
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let own = prop::collection::vec(0_u32..3, 8);
        let own = (own, migrations()).prop_map(|(of, how)| Step::Own(of, how));
        let touch = (0_u16..3, 0_u64..60).prop_map(|(app, page)| Step::Use(app, page));
        let step = prop_oneof![1 => own, 30 => touch, 12 => Just(Step::Arrive)];
        prop::collection::vec(step, 1..400)
    }

    fn migrations() -> impl Strategy<Value = Migration> {
        prop::sample::select(vec![Migration::PageMove, Migration::Software, Migration::Traditional])
    }

    /// Every page that a step may use.
    fn all_pages() -> impl Iterator<Item = u64> {
        (0..3).flat_map(|app| (0..60).map(move |number| (address_space::tag(app) >> 12) ^ number))
    }

    /// Uses a page, which moves where it has to.
    fn move_if_needed(frames: &mut Frames, page: u64) {
        let mut moving = Moving::new();
        walk(frames, page, &mut moving);
        if let Some((page, frame, _)) = moving.pop_front() {
            frames.end_move(page, frame);
        }
    }

    proptest! {
        #[test]
        fn each_page_has_its_own_frame_also_when_channels_change_during_moves(
            steps in steps(),
        ) {
            let mut frames = frames(3);
            let (mut holders, mut moving) = (Holders::default(), Moving::new());
            let mut owner = vec![0, 0, 0, 1, 1, 1, 2, 2];
            let first = Step::Own(owner.clone(), Migration::PageMove);
            let rest = std::iter::repeat_n(Step::Arrive, 2000);
            for step in std::iter::once(first).chain(steps).chain(rest) {
                let page = match step {
                    Step::Own(of, how) if (0..3).all(|app| of.contains(&app)) => {
                        for app in 0..3_u32 {
                            let groups: Vec<u32> =
                                (0..8).filter(|&g| of[g as usize] == app).collect();
                            frames.own(app as usize, &channels(&groups), how);
                        }
                        prop_assert!(frames.frames_are_distinct(), "also those that are not in use");
                        owner = of;
                        continue;
                    }
                    Step::Own(..) => continue,
                    Step::Use(app, number) => (address_space::tag(app) >> 12) ^ number,
                    Step::Arrive => {
                        let Some((page, frame, [from, to])) = moving.pop_front() else { continue };
                        prop_assert_eq!(frames.physical(page << 12), from, "until it has arrived");
                        frames.end_move(page, frame);
                        prop_assert_eq!(frames.physical(page << 12), to);
                        if from != to {
                            prop_assert!(holders.0.remove(&from).is_none_or(|held| held == page));
                        }
                        page
                    }
                };
                if moving.iter().any(|&(other, _, _)| other == page) {
                    continue;
                }
                holders.take(frames.physical(page << 12), page);
                walk(&mut frames, page, &mut moving);
                match moving.back() {
                    Some(&(last, _, [from, to])) if last == page => {
                        prop_assert_eq!(frames.physical(page << 12), from);
                        prop_assert!(from != to);
                        holders.take(to, page);
                    }
                    _ => {
                        let group = (frames.physical(page << 12) >> 12 & 7) as usize;
                        prop_assert_eq!(owner[group], (page >> 38) as u32);
                    }
                }
            }
            prop_assert!(moving.is_empty());
            for page in all_pages() {
                move_if_needed(&mut frames, page);
                let group = (frames.physical(page << 12) >> 12 & 7) as usize;
                prop_assert_eq!(owner[group], (page >> 38) as u32, "page {:#x}", page);
            }
            prop_assert!(frames.frames_are_distinct());
        }
    }
}
