//! Launches that run as workers (persistent CTAs): their added code, how many may come
//! where, which task each gets, and which of them leave.
//!
//! A worker's fate is decided when the barrier behind its access to the queue opens:
//! what the queue and the flag hold by then is what it has read. In the code the flag
//! is read one access to the queue earlier.

use std::sync::Arc;

use gpumodel_core::contract::{Resize, Wake, WakeOn, Word};
use gpumodel_core::units::{Cycle, KernelId, to_u64, to_usize};

use crate::gpu::Gpu;
use crate::gpu::error::MachineError;
use crate::gpu::event_queue::Event;
use crate::mmu::address_space;
use crate::sm::Duty;

/// The immediate of the barrier at which a worker waits for its task: no trace has it.
pub const TASK_BARRIER: i64 = i64::MIN;

/// One warp's segment of a piece of added code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddedSegment {
    /// Index into [`gpumodel_core::isa::Code::segments`].
    pub segment: u32,
    /// Its first instruction's place in [`Worker::lines`].
    pub line: u32,
}

/// What the first warp runs and what each of the others does; `None`: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddedSegments {
    /// The first warp's.
    pub leader: Option<AddedSegment>,
    /// That of the others.
    pub others: Option<AddedSegment>,
}

impl AddedSegments {
    /// The piece of a warp.
    #[must_use]
    pub fn of(&self, leader: bool) -> Option<AddedSegment> {
        if leader { self.leader } else { self.others }
    }
}

/// One added instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Active lanes.
    pub mask: u32,
    /// The word that it touches.
    pub word: Option<Word>,
}

/// How CTAs of a launch are workers: its program holds the kernel's code and behind
/// it the added one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Blocks of a task, at least 1.
    pub task_blocks: u32,
    /// How workers follow the plan.
    pub resize: Resize,
    /// Before an application's first launch.
    pub compile_cycles: Cycle,
    /// Before each launch.
    pub call_cycles: Cycle,
    /// The first added segment.
    pub first_segment: u32,
    /// When it comes.
    pub arrive: AddedSegments,
    /// For each task; all warps meet at [`TASK_BARRIER`] within.
    pub task: AddedSegments,
    /// For each block.
    pub block: Option<AddedSegment>,
    /// Before it leaves.
    pub leave: AddedSegments,
    /// The added instructions in their order.
    pub lines: Vec<Line>,
}

/// Where the words of launches lie in an application's addresses: above all user
/// memory, below saved state.
const WORDS_BASE: u64 = 0xd << 44;

/// Bytes from one launch's words to the next one's: the allocation unit of the
/// counters, the flag and the progress is 256 bytes.
const LAUNCH_BYTES: u64 = 4096;

/// Bytes of the queue's word and the counters, one for each SM.
const COUNTERS_BYTES: u64 = 2048;

/// The first byte of a launch's words, and their length.
pub(crate) fn words(kernel: u32) -> (u64, u64) {
    (WORDS_BASE + u64::from(kernel) * LAUNCH_BYTES, LAUNCH_BYTES)
}

/// Where a word of launch `kernel` lies; of the counters, that of `sm`.
pub(crate) fn address(kernel: u32, sm: u16, word: Word) -> u64 {
    words(kernel).0
        + match word {
            Word::Queue => 0,
            Word::Workers => 4 * (1 + u64::from(sm)) % COUNTERS_BYTES,
            Word::Flag => COUNTERS_BYTES,
            Word::Progress => COUNTERS_BYTES + 256,
        }
}

/// Workers of a launch on one SM at most: more than any GPU has CTA slots.
const MAX_PER_SM: u32 = 64;

/// The workers of one launch.
#[derive(Clone, Debug)]
pub(crate) struct WorkerPool {
    pub(crate) worker: Arc<Worker>,
    /// Workers that one SM holds.
    fits: u32,
    /// By SM: places of launched instances that no worker has taken.
    places: Vec<u32>,
    /// By SM: CTAs of launched instances that will find they are not wanted there.
    visits: Vec<u32>,
    /// By SM: the numbers of the workers that stay there, a bit each.
    stays: Vec<u64>,
    /// By SM: workers that the last instance was to have.
    last: Vec<u32>,
    /// All are to leave, for a launch on other SMs.
    retreats: bool,
    /// When the next instance comes, if one does.
    pub(crate) coming: Option<Cycle>,
    /// Blocks of tasks that workers have not done yet.
    pub(crate) out: u64,
}

impl WorkerPool {
    /// An empty pool on `sms` SMs that hold `fits` workers each.
    pub(crate) fn new(worker: Arc<Worker>, fits: u32, sms: usize) -> Self {
        let (fits, none) = (fits.min(MAX_PER_SM), vec![0; sms]);
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

    /// Whether a worker may come to an SM.
    pub(crate) fn may_come(&self, sm: usize) -> bool {
        self.places[sm] > 0 || self.visits[sm] > 0
    }

    /// Whether a worker may come to any SM.
    pub(crate) fn waits(&self) -> bool {
        (0..self.places.len()).any(|sm| self.may_come(sm))
    }

    /// Whether a worker that takes tasks is still to come.
    pub(crate) fn expects(&self) -> bool {
        self.places.iter().any(|&places| places > 0)
    }

    /// A worker comes to an SM for which the plan wants `quota`: its number there, the
    /// lowest free one; `None` when it will find that it is not wanted.
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

    /// Workers that stay on an SM for which the plan wants `wanted`, and places for more:
    /// a worker whose number is not below that leaves at the end of its task.
    fn staying(&self, sm: usize, wanted: u32) -> u32 {
        let wanted = 1_u64.checked_shl(wanted).map_or(u64::MAX, |bit| bit - 1);
        (self.stays[sm] & wanted).count_ones() + self.places[sm]
    }

    /// No worker comes any more.
    pub(crate) fn close(&mut self) {
        self.places.fill(0);
        self.visits.fill(0);
        self.stays.fill(0);
        self.last.fill(0);
        self.retreats = false;
        self.coming = None;
    }

    /// Launches an instance: workers up to the quotas, counting those that stay, but no more
    /// than the `blocks` left make tasks.
    pub(crate) fn launch(&mut self, quotas: &[u32], blocks: u64) {
        self.coming = None;
        self.retreats = false;
        let wanted: Vec<u32> = quotas.iter().map(|&quota| quota.min(self.fits)).collect();
        if self.worker.resize != Resize::InPlace {
            self.last.clone_from(&wanted);
            let unwanted = |&wanted: &u32| if wanted == 0 { self.fits } else { 0 };
            self.visits = wanted.iter().map(unwanted).collect();
        }
        let mut tasks = blocks.div_ceil(u64::from(self.worker.task_blocks));
        let at_once = wanted.iter().copied().max().unwrap_or(0);
        for level in 0..at_once {
            for (sm, &wanted) in wanted.iter().enumerate() {
                if level < wanted && self.staying(sm, wanted) <= level && tasks > 0 {
                    self.places[sm] += 1;
                    tasks -= 1;
                }
            }
        }
    }

    /// The plan has changed: whether an instance is to be launched while `resident` workers
    /// and `blocks` blocks are left. Workers that have to leave find out at the end of
    /// their task.
    pub(crate) fn follow(&mut self, quotas: &[u32], resident: u64, blocks: u64) -> bool {
        if blocks == 0 || self.coming.is_some() {
            return false;
        }
        let mut wanted = quotas.iter().map(|&quota| quota.min(self.fits)).enumerate();
        match self.worker.resize {
            Resize::InPlace => wanted.any(|(sm, wanted)| wanted > self.staying(sm, wanted)),
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

    /// Whether the kernel is launched again: all that had to leave have left.
    pub(crate) fn is_gone(&self, resident: u64, blocks: u64, shared: bool) -> bool {
        let waits = self.coming.is_none() && blocks > 0 && shared;
        self.retreats && resident == 0 && waits
    }

    /// Whether a worker that asks for a task leaves instead, where the plan wants `quota`.
    /// One that has come while the others retreat takes one task first.
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

impl Gpu<'_> {
    /// Cycles that an application takes before it launches `kernel`, its first one or
    /// a later one.
    pub(crate) fn launch_call_cycles(&self, kernel: u32, first: bool) -> Cycle {
        let worker_pool = self.hardware.dispatcher.grids[to_usize(kernel)].worker_pool.as_ref();
        worker_pool.map_or(0, |worker_pool| {
            let compile = if first { worker_pool.worker.compile_cycles } else { 0 };
            worker_pool.worker.call_cycles + compile
        })
    }

    /// Whether the application of a launch that has ended waits for a plan before it launches
    /// again: the scheme answers to the launch's end.
    pub(crate) fn asks_first(&self, kernel: u32) -> bool {
        let asked = self.plan_control.wakes_on(&WakeOn::KernelEnd);
        asked && self.hardware.dispatcher.grids[to_usize(kernel)].worker_pool.is_some()
    }

    /// By SM: the workers of a launch that the plan wants.
    fn quotas(&self, kernel: u32) -> Vec<u32> {
        let app = self.hardware.dispatcher.grids[to_usize(kernel)].app;
        (0..self.hardware.sms.len()).map(|sm| self.plan_control.quota(app, sm)).collect()
    }

    /// Launches an instance of a launch that runs as workers. Its words are in memory: the
    /// host has written them.
    pub(crate) fn launch_workers(&mut self, kernel: u32) {
        let quotas = self.quotas(kernel);
        let grid = &mut self.hardware.dispatcher.grids[to_usize(kernel)];
        let left = grid.left();
        let Some(worker_pool) = &mut grid.worker_pool else { return };
        worker_pool.launch(&quotas, left);
        if let Some(mmu) = &mut self.hardware.shared_state.mmu {
            let (first, bytes) = words(kernel);
            mmu.copy_in(first ^ address_space::tag(grid.app.0), bytes);
        }
    }

    /// A further instance of a launch may start its workers.
    pub(crate) fn restart_workers(&mut self, kernel: u32) {
        let now = self.now();
        let worker_pool = self.hardware.dispatcher.grids[to_usize(kernel)].worker_pool.as_ref();
        if worker_pool.is_none_or(|worker_pool| worker_pool.coming != Some(now)) {
            return;
        }
        self.launch_workers(kernel);
        if !self.hardware.dispatcher.active.contains(&kernel) {
            self.hardware.dispatcher.begin(kernel);
        }
        let app = self.hardware.dispatcher.grids[to_usize(kernel)].app;
        self.hardware.dispatcher.ask(app, self.now(), &mut self.hardware.shared_state);
        self.note_gone(kernel);
    }

    /// No worker comes to a launch any more.
    pub(crate) fn close_worker_pool(&mut self, kernel: u32) {
        if let Some(worker_pool) = &mut self.hardware.dispatcher.grids[to_usize(kernel)].worker_pool
        {
            worker_pool.close();
            self.hardware.dispatcher.active.retain(|&active| active != kernel);
        }
    }

    /// A new plan is in force: launches of further instances, or those on other SMs.
    pub(crate) fn follow_with_workers(&mut self) {
        for app in 0..self.apps.len() {
            for place in 0..self.apps[app].begun_launches.len() {
                let kernel = self.apps[app].begun_launches[place];
                let quotas = self.quotas(kernel);
                let grid = &mut self.hardware.dispatcher.grids[to_usize(kernel)];
                let (resident, left) = (grid.resident(), grid.left());
                let Some(worker_pool) = &mut grid.worker_pool else { continue };
                if worker_pool.follow(&quotas, resident, left) {
                    self.schedule_instance(kernel);
                }
            }
        }
    }

    fn schedule_instance(&mut self, kernel: u32) {
        let now = self.now();
        let Some(worker_pool) = &mut self.hardware.dispatcher.grids[to_usize(kernel)].worker_pool
        else {
            return;
        };
        let latency = match worker_pool.worker.resize {
            Resize::InPlace => self.hardware.machine.dispatch.kernel_launch_cycles,
            Resize::Relaunch { cycles } => cycles,
        };
        let at = now + latency;
        worker_pool.coming = Some(at);
        self.hardware.shared_state.queue.schedule(at, Event::Instance { kernel });
    }

    /// Launches a kernel again whose workers have all left for that.
    pub(crate) fn note_gone(&mut self, kernel: u32) {
        let shared = self.quotas(kernel).iter().any(|&quota| quota > 0);
        let grid = &self.hardware.dispatcher.grids[to_usize(kernel)];
        let (resident, left) = (grid.resident(), grid.left());
        if grid
            .worker_pool
            .as_ref()
            .is_some_and(|worker_pool| worker_pool.is_gone(resident, left, shared))
        {
            self.schedule_instance(kernel);
        }
    }

    /// A worker has done its task: it gets another one or leaves.
    pub(crate) fn next_task(&mut self, sm: usize, kernel: u32, slot: usize) {
        let Some(duty) = self.hardware.sms[sm].duty(slot) else { return };
        let done = std::mem::take(&mut duty.blocks);
        let asks = *duty;
        let grid = &mut self.hardware.dispatcher.grids[to_usize(kernel)];
        let (app, left) = (grid.app, grid.left());
        let quota = self.plan_control.quota(app, sm);
        let Some(worker_pool) = &mut grid.worker_pool else { return };
        grid.retired += done;
        worker_pool.out -= done;
        self.hardware.shared_state.counts[to_usize(kernel)].ctas_retired += done;
        if left == 0 || worker_pool.sends_away(&asks, quota) {
            worker_pool.goes(sm, asks.number);
            return;
        }
        let blocks = worker_pool.task(left);
        worker_pool.out += blocks;
        let counts = &mut self.hardware.shared_state.counts[to_usize(kernel)];
        counts.tasks += 1;
        counts.ctas_started += blocks;
        if let Some(duty) = self.hardware.sms[sm].duty(slot) {
            duty.blocks = blocks;
            duty.tasks += 1;
        }
        if let Err(error) = self.hand_blocks(sm, kernel, slot, blocks) {
            self.failed = Some(error);
        }
        if left == blocks {
            self.plan_control.wake_on(&WakeOn::LastTaskStarted, Wake::LastTaskStarted(app));
        }
    }

    fn hand_blocks(
        &mut self,
        sm: usize,
        kernel: u32,
        slot: usize,
        blocks: u64,
    ) -> Result<(), MachineError> {
        for _ in 0..blocks {
            self.hardware.streams.clear();
            let ordinal = self.hardware.dispatcher.grids[to_usize(kernel)].next_cta();
            let streams = &mut self.hardware.streams;
            self.hardware
                .feed
                .open(KernelId(kernel), ordinal, streams)
                .map_err(MachineError::Feed)?;
            self.hardware.sms[sm].hand(slot, streams);
        }
        Ok(())
    }
}
