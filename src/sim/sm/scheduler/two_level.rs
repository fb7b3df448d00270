//! Two-level (Gebhart et al., ISCA 2011; Narasiman et al., MICRO 2011): round robin in a small
//! active set; the other ready warps wait for a place in it.
//!
//! A warp that waits for a long time (memory, a barrier) gives its place up to
//! the ready warp that has waited longest, as in GPGPU-Sim's `two_level_active`. Every change
//! costs O(1).

use std::collections::VecDeque;

use super::lrr::slowest_first;
use super::policy::{ReadyWarp, Sharing, WarpScheduler};
use crate::sm::scheduler::issue_bandwidth::Claim;
use crate::sm::scheduler::issue_interval::Running;

/// The policy.
#[derive(Debug)]
pub(in crate::sm) struct TwoLevel {
    /// Places of the active set.
    pub(in crate::sm) active_warps: u32,
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
}

/// The few warps that a scheduler picks from, and the ready ones that wait for a place among
/// them.
#[derive(Debug)]
pub(in crate::sm) struct ActiveSet {
    /// By warp slot of the SM.
    is_member: Vec<bool>,
    /// Free places.
    free: u32,
    /// Intervals of ready warps outside, in order of their coming.
    ready: VecDeque<(Running, Claim)>,
}

impl ActiveSet {
    /// An empty set with `places`.
    pub(in crate::sm) fn new(places: u32) -> Self {
        Self { is_member: Vec::new(), free: places, ready: VecDeque::new() }
    }

    /// True when `warp` is inside, for which it takes a free place where it can.
    pub(in crate::sm) fn enter(&mut self, warp: u16) -> bool {
        let place = usize::from(warp);
        if self.is_member.len() <= place {
            self.is_member.resize(place + 1, false);
        }
        if !self.is_member[place] && self.free > 0 {
            self.free -= 1;
            self.is_member[place] = true;
        }
        self.is_member[place]
    }

    /// Lets the interval of a ready warp wait for a place.
    pub(in crate::sm) fn wait(&mut self, interval: Running, claim: Claim) {
        self.ready.push_back((interval, claim));
    }

    /// Takes out the interval of a ready warp that waits for a place.
    pub(in crate::sm) fn take_out(&mut self, warp: u16) -> Option<(Running, Claim)> {
        let place = self.ready.iter().position(|(interval, _)| interval.warp == warp)?;
        self.ready.remove(place)
    }

    /// `warp` leaves the active set, if it is in it: the interval that takes its place.
    pub(in crate::sm) fn leave(&mut self, warp: u16) -> Option<(Running, Claim)> {
        let member = self.is_member.get_mut(usize::from(warp)).filter(|member| **member)?;
        *member = false;
        self.free += 1;
        let next = self.ready.pop_front()?;
        self.enter(next.0.warp);
        Some(next)
    }
}
