//! Each page lies in one frame of its own, whatever changes hands.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::frames::{Frame, Frames};
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
fn who_owns_everything_has_its_pages_where_addresses_say() {
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
        frames.place(page);
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

/// Every page that a step may use.
fn all_pages() -> impl Iterator<Item = u64> {
    (0..3).flat_map(|app| (0..60).map(move |number| (address_space::tag(app) >> 12) ^ number))
}

/// Uses a page, which moves where it has to.
fn bring_home(frames: &mut Frames, page: u64) {
    let mut under_way = UnderWay::new();
    walk(frames, page, &mut under_way);
    if let Some((page, frame, _)) = under_way.pop_front() {
        frames.end(page, frame);
    }
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
                    prop_assert!(frames.each_page_is_alone(), "also those that nobody uses now");
                    owner = of;
                    continue;
                }
                Step::Own(..) => continue,
                Step::Use(app, number) => (address_space::tag(app) >> 12) ^ number,
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
        for page in all_pages() {
            bring_home(&mut frames, page);
            let group = (frames.physical(page << 12) >> 12 & 7) as usize;
            prop_assert_eq!(owner[group], (page >> 38) as u32, "page {:#x}", page);
        }
        prop_assert!(frames.each_page_is_alone());
    }
}
