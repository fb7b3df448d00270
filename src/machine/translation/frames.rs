//! Where pages lie in memory on machines whose channels can be owned.
//!
//! Footprints are resident at start (UGPU, section 5): a page lies where it would if
//! its application's pages had been laid out over the groups of channels that it
//! owned first, in turn. With all groups that is the address itself. Pages that move
//! go to frames that others have left, oldest first, else to fresh ones behind all
//! that programs use.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::epoch::Migration;
use crate::spec::{MigrationFill, PageChannels};
use crate::units::{to_u32, to_u64, to_usize};

use super::super::space::{VIRTUAL_BITS, is_footprint};
use super::tenant::Tenant;

/// The address bit that is set where pages were laid out over some groups, and in fresh
/// frames: never in a program's address.
const LAID_BIT: u32 = 62;

/// The address bit from which fresh frames lie.
const FRESH_BIT: u32 = 44;

/// A page frame: its number in the group, and the group.
type Frame = (u64, u32);

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
        if self.owned && !footprint && !self.tenants[self.parts(page).0].has(page) {
            self.place(page);
            self.touch(page);
        }
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
        self.tenants[app].touch(page, group);
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

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};

    use proptest::prelude::*;

    use super::super::super::space;
    use super::{Frame, Frames};
    use crate::epoch::Migration;
    use crate::spec::{Mapping, MigrationFill, PageChannels};

    fn frames(apps: usize) -> Frames {
        let map = Mapping::load("ugpu", None).unwrap().for_machine(32, 2).unwrap();
        Frames::new(PageChannels::of(&map, 4096).unwrap(), apps, MigrationFill::First).unwrap()
    }

    fn channels(groups: &[u32]) -> Vec<u32> {
        groups.iter().flat_map(|group| 4 * group..4 * group + 4).collect()
    }

    #[test]
    fn who_owns_everything_has_its_pages_where_addresses_say() {
        let mut frames = frames(3);
        for address in [0x7f12_3456_7000, space::tag(1) ^ 0x7f12_3456_7000] {
            assert_eq!(frames.physical(address), address);
        }
        frames.own(2, &channels(&[2]), Migration::Stay);
        for address in [0x7f12_3456_7010, space::tag(1) ^ 0x7f12_3456_7010] {
            assert_eq!(frames.physical(address), address, "while others own some");
        }
    }

    #[test]
    fn pages_lie_in_channels_of_their_application_only() {
        let map = Mapping::load("ugpu", None).unwrap().for_machine(32, 2).unwrap();
        let mut frames = frames(2);
        frames.own(0, &channels(&[0, 1, 2]), Migration::PageMove);
        frames.own(1, &channels(&[3, 4, 5, 6, 7]), Migration::PageMove);
        for page in 0..1000_u64 {
            for app in [0, 1] {
                let address = frames.physical(space::tag(app) ^ (page * 4096 + 128));
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
    fn saved_state_and_local_memory_come_into_being_where_there_is_room_and_never_move_for_it() {
        let mut frames = frames(1);
        frames.own(0, &channels(&[0, 1, 2, 3]), Migration::PageMove);
        (0..8).for_each(|page| frames.touch(page));
        frames.own(0, &channels(&[0, 1]), Migration::PageMove);
        for address in [0xe_u64 << 44, 1 << 48] {
            for page in (address >> 12..).take(8) {
                frames.settle(page);
                assert_eq!(frames.destination(page), None);
                assert!(frames.physical(page << 12) >> 12 & 7 < 2);
            }
        }
        // Data that the program has had since before it ran moves.
        frames.settle(10);
        assert!(frames.destination(10).is_some());
    }

    /// What happens to the frames of three applications.
    #[derive(Clone, Debug)]
    enum Step {
        Own(Vec<u32>, Migration),
        Use(u16, u64),
        /// The page that has been under way for longest has come.
        Come,
    }

    /// Pages with the frames kept for them, and from where to where they go.
    type UnderWay = VecDeque<(u64, Frame, [u64; 2])>;

    /// What a walk does with a page: it is used, or sets out.
    fn walk(frames: &mut Frames, page: u64, under_way: &mut UnderWay) {
        if let Some(group) = frames.destination(page) {
            let (frame, ends) = frames.begin(page, group);
            under_way.push_back((page, frame, ends));
        } else {
            frames.touch(page);
        }
    }

    /// By frame, the one page that is there or under way to it.
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
        let step = prop_oneof![1 => own, 30 => touch, 12 => Just(Step::Come)];
        prop::collection::vec(step, 1..400)
    }

    fn migrations() -> impl Strategy<Value = Migration> {
        prop::sample::select(vec![Migration::PageMove, Migration::Software, Migration::Traditional])
    }

    proptest! {
        #[test]
        fn each_page_has_a_frame_of_its_own_also_when_channels_change_while_some_are_under_way(
            steps in steps(),
        ) {
            let mut frames = frames(3);
            let (mut holders, mut under_way) = (Holders::default(), UnderWay::new());
            let mut owner = vec![0, 0, 0, 1, 1, 1, 2, 2];
            let first = Step::Own(owner.clone(), Migration::PageMove);
            let rest = std::iter::repeat_n(Step::Come, 2000);
            for step in std::iter::once(first).chain(steps).chain(rest) {
                let page = match step {
                    Step::Own(of, how) if (0..3).all(|app| of.contains(&app)) => {
                        for app in 0..3_u32 {
                            let groups: Vec<u32> =
                                (0..8).filter(|&g| of[g as usize] == app).collect();
                            frames.own(app as usize, &channels(&groups), how);
                        }
                        owner = of;
                        continue;
                    }
                    Step::Own(..) => continue,
                    Step::Use(app, number) => (space::tag(app) >> 12) ^ number,
                    Step::Come => {
                        let Some((page, frame, [from, to])) = under_way.pop_front() else { continue };
                        prop_assert_eq!(frames.physical(page << 12), from, "until it has come");
                        frames.end(page, frame);
                        prop_assert_eq!(frames.physical(page << 12), to);
                        if from != to {
                            prop_assert!(holders.0.remove(&from).is_none_or(|held| held == page));
                        }
                        page
                    }
                };
                if under_way.iter().any(|&(other, _, _)| other == page) {
                    continue;
                }
                holders.take(frames.physical(page << 12), page);
                walk(&mut frames, page, &mut under_way);
                match under_way.back() {
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
            prop_assert!(under_way.is_empty());
        }
    }
}
