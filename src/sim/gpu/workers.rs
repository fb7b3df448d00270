//! Launches that run as workers (persistent CTAs): their added code, how many may come
//! where, which task each gets, and which of them leave.
//!
//! A worker's fate is decided when the barrier behind its access to the queue opens:
//! what the queue and the flag hold by then is what it has read. In the code the flag
//! is read one access to the queue earlier.

use std::sync::Arc;

use gpumodel_core::contract::{Resize, Word};
use gpumodel_core::units::{Cycle, to_u64};

use crate::config::Machine;
use crate::gpu::event_queue::{Event, EventQueue};
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
    kernel: u32,
    /// Cycles until a further instance comes.
    instance_cycles: Cycle,
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
    coming: Option<Cycle>,
    /// Blocks of tasks that workers have not done yet.
    pub(crate) out: u64,
}

impl WorkerPool {
    /// The empty pool of launch `kernel` on a machine whose SMs hold `fits` workers each.
    pub(crate) fn new(worker: Arc<Worker>, kernel: u32, fits: u32, machine: &Machine) -> Self {
        let sms = usize::from(machine.dispatch.sms);
        let (fits, none) = (fits.min(MAX_PER_SM), vec![0; sms]);
        let instance_cycles = match worker.resize {
            Resize::InPlace => machine.dispatch.kernel_launch_cycles,
            Resize::Relaunch { cycles } => cycles,
        };
        Self {
            worker,
            kernel,
            instance_cycles,
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

    /// Cycles that an application takes before it makes the launch, its first one or a later one.
    pub(crate) fn call_cycles(&self, first: bool) -> Cycle {
        let compile = if first { self.worker.compile_cycles } else { 0 };
        self.worker.call_cycles + compile
    }

    /// Whether a further instance comes in this cycle.
    pub(crate) fn comes(&self, now: Cycle) -> bool {
        self.coming == Some(now)
    }

    /// Calls for a further instance.
    fn call_instance(&mut self, queue: &mut EventQueue<Event>) {
        let at = queue.now() + self.instance_cycles;
        self.coming = Some(at);
        queue.schedule(at, Event::Instance { kernel: self.kernel });
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
    /// than the `blocks` left make tasks. The host has written its words: they lie in memory,
    /// at the first address and of the length that it returns.
    pub(crate) fn launch(&mut self, quotas: &[u32], blocks: u64) -> (u64, u64) {
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
        words(self.kernel)
    }

    /// The plan has changed while `resident` workers and `blocks` blocks are left: calls for a
    /// further instance where one is needed. Workers that have to leave find out at the end of
    /// their task.
    pub(crate) fn follow(
        &mut self,
        quotas: &[u32],
        (resident, blocks): (u64, u64),
        queue: &mut EventQueue<Event>,
    ) {
        if blocks > 0 && self.coming.is_none() && self.needs_instance(quotas, resident) {
            self.call_instance(queue);
        }
    }

    /// Whether the quotas of a plan that has come into force ask for an instance.
    fn needs_instance(&mut self, quotas: &[u32], resident: u64) -> bool {
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

    /// Calls for the instance for which all workers that had to leave have left.
    pub(crate) fn note_gone(
        &mut self,
        quotas: &[u32],
        (resident, blocks): (u64, u64),
        queue: &mut EventQueue<Event>,
    ) {
        let shared = quotas.iter().any(|&quota| quota > 0);
        let waits = self.coming.is_none() && blocks > 0 && shared;
        if self.retreats && resident == 0 && waits {
            self.call_instance(queue);
        }
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
