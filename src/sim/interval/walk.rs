//! The scoreboard walk over one stretch.

use gpumodel_core::isa::{Effect, Register, Segment, Unit};
use gpumodel_core::units::{to_u32, to_usize};

use super::state::{SlotId, State};
use super::{Decoded, Demand, Gaps, Mix, OPERANDS, Rules, Step, StepEnd, StretchEnd};

/// The operand banks among the units of a state.
const BANKS: u8 = 255;

/// Cycles of operand reads that the collectors hold ahead of the units: one
/// instruction's while the next one issues.
const COLLECTED: u32 = 2;

/// Outstanding loads of a warp that the walk tells apart; one more waits for the oldest.
const SLOTS: u8 = 64;

/// Most instructions of a step: its 16-bit counts hold that many, at up to 255
/// cycles of a unit each.
const LONGEST_STEP: u32 = 256;

/// One walk: a clock, the state and the step under way.
pub(super) struct Walk<'a> {
    rules: &'a Rules,
    state: State,
    /// Cycle of the last issue, from the begin of the stretch; the state's times
    /// are kept absolute while walking.
    last: u32,
    steps: &'a mut Vec<Step>,
    step_begin: f32,
    slots: u32,
    /// The instruction behind the last one issued.
    next: u32,
    demand: Demand,
    gaps: Gaps,
    mix: Mix,
    unknown: u32,
    constants: u32,
}

/// How a walk ended.
pub(super) struct Outcome {
    pub(super) end: StretchEnd,
    pub(super) offset: u32,
    pub(super) state: State,
}

impl<'a> Walk<'a> {
    /// Begins in `state`, whose times count from cycle 0; steps go to `steps`.
    pub(super) fn new(rules: &'a Rules, state: State, steps: &'a mut Vec<Step>) -> Self {
        let mut walk = Self {
            rules,
            last: 0,
            step_begin: 0.0,
            slots: 0,
            next: 0,
            demand: Demand::default(),
            gaps: Gaps::default(),
            mix: Mix::default(),
            unknown: 0,
            constants: 0,
            state,
            steps,
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
            self.issue(instruction);
            self.next = index + 1;
            if instruction.has_addresses {
                let slot = self.take_slot(instruction);
                self.end_step(StepEnd::Access { instruction: index, slot });
            } else if let Some(end) = own_end(instruction) {
                return self.finish(end, place + 1);
            } else if self.slots >= LONGEST_STEP {
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

    /// Notes the registers that a load will write.
    fn take_slot(&mut self, instruction: &Decoded) -> Option<SlotId> {
        if !instruction.effect.returns_data() || instruction.destinations.is_empty() {
            return None;
        }
        let slot = self.free_slot()?;
        self.state.loads.extend(instruction.destinations.iter().map(|&register| (register, slot)));
        Some(slot)
    }

    /// Advances the clock to the issue of `instruction` and notes its results.
    fn issue(&mut self, instruction: &Decoded) {
        let same = self.state.issued < self.rules.issue_width;
        let free = if same { self.last } else { self.last + 1 };
        let unit = unit_number(instruction.unit);
        let at = self.wait_out(free, instruction, unit);
        self.place(at);
        self.occupy(instruction, unit, at);
        self.fetch(at);
        if instruction.hold > 1 {
            self.state.hold = self.state.hold.max(at + instruction.hold);
        }
        let count = &mut self.mix[usize::from(unit)];
        *count = count.saturating_add(1);
        self.unknown += u32::from(!instruction.known);
        self.constants += u32::from(instruction.unplaced_constant);
    }

    /// The cycle in which `instruction` can issue from `free` on; what is waited
    /// for is noted in the order fetch, registers, unit.
    fn wait_out(&mut self, free: u32, instruction: &Decoded, unit: u8) -> u32 {
        let fetched = free.max(self.state.hold);
        let mut ready = fetched;
        for &(register, at) in &self.state.results {
            if instruction.sources.contains(&register)
                || instruction.destinations.contains(&register)
            {
                ready = ready.max(at);
            }
        }
        let banks = self.taken_until(BANKS).saturating_sub(COLLECTED);
        let at = ready.max(self.taken_until(unit)).max(banks);
        self.gaps.fetch += fetched - free;
        self.gaps.registers += ready - fetched;
        self.gaps.units += at - ready;
        at
    }

    /// When the issue port of a unit is free.
    fn taken_until(&self, unit: u8) -> u32 {
        self.state.units.iter().find(|&&(u, _)| u == unit).map_or(0, |&(_, free)| free)
    }

    /// Takes the issue port of a unit until a cycle.
    fn take_until(&mut self, unit: u8, free: u32) {
        self.state.units.retain(|&(u, _)| u != unit);
        self.state.units.push((unit, free));
    }

    fn ask(&mut self, resource: usize, cycles: u32) {
        let asked = &mut self.demand[resource];
        *asked = asked.saturating_add(u16::try_from(cycles).unwrap_or(u16::MAX));
    }

    fn place(&mut self, at: u32) {
        self.state.issued = if at == self.last { self.state.issued + 1 } else { 1 };
        self.last = at;
        self.slots += 1;
    }

    fn occupy(&mut self, instruction: &Decoded, unit: u8, at: u32) {
        if instruction.initiation > 0 {
            self.take_until(unit, at + instruction.initiation);
            self.ask(usize::from(unit), instruction.initiation);
        }
        let collected = self.collect(instruction, at);
        if !instruction.has_addresses {
            let ready = collected + instruction.latency;
            for &register in &instruction.destinations {
                self.state.results.retain(|&(r, _)| r != register);
                self.state.results.push((register, ready));
            }
        }
    }

    /// Reads the operands from their banks: the cycle from which the latency
    /// counts, later than the issue where a bank must deliver several. Results
    /// take their bank's ports too.
    fn collect(&mut self, instruction: &Decoded, at: u32) -> u32 {
        let (banks, ports) = (self.rules.register_banks, self.rules.register_bank_ports);
        if banks == 0 || instruction.sources.is_empty() {
            return at;
        }
        let in_bank = |list: &[Register], bank: u32| {
            to_u32(list.iter().filter(|r| u32::from(r.number()) % banks == bank).count())
        };
        let reads = |bank| in_bank(&instruction.sources, bank);
        let busiest_read = (0..banks).map(reads).max().unwrap_or(0);
        let both = |bank| reads(bank) + in_bank(&instruction.destinations, bank);
        let cycles = (0..banks).map(both).max().unwrap_or(0).div_ceil(ports);
        let begin = self.taken_until(BANKS).max(at);
        self.take_until(BANKS, begin + cycles);
        self.ask(OPERANDS, cycles);
        begin + busiest_read.div_ceil(ports).saturating_sub(1)
    }

    /// A buffer that is refilled only when empty holds the warp after every fill.
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
        self.steps.push(Step {
            cycles: clock - self.step_begin,
            slots: self.slots,
            instruction: self.next - self.slots,
            demand: self.demand,
            gaps: self.gaps,
            mix: self.mix,
            unknown: self.unknown,
            constants: self.constants,
            end,
        });
        self.step_begin = clock;
        self.slots = 0;
        self.demand = Demand::default();
        self.gaps = Gaps::default();
        self.mix = Mix::default();
        self.unknown = 0;
        self.constants = 0;
    }

    fn finish(mut self, end: StretchEnd, offset: u32) -> Outcome {
        if self.slots > 0 {
            self.end_step(StepEnd::Stretch);
        }
        let last = self.last;
        let state = &mut self.state;
        let later = |at: u32| at.checked_sub(last).filter(|&left| left > 0);
        state.results = state.results.iter().filter_map(|&(r, at)| Some((r, later(at)?))).collect();
        state.units = state.units.iter().filter_map(|&(u, at)| Some((u, later(at)?))).collect();
        state.hold = later(state.hold).unwrap_or(0);
        state.results.sort_unstable();
        state.loads.sort_unstable();
        state.units.sort_unstable();
        Outcome { end, offset, state: self.state }
    }
}

fn unit_number(unit: Unit) -> u8 {
    u8::try_from(unit.index()).expect("there are fewer than 256 units")
}

/// Ends of a stretch that an instruction brings by what it is.
fn own_end(instruction: &Decoded) -> Option<StretchEnd> {
    match instruction.effect {
        Effect::Barrier | Effect::Arrive => instruction.operands.map(StretchEnd::Barrier),
        Effect::Fence => Some(StretchEnd::Fence),
        Effect::AsyncCommit => Some(StretchEnd::AsyncCommit),
        Effect::AsyncWait => {
            let told = instruction.immediate.and_then(|groups| u32::try_from(groups).ok());
            Some(StretchEnd::AsyncWait { allowed: told.unwrap_or(0), told: told.is_some() })
        }
        _ => None,
    }
}
