//! The workers of one launch: how many may come where, and who is to leave.

use std::sync::Arc;

use crate::epoch::Resize;
use crate::units::to_u64;

use super::sm::Duty;
use super::worker::Worker;

/// The workers of one launch.
#[derive(Clone, Debug)]
pub(super) struct Staff {
    pub(super) worker: Arc<Worker>,
    /// Workers that one SM holds.
    fits: u32,
    /// By SM: places for workers that launched instances have and nobody has taken.
    places: Vec<u32>,
    /// The same of CTAs that will find that the SM is not theirs.
    visits: Vec<u32>,
    /// All are to leave, for a launch on other SMs.
    retreats: bool,
    /// An instance is on its way.
    pub(super) coming: bool,
    /// Blocks of tasks that workers have not done yet.
    pub(super) out: u64,
}

impl Staff {
    /// Nobody yet, on `sms` SMs that hold `fits` workers each.
    pub(super) fn new(worker: Arc<Worker>, fits: u32, sms: usize) -> Self {
        let (places, visits) = (vec![0; sms], vec![0; sms]);
        Self { worker, fits, places, visits, retreats: false, coming: false, out: 0 }
    }

    /// Whether somebody may come to an SM.
    pub(super) fn may_come(&self, sm: usize) -> bool {
        self.places[sm] > 0 || self.visits[sm] > 0
    }

    /// Whether somebody may come to any SM.
    pub(super) fn waits(&self) -> bool {
        (0..self.places.len()).any(|sm| self.may_come(sm))
    }

    /// Somebody who works is still to come.
    pub(super) fn expects(&self) -> bool {
        self.places.iter().any(|&places| places > 0)
    }

    /// Somebody comes to an SM with `present` workers, of whom the plan wants `quota`:
    /// true when only to find out that he is not wanted.
    pub(super) fn take_place(&mut self, sm: usize, present: u32, quota: u32) -> bool {
        if self.visits[sm] > 0 {
            self.visits[sm] -= 1;
            return true;
        }
        self.places[sm] -= 1;
        self.worker.resize == Resize::InPlace && present >= quota
    }

    /// Nobody comes any more.
    pub(super) fn close(&mut self) {
        self.places.fill(0);
        self.visits.fill(0);
        self.retreats = false;
    }

    /// An instance with workers for all that the quotas allow, beside the `present`
    /// ones, but for no more than `blocks` left blocks make tasks.
    pub(super) fn launch(&mut self, quotas: &[u32], present: &[u32], blocks: u64) {
        self.coming = false;
        self.retreats = false;
        let anew = self.worker.resize != Resize::InPlace;
        let wanted: Vec<u32> = quotas.iter().map(|&quota| quota.min(self.fits)).collect();
        if anew {
            let elsewhere = |&wanted: &u32| if wanted == 0 { self.fits } else { 0 };
            self.visits = wanted.iter().map(elsewhere).collect();
        }
        let mut tasks = blocks.div_ceil(u64::from(self.worker.task_blocks));
        let at_once = wanted.iter().copied().max().unwrap_or(0);
        for level in 0..at_once {
            for (sm, &wanted) in wanted.iter().enumerate() {
                if level < wanted && present[sm] + self.places[sm] <= level && tasks > 0 {
                    self.places[sm] += 1;
                    tasks -= 1;
                }
            }
        }
    }

    /// The plan has changed: whether an instance is to be launched, now that `present`
    /// workers are there and `blocks` are left. Those who have to leave find out at
    /// the end of their task.
    pub(super) fn follow(&mut self, quotas: &[u32], present: &[u32], blocks: u64) -> bool {
        if blocks == 0 || self.coming {
            return false;
        }
        let there = |sm: usize| present[sm] + self.places[sm];
        let mut wanted = quotas.iter().map(|&quota| quota.min(self.fits)).enumerate();
        match self.worker.resize {
            Resize::InPlace => {
                self.coming = wanted.any(|(sm, wanted)| wanted > there(sm));
            }
            Resize::Relaunch { .. } => {
                let nobody = present.iter().all(|&present| present == 0);
                self.retreats = wanted.any(|(sm, wanted)| wanted != there(sm));
                if self.retreats {
                    self.places.fill(0);
                    self.visits.fill(0);
                }
                self.coming = self.retreats && nobody && quotas.iter().any(|&quota| quota > 0);
            }
        }
        self.coming
    }

    /// All that had to leave have: whether the kernel is launched anew.
    pub(super) fn is_gone(&mut self, resident: u64, blocks: u64, shared: bool) -> bool {
        let gone = self.retreats && resident == 0 && blocks > 0 && shared && !self.coming;
        self.coming |= gone;
        gone
    }

    /// Whether a worker who asks for a task leaves instead, where the plan wants
    /// `quota`. One who has come while the others retreat takes one task first.
    pub(super) fn sends_away(&self, duty: &Duty, quota: u32) -> bool {
        match self.worker.resize {
            Resize::InPlace => duty.index >= quota,
            Resize::Relaunch { .. } => self.retreats && duty.tasks > 0,
        }
    }

    /// Blocks of one task where `left` are left.
    pub(super) fn task(&self, left: u64) -> u64 {
        to_u64(self.worker.task_blocks).min(left)
    }
}
