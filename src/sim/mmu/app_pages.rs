//! One application's part of the memory: the groups of channels that it owns and its pages
//! in them.

use rustc_hash::FxHashSet;

use crate::config::MigrationFill;
use gpumodel_core::units::{to_u64, to_usize};

use super::page_table::PageRanges;

/// The groups and pages of an application. Groups are numbered as in
/// [`crate::config::PageChannels`].
#[derive(Debug)]
pub(super) struct AppPages {
    /// The groups over which its pages were first laid out, round robin.
    home: Vec<u32>,
    /// The groups that it owns now.
    pub(super) owned: Vec<u32>,
    /// Those among them that the last change added.
    gained: Vec<u32>,
    /// The channel-list register is set: pages in other groups move to the gained groups, which
    /// have fewer (UGPU, section 4.4).
    filling: bool,
    /// The pages that move there.
    fill: MigrationFill,
    /// Pages of its footprint that were copied into memory; they are there before it runs
    /// ("footprints are resident", UGPU, section 5).
    resident: PageRanges,
    /// Other pages of its footprint that it has touched.
    touched: FxHashSet<u64>,
    /// How many of both lie in each group.
    pages_in: Vec<u64>,
    /// It has used a page, so that its pages are laid out.
    used: bool,
    /// The same for its other pages: local memory and the saved state of CTAs. They occupy room
    /// in a group but do not count for the balance, since no data of the program moves with
    /// them.
    other: FxHashSet<u64>,
    other_in: Vec<u64>,
    /// By group: pages that are moving to it and from it.
    incoming: Vec<u64>,
    outgoing: Vec<u64>,
    /// Under traditional migration: pages that have moved since the last change.
    moved_since_change: FxHashSet<u64>,
    /// Changes of what it owns.
    pub(super) changes: u64,
    /// Pages that have moved.
    pub(super) moved: u64,
}

impl AppPages {
    /// An application without pages that owns all `groups` groups.
    pub(super) fn new(groups: u32, fill: MigrationFill) -> Self {
        Self {
            home: (0..groups).collect(),
            owned: (0..groups).collect(),
            gained: Vec::new(),
            filling: false,
            fill,
            resident: PageRanges::default(),
            touched: FxHashSet::default(),
            pages_in: vec![0; to_usize(groups)],
            used: false,
            other: FxHashSet::default(),
            other_in: vec![0; to_usize(groups)],
            incoming: vec![0; to_usize(groups)],
            outgoing: vec![0; to_usize(groups)],
            moved_since_change: FxHashSet::default(),
            changes: 0,
            moved: 0,
        }
    }

    /// True for a page outside its footprint that it has.
    pub(super) fn has_other(&self, page: u64) -> bool {
        self.other.contains(&page)
    }

    /// The number of pages of its footprint in memory: copied there or touched.
    pub(super) fn pages(&self) -> u64 {
        self.pages_in.iter().sum()
    }

    /// True for a page of its footprint that counts for the balance.
    pub(super) fn counts(&self, page: u64) -> bool {
        self.touched.contains(&page) || self.resident.holds(page)
    }

    /// Records the pages from `first` to `last`, which were copied into memory; so many of those
    /// that did not count before lie in each group.
    pub(super) fn add_resident(&mut self, first: u64, last: u64, more_in: &[u64]) {
        self.pages_in.iter_mut().zip(more_in).for_each(|(pages, more)| *pages += more);
        self.resident.bring(first, last);
        self.update_filling();
    }

    /// The copied pages of an application that has used none and is laid out over other groups
    /// than when they were counted: they are to be counted again.
    pub(super) fn uncount(&mut self) -> Vec<(u64, u64)> {
        if self.used {
            return Vec::new();
        }
        self.pages_in.iter_mut().for_each(|pages| *pages = 0);
        std::mem::take(&mut self.resident).into_ranges().collect()
    }

    /// All its pages.
    #[cfg(test)]
    pub(super) fn all_pages(&self) -> impl Iterator<Item = u64> {
        self.touched.iter().chain(&self.other).copied()
    }

    /// True when its pages were first laid out over all groups: each lies where its address
    /// says.
    pub(super) fn is_laid_out_over_all(&self) -> bool {
        self.home.len() == self.pages_in.len()
    }

    /// Where page number `number` was first laid out: its place in a group, and the group.
    pub(super) fn initial_place(&self, number: u64) -> (u64, u32) {
        let count = to_u64(self.home.len());
        (number / count, self.home[to_usize(number % count)])
    }

    /// Changes its groups; true when its pages may have to move. An application without pages is
    /// laid out over the new groups.
    pub(super) fn own(&mut self, groups: Vec<u32>) -> bool {
        if groups == self.owned || groups.is_empty() {
            return false;
        }
        if !self.used {
            self.home.clone_from(&groups);
            self.owned = groups;
            return false;
        }
        let fills = |group: &u32| {
            !self.owned.contains(group) || self.filling && self.gained.contains(group)
        };
        self.gained = groups.iter().copied().filter(fills).collect();
        self.owned = groups;
        self.changes += 1;
        self.moved_since_change.clear();
        self.filling = !self.gained.is_empty();
        self.update_filling();
        true
    }

    /// Pages of the footprint that a group will have when all moves have ended.
    fn load(&self, group: u32) -> u64 {
        let at = to_usize(group);
        (self.pages_in[at] + self.incoming[at]).saturating_sub(self.outgoing[at])
    }

    /// The group among `groups` that will have the fewest of them, the first of several.
    fn least(&self, groups: &[u32]) -> Option<u32> {
        groups.iter().copied().min_by_key(|&group| self.load(group))
    }

    /// The group with the fewest of all its pages.
    pub(super) fn least_used(&self) -> Option<u32> {
        let used = |&group: &u32| self.load(group) + self.other_in[to_usize(group)];
        self.owned.iter().copied().min_by_key(used)
    }

    /// Clears the register as soon as the groups are balanced: no gained group has fewer pages
    /// than the mean, or a move would only swap the fullest and the emptiest.
    fn update_filling(&mut self) {
        let loads = self.owned.iter().map(|&group| self.load(group));
        let (total, most) = loads.fold((0, 0), |(sum, most), load| (sum + load, most.max(load)));
        let least = self.least(&self.gained).map_or(most, |group| self.load(group));
        let below = least * to_u64(self.owned.len()) < total;
        self.filling &= below && least + 1 < most;
    }

    /// The group to which a page of `group` has to move, if it has to. Pages that were neither
    /// copied nor touched are laid out too: one moves where that balances the groups.
    pub(super) fn destination(&self, page: u64, group: u32) -> Option<u32> {
        if !self.owned.contains(&group) {
            return if self.filling { self.least(&self.gained) } else { self.least_used() };
        }
        if self.gained.is_empty() || self.gained.contains(&group) {
            return None;
        }
        let to = match self.fill {
            MigrationFill::First => self.least(&self.gained)?,
            MigrationFill::Spread => {
                let group = self.owned[to_usize(page % to_u64(self.owned.len()))];
                self.gained.contains(&group).then_some(group)?
            }
        };
        if self.other.contains(&page) {
            return None;
        }
        // A page that counts leaves one less in `group`.
        let counted = u64::from(self.counts(page));
        let balances = self.load(to) + counted < self.load(group);
        (balances && (self.filling || counted == 0)).then_some(to)
    }

    /// The same where every page moves once after a change, and out of lost groups.
    pub(super) fn traditional_destination(&self, page: u64, group: u32) -> Option<u32> {
        let lost = !self.owned.contains(&group);
        let due = lost || self.changes > 0 && !self.moved_since_change.contains(&page);
        if due { self.least_used() } else { None }
    }

    /// Records that a page of `group` is touched.
    pub(super) fn touch(&mut self, page: u64, group: u32) {
        self.used = true;
        if !self.other.contains(&page) && !self.counts(page) {
            self.touched.insert(page);
            self.pages_in[to_usize(group)] += 1;
        }
    }

    /// Records a page outside its footprint, which lies in `group`.
    pub(super) fn add_other(&mut self, page: u64, group: u32) {
        self.used = true;
        if self.other.insert(page) {
            self.other_in[to_usize(group)] += 1;
        }
    }

    /// A page begins to move from one group to another.
    pub(super) fn begin_move(&mut self, page: u64, from: u32, to: u32) {
        if self.other.contains(&page) {
            return;
        }
        self.incoming[to_usize(to)] += 1;
        self.outgoing[to_usize(from)] += u64::from(self.counts(page));
        self.update_filling();
    }

    /// A page has moved.
    pub(super) fn end_move(&mut self, page: u64, from: u32, to: u32) {
        let (from, to) = (to_usize(from), to_usize(to));
        self.moved += 1;
        self.moved_since_change.insert(page);
        if self.other.contains(&page) {
            self.other_in[from] -= 1;
            self.other_in[to] += 1;
            return;
        }
        self.incoming[to] -= 1;
        if self.counts(page) {
            self.outgoing[from] -= 1;
            self.pages_in[from] -= 1;
            self.pages_in[to] += 1;
        }
        self.update_filling();
    }
}

#[cfg(test)]
mod tests {
    use super::{AppPages, MigrationFill};

    /// An application with groups 0 to 3 of 8 and `pages` touched pages.
    fn app_pages(pages: u64) -> AppPages {
        let mut app = AppPages::new(8, MigrationFill::First);
        assert!(!app.own(vec![0, 1, 2, 3]));
        for page in 0..pages {
            let (_, group) = app.initial_place(page);
            app.touch(page, group);
        }
        app
    }

    #[test]
    fn pages_are_laid_out_over_the_first_groups_in_turn() {
        let app = app_pages(8);
        assert_eq!(app.initial_place(6), (1, 2));
        assert_eq!((app.pages_in.clone(), app.pages()), (vec![2, 2, 2, 2, 0, 0, 0, 0], 8));
    }

    #[test]
    fn pages_of_lost_groups_move_to_the_least_used_group() {
        let mut app = app_pages(8);
        assert!(app.own(vec![0, 1]));
        assert_eq!(app.destination(0, 0), None);
        assert_eq!(app.destination(2, 2), Some(0));
        app.begin_move(2, 2, 0);
        app.end_move(2, 2, 0);
        assert_eq!(app.destination(3, 3), Some(1));
        // A page that was never touched lies in a lost group too.
        assert_eq!(app.destination(10, 2), Some(1));
    }

    #[test]
    fn pages_move_to_gained_groups_until_all_groups_have_the_same_number() {
        let mut app = app_pages(12);
        assert!(app.own(vec![0, 1, 2, 3, 4, 5]));
        let (mut moved, mut moving) = (0, Vec::new());
        for page in 0..12 {
            let (_, group) = app.initial_place(page);
            if let Some(to) = app.destination(page, group) {
                app.begin_move(page, group, to);
                moved += 1;
                moving.push((page, group, to));
            }
        }
        // All are moving at once: the balance counts them.
        for (page, from, to) in moving {
            app.end_move(page, from, to);
        }
        assert_eq!((moved, &app.pages_in[4..6]), (4, &[2, 2][..]));
        assert!(!app.filling);
        // Afterwards only pages that are touched for the first time may move.
        assert_eq!(app.destination(11, 3), None);
    }

    #[test]
    fn few_pages_are_balanced_too() {
        for (pages, moves, end) in [
            (13, 5, vec![2, 2, 2, 2, 2, 2, 1]),
            (5, 1, vec![1, 1, 1, 1, 1, 0, 0]),
            (3, 0, vec![1, 1, 1, 0, 0, 0, 0]),
        ] {
            let mut app = app_pages(pages);
            assert!(app.own(vec![0, 1, 2, 3, 4, 5, 6]));
            assert_eq!(app.filling, moves > 0, "{pages}");
            for page in (0..pages).rev() {
                let (_, group) = app.initial_place(page);
                if let Some(to) = app.destination(page, group) {
                    app.begin_move(page, group, to);
                    app.end_move(page, group, to);
                }
            }
            assert_eq!((app.moved, &app.pages_in[..7]), (moves, &end[..]), "{pages}");
            assert!(!app.filling, "{pages}");
        }
    }

    #[test]
    fn saved_state_takes_room_and_counts_for_no_balance() {
        let mut app = app_pages(16);
        assert!(app.own(vec![0, 1, 2, 3, 4, 5, 6, 7]));
        for page in 1000..1012 {
            let group = app.least_used().unwrap();
            assert!(group >= 4);
            app.add_other(page, group);
        }
        assert_eq!((app.pages(), &app.other_in[4..]), (16, &[3, 3, 3, 3][..]));
        assert!(app.filling && app.destination(0, 0) == Some(4));
        assert_eq!(app.destination(1000, 4), None);
        // It leaves lost groups and is counted where it goes.
        assert!(app.own(vec![0, 1, 2, 3]));
        let to = app.destination(1000, 4).unwrap();
        app.begin_move(1000, 4, to);
        app.end_move(1000, 4, to);
        assert_eq!((to, app.other_in[0], app.other_in[4]), (0, 1, 2));
        assert_eq!(app.pages(), 16);
    }

    #[test]
    fn pages_that_fill_gained_groups_are_neighbours_or_spread() {
        for (fill, moves) in [
            (MigrationFill::First, vec![0, 1, 2, 3, 4, 5, 6, 7]),
            (MigrationFill::Spread, vec![4, 5, 10, 11, 16, 17, 22, 23]),
        ] {
            let mut app = AppPages { fill, ..app_pages(24) };
            assert!(app.own(vec![0, 1, 2, 3, 4, 5]));
            let mut moved = Vec::new();
            for page in 0..24 {
                let (_, group) = app.initial_place(page);
                if let Some(to) = app.destination(page, group) {
                    app.begin_move(page, group, to);
                    app.end_move(page, group, to);
                    moved.push(page);
                }
            }
            assert_eq!(moved, moves, "{fill:?}");
            assert_eq!(&app.pages_in[4..6], [4, 4], "{fill:?}");
        }
    }

    #[test]
    fn under_traditional_migration_every_page_moves_once() {
        let mut app = app_pages(2);
        assert_eq!(app.traditional_destination(0, 0), None);
        app.own(vec![0, 1, 2, 3, 4]);
        assert_eq!(app.traditional_destination(0, 0), Some(2));
        app.begin_move(0, 0, 2);
        app.end_move(0, 0, 2);
        assert_eq!(
            (app.traditional_destination(0, 2), app.traditional_destination(1, 1).is_some()),
            (None, true)
        );
    }

    #[test]
    fn a_page_that_moves_to_a_group_lost_meanwhile_moves_on() {
        let mut app = app_pages(2);
        app.own(vec![0, 1, 2]);
        app.begin_move(0, 0, 2);
        app.own(vec![0, 1]);
        app.end_move(0, 0, 2);
        assert!(app.traditional_destination(0, 2).is_some() && app.destination(0, 2).is_some());
    }

    #[test]
    fn a_second_gain_keeps_filling_the_groups_of_the_first() {
        let mut app = app_pages(12);
        app.own(vec![0, 1, 2, 3, 4]);
        app.own(vec![0, 1, 2, 3, 4, 5]);
        assert_eq!(app.gained, [4, 5]);
    }
}
