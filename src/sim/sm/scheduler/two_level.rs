//! Two-level (Gebhart et al., ISCA 2011; Narasiman et al., MICRO 2011): round robin in a small
//! active set; the other ready warps wait for a place in it.
//!
//! A warp that waits for a long time (memory, a barrier) gives its place up: with `two-level` to
//! the ready warp that has waited longest, as in GPGPU-Sim's `two_level_active`; with
//! `two-level-oldest` to the oldest ready warp, and only then to one that left for a busy unit.

use std::collections::VecDeque;

use super::lrr::slowest_first;
use super::policy::{ReadyWarp, Sharing, WarpScheduler};
use crate::sm::scheduler::issue_bandwidth::Claim;
use crate::sm::scheduler::issue_interval::Running;

/// Both policies.
#[derive(Debug)]
pub(in crate::sm) struct TwoLevel {
    /// Places of the active set.
    pub(in crate::sm) active_warps: u32,
    /// The oldest ready warp takes a free place, not the one that has waited longest.
    pub(in crate::sm) oldest_enters: bool,
}

impl WarpScheduler for TwoLevel {
    fn sharing(&self) -> Sharing {
        Sharing::Fair
    }

    fn key(&self, ready: &ReadyWarp) -> u64 {
        slowest_first(ready)
    }

    fn active_warps(&self) -> Option<u32> {
        Some(self.active_warps)
    }

    fn oldest_enters(&self) -> bool {
        self.oldest_enters
    }
}

/// The few warps that a scheduler picks from, and the ready ones that wait for a place among
/// them.
#[derive(Debug)]
pub(in crate::sm) struct ActiveSet {
    /// By warp slot of the SM.
    members: Vec<Member>,
    /// Free places.
    free: u32,
    /// The oldest ready warp takes a free place.
    oldest_enters: bool,
    /// Intervals of ready warps outside, in order of their coming.
    ready: VecDeque<(Running, Claim)>,
    /// Those of warps that left for a busy unit, where the oldest enters.
    yielded: VecDeque<(Running, Claim)>,
}

/// Where a warp is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Member {
    /// Outside.
    #[default]
    No,
    /// Outside, since it left for a busy unit.
    Yielded,
    /// In the set.
    Yes,
}

impl ActiveSet {
    /// An empty set of `places`, where the oldest ready warp enters or the one that has waited
    /// longest.
    pub(in crate::sm) fn new(places: u32, oldest_enters: bool) -> Self {
        let (ready, yielded) = (VecDeque::new(), VecDeque::new());
        Self { members: Vec::new(), free: places, oldest_enters, ready, yielded }
    }

    /// True when `warp` is inside, for which it takes a free place where it can.
    pub(in crate::sm) fn enter(&mut self, warp: u16) -> bool {
        let place = usize::from(warp);
        if self.members.len() <= place {
            self.members.resize(place + 1, Member::No);
        }
        if self.members[place] != Member::Yes && self.free > 0 {
            self.free -= 1;
            self.members[place] = Member::Yes;
        }
        self.members[place] == Member::Yes
    }

    /// Lets the interval of a ready warp wait for a place.
    pub(in crate::sm) fn wait(&mut self, interval: Running, claim: Claim) {
        let late = self.oldest_enters
            && self.members.get(usize::from(interval.warp)) == Some(&Member::Yielded);
        if late { &mut self.yielded } else { &mut self.ready }.push_back((interval, claim));
    }

    /// Takes out the interval of a ready warp that waits for a place.
    pub(in crate::sm) fn take_out(&mut self, warp: u16) -> Option<(Running, Claim)> {
        let taken = [&mut self.ready, &mut self.yielded].into_iter().find_map(|list| {
            let place = list.iter().position(|(interval, _)| interval.warp == warp)?;
            list.remove(place)
        })?;
        self.members[usize::from(warp)] = Member::No;
        Some(taken)
    }

    /// `warp` leaves the active set, if it is in it, because a unit is busy where it `yields`:
    /// the interval that takes its place.
    pub(in crate::sm) fn leave(&mut self, warp: u16, yields: bool) -> Option<(Running, Claim)> {
        let member = self.members.get_mut(usize::from(warp))?;
        let was_inside = *member == Member::Yes;
        *member = if yields { Member::Yielded } else { Member::No };
        if !was_inside {
            return None;
        }
        self.free += 1;
        let list = if self.ready.is_empty() { &mut self.yielded } else { &mut self.ready };
        let next = match self.oldest_enters {
            true => (0..list.len()).min_by_key(|&place| list[place].1.age)?,
            false => 0,
        };
        let next = list.remove(next)?;
        self.enter(next.0.warp);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::{ActiveSet, Claim, Running};
    use crate::sm::scheduler::issue_bandwidth::{ISSUE, RESOURCES};

    /// The interval of a warp that came as number `age`.
    fn interval(warp: u16, age: u64) -> (Running, Claim) {
        let mut density = [0.0; RESOURCES];
        density[ISSUE] = 1.0;
        (
            Running { warp, kernel: 0, left: 1.0, gaps: [0.0; 3], is_access: false },
            Claim::new(density, age),
        )
    }

    /// The warps that enter one place after warp 0 has left it: warp 2, which is older than warp 1
    /// but came later, and warp 3, the oldest, which had left for a busy unit.
    fn entered(oldest_enters: bool) -> Vec<u16> {
        let mut set = ActiveSet::new(1, oldest_enters);
        assert!(set.enter(3));
        assert!(set.leave(3, true).is_none() && set.enter(0));
        for (warp, age) in [(3, 1), (1, 9), (2, 5)] {
            let (running, claim) = interval(warp, age);
            assert!(!set.enter(warp));
            set.wait(running, claim);
        }
        let mut at = 0;
        let next = || {
            let (running, _) = set.leave(at, false)?;
            at = running.warp;
            Some(at)
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn the_longest_waiting_or_the_oldest_warp_takes_a_place_and_last_the_one_that_yielded() {
        assert_eq!(entered(false), [3, 1, 2]);
        assert_eq!(entered(true), [2, 1, 3]);
    }

    #[test]
    fn a_warp_that_was_taken_out_has_not_yielded() {
        let mut set = ActiveSet::new(1, true);
        assert!(set.enter(3));
        assert!(set.leave(3, true).is_none() && set.enter(0));
        let (running, claim) = interval(3, 1);
        set.wait(running, claim);
        assert!(set.take_out(3).is_some());
        for (warp, age) in [(1, 9), (3, 10)] {
            let (running, claim) = interval(warp, age);
            set.wait(running, claim);
        }
        assert_eq!(set.leave(0, false).map(|(running, _)| running.warp), Some(1));
        assert_eq!(set.leave(1, false).map(|(running, _)| running.warp), Some(3));
    }
}
