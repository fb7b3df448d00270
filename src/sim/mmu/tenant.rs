//! One application's part of the memory: the groups of channels that it owns, and
//! its pages in them.

use rustc_hash::FxHashSet;

use crate::config::MigrationFill;
use gpumodel_core::units::{to_u64, to_usize};

/// What an application owns and holds. Groups are numbered as in
/// [`crate::config::PageChannels`].
#[derive(Debug)]
pub(super) struct Tenant {
    /// The groups among which its pages were laid out at first, in turn.
    home: Vec<u32>,
    /// The groups that it owns now.
    owned: Vec<u32>,
    /// Those among them that came with the last change.
    gained: Vec<u32>,
    /// The channel-list register is set: pages that are found elsewhere move to the
    /// gained groups, as those have fewer (UGPU, section 4.4).
    filling: bool,
    /// Which pages fill them.
    fill: MigrationFill,
    /// Pages of its footprint that it has touched, and how many lie in each group.
    touched: FxHashSet<u64>,
    held: Vec<u64>,
    /// The same of other pages that it has: local memory and the saved state of CTAs.
    /// They take room in a group and are no part of the balance, since no data of the
    /// program has moved with them.
    beside: FxHashSet<u64>,
    held_beside: Vec<u64>,
    /// By group: pages on their way to it, and from it.
    coming: Vec<u64>,
    going: Vec<u64>,
    /// Under traditional migration: pages that have moved since the last change.
    renewed: FxHashSet<u64>,
    /// Changes of what it owns.
    pub(super) changes: u64,
    /// Pages that have moved.
    pub(super) moved: u64,
}

impl Tenant {
    /// One that owns all `groups` groups.
    pub(super) fn new(groups: u32, fill: MigrationFill) -> Self {
        Self {
            home: (0..groups).collect(),
            owned: (0..groups).collect(),
            gained: Vec::new(),
            filling: false,
            fill,
            touched: FxHashSet::default(),
            held: vec![0; to_usize(groups)],
            beside: FxHashSet::default(),
            held_beside: vec![0; to_usize(groups)],
            coming: vec![0; to_usize(groups)],
            going: vec![0; to_usize(groups)],
            renewed: FxHashSet::default(),
            changes: 0,
            moved: 0,
        }
    }

    /// The groups that it owns.
    pub(super) fn owned(&self) -> &[u32] {
        &self.owned
    }

    /// True when it has a page beside its footprint.
    pub(super) fn has_beside(&self, page: u64) -> bool {
        self.beside.contains(&page)
    }

    /// Pages of its footprint that it has touched.
    pub(super) fn pages(&self) -> u64 {
        to_u64(self.touched.len())
    }

    /// All pages that it has touched or was given.
    #[cfg(test)]
    pub(super) fn all_pages(&self) -> impl Iterator<Item = u64> {
        self.touched.iter().chain(&self.beside).copied()
    }

    /// True when its pages were laid out over all groups: each lies where its address
    /// says.
    pub(super) fn is_at_home_everywhere(&self) -> bool {
        self.home.len() == self.held.len()
    }

    /// Where page number `number` was laid out: its group and its place there.
    pub(super) fn home_of(&self, number: u64) -> (u64, u32) {
        let count = to_u64(self.home.len());
        (number / count, self.home[to_usize(number % count)])
    }

    /// Gives it other groups: true when it holds pages that this may concern. One
    /// that has touched nothing is laid out among them.
    pub(super) fn own(&mut self, groups: Vec<u32>) -> bool {
        if groups == self.owned || groups.is_empty() {
            return false;
        }
        if self.touched.is_empty() && self.beside.is_empty() {
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
        self.renewed.clear();
        self.filling = !self.gained.is_empty();
        self.look_for_balance();
        true
    }

    /// Pages of the footprint that a group will hold when all that are on their way
    /// have moved.
    fn load(&self, group: u32) -> u64 {
        let at = to_usize(group);
        (self.held[at] + self.coming[at]).saturating_sub(self.going[at])
    }

    /// The group among `groups` that will hold the fewest of them, the first of those.
    fn least(&self, groups: &[u32]) -> Option<u32> {
        groups.iter().copied().min_by_key(|&group| self.load(group))
    }

    /// The least used of its groups, by all pages.
    pub(super) fn least_used(&self) -> Option<u32> {
        let used = |&group: &u32| self.load(group) + self.held_beside[to_usize(group)];
        self.owned.iter().copied().min_by_key(used)
    }

    /// The register is cleared as soon as the groups are balanced: no gained group holds
    /// less than the mean, or none a page less than another without one more.
    fn look_for_balance(&mut self) {
        let loads = self.owned.iter().map(|&group| self.load(group));
        let (total, most) = loads.fold((0, 0), |(sum, most), load| (sum + load, most.max(load)));
        let least = self.least(&self.gained).map_or(most, |group| self.load(group));
        let below = least * to_u64(self.owned.len()) < total;
        self.filling &= below && least + 1 < most;
    }

    /// Where a page that lies in `group` has to move, if it has to. A page that was
    /// never touched is laid out all the same: it moves where that evens the groups out.
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
                let turn = self.owned[to_usize(page % to_u64(self.owned.len()))];
                self.gained.contains(&turn).then_some(turn)?
            }
        };
        if self.beside.contains(&page) {
            return None;
        }
        // Who lies in `group` leaves one less there.
        let counted = u64::from(self.touched.contains(&page));
        let evens = self.load(to) + counted < self.load(group);
        (evens && (self.filling || counted == 0)).then_some(to)
    }

    /// The same where every page moves once after a change, and out of what is lost.
    pub(super) fn renewal(&self, page: u64, group: u32) -> Option<u32> {
        let lost = !self.owned.contains(&group);
        let due = lost || self.changes > 0 && !self.renewed.contains(&page);
        if due { self.least_used() } else { None }
    }

    /// A page that lies in `group` is touched.
    pub(super) fn touch(&mut self, page: u64, group: u32) {
        if !self.beside.contains(&page) && self.touched.insert(page) {
            self.held[to_usize(group)] += 1;
        }
    }

    /// A page beside its footprint comes to lie in `group`.
    pub(super) fn lay_beside(&mut self, page: u64, group: u32) {
        if self.beside.insert(page) {
            self.held_beside[to_usize(group)] += 1;
        }
    }

    /// A page sets out from one group to another.
    pub(super) fn sets_out(&mut self, page: u64, from: u32, to: u32) {
        if self.beside.contains(&page) {
            return;
        }
        self.coming[to_usize(to)] += 1;
        self.going[to_usize(from)] += u64::from(self.touched.contains(&page));
        self.look_for_balance();
    }

    /// A page that has set out has moved.
    pub(super) fn has_moved(&mut self, page: u64, from: u32, to: u32) {
        let (from, to) = (to_usize(from), to_usize(to));
        self.moved += 1;
        self.renewed.insert(page);
        if self.beside.contains(&page) {
            self.held_beside[from] -= 1;
            self.held_beside[to] += 1;
            return;
        }
        self.coming[to] -= 1;
        if self.touched.contains(&page) {
            self.going[from] -= 1;
            self.held[from] -= 1;
            self.held[to] += 1;
        }
        self.look_for_balance();
    }
}

#[cfg(test)]
mod tests {
    use super::{MigrationFill, Tenant};

    /// A tenant of groups 0 to 3 of 8 with `pages` touched pages.
    fn tenant(pages: u64) -> Tenant {
        let mut tenant = Tenant::new(8, MigrationFill::First);
        assert!(!tenant.own(vec![0, 1, 2, 3]));
        for page in 0..pages {
            let (_, group) = tenant.home_of(page);
            tenant.touch(page, group);
        }
        tenant
    }

    #[test]
    fn pages_are_laid_out_over_the_first_groups_in_turn() {
        let tenant = tenant(8);
        assert_eq!(tenant.home_of(6), (1, 2));
        assert_eq!((tenant.held.clone(), tenant.pages()), (vec![2, 2, 2, 2, 0, 0, 0, 0], 8));
    }

    #[test]
    fn the_loser_moves_what_lies_in_lost_groups_to_its_least_used_one() {
        let mut tenant = tenant(8);
        assert!(tenant.own(vec![0, 1]));
        assert_eq!(tenant.destination(0, 0), None);
        assert_eq!(tenant.destination(2, 2), Some(0));
        tenant.sets_out(2, 2, 0);
        tenant.has_moved(2, 2, 0);
        assert_eq!(tenant.destination(3, 3), Some(1));
        // A page that was never touched lies in a lost group too.
        assert_eq!(tenant.destination(10, 2), Some(1));
    }

    #[test]
    fn the_gainer_fills_the_gained_groups_until_all_hold_the_same() {
        let mut tenant = tenant(12);
        assert!(tenant.own(vec![0, 1, 2, 3, 4, 5]));
        let (mut moved, mut under_way) = (0, Vec::new());
        for page in 0..12 {
            let (_, group) = tenant.home_of(page);
            if let Some(to) = tenant.destination(page, group) {
                tenant.sets_out(page, group, to);
                moved += 1;
                under_way.push((page, group, to));
            }
        }
        // All are under way at once: the balance counts them.
        for (page, from, to) in under_way {
            tenant.has_moved(page, from, to);
        }
        assert_eq!((moved, &tenant.held[4..6]), (4, &[2, 2][..]));
        assert!(!tenant.filling);
        // Afterwards only pages that are touched for the first time may move.
        assert_eq!(tenant.destination(11, 3), None);
    }

    #[test]
    fn few_pages_are_balanced_too() {
        for (pages, moves, end) in [
            (13, 5, vec![2, 2, 2, 2, 2, 2, 1]),
            (5, 1, vec![1, 1, 1, 1, 1, 0, 0]),
            (3, 0, vec![1, 1, 1, 0, 0, 0, 0]),
        ] {
            let mut tenant = tenant(pages);
            assert!(tenant.own(vec![0, 1, 2, 3, 4, 5, 6]));
            assert_eq!(tenant.filling, moves > 0, "{pages}");
            for page in (0..pages).rev() {
                let (_, group) = tenant.home_of(page);
                if let Some(to) = tenant.destination(page, group) {
                    tenant.sets_out(page, group, to);
                    tenant.has_moved(page, group, to);
                }
            }
            assert_eq!((tenant.moved, &tenant.held[..7]), (moves, &end[..]), "{pages}");
            assert!(!tenant.filling, "{pages}");
        }
    }

    #[test]
    fn saved_state_takes_room_and_counts_for_no_balance() {
        let mut tenant = tenant(16);
        assert!(tenant.own(vec![0, 1, 2, 3, 4, 5, 6, 7]));
        for page in 1000..1012 {
            let group = tenant.least_used().unwrap();
            assert!(group >= 4);
            tenant.lay_beside(page, group);
        }
        assert_eq!((tenant.pages(), &tenant.held_beside[4..]), (16, &[3, 3, 3, 3][..]));
        assert!(tenant.filling && tenant.destination(0, 0) == Some(4));
        assert_eq!(tenant.destination(1000, 4), None);
        // It leaves what is lost, and is counted where it goes.
        assert!(tenant.own(vec![0, 1, 2, 3]));
        let to = tenant.destination(1000, 4).unwrap();
        tenant.sets_out(1000, 4, to);
        tenant.has_moved(1000, 4, to);
        assert_eq!((to, tenant.held_beside[0], tenant.held_beside[4]), (0, 1, 2));
        assert_eq!(tenant.pages(), 16);
    }

    #[test]
    fn pages_that_fill_gained_groups_are_neighbours_or_spread() {
        for (fill, moves) in [
            (MigrationFill::First, vec![0, 1, 2, 3, 4, 5, 6, 7]),
            (MigrationFill::Spread, vec![4, 5, 10, 11, 16, 17, 22, 23]),
        ] {
            let mut tenant = Tenant { fill, ..tenant(24) };
            assert!(tenant.own(vec![0, 1, 2, 3, 4, 5]));
            let mut moved = Vec::new();
            for page in 0..24 {
                let (_, group) = tenant.home_of(page);
                if let Some(to) = tenant.destination(page, group) {
                    tenant.sets_out(page, group, to);
                    tenant.has_moved(page, group, to);
                    moved.push(page);
                }
            }
            assert_eq!(moved, moves, "{fill:?}");
            assert_eq!(&tenant.held[4..6], [4, 4], "{fill:?}");
        }
    }

    #[test]
    fn under_traditional_migration_every_page_moves_once() {
        let mut tenant = tenant(2);
        assert_eq!(tenant.renewal(0, 0), None);
        tenant.own(vec![0, 1, 2, 3, 4]);
        assert_eq!(tenant.renewal(0, 0), Some(2));
        tenant.sets_out(0, 0, 2);
        tenant.has_moved(0, 0, 2);
        assert_eq!((tenant.renewal(0, 2), tenant.renewal(1, 1).is_some()), (None, true));
    }

    #[test]
    fn a_page_under_way_to_a_group_that_is_lost_meanwhile_moves_on() {
        let mut tenant = tenant(2);
        tenant.own(vec![0, 1, 2]);
        tenant.sets_out(0, 0, 2);
        tenant.own(vec![0, 1]);
        tenant.has_moved(0, 0, 2);
        assert!(tenant.renewal(0, 2).is_some() && tenant.destination(0, 2).is_some());
    }

    #[test]
    fn a_second_gain_goes_on_filling_the_groups_of_the_first() {
        let mut tenant = tenant(12);
        tenant.own(vec![0, 1, 2, 3, 4]);
        tenant.own(vec![0, 1, 2, 3, 4, 5]);
        assert_eq!(tenant.gained, [4, 5]);
    }
}
