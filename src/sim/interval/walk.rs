//! The scoreboard walk over one stretch, the dependency states between stretches, and how
//! unevenly a stretch comes to the issue slot and to the units.

use std::borrow::Cow;

use super::decode::{STALL, UNLISTED, accumulators};
use super::reuse_cache::ReuseCache;
use super::state::{Origin, Pending, SlotId, State, has_variable_latency};
use super::{Decoded, Gaps, OPERANDS, RESOURCES, Rules, Step, StepEnd, StretchEnd};
use crate::config::OperandReads;
use gpumodel_core::isa::{Effect, ObjectStep, Register, Segment, Unit};
use gpumodel_core::units::{to_u32, to_usize};

/// The number of the operand banks among the units of a state.
const BANKS: u8 = 255;

/// Cycles of operand reads that the collectors buffer ahead of the units: those of one
/// instruction while the next one issues.
const COLLECTED: u32 = 2;

/// Outstanding loads of a warp with separate slots; one more waits for the oldest.
const SLOTS: u8 = 64;

/// Most instructions of a step: its 16-bit counts have room for so many of up to 255 cycles
/// of a unit each.
const LONGEST_STEP: u32 = 256;

/// A step with that many cycles of one resource ends: its 16-bit counts have room for one more
/// instruction.
const FULL_STEP: u16 = 1 << 15;

/// One walk: a clock, the state and the current step.
pub(super) struct Walk<'a> {
    rules: &'a Rules,
    state: State,
    /// Cycle of the last issue, from the begin of the stretch; the state's times are absolute
    /// during the walk.
    last: u32,
    steps: &'a mut Vec<Step>,
    step_begin: f32,
    /// The instruction after the last issued one.
    next: u32,
    /// The current step, without its cycles, first instruction and end.
    step: Step,
    /// The gaps before each instruction go here, where they are wanted.
    gaps: Option<&'a mut Vec<Gaps>>,
    /// The first step of the stretch.
    first: usize,
    unevenness: Unevenness,
    kept: ReuseCache,
}

impl Step {
    /// Whether its counts have room for no further instruction.
    fn is_full(&self) -> bool {
        self.slots >= LONGEST_STEP || self.demand.iter().any(|&cycles| cycles >= FULL_STEP)
    }
}

const EMPTY_STEP: Step = Step {
    cycles: 0.0,
    unevenness: 0.0,
    lasting: 0,
    conflicts: 0,
    slots: 0,
    instruction: 0,
    demand: [0; RESOURCES],
    gaps: Gaps { fetch: 0, registers: 0, units: 0 },
    mix: [0; Unit::ALL.len()],
    unknown: 0,
    constants: 0,
    end: StepEnd::Stretch,
};

/// How a walk ended.
pub(super) struct Outcome {
    pub(super) end: StretchEnd,
    pub(super) offset: u32,
    pub(super) state: State,
}

impl<'a> Walk<'a> {
    /// Begins in `state`, whose times count from cycle 0; steps go to `steps`, the gaps before
    /// each instruction to `gaps`.
    pub(super) fn new(
        rules: &'a Rules,
        state: State,
        steps: &'a mut Vec<Step>,
        gaps: Option<&'a mut Vec<Gaps>>,
    ) -> Self {
        let step = EMPTY_STEP;
        let (first, unevenness) = (steps.len(), Unevenness::default());
        let (last, step_begin, next) = (0, 0.0, 0);
        let mut walk = Self {
            rules,
            last,
            step_begin,
            next,
            step,
            state,
            steps,
            gaps,
            first,
            unevenness,
            kept: ReuseCache::default(),
        };
        walk.step_begin = walk.clock();
        walk
    }

    /// Walks from `offset` of `segment` to the end of the stretch.
    pub(super) fn run(mut self, decoded: &[Decoded], segment: Segment, offset: u32) -> Outcome {
        for place in offset..segment.length {
            let index = segment.first + place;
            let instruction = &decoded[to_usize(index)];
            if let Some(slot) = self.blocking_load(instruction) {
                self.state.loads.retain(|&(_, s)| s != slot);
                return self.finish(StretchEnd::Load(slot), place);
            }
            if let Some(cycles) = self.variable_wait(instruction) {
                return self.finish(StretchEnd::Result(cycles), place);
            }
            self.issue(instruction);
            self.next = index + 1;
            if instruction.has_addresses || instruction.effect.is_bulk() {
                let slot = self.assign_slot(instruction);
                self.end_step(StepEnd::Access { instruction: index, slot });
                if instruction.effect == Effect::Object(ObjectStep::Wait) {
                    return self.finish(StretchEnd::ObjectWait, place + 1);
                }
            } else if let Some(end) = end_by_effect(instruction) {
                return self.finish(end, place + 1);
            } else if self.step.is_full() {
                self.end_step(StepEnd::Stretch);
            }
            if place + 1 == segment.length && instruction.effect == Effect::Branch {
                self.state.hold = self.state.hold.max(self.last + 1 + self.rules.branch_cycles);
            }
        }
        self.finish(StretchEnd::Segment, segment.length)
    }

    /// Time in issue-slot fractions: a dual-issue pair takes half a cycle each.
    fn clock(&self) -> f32 {
        let width = f64::from(self.rules.issue_width);
        #[allow(clippy::cast_possible_truncation, reason = "stretches are short")]
        let clock = (f64::from(self.last) + f64::from(self.state.issued) / width) as f32;
        clock
    }

    /// Cycles before a unit of variable latency takes an instruction, or has the results that it
    /// uses, where the warp leaves its scheduler's active ones for that time.
    fn variable_wait(&self, instruction: &Decoded) -> Option<u32> {
        if !self.rules.ends_at_results {
            return None;
        }
        let uses = |register: &Register| {
            instruction.sources.contains(register) || instruction.destinations.contains(register)
        };
        let results = self.state.results.iter();
        let waits = results.filter(|one| one.from == Origin::Variable && uses(&one.register));
        let results = waits.map(|one| one.gone).max().unwrap_or(0);
        let unit = instruction.unit;
        let busy = has_variable_latency(unit) && self.busy_until(unit_number(unit)) > self.last + 1;
        // The time of a busy unit is in its share; the warp only leaves.
        let wait = results.saturating_sub(self.last + 1);
        (wait > 0 || busy).then_some(wait)
    }

    fn blocking_load(&self, instruction: &Decoded) -> Option<SlotId> {
        let uses = |register: Register| {
            instruction.sources.contains(&register) || instruction.destinations.contains(&register)
        };
        let found = self.state.loads.iter().find(|&&(register, _)| uses(register));
        if let Some(&(_, slot)) = found {
            return Some(slot);
        }
        let starts_load = instruction.has_addresses && instruction.effect.returns_data();
        let full = starts_load && self.free_slot().is_none();
        full.then(|| self.state.loads[0].1)
    }

    fn free_slot(&self) -> Option<SlotId> {
        (0..SLOTS).map(SlotId).find(|slot| self.state.loads.iter().all(|(_, s)| s != slot))
    }

    /// Assigns a slot to the registers that a load will write.
    fn assign_slot(&mut self, instruction: &Decoded) -> Option<SlotId> {
        if !instruction.effect.returns_data() || instruction.destinations.is_empty() {
            return None;
        }
        let slot = self.free_slot()?;
        self.state.loads.extend(instruction.destinations.iter().map(|&register| (register, slot)));
        Some(slot)
    }

    /// Advances the clock to the issue of `instruction` and records its results.
    fn issue(&mut self, instruction: &Decoded) {
        let same = self.state.issued < self.rules.issue_width;
        let free = if same { self.last } else { self.last + 1 };
        let unit = unit_number(instruction.unit);
        let at = self.issue_cycle(free, instruction, unit);
        self.advance_to(at);
        self.occupy(instruction, unit, at);
        self.unevenness.note(usize::from(unit), at, instruction.initiation);
        self.fetch(at);
        if instruction.hold > 1 {
            self.state.hold = self.state.hold.max(at + instruction.hold);
        }
        let count = &mut self.step.mix[usize::from(unit)];
        *count = count.saturating_add(1);
        self.step.unknown += u32::from(!instruction.known);
        self.step.constants += u32::from(instruction.unplaced_constant);
    }

    /// The first cycle from `free` on in which `instruction` can issue; gaps are attributed in
    /// the order fetch, registers, unit.
    fn issue_cycle(&mut self, free: u32, instruction: &Decoded, unit: u8) -> u32 {
        let fetched = free.max(self.state.hold);
        let mut ready = fetched;
        for result in &self.state.results {
            // Comparisons write one of several predicates, which traces do not list.
            let register = result.register;
            let overwrites = register != UNLISTED && instruction.destinations.contains(&register);
            if overwrites || instruction.sources.contains(&register) {
                ready = ready.max(self.rules.forwarding.ready(result, instruction.unit));
            }
        }
        let banks = self.busy_until(BANKS).saturating_sub(COLLECTED);
        // A multiply of a warp group does not hold its warp up.
        let queued = instruction.effect == Effect::MatrixGroup;
        let at = ready.max(if queued { 0 } else { self.busy_until(unit) }).max(banks);
        let gaps = Gaps { fetch: fetched - free, registers: ready - fetched, units: at - ready };
        self.step.gaps.fetch += gaps.fetch;
        self.step.gaps.registers += gaps.registers;
        self.step.gaps.units += gaps.units;
        if let Some(all) = &mut self.gaps {
            all.push(gaps);
        }
        at
    }

    /// When the issue port of a unit is free.
    fn busy_until(&self, unit: u8) -> u32 {
        self.state.units.iter().find(|&&(u, _)| u == unit).map_or(0, |&(_, free)| free)
    }

    /// Occupies the issue port of a unit until a cycle.
    fn occupy_until(&mut self, unit: u8, free: u32) {
        self.state.units.retain(|&(u, _)| u != unit);
        self.state.units.push((unit, free));
    }

    fn add_demand(&mut self, resource: usize, cycles: u32) {
        self.step.lasting |= u16::from(cycles > 1) << resource;
        let demand = &mut self.step.demand[resource];
        *demand = demand.saturating_add(u16::try_from(cycles).unwrap_or(u16::MAX));
    }

    fn advance_to(&mut self, at: u32) {
        self.state.issued = if at == self.last { self.state.issued + 1 } else { 1 };
        self.last = at;
        self.step.slots += 1;
    }

    fn occupy(&mut self, instruction: &Decoded, unit: u8, at: u32) {
        let begin = self.busy_until(unit).max(at);
        if instruction.initiation > 0 {
            self.occupy_until(unit, begin + instruction.initiation);
            self.add_demand(usize::from(unit), instruction.initiation);
        }
        let collected = self.collect(instruction, at);
        let ready = collected.max(begin) + instruction.latency;
        if let Some(stall) = instruction.stall {
            let gone = collected + stall;
            self.state.write(Pending { register: STALL, gone, from: Origin::Any });
        }
        if !instruction.has_addresses && !instruction.covered {
            let from = self.origin(instruction);
            let gone = ready + self.rules.forwarding.latest(from);
            for &register in &instruction.destinations {
                self.state.write(Pending { register, gone, from });
            }
        }
        if instruction.effect == Effect::MatrixGroup {
            let (register, from) = (accumulators(0), Origin::Any);
            self.state.write(Pending { register, gone: ready, from });
            if instruction.ends_group {
                self.state.end_matrix_group();
            }
        }
    }

    /// Where the results of an instruction come from.
    fn origin(&self, instruction: &Decoded) -> Origin {
        match instruction.unit {
            unit if has_variable_latency(unit) && self.rules.ends_at_results => Origin::Variable,
            Unit::Int if self.rules.forwarding.differs() => Origin::Int,
            Unit::Fp32 if self.rules.forwarding.differs() => Origin::Fp32,
            _ => Origin::Any,
        }
    }

    /// Reads the operands from their banks. Returns the cycle from which the latency counts,
    /// which is after the issue where one bank delivers several.
    fn collect(&mut self, instruction: &Decoded, at: u32) -> u32 {
        let (banks, ports) = (self.rules.register_banks, self.rules.register_bank_ports);
        let (reads, writes) = self.bank_accesses(instruction, at);
        let takes_port = self.rules.operand_reads == OperandReads::ReuseOnePort;
        if banks == 0 || reads.is_empty() && (writes.is_empty() || !takes_port) {
            return at;
        }
        let in_bank = |list: &[Register], bank: u32| {
            to_u32(list.iter().filter(|r| u32::from(r.number()) % banks == bank).count())
        };
        let busiest_read = (0..banks).map(|bank| in_bank(&reads, bank)).max().unwrap_or(0);
        let both = |bank| in_bank(&reads, bank) + in_bank(writes, bank);
        let cycles = (0..banks).map(both).max().unwrap_or(0).div_ceil(ports);
        let begin = self.busy_until(BANKS).max(at);
        self.occupy_until(BANKS, begin + cycles);
        self.add_demand(OPERANDS, cycles);
        if cycles > 1 {
            let conflicts =
                self.step.conflicts.saturating_add(u16::try_from(cycles).unwrap_or(u16::MAX));
            self.step.conflicts = conflicts.min(self.step.demand[OPERANDS]);
        }
        begin + busiest_read.div_ceil(ports).saturating_sub(1)
    }

    /// The registers that an instruction reads from the banks and writes to their ports, see
    /// [`OperandReads`].
    fn bank_accesses<'i>(
        &mut self,
        instruction: &'i Decoded,
        at: u32,
    ) -> (Cow<'i, [Register]>, &'i [Register]) {
        let results = match self.rules.operand_reads {
            OperandReads::All => {
                return (Cow::Borrowed(&instruction.sources), &instruction.destinations);
            }
            OperandReads::Reuse => &[][..],
            OperandReads::ReuseOnePort => &instruction.written,
        };
        let reads = match &instruction.marked {
            Some(marked) => self.kept.read_marked(&instruction.read_operands, marked),
            None => self.kept.read(instruction, self.rules.register_banks, at),
        };
        (Cow::Owned(reads), results)
    }

    /// An instruction buffer that is refilled only when empty stops the warp after every fill.
    fn fetch(&mut self, at: u32) {
        if self.rules.instruction_buffer == 0 {
            return;
        }
        self.state.fetched += 1;
        if self.state.fetched >= self.rules.instruction_buffer {
            self.state.fetched = 0;
            self.state.hold = self.state.hold.max(at + 1 + self.rules.refetch_cycles);
        }
    }

    fn end_step(&mut self, end: StepEnd) {
        let clock = self.clock();
        let step = std::mem::replace(&mut self.step, EMPTY_STEP);
        let (cycles, instruction) = (clock - self.step_begin, self.next - step.slots);
        self.steps.push(Step { cycles, instruction, end, ..step });
        self.step_begin = clock;
    }

    fn finish(mut self, end: StretchEnd, offset: u32) -> Outcome {
        if self.step.slots > 0 {
            self.end_step(StepEnd::Stretch);
        }
        let unevenness = self.unevenness.mean(self.last);
        self.steps[self.first..].iter_mut().for_each(|step| step.unevenness = unevenness);
        let last = self.last;
        self.state.count_from(last);
        Outcome { end, offset, state: self.state }
    }
}

fn unit_number(unit: Unit) -> u8 {
    u8::try_from(unit.index()).expect("there are fewer than 256 units")
}

/// How an instruction ends a stretch by its effect, if it does.
fn end_by_effect(instruction: &Decoded) -> Option<StretchEnd> {
    match instruction.effect {
        Effect::Barrier | Effect::Arrive | Effect::ClusterArrive | Effect::ClusterWait => {
            instruction.operands.map(StretchEnd::Barrier)
        }
        Effect::SetRegisters => {
            let count = instruction.immediate.and_then(|count| u32::try_from(count).ok());
            count.map(StretchEnd::Registers)
        }
        Effect::Fence => Some(StretchEnd::Fence),
        Effect::AsyncCommit => Some(StretchEnd::AsyncCommit),
        Effect::AsyncWait => {
            let groups = instruction.immediate.and_then(|groups| u32::try_from(groups).ok());
            Some(StretchEnd::AsyncWait { allowed: groups.unwrap_or(0), known: groups.is_some() })
        }
        _ => None,
    }
}

/// The place of the issue slot behind the units.
const ISSUE: usize = RESOURCES;

/// The uses of one resource.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    count: f64,
    /// Cycles for which it was occupied.
    asked: f64,
    first: f64,
    last: f64,
    /// Squares of the cycles from each use to the next, summed up.
    squares: f64,
}

/// The uses of each resource along a stretch.
#[derive(Debug)]
pub(crate) struct Unevenness([Uses; ISSUE + 1]);

impl Default for Unevenness {
    fn default() -> Self {
        Self([Uses::default(); ISSUE + 1])
    }
}

impl Unevenness {
    /// An instruction issues in cycle `at` to `unit`, which it occupies for `cycles`.
    pub(crate) fn note(&mut self, unit: usize, at: u32, cycles: u32) {
        for (resource, cycles) in [(unit, cycles), (ISSUE, 1)] {
            let uses = &mut self.0[resource];
            let at = f64::from(at);
            if uses.count > 0.0 {
                uses.squares += (at - uses.last).powi(2);
            } else {
                uses.first = at;
            }
            uses.last = at;
            uses.count += 1.0;
            uses.asked += f64::from(cycles);
        }
    }

    /// The standard deviation over the mean of the cycles from each use to the next, as if the
    /// stretch of `length` cycles came again and again; at most 1, and the mean over the
    /// resources by what is asked of them.
    pub(crate) fn mean(&self, length: u32) -> f32 {
        let length = f64::from(length.max(1));
        let (mut sum, mut asked) = (0.0, 0.0);
        for uses in self.0.iter().filter(|uses| uses.count > 0.0) {
            let around = (length - uses.last + uses.first).max(0.0);
            let squares = uses.squares + around.powi(2);
            let variance = (squares * uses.count / length.powi(2) - 1.0).max(0.0);
            sum += uses.asked * variance.sqrt().min(1.0);
            asked += uses.asked;
        }
        #[allow(clippy::cast_possible_truncation, reason = "0 to 1")]
        let mean = (sum / f64::max(asked, 1.0)) as f32;
        mean
    }
}

#[cfg(test)]
mod tests {
    use super::Unevenness;

    fn mean(issues: &[(usize, u32)], length: u32) -> f32 {
        let mut unevenness = Unevenness::default();
        issues.iter().for_each(|&(unit, at)| unevenness.note(unit, at, 1));
        unevenness.mean(length)
    }

    #[test]
    fn what_comes_evenly_has_none() {
        assert!(mean(&[(0, 4), (0, 8), (0, 12), (0, 16)], 16) < 1e-6);
        assert!(mean(&[], 0) < 1e-6);
    }

    #[test]
    fn bursts_have_more_than_a_single_gap() {
        // Gaps of 1, 1, 1, 13: mean 4, variance 27, so at most 1 for slot and unit.
        assert!((mean(&[(0, 1), (0, 2), (0, 3), (0, 16)], 16) - 1.0).abs() < 1e-6);
        // Gaps of 3 and 5: a standard deviation of 1 over 4.
        assert!((mean(&[(0, 3), (0, 8)], 8) - 0.25).abs() < 1e-6);
    }
}
