//! The interval profile: what a warp does between memory events when it runs alone on the
//! SM, computed once per segment and incoming dependency state.
//!
//! A *stretch* begins at an instruction of a segment with a given dependency state. It ends
//! at the segment's end or where the warp may have to wait for the event-driven part (an
//! outstanding load, a barrier, a fence, an asynchronous copy). Within it, a *step* ends at
//! each instruction that carries addresses. Interval analysis follows Eyerman et al.
//! (TOCS'09), GPUMech (MICRO'14) and GCoM (ISCA'22); here the intervals compete for issue
//! slots in `sm`.
//!
//! Not modelled: dependencies through predicates, which traces do not list, except that
//! branches wait for the last comparison; barrier registers. After a real wait all results
//! but loads count as ready.

mod decode;
mod image;
mod reuse_cache;
mod state;
pub(crate) mod walk;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::config::{Machine, OperandReads};
use gpumodel_core::isa::{Effect, Segment, Unit};
use gpumodel_core::units::{to_u32, to_usize};

use crate::gpu::feed::Program;
pub(crate) use decode::{BarrierOperands, CodeLines, Decoded};
pub use image::ProfileImage;
use state::{Origin, Pending, State, StateTable};
pub(crate) use state::{SlotId, StateId};
use walk::Walk;

/// Resources that an interval occupies: the execution units, then the operand banks.
pub(crate) const RESOURCES: usize = Unit::ALL.len() + 1;

/// The index of the operand banks among them.
pub(crate) const OPERANDS: usize = RESOURCES - 1;

/// Cycles for which an interval occupies each resource.
pub(crate) type Demand = [u16; RESOURCES];

/// Instructions by unit.
pub(crate) type Mix = [u16; Unit::ALL.len()];

/// How a step ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepEnd {
    /// The stretch ends here, or goes on with another step.
    Stretch,
    /// The last instruction of the step carries addresses; a load's registers
    /// wait on `slot`.
    Access {
        /// Index into the decoded instructions.
        instruction: u32,
        /// The slot that its completion frees; `None` when no register waits.
        slot: Option<SlotId>,
    },
}

/// An interval of instructions that issue without waiting for memory events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Cycles of the interval for a warp alone, from the end of the one before.
    pub(crate) cycles: f32,
    /// How unevenly its stretch comes to the issue slot and the units, 0 to 1: the standard
    /// deviation over the mean of the cycles from each use to the next, at most 1 and weighted
    /// by what is asked of each.
    pub(crate) unevenness: f32,
    /// Resources that one of its instructions occupies for several cycles, one bit each: there,
    /// warps wait for each other even where one instruction issues at a time.
    pub(crate) lasting: u16,
    /// Cycles of the operand banks, among its [demand](Self::demand), that belong to instructions
    /// which occupy them for several.
    pub(crate) conflicts: u16,
    /// Instructions, the one with addresses included.
    pub(crate) slots: u32,
    /// Index of the first of them; the others follow.
    pub(crate) instruction: u32,
    /// Its use of the units.
    pub(crate) demand: Demand,
    /// Cycles among them in which nothing could issue.
    pub(crate) gaps: Gaps,
    /// Instructions by unit.
    pub(crate) mix: Mix,
    /// Instructions with an opcode that no table row knows.
    pub(crate) unknown: u32,
    /// Constant loads whose addresses the trace does not have.
    pub(crate) constants: u32,
    /// How it ends.
    pub(crate) end: StepEnd,
}

impl Step {
    /// Its instructions from `from` up to `to` with their share of everything, for a warp that
    /// reaches a missing line of code. The parts of a step add up to the step.
    pub(crate) fn part(&self, from: u32, to: u32) -> Self {
        if from == 0 && to == self.slots {
            return *self;
        }
        let up_to = |whole: u32, end: u32| {
            let share = u64::from(whole) * u64::from(end) / u64::from(self.slots);
            u32::try_from(share).expect("a part is no larger than the whole")
        };
        let share = |whole: u32| up_to(whole, to) - up_to(whole, from);
        let short = |whole: u16| {
            u16::try_from(share(u32::from(whole))).expect("a part is no larger than the whole")
        };
        let ratio = |end: u32| f64::from(end) / f64::from(self.slots);
        let cycles = f64::from(self.cycles) * (ratio(to) - ratio(from));
        #[allow(clippy::cast_possible_truncation, reason = "no larger than the whole")]
        let cycles = cycles as f32;
        let Gaps { fetch, registers, units } = self.gaps;
        Self {
            cycles,
            unevenness: self.unevenness,
            lasting: self.lasting,
            conflicts: short(self.conflicts),
            slots: to - from,
            instruction: self.instruction + from,
            demand: self.demand.map(short),
            gaps: Gaps { fetch: share(fetch), registers: share(registers), units: share(units) },
            mix: self.mix.map(short),
            unknown: share(self.unknown),
            constants: share(self.constants),
            end: if to == self.slots { self.end } else { StepEnd::Stretch },
        }
    }
}

/// Cycles of an interval for a warp alone in which nothing could issue, by cause.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gaps {
    /// Branch and instruction buffer.
    pub(crate) fetch: u32,
    /// Results not ready.
    pub(crate) registers: u32,
    /// Issue port of a unit busy.
    pub(crate) units: u32,
}

/// How a stretch ends.
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
    /// The warp wants this many registers per thread.
    Registers(u32),
    /// The next instruction uses a result of a unit of variable latency, which is ready after so
    /// many cycles: where warps leave the active ones then.
    Result(u32),
    /// A wait at a barrier object was issued; the last access names it.
    ObjectWait,
    /// The asynchronous copies so far become a group.
    AsyncCommit,
    /// The warp waits until at most so many groups are pending.
    AsyncWait {
        /// Groups that may be pending; 0 where the trace does not have the number.
        allowed: u32,
        /// The trace has the number.
        known: bool,
    },
}

/// A run of steps and what follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    /// The first step.
    pub(crate) first: u32,
    /// Number of steps.
    pub(crate) count: u32,
    /// How it ends.
    pub(crate) end: StretchEnd,
    /// Offset in the segment at which the next stretch begins.
    pub(crate) offset: u32,
    /// Dependency state of a warp that goes on at once.
    pub(crate) ready: StateId,
    /// Dependency state of a warp that had to wait: only loads are in flight, or after a wait of
    /// known length what takes longer.
    pub(crate) settled: StateId,
}

/// The interval profile of one kernel's code on one machine.
#[derive(Debug)]
pub(crate) struct Profile {
    decoded: Vec<Decoded>,
    /// Some are multiplies of warp groups, which do not hold their warp up.
    queues_multiplies: bool,
    code: Arc<gpumodel_core::isa::Code>,
    lines: CodeLines,
    rules: Rules,
    states: StateTable,
    memo: FxHashMap<Key, u32>,
    stretches: Vec<Stretch>,
    /// By stretch: where it begins.
    keys: Vec<Key>,
    steps: Vec<Step>,
    /// Stretches from an image.
    loaded: usize,
    /// What the steps leave out, where it is wanted.
    gaps: Option<InstructionGaps>,
}

/// The gaps before each instruction of every stretch.
#[derive(Debug, Default)]
struct InstructionGaps {
    all: Vec<Gaps>,
    /// By stretch: where its instructions begin in `all`.
    first: Vec<u32>,
}

/// Where a stretch begins: segment, offset in it, dependency state.
type Key = (u32, u32, StateId);

/// The parameters of the machine for the walk.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    issue_width: u32,
    branch_cycles: u32,
    register_banks: u32,
    register_bank_ports: u32,
    operand_reads: OperandReads,
    instruction_buffer: u32,
    refetch_cycles: u32,
    /// See [`crate::config::SmSpec::leaves_at_any_wait`].
    ends_at_results: bool,
    forwarding: Forwarding,
}

/// By how much results of fixed latency come later to units that they do not come from.
#[derive(Clone, Copy, Debug)]
struct Forwarding {
    cross_unit: u32,
    sfu: u32,
    memory: u32,
}

impl Forwarding {
    /// True where some unit has a result later than another.
    fn differs(self) -> bool {
        self.cross_unit.max(self.sfu).max(self.memory) > 0
    }

    /// The latest of these times after the unit that the result comes from.
    fn latest(self, from: Origin) -> u32 {
        let forwarded = matches!(from, Origin::Int | Origin::Fp32);
        if forwarded { self.cross_unit.max(self.sfu).max(self.memory) } else { 0 }
    }

    /// The cycle from which on a unit has a result.
    fn ready(self, result: &Pending, unit: Unit) -> u32 {
        let later = match (result.from, unit) {
            (Origin::Int, Unit::Fp32) | (Origin::Fp32, Unit::Int) => self.cross_unit,
            (Origin::Int | Origin::Fp32, Unit::Sfu) => self.sfu,
            (Origin::Int | Origin::Fp32, Unit::Memory | Unit::Texture) => self.memory,
            _ => 0,
        };
        (result.gone + later).saturating_sub(self.latest(result.from))
    }
}

impl Rules {
    fn new(machine: &Machine) -> Self {
        Self {
            issue_width: machine.sm.issue_width.max(1),
            branch_cycles: machine.sm.branch_cycles,
            register_banks: machine.sm.register_banks,
            register_bank_ports: machine.sm.register_bank_ports.max(1),
            operand_reads: machine.sm.operand_reads,
            instruction_buffer: machine.quirks.instruction_buffer,
            refetch_cycles: machine.quirks.refetch_cycles,
            ends_at_results: machine.sm.leaves_at_any_wait,
            forwarding: Forwarding {
                cross_unit: machine.sm.cross_unit_cycles,
                sfu: machine.sm.sfu_operand_cycles,
                memory: machine.sm.memory_operand_cycles,
            },
        }
    }
}

impl Profile {
    /// An empty profile; stretches are computed as warps reach them. The code's lines are
    /// numbered from `first_line` on.
    pub(crate) fn new(machine: &Machine, program: &Program, first_line: u32) -> Self {
        let code = &program.code.instructions;
        let decoded = decode::decode(machine, program);
        Self {
            queues_multiplies: decoded.iter().any(|one| one.effect == Effect::MatrixGroup),
            decoded,
            code: Arc::clone(&program.code),
            lines: CodeLines::new(machine.fetch.as_ref(), code, first_line),
            rules: Rules::new(machine),
            states: StateTable::new(),
            memo: FxHashMap::default(),
            stretches: Vec::new(),
            keys: Vec::new(),
            steps: Vec::new(),
            loaded: 0,
            gaps: None,
        }
    }

    /// The same, keeping the gaps before each instruction; before the first stretch.
    pub(crate) fn keep_gaps(&mut self) {
        debug_assert!(self.stretches.is_empty(), "stretches of an image have no gaps");
        self.gaps = Some(InstructionGaps::default());
    }

    /// The gaps before an instruction of a stretch; none where they are not kept.
    pub(crate) fn gaps_before(&self, stretch: u32, instruction: u32) -> Gaps {
        let Some(gaps) = &self.gaps else { return Gaps::default() };
        let first = self.step(self.stretch(stretch).first).instruction;
        gaps.all[to_usize(gaps.first[to_usize(stretch)] + instruction - first)]
    }

    /// Whether the code works with other CTAs of a cluster.
    pub(crate) fn in_cluster(&self) -> bool {
        let marks = |opcode: &String| {
            ["UCGABAR", "MAPA"].iter().any(|root| opcode.starts_with(root))
                || opcode.contains(".MULTICAST")
        };
        self.code.opcodes.iter().any(marks)
    }

    /// Whether the code has multiplies of warp groups, which overlap with what comes next.
    pub(crate) fn queues_multiplies(&self) -> bool {
        self.queues_multiplies
    }

    /// Static instructions.
    pub(crate) fn instructions(&self) -> usize {
        self.decoded.len()
    }

    /// The cache lines of the code.
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

    /// The PC of the last instruction of a stretch that ends at one, as at a barrier.
    pub(crate) fn pc_before(&self, stretch: u32) -> u64 {
        let (segment, ..) = self.keys[to_usize(stretch)];
        let next = self.code.segments[to_usize(segment)].first + self.stretch(stretch).offset;
        self.code.instructions[to_usize(next - 1)].pc
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
        let state = State::clone(self.states.get(state));
        let gaps = self.gaps.as_mut().map(|gaps| {
            gaps.first.push(to_u32(gaps.all.len()));
            &mut gaps.all
        });
        let walk = Walk::new(&self.rules, state, &mut self.steps, gaps);
        let outcome = walk.run(&self.decoded, segment, offset);
        let stretch = Stretch {
            first,
            count: to_u32(self.steps.len()) - first,
            end: outcome.end,
            offset: outcome.offset,
            settled: self.states.intern(outcome.state.after(outcome.end)),
            ready: self.states.intern(outcome.state),
        };
        self.stretches.push(stretch);
        to_u32(self.stretches.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::{Gaps, RESOURCES, Step, StepEnd};
    use gpumodel_core::isa::Unit;

    #[test]
    fn the_parts_of_a_step_add_up_to_it() {
        let step = Step {
            cycles: 37.5,
            unevenness: 0.5,
            lasting: 1,
            conflicts: 0,
            slots: 21,
            instruction: 4,
            demand: [41; RESOURCES],
            gaps: Gaps { fetch: 5, registers: 7, units: 2 },
            mix: [3; Unit::ALL.len()],
            unknown: 2,
            constants: 5,
            end: StepEnd::Access { instruction: 24, slot: None },
        };
        let parts = [step.part(0, 8), step.part(8, 16), step.part(16, 21)];
        let sum = |of: fn(&Step) -> u32| parts.iter().map(of).sum::<u32>();
        assert_eq!(sum(|s| s.slots), 21);
        assert_eq!(sum(|s| u32::from(s.demand[0])), 41);
        assert_eq!(sum(|s| u32::from(s.mix[0])), 3);
        assert_eq!(sum(|s| s.gaps.fetch), 5);
        assert_eq!(sum(|s| s.gaps.registers), 7);
        assert_eq!(sum(|s| s.unknown), 2);
        assert_eq!(sum(|s| s.constants), 5);
        assert!((parts.iter().map(|s| s.cycles).sum::<f32>() - 37.5).abs() < 1e-4);
        assert_eq!(parts.map(|s| s.instruction), [4, 12, 20]);
        assert_eq!(parts.map(|s| s.end == step.end), [false, false, true]);
    }
}
