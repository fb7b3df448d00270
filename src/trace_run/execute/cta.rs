//! A CTA: its warps in turn, each until it waits, and its barriers.

use gpumodel_core::units::Dim3;
use gpumodel_trace::WarpRecord;

use super::buffer::Buffer;
use super::cluster::ClusterState;
use super::grid::Grid;
use super::lanes::Scope;
use super::warp::{Split, Wait, Warp};
use crate::RunError;

/// Instructions of a warp before the next one has its turn.
const TURN: u64 = 1 << 14;
/// How often waits for phases of barrier objects end early when nothing else can go on: kernels
/// may look elsewhere after that.
pub(super) const PATIENCE: u32 = 1 << 10;

/// Named barriers of a CTA.
pub(crate) const CTA_BARRIERS: usize = 16;

/// What has arrived at a barrier.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrived {
    /// Threads.
    pub(crate) threads: u32,
    /// Threads that it waits for; 0: all of the CTA that have not ended.
    pub(crate) expected: u32,
    /// Threads whose predicate holds.
    pub(crate) holding: u32,
    /// Threads that brought a predicate.
    pub(crate) asked: u32,
}

/// What the warps of a CTA share.
#[derive(Debug)]
pub(crate) struct CtaState {
    pub(crate) shared: Vec<u8>,
    pub(crate) barriers: [Arrived; CTA_BARRIERS],
    pub(crate) cluster: ClusterState,
    /// Its SM, as the kernel sees it.
    pub(crate) sm: u32,
    /// Where writes to global memory wait; none: they are done at once.
    pub(crate) buffer: Option<Buffer>,
}

/// A CTA.
pub(crate) struct Cta {
    /// Its number in the grid, x fastest.
    pub(crate) number: u64,
    pub(crate) position: Dim3,
    pub(crate) state: CtaState,
    pub(crate) warps: Vec<Warp>,
}

/// How a slice of a CTA ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slice {
    /// All its threads ended.
    Done,
    /// It may go on.
    More,
}

impl Cta {
    /// The CTA of that number.
    pub(crate) fn new(grid: &Grid<'_>, number: u64, recorded: bool) -> Self {
        let launch = grid.launch;
        let threads = u32::try_from(launch.block.count()).unwrap_or(u32::MAX);
        let warps = (0..threads.div_ceil(32)).map(|warp| {
            let first = warp * 32;
            let lanes = (threads - first).min(32);
            let alive = u32::MAX >> (32 - lanes);
            let memory = grid.spare();
            let threads = grid.threads[warp as usize];
            let mut warp = Warp::new(warp, alive, threads, grid.entry, memory);
            warp.local_bytes = grid.local_bytes;
            warp.record = recorded.then(WarpRecord::default);
            warp
        });
        let state = CtaState {
            shared: vec![0; usize::try_from(launch.shared_bytes).unwrap_or(0)],
            barriers: [Arrived::default(); CTA_BARRIERS],
            cluster: ClusterState { rank: grid.rank(number), ..ClusterState::default() },
            sm: grid.sm(number),
            buffer: None,
        };
        let position = launch.grid.position(number);
        Self { number, position, state, warps: warps.collect() }
    }

    /// Runs until about `budget` warp instructions are executed, or until it can only go on when
    /// other CTAs write what its warps spin on.
    ///
    /// # Errors
    /// When an instruction cannot be executed, or all warps wait for ever.
    pub(crate) fn run(&mut self, grid: &Grid<'_>, budget: u64) -> Result<Slice, RunError> {
        let (mut left, mut patience) = (budget, PATIENCE);
        loop {
            let written = self.written();
            let done = self.round(grid)?;
            left = left.saturating_sub(done);
            if self.warps.iter().all(|warp| warp.alive == 0) {
                return Ok(Slice::Done);
            }
            let released = self.state.release(&mut self.warps);
            let idle = self.warps.iter().all(|warp| warp.alive == 0 || warp.idle);
            let quiet = idle && !released && patience == PATIENCE;
            let spins = quiet && self.written() == written && self.spins();
            if left == 0 || spins || grid.in_cluster() && idle && !released && done > 0 {
                return Ok(Slice::More);
            }
            if done > 0 || released {
                continue;
            }
            let waits = |wait| self.warps.iter().any(|warp| warp.waits(wait));
            if waits(Wait::Cluster) || grid.in_cluster() && waits(Wait::Object) {
                return Ok(Slice::More);
            }
            if patience == 0 || !self.give_up() {
                return Err(self.stuck(grid, "the CTA"));
            }
            patience -= 1;
        }
    }

    /// One turn of each warp; returns the instructions that they did.
    fn round(&mut self, grid: &Grid<'_>) -> Result<u64, RunError> {
        let before = self.executed();
        for warp in self.warps.iter_mut().filter(|warp| warp.alive != 0) {
            let (cta, position) = (&mut self.state, self.position);
            Scope { warp, cta, grid, position, active: 0 }.run(TURN)?;
        }
        Ok(self.executed() - before)
    }

    /// Ends the time of all waits for phases of barrier objects; whether there are any.
    pub(super) fn give_up(&mut self) -> bool {
        let mut any = false;
        for warp in self.warps.iter_mut().filter(|warp| warp.waits(Wait::Object)) {
            warp.gives_up = true;
            any = true;
        }
        any
    }

    /// Warp instructions so far.
    pub(crate) fn executed(&self) -> u64 {
        self.warps.iter().map(|warp| warp.executed).sum()
    }

    /// Writes of its warps so far.
    fn written(&self) -> u64 {
        self.warps.iter().map(|warp| warp.spin.writes).sum()
    }

    /// Whether the last turn of a warp ended because it spins.
    fn spins(&self) -> bool {
        self.warps.iter().any(|warp| warp.alive != 0 && warp.spin.found)
    }

    /// The error of a CTA whose warps wait for ever, at a barrier of `whose`.
    pub(super) fn stuck(&self, grid: &Grid<'_>, whose: &str) -> RunError {
        let at = self.warps.iter().find_map(|warp| warp.splits.first()).map_or(0, |s| s.at);
        grid.fault(
            at,
            format!(
                "CTA {}: all warps wait, and none can go on; a barrier is not reached by all \
                 threads of {whose}, or nothing ends the phase of a barrier object",
                self.position
            ),
        )
    }
}

impl CtaState {
    /// Lanes of `warp` arrive at the barrier `number`.
    pub(crate) fn arrive(&mut self, number: u8, warp: &Warp, mask: u32, expected: u32) {
        let barrier = &mut self.barriers[usize::from(number) % CTA_BARRIERS];
        // Lanes that have ended count for a barrier of a number of threads.
        let ended = if expected > 0 && mask == warp.alive { 32 - mask.count_ones() } else { 0 };
        barrier.threads += mask.count_ones() + ended;
        barrier.expected = expected;
    }

    /// Whether the barrier is complete when so many threads of the CTA have not ended.
    fn complete(&self, number: usize, alive: u32) -> bool {
        let barrier = self.barriers[number];
        let expected = if barrier.expected == 0 { alive } else { barrier.expected };
        barrier.threads > 0 && barrier.threads >= expected
    }

    /// Releases the warps at complete barriers; whether there were any.
    pub(crate) fn release(&mut self, warps: &mut [Warp]) -> bool {
        let alive = warps.iter().map(|warp| warp.alive.count_ones()).sum();
        let mut released = false;
        for number in 0..CTA_BARRIERS {
            if !self.complete(number, alive) {
                continue;
            }
            let Arrived { holding, asked, .. } = std::mem::take(&mut self.barriers[number]);
            let reduced = [holding, u32::from(holding == asked), u32::from(holding > 0)];
            for warp in &mut *warps {
                warp.pass(number, reduced, asked > 0);
            }
            released = true;
        }
        released
    }
}

impl Warp {
    fn pass(&mut self, number: usize, reduced: [u32; 3], reduces: bool) {
        let waits = |split: &Split| matches!(split.wait, Wait::Cta(n) if usize::from(n) == number);
        if !self.splits.iter().any(waits) {
            return;
        }
        if reduces {
            self.reduced = reduced;
        }
        for split in self.splits.iter_mut().filter(|split| waits(split)) {
            split.wait = Wait::Ready;
        }
        self.merge();
    }
}
