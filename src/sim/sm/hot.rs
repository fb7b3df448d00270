//! Hot spots: what is counted per instruction of each launch, where that is wanted, and what a
//! warp has lost, charged to the instruction that it was lost at.
//!
//! A warp that waits stands at one instruction: the load whose result it needs, the memory
//! instruction that the full load/store queue does not take, the barrier, fence or wait for
//! asynchronous copies that it has issued, the instruction whose line of code is missing, the
//! last memory instruction of its path while its accesses end, or the last one of its path.
//! What an interval loses while its instructions issue is divided among them: results that are
//! not ready and empty instruction buffers in proportion to the cycles that each instruction
//! waits for these alone, units and issue slots in proportion to one and the cycles for which
//! its unit's port holds it back.

use crate::counters::{CacheCounts, Cause, StallStack};
use crate::gpu::shared_state::SharedState;
use crate::interval::{Gaps, Profile, SlotId, Step};
use crate::sm::scheduler::stall_accounting::add;
use crate::sm::warp::{Blocked, Warp};
use gpumodel_core::units::to_usize;

/// What one static instruction of a launch has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct InstructionCounts {
    /// Slot-cycles that were lost at it, by cause; the sums over all instructions are those of
    /// [`KernelCounts::stalls`](crate::KernelCounts::stalls), issued and idle ones left out.
    pub stalls: StallStack,
    /// Times that a warp issued it with active lanes and addresses.
    pub requests: u64,
    /// Sectors of 32 bytes that these asked for; of shared memory none.
    pub sectors: u64,
    /// Its look-ups in the L1, in sectors.
    pub l1: CacheCounts,
    /// Passes over the banks of shared memory beyond those that its distinct words need.
    pub bank_conflict_cycles: u64,
}

/// The counts of all instructions.
#[derive(Debug, Default)]
pub(crate) struct HotSpots {
    /// By launch and instruction; empty before the first count.
    launches: Vec<Vec<InstructionCounts>>,
    /// By SM and operation in flight: its instruction.
    in_flight: Vec<Vec<u32>>,
}

impl HotSpots {
    /// No counts of `launches` launches on `sms` SMs.
    pub(crate) fn new(launches: usize, sms: usize) -> Self {
        Self { launches: vec![Vec::new(); launches], in_flight: vec![Vec::new(); sms] }
    }

    /// The counts of a launch whose code has so many instructions.
    pub(crate) fn rows(&mut self, kernel: u32, instructions: usize) -> &mut [InstructionCounts] {
        let rows = &mut self.launches[to_usize(kernel)];
        rows.resize(instructions, InstructionCounts::default());
        rows
    }

    /// An operation of an SM begins, for an instruction.
    pub(crate) fn begin(&mut self, sm: u16, operation: u32, instruction: u32) {
        let operations = &mut self.in_flight[usize::from(sm)];
        let place = to_usize(operation);
        if operations.len() <= place {
            operations.resize(place + 1, 0);
        }
        operations[place] = instruction;
    }

    /// Counts a look-up of an operation in the L1.
    #[cold]
    pub(crate) fn count_l1(
        &mut self,
        (sm, kernel, operation): (u16, u32, u32),
        counted: &CacheCounts,
        sectors: u8,
    ) {
        let instruction = self.in_flight[usize::from(sm)][to_usize(operation)];
        self.launches[to_usize(kernel)][to_usize(instruction)].l1.add(counted, sectors);
    }

    /// The counts by launch and instruction.
    pub(crate) fn into_launches(self) -> Vec<Vec<InstructionCounts>> {
        self.launches
    }
}

/// Instructions of a warp's interval that follow each other in a stretch.
#[derive(Clone, Copy, Debug)]
struct LoggedStep {
    stretch: u32,
    first: u32,
    count: u32,
    /// How often the interval has them.
    times: u32,
}

impl LoggedStep {
    /// Each instruction with the gaps before it and how often the interval has it.
    fn instructions(self, profile: &Profile) -> impl Iterator<Item = (usize, Gaps, f64)> {
        let one = move |instruction| {
            let gaps = profile.gaps_before(self.stretch, instruction);
            (to_usize(instruction), gaps, f64::from(self.times))
        };
        (self.first..self.first + self.count).map(one)
    }
}

/// What a warp issues.
#[derive(Clone, Debug, Default)]
pub(super) struct IssueLog {
    /// Its interval.
    steps: Vec<LoggedStep>,
    /// Its last instruction so far.
    last: Option<u32>,
    /// Its last memory instruction so far.
    last_access: Option<u32>,
    /// By load slot: the load that has it.
    loads: Vec<u32>,
}

impl IssueLog {
    /// A new interval begins.
    pub(super) fn begin(&mut self) {
        self.steps.clear();
    }

    /// The interval has this step of a stretch next.
    pub(super) fn add(&mut self, stretch: u32, step: &Step) {
        let (first, count) = (step.instruction, step.slots);
        self.steps.push(LoggedStep { stretch, first, count, times: 1 });
        self.last = (first + count).checked_sub(1);
    }

    /// Steps of the interval.
    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// The interval has its steps from `place` on `times` more times.
    pub(super) fn repeat(&mut self, place: usize, times: u32) {
        for step in &mut self.steps[place..] {
            step.times += step.times * times;
        }
    }

    /// The last instruction so far.
    pub(super) fn last(&self) -> Option<u32> {
        self.last
    }

    /// The last memory instruction so far.
    pub(super) fn last_access(&self) -> Option<u32> {
        self.last_access
    }

    /// The load that has a slot.
    pub(super) fn load_of(&self, slot: SlotId) -> Option<u32> {
        self.loads.get(usize::from(slot.0)).copied()
    }

    /// A memory instruction issues, for a load slot where it is a load.
    pub(super) fn access(&mut self, instruction: u32, slot: Option<SlotId>) {
        self.last_access = Some(instruction);
        let Some(slot) = slot else { return };
        let place = usize::from(slot.0);
        if self.loads.len() <= place {
            self.loads.resize(place + 1, 0);
        }
        self.loads[place] = instruction;
    }

    /// Divides what the interval has lost among its instructions.
    fn divide(&self, lost: &StallStack, profile: &Profile, rows: &mut [InstructionCounts]) {
        let mut whole = Weights::default();
        let steps = || self.steps.iter().flat_map(|step| step.instructions(profile));
        for (_, gaps, times) in steps() {
            add(&mut whole.0, &Weights::of(gaps, times).0);
        }
        for (instruction, gaps, times) in steps() {
            let own = Weights::of(gaps, times);
            for ((sum, &lost), share) in
                rows[instruction].stalls.iter_mut().zip(lost).zip(own.over(&whole))
            {
                *sum += lost * share;
            }
        }
    }
}

/// By cause, what an instruction's part of it is proportional to; that of [`Cause::Issued`] is
/// how often the instruction issues.
#[derive(Debug, Default)]
struct Weights(StallStack);

impl Weights {
    fn of(gaps: Gaps, times: f64) -> Self {
        let mut weights = [times; Cause::ALL.len()];
        weights[Cause::InstructionBufferEmpty as usize] = times * f64::from(gaps.fetch);
        weights[Cause::ShortRaw as usize] = times * f64::from(gaps.registers);
        weights[Cause::ExecutionResource as usize] = times * (1.0 + f64::from(gaps.units));
        Self(weights)
    }

    /// Its shares of `whole`; where no instruction has a cause, those of how often it issues.
    fn over(&self, whole: &Self) -> StallStack {
        let issues = Cause::Issued as usize;
        std::array::from_fn(|cause| {
            let cause = if whole.0[cause] > 0.0 { cause } else { issues };
            self.0[cause] / whole.0[cause]
        })
    }
}

/// Charges what a warp has lost to the instruction at which it stands, or, while it issues, to
/// those of its interval.
#[cold]
pub(super) fn charge(warp: &Warp, lost: &StallStack, shared_state: &mut SharedState) {
    let Some((rows, profile)) = shared_state.hot_rows(warp.kernel) else { return };
    if warp.blocked != Blocked::No {
        if let Some(instruction) = warp.stands_at(profile) {
            add(&mut rows[to_usize(instruction)].stalls, lost);
        }
    } else if let Some(log) = &warp.log {
        log.divide(lost, profile, rows);
    }
}
