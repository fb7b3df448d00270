//! The interval profile: what a warp does between memory events when it has the
//! SM for itself, found once per segment and incoming dependency state.
//!
//! A *stretch* begins at an instruction of a segment with a given dependency
//! state and ends at the segment's end or where the warp may have to wait for
//! something that only the event-driven side knows (an outstanding load, a
//! barrier, a fence, an asynchronous copy). Within it, *steps* end at each
//! instruction that carries addresses. Interval analysis in the line of
//! Eyerman et al. (TOCS'09), GPUMech (MICRO'14) and GCoM (ISCA'22); here the
//! intervals compete for issue slots in `sm`.
//!
//! Not modelled: dependencies through predicates, which traces do not list, but
//! for branches, which wait for the last comparison; barrier registers; results that a wait leaves in flight are taken as settled when the
//! warp really had to wait.

mod barrier_operands;
mod code;
mod decode;
mod image;
mod part;
mod state;
mod walk;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::config::Machine;
use gpumodel_core::isa::{Segment, Unit};
use gpumodel_core::units::{to_u32, to_usize};

use crate::gpu::feed::Program;
pub(crate) use barrier_operands::BarrierOperands;
pub(crate) use code::CodeLines;
pub(crate) use decode::Decoded;
pub use image::ProfileImage;
pub(crate) use state::{SlotId, StateId};
use state::{State, StateTable};
use walk::Walk;

/// Resources that an interval asks for: the execution units, then the operand banks.
pub(crate) const ASKED: usize = Unit::ALL.len() + 1;

/// The operand banks' place among them.
pub(crate) const OPERANDS: usize = ASKED - 1;

/// Cycles that an interval of instructions asks of each resource.
pub(crate) type Demand = [u16; ASKED];

/// Instructions by unit.
pub(crate) type Mix = [u16; Unit::ALL.len()];

/// Ends a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepEnd {
    /// The stretch ends here, or goes on with another step.
    Stretch,
    /// The last instruction of the step carries addresses; a load's registers
    /// wait on `slot`.
    Access {
        /// Index into the decoded instructions.
        instruction: u32,
        /// Where completion is noted; `None` when no register waits.
        slot: Option<SlotId>,
    },
}

/// An interval of instructions that issue without outside help.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Cycles that the interval takes alone, from the end of the one before.
    pub(crate) cycles: f32,
    /// Instructions, the one with addresses included.
    pub(crate) slots: u32,
    /// Index of the first of them; the others follow.
    pub(crate) instruction: u32,
    /// What it asks of the units.
    pub(crate) demand: Demand,
    /// Cycles among them in which nothing could issue.
    pub(crate) gaps: Gaps,
    /// Instructions by unit.
    pub(crate) mix: Mix,
    /// Instructions with an opcode that no table row knows.
    pub(crate) unknown: u32,
    /// Constant loads whose addresses the trace does not give.
    pub(crate) constants: u32,
    /// What ends it.
    pub(crate) end: StepEnd,
}

/// Cycles of an interval, alone, in which nothing could issue, by cause.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gaps {
    /// Branch and instruction buffer.
    pub(crate) fetch: u32,
    /// Results not ready.
    pub(crate) registers: u32,
    /// Issue port of a unit taken.
    pub(crate) units: u32,
}

/// What a warp meets at the end of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StretchEnd {
    /// The segment's end: the path goes on.
    Segment,
    /// The next instruction uses a load's register.
    Load(SlotId),
    /// A barrier was issued.
    Barrier(BarrierOperands),
    /// A fence was issued: all earlier accesses must be done.
    Fence,
    /// The asynchronous copies so far form a group.
    AsyncCommit,
    /// Waits until at most so many groups are pending.
    AsyncWait {
        /// Groups that may be pending; 0 where the trace does not tell.
        allowed: u32,
        /// The trace tells.
        told: bool,
    },
}

/// A run of steps and what follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    /// First step and their number, in [`Profile::steps`].
    pub(crate) first: u32,
    /// Number of steps.
    pub(crate) count: u32,
    /// What comes after the last step.
    pub(crate) end: StretchEnd,
    /// Offset in the segment at which the next stretch begins.
    pub(crate) offset: u32,
    /// Dependency state when the warp goes on at once.
    pub(crate) ready: StateId,
    /// Dependency state when it had to wait: results have settled meanwhile.
    pub(crate) settled: StateId,
}

/// The interval profile of one kernel's code on one machine.
#[derive(Debug)]
pub(crate) struct Profile {
    decoded: Vec<Decoded>,
    code: Arc<gpumodel_core::isa::Code>,
    lines: CodeLines,
    rules: Rules,
    states: StateTable,
    memo: FxHashMap<Key, u32>,
    stretches: Vec<Stretch>,
    /// By stretch: where it begins.
    keys: Vec<Key>,
    steps: Vec<Step>,
    /// Stretches that an image brought.
    known: usize,
}

/// Where a stretch begins: segment, offset in it, dependency state.
type Key = (u32, u32, StateId);

/// What of the machine the walk needs.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    issue_width: u32,
    branch_cycles: u32,
    register_banks: u32,
    register_bank_ports: u32,
    instruction_buffer: u32,
    refetch_cycles: u32,
}

impl Rules {
    fn new(machine: &Machine) -> Self {
        Self {
            issue_width: machine.sm.issue_width.max(1),
            branch_cycles: machine.sm.branch_cycles,
            register_banks: machine.sm.register_banks,
            register_bank_ports: machine.sm.register_bank_ports.max(1),
            instruction_buffer: machine.quirks.instruction_buffer,
            refetch_cycles: machine.quirks.refetch_cycles,
        }
    }
}

impl Profile {
    /// An empty profile; stretches are found as warps reach them. The code's
    /// lines are numbered from `first_line` on.
    pub(crate) fn new(machine: &Machine, program: &Program, first_line: u32) -> Self {
        let code = &program.code.instructions;
        Self {
            decoded: decode::decode(machine, program),
            code: Arc::clone(&program.code),
            lines: CodeLines::new(machine.fetch.as_ref(), code, first_line),
            rules: Rules::new(machine),
            states: StateTable::new(),
            memo: FxHashMap::default(),
            stretches: Vec::new(),
            keys: Vec::new(),
            steps: Vec::new(),
            known: 0,
        }
    }

    /// Where the code lies.
    pub(crate) fn lines(&self) -> &CodeLines {
        &self.lines
    }

    /// The state of a warp that has just started.
    pub(crate) fn fresh(&self) -> StateId {
        StateTable::FRESH
    }

    /// The decoded form of an instruction.
    pub(crate) fn decoded(&self, instruction: u32) -> &Decoded {
        &self.decoded[to_usize(instruction)]
    }

    /// A stretch by number.
    pub(crate) fn stretch(&self, number: u32) -> &Stretch {
        &self.stretches[to_usize(number)]
    }

    /// A step by number.
    pub(crate) fn step(&self, number: u32) -> &Step {
        &self.steps[to_usize(number)]
    }

    /// Instructions of a segment.
    pub(crate) fn length(&self, segment: u32) -> u32 {
        self.code.segments[to_usize(segment)].length
    }

    /// The stretch that begins at `offset` of `segment` in `state`.
    pub(crate) fn enter(&mut self, segment: u32, offset: u32, state: StateId) -> u32 {
        let key = (segment, offset, state);
        if let Some(&number) = self.memo.get(&key) {
            return number;
        }
        let number = self.walk(self.code.segments[to_usize(segment)], offset, state);
        self.memo.insert(key, number);
        self.keys.push(key);
        number
    }

    fn walk(&mut self, segment: Segment, offset: u32, state: StateId) -> u32 {
        let first = to_u32(self.steps.len());
        let begun = State::clone(self.states.get(state));
        let outcome =
            Walk::new(&self.rules, begun, &mut self.steps).run(&self.decoded, segment, offset);
        let stretch = Stretch {
            first,
            count: to_u32(self.steps.len()) - first,
            end: outcome.end,
            offset: outcome.offset,
            settled: self.states.intern(outcome.state.settled()),
            ready: self.states.intern(outcome.state),
        };
        self.stretches.push(stretch);
        to_u32(self.stretches.len() - 1)
    }
}
