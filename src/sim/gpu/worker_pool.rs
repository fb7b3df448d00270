//! The workers of one launch: how many may come where, and who is to leave.

use std::sync::Arc;

use gpumodel_core::contract::Resize;
use gpumodel_core::units::{Cycle, to_u64};

use crate::gpu::worker::Worker;
use crate::sm::Duty;

/// Workers of a launch on one SM at most: more than any GPU has CTA slots.
const MOST: u32 = 64;

/// The workers of one launch.
#[derive(Clone, Debug)]
pub(crate) struct WorkerPool {
    pub(crate) worker: Arc<Worker>,
    /// Workers that one SM holds.
    fits: u32,
    /// By SM: places for workers that launched instances have and nobody has taken.
    places: Vec<u32>,
    /// The same of CTAs that will find that the SM is not theirs.
    visits: Vec<u32>,
    /// By SM: the numbers of the workers there who stay, a bit each.
    stays: Vec<u64>,
    /// By SM: workers that the last instance was to have.
    last: Vec<u32>,
    /// All are to leave, for a launch on other SMs.
    retreats: bool,
    /// When an instance comes that is on its way.
    pub(crate) coming: Option<Cycle>,
    /// Blocks of tasks that workers have not done yet.
    pub(crate) out: u64,
}

impl WorkerPool {
    /// Nobody yet, on `sms` SMs that hold `fits` workers each.
    pub(crate) fn new(worker: Arc<Worker>, fits: u32, sms: usize) -> Self {
        let (fits, none) = (fits.min(MOST), vec![0; sms]);
        Self {
            worker,
            fits,
            places: none.clone(),
            visits: none.clone(),
            stays: vec![0; sms],
            last: none,
            retreats: false,
            coming: None,
            out: 0,
        }
    }

    /// Whether somebody may come to an SM.
    pub(crate) fn may_come(&self, sm: usize) -> bool {
        self.places[sm] > 0 || self.visits[sm] > 0
    }

    /// Whether somebody may come to any SM.
    pub(crate) fn waits(&self) -> bool {
        (0..self.places.len()).any(|sm| self.may_come(sm))
    }

    /// Somebody who works is still to come.
    pub(crate) fn expects(&self) -> bool {
        self.places.iter().any(|&places| places > 0)
    }

    /// Somebody comes to an SM of which the plan wants `quota` workers: his number there,
    /// the lowest that is free; `None` when he only finds out that he is not wanted.
    pub(crate) fn take_place(&mut self, sm: usize, quota: u32) -> Option<u32> {
        if self.visits[sm] > 0 {
            self.visits[sm] -= 1;
            return None;
        }
        self.places[sm] -= 1;
        let number = self.stays[sm].trailing_ones();
        let wanted = self.worker.resize != Resize::InPlace || number < quota;
        if wanted {
            self.stays[sm] |= 1 << number;
        }
        wanted.then_some(number)
    }

    /// The worker with this number leaves an SM.
    pub(crate) fn goes(&mut self, sm: usize, number: u32) {
        self.stays[sm] &= !(1 << number);
    }

    /// Workers on an SM who stay where the plan wants `wanted`, and places for more:
    /// whose number is not below that leaves at the end of his task.
    fn there(&self, sm: usize, wanted: u32) -> u32 {
        let wanted = 1_u64.checked_shl(wanted).map_or(u64::MAX, |bit| bit - 1);
        (self.stays[sm] & wanted).count_ones() + self.places[sm]
    }

    /// Nobody comes any more.
    pub(crate) fn close(&mut self) {
        self.places.fill(0);
        self.visits.fill(0);
        self.stays.fill(0);
        self.last.fill(0);
        self.retreats = false;
        self.coming = None;
    }

    /// An instance with workers for all that the quotas allow, beside those who stay,
    /// but for no more than `blocks` left blocks make tasks.
    pub(crate) fn launch(&mut self, quotas: &[u32], blocks: u64) {
        self.coming = None;
        self.retreats = false;
        let anew = self.worker.resize != Resize::InPlace;
        let wanted: Vec<u32> = quotas.iter().map(|&quota| quota.min(self.fits)).collect();
        if anew {
            self.last.clone_from(&wanted);
            let presumed_l2_hits = |&wanted: &u32| if wanted == 0 { self.fits } else { 0 };
            self.visits = wanted.iter().map(presumed_l2_hits).collect();
        }
        let mut tasks = blocks.div_ceil(u64::from(self.worker.task_blocks));
        let at_once = wanted.iter().copied().max().unwrap_or(0);
        for level in 0..at_once {
            for (sm, &wanted) in wanted.iter().enumerate() {
                if level < wanted && self.there(sm, wanted) <= level && tasks > 0 {
                    self.places[sm] += 1;
                    tasks -= 1;
                }
            }
        }
    }

    /// The plan has changed: whether an instance is to be launched, now that so many
    /// workers are `resident` and `blocks` are left. Those who have to leave find out at
    /// the end of their task.
    pub(crate) fn follow(&mut self, quotas: &[u32], resident: u64, blocks: u64) -> bool {
        if blocks == 0 || self.coming.is_some() {
            return false;
        }
        let mut wanted = quotas.iter().map(|&quota| quota.min(self.fits)).enumerate();
        match self.worker.resize {
            Resize::InPlace => wanted.any(|(sm, wanted)| wanted > self.there(sm, wanted)),
            Resize::Relaunch { .. } => {
                self.retreats |= wanted.any(|(sm, wanted)| wanted != self.last[sm]);
                if self.retreats {
                    self.places.fill(0);
                    self.visits.fill(0);
                }
                self.retreats && resident == 0 && quotas.iter().any(|&quota| quota > 0)
            }
        }
    }

    /// All that had to leave have: whether the kernel is launched anew.
    pub(crate) fn is_gone(&self, resident: u64, blocks: u64, shared: bool) -> bool {
        let waits = self.coming.is_none() && blocks > 0 && shared;
        self.retreats && resident == 0 && waits
    }

    /// Whether a worker who asks for a task leaves instead, where the plan wants
    /// `quota`. One who has come while the others retreat takes one task first.
    pub(crate) fn sends_away(&self, duty: &Duty, quota: u32) -> bool {
        match self.worker.resize {
            Resize::InPlace => duty.number >= quota,
            Resize::Relaunch { .. } => self.retreats && duty.tasks > 0,
        }
    }

    /// Blocks of one task where `left` are left.
    pub(crate) fn task(&self, left: u64) -> u64 {
        to_u64(self.worker.task_blocks).min(left)
    }
}
